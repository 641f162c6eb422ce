/**
 * Whether the tables agree with each other and with the counters. Reads and decodes every row in one event turn, so it
 * takes time in proportion to the store, while nobody else writes: for `check`, in a process of its own, and for tests.
 * Answers the writes that mend what can be counted again: the counters, and the rows of hosts and domains. Never writes.
 *
 *   seen    state of each URL                = counters; those that ended = page rows of such
 *   queue   URLs, and their hosts' counts    = ready, domains; each is pending
 *   pages   outcome                          = state in seen, unless the URL is pending again
 *   due     moment                           = that in the page row, and the other way round
 *
 * Memory: a few words for each host that has URLs in the queue and for each domain; findings are bounded. Every look-up
 * follows the order of its table, so a store that is larger than memory is read about once for each table.
 */
import { stateOfOutcome, type Counters, type UrlState } from '../../engine/core/types.ts'
import { hostHashOf } from '../../engine/core/url-key.ts'
import { Findings } from '../findings.ts'
import type { CheckReport } from '../store.ts'
import { Arena, decodeCount, decodeJson, decodePageRow, decodeState, encodeCount, factsOfHostRow, nameOfHostRow } from './codec.ts'
import { decodeDomain, encodeDomain, type DomainCounts } from './domains.ts'
import { tableNames, type TableName, type Tables, type Write } from './environment.ts'
import { dueAtMsOf, dueKey, hostKeyOf, HOST_KEY_BYTES, isLaterRow, keyText, seenKey, seenKeyOfDue } from './layout.ts'
import { decodeHead, RowUrls } from './queue-row.ts'
import { metaKeys } from './state.ts'

const terms = ['pending', 'done', 'failed', 'dropped', 'excluded'] as const satisfies readonly UrlState[]

export interface TablesReport extends CheckReport {
  /** As the rows have them. */
  readonly counters: Counters
  readonly writes: readonly Write[]
}

export interface CheckedStore {
  readonly tables: Tables
  readonly counters: Counters
  readonly hashOf: (host: string) => Uint8Array
  readonly domainOf: (host: string) => string
}

export function checkTables(store: CheckedStore): TablesReport {
  const check = new TableCheck(store)
  const counters = check.seen()
  check.queue(counters.pending)
  check.ready()
  check.domains()
  check.pages(counters.discovered - counters.pending)
  check.others()
  const rows = Object.fromEntries(tableNames.map((name) => [name, check.rows.get(name) ?? 0]))
  return { mended: check.mended.lines, problems: check.problems.lines, rows, counters, writes: check.writes }
}

/** A host with URLs in the queue. */
interface QueueHost {
  readonly key: Uint8Array
  readonly name: string
  readonly hash: Uint8Array
  urls: number
  later: number
}

class TableCheck {
  readonly mended = new Findings()
  readonly problems = new Findings()
  readonly writes: Write[] = []
  readonly rows = new Map<TableName, number>()
  readonly #is: CheckedStore
  readonly #tables: Tables
  readonly #arena = new Arena()
  readonly #hosts = new Map<string, QueueHost>()

  constructor(store: CheckedStore) {
    this.#is = store
    this.#tables = store.tables
  }

  /** Counts the states; answers the counters that agree with them. */
  seen(): Counters {
    const counted = { pending: 0, done: 0, failed: 0, dropped: 0, excluded: 0 }
    this.#each('seen', (_, value) => { counted[decodeState(value)] += 1 })
    const { counters } = this.#is
    for (const state of terms) this.#mend(`URLs that are ${state}`, counters[state], counted[state])
    const discovered = terms.reduce((sum, state) => sum + counted[state], 0)
    this.#mend('URLs discovered', counters.discovered, discovered)
    return { ...counters, ...counted, discovered }
  }

  queue(pending: number): void {
    const { seen } = this.#tables
    let queued = 0
    this.#each('queue', (key, value) => {
      decodeHead(value)
      const host = this.#hostOf(hostKeyOf(key))
      const urls = new RowUrls(value)
      host.urls += urls.count
      if (isLaterRow(key)) host.later += urls.count
      queued += urls.count
      for (let index = 0; index < urls.count; index += 1) {
        const url = urls.url(index, host.name)
        const state = seen.get(seenKey(host.hash, urls.fingerprint(index)))
        if (state === undefined || decodeState(state) !== 'pending') this.problems.add(`${url} is in the queue, and ${state === undefined ? 'was never seen' : `its state is ${decodeState(state)}`}`)
      }
    })
    if (queued !== pending) this.problems.add(`the queue holds ${queued} URLs, and ${pending} are pending`)
  }

  #hostOf(key: Uint8Array): QueueHost {
    const id = keyText(key)
    let host = this.#hosts.get(id)
    if (host !== undefined) return host
    const row = this.#tables.hosts.get(key)
    if (row === undefined) this.problems.add(`${hostText(key)} has URLs in the queue and no record`)
    const name = row === undefined ? '' : nameOfHostRow(row)
    const own = new Uint8Array(key)
    this.#hosts.set(id, host = { key: own, name, hash: row === undefined ? own : this.#is.hashOf(name), urls: 0, later: 0 })
    return host
  }

  /** The counts of hosts, once their URLs are counted. */
  ready(): void {
    const { ready } = this.#tables
    for (const { key, name, urls } of this.#hosts.values()) {
      if (this.#mend(`URLs of host ${name}`, decodeCount(ready.get(key)), urls)) this.writes.push({ table: 'ready', key, value: encodeCount(this.#arena, urls) })
    }
    this.#each('ready', (key, value) => {
      if (this.#hosts.has(keyText(key))) return
      this.#mend(`URLs of ${hostText(key)}`, decodeCount(value), 0)
      this.writes.push({ table: 'ready', key: new Uint8Array(key) })
    })
  }

  /** The counts of registrable domains, while they are kept. */
  domains(): void {
    const counted = new Map<string, { readonly key: Uint8Array; readonly name: string; pending: number; first: number }>()
    const isKept = this.#tables.meta.has(metaKeys.domains)
    for (const { name, urls, later } of isKept ? this.#hosts.values() : []) {
      const domain = this.#is.domainOf(name)
      const key = hostHashOf(domain)
      const counts = counted.get(keyText(key)) ?? { key, name: domain, pending: 0, first: 0 }
      counted.set(keyText(key), counts)
      counts.pending += urls
      counts.first += urls - later
    }
    const linking = this.#linkingDomains()
    this.#each('domains', (key, value) => {
      const stored = decodeDomain(value)
      if (!isKept) return
      const id = keyText(key)
      const { name = `with the hash ${Buffer.from(key).toString('hex')}`, pending = 0, first = 0 } = counted.get(id) ?? {}
      this.#mendDomain(new Uint8Array(key), name, { stored, counted: { pending, first, linkingDomains: linking.get(id) ?? 0 } })
      counted.delete(id)
    })
    for (const { key, name, pending, first } of counted.values()) {
      this.#mendDomain(key, name, { stored: decodeDomain(undefined), counted: { pending, first, linkingDomains: linking.get(keyText(key)) ?? 0 } })
    }
  }

  /** How many domains link to each. */
  #linkingDomains(): ReadonlyMap<string, number> {
    const linking = new Map<string, number>()
    this.#each('domainLinks', (key) => {
      const id = keyText(key.subarray(0, HOST_KEY_BYTES))
      linking.set(id, (linking.get(id) ?? 0) + 1)
    })
    return linking
  }

  #mendDomain(key: Uint8Array, name: string, { stored, counted }: { readonly stored: DomainCounts; readonly counted: DomainCounts }): void {
    // Of a queue that was there before they were counted all URLs were taken for those of the first class.
    const isFirstRight = stored.first >= counted.first && stored.first <= stored.pending
    const isMended = [
      this.#mend(`URLs of domain ${name}`, stored.pending, counted.pending),
      !isFirstRight && this.#mend(`URLs of domain ${name} within its budget`, stored.first, counted.first),
      this.#mend(`domains that link to domain ${name}`, stored.linkingDomains, counted.linkingDomains),
    ].includes(true)
    if (isMended) this.writes.push({ table: 'domains', key, value: encodeDomain(this.#arena, counted) })
  }

  pages(endedUrls: number): void {
    const { pages, seen, due: dueTable } = this.#tables
    let endedPages = 0
    this.#each('pages', (key, value) => {
      const { url, outcome, due } = decodePageRow(value)
      const row = seen.get(key)
      if (row === undefined) return this.problems.add(`${url} has a page row and was never seen`)
      const state = decodeState(row)
      if (state === 'pending') return
      endedPages += 1
      if (state !== stateOfOutcome[outcome]) this.problems.add(`${url} is ${state}, and its page row says ${outcome}`)
      if (due !== undefined && !dueTable.has(dueKey(due.atMs, new Uint8Array(key)))) this.problems.add(`${url} is due at ${due.atMs}, and is not in the index`)
    })
    if (endedPages !== endedUrls) this.problems.add(`${endedUrls} URLs have ended, and ${endedPages} of them have a page row`)
    this.#each('due', (key) => {
      const row = pages.get(seenKeyOfDue(key))
      const at = row === undefined ? undefined : decodePageRow(row).due?.atMs
      if (at !== dueAtMsOf(key)) this.problems.add(`a page is due at ${dueAtMsOf(key)} and its row says ${at ?? 'never'}`)
    })
  }

  /** Tables whose rows stand for themselves. */
  others(): void {
    this.#each('hosts', (_, value) => { nameOfHostRow(value); factsOfHostRow(value) })
    this.#each('robots', (_, value) => { decodeJson(value) })
    for (const name of ['meta', 'scope'] as const) this.#each(name, () => undefined)
  }

  /** Says that a count is not what the rows have; answers whether it was not. */
  #mend(what: string, stored: number, counted: number): boolean {
    if (stored !== counted) this.mended.add(`${what}: ${stored} were counted, there are ${counted}`)
    return stored !== counted
  }

  #each(name: TableName, read: (key: Uint8Array, value: Uint8Array) => void): void {
    let rows = 0
    const problem = (what: string, error: unknown): void => this.problems.add(`${what}: ${(error as Error).message}`)
    try {
      for (const { key, value } of this.#tables[name].entries()) {
        rows += 1
        try {
          read(key, value)
        } catch (error) {
          problem(`${name} row ${Buffer.from(key).toString('hex')}`, error)
        }
      }
    } catch (error) {
      // LMDB has come to a page that is none.
      problem(`the table ${name} cannot be read behind row ${rows}`, error)
    }
    this.rows.set(name, rows)
  }
}

function hostText(key: Uint8Array): string {
  return `host ${Buffer.from(key).toString('hex')}`
}

/**
 * Whether the tables agree with each other and with the counters. Reads and decodes every row, so it takes time in
 * proportion to the store, in one event turn; for `check` and for tests. Main thread. Answers the writes that mend what
 * can be counted again: the counters, and the rows of each host. Never writes.
 */
import type { Counters, UrlState } from '../../engine/core/types.ts'
import type { CheckReport } from '../store.ts'
import { Arena, decodeCount, decodeJson, decodePageRow, decodeState, encodeCount, factsOfHostRow, nameOfHostRow } from './codec.ts'
import { decodeDomain } from './domains.ts'
import { tableNames, type Table, type Tables, type Write } from './environment.ts'
import { dueAtMsOf, hostKeyOf, keyText, seenKeyOfDue } from './layout.ts'
import { decodeHead, RowUrls } from './queue-row.ts'

const terms = ['pending', 'done', 'failed', 'dropped', 'excluded'] as const satisfies readonly UrlState[]

export interface TablesReport extends CheckReport {
  /** As the rows have them. */
  readonly counters: Counters
  readonly writes: readonly Write[]
}

export function checkTables(tables: Tables, counters: Counters): TablesReport {
  const check = new TableCheck(tables)
  const corrected = check.counters(counters)
  check.hosts()
  check.pages()
  const rows = Object.fromEntries(tableNames.map((name) => [name, check.rows.get(name) ?? 0]))
  return { mended: check.mended, problems: check.problems, rows, counters: corrected, writes: check.writes }
}

class TableCheck {
  readonly mended: string[] = []
  readonly problems: string[] = []
  readonly writes: Write[] = []
  readonly rows = new Map<string, number>()
  readonly #tables: Tables
  readonly #arena = new Arena()

  constructor(tables: Tables) {
    this.#tables = tables
  }

  counters(counters: Counters): Counters {
    const states = new Map<UrlState, number>()
    this.#each('seen', (_, value) => {
      const state = decodeState(value)
      states.set(state, (states.get(state) ?? 0) + 1)
    })
    const counted = Object.fromEntries(terms.map((state) => [state, states.get(state) ?? 0])) as Record<(typeof terms)[number], number>
    for (const state of terms) this.#mend(`URLs that are ${state}`, counters[state], counted[state])
    const discovered = terms.reduce((sum, state) => sum + counted[state], 0)
    this.#mend('URLs discovered', counters.discovered, discovered)
    const queued = this.#queue()
    if (queued !== counted.pending) this.problems.push(`the queue holds ${queued} URLs, and ${counted.pending} are pending`)
    return { ...counters, ...counted, discovered }
  }

  /** Counts the URLs of the queue, and mends the counts of its hosts. */
  #queue(): number {
    const { hosts, ready } = this.#tables
    const urlsOfHost = new Map<string, { readonly key: Uint8Array; urls: number }>()
    this.#each('queue', (key, value) => {
      decodeHead(value)
      const hostKey = new Uint8Array(hostKeyOf(key))
      const host = urlsOfHost.get(keyText(hostKey)) ?? { key: hostKey, urls: 0 }
      urlsOfHost.set(keyText(hostKey), host)
      const urls = new RowUrls(value)
      for (let index = 0; index < urls.count; index += 1) urls.url(index, '')
      host.urls += urls.count
    })
    let queued = 0
    for (const { key, urls } of urlsOfHost.values()) {
      queued += urls
      const count = ready.get(key)
      const name = `host ${Buffer.from(key).toString('hex')}`
      if (hosts.get(key) === undefined) this.problems.push(`${name} has URLs in the queue and no record`)
      if (this.#mend(`URLs of ${name}`, decodeCount(count), urls)) this.writes.push({ table: 'ready', key, value: encodeCount(this.#arena, urls) })
    }
    this.#each('ready', (key, value) => {
      if (urlsOfHost.has(keyText(key))) return
      this.#mend(`URLs of host ${Buffer.from(key).toString('hex')}`, decodeCount(value), 0)
      this.writes.push({ table: 'ready', key: new Uint8Array(key) })
    })
    return queued
  }

  hosts(): void {
    this.#each('hosts', (_, value) => { nameOfHostRow(value); factsOfHostRow(value) })
    this.#each('robots', (_, value) => { decodeJson(value) })
    this.#each('domains', (_, value) => { decodeDomain(value) })
  }

  pages(): void {
    const { pages, seen } = this.#tables
    this.#each('pages', (key, value) => {
      const page = decodePageRow(value)
      const state = seen.get(key)
      if (state === undefined) this.problems.push(`${page.url} has a page row and was never seen`)
    })
    this.#each('due', (key) => {
      const row = pages.get(seenKeyOfDue(key))
      const at = row === undefined ? undefined : decodePageRow(row).due?.atMs
      if (at !== dueAtMsOf(key)) this.problems.push(`a page is due at ${dueAtMsOf(key)} and its row says ${at ?? 'never'}`)
    })
  }

  /** Says that a count is not what the rows have; answers whether it was not. */
  #mend(what: string, stored: number, counted: number): boolean {
    if (stored !== counted) this.mended.push(`${what}: ${stored} were counted, there are ${counted}`)
    return stored !== counted
  }

  #each(name: (typeof tableNames)[number], read: (key: Uint8Array, value: Uint8Array) => void): void {
    const table: Table = this.#tables[name]
    let rows = 0
    for (const { key, value } of table.entries()) {
      rows += 1
      try {
        read(key, value)
      } catch (error) {
        this.problems.push(`${name} row ${Buffer.from(key).toString('hex')}: ${(error as Error).message}`)
      }
    }
    this.rows.set(name, rows)
  }
}

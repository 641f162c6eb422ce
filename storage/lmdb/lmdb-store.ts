/**
 * The frontier on LMDB: opening, reading, and the turn of a commit. It lives in `<dir>/store/`; the sink files lie in
 * `<dir>`. Main thread. Invariant: what is in memory here (counters, sequence, committed lengths) is what the last
 * transaction holds, and changes only after it; everything else is read from the tables.
 *
 * Opening reads a handful of rows and a list of sink files, whatever the queue holds. With durability `commit` a commit
 * resolves when it is on the disk, sink files included; with the others when a killed process cannot lose it.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import { systemClock, type Clock } from '../../engine/core/clock.ts'
import { SluiceError, invariant, orDamage } from '../../engine/core/errors.ts'
import type { StoreStats } from '../../engine/core/api-types.ts'
import { limits } from '../../engine/core/limits.ts'
import type { Durability } from '../../engine/core/options.ts'
import { warcFileName, type Counters, type PreviousFetch, type QueuedUrl, type UrlState } from '../../engine/core/types.ts'
import { hostHashOf } from '../../engine/core/url-key.ts'
import type { KnownTable } from '../known.ts'
import type { QueryGrowth } from '../query-growth.ts'
import { cutFile, cutSinkFiles, fileNumbers, sinkFilesIn } from '../sinks/files.ts'
import { JsonlSink } from '../sinks/jsonl.ts'
import type { AgainUrl, CheckReport, Claim, CommitBatch, CommitResult, HostRecord, PageRow, Store } from '../store.ts'
import { countsDomains, noCaps, noLinkRules, type LinkCaps, type LinkRules, type ScopeMode } from './admission.ts'
import { hostRows, pageRows, queueRows } from './browse.ts'
import { checkTables } from './check.ts'
import { Arena, decodeJson, decodePageRow, decodeState, encodeJson } from './codec.ts'
import { syncCommitted, writeClean, writePlan, type CommitPlaces } from './commit.ts'
import { removeUnfinishedCopy } from './compact.ts'
import { Cursors } from './cursors.ts'
import { countedDomains } from './domains.ts'
import { holdsData, openEnvironment, type Tables, type Write } from './environment.ts'
import { dueUrls, nextDueAtMs } from './due.ts'
import { findHostKey, hostNameAt, hostOfRow, readHost } from './hosts.ts'
import { after, hostKeyOf, seenKey } from './layout.ts'
import { Plan } from './plan.ts'
import { previousFetch } from './previous-fetch.ts'
import { claim, type ClaimOptions } from './queue.ts'
import { decodeQueueRow } from './queue-row.ts'
import { checkVersion, freshRows, metaKeys, readLengths, readState, stateRow, type StoredState } from './state.ts'
import { Syncer } from './syncer.ts'

export interface OpenOptions {
  /** Another hash of host names, for tests of colliding ones. 8 bytes. */
  readonly hostHash?: (name: string) => Uint8Array
  /** Spares look-ups, and learns what each commit proved. */
  readonly known?: KnownTable
  /** Learns which paths get URLs with a query from links; absent: such links have no bound. */
  readonly queries?: QueryGrowth
  /** Looks only: nothing is written, cut or marked, and the directory's owner may be at work. Throws `no_crawl`. */
  readonly readOnly?: boolean
  /** Changes something and goes, as commands do: whether the last crawl had stopped cleanly is still known afterwards. */
  readonly isVisit?: boolean
  readonly jsonlFileBytesMax?: number
  /** Of this opening; a store may be opened with another each time. `commit` by default. */
  readonly durability?: Durability
  readonly clock?: Clock
}

/**
 * Opens the store of a crawl directory, made when there is none. Throws `dir_unusable`, `store_version`,
 * `store_corrupt`. Whoever opens for writing holds the directory's lock (storage/control.ts).
 */
export async function openStore(dir: string, options: OpenOptions = {}): Promise<LmdbStore> {
  const { durability = 'commit', readOnly = false } = options
  refuseStrangers(dir)
  const environment = openEnvironment(path.join(dir, 'store'), { readOnly, noSync: durability !== 'commit' }, checkVersion)
  if (environment === undefined) throw new SluiceError('no_crawl', `${dir} holds no crawl`)
  try {
    const { meta } = environment.tables
    const isFresh = meta.get(metaKeys.layout) === undefined
    // Whoever made the store died, or is still at it, before its first rows.
    if (isFresh && readOnly) throw new SluiceError('no_crawl', `${dir} holds no crawl yet`)
    if (isFresh) await environment.write(freshRows())
    const state = readState(meta)
    const lengths = readLengths(meta)
    if (!readOnly) {
      cutSinkFiles(dir, lengths)
      removeUnfinishedCopy(path.join(dir, 'store'))
      await environment.write([stateRow({ ...state, clean: false })])
    }
    const syncsCommits = durability === 'commit'
    const jsonl = new JsonlSink(dir, lengths, { fileBytesMax: options.jsonlFileBytesMax, syncs: syncsCommits })
    const syncer = new Syncer({ durability, clock: options.clock ?? systemClock, sync: (files) => syncCommitted(dir, environment, files) })
    return new LmdbStore({ dir, environment, jsonl, lengths, syncer, syncsCommits }, state, options)
  } catch (error) {
    await environment.close()
    throw error
  }
}

/** A new store would delete the results of a crawl whose store is gone: they have no committed length. */
function refuseStrangers(dir: string): void {
  try {
    if (!fs.existsSync(dir) || holdsData(path.join(dir, 'store'))) return
    const [file] = sinkFilesIn(dir)
    if (file === undefined) return
    throw new SluiceError('dir_unusable', `${dir} holds ${file} and no store: move the files of the old crawl away`)
  } catch (error) {
    throw error instanceof SluiceError ? error : new SluiceError('dir_unusable', `${dir} cannot be read: ${String(error)}`, { cause: error })
  }
}

export class LmdbStore implements Store {
  readonly crawlId: string
  readonly openedUnclean: boolean
  readonly warcFileFirst: number

  readonly #places: CommitPlaces
  readonly #tables: Tables
  readonly #hashOf: (name: string) => Uint8Array
  readonly #known: KnownTable | undefined
  readonly #queries: QueryGrowth | undefined
  readonly #readOnly: boolean
  readonly #isVisit: boolean
  readonly #cursors = new Cursors()
  #state: StoredState
  #scope: { mode: ScopeMode; domainOf: (host: string) => string } = { mode: 'any', domainOf: (host) => host }
  #twinOf: ((host: string) => string | undefined) | undefined
  #caps = noCaps
  #linkRules = noLinkRules
  #storeBytesMax = Number.POSITIVE_INFINITY
  #isLeased: (host: string, sequence: number) => boolean = () => false
  /** Sequences that the commit under way drops from full queues: their rows are there until it ends, and nobody may claim them. */
  #evicted: readonly number[] = []
  readonly #stats = { commits: 0, rowsWritten: 0, linksKnown: 0, linksLookedUp: 0, linksNew: 0 }
  #committing: Promise<unknown> | undefined
  #closed: Promise<void> | undefined

  constructor(places: CommitPlaces, state: StoredState, options: OpenOptions) {
    this.#places = places
    this.#tables = places.environment.tables
    this.#state = state
    this.#hashOf = options.hostHash ?? hostHashOf
    this.#known = options.known
    this.#queries = options.queries
    this.#readOnly = options.readOnly ?? false
    this.#isVisit = options.isVisit ?? false
    this.crawlId = Buffer.from(this.#tables.meta.get(metaKeys.crawlId)!).toString()
    this.openedUnclean = !state.clean
    this.warcFileFirst = Math.max(0, ...fileNumbers(places.lengths.keys(), 'warc')) + 1
  }

  counters(): Counters {
    return this.#state.counters
  }

  options(): Readonly<Record<string, unknown>> {
    return decodeJson(this.#tables.meta.get(metaKeys.options)!)
  }

  async saveOptions(options: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#places.environment.write([{ table: 'meta', key: metaKeys.options, value: encodeJson(new Arena(), options) }])
  }

  host(name: string): HostRecord | undefined {
    return readHost(this.#tables, this.#hostKey(name))
  }

  hostsWithWork(cursor: Uint8Array | undefined, limit: number): { readonly hosts: readonly HostRecord[]; readonly cursor?: Uint8Array } {
    const hosts: HostRecord[] = []
    let last: Uint8Array | undefined
    for (const { key, value } of this.#tables.ready.entries({ limit, ...(cursor === undefined ? {} : { start: after(cursor) }) })) {
      const row = this.#tables.hosts.get(key)
      if (row === undefined) throw new SluiceError('store_corrupt', 'a host that has rows in the queue has no record')
      hosts.push(hostOfRow(row, value))
      last = new Uint8Array(key)
    }
    return last === undefined || hosts.length < limit ? { hosts } : { hosts, cursor: last }
  }

  * scope(): Iterable<string> {
    for (const key of this.#tables.scope.keys()) yield Buffer.from(key).toString()
  }

  committedLengths(): ReadonlyMap<string, number> {
    return new Map(this.#places.lengths)
  }

  /** What becomes of links, from the next commit on. The exact names are those of the scope table; `any` asks for none. */
  setScope(mode: ScopeMode, domainOf: (host: string) => string): void {
    this.#scope = { mode, domainOf }
  }

  /** The other name under whose host a URL may be stored already, from the next commit on; none unless it is called. */
  setTwins(twinOf: (host: string) => string | undefined): void {
    this.#twinOf = twinOf
  }

  /** How much of one kind is taken from links, from the next commit on. Counts what must be counted for it. */
  async setCaps(caps: Partial<LinkCaps>, storeBytesMax = Number.POSITIVE_INFINITY): Promise<void> {
    const complete = { ...noCaps, ...caps }
    await this.#countDomains(countsDomains(complete))
    this.#caps = complete
    this.#storeBytesMax = storeBytesMax
  }

  /** From the next commit on; what is not given is as before. */
  setLinkRules(rules: Partial<LinkRules>): void {
    this.#linkRules = { ...this.#linkRules, ...rules }
  }

  /** Tells which URLs of a host are in somebody's hands: those are not dropped to make room for better ones. */
  setLeases(isLeased: (host: string, sequence: number) => boolean): void {
    this.#isLeased = isLeased
  }

  /**
   * The caller keeps a URL in `leased` from its claim until the commit that ends or defers it has resolved, or until it
   * gives the URL back by leaving it out.
   */
  claim(host: string, options: ClaimOptions): Claim {
    const reader = { queue: this.#tables.queue, previousOf: (url: QueuedUrl) => this.#previousOf(url) }
    const leased = this.#evicted.length === 0 ? options.leased : new Set([...options.leased, ...this.#evicted])
    return claim(reader, this.#cursors, { name: host, key: this.#hostKey(host) }, { ...options, leased })
  }

  async commit(batch: CommitBatch): Promise<CommitResult> {
    invariant(this.#committing === undefined, 'one commit at a time')
    invariant(this.#closed === undefined, 'a closed store is not written')
    if (this.#places.environment.failure !== undefined) throw this.#places.environment.failure
    const running = this.#commit(batch)
    this.#committing = running
    try {
      return await running
    } finally {
      this.#committing = undefined
    }
  }

  async #commit(batch: CommitBatch): Promise<CommitResult> {
    const { counters, sequence, commitNumber } = this.#state
    const plan = new Plan({
      tables: this.#tables, hashOf: this.#hashOf, scope: this.#scope, twinOf: this.#twinOf, known: this.#known, caps: this.#caps, linkRules: this.#linkRules,
      isStoreFull: this.#isStoreFull(), isLeased: this.#isLeased, queries: this.#queries, counters, sequence,
      commitNumber: commitNumber + 1,
    }, batch)
    const { admission, queue } = plan
    this.#evicted = queue.evicted
    try {
      this.#state = await writePlan(plan, batch, this.#places, commitNumber + 1)
    } finally {
      this.#evicted = []
    }
    for (const { hostKey, sequence } of queue.left) this.#cursors.left(hostKey, sequence)
    for (const row of queue.entered) this.#cursors.entered(hostKeyOf(row), row)
    for (const fingerprint of admission.proven) this.#known?.add(fingerprint)
    for (const { path, urls } of admission.queryPaths) this.#queries?.add(path, urls)
    this.#stats.commits += 1
    this.#stats.rowsWritten += plan.writes.length
    for (const name of ['linksKnown', 'linksLookedUp', 'linksNew'] as const) this.#stats[name] += admission[name]
    return { commitNumber: commitNumber + 1, shed: plan.shed, hostsGrown: plan.hostsGrown, addedNew: plan.addedNew, again: plan.again, newLinks: plan.newLinks }
  }

  async flushed(): Promise<void> {
    await this.#committing
    await this.#places.syncer.flush()
    if (this.#places.environment.failure !== undefined) throw this.#places.environment.failure
  }

  async cutWarc(file: number, length: number): Promise<void> {
    const name = warcFileName(file)
    invariant(length >= (this.#places.lengths.get(name) ?? 0), 'a committed page is never cut off')
    const whole = path.join(this.#places.dir, name)
    if (length === 0) await fs.promises.rm(whole, { force: true })
    else cutFile(whole, length)
  }

  /** State of a URL, undefined when it was never discovered. */
  state(host: string, fingerprint: Uint8Array): UrlState | undefined {
    const row = this.#tables.seen.get(seenKey(this.#hashOf(host), fingerprint))
    return row === undefined ? undefined : decodeState(row)
  }

  page(host: string, fingerprint: Uint8Array): PageRow | undefined {
    const row = this.#tables.pages.get(seenKey(this.#hashOf(host), fingerprint))
    return row === undefined ? undefined : decodePageRow(row)
  }

  queued(row: Uint8Array, sequence: number): QueuedUrl | undefined {
    const value = this.#tables.queue.get(row)
    const name = value === undefined ? undefined : hostNameAt(this.#tables, hostKeyOf(row))
    if (value === undefined || name === undefined) return undefined
    const [found] = decodeQueueRow(row, value, name, { limit: 1, wants: (candidate) => candidate === sequence })
    const previous = found?.isAgain === true ? this.#previousOf(found.url) : undefined
    return found === undefined ? undefined : { ...found.url, ...(previous && { previous }) }
  }

  due(nowMs: number, limit: number): readonly AgainUrl[] {
    return dueUrls(this.#tables, nowMs, limit)
  }

  nextDueAtMs(): number | undefined {
    return nextDueAtMs(this.#tables)
  }

  queueRows(cursor: Uint8Array | undefined, limit: number): ReturnType<Store['queueRows']> {
    return queueRows(this.#tables, cursor, limit)
  }

  pageRows(cursor: Uint8Array | undefined, limit: number): ReturnType<Store['pageRows']> {
    return pageRows(this.#tables, cursor, limit)
  }

  hostRows(cursor: Uint8Array | undefined, limit: number): ReturnType<Store['hostRows']> {
    return hostRows(this.#tables, cursor, limit)
  }

  get nextSequence(): number {
    return this.#state.sequence
  }

  get commitNumber(): number {
    return this.#state.commitNumber
  }

  stats(): StoreStats {
    return { ...this.#stats, bytesUsed: this.#places.environment.bytesUsed(), fileBytes: this.#places.environment.fileBytes() }
  }

  /** Reads every row, corrects the counters that do not agree with them, and reports the rest. */
  async check(): Promise<CheckReport> {
    const { counters, writes, ...report } = orDamage(() => checkTables({ tables: this.#tables, counters: this.counters(), hashOf: this.#hashOf, domainOf: this.#scope.domainOf }))
    if (!this.#readOnly && report.mended.length > 0) {
      this.#state = { ...this.#state, counters }
      await this.#places.environment.write([...writes, stateRow(this.#state)])
    }
    return report
  }

  #isStoreFull(): boolean {
    const max = this.#storeBytesMax
    return max < Number.POSITIVE_INFINITY && this.#places.environment.bytesUsed() >= limits.storeLinksShareMax * max
  }

  /** Makes the counts of domains for a queue that was not counted, or marks them as out of date. */
  async #countDomains(isWanted: boolean): Promise<void> {
    if (isWanted === this.#tables.meta.has(metaKeys.domains)) return
    const mark: Write = { table: 'meta', key: metaKeys.domains, ...(isWanted && { value: new Uint8Array(0) }) }
    await this.#places.environment.write([mark, ...(isWanted ? countedDomains(this.#tables, this.#scope.domainOf) : [])])
  }

  #previousOf({ host, fingerprint }: QueuedUrl): PreviousFetch | undefined {
    return previousFetch(this.#tables, seenKey(this.#hashOf(host), fingerprint))
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#committing?.catch(() => {
      // Whoever asked for that commit was told; closing goes on without the clean flag.
    })
    const { environment, jsonl, syncer } = this.#places
    syncer.stop()
    try {
      await jsonl.close()
      if (!this.#readOnly && environment.failure === undefined) await writeClean(this.#places, { ...this.#state, clean: !(this.#isVisit && this.openedUnclean) })
    } finally {
      await environment.close()
    }
  }

  #hostKey(name: string): Uint8Array {
    return findHostKey(this.#hashOf(name), name, (key) => hostNameAt(this.#tables, key))
  }
}

/**
 * The frontier on LMDB: opening, reading, and the turn of a commit. It lives in `<dir>/store/`; the sink files lie in
 * `<dir>`. Main thread. Invariant: what is in memory here (counters, sequence, committed lengths) is what the last
 * transaction holds, and changes only after it; everything else is read from the tables.
 *
 *   meta table   'layout' -> version (4)    'crawl' -> crawl id    'options' -> JSON    'sink:' name -> length (8)
 *                'state'  -> counters, next sequence, number of the last commit, clean flag, as JSON
 *
 * Opening reads a handful of rows and a list of sink files, whatever the queue holds. Commits resolve when they are on
 * the disk, sink files included, so `flushed` has nothing to add but waiting for the one that is under way.
 */
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { SluiceError, invariant } from '../../engine/core/errors.ts'
import { refusalReasons, warcFileName, type Counters, type RefusalReason, type UrlState } from '../../engine/core/types.ts'
import { hostHashOf } from '../../engine/core/url-key.ts'
import type { KnownTable } from '../known.ts'
import type { QueryGrowth } from '../query-growth.ts'
import { cutFile, cutSinkFiles, fileNumbers, sinkFilesIn } from '../sinks/files.ts'
import { JsonlSink } from '../sinks/jsonl.ts'
import type { Claim, CommitBatch, CommitResult, HostRecord, PageRow, Store } from '../store.ts'
import { checkTables } from './check.ts'
import { Arena, decodeCount, decodeJson, decodePageRow, decodeState, encodeCount, encodeJson } from './codec.ts'
import { SINK_PREFIX, metaKeys, writePlan, type CommitPlaces, type StoredState } from './commit.ts'
import { Cursors } from './cursors.ts'
import { holdsData, openEnvironment, type Environment, type Table, type Tables } from './environment.ts'
import { findHostKey, hostNameAt, readHost } from './hosts.ts'
import { LAYOUT_VERSION, after, getNumber, hostKeyOf, isReadyRow, seenKey, sequenceOf } from './layout.ts'
import { Plan, type LinkCaps, type ScopeMode } from './plan.ts'
import { claim, type ClaimOptions } from './queue.ts'

export interface OpenOptions {
  /** Another hash of host names, for tests of colliding ones. 8 bytes. */
  readonly hostHash?: (name: string) => Uint8Array
  /** Spares look-ups, and learns what each commit proved. */
  readonly known?: KnownTable
  /** Learns which paths get URLs with a query from links; absent: such links have no bound. */
  readonly queries?: QueryGrowth
  /** Looks only: nothing is written, cut or marked, and the directory's owner may be at work. Throws `no_crawl`. */
  readonly readOnly?: boolean
  readonly jsonlFileBytesMax?: number
}

/**
 * Opens the store of a crawl directory, made when there is none. Throws `dir_unusable`, `store_version`,
 * `store_corrupt`. Whoever opens for writing holds the directory's lock (storage/control.ts).
 */
export async function openStore(dir: string, options: OpenOptions = {}): Promise<LmdbStore> {
  const readOnly = options.readOnly ?? false
  refuseStrangers(dir)
  const environment = openEnvironment(path.join(dir, 'store'), readOnly, checkVersion)
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
      await environment.write([stateRow({ ...state, clean: false })])
    }
    return new LmdbStore({ dir, environment, jsonl: new JsonlSink(dir, lengths, options.jsonlFileBytesMax), lengths }, state, options)
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

function checkVersion(meta: Table): void {
  const row = meta.get(metaKeys.layout)
  if (row === undefined || decodeCount(row) === LAYOUT_VERSION) return
  throw new SluiceError('store_version', `the store has layout version ${decodeCount(row)}, this program knows version ${LAYOUT_VERSION}`)
}

const noRefusals = Object.fromEntries(refusalReasons.map((reason) => [reason, 0])) as Record<RefusalReason, number>
const noCounters: Counters = {
  discovered: 0, pending: 0, done: 0, failed: 0, dropped: 0, excluded: 0, pages: 0, wireBytes: 0, bodyBytes: 0, retries: 0,
  nearDuplicates: 0, refused: noRefusals,
}

/** A counter or a reason that came later than the store is missing there, and is 0. */
function readState(meta: Table): StoredState {
  const state = decodeJson(meta.get(metaKeys.state)!) as unknown as StoredState
  const { refused, ...counters } = state.counters
  return { ...state, counters: { ...noCounters, ...counters, refused: { ...noRefusals, ...refused } } }
}

function freshRows(): Parameters<Environment['write']>[0] {
  return [
    { table: 'meta', key: metaKeys.layout, value: encodeCount(new Arena(), LAYOUT_VERSION) },
    { table: 'meta', key: metaKeys.crawlId, value: Buffer.from(crypto.randomUUID()) },
    { table: 'meta', key: metaKeys.options, value: encodeJson(new Arena(), {}) },
    stateRow({ counters: noCounters, sequence: 1, commitNumber: 0, clean: true }),
  ]
}

function stateRow(state: StoredState): { table: 'meta'; key: Uint8Array; value: Uint8Array } {
  return { table: 'meta', key: metaKeys.state, value: encodeJson(new Arena(), state) }
}

function readLengths(meta: Table): Map<string, number> {
  const lengths = new Map<string, number>()
  const range = { start: Buffer.from(SINK_PREFIX), end: Buffer.from(`${SINK_PREFIX}\u{7f}`) }
  for (const { key, value } of meta.entries(range)) {
    lengths.set(Buffer.from(key).toString().slice(SINK_PREFIX.length), getNumber(value, 0))
  }
  return lengths
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
  readonly #cursors = new Cursors()
  #state: StoredState
  #scope: { mode: ScopeMode; domainOf: (host: string) => string } = { mode: 'any', domainOf: (host) => host }
  #twinOf: ((host: string) => string | undefined) | undefined
  #caps: LinkCaps = { queuedPerHostMax: Number.POSITIVE_INFINITY, queriesPerPathMax: Number.POSITIVE_INFINITY }
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
    for (const key of this.#tables.ready.keys({ limit, ...(cursor === undefined ? {} : { start: after(cursor) }) })) {
      const host = readHost(this.#tables, key)
      if (host === undefined) throw new SluiceError('store_corrupt', 'a host that has rows in the queue has no record')
      hosts.push(host)
      last = key
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

  /** How much of one kind is taken from links, from the next commit on. */
  setCaps(caps: LinkCaps): void {
    this.#caps = caps
  }

  /**
   * The caller keeps a URL in `leased` from its claim until the commit that ends or defers it has resolved, or until it
   * gives the URL back by leaving it out.
   */
  claim(host: string, options: ClaimOptions): Claim {
    return claim(this.#tables.queue, this.#cursors, { name: host, key: this.#hostKey(host) }, options)
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
      tables: this.#tables, hashOf: this.#hashOf, scope: this.#scope, twinOf: this.#twinOf, known: this.#known, caps: this.#caps,
      queries: this.#queries, counters, sequence,
    }, batch)
    this.#state = await writePlan(plan, batch, this.#places, commitNumber + 1)
    for (const row of plan.left) if (isReadyRow(row)) this.#cursors.left(hostKeyOf(row), sequenceOf(row))
    for (const row of plan.entered) this.#cursors.entered(hostKeyOf(row), row)
    for (const fingerprint of plan.proven) this.#known?.add(fingerprint)
    for (const { path, urls } of plan.queryPaths) this.#queries?.add(path, urls)
    return {
      commitNumber: commitNumber + 1, hostsGrown: plan.hostsGrown(), addedNew: plan.addedNew, newLinks: plan.newLinks,
    }
  }

  async flushed(): Promise<void> {
    await this.#committing
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

  /** Reads every row and answers what is wrong, one line each; empty when all is well. */
  check(): readonly string[] {
    return checkTables(this.#tables, this.counters())
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#committing?.catch(() => {
      // Whoever asked for that commit was told; closing goes on without the clean flag.
    })
    const { environment, jsonl } = this.#places
    try {
      await jsonl.close()
      if (!this.#readOnly && environment.failure === undefined) await environment.write([stateRow({ ...this.#state, clean: true })])
    } finally {
      await environment.close()
    }
  }

  #hostKey(name: string): Uint8Array {
    return findHostKey(this.#hashOf(name), name, (key) => hostNameAt(this.#tables, key))
  }
}

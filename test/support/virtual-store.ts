/**
 * A store in memory that obeys the contract of `storage/store.ts` as far as a crawl asks: one commit at a time, which takes
 * virtual time, stalls or finds no room; a row leaves the queue only with its outcome. It refuses what breaks the contract: a
 * second outcome of a URL, two commits at once.
 *
 * A host may be endless: its URLs are a function of their number, and get a row when they are claimed. Those are counted
 * as pending from the beginning.
 */
import type { StoreStats } from '../../engine/core/api-types.ts'
import type { Clock } from '../../engine/core/clock.ts'
import { invariant, SluiceError } from '../../engine/core/errors.ts'
import { noCounters, stateOfOutcome, type Counters, type Outcome, type QueuedUrl } from '../../engine/core/types.ts'
import type { Claim, CommitBatch, CommitResult, EndedUrl, HostRecord, HostUpdate, Store } from '../../storage/store.ts'

type Row = QueuedUrl & { readonly notBeforeMs?: number }

interface HostRows {
  readonly name: string
  /** Claimable, by priority and then by arrival. */
  readonly due: Map<number, Map<number, Row>>
  readonly deferred: Map<number, Row>
  /** URLs that have no row yet. */
  unmade: number
  made: number
  pending: number
  record: Partial<HostRecord>
}

export interface VirtualStoreOptions {
  readonly clock: Clock
  /** How long a commit takes; default 2 ms. */
  readonly commitMs?: (batch: CommitBatch, nowMs: number) => number
  /** The disk has no room for a commit; default: it has. */
  readonly isFull?: (nowMs: number) => boolean
}

/** Hosts with new rows, and the best priority among those. */
type Grown = Map<string, number>

const noBytes = new Uint8Array(16)

export class VirtualStore implements Store {
  readonly #is: VirtualStoreOptions
  readonly #hosts = new Map<string, HostRows>()
  /** Every URL that was discovered, and its outcome. */
  readonly outcomes = new Map<string, Outcome | 'pending'>()
  readonly codes = new Map<string, number>()
  #counters = { ...noCounters }
  #sequence = 0
  #commits = 0
  #isCommitting = false
  readonly crawlId = 'virtual'
  readonly openedUnclean = false
  readonly warcFileFirst = 0

  constructor(options: VirtualStoreOptions) {
    this.#is = options
  }

  /** Adds URLs, as seeds would be; answers how many were new. */
  add(urls: Iterable<string>, priority = 0): number {
    const before = this.#counters.discovered
    for (const url of urls) this.#admit(url, { depth: 0, priority })
    return this.#counters.discovered - before
  }

  /** A host with so many URLs, `http://HOST/0` and on. */
  addMany(host: string, count: number): void {
    const rows = this.#rowsOf(host)
    rows.unmade += count
    rows.pending += count
    this.#counters.discovered += count
    this.#counters.pending += count
  }

  counters(): Counters {
    return this.#counters
  }

  options(): Readonly<Record<string, unknown>> {
    return {}
  }

  async saveOptions(): Promise<void> {}

  host(name: string): HostRecord | undefined {
    const rows = this.#hosts.get(name)
    return rows === undefined ? undefined : { ...rows.record, name, pending: rows.pending }
  }

  hostsWithWork(cursor: Uint8Array | undefined, limit: number): { readonly hosts: readonly HostRecord[]; readonly cursor?: Uint8Array } {
    const from = cursor === undefined ? 0 : Buffer.from(cursor).readUInt32BE()
    // Hosts are never forgotten, so that their order of arrival is a key.
    const all = [...this.#hosts.values()]
    const hosts: HostRecord[] = []
    let at = from
    for (; at < all.length && hosts.length < limit; at++) if (all[at]!.pending > 0) hosts.push(this.host(all[at]!.name)!)
    if (at >= all.length) return { hosts }
    const next = Buffer.alloc(4)
    next.writeUInt32BE(at)
    return { hosts, cursor: next }
  }

  * scope(): Iterable<string> {}

  committedLengths(): ReadonlyMap<string, number> {
    return new Map()
  }

  claim(host: string, { limit, nowMs, leased }: { limit: number; nowMs: number; leased: ReadonlySet<number> }): Claim {
    const rows = this.#hosts.get(host)
    if (rows === undefined) return { urls: [] }
    let nextDueAtMs = Number.POSITIVE_INFINITY
    for (const row of rows.deferred.values()) {
      if (row.notBeforeMs! <= nowMs) this.#put(rows, { ...row, notBeforeMs: 0 })
      else nextDueAtMs = Math.min(nextDueAtMs, row.notBeforeMs!)
    }
    const urls: QueuedUrl[] = []
    for (const priority of [...rows.due.keys()].sort((a, b) => a - b)) {
      for (const row of rows.due.get(priority)!.values()) {
        if (urls.length === limit) break
        if (!leased.has(row.sequence)) urls.push(row)
      }
    }
    while (urls.length < limit && rows.unmade > 0) urls.push(this.#make(rows))
    return nextDueAtMs === Number.POSITIVE_INFINITY ? { urls } : { urls, nextDueAtMs }
  }

  queued(): QueuedUrl | undefined {
    return undefined
  }

  due(): readonly [] {
    return []
  }

  nextDueAtMs(): undefined {
    return undefined
  }

  queueRows(): { rows: [] } {
    return { rows: [] }
  }

  pageRows(): { rows: [] } {
    return { rows: [] }
  }

  hostRows(): { rows: [] } {
    return { rows: [] }
  }

  get nextSequence(): number {
    return this.#sequence
  }

  get commitNumber(): number {
    return this.#commits
  }

  stats(): StoreStats {
    return { commits: this.#commits, rowsWritten: 0, linksKnown: 0, linksLookedUp: 0, linksNew: 0, bytesUsed: 0, fileBytes: 0 }
  }

  async commit(batch: CommitBatch): Promise<CommitResult> {
    const { clock, commitMs, isFull } = this.#is
    invariant(!this.#isCommitting, 'one commit at a time')
    this.#isCommitting = true
    await new Promise<void>((resolve) => { clock.after(commitMs?.(batch, clock.nowMs()) ?? 2, resolve) })
    this.#isCommitting = false
    if (isFull?.(clock.nowMs()) === true) throw new SluiceError('disk_full', 'the disk is full')
    return this.#apply(batch)
  }

  async flushed(): Promise<void> {}
  async cutWarc(): Promise<void> {}
  async close(): Promise<void> {}

  #apply(batch: CommitBatch): CommitResult {
    const grown: Grown = new Map()
    const newLinks = batch.ended.map((ended) => this.#end(ended, grown))
    for (const { url, attempts, notBeforeMs, retry } of batch.deferred) {
      const rows = this.#remove(url)
      const { isLater: _isLater, ...rest } = url
      rows.deferred.set(url.sequence, { ...rest, attempts, notBeforeMs })
      rows.pending += 1
      if (retry) this.#counters.retries += 1
    }
    const addedNew = batch.added.map(({ url, depth, priority }) => this.#admit(url, { depth, priority }, grown))
    for (const { name, pending: _pending, ...facts } of batch.hosts as readonly HostUpdate[]) Object.assign(this.#rowsOf(name).record, facts)
    this.#commits += 1
    return { commitNumber: this.#commits, shed: [], hostsGrown: [...grown].map(([name, best]) => ({ name, priority: best })), addedNew, again: batch.again.map(() => false), newLinks }
  }

  #end({ url, outcome, code, links, wireBytes, bodyBytes }: EndedUrl, grown: Grown): number {
    invariant(this.outcomes.get(url.url) === 'pending', `one outcome for ${url.url}, which has ${this.outcomes.get(url.url)}`)
    this.#remove(url)
    this.outcomes.set(url.url, outcome)
    const state = stateOfOutcome[outcome]
    const counters = this.#counters
    counters.pending -= 1
    counters[state] += 1
    if (state === 'done') {
      counters.pages += 1
      counters.wireBytes += wireBytes
      counters.bodyBytes += bodyBytes
    }
    if (code !== undefined) this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
    let fresh = 0
    for (let at = 0; at < links.count; at++) fresh += this.#admit(links.url(at), { depth: url.depth + 1, priority: Math.min(255, url.depth + 1) }, grown) ? 1 : 0
    return fresh
  }

  #admit(url: string, { depth, priority }: { depth: number; priority: number }, grown?: Grown): boolean {
    if (this.outcomes.has(url)) return false
    const rows = this.#rowsOf(new URL(url).hostname)
    this.outcomes.set(url, 'pending')
    this.#put(rows, { row: noBytes, fingerprint: noBytes, host: rows.name, sequence: this.#sequence++, url, depth, priority, attempts: 0 })
    rows.pending += 1
    this.#counters.discovered += 1
    this.#counters.pending += 1
    grown?.set(rows.name, Math.min(priority, grown.get(rows.name) ?? priority))
    return true
  }

  #make(rows: HostRows): Row {
    const url = `http://${rows.name}/${rows.made++}`
    rows.unmade -= 1
    this.outcomes.set(url, 'pending')
    const row: Row = { row: noBytes, fingerprint: noBytes, host: rows.name, sequence: this.#sequence++, url, depth: 0, priority: 0, attempts: 0 }
    this.#put(rows, row)
    return row
  }

  #put(rows: HostRows, row: Row): void {
    rows.deferred.delete(row.sequence)
    const ofPriority = rows.due.get(row.priority) ?? new Map<number, Row>()
    rows.due.set(row.priority, ofPriority.set(row.sequence, row))
  }

  #remove({ host, priority, sequence, url }: QueuedUrl): HostRows {
    const rows = this.#rowsOf(host)
    const isThere = rows.due.get(priority)?.delete(sequence) === true || rows.deferred.delete(sequence)
    invariant(isThere, `the row of ${url} is in the queue`)
    rows.pending -= 1
    return rows
  }

  #rowsOf(name: string): HostRows {
    let rows = this.#hosts.get(name)
    if (rows === undefined) this.#hosts.set(name, rows = { name, due: new Map(), deferred: new Map(), unmade: 0, made: 0, pending: 0, record: {} })
    return rows
  }
}

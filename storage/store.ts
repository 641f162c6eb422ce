/**
 * The contract of the frontier: what the engine may ask of the place that lasts. One implementation lives in
 * `storage/lmdb/`; `test/contract/store.ts` runs against every implementation. Main thread.
 *
 * The lease, in prose. `claim` reads URLs of a host and leaves their rows where they are: that a URL is being fetched
 * is known to the process alone. A row leaves the queue only in the commit that stores the URL's outcome and its
 * links. So a process that dies at any moment loses no URL and repeats at most those in flight, and the next start
 * can claim them at once, because there is no lock on disk to wait for.
 *
 * One commit at a time: `commit` may be called again only when the last one has resolved, so that everything it reads
 * is what the last one wrote, and dedupe is exact without conditional writes.
 */
import type { StoreStats } from '../engine/core/api-types.ts'
import type { Counters, FullReason, LinkList, NewUrl, Outcome, PreviousFetch, QueuedUrl, RefusalReason } from '../engine/core/types.ts'

/** A URL that has its outcome. */
export interface EndedUrl {
  readonly url: QueuedUrl
  readonly outcome: Outcome
  readonly code?: string
  /** Wall clock: when its request was sent, or when it was ended without one. */
  readonly atMs: number
  /** What the server answered; absent when none did. */
  readonly page?: PageAnswer
  /** When it is to be fetched again, by the recrawl policy; absent: never. */
  readonly due?: { readonly atMs: number; readonly intervalMs: number }
  /** With outcome `ok` and a body that is the same as before. */
  readonly isUnchanged?: true
  /** The cookie jar took something from the answer. */
  readonly setsCookie?: true
  /** Enter the frontier with the depth of `url` plus one and that depth as priority; a redirect keeps depth and priority and gets the chain. */
  readonly links: LinkList
  readonly refused?: Readonly<Partial<Record<RefusalReason, number>>>
  /** The page record as UTF-8 JSON without its closing brace. The commit adds `newLinks` (when there were links) and closes it. */
  readonly line: Uint8Array
  readonly wireBytes: number
  readonly bodyBytes: number
  /** Counts as one in the sums. */
  readonly isNearDuplicate?: true
}

/** What a server answered, as far as it is remembered for the next time. */
export type PageAnswer = Omit<PreviousFetch, 'fetchedAtMs' | 'intervalMs'>

/** What is remembered of an ended URL, under its fingerprint. Its status is 0 when no server answered. */
export interface PageRow extends PageAnswer {
  readonly url: string
  readonly kind?: 'sitemap'
  readonly outcome: Outcome
  readonly code?: string
  readonly fetchedAtMs: number
  readonly depth: number
  readonly priority: number
  readonly due?: { readonly atMs: number; readonly intervalMs: number }
}

/** An ended URL that is to be tried again: because it fell due, or because somebody asked for it. */
export interface AgainUrl {
  readonly host: string
  readonly fingerprint: Uint8Array
}

/** A URL that goes back to its host's queue: it becomes claimable at `notBeforeMs` (wall clock). */
export interface DeferredUrl {
  readonly url: QueuedUrl
  readonly attempts: number
  readonly notBeforeMs: number
  /** Counts as a retry in the sums. */
  readonly retry: boolean
}

/** What is remembered of a host. Times are wall clock. */
export interface HostRecord {
  readonly name: string
  /** Rows of the host in the queue. Kept by the store; a value given in an update is ignored. */
  readonly pending: number
  readonly excluded?: true
  /** It answered once, if only its robots.txt. */
  readonly answered?: true
  readonly robots?: RobotsVerdict
  readonly limit?: number
  /** What was refused of it, as its limiter knows that (schedule/limiter.ts). */
  readonly limitMemory?: { readonly known?: number | undefined; readonly patience?: number | undefined; readonly paceMs?: number | undefined }
  readonly crawlDelayMs?: number
  /** Ends of its rests: the one that the crawl chose, and the one that the server asked for. */
  readonly backoffUntilMs?: number
  readonly retryAfterUntilMs?: number
  /** Failures of the host in a row, and the code of the last one; given up when it reaches its maximum. */
  readonly failures?: number
  readonly failureCode?: string
  /** 0 to 1. */
  readonly health?: number
  /** It asks for something that we do not have: why, its price, and since when. */
  readonly parked?: { readonly code: string; readonly price?: string; readonly atMs: number }
  /** Why and when it was given up. */
  readonly givenUp?: { readonly code: string; readonly atMs: number }
}

/** What changes in a host's record; a fact that is undefined is forgotten. */
export type HostUpdate = { readonly [Fact in keyof HostRecord]?: HostRecord[Fact] | undefined } & { readonly name: string }

/** One robots.txt verdict, stored with its host under the origin. */
export interface RobotsVerdict {
  /** Origins (scheme and port may differ) to the rules that apply to us there. */
  readonly [origin: string]: {
    readonly rule: 'allow' | 'disallow' | 'rules'
    /** The rules of our group as threads/robots-text.ts orders them, only with rule `rules`. */
    readonly lines?: string
    readonly crawlDelayMs?: number
    /** Its Sitemap lines, resolved, `limits.robotsSitemapsMax` at most. */
    readonly sitemaps?: readonly string[]
    /** Of the answer; absent: there was none. */
    readonly status?: number
    /** With rule `disallow`: why nothing is known. */
    readonly code?: string
    readonly expiresAtMs: number
  }
}

export interface CommitBatch {
  readonly ended: readonly EndedUrl[]
  readonly deferred: readonly DeferredUrl[]
  readonly added: readonly NewUrl[]
  /** Go back to the queue with their depth and priority. Those that are pending, unknown or of an excluded host are passed over. */
  readonly again: readonly AgainUrl[]
  readonly hosts: readonly HostUpdate[]
  /** New names of the scope (hosts or registrable domains of seeds). */
  readonly scope: readonly string[]
  /** WARC files (by number) and the length that holds every page of this batch. */
  readonly warcLengths: ReadonlyMap<number, number>
}

export const emptyBatch: CommitBatch = { ended: [], deferred: [], added: [], again: [], hosts: [], scope: [], warcLengths: new Map() }

/** A URL that had to go, or was not let in, for want of room. */
export interface ShedUrl {
  readonly url: string
  readonly host: string
  readonly priority: number
  readonly depth: number
  /** What was full. */
  readonly reason: FullReason
  /** `dropped`: it was in the queue, and a better one has its place. `refused`: a link that never came in. */
  readonly action: 'dropped' | 'refused'
}

export interface CommitResult {
  readonly commitNumber: number
  /** All URLs that were dropped; and links that were refused, as many as the store was told to report. */
  readonly shed: readonly ShedUrl[]
  /** Hosts that got new rows, among them those that are new, and the best priority among these rows. A deferral moves a row and is not among them. */
  readonly hostsGrown: readonly { readonly name: string; readonly priority: number }[]
  /** For each of `added`: whether it was new, or is tried again. */
  readonly addedNew: readonly boolean[]
  /** For each of `again`: whether it went back to the queue. */
  readonly again: readonly boolean[]
  /** For each of `ended`: how many of its links were new. */
  readonly newLinks: readonly number[]
}

export interface Claim {
  readonly urls: readonly QueuedUrl[]
  /** Wall-clock time of the host's earliest deferred row that is not due; absent when there is none. */
  readonly nextDueAtMs?: number
}

/**
 * A part of a table in key order; `cursor` is absent after the last one. Each part is read at one moment, in at most half
 * a second (it may hold fewer rows than its limit for that), and keeps no page of the file from being used again.
 */
export interface RowsPart<T> {
  readonly rows: readonly T[]
  readonly cursor?: Uint8Array
}

/** What `check` found. */
export interface CheckReport {
  /** Counters that did not agree with the rows; corrected, unless the store was opened for reading. */
  readonly mended: readonly string[]
  /** What cannot be mended, one line each. */
  readonly problems: readonly string[]
  readonly rows: Readonly<Record<string, number>>
}

export interface Store {
  /** Unique for the crawl; made when the directory was new. */
  readonly crawlId: string
  counters(): Counters
  /** The last stop was not a clean close, so the last dispatches are unknown. */
  readonly openedUnclean: boolean
  /** Options kept with the crawl, as the last commit of them stored. */
  options(): Readonly<Record<string, unknown>>
  saveOptions(options: Readonly<Record<string, unknown>>): Promise<void>
  host(name: string): HostRecord | undefined
  /** Hosts that have rows in the queue, in key order from after `cursor`; without their robots verdicts, which may be long. */
  hostsWithWork(cursor: Uint8Array | undefined, limit: number): { readonly hosts: readonly HostRecord[]; readonly cursor?: Uint8Array }
  scope(): Iterable<string>
  /** Each sink file (its name inside the crawl directory) and how many of its bytes the last commit covers. */
  committedLengths(): ReadonlyMap<string, number>
  /**
   * Up to `limit` URLs of the host that are due at `nowMs` (wall) and not in `leased`, best first. `isWithoutDeferred`: none
   * that was deferred, and `nextDueAtMs` is then of the first of those, due or not. Reads only.
   */
  claim(host: string, options: { limit: number; nowMs: number; leased: ReadonlySet<number>; isWithoutDeferred?: boolean }): Claim
  /** The URL of a queue row, as `QueuedUrl.row` and `sequence` name it; undefined when it has left the queue. */
  queued(row: Uint8Array, sequence: number): QueuedUrl | undefined
  /** Ended URLs that are due at `nowMs` (wall), the longest due first; `limit` at most. */
  due(nowMs: number, limit: number): readonly AgainUrl[]
  /** Wall-clock time at which the next ended URL falls due; undefined when none ever does. */
  nextDueAtMs(): number | undefined
  /** Rows of the queue, of ended URLs and of hosts, for those who look at all of them, a part each turn. */
  queueRows(cursor: Uint8Array | undefined, limit: number): RowsPart<QueuedUrl & { readonly notBeforeMs?: number }>
  pageRows(cursor: Uint8Array | undefined, limit: number): RowsPart<AgainUrl & { readonly page: PageRow }>
  /** `since`: the commit that met the host first; absent of rows older than the field. */
  hostRows(cursor: Uint8Array | undefined, limit: number): RowsPart<HostRecord & { readonly since?: number }>
  /** The sequence of the next URL: rows of the queue from it on are later than now. */
  readonly nextSequence: number
  /** Number of the last commit. */
  readonly commitNumber: number
  stats(): StoreStats
  /** Resolves when the batch is visible to reads and its files are written; see `flushed` for durability. */
  commit(batch: CommitBatch): Promise<CommitResult>
  /** Resolves when all that was committed is on the disk. */
  flushed(): Promise<void>
  /** The lowest WARC file number that is free; files above the committed ones were deleted at opening. */
  readonly warcFileFirst: number
  /** Cuts a WARC file that a dead worker left, or a run's unacknowledged pages; nobody may be appending to it. */
  cutWarc(file: number, length: number): Promise<void>
  /** Marks the stop as clean, flushes and closes. Idempotent. */
  close(): Promise<void>
}

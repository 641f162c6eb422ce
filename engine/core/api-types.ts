/** Types of the library's face that are neither records nor options. Leaf module. */
import type { ErrorCode } from './errors.ts'
import type { Durability, RunLimitsGiven } from './options.ts'
import type { Counters, FullReason, Outcome, PageRecord } from './types.ts'

/** Which bound is holding the crawl back; `nothing` while it goes at full speed. */
export type BlockedOn =
  | 'nothing'
  /** The consumer has not acknowledged enough pages. */
  | 'consumer'
  /** Outcomes wait to be stored. */
  | 'commit'
  /** Every slot of the page ring is occupied: the parse workers are the slowest stage. */
  | 'page_ring'
  /** The bytes of bodies in flight are at their budget. */
  | 'body_bytes'
  /** As many requests as allowed are under way: `connections`, or what memory, file descriptors or the loop allow. */
  | 'connections'
  /** The main loop is busy: its utilisation, and not a server, is what fetches wait for. */
  | 'loop'
  /** The process is at its memory budget. */
  | 'memory'
  /** The ceilings of the whole crawl on requests and on bytes a second. */
  | 'rate'
  | 'bandwidth'
  /** Most hosts failed at once: the network here is away, and no host is charged for it. */
  | 'network_down'
  /** All that may start waits for a gateway: for its limit, or for its quota. */
  | 'gateway'
  /** `maxPages` or `maxBytes` is spoken for by what is under way. */
  | 'limit'
  /** Pages that were in hand when the process died are read first, one at a time. */
  | 'suspects'
  /** Every host with work waits for its delay, its limit, its rest or its robots.txt. */
  | 'politeness'
  /** The disk is nearly full: less is free than what is under way may take; or a write found no room. */
  | 'disk'
  /** The store has reached `maxStoreBytes`. */
  | 'store_full'
  | 'paused'
  /** There is no work. */
  | 'idle'

export type CrawlState = 'open' | 'running' | 'draining' | 'closed'

/** One bound and how full it is. */
export interface Bound {
  readonly name: string
  readonly unit: 'items' | 'bytes'
  readonly used: number
  /** What it is now: it may follow a speed, between a least value and `max`. */
  readonly limit: number
  readonly max: number
  /** What the limit comes from, for people. */
  readonly derivedFrom: string
}

/** The stages that a leased URL passes, in this order. */
export type StageName =
  /** Claimed from the frontier, and not started. */
  | 'claimed'
  /** Its fetch is under way. */
  | 'fetch'
  /** Its body is complete and waits for a slot. */
  | 'received'
  /** It lies in a slot, and has no result yet. */
  | 'slots'
  /** It has a result, which lies in its slot. */
  | 'done'
  /** Its page waits for the consumer, or is in its hands. */
  | 'window'
  /** Its outcome waits to be stored. */
  | 'commit'

/** What one stage holds, and how often the crawl waited for it. Counts are of this process. */
export interface StagePressure {
  readonly name: StageName
  /** URLs in it. */
  readonly depth: number
  /** Age of the URL that has been in it longest, milliseconds; 0 when it is empty. */
  readonly oldestMs: number
  /** How often the crawl looked for another fetch and began none because this stage had no room. */
  readonly refused: number
  /** How often that began, and how long it lasted in all. The time goes to one stage, the last one that had no room. */
  readonly blocked: number
  readonly blockedMs: number
}

/** A distribution of durations in milliseconds. The quantiles are upper bounds of buckets, in steps of 1, 2 and 5. */
export interface LatencySummary {
  readonly count: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export interface Pressure {
  readonly stages: readonly StagePressure[]
  /** For how long `blockedOn` has been what it is. */
  readonly blockedForMs: number
  /** Milliseconds that each cause has held in this process, also `nothing` and `idle`; those that never did are absent. */
  readonly blockedMs: Readonly<Partial<Record<BlockedOn, number>>>
  readonly blockedChanges: number
  /** Of each parse worker: the share of the time since the last look in which it was busy, 0 to 1. */
  readonly workerUtilizations: readonly number[]
  readonly latencies: {
    /** How long URLs waited that could have started: their host was ready, and something else held the crawl. */
    readonly queueAge: LatencySummary
    /** From a request to the first byte of its answer. */
    readonly ttfb: LatencySummary
    /** A whole fetch, look-up and connection included, whatever its end. */
    readonly fetch: LatencySummary
    /** A page in the hands of its worker. */
    readonly parse: LatencySummary
    /** From a page's end until its outcome is stored. */
    readonly commit: LatencySummary
  }
}

/** Shares of a host's answers, 0 to 1 each; the newest weighs an eighth, and they halve in ten minutes without an answer. */
export interface HostShares {
  /** Answers to tries after a URL's first. */
  readonly retryShare: number
  readonly throttleShare: number
  readonly timeoutShare: number
  /** Pages that say that we are blocked, and those that ask for a proof, in place of the page. */
  readonly blockShare: number
  readonly challengeShare: number
  /** Every other failure. */
  readonly failureShare: number
  /** Answers upon which its limit was lowered. */
  readonly decreaseShare: number
}

/** How one host stands that has work. */
export interface HostPressure {
  readonly name: string
  /** See `HostStats`. */
  readonly health: number
  /** Milliseconds since one of its URLs was started, or since it could be. */
  readonly idleMs: number
  readonly inFlight: number
  readonly limit: number
  /** What is left of its rest, milliseconds; 0 when it does not rest. */
  readonly waitMs: number
  readonly failures: number
  readonly failureCode?: string
  /** Nothing is asked of it until somebody wants its URLs: why. */
  readonly parked?: string
  /** Absent while all is well. */
  readonly shares?: HostShares
}

/** What went wrong around a crawl and did not stop it. Of this process. */
export interface FlowCounts {
  /** How often the network here was found to be away, and for how long in all, milliseconds. */
  readonly networkDowns: number
  readonly networkDownMs: number
  /** Hosts in memory that rest, or are probed, because their health has sunk too low. */
  readonly hostsUnhealthy: number
  /** How often a host was given up, so that its URLs failed; and parked, because it asks to be paid. */
  readonly hostsGivenUp: number
  readonly hostsParked: number
  /** Answers that were a challenge or a block page in the place of the page. */
  readonly challenged: number
  readonly blocked: number
  readonly shed: ShedStats
  /** With `--gateway`. */
  readonly gateways?: readonly GatewayStats[]
}

/** An immutable snapshot, made when asked for. */
export interface Stats extends Counters, FlowCounts {
  readonly state: CrawlState
  readonly blockedOn: BlockedOn
  /** Of the pending URLs: claimed and without a stored outcome. */
  readonly leased: number
  /** Requests under way. */
  readonly inFlight: number
  /** Hosts with work that are in memory. */
  readonly hosts: number
  /** Tries after the first, and of URLs that their resting host refused, as a share of all fetches of this process, 0 to 1. */
  readonly retryShare: number
  readonly fetches: number
  /** Age of the oldest outcome that is not stored, milliseconds. */
  readonly commitLagMs: number
  /** Share of the time since the last call of `stats()` in which the main loop was busy, 0 to 1. */
  readonly loopUtilization: number
  readonly workersLost: number
  /** Links that workers of this process dropped because the known table proved them to be in the crawl already. */
  readonly linksDroppedKnown: number
  readonly store: StoreStats
  /** Wall clock, when the next ended URL falls due to be fetched again; absent when none does. */
  readonly nextDueAtMs?: number
  readonly durability: Durability
  readonly bounds: readonly Bound[]
  readonly pressure: Pressure
  readonly residentBytes: number
  readonly elapsedMs: number
}

/** One gateway (`--gateway`). */
export interface GatewayStats {
  readonly name: string
  /** Requests at once that it is given now, and those under way. */
  readonly limit: number
  readonly inFlight: number
  /** Nothing goes through it before: ISO 8601, or `resume` when that is up to `Crawler.resume()`. Absent: it does not rest. */
  readonly pausedUntil?: string
  /** Of this process: answers 429, answers that its quota is spent, and failures of its own. */
  readonly throttled: number
  readonly quotaHits: number
  readonly failed: number
}

/** URLs that had to give way, by reason, since the crawl was opened. */
export interface ShedStats {
  /** Claims have been held for longer than `shedAfterMs`, and were not free for as long since. */
  readonly isShedding: boolean
  /** Turns that URLs gave up to better ones, by the stage that held the claims. They stay in the queue, and may give up more than one. */
  readonly deferred: Readonly<Record<string, number>>
  /** URLs that left the queue for better ones, and links that were not let in, by what was full. */
  readonly dropped: Readonly<Record<FullReason, number>>
  readonly refused: Readonly<Record<FullReason, number>>
  /** With a shed log: lines that could not be written, or not fast enough. */
  readonly logLinesLost?: number
}

/** What the store did since it was opened, and what it takes. */
export interface StoreStats {
  readonly commits: number
  readonly rowsWritten: number
  /** Links, and URLs given by the user, that a commit looked for: found in the known table, and looked up in the store. Workers drop others before. */
  readonly linksKnown: number
  readonly linksLookedUp: number
  /** Of those looked up: they were new. */
  readonly linksNew: number
  /** Pages in use of the store's file, in bytes; what was freed inside it is not among them. */
  readonly bytesUsed: number
  /** Length of the store's file. Up to 4 MB at its end take no disk space. */
  readonly fileBytes: number
}

/** How a run ended. */
export interface Summary extends Counters {
  /** `complete`: nothing is left that falls due within the tail. `limit`: a limit of the run was reached. */
  readonly state: 'complete' | 'limit' | 'stopped' | 'failed'
  /** Pages of this run (the counters are the whole crawl's). */
  readonly pagesThisRun: number
  readonly fetchesThisRun: number
  /** URLs that wait for a later moment than the tail; only with `complete`. */
  readonly parked: number
  /** Wall clock, when the next ended URL falls due to be fetched again; absent when none does. */
  readonly nextDueAtMs?: number
  readonly elapsedMs: number
  /** Absent when the process died that knew it. */
  readonly flow?: FlowCounts
  /** With `failed`: the code and text of what ended it. */
  readonly error?: { readonly code: ErrorCode; readonly message: string }
}

export interface RunOptions extends RunLimitsGiven {
  /** Stops the run: unfinished fetches are aborted, what lies in slots is stored. */
  readonly signal?: AbortSignal
}

export interface StartOptions extends RunOptions {
  /** Called for each page, one at a time; the page is acknowledged when the promise resolves. */
  readonly onPage?: (page: PageRecord) => unknown
}

/** A URL to add, with what is known of it. */
export interface SeedUrl {
  readonly url: string | URL
  /**
   * When the page was last modified: a date, a text that names one, or milliseconds since 1970. A URL that was last
   * fetched before is tried again.
   */
  readonly lastmod?: Date | string | number
  /** Tried again in any case, unless it is in the queue. */
  readonly again?: boolean
  /** Its place in the queue, 0 (first, the default) to 255; rounded, and taken as the nearest of these. */
  readonly priority?: number
}

/** A URL, or any iterable of them. */
export type SeedSource = Seed | Iterable<Seed> | AsyncIterable<Seed>
export type Seed = string | URL | SeedUrl

export interface AddOptions {
  /** Every URL that has its outcome already is tried again, whatever it was. */
  readonly again?: boolean
}

export interface RejectedUrl {
  /** The text that was given, cut to 200 characters, `***` in place of what may be a password. */
  readonly input: string
  readonly code: 'bad_url'
  readonly message: string
}

export interface AddResult {
  /** URLs that were new to the crawl. */
  readonly added: number
  /** URLs that had their outcome and are tried again. */
  readonly again: number
  /** Other URLs that the crawl had already. */
  readonly known: number
  readonly rejected: number
  /** URLs, of those not rejected, with a user name or password in them, which is neither kept nor sent: see the option `hostHeaders`. */
  readonly usersLeftOut: number
  /** The first hundred of those rejected. */
  readonly rejections: readonly RejectedUrl[]
}

/** Which ended URLs are to be tried again: those that match all that is given. */
export interface RequeueFilter {
  /** One of these outcomes; several as a list, or in one text with commas. */
  readonly outcome?: Outcome | string | readonly string[]
  /** One of these codes: of failures, or of what was dropped. */
  readonly code?: string | readonly string[]
  /** The host, written as anybody would. */
  readonly host?: string
  /** Every URL that has ended; needed when nothing else is given. */
  readonly all?: boolean
}

export interface RequeueResult {
  /** URLs that are in the queue again. */
  readonly requeued: number
  /** URLs that match and were passed over, because their host is excluded. */
  readonly excluded: number
}

/** What is known of one host. */
export interface HostStats {
  readonly name: string
  /** URLs in the queue. */
  readonly pending: number
  readonly excluded: boolean
  readonly inFlight: number
  readonly limit: number
  readonly delayMs: number
  /** Milliseconds until the next start is allowed; 0 when it is now. The longest of the delay that runs and the two rests. */
  readonly waitMs: number
  /** Milliseconds that are left of the rest after failures, and of the longest Retry-After; 0 when it is over. */
  readonly backoffMs: number
  readonly retryAfterMs: number
  /** Milliseconds that are left of its own pace, below one request at a time; 0 when it has none. */
  readonly paceMs: number
  /** From 1 (all is well) to 0, and the shares that it is made of; these are absent while all is well, and of a host without work. */
  readonly health: number
  readonly shares?: HostShares
  /** Its health has sunk too low: it rests, longer after each bad answer, and is asked one URL at a time. */
  readonly unhealthy: boolean
  /** Failures of the host in a row and the code of the last. */
  readonly failures: number
  readonly failureCode?: string
  /** Its URLs fail with this code without a fetch, for a day from then (ISO 8601). */
  readonly givenUp?: { readonly code: string; readonly at: string }
  /** Nothing is asked of it until somebody wants its URLs (`requeue`, `add` with `again`): why, its price, and since when. */
  readonly parked?: { readonly code: string; readonly price?: string; readonly at: string }
  /** robots.txt verdicts by origin (scheme, name and port). */
  readonly robots: Readonly<Record<string, RobotsStats>>
}

/** What is known of an origin's robots.txt. */
export interface RobotsStats {
  /** `allow`: all is allowed. `disallow`: nothing for now. */
  readonly rule: 'allow' | 'disallow' | 'rules'
  /** Rules that apply to us; only with `rules`. */
  readonly rules?: number
  /** What it asks for, as Crawl-delay or Request-rate, within a minute. */
  readonly crawlDelayMs?: number
  /** Of the answer that it came with, which a redirect may have led to; absent: there was none. */
  readonly status?: number
  /** With `disallow`: why. */
  readonly code?: string
  /** The sitemaps that it names; of many the first, and how many more. */
  readonly sitemaps?: readonly string[]
  readonly sitemapsMore?: number
  /** It holds so long (ISO 8601), and longer while the file cannot be had. */
  readonly until: string
}

export interface CrawlerEvents {
  /** A page is parsed; not awaited. Use `run` or `onPage` to slow the crawl to the consumer. */
  page: [PageRecord]
  /** A URL ended without a usable answer. */
  failed: [PageRecord]
  /** `blockedOn` has changed. */
  pressure: [BlockedOn]
  /** A run has nothing left to do. */
  idle: []
}

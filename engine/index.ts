/**
 * Sluice: an embeddable crawl engine. This page tells how data flows; whoever has read it knows where each line of the
 * project must be.
 *
 * A URL enters through `add` or as a link of a page. The **frontier** (`storage/lmdb`) holds it on disk, in its host's
 * queue; it is the only place without a bound. The **scheduler** (`schedule/`) keeps hosts with work in heaps by the
 * next moment at which each may be asked, and claims a few URLs of a host when its turn comes. A claim leaves the row
 * where it is: that a URL is being fetched is known to the process alone, and a dead process has nothing to unlock.
 *
 * The **robots gate** (`web/robots`) answers whether the URL may be asked for. The **fetcher** (`fetch/`) resolves the
 * name, checks the address that it is about to use, asks over HTTP/1.1, reserves the body's bytes before it reads them,
 * and never inflates. What the server said is copied once, into a **slot** of the **page ring** (`threads/arena`,
 * `threads/ring`): shared memory, one word of state a slot.
 *
 * A **parse worker** (`threads/parse-worker`, in a Piscina pool) takes the slot because it is free; nobody hands it one.
 * It inflates, tells the encoding, scans the bytes where they lie for links and metadata (`threads/html/scanner`),
 * resolves and judges the links (`threads/html/links`), drops those that are known already, appends the WARC record,
 * writes its result beside the body, and marks the slot done. The main thread **collects** results in the order in which
 * each worker finished them.
 *
 * A **sitemap** (with `--sitemaps`; `sitemap-stage`) goes the same way, as a URL of another kind, up to its body: that goes
 * chunk by chunk to a thread of its own (`threads/sitemap`), and what it lists into the frontier (`sitemap-reading`).
 *
 * With a consumer (`run`, `onPage`) a page waits in the **window** (`flow/ack-window`) until it is acknowledged. Then
 * the **commit loop** gathers outcomes, and the store writes a batch in one transaction: the page's row and its new
 * links, the end of its queue row, counters, and how long each result file is now (`storage/sinks`). Hosts that got
 * new links wake up in the scheduler, and the round begins again.
 *
 * What is to be fetched again lies in the store under the moment that `schedule/recrawl` chose; the **due pump**
 * (`due-pump`) moves it back into the queue when that has come, `requeue` when somebody asks for it. Before all other work
 * go the **suspects** (`suspects`): pages that a worker had in hand when the last process died, as their notes
 * (`threads/in-hand`) tell; each is read alone. While there is no room on the **disk** (`flow/disk-space`) nothing is
 * fetched, and what could not be written is tried again.
 *
 *     frontier -> scheduler -> robots -> fetcher -> page ring -> worker -> done slots -> window -> commit -> frontier
 *
 * Every arrow but the last is bounded. A slow stage leaves its entrance full, the one before it stops, and in the end
 * nothing is claimed; `stats().blockedOn` says which bound it is, and `pressure` (`flow/places`, `flow/blocked`) what each
 * stage holds, since when, and how often the crawl waited for it; `listen` tells it over HTTP. `crawl-loop.ts` is the one file that sees all stages;
 * `open-stages.ts` wires them; `core/` is what everybody may know: records, errors, limits, options, clock, keys.
 */
export { Crawler } from './crawler.ts'
export { SluiceError, errorCodes, failureTable, type ErrorCode, type FailureCode, type FailureRule } from './core/errors.ts'
export type {
  AddOptions, AddResult, BlockedOn, Bound, CrawlerEvents, CrawlState, FlowCounts, GatewayStats, HostPressure, HostShares, HostStats, LatencySummary, Pressure, RejectedUrl, RequeueFilter, RequeueResult, RobotsStats, RunOptions, Seed, SeedSource, SeedUrl, ShedStats, StageName, StagePressure, StartOptions, Stats, StoreStats, Summary,
} from './core/api-types.ts'
export type { Concurrency, CrawlOptions, CrawlOptionsGiven, Durability, Format, HostLimitGiven, HostRule, NearDuplicatePolicy, Politeness, RunLimits, RunLimitsGiven, Scope } from './core/options.ts'
export type { LinkFacts, PriorityFunction } from './core/priority.ts'
export type { GatewayFile, GatewayGiven } from './core/gateway-config.ts'
export type { HostHeadersFile, OriginHeadersGiven } from './core/host-headers.ts'
export type { ShedLine } from './shed-log.ts'
export type { RecrawlFacts, RecrawlFunction } from './core/recrawl-policy.ts'
export type { Extractor, PageLink, ParsedPage } from '../threads/extractor.ts'
export type { DedupeRule } from './core/url-key.ts'
export type { ListenAddress } from './core/listen-address.ts'
export type { Counters, FullReason, LinkElement, Outcome, PageRecord, RefusalReason, Timings, TlsFacts, UrlState } from './core/types.ts'

/**
 * The records that travel through the engine, and the words for them. Leaf module: knows the limits alone, runs anywhere.
 *
 * Glossary
 *   frontier   every URL that was discovered and has no outcome yet; on disk, the only unbounded place
 *   seed       a URL given by the user; depth 0
 *   outlink    a URL found in a page; depth of the page plus one (the target of a redirect or of a quick refresh keeps the depth)
 *   origin     scheme, host and port; keys robots verdicts, connections and TLS
 *   host       the host name; keys queue, limiter and counts
 *   domain     the registrable domain of a host, by the public suffix list; keys caps and budgets
 *   unit       host, registrable domain or IP address, as the operator chose; keys the politeness clocks
 *   key        the canonical form of a URL, used to tell whether two URLs are one; never requested
 *   fingerprint  the first 128 bits of SHA-256 of the key
 *   claim      to take URLs of a host out of the frontier into memory; their rows stay on disk
 *   hand       URLs of a host that were claimed and are not started yet
 *   lease      a claimed URL until its outcome is stored; a memory of the process, never stored
 *   class      first or later: a URL over its domain's budget is of the later class, which waits for the first
 *   defer      to put a claimed URL back under a later moment, to be tried again
 *   rest       of a host: nothing is asked of it until a moment that we chose (back-off) or its server named (Retry-After)
 *   given up   of a host: its URLs end with the code of its last failure, until it is revived or a day has passed
 *   outcome    what became of a URL; there is one terminal outcome for each, until it is fetched again
 *   due        of a URL with an outcome: the recrawl policy says when it goes back to the queue
 *   again      to put a URL with an outcome back into the queue: it is due, or somebody asks for it (requeue, add)
 *   evict      to drop the worst queued URL of a host for a better one, when the queue is full
 *   step back  of a host whose turn it is: to leave it to hosts with better URLs, while our own stages hold the crawl
 *   wall       a challenge or block page, which a service before the site sends in the place of the page
 *   sitemap    a file in which a site lists its pages, or further sitemaps; a URL of the crawl and no page of it
 *   suspect    a page that a worker had in hand when the process died; it is read alone
 *   slot       one place of the page ring in shared memory: a fetched page, and later its result
 *   fill, take, release  what happens to a slot: the fetcher fills, a worker takes, the main thread releases
 *   turn       one Piscina task: a worker takes pages until none is left or its time is up
 *   commit     one transaction: outcomes, outlinks, host records, sink lengths and counters together
 *   known      of a URL: proven to have a row in the store, by a table in shared memory
 *   sink       a file of results (JSONL, WARC) whose committed length is part of the commit
 */
import { limits } from './limits.ts'

/** The state of a discovered URL, as stored in its `seen` row. They sum to `discovered` after every commit. */
export type UrlState = 'pending' | 'done' | 'failed' | 'dropped' | 'excluded'

/** Each terminal outcome and the state that it puts the URL in. The only place where the two are related. */
export const stateOfOutcome = {
  /** The server answered 2xx and the page was read. */
  ok: 'done',
  /** The server answered 3xx; the target is a URL of its own. */
  redirect: 'done',
  /** The server answered 304: what was read before stands. */
  not_modified: 'done',
  /** The server answered 4xx or 5xx, for the last time. */
  http_error: 'done',
  /** No usable answer; `code` says why. */
  failed: 'failed',
  /** robots.txt does not allow it. */
  robots_denied: 'excluded',
  /** The operator excluded the host after the URL was queued. */
  excluded: 'excluded',
  /** Shed on purpose; `code` says by which rule. */
  dropped: 'dropped',
} as const satisfies Record<string, Exclude<UrlState, 'pending'>>

export type Outcome = keyof typeof stateOfOutcome

/** Sums over the whole crawl, stored in every commit: discovered = pending + done + failed + dropped + excluded. */
export interface Counters {
  readonly discovered: number
  readonly pending: number
  readonly done: number
  readonly failed: number
  readonly dropped: number
  readonly excluded: number
  /** Stored answers of servers: outcomes ok, redirect, not_modified and http_error. A page that is fetched again counts again. */
  readonly pages: number
  /** Of those: fetched again. */
  readonly refetched: number
  /** Of those: not modified by their server's word (304), and the same bytes as before though sent whole. */
  readonly notModified: number
  readonly unchanged: number
  /** Payload bytes received for those pages, as they came over the wire. */
  readonly wireBytes: number
  /** Decoded bytes of those pages. */
  readonly bodyBytes: number
  /** Tries after the first one. */
  readonly retries: number
  /** Pages whose text is nearly that of a page stored before by the same process; 0 unless the option simhash is on. */
  readonly nearDuplicates: number
  /** Links that were never admitted, by reason; they have no row and are outside the sum. */
  readonly refused: Readonly<Record<RefusalReason, number>>
}

/**
 * Why a link found in a page never became a URL of the crawl, and what that means to a user: the README's list comes from
 * here. Their order is that of the counts in a frame. `url_length` to `query_growth` are the rules of core/traps.ts.
 */
export const refusalMeanings = {
  invalid: 'no URL by the URL standard, or a host with an empty label',
  scheme: 'neither http nor https',
  too_long: `longer than ${limits.urlBytesMax} characters`,
  scope: 'to a host out of scope (--scope)',
  pattern: 'not as --include and --exclude have it',
  depth: 'deeper than --max-depth',
  too_many: `behind the first ${limits.linksPerPageMax} of its page`,
  excluded_host: 'to a host that was excluded',
  url_length: `longer than ${limits.linkCharsMax} characters (--traps)`,
  path_depth: `with more than ${limits.pathSegmentsMax} segments in its path (--traps)`,
  path_repeat: `with one to three segments more than ${limits.pathRepeatsMax} times in a row in its path (--traps)`,
  query_growth: 'one more query of a path that has --max-queries-per-path of them (--traps)',
  host_full: 'to a host with --max-queued-per-host URLs in the queue, none of them worse',
  domain_full: 'to a domain with --max-queued-per-domain URLs in the queue, none of them on the same host and worse',
  queue_full: 'to a queue of --max-queued URLs, none of them on the same host and worse',
  store_full: 'to a store that has nearly reached --max-store',
  port: 'to a port that browsers refuse too (it belongs to another protocol)',
  nofollow: 'which the page, its header or the link itself asks not to follow (--obey)',
  near_duplicate: 'in a page that has nearly the text of another (--near-duplicates skip)',
} as const
export type RefusalReason = keyof typeof refusalMeanings
export const refusalReasons = Object.keys(refusalMeanings) as readonly RefusalReason[]
/** Reasons that say that something is full. */
export const fullReasons = ['host_full', 'domain_full', 'queue_full', 'store_full'] as const satisfies readonly RefusalReason[]
export type FullReason = (typeof fullReasons)[number]

/** Elements that may link: `link` with rel alternate, next or prev, `meta` as a refresh, `form` with method get. */
export const linkElements = ['a', 'area', 'iframe', 'frame', 'link', 'meta', 'img', 'script', 'form'] as const
export type LinkElement = (typeof linkElements)[number]
/** Those whose addresses are pages. */
export const pageLinkElements: readonly LinkElement[] = linkElements.slice(0, 6)

/**
 * What pages and headers ask for that a policy may follow (--obey). `nofollow`: of a page (meta robots, X-Robots-Tag), no
 * link of it. `rel`: links marked nofollow, ugc or sponsored, unless another link of the page leads there without. `noarchive`: no
 * WARC record. `noindex`: no extractor. `canonical`: the address that the page gives for itself is a link of it.
 */
export const directives = ['nofollow', 'rel', 'noarchive', 'noindex', 'canonical'] as const
export type Directive = (typeof directives)[number]

/** What is remembered of an earlier fetch of a URL that is to be fetched again. */
export interface PreviousFetch {
  readonly fetchedAtMs: number
  /** 0: no server answered. */
  readonly status: number
  /** The first 128 bits of SHA-256 of the decoded body. */
  readonly contentHash?: Uint8Array
  readonly etag?: string
  readonly lastModified?: string
  /** SHA-1 of the payload that a WARC file holds, and the date of its record; of crawls that write WARC. They come together. */
  readonly payloadDigest?: Uint8Array
  readonly payloadAtMs?: number
  /** What the recrawl policy last chose; absent before its first choice. */
  readonly intervalMs?: number
  /** Answers in a row, up to this fetch, that said that the page is gone. */
  readonly goneTimes?: number
}

/** The sums of a crawl that has not begun. */
export const noCounters: Counters = {
  discovered: 0, pending: 0, done: 0, failed: 0, dropped: 0, excluded: 0, pages: 0, refetched: 0, notModified: 0, unchanged: 0,
  wireBytes: 0, bodyBytes: 0, retries: 0, nearDuplicates: 0,
  refused: Object.fromEntries(refusalReasons.map((reason) => [reason, 0])) as Record<RefusalReason, number>,
}

/** A URL in the frontier. `row` is the store's own name of the queue row; nobody else looks inside. */
export interface QueuedUrl {
  readonly row: Uint8Array
  readonly host: string
  /** Order of arrival over the whole crawl; unique, so it names the URL in sets of leased ones. */
  readonly sequence: number
  readonly fingerprint: Uint8Array
  readonly url: string
  readonly depth: number
  /** 0 is first. */
  readonly priority: number
  /** Fetches that were charged to this URL so far; from 0 again when it is tried again after its end. */
  readonly attempts: number
  readonly referrer?: string
  /** The redirects that led here, first hop first. */
  readonly redirectedFrom?: readonly string[]
  /** An answer of that chain set a cookie, and the jar took it. */
  readonly hasCookie?: true
  /** Not a page, and its entries are not outlinks; absent: a page. */
  readonly kind?: 'sitemap'
  /** Over its domain's budget: its turn comes when nothing else has one. */
  readonly isLater?: true
  /** Of a URL that had its outcome before. */
  readonly previous?: PreviousFetch
}

/** A URL on its way into the frontier, from the user or from a page. */
export interface NewUrl {
  readonly url: string
  readonly host: string
  readonly fingerprint: Uint8Array
  readonly depth: number
  readonly priority: number
  readonly referrer?: string
  readonly redirectedFrom?: readonly string[]
  readonly hasCookie?: true
  /** Of a sitemap; its fingerprint is another than that of a page with the same address. */
  readonly kind?: 'sitemap'
  /** If it has its outcome already it is tried again: always, or when it was last fetched before this moment (wall clock). */
  readonly again?: true | number
}

/** Outlinks of one page as the worker wrote them: strings are made only for those that are asked for. */
export interface LinkList {
  readonly count: number
  /** 16 bytes; a view, valid as long as the list. */
  fingerprint(index: number): Uint8Array
  /** The first 64 bits of SHA-256 of the host name; a view of 8 bytes. */
  hostHash(index: number): Uint8Array
  url(index: number): string
  isRedirect(index: number): boolean
}

export const noLinks: LinkList = {
  count: 0,
  fingerprint: () => { throw new RangeError('an empty list has no links') },
  hostHash: () => { throw new RangeError('an empty list has no links') },
  url: () => { throw new RangeError('an empty list has no links') },
  isRedirect: () => false,
}

/** Milliseconds of the parts of a fetch; a part that did not happen (a kept connection has no TLS handshake) is absent. */
export interface Timings {
  readonly dnsMs?: number
  readonly connectMs?: number
  readonly tlsMs?: number
  readonly ttfbMs?: number
  readonly totalMs?: number
  readonly parseMs?: number
}

export interface TlsFacts {
  readonly version: string
  readonly cipher: string
  readonly resumed: boolean
}

/** What the fetcher knows of a response: it travels with the body to the worker, which makes the page record from it. */
export interface PageMeta {
  readonly url: string
  readonly depth: number
  readonly attempts: number
  readonly referrer?: string
  readonly redirectedFrom?: readonly string[]
  readonly status: number
  readonly statusText: string
  readonly fetchedAtMs: number
  readonly contentType?: string
  readonly contentEncoding?: string
  /** The Location header as sent. */
  readonly location?: string
  /** The Refresh header as sent. */
  readonly refresh?: string
  readonly etag?: string
  readonly lastModified?: string
  /** It set a cookie that the jar holds now, and that was not sent with the request. */
  readonly setsCookie?: true
  readonly ip?: string
  /** Name of the gateway that it came through. */
  readonly gateway?: string
  readonly tls?: TlsFacts
  readonly timings: Timings
  /** The body was cut at the limit of wire bytes. */
  readonly truncated: boolean
  /** False when the page's outlinks would be too deep: they are counted as refused and not reported. */
  readonly followLinks: boolean
  /** Where the URL lies in the queue, the row in hexadecimal: for the note of the page in hand. */
  readonly queued?: { readonly row: string; readonly sequence: number }
  /** Of a page that was fetched before: what this answer is compared with. */
  readonly previous?: PreviousPage
}

/** What a worker must know of the earlier fetch. Hashes are in hexadecimal, since a slot holds this as JSON. */
export interface PreviousPage {
  /** The server was asked to answer 304 if the page is the same. */
  readonly isConditional: boolean
  readonly contentHash?: string
  readonly payloadDigest?: string
  readonly payloadAtMs?: number
}

/** The page is the same as before, by its server's word. One that says so without being asked has only erred. */
export function isNotModified({ status, previous }: PageMeta): boolean {
  return status === 304 && previous?.isConditional === true
}

/** A complete response in the fetcher's own memory, ready to be copied into a slot. */
export interface FetchedPage {
  readonly meta: PageMeta
  /** `Name: value` lines as received, each ended by CRLF, without the status line. */
  readonly headerBlock: Uint8Array
  /** The payload as received (content coding untouched, transfer coding removed), in arrival order. */
  readonly body: readonly Uint8Array[]
  readonly bodyBytes: number
}

/** Where a page's WARC record lies. `file` counts the WARC files of the crawl, see `warcFileName`. */
export interface WarcPlace {
  readonly file: number
  readonly offset: number
  readonly length: number
  /** SHA-1 of the payload, 20 bytes: what a later fetch is compared with. */
  readonly payloadDigest?: Uint8Array
}

/** What a parse worker found in one page. */
export interface ParsedResult {
  readonly outcome: 'ok' | 'redirect' | 'not_modified' | 'http_error' | 'failed'
  /** A failure code; present when the outcome is failed. */
  readonly code?: string
  /** Decoded bytes read. */
  readonly bodyBytes: number
  /** The first 128 bits of SHA-256 of the decoded body; absent without a body. */
  readonly contentHash?: Uint8Array
  /** 8 bytes, see threads/html/simhash; absent without enough text, or when nobody asked for it. */
  readonly simhash?: Uint8Array
  readonly links: LinkList
  /** Links that are not among `links`, because the known table proved them to be in the crawl already. */
  readonly linksKnown: number
  readonly refused: Readonly<Record<RefusalReason, number>>
  /** The page record as UTF-8 JSON without its closing brace: the commit adds `newLinks` and closes it. */
  readonly line: Uint8Array
  readonly warc?: WarcPlace
}

/** One line of `pages-*.jsonl`. Missing facts are absent, never null or empty. */
export interface PageRecord {
  readonly url: string
  /** On a hop's record: where it points. */
  readonly redirectTo?: string
  /** On the target's record: the chain that led to it. */
  readonly redirectedFrom?: readonly string[]
  readonly status?: number
  readonly outcome: Outcome
  /** Failure code, see the failure table. */
  readonly code?: string
  /** ISO 8601, when the request was sent. */
  readonly fetchedAt: string
  readonly depth: number
  readonly referrer?: string
  /** Fetches made for this URL, this one included. */
  readonly attempts: number
  readonly contentType?: string
  readonly charset?: string
  /** The label that the header or the document gives for its encoding, when it names none. */
  readonly unknownCharset?: string
  /** Decoded bytes. */
  readonly bytes?: number
  /** Payload bytes as received. */
  readonly wireBytes?: number
  /** True when the body was cut at a limit. */
  readonly truncated?: true
  readonly title?: string
  readonly lang?: string
  readonly canonical?: string
  /** Where the page sends its reader, and after how long: its Refresh header, or its first refresh element with an address. */
  readonly refresh?: { readonly delaySeconds: number; readonly url: string }
  /** Of meta elements and X-Robots-Tag together, as far as they are for us. */
  readonly robots?: { readonly noindex?: true; readonly nofollow?: true; readonly noarchive?: true }
  /** Distinct http and https addresses that the page links to. */
  readonly links?: number
  /** Spellings of links (or a redirect's target) with a user name or password in them, which is neither kept nor sent. */
  readonly userinfo?: number
  /** Those among the links that were new to the crawl. */
  readonly newLinks?: number
  /** Those among `links` to which no link of the page is without rel nofollow, ugc or sponsored. */
  readonly nofollowLinks?: number
  /** First 128 bits of SHA-256 of the decoded body, hexadecimal; with outcome not_modified, of the body that was read before. */
  readonly hash?: string
  /** The body was sent again, and is the one that was read before. */
  readonly unchanged?: true
  /** SimHash of the text, 16 hexadecimal digits; with the option simhash, of a page of at least 64 different words. */
  readonly simhash?: string
  /** The text is nearly that of a page stored before in the same process; added by the commit, like `newLinks`. */
  readonly nearDuplicate?: true
  /** Much script and hardly any text, or a known application shell: the page is probably built in the browser. Never of a page that was cut. */
  readonly needsJs?: true
  readonly etag?: string
  readonly lastModified?: string
  readonly ip?: string
  /** Name of the gateway that it came through; the site's address is then not known. */
  readonly gateway?: string
  readonly tls?: TlsFacts
  readonly timings?: Timings
  readonly warc?: { readonly file: string; readonly offset: number }
  /** What the extractor returned. */
  readonly record?: unknown
  /** Of a sitemap, which is no page; empty when none was read. */
  readonly sitemap?: SitemapFacts
}

/** What became of a sitemap. */
export interface SitemapFacts {
  readonly type?: 'urlset' | 'index' | 'txt' | 'rss' | 'atom' | 'rdf'
  /** As listed there; those beyond `limits.sitemapEntriesMax` are not taken. */
  readonly entries?: number
  /** Of those, new to the crawl, or modified since their last fetch. */
  readonly new?: number
  /** It was cut: on the wire, at a limit, or in the middle of an element. */
  readonly cut?: true
  /** What is wrong with it, a few lines at most. */
  readonly errors?: readonly string[]
}

/** A proof that a URL is queued or done; used in workers to spare the commit a look-up. It never guesses. */
export interface Known {
  has(fingerprint: Uint8Array): boolean
}

/** How many URLs with a query were admitted for a path, known by `queryPathHash`; what was forgotten counts from 0 again. */
export interface QueryCounts {
  countOf(pathHash: Uint8Array): number
}

/** Where a worker appends the pages that it read, one WARC record each. */
export interface PageSink {
  append(page: { meta: PageMeta; headerBlock: Uint8Array; body: Uint8Array }): WarcPlace
}

/** Name of a WARC file inside the crawl directory. */
export function warcFileName(file: number): string {
  return `warc/sluice-${String(file).padStart(6, '0')}.warc.gz`
}

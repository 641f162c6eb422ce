/**
 * Every option of a crawl, in one table: type, default, range, meaning. The library's `open` and `run`, the command
 * line, its `--help` and the README's list all come from here. Options are resolved once; unknown keys are refused,
 * and the result is frozen. Leaf module.
 */
import type { Concurrency } from './concurrency.ts'
import { GatewayConfigs, type GatewayFile } from './gateway-config.ts'
import { HostHeaders, type HostHeadersFile } from './host-headers.ts'
import { limits } from './limits.ts'
import type { ListenAddress } from './listen-address.ts'
import { parseValue, type OptionType } from './option-values.ts'
import { SluiceError } from './errors.ts'
import type { PriorityFunction } from './priority.ts'
import type { RecrawlFunction } from './recrawl-policy.ts'
import { directives, linkElements, pageLinkElements, type Directive, type LinkElement } from './types.ts'
import { dedupeRules, type DedupeRule } from './url-key.ts'

export interface OptionSpec<T> {
  readonly type: OptionType
  readonly default: T
  /** Flag of the command line; absent: library only. */
  readonly flag?: string
  readonly short?: string
  readonly min?: number
  readonly max?: number
  readonly choices?: readonly string[]
  /** Kept with the crawl: on continuing, the stored value is used unless another is given. */
  readonly stored: boolean
  readonly help: string
}

function option<T>(spec: OptionSpec<T>): OptionSpec<T> {
  Object.freeze(spec.default)
  return spec
}

export type Scope = 'host' | 'domain' | 'any'
export type Politeness = 'host' | 'domain' | 'ip'
export type Format = 'jsonl' | 'warc'
export type NearDuplicatePolicy = 'count' | 'skip'
/**
 * When what is stored reaches the disk: with each commit, once a second, or when the system likes; a clean close syncs in
 * each. It is a matter of one opening. A page is acknowledged when its commit is stored: with `commit` that means that it
 * is on the disk, with the others that no death of the process can lose it. Between two syncs the system writes LMDB's
 * pages in any order, so that a loss of power may leave more than a lost tail: a store that cannot be opened.
 */
export type Durability = 'commit' | 'interval' | 'system'
/** What is said of the hosts that a pattern matches: a name, `*.example.com` (all below it) or `*`. */
export interface HostRule {
  readonly hosts: string
  readonly delayMs?: number
  readonly concurrency?: Concurrency
  /** Starts in one turn, when its delay lets them follow each other; 1 at first. */
  readonly weight?: number
}
export type { Concurrency }

/** Options that belong to the crawl directory. */
export const crawlOptions = {
  dir: option<string>({ type: 'string', default: './crawl', flag: '--dir', stored: false, help: 'crawl directory' }),
  scope: option<Scope>({ type: 'choice', choices: ['host', 'domain', 'any'], default: 'host', flag: '--scope', stored: true, help: "which links are followed: those to the seeds' hosts, to their registrable domains, or any" }),
  include: option<readonly string[]>({ type: 'patterns', default: [], flag: '--include', stored: true, help: 'follow only links that match this regular expression; repeatable, one match is enough' }),
  exclude: option<readonly string[]>({ type: 'patterns', default: [], flag: '--exclude', stored: true, help: 'never follow links that match this regular expression; repeatable' }),
  maxDepth: option<number>({ type: 'integer', min: 0, max: limits.depthMax, default: limits.depthMax, flag: '--max-depth', stored: true, help: 'follow links this many steps from a seed' }),
  dedupe: option<readonly DedupeRule[]>({ type: 'choices', choices: dedupeRules, min: 0, default: [], flag: '--dedupe', stored: true, help: `also take for one URL those that differ only in these, with commas: ${dedupeRules.join(', ')}; none: takes back those of the stored crawl` }),
  maxQueuedPerHost: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-queued-per-host', stored: true, help: 'queued URLs of a host: beyond, a link takes the place of one with a lower priority, or is refused; seeds and targets of redirects are taken all the same; none: no bound' }),
  maxQueuedPerDomain: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-queued-per-domain', stored: true, help: 'the same for the URLs of a registrable domain' }),
  maxQueued: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-queued', stored: true, help: 'the same for all URLs of the queue' }),
  domainBudget: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--domain-budget', stored: true, help: 'so many queued URLs of a domain are in the first class, and as many more for each other domain that links to it; the rest waits until nothing of the first class may start; none: there is one class' }),
  maxStoreBytes: option<number>({ type: 'size', min: 16 * 1_048_576, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-store', stored: true, help: 'bytes of the store on disk: from nine tenths on links are refused, at the bound the crawl pauses; none: no bound' }),
  linkElements: option<readonly LinkElement[]>({ type: 'choices', choices: linkElements, default: pageLinkElements, flag: '--link-elements', stored: true, help: `elements whose addresses are links, with commas, of ${linkElements.join(', ')}` }),
  sitemaps: option<boolean>({ type: 'boolean', default: false, flag: '--sitemaps', stored: true, help: "read the sitemaps of the seeds' hosts too: those that robots.txt names, and /sitemap.xml" }),
  obey: option<readonly Directive[]>({ type: 'choices', choices: directives, min: 0, default: ['nofollow', 'noarchive'], flag: '--obey', stored: true, help: `what pages and headers say that is followed, and not only recorded, with commas, of ${directives.join(', ')}; none: nothing is` }),
  excludeHosts: option<string | undefined>({ type: 'string', default: undefined, flag: '--exclude-hosts', stored: true, help: 'file of hosts that are never asked for anything, one name or *.example.com a line; read again when it changes' }),
  traps: option<'on' | 'off'>({ type: 'choice', choices: ['on', 'off'], default: 'on', flag: '--traps', stored: true, help: 'refuse links whose address looks generated: very long, very deep, repeating itself, or one more query of a path that has too many' }),
  maxQueriesPerPath: option<number>({ type: 'integer', min: 1, max: 1_000_000_000, default: 10_000, flag: '--max-queries-per-path', stored: true, help: 'with --traps on: so many URLs that differ in nothing but their query are taken from links, then no more' }),
  userAgent: option<string>({ type: 'header', default: 'Sluice/0.1 (+https://www.npmjs.com/package/sluice)', flag: '--user-agent', stored: true, help: 'name sent with every request and looked for in robots.txt; a contact address is expected' }),
  robots: option<string>({ type: 'string', default: 'obey', flag: '--robots', stored: true, help: 'obey: robots.txt holds for every host; FILE: hosts whose owner asked for something else, one name or *.example.com a line, are fetched without it' }),
  politeness: option<Politeness>({ type: 'choice', choices: ['host', 'domain', 'ip'], default: 'host', flag: '--politeness', stored: true, help: 'what the delay is counted for' }),
  delayMs: option<number>({ type: 'duration', min: 0, max: 3_600_000, default: 1_000, flag: '--delay', stored: true, help: 'least time between two starts on one host, domain or address' }),
  concurrency: option<Concurrency>({ type: 'concurrency', default: { start: 4, floor: 1, ceiling: 32 }, flag: '--concurrency', stored: true, help: 'requests at once to a host, START:FLOOR:CEILING; adapts between floor and ceiling' }),
  hostLimits: option<readonly HostRule[]>({ type: 'hostLimits', default: [], flag: '--host-limit', stored: true, help: 'other limits for some hosts, such as *.example.com=delay:5s,weight:3, or concurrency:1:1:2; the most specific pattern wins; repeatable' }),
  maxPerAddress: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-per-ip', stored: true, help: 'requests at once to one IP address, whatever its hosts; none: no bound' }),
  retries: option<number>({ type: 'integer', min: 0, max: 100, default: 2, flag: '--retries', stored: true, help: 'further tries of a URL after a failure that may pass' }),
  hostPatienceMs: option<number>({ type: 'duration', min: 0, max: 24 * 3_600_000, default: 300_000, flag: '--host-patience', stored: true, help: 'a host that has answered and then no longer does is tried at least for this long before its URLs fail; one that never answered a tenth as long' }),
  timeoutMs: option<number>({ type: 'duration', min: 100, max: 3_600_000, default: 30_000, flag: '--timeout', stored: true, help: 'deadline of one fetch: look-up, connection, headers and body together' }),
  maxBodyBytes: option<number>({ type: 'size', min: 1_024, max: 32 * 1_048_576, default: 250 * 1_024, flag: '--max-body', stored: true, help: 'read this much of a page, decoded; the rest is cut and marked' }),
  connections: option<number>({ type: 'integer', min: 1, max: limits.connectionsMax, default: 0, flag: '--connections', stored: false, help: 'requests at once in all, at most; default: what memory and the limit on open files allow. How many there are below that follows how busy the event loop is' }),
  requestsPerSecond: option<number>({ type: 'rate', min: 0.001, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--rate', stored: false, help: 'requests a second in all, robots.txt included, at most; none: no bound' }),
  bytesPerSecond: option<number>({ type: 'bandwidth', min: 1_024, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--bandwidth', stored: false, help: 'bytes received a second in all, on average at most; none: no bound' }),
  memoryBytes: option<number>({ type: 'size', min: limits.memoryBytesMin, max: Number.POSITIVE_INFINITY, default: 0, flag: '--memory', stored: false, help: 'memory of the whole process, without the mapped store; default: 60% of what the machine or the container has; none: no bound' }),
  threads: option<number>({ type: 'integer', min: 1, max: 256, default: 0, flag: '--threads', stored: false, help: 'parse workers; default: one less than the machine has processors, at least one' }),
  format: option<readonly Format[]>({ type: 'choices', choices: ['jsonl', 'warc'], default: ['jsonl'], flag: '--format', stored: true, help: 'what is written: jsonl (page records), warc (the responses themselves), or both with a comma' }),
  extract: option<string | undefined>({ type: 'string', default: undefined, flag: '--extract', stored: true, help: 'module whose default export makes a record of each page, run in the parse workers' }),
  simhash: option<boolean>({ type: 'boolean', default: false, flag: '--simhash', stored: true, help: 'give each page record the SimHash of its text (64 bits), and find near-duplicates' }),
  nearDuplicates: option<NearDuplicatePolicy>({ type: 'choice', choices: ['count', 'skip'], default: 'count', flag: '--near-duplicates', stored: true, help: 'pages with nearly the text of one stored before in this process: count them, or skip their links too; skip turns --simhash on' }),
  priority: option<PriorityFunction | undefined>({ type: 'function', default: undefined, stored: false, help: 'a function that answers the priority of each URL that is new, 0 first' }),
  shedAfterMs: option<number>({ type: 'duration', min: 0, max: Number.POSITIVE_INFINITY, default: 30_000, flag: '--shed-after', stored: false, help: 'when our own stages have held the crawl for so long, hosts whose best URL is among the worst give way to others, until it has been free for as long; none: never' }),
  shedLog: option<string | undefined>({ type: 'string', default: undefined, flag: '--shed-log', stored: false, help: 'append a JSON line to this file for each URL that is put off, dropped or refused for want of room' }),
  durability: option<Durability>({ type: 'choice', choices: ['commit', 'interval', 'system'], default: 'commit', flag: '--durability', stored: false, help: 'when what is stored reaches the disk: with each commit; once a second (interval); or when the system likes (system). A killed process loses nothing in any of them; a loss of power loses nothing with commit, and with the others the last second or more, and may leave a store that cannot be opened' }),
  tailMs: option<number>({ type: 'tail', min: 0, default: 600_000, flag: '--tail', stored: false, help: 'when all that is left is waiting: wait for it, park what waits longer than this (park: at once), and end' }),
  listen: option<ListenAddress | undefined>({ type: 'listen', default: undefined, flag: '--listen', stored: false, help: 'answer /metrics (Prometheus) and /status.json over HTTP at this port, 0 for any that is free; on 127.0.0.1 unless an address is given, IPv6 in brackets; there is no password' }),
  recrawl: option<string | RecrawlFunction>({ type: 'recrawl', default: 'never', flag: '--recrawl', stored: true, help: 'when a URL is fetched again: never, fixed:DURATION, adaptive:FLOOR:CEILING (sooner when it was found changed, later when not) or lastmod (when whoever adds it says that it was modified since)' }),
  allowAddress: option<readonly string[]>({ type: 'cidrs', default: [], flag: '--allow-address', stored: true, help: 'connect to these addresses although they are private or local, as CIDR; repeatable' }),
  resolve: option<Readonly<Record<string, string>>>({ type: 'resolve', default: {}, flag: '--resolve', stored: true, help: 'HOST=IP: use this address for a host; @FILE: lines of a hosts file; repeatable' }),
  ca: option<string | undefined>({ type: 'string', default: undefined, flag: '--ca', stored: true, help: 'file with certificates of authorities to trust besides the usual ones (PEM)' }),
  insecure: option<boolean>({ type: 'boolean', default: false, flag: '--insecure', stored: true, help: 'accept every certificate' }),
  cookies: option<boolean>({ type: 'boolean', default: false, flag: '--cookies', stored: true, help: 'keep cookies in memory, and send them back to the hosts that they are for' }),
  hostHeaders: option<string | HostHeaders | undefined>({ type: 'hostHeaders', default: undefined, flag: '--host-headers', stored: true, help: 'file of header fields and passwords that are sent to one origin each, such as https://a.test (JSON); its path is kept, its content is not' }),
  gateway: option<string | GatewayConfigs | undefined>({ type: 'gateway', default: undefined, flag: '--gateway', stored: true, help: 'file of proxies and scraping APIs through which hosts are fetched (JSON); its path is kept, its content is not' }),
} as const

/** Options of one run. */
export const runOptions = {
  maxPages: option<number>({ type: 'integer', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-pages', stored: false, help: 'end this run after as many pages (answers of servers); never exceeded' }),
  maxTimeMs: option<number>({ type: 'duration', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-time', stored: false, help: 'end this run after this time' }),
  maxBytes: option<number>({ type: 'size', min: 1, max: Number.POSITIVE_INFINITY, default: Number.POSITIVE_INFINITY, flag: '--max-bytes', stored: false, help: 'end this run when as many bytes of pages were received' }),
} as const

/** What may be changed for one host while a crawl is open. */
const hostLimitOptions = {
  concurrency: crawlOptions.concurrency, delayMs: crawlOptions.delayMs,
  weight: option<number>({ type: 'integer', min: 1, max: 100, default: 1, stored: false, help: 'starts in one turn' }),
}

type Value<S> = S extends OptionSpec<infer T> ? T : never
type Resolved<Table> = { readonly [K in keyof Table]: Value<Table[K]> }
/** What a caller may give: a value, or the text that the command line takes (`'2s'`, `'250KB'`, `'4:1:32'`). */
type Given<Table> = { readonly [K in keyof Table]?: Value<Table[K]> | string | undefined }

export type CrawlOptions = Resolved<typeof crawlOptions>
/** `gateway` and `hostHeaders`: the path of a file, or what such a file holds. */
export type CrawlOptionsGiven = Omit<Given<typeof crawlOptions>, 'gateway' | 'hostHeaders'> & { readonly gateway?: string | GatewayFile | GatewayConfigs | undefined, readonly hostHeaders?: string | HostHeadersFile | HostHeaders | undefined }
export type RunLimits = Resolved<typeof runOptions>
export type RunLimitsGiven = Given<typeof runOptions>
export type HostLimit = Partial<Resolved<typeof hostLimitOptions>>
export type HostLimitGiven = Given<typeof hostLimitOptions>

type Table = Readonly<Record<string, OptionSpec<unknown>>>

function resolve(table: Table, given: Readonly<Record<string, unknown>>, stored: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (typeof given !== 'object' || given === null) throw new SluiceError('bad_option', `options: expected an object, given ${typeof given} ${String(given)}`)
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(table, name)) {
      throw new SluiceError('bad_option', `unknown option ${JSON.stringify(name)}; known are ${Object.keys(table).join(', ')}`)
    }
  }
  const values: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) {
    if (given[name] !== undefined) values[name] = parseValue(spec.flag ?? name, spec, given[name])
    else if (spec.stored && stored[name] !== undefined) values[name] = parseValue(spec.flag ?? name, spec, stored[name])
    else values[name] = spec.default
  }
  return Object.freeze(values)
}

/** Resolves the options of a crawl. Throws `bad_option` for an unknown name or a value out of its range. */
export function resolveCrawlOptions(given: CrawlOptionsGiven, stored: Readonly<Record<string, unknown>> = {}): CrawlOptions {
  return resolve(crawlOptions, given, stored) as CrawlOptions
}

/** Resolves the limits of a run. Throws `bad_option` likewise. */
export function resolveRunLimits(given: RunLimitsGiven): RunLimits {
  return resolve(runOptions, given, {}) as RunLimits
}

/** Resolves what changes for one host; what is not given stays absent. Throws `bad_option` likewise. */
export function resolveHostLimit(given: HostLimitGiven): HostLimit {
  const values = resolve(hostLimitOptions, given, {}) as Required<HostLimit>
  return Object.fromEntries(Object.entries(values).filter(([name]) => given[name as keyof HostLimitGiven] !== undefined)) as HostLimit
}

/** What a file of secrets holds, given in its place. */
export function isFileContent(value: unknown): boolean {
  return value instanceof GatewayConfigs || value instanceof HostHeaders
}

/** The options that are kept with the crawl. */
export function storedOptions(options: CrawlOptions): Readonly<Record<string, unknown>> {
  const kept: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(crawlOptions)) {
    const value = options[name as keyof CrawlOptions]
    // No bound is the absence of one: JSON has no infinity. Nor has it functions; and the content of a file has secrets.
    const isKept = spec.stored && value !== Number.POSITIVE_INFINITY && typeof value !== 'function' && !isFileContent(value)
    if (isKept) kept[name] = value
  }
  return kept
}

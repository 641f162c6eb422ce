/**
 * The robots gate (RFC 9309): no URL of an origin is fetched before there is a verdict of its robots.txt. Main thread;
 * the file itself is read in the pool.
 *
 *   answer                           verdict                                  life
 *   2xx                              its rules                                Cache-Control max-age, 5 minutes to 24 hours;
 *                                                                             24 hours without (section 2.4)
 *     over 500 KiB, sent or inflated   those of the whole lines before        the same
 *     a page of HTML, no text          everything is allowed: it has none     the same
 *     BOM, UTF-16 by its BOM           its rules                              the same
 *     a coding that is broken          nothing for now                        10 seconds, or the rest of the host
 *   3xx                              the target's, up to five hops, whatever  the target's
 *                                    host they lead to (section 2.3.1.2)
 *     a sixth hop, no target, or one   everything is allowed                  as of 2xx
 *     that is no URL to be fetched
 *     to an address that is refused    nothing for now                        10 seconds, or the rest of the host
 *   4xx, 401 and 403 among them      everything is allowed (2.3.1.3)          as of 2xx
 *   429                              nothing for now                          Retry-After, 10 seconds to an hour, or the
 *                                                                             rest of the host
 *   5xx                              nothing for now (2.3.1.4)                the same
 *   no answer, a timeout among it    nothing for now                          10 seconds, or the rest of the host
 *   a host of --robots FILE          everything is allowed, nobody is asked
 *
 * 429 is the one deviation from the RFC, which counts it with 4xx: whoever asks for fewer requests has not allowed all of
 * them. Rules that are past their life stay in force while the file cannot be had, for a week, asked for again every five
 * minutes; then the host fails. One fetch at a time for each origin. The gate remembers no failure as a verdict in force:
 * when to ask again is the scheduler's decision, which lets the host rest and in the end gives it up. Anybody can link to a
 * port at which nothing listens: while another origin of the host has a verdict in force, only the URLs of the origin that
 * fails are put off, each within its retries.
 *
 *   #hosts   least recently used ... most: host -> origin -> entry; bounded in entries (and those of a host) and in bytes
 *            of text. What falls out is read from the store again, or fetched.
 */
import type { RobotsVerdict } from '../../storage/store.ts'
import type { Clock } from '../core/clock.ts'
import { failureRule, failureTable, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { fetchUrl, hostOfUrl, makeBase } from '../core/fetch-url.ts'
import { productTokenOf } from '../core/product-token.ts'
import { locationOf } from '../core/redirects.ts'
import type { FetchedResponse, Fetcher, FetchFailure } from '../fetch/fetcher.ts'
import { headerOf } from '../fetch/response-head.ts'
import { listOf, retryAfterMs } from '../page-meta.ts'
import { decideRobots, isRobotsFile } from './robots-matcher.ts'

type Verdict = RobotsVerdict[string]

/** As it came; `isCut`: its prefix, as much of it as is read. */
export interface RobotsFile {
  readonly body: Uint8Array
  /** All codings, the last applied last; empty without any. */
  readonly contentEncoding: string
  readonly isCut: boolean
}

/**
 * Reads a robots.txt in the pool, down to what the matcher takes: the rules of our group. Undefined: its coding is broken.
 */
export type ReadRobots = (file: RobotsFile, productToken: string) =>
  Promise<{ readonly lines: string, readonly crawlDelayMs?: number, readonly sitemaps?: readonly string[] } | undefined>

export type RobotsCheck =
  /** There is no verdict in force: `ask`. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'denied' }
  | { readonly kind: 'allowed', readonly crawlDelayMs?: number }
  /** The origin could not be asked, while another one of the host answers: its URLs are put off, and the host goes on. */
  | { readonly kind: 'put_off', readonly code: FailureCode, readonly waitMs: number }

export type RobotsAnswer =
  /** `fetch`: it could not be had, and an older one stays in force. */
  | { readonly kind: 'known', readonly fetch?: RobotsFailure['fetch'] }
  | { readonly kind: 'aborted' }
  /** A failure of the host; its code is one that is charged to hosts, or never tried again. */
  | RobotsFailure

export interface RobotsFailure {
  readonly kind: 'failed'
  readonly code: FailureCode
  readonly detail: string
  readonly retryAfterMs: number
  /** Another origin of the host has a verdict in force: the host is well, and only this origin is not. */
  readonly isOfOrigin?: true
  /** Of an answer that is no verdict. */
  readonly status?: number
  /** What its fetch ended with, when there was no answer. */
  readonly fetch?: { readonly code: FailureCode, readonly isLocal?: true, readonly timings: FetchFailure['timings'] }
}

export interface RobotsGateOptions {
  readonly fetcher: Pick<Fetcher, 'fetch'>
  readonly readRobots: ReadRobots
  readonly userAgent: string
  readonly clock: Clock
  /** Deadline of one fetch. */
  readonly deadlineMs: number
  /** What the store remembers of a host. */
  readonly stored: (host: string) => RobotsVerdict | undefined
  /** Hosts that are fetched without robots.txt, since their owner asked for it; absent: none. */
  readonly isExempt?: (host: string) => boolean
  readonly verdictsMax?: number
  readonly textBytesMax?: number
}

interface Entry {
  verdict: Verdict
  /** In force until then (wall clock); later than the verdict's own life while the file cannot be had. */
  inForceUntilMs: number
}

type Found =
  | { readonly kind: 'found', readonly verdict: Verdict }
  | Exclude<RobotsAnswer, { kind: 'known' }>

export class RobotsGate {
  readonly #is: RobotsGateOptions
  readonly #productToken: string
  readonly #verdictsMax: number
  readonly #textBytesMax: number
  readonly #hosts = new Map<string, Map<string, Entry>>()
  readonly #flights = new Map<string, Promise<RobotsAnswer>>()
  #verdicts = 0
  #textBytes = 0

  constructor(options: RobotsGateOptions) {
    this.#is = options
    this.#productToken = productTokenOf(options.userAgent)
    this.#verdictsMax = options.verdictsMax ?? limits.robotsVerdictsMax
    this.#textBytesMax = options.textBytesMax ?? limits.robotsTextBytesMax
  }

  /** What the verdict in force says of a URL. */
  check(text: string): RobotsCheck {
    const [url, host] = [new URL(text), hostOfUrl(text)]
    if (isRobotsFile(url) || this.#is.isExempt?.(host) === true) return { kind: 'allowed' }
    const entry = this.#entriesOf(host).get(url.origin)
    const leftMs = entry === undefined ? 0 : entry.inForceUntilMs - this.#is.clock.wallMs()
    if (entry === undefined || leftMs <= 0) return { kind: 'unknown' }
    if (entry.verdict.rule === 'disallow') return this.#hasOther(host, url.origin) ? { kind: 'put_off', code: failureOf(entry.verdict), waitMs: leftMs } : { kind: 'unknown' }
    const { lines = '', crawlDelayMs } = entry.verdict
    if (!decideRobots(lines, url).isAllowed) return { kind: 'denied' }
    return { kind: 'allowed', ...(crawlDelayMs === undefined ? {} : { crawlDelayMs }) }
  }

  /**
   * The sitemaps that the robots.txt of a URL's origin names: http(s) URLs, `limits.robotsSitemapsMax` at most, each once,
   * in their order. Empty as long as there is no verdict of it.
   */
  sitemapsOf(text: string): readonly string[] {
    return this.#entriesOf(hostOfUrl(text)).get(new URL(text).origin)?.verdict.sitemaps ?? []
  }

  /** Fetches the robots.txt for a URL's origin; those who ask meanwhile get the same answer. `onSend` as for a fetch. */
  async ask(text: string, signal?: AbortSignal, onSend?: () => void): Promise<RobotsAnswer> {
    const url = new URL(text)
    const flight = this.#flights.get(url.origin) ?? this.#start(url, signal, onSend)
    return await flight
  }

  /** The verdicts of a host's origins, in the form in which they are stored. */
  verdictsOf(host: string): RobotsVerdict {
    return Object.fromEntries([...this.#entriesOf(host)].map(([origin, { verdict }]) => [origin, verdict]))
  }

  stats(): { readonly hosts: number, readonly verdicts: number, readonly textBytes: number, readonly inFlight: number } {
    return { hosts: this.#hosts.size, verdicts: this.#verdicts, textBytes: this.#textBytes, inFlight: this.#flights.size }
  }

  #start(url: URL, signal: AbortSignal | undefined, onSend: (() => void) | undefined): Promise<RobotsAnswer> {
    const flight = this.#find(url.origin, signal, onSend)
      .then((found) => this.#keep(url, found))
      .finally(() => this.#flights.delete(url.origin))
    this.#flights.set(url.origin, flight)
    return flight
  }

  #keep(url: URL, found: Found): RobotsAnswer {
    if (found.kind === 'aborted') return found
    const nowMs = this.#is.clock.wallMs()
    const host = hostOfUrl(url.href)
    if (found.kind === 'found') {
      this.#set(host, url.origin, { verdict: found.verdict, inForceUntilMs: found.verdict.expiresAtMs })
      return { kind: 'known' }
    }
    const entry = this.#entriesOf(host).get(url.origin)
    if (entry !== undefined && entry.verdict.rule !== 'disallow' && nowMs < entry.verdict.expiresAtMs + limits.robotsStaleMsMax) {
      // The verdict keeps its own expiry, so that a restart does not lengthen its life.
      entry.inForceUntilMs = nowMs + limits.robotsAgeMsMin
      return { kind: 'known', ...(found.fetch && { fetch: found.fetch }) }
    }
    const { status, code, fetch, retryAfterMs } = found
    const isOfOrigin = this.#hasOther(host, url.origin)
    const waitMs = isOfOrigin ? Math.max(retryAfterMs, limits.robotsOriginRetryMs) : retryAfterMs
    const verdict: Verdict = { rule: 'disallow', ...(status !== undefined && { status }), code: fetch?.code ?? code, expiresAtMs: nowMs + waitMs }
    this.#set(host, url.origin, { verdict, inForceUntilMs: verdict.expiresAtMs })
    return { ...found, ...(isOfOrigin && { isOfOrigin }) }
  }

  /** Whether another origin of the host has a verdict in force. */
  #hasOther(host: string, origin: string): boolean {
    const nowMs = this.#is.clock.wallMs()
    return [...this.#entriesOf(host)].some(([name, { verdict, inForceUntilMs }]) => name !== origin && verdict.rule !== 'disallow' && inForceUntilMs > nowMs)
  }

  /** Follows the redirects to an answer. */
  async #find(origin: string, signal: AbortSignal | undefined, onSend: (() => void) | undefined): Promise<Found> {
    let url = `${origin}/robots.txt`
    for (let hop = 0; ; hop++) {
      const result = await this.#is.fetcher.fetch({
        url, bodyBytesMax: limits.robotsBytesMax, deadlineMs: this.#is.deadlineMs, acceptBody: () => 'read', ...(signal && { signal }), ...(onSend && { onSend }),
      })
      if (!result.ok) return failed(result, hop)
      try {
        const target = targetOf(result, url)
        if (target === undefined || hop === limits.robotsRedirectsMax) return await this.#read(result, url)
        url = target
      } finally {
        result.release()
      }
    }
  }

  /** The verdict of an answer that is not followed further. */
  async #read(response: FetchedResponse, url: string): Promise<Found> {
    const { status, headers } = response
    const nowMs = this.#is.clock.wallMs()
    if (status === 429 || status >= 500) {
      const waitMs = Math.max(limits.robotsRetryMsMin, retryAfterMs(headerOf(headers, 'retry-after'), nowMs))
      return { kind: 'failed', code: 'robots_unreachable', detail: `robots.txt answers ${status}`, status, retryAfterMs: waitMs }
    }
    const life = { status, expiresAtMs: nowMs + lifeMs(headerOf(headers, 'cache-control')) }
    if (status >= 300) return { kind: 'found', verdict: { rule: 'allow', ...life } }
    try {
      const file = { body: Buffer.concat(response.body), contentEncoding: listOf(headers, 'content-encoding'), isCut: response.truncated }
      const text = await this.#is.readRobots(file, this.#productToken)
      if (text === undefined) return unreadable(status, 'its content coding is broken')
      const { lines, crawlDelayMs } = text
      const delay = crawlDelayMs === undefined ? {} : { crawlDelayMs: Math.min(crawlDelayMs, limits.crawlDelayMsMax) }
      const sitemaps = sitemapsAt(url, text.sitemaps)
      const rules = lines === '' ? { rule: 'allow' as const } : { rule: 'rules' as const, lines }
      return { kind: 'found', verdict: { ...rules, ...delay, ...(sitemaps.length > 0 && { sitemaps }), ...life } }
    } catch (error) {
      return unreadable(status, (error as Error).message)
    }
  }

  /** A host's entries, from memory or else from the store; now the most recently used. */
  #entriesOf(host: string): Map<string, Entry> {
    const known = this.#hosts.get(host)
    if (known !== undefined) {
      this.#hosts.delete(host)
      this.#hosts.set(host, known)
      return known
    }
    const entries = new Map<string, Entry>()
    const latestMs = this.#is.clock.wallMs() + limits.robotsAgeMsMax
    for (const [origin, verdict] of Object.entries(this.#is.stored(host) ?? {})) {
      // Stored by a version that kept rules in another form.
      if (verdict.rule === 'rules' && verdict.lines === undefined) continue
      // The clock may have been wrong when it was stored.
      this.#add(entries, origin, { verdict, inForceUntilMs: Math.min(verdict.expiresAtMs, latestMs) })
    }
    if (entries.size === 0) return entries
    this.#hosts.set(host, entries)
    this.#evict()
    return entries
  }

  #set(host: string, origin: string, entry: Entry): void {
    const entries = this.#entriesOf(host)
    this.#hosts.set(host, entries)
    this.#add(entries, origin, entry)
    this.#evict()
  }

  #add(entries: Map<string, Entry>, origin: string, entry: Entry): void {
    this.#remove(entries, origin)
    if (entries.size >= limits.robotsOriginsMax) this.#remove(entries, entries.keys().next().value!)
    entries.set(origin, entry)
    this.#verdicts += 1
    this.#textBytes += charsOf(entry.verdict)
  }

  #remove(entries: Map<string, Entry>, origin: string): void {
    const entry = entries.get(origin)
    if (entry === undefined) return
    entries.delete(origin)
    this.#verdicts -= 1
    this.#textBytes -= charsOf(entry.verdict)
  }

  /** Forgets the hosts that were not used for longest; the last one stays, since it is being used. */
  #evict(): void {
    for (const [host, entries] of this.#hosts) {
      if (this.#hosts.size === 1 || (this.#verdicts <= this.#verdictsMax && this.#textBytes <= this.#textBytesMax)) return
      this.#hosts.delete(host)
      for (const origin of entries.keys()) this.#remove(entries, origin)
    }
  }
}

/** Undefined: it is no redirect, or leads nowhere. */
function targetOf({ status, headers }: FetchedResponse, url: string): string | undefined {
  const location = headerOf(headers, 'location')
  const target = location === undefined ? undefined : locationOf({ url, status, location })
  return target !== undefined && 'url' in target ? target.url : undefined
}

/** What Sitemap lines name in a file that was read at `url`: http(s) URLs, each once. */
export function sitemapsAt(url: string, lines: readonly string[] = []): readonly string[] {
  const base = makeBase(url)
  return [...new Set(lines.map((line) => fetchUrl(line, base)).filter((found) => found !== undefined))]
}

function charsOf({ lines = '', sitemaps = [] }: Verdict): number {
  return sitemaps.reduce((sum, { length }) => sum + length, lines.length)
}

/** What kept the robots.txt of an origin from being had. */
function failureOf({ code }: Verdict): FailureCode {
  return code !== undefined && code in failureTable ? code as FailureCode : 'robots_unreachable'
}

/** Rules that cannot be read are not the permission to fetch everything. */
function unreadable(status: number, why: string): Found {
  return { kind: 'failed', code: 'robots_unreachable', status, detail: `robots.txt cannot be read: ${why}`, retryAfterMs: limits.robotsRetryMsMin }
}

function failed({ code, detail, isLocal, timings }: FetchFailure, hop: number): Found {
  // What a gateway failed of says nothing of the host either.
  if (code === 'aborted' || failureRule(code).retry === 'gateway') return { kind: 'aborted' }
  // A host is charged with failures of its own making: not with another host's to which it redirects, and not with
  // one that belongs to a single URL (a timeout, a closed connection, bytes that are not HTTP).
  const isOfHost = hop === 0 && (failureRule(code).retry === 'host' || finalForHost.has(code))
  const own: FailureCode = isOfHost ? code : 'robots_unreachable'
  return { kind: 'failed', code: own, detail: `robots.txt: ${code}: ${detail}`, retryAfterMs: limits.robotsRetryMsMin, fetch: { code, timings, ...(isLocal === true && { isLocal }) } }
}

/** Failures that no second try can change, and that every URL of the origin shares. */
const finalForHost: ReadonlySet<FailureCode> = new Set(['address_refused', 'tls_name_mismatch', 'tls_untrusted', 'gateway_refused'])

/** How long an answer may be used (RFC 9111 section 5.2.2, as far as it is about age). */
function lifeMs(cacheControl: string | undefined): number {
  if (cacheControl === undefined) return limits.robotsAgeMsMax
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i.test(cacheControl)) return limits.robotsAgeMsMin
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,10})/i.exec(cacheControl)?.[1]
  if (maxAge === undefined) return limits.robotsAgeMsMax
  return Math.min(Math.max(Number(maxAge) * 1_000, limits.robotsAgeMsMin), limits.robotsAgeMsMax)
}

/**
 * Sitemaps in the crawl: which ones there are, how many are read at once, and how each ends. Their fetch is a page's
 * (fetch-stage.ts), with its delay, robots.txt, retries and lease, but for its body, which goes to the sitemap thread and
 * into no slot (sitemap-reading.ts). Main thread.
 *
 *   begun -> no place: put off
 *         -> fetched, each chunk read and its entries stored -> ended: read (ok), none (bad_sitemap), moved, not there
 *                                                           -> its thread died: once more, then bad_sitemap
 *
 * Invariant: a sitemap's row leaves the queue in a commit after those of its entries, so that a kill in its middle has it
 * read again and loses nothing. It is no page: neither in the sums of pages nor for `--max-pages`.
 */
import type { FailureCode } from './core/errors.ts'
import { limits } from './core/limits.ts'
import { hostOfUrl } from './core/fetch-url.ts'
import { locationOf } from './core/redirects.ts'
import { isNotModified, noLinks, stateOfOutcome, type LinkList, type PageMeta, type PageRecord, type QueuedUrl, type SitemapFacts } from './core/types.ts'
import { hostHashOf, keyOf, keyPolicyOf, sitemapFingerprintOf } from './core/url-key.ts'
import type { CrawlParts } from './crawl-parts.ts'
import type { FetchedResponse } from './fetch/fetcher.ts'
import { pageAnswerOf } from './page-meta.ts'
import { endRecord, recordLine } from './record-line.ts'
import { SitemapReading, type ReadingEnd } from './sitemap-reading.ts'
import { newSitemap, wellKnownSitemap, type EntryRules } from './sitemap-urls.ts'
import type { EndedUrl } from '../storage/store.ts'

type SitemapOutcome = Pick<EndedUrl, 'outcome' | 'links' | 'refused'> & Pick<PageRecord, 'redirectTo'> & { readonly code?: FailureCode; readonly facts: SitemapFacts }

export class SitemapStage {
  readonly #parts: CrawlParts
  readonly #rules: EntryRules
  readonly #openedAtMs: number
  #reading = 0
  /** Of each host whose sitemaps are read. */
  readonly #readingOf = new Map<string, number>()
  /** When the sitemap that was put off last comes again (monotonic). */
  #lastAtMs = 0

  constructor(parts: CrawlParts) {
    const { dedupe, exclude, include } = parts.options
    this.#parts = parts
    this.#openedAtMs = parts.clock.wallMs()
    this.#rules = { keyPolicy: keyPolicyOf(dedupe), include: include.map(patternOf), exclude: exclude.map(patternOf) }
  }

  /** A host has few of the places: one that sends a byte a second would hold all of them, and no other's sitemap were read. */
  isFullFor(host: string): boolean {
    return this.#reading >= limits.sitemapsReadingMax || (this.#readingOf.get(host) ?? 0) >= limits.sitemapsReadingPerHostMax
  }

  /** The verdict of its origin is in force: adds the sitemaps that robots.txt names. Once for each origin is enough. */
  discover({ url }: QueuedUrl): void {
    if (url !== wellKnownSitemap(url)) return
    const { commits, robots } = this.#parts
    const referrer = `${url.slice(0, url.lastIndexOf('/'))}/robots.txt`
    const named = robots.sitemapsOf(url).map((text) => newSitemap(text, this.#rules.keyPolicy, { depth: 0, referrer }))
    // In the commit of its own outcome at the latest. That nothing can be stored the run was told.
    if (named.length > 0) void commits.add(named, []).catch(() => {})
  }

  /** There is no place for a sitemap that was taken: it comes again, each one after the one before, so that they do not all come at once. */
  putOff(url: QueuedUrl): void {
    const { clock, commits, scheduler } = this.#parts
    const nowMs = clock.nowMs()
    this.#lastAtMs = Math.max(nowMs, this.#lastAtMs) + limits.sitemapPutOffMs
    scheduler.willComeLater(url)
    scheduler.places.move(url.sequence, 'commit')
    commits.defer({ url, attempts: url.attempts, notBeforeMs: scheduler.rowsMs() + this.#lastAtMs - nowMs, retry: false })
  }

  /** Takes a place, which the reading holds until it is closed. */
  open({ url, host, depth }: QueuedUrl, signal: AbortSignal): SitemapReading {
    const { clock, commits, sitemaps } = this.#parts
    this.#reading += 1
    this.#readingOf.set(host, (this.#readingOf.get(host) ?? 0) + 1)
    return new SitemapReading({
      sitemap: { url, depth, nowMs: clock.wallMs(), openedAtMs: this.#openedAtMs }, rules: this.#rules, signal,
      open: (head) => sitemaps!.open(head), add: (urls) => commits.add(urls, []),
    })
  }

  close({ host }: QueuedUrl, reading: SitemapReading): void {
    reading.close()
    this.#reading -= 1
    const others = this.#readingOf.get(host)! - 1
    if (others > 0) this.#readingOf.set(host, others)
    else this.#readingOf.delete(host)
  }

  /** Its server has answered, for the last time; its lease has ended. */
  async settle(url: QueuedUrl, meta: PageMeta, { answer, reading }: { readonly answer: FetchedResponse; readonly reading: SitemapReading }): Promise<void> {
    const { scheduler } = this.#parts
    const isRead = answer.status >= 200 && answer.status <= 299
    const end = isRead ? await reading.end(answer.truncated) : undefined
    answer.release()
    if (end?.kind === 'aborted') {
      scheduler.giveBackUnstored(url)
      scheduler.places.move(url.sequence, 'claimed')
    } else if (end?.kind === 'died' && url.attempts + 1 < limits.parseTriesMax) {
      this.#tryAgain(url)
    } else {
      this.#end(url, meta, answer, end === undefined ? this.#unreadOutcome(url, meta) : readOutcome(end))
    }
  }

  #tryAgain(url: QueuedUrl): void {
    const { commits, scheduler } = this.#parts
    scheduler.willComeLater(url)
    scheduler.places.move(url.sequence, 'commit')
    commits.defer({ url, attempts: url.attempts + 1, notBeforeMs: scheduler.rowsMs() + limits.backoffMsMin, retry: true })
  }

  #unreadOutcome(url: QueuedUrl, meta: PageMeta): SitemapOutcome {
    if (isNotModified(meta)) return { outcome: 'not_modified', links: noLinks, facts: {} }
    const target = locationOf(meta)
    if (target === undefined) return { outcome: 'http_error', links: noLinks, facts: {} }
    if ((url.redirectedFrom?.length ?? 0) >= limits.redirectsMax) return { outcome: 'failed', code: 'redirect_limit', links: noLinks, facts: {} }
    if ('refused' in target) return { outcome: 'redirect', redirectTo: target.text, links: noLinks, refused: { [target.refused]: 1 }, facts: {} }
    return { outcome: 'redirect', redirectTo: target.url, links: this.#movedTo(target.url), facts: {} }
  }

  /** The target is a sitemap too. */
  #movedTo(target: string): LinkList {
    const [fingerprint, hostHash] = [sitemapFingerprintOf(keyOf(target, this.#rules.keyPolicy)), hostHashOf(hostOfUrl(target))]
    return { count: 1, fingerprint: () => fingerprint, hostHash: () => hostHash, url: () => target, isRedirect: () => true }
  }

  #end(url: QueuedUrl, meta: PageMeta, answer: FetchedResponse, { facts, code, redirectTo, ...outcome }: SitemapOutcome): void {
    const { commits, events, recrawl, scheduler } = this.#parts
    const record: PageRecord = {
      ...endRecord(url, { outcome: outcome.outcome, atMs: meta.fetchedAtMs, attempts: meta.attempts, status: meta.status, timings: meta.timings, ...placeOf(meta), ...(code && { code }) }),
      ...(redirectTo !== undefined && { redirectTo }), ...(meta.contentType !== undefined && { contentType: meta.contentType }),
      wireBytes: answer.bodyBytes, ...(meta.tls && { tls: meta.tls }), sitemap: facts,
    }
    // What is not known whole must be sent whole the next time.
    const page = pageAnswerOf(url, meta, { outcome: facts.cut === true ? 'failed' : outcome.outcome as 'ok' })
    scheduler.places.move(url.sequence, 'commit')
    commits.end(recrawl.scheduled({ ...outcome, url, atMs: meta.fetchedAtMs, page, ...(code && { code }), line: recordLine(record), wireBytes: answer.bodyBytes, bodyBytes: 0 }))
    if (stateOfOutcome[outcome.outcome] === 'failed') events.failed(record)
  }
}

function patternOf(text: string): RegExp {
  return new RegExp(text, 'u')
}

function readOutcome(ending: Exclude<ReadingEnd, { kind: 'aborted' }>): SitemapOutcome {
  if (ending.kind === 'died') return { outcome: 'failed', code: 'bad_sitemap', links: noLinks, facts: { errors: [ending.detail] } }
  const { end: { type, entriesCount, isCut, errors }, newUrls, refused } = ending
  const facts = { ...(type && { type, entries: entriesCount, new: newUrls }), ...(isCut && { cut: true as const }), ...(errors.length > 0 && { errors }) }
  if (type === undefined) return { outcome: 'failed', code: 'bad_sitemap', links: noLinks, refused, facts }
  return { outcome: 'ok', links: noLinks, refused, facts }
}

function placeOf({ ip, gateway }: PageMeta): { ip?: string; gateway?: string } {
  return { ...(ip !== undefined && { ip }), ...(gateway !== undefined && { gateway }) }
}

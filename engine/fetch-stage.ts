/**
 * From a candidate to a complete body in memory, or to an outcome without one: ended hosts, robots.txt, the fetch, and
 * what its end means for URL and host. Main thread.
 *
 * Invariant: a lease ends in exactly one of: a body in `received`, a stored outcome, a stored deferral, given back to
 * its host. Nothing here waits for a later stage: room was asked for before `begin` was called.
 */
import { failureOfStatus, failureRule, isWall, type FailureCode, type WallCode } from './core/errors.ts'
import { limits } from './core/limits.ts'
import { noLinks, stateOfOutcome, type FetchedPage, type QueuedUrl } from './core/types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { publishFetch } from './events.ts'
import { acceptBody } from './fetch/content-type.ts'
import type { FetchResult } from './fetch/fetcher.ts'
import type { PressureMeter } from './flow/pressure.ts'
import { headerOf } from './fetch/response-head.ts'
import { conditionsOf, pageMetaOf, redirectWaitMs, retryAfterMs } from './page-meta.ts'
import { endRecord, recordLine, type EndFacts } from './record-line.ts'
import type { Run } from './run.ts'
import { readySinceMs, type Candidate, type Host, type Lease } from './schedule/host.ts'
import type { Blame } from './schedule/network-watch.ts'
import type { Ruling } from './schedule/rulings.ts'
import type { SitemapReading } from './sitemap-reading.ts'
import { SitemapStage } from './sitemap-stage.ts'
import { priceOf, wallInHead } from './web/challenge.ts'

type Answered = Extract<FetchResult, { ok: true }>
type Failed = Extract<FetchResult, { ok: false }>
/** What a fetch changes of its run. */
type AnyRun = Pick<Run<unknown>, 'aborter' | 'giveBack' | 'reserve' | 'wireBytes'>

/** A complete body in the fetcher's memory that waits for a slot; its bytes stay reserved until `release`. */
export interface Received {
  readonly url: QueuedUrl
  /** Monotonic. */
  readonly startedAtMs: number
  readonly page: FetchedPage
  readonly release: () => void
}

export interface FetchStageOptions {
  readonly parts: CrawlParts
  readonly meter: PressureMeter
  /** Something has ended that was under way. */
  readonly onProgress: () => void
  /** A broken invariant, or a bug: the run cannot go on. */
  readonly onBroken: (error: unknown) => void
}

/** How a URL was asked for. */
interface Asked {
  /** The server may answer that nothing has changed. */
  readonly isConditional: boolean
  /** Of a sitemap. */
  readonly reading: SitemapReading | undefined
}

/** Servers call sitemaps what they like. */
const anyBody = (): 'read' => 'read'

type Later = Extract<Ruling, { kind: 'rest' | 'retry' | 'back' }>

/** The URL has no outcome yet. */
function isLater(ruling: Ruling): ruling is Later {
  return ruling.kind === 'rest' || ruling.kind === 'retry' || ruling.kind === 'back'
}

export class FetchStage {
  readonly #parts: CrawlParts
  readonly #meter: PressureMeter
  readonly #sitemaps: SitemapStage
  readonly #onProgress: () => void
  readonly #onBroken: (error: unknown) => void
  #fetching = 0
  #askingRobots = 0
  /** Oldest first; the parse stage takes from its head. */
  readonly received: Received[] = []
  /** Challenge and block pages so far. */
  readonly walls: Record<WallCode, number> = { challenged: 0, blocked: 0 }

  constructor({ parts, meter, onProgress, onBroken }: FetchStageOptions) {
    this.#parts = parts
    this.#sitemaps = new SitemapStage(parts)
    this.#meter = meter
    this.#onProgress = onProgress
    this.#onBroken = onBroken
  }

  /** Requests under way, those for robots.txt among them. */
  get inFlight(): number {
    return this.#fetching + this.#askingRobots
  }

  begin(run: AnyRun, candidate: Candidate): void {
    const { clock, robots, scheduler } = this.#parts
    const { host, url } = candidate
    if (host.ended !== undefined) {
      scheduler.take(candidate)
      this.#endUnfetched(url, host.ended)
      return
    }
    const verdict = robots.check(url.url)
    if (url.kind === 'sitemap' && verdict.kind !== 'unknown' && verdict.kind !== 'put_off') this.#sitemaps.discover(url)
    if (verdict.kind === 'unknown') {
      scheduler.setGate(host, true)
      scheduler.hold(host, host)
      void this.#askRobots(run, host, url.url)
    } else if (verdict.kind === 'denied') {
      scheduler.take(candidate)
      this.#endUnfetched(url, { outcome: 'robots_denied', code: 'robots_disallowed' })
    } else if (verdict.kind === 'put_off') {
      scheduler.take(candidate)
      this.#putOff(url, verdict)
    } else if (url.kind === 'sitemap' && this.#sitemaps.isFullFor(host.name)) {
      scheduler.take(candidate)
      this.#sitemaps.putOff(url)
    } else {
      scheduler.setCrawlDelay(host, verdict.crawlDelayMs ?? 0)
      run.reserve(url)
      const waitedMs = clock.nowMs() - readySinceMs(host)
      this.#meter.queueAge.observe(waitedMs)
      const lease = scheduler.start(candidate)
      scheduler.places.move(url.sequence, 'fetch')
      void this.#fetch(run, lease, waitedMs)
    }
  }

  /** Its origin does not answer, though its host does: that is one try of the URL. */
  #putOff(url: QueuedUrl, { code, waitMs }: { readonly code: FailureCode; readonly waitMs: number }): void {
    const { commits, options, scheduler } = this.#parts
    const attempts = url.attempts + 1
    if (attempts > options.retries) return this.#endUnfetched(url, { outcome: 'failed', code, attempts })
    scheduler.willComeLater(url)
    scheduler.places.move(url.sequence, 'commit')
    commits.defer({ url, attempts, notBeforeMs: scheduler.rowsMs() + waitMs, retry: true })
  }

  /** Ends a URL without a fetch: its page has ended the process too often. */
  setAside(candidate: Candidate): void {
    this.#parts.scheduler.take(candidate)
    this.#endUnfetched(candidate.url, { outcome: 'failed', code: 'page_killed' })
  }

  async #askRobots(run: AnyRun, host: Host, url: string): Promise<void> {
    const { robots, scheduler, commits, network } = this.#parts
    const startedAtMs = host.startedAtMs
    const onSend = (): void => {
      scheduler.sent(host, host)
      this.#onProgress()
    }
    this.#askingRobots += 1
    network.begun(host)
    try {
      const answer = await robots.ask(url, run.aborter.signal, onSend)
      const verdict = robots.check(url)
      if (verdict.kind === 'allowed') scheduler.setCrawlDelay(host, verdict.crawlDelayMs ?? 0)
      const blame = answer.kind === 'aborted' ? 'network' : await this.#blame(run, { host, startedAtMs }, answer.fetch)
      if (answer.kind === 'failed' && blame === 'host' && answer.isOfOrigin !== true) scheduler.failHost(host, answer, startedAtMs)
      if (blame === 'host') commits.noteHost({ name: host.name, robots: robots.verdictsOf(host.name), crawlDelayMs: host.crawlDelayMs, ...(host.hasAnswered && { answered: true }) })
    } catch (error) {
      this.#onBroken(error)
    }
    network.ended(host)
    this.#askingRobots -= 1
    scheduler.sent(host, host)
    scheduler.setGate(host, false)
    this.#onProgress()
  }

  async #fetch(run: AnyRun, lease: Lease, waitedMs: number): Promise<void> {
    const { fetcher, gate, network, options, scheduler } = this.#parts
    const onBody = (bytes: number): void => scheduler.noteBody(lease.host, bytes, gate.memory.bodyBytes)
    const onSend = (): void => {
      scheduler.sent(lease.host, lease)
      this.#onProgress()
    }
    const reading = lease.url.kind === 'sitemap' ? this.#sitemaps.open(lease.url, run.aborter.signal) : undefined
    this.#fetching += 1
    network.begun(lease.host)
    try {
      const headers = conditionsOf(lease.url, options.format)
      const result = await fetcher.fetch({
        url: lease.url.url, bodyBytesMax: options.maxBodyBytes, deadlineMs: options.timeoutMs, acceptBody, onSend, onBody, isPaced: lease.isPaced, signal: run.aborter.signal,
        ...(headers && { headers }), ...(reading && { sink: reading, bodyBytesMax: limits.sitemapBytesMax, acceptBody: anyBody }),
      })
      this.#meter.fetched(result.timings)
      publishFetch(options.dir, lease.url, { result, waitedMs })
      if (result.ok) await this.#answered(run, lease, result, { isConditional: headers !== undefined, reading })
      else await this.#unanswered(run, lease, result)
    } catch (error) {
      this.#onBroken(error)
    }
    if (reading !== undefined) this.#sitemaps.close(lease.url, reading)
    network.ended(lease.host)
    this.#fetching -= 1
    this.#onProgress()
  }

  #answered(run: AnyRun, lease: Lease, answer: Answered, { isConditional, reading }: Asked): Promise<void> | undefined {
    const { scheduler, clock, gate, network, options } = this.#parts
    network.answered(lease.host)
    const code = wallInHead(answer.status, answer.headers) ?? failureOfStatus(answer.status)
    // Of other answers a Retry-After means nothing.
    const waitMs = code === undefined ? redirectWaitMs(lease.url, answer, clock.wallMs()) : retryAfterMs(headerOf(answer.headers, 'retry-after'), clock.wallMs())
    const price = code === 'http_402' ? priceOf(answer.headers) : undefined
    const ruling = scheduler.release(lease, code === undefined ? { ok: true, retryAfterMs: waitMs, latencyMs: gate.isOwnFault(lease.startedAtMs) ? undefined : answer.timings.ttfbMs } : { ok: false, code, retryAfterMs: waitMs, ...(price !== undefined && { price }), ...(answer.isFinal && { isFinal: true }) })
    if (isWall(code)) this.walls[code] += 1
    if (isLater(ruling)) {
      answer.release()
      this.#tryLater(run, lease.url, ruling)
      return undefined
    }
    if (isWall(code)) {
      answer.release()
      run.giveBack(lease.url)
      this.#endUnfetched(lease.url, { outcome: 'failed', code, attempts: lease.url.attempts + 1, status: answer.status, ...placeOf(answer), timings: answer.timings })
      return undefined
    }
    run.wireBytes += answer.bodyBytes
    const meta = pageMetaOf(lease.url, answer, lease.url.depth < options.maxDepth, isConditional)
    if (reading !== undefined) return this.#sitemaps.settle(lease.url, meta, { answer, reading })
    scheduler.places.move(lease.url.sequence, 'received')
    this.received.push({
      url: lease.url, startedAtMs: lease.startedAtMs, release: answer.release,
      page: { meta, headerBlock: answer.headerBlock, body: answer.body, bodyBytes: answer.bodyBytes },
    })
    return undefined
  }

  async #unanswered(run: AnyRun, lease: Lease, failed: Failed): Promise<void> {
    const { scheduler } = this.#parts
    if (failed.code === 'aborted' || failed.isStale === true || await this.#blame(run, lease, { ...failed, code: failed.code }) === 'network') {
      scheduler.giveBack(lease)
      scheduler.places.move(lease.url.sequence, 'claimed')
      run.giveBack(lease.url)
      return
    }
    const ruling = scheduler.release(lease, { ok: false, code: failed.code, ...(failed.isFinal && { isFinal: true }) })
    if (isLater(ruling)) {
      this.#tryLater(run, lease.url, ruling)
      return
    }
    run.giveBack(lease.url)
    this.#endUnfetched(lease.url, {
      outcome: 'failed', code: failed.code, attempts: lease.url.attempts + 1, timings: failed.timings,
      ...(failed.status !== undefined && { status: failed.status }), ...placeOf(failed),
    })
  }

  /** A page that was taken for an answer turned out to be a wall. Answers whether its URL goes back to the queue; else it ends as it is. */
  reconsider(run: AnyRun, url: QueuedUrl, code: WallCode, startedAtMs: number): boolean {
    this.walls[code] += 1
    const { gateways, scheduler } = this.#parts
    const ruling = scheduler.reconsider(url, code, startedAtMs, gateways?.of(url.host)?.config.retries === true)
    if (isLater(ruling)) this.#tryLater(run, url, ruling)
    return isLater(ruling)
  }

  /** Whose failure it is: told at once, unless the network here may be away. Without a failure, the host has answered. */
  #blame(run: AnyRun, { host, startedAtMs }: Pick<Lease, 'host' | 'startedAtMs'>, failed: { readonly code: FailureCode; readonly isLocal?: true; readonly timings: Failed['timings'] } | undefined): Promise<Blame> | Blame {
    const { network } = this.#parts
    if (failed === undefined || failureRule(failed.code).network !== true) {
      if (failed?.code !== 'address_refused' && failed?.code !== 'gateway_failed') network.answered(isOfGateway(failed?.code) ? undefined : host)
      return 'host'
    }
    // What is aborted comes again, whoever was to blame.
    if (run.aborter.signal.aborted) return 'network'
    const { dnsMs = 0, connectMs = 0, tlsMs = 0, ttfbMs = 0 } = failed.timings
    // A connection, and all the more the head of an answer, shows that the network was there at that moment.
    const reachedMs = connectMs + tlsMs + ttfbMs
    const reached = reachedMs === 0 ? {} : { reachedAtMs: startedAtMs + dnsMs + reachedMs }
    return new Promise((resolve) => { network.failed({ host, startedAtMs, isLocal: failed.isLocal === true, ...reached }, resolve) })
  }

  #tryLater(run: AnyRun, url: QueuedUrl, ruling: Later): void {
    const { commits, scheduler } = this.#parts
    run.giveBack(url)
    scheduler.places.move(url.sequence, ruling.kind === 'retry' ? 'commit' : 'claimed')
    if (ruling.kind === 'retry') commits.defer({ url, attempts: url.attempts + 1, notBeforeMs: scheduler.rowsMs() + ruling.waitMs, retry: true })
  }

  #endUnfetched(url: QueuedUrl, facts: Omit<EndFacts, 'atMs' | 'attempts'> & { attempts?: number }): void {
    const { clock, commits, events, recrawl, scheduler } = this.#parts
    scheduler.places.move(url.sequence, 'commit')
    const record = endRecord(url, { attempts: url.attempts, atMs: clock.wallMs(), ...facts })
    commits.end(recrawl.scheduled({
      url, outcome: record.outcome, atMs: Date.parse(record.fetchedAt), ...(record.code && { code: record.code }), links: noLinks, line: recordLine(record), wireBytes: 0, bodyBytes: 0,
    }))
    if (stateOfOutcome[record.outcome] === 'failed') events.failed(record)
  }
}

/** The gateway has answered, and not the host behind it. */
function isOfGateway(code: FailureCode | undefined): boolean {
  return code === 'gateway_throttled' || code === 'gateway_quota' || code === 'gateway_refused'
}

/** Where an answer came from. */
function placeOf({ ip, gateway }: FetchResult): Pick<EndFacts, 'ip' | 'gateway'> {
  return { ...(ip !== undefined && { ip }), ...(gateway !== undefined && { gateway }) }
}

/**
 * The library's face: composition and lifecycle. It wires the stages and owns what must be closed; what happens
 * between them is the crawl loop's. Main thread.
 *
 *     open -> (add, run or start, as often as wanted) -> close
 *
 * Invariant: whatever `open` has opened, `close` closes, in the reverse order, also when opening fails half-way; a
 * closed crawler leaves no handle, so the process ends by itself.
 */
import { addUrls, type AddTarget } from './add-urls.ts'
import type { AddOptions, AddResult, CrawlerEvents, CrawlState, HostPressure, HostStats, RequeueFilter, RequeueResult, RunOptions, SeedSource, StartOptions, Stats, Summary } from './core/api-types.ts'
import { bytesOf } from './commit-loop.ts'
import { SluiceError } from './core/errors.ts'
import { hostNameOf } from './core/host-name.ts'
import { resolveHostLimit, resolveRunLimits, type CrawlOptions, type CrawlOptionsGiven, type HostLimitGiven } from './core/options.ts'
import { stateOfOutcome, type PageRecord } from './core/types.ts'
import { CrawlLoop } from './crawl-loop.ts'
import { AckWindow } from './flow/ack-window.ts'
import { HostSurveys } from './flow/host-survey.ts'
import type { StatusServer } from './listen.ts'
import { openStages, type OpenedStages } from './open-stages.ts'
import type { Settled } from './parse-stage.ts'
import { stagesOf } from './pressure.ts'
import { requeueUrls, wantedOf } from './requeue.ts'
import { Run } from './run.ts'
import { hostStatsOf, LoopMeter, statsOf, statusOf, summaryOf } from './stats.ts'

export class Crawler {
  readonly #stages: OpenedStages
  readonly #loop: CrawlLoop
  readonly #meter = new LoopMeter()
  readonly #survey: HostSurveys
  readonly #openedAtMs: number
  #run: Run<Settled> | undefined
  #fetchesBefore = 0
  #state: CrawlState = 'open'
  #closing: Promise<void> | undefined
  /** The snapshot at its end: the store, which the others are read from, is closed. */
  #lastStats: Stats | undefined

  private constructor(stages: OpenedStages, loop: CrawlLoop) {
    this.#stages = stages
    this.#loop = loop
    this.#survey = new HostSurveys(stages.parts.scheduler.hosts, stages.parts.clock)
    this.#openedAtMs = stages.parts.clock.nowMs()
    stages.events.begin(stages.parts.clock, { get blockedOn() { return loop.blockedOn }, stages: () => stagesOf({ parts: stages.parts, meter: loop.meter }) })
  }

  /**
   * Opens a crawl directory, or makes one. A directory that holds a crawl goes on where it stopped, with its stored
   * options except for those given.
   *
   * @throws SluiceError `bad_option`, `file_unreadable`, `extractor_unloadable`; `dir_unusable`, `store_in_use`,
   *   `store_version`, `store_corrupt` (nothing is changed then); `port_in_use`
   */
  static async open(given: CrawlOptionsGiven = {}): Promise<Crawler> {
    const late: { loop?: CrawlLoop } = {}
    const stages = await openStages(given, {
      onWork: () => late.loop?.wake(),
      onCommitted: (batch, result) => late.loop?.committed(batch, result),
      onFailed: (error) => late.loop?.end('failed', true, error),
      onWorkerLost: (lost) => late.loop?.workerLost(lost),
    })
    late.loop = new CrawlLoop(stages.parts)
    const crawler = new Crawler(stages, late.loop)
    try {
      stages.parts.scheduler.open(stages.isContinued, stages.parts.suspects.hosts)
      if (stages.server !== undefined) await crawler.#tell(stages.server)
    } catch (error) {
      stages.events.stop()
      await stages.close().catch(() => {
        // Why it could not be opened says more.
      })
      throw error
    }
    return crawler
  }

  /** The directory held a crawl. */
  get isContinued(): boolean {
    return this.#stages.isContinued
  }

  /** Given options that differ from those stored, as `name: stored -> given`. */
  get changedOptions(): readonly string[] {
    return this.#stages.changedOptions
  }

  get options(): CrawlOptions {
    return this.#stages.parts.options
  }

  /** Where Prometheus finds its text, with the port that was taken; undefined without the option `listen`. */
  get metricsUrl(): string | undefined {
    return this.#stages.server?.metricsUrl
  }

  /**
   * Adds seeds, and their hosts (or domains) to the scope. Pulls from its source and waits for the store, so the source
   * may be endless. Texts that are no http(s) URL are counted and reported, not thrown. `close` ends it at its next batch.
   *
   * A URL that has its outcome already is known and left alone, unless `again` is set or its `lastmod` is later than its
   * last fetch: then it goes back to the queue, and its server is asked only for what has changed.
   *
   * @throws SluiceError `crawler_closed`, `bad_option`, `disk_failed`, and what the source throws
   */
  async add(urls: SeedSource, options: AddOptions = {}): Promise<AddResult> {
    this.#checkOpen()
    const { parts, scopeTable, keyPolicy } = this.#stages
    const add: AddTarget['add'] = (batch, scope) => {
      this.#checkOpen()
      return parts.commits.add(batch, scope)
    }
    return addUrls({ add, scope: parts.options.scope, scopeTable, keyPolicy, sitemaps: parts.options.sitemaps }, urls, options)
  }

  /**
   * Crawls, and hands out each page that a server answered. Asking for the next page acknowledges this one: only then is
   * its outcome stored. Leaving the loop gives back what was not acknowledged. One run at a time.
   *
   * @throws SluiceError `crawler_closed`, `already_running`, `bad_option`, and what ended the run when it failed
   */
  async *run(options: RunOptions = {}): AsyncGenerator<PageRecord, void, void> {
    const run = this.#begin(options, true)
    yield* this.#pagesOf(run)
    if (run.error !== undefined) throw run.error
  }

  /**
   * Crawls until nothing is left, a limit is reached or it is stopped. With `onPage` each page is acknowledged when the
   * promise that it returns resolves, one page at a time; without, pages are stored as they come.
   *
   * @throws SluiceError `crawler_closed`, `already_running`, `bad_option`, what ended the run when it failed, and
   *   `consumer_failed` when `onPage` throws; the page in hand is given back
   */
  async start({ onPage, ...options }: StartOptions = {}): Promise<Summary> {
    const run = this.#begin(options, onPage !== undefined)
    if (onPage === undefined) {
      await run.drained
      await this.#conclude(run)
    } else {
      for await (const page of this.#pagesOf(run)) await consume(onPage, page)
    }
    if (run.error !== undefined) throw run.error
    return summaryOf(this.#stages.parts, run, this.#loop)
  }

  /**
   * Ends the run as SIGINT does: aborts what is being fetched, stores what workers finish within a second; the rest comes
   * again in the next run. A consumer may still finish the page that it has in hand; its loop then ends. What a worker
   * has in hand is waited for (its deadline is 10 s), unless `slotsMs` says how long: then it comes again at the next
   * opening, and this crawler can only be closed.
   */
  async stop({ slotsMs = Number.POSITIVE_INFINITY }: { readonly slotsMs?: number } = {}): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    this.#loop.end('stopped', true)
    if (slotsMs < Number.POSITIVE_INFINITY) {
      const cancel = this.#stages.parts.clock.after(slotsMs, () => this.#loop.leaveSlots())
      void run.drained.then(cancel)
    }
    await run.drained
    if (run.window === undefined) await this.#conclude(run)
  }

  /** No URL is started until `resume`; what is under way goes on. */
  pause(): void {
    this.#loop.setPaused(true)
  }

  /** Goes on after `pause`, and through gateways that wait for somebody who has filled their quota. */
  resume(): void {
    this.#stages.parts.gateways?.resume()
    this.#loop.setPaused(false)
  }

  /** Once the crawler is closed: the last one. */
  stats(): Stats {
    return this.#lastStats ?? this.#statsFor(this.#meter)
  }

  /** The hosts in memory with work that are worst off: by health, then by the time since one of their URLs was started. At most 20, looked for once a second. */
  worstHosts(): readonly HostPressure[] {
    return this.#survey.read().worst
  }

  #statsFor(meter: LoopMeter): Stats {
    const { parts } = this.#stages
    return statsOf({
      parts, loop: this.#loop, meter, state: this.#state, run: this.#run,
      elapsedMs: Math.round(parts.clock.nowMs() - this.#openedAtMs),
      fetches: this.#fetchesBefore + (this.#run?.fetches ?? 0),
    })
  }

  /** What is known of a host; undefined when the crawl never met it. @throws SluiceError `crawler_closed`, `usage` */
  host(name: string): HostStats | undefined {
    this.#checkOpen()
    return hostStatsOf(this.#stages.parts, hostNameOf(name))
  }

  /**
   * Ends every queued URL of a host, or of several, without a fetch, now and later. A host may be written as anybody
   * would: a name in any case, a URL of it. One that could never match is refused, and then none is excluded, because
   * its owner would go on being crawled.
   *
   * @throws SluiceError `crawler_closed`, `usage`, `disk_failed`
   */
  async exclude(hosts: string | readonly string[]): Promise<void> {
    this.#checkOpen()
    const { commits, scheduler } = this.#stages.parts
    for (const name of [hosts].flat().map(hostNameOf)) {
      commits.noteHost({ name, excluded: true })
      scheduler.exclude(name)
    }
    await commits.flush()
    this.#loop.wake()
  }

  /**
   * Puts ended URLs back into the queue, to be fetched again by this run or the next; their hosts are tried though they
   * were given up. Looks at all ended URLs, in turns, so that a crawl goes on beside it; `onProgress` hears the sums so far.
   *
   * @throws SluiceError `crawler_closed`, `bad_option`, `usage` (a host that could never match), `disk_failed`
   */
  async requeue(filter: RequeueFilter, onProgress?: (soFar: RequeueResult) => void): Promise<RequeueResult> {
    this.#checkOpen()
    const { commits, scheduler, store } = this.#stages.parts
    return requeueUrls({
      store: {
        host: (name) => store.host(name),
        pageRows: (cursor, limit) => {
          this.#checkOpen()
          return store.pageRows(cursor, limit)
        },
      },
      revive: ({ name }) => scheduler.revive(name),
      again: (urls) => commits.again(urls),
    }, wantedOf(filter), onProgress)
  }

  /**
   * Changes the limit, the delay or the weight of a host, or of those that a pattern matches (`*.example.com`: all below
   * it; `*`: all), until the crawler is closed. What is said of a more specific pattern stands; a ceiling of a host is never passed, and that of a
   * unit of several hosts is the largest that was ever said of one of them.
   *
   * @throws SluiceError `crawler_closed`, `usage`, `bad_option`
   */
  setLimit(hosts: string, given: HostLimitGiven): void {
    this.#checkOpen()
    const pattern = hosts === '*' ? hosts : String(hosts).startsWith('*.') ? `*.${hostNameOf(hosts.slice(2))}` : hostNameOf(hosts)
    this.#stages.parts.scheduler.setLimit(pattern, resolveHostLimit(given))
    this.#loop.wake()
  }

  /** Listeners are called at once and not awaited; one that throws ends the run, as `internal`. */
  on<K extends keyof CrawlerEvents>(event: K, listener: (...args: CrawlerEvents[K]) => void): this {
    this.#stages.events.emitter.on(event, listener as never)
    return this
  }

  off<K extends keyof CrawlerEvents>(event: K, listener: (...args: CrawlerEvents[K]) => void): this {
    this.#stages.events.emitter.off(event, listener as never)
    return this
  }

  /** Answers what comes in through the control socket of the directory; one handler. */
  onControl(handler: (request: unknown) => Promise<object>): void {
    this.#stages.onControl(handler)
  }

  /** Stops a run, stores everything, and closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const run = this.#run
    await this.stop().catch(() => {
      // Whoever started the run is told what it failed of; here everything is closed all the same.
    })
    if (run !== undefined) await this.#conclude(run).catch(() => {})
    this.#state = 'closed'
    this.#stages.events.stop()
    await this.#stages.server?.close()
    try {
      this.#lastStats = this.stats()
    } finally {
      await this.#stages.close()
    }
  }

  async #tell(server: StatusServer): Promise<void> {
    const [meter, loop, survey] = [new LoopMeter(), this.#loop.meter, () => this.#survey.read()]
    const stats = (): Stats => this.#statsFor(meter)
    const { Prometheus } = await import('./flow/prometheus.ts')
    const metrics = new Prometheus({ stats, survey, meter: loop, places: this.#stages.parts.scheduler.places, workerLoops: () => this.#stages.parts.pool.stats().loops ?? [] })
    server.tell({ status: () => statusOf({ ...stats(), worstHosts: survey().worst, pid: process.pid }), metrics: () => metrics.text() })
  }

  #begin(options: RunOptions, hasConsumer: boolean): Run<Settled> {
    this.#checkOpen()
    if (this.#run !== undefined) throw new SluiceError('already_running', 'a run is under way; one crawler runs once at a time')
    const { signal, ...given } = options
    // Before anything begins: a run that fails to start would be one that is under way for ever.
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw new SluiceError('bad_option', 'signal: expected an AbortSignal')
    const { gate } = this.#stages.parts
    const window: AckWindow<Settled> | undefined = hasConsumer
      ? new AckWindow({
          sizeMax: () => gate.bounds.window.limit,
          // Once as bytes, and once as the record that is handed out.
          bytesOf: ({ ended }) => 2 * bytesOf(ended),
          bytesMax: gate.memory.windowBytes,
          isHanded: ({ ended }) => stateOfOutcome[ended.outcome] === 'done',
          onAck: (settled) => this.#loop.store(run, settled),
        })
      : undefined
    const run = new Run<Settled>({ limits: resolveRunLimits(given), startedAtMs: this.#stages.parts.clock.nowMs(), window })
    this.#run = run
    this.#state = 'running'
    this.#loop.begin(run)
    if (signal !== undefined) this.#stopOn(signal, run)
    return run
  }

  #stopOn(signal: AbortSignal, run: Run<Settled>): void {
    const stop = (): void => this.#loop.end('stopped', true)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    void run.drained.then(() => signal.removeEventListener('abort', stop))
  }

  async *#pagesOf(run: Run<Settled>): AsyncGenerator<PageRecord, void, void> {
    const window = run.window!
    try {
      for (let item = await window.next(); item !== undefined; item = await window.next()) yield item.record!
    } finally {
      this.#loop.end('stopped', true)
      await this.#conclude(run)
    }
  }

  #conclude(run: Run<Settled>): Promise<void> {
    run.concluding ??= this.#concludeOnce(run)
    return run.concluding
  }

  async #concludeOnce(run: Run<Settled>): Promise<void> {
    this.#state = 'draining'
    try {
      await this.#loop.conclude(run)
    } finally {
      this.#fetchesBefore += run.fetches
      this.#run = undefined
      this.#state = 'open'
    }
    if (run.reason === 'complete') this.#stages.events.emitter.emit('idle')
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new SluiceError('crawler_closed', 'the crawler is closed')
  }
}

async function consume(onPage: (page: PageRecord) => unknown, page: PageRecord): Promise<void> {
  try {
    await onPage(page)
  } catch (cause) {
    throw new SluiceError('consumer_failed', `onPage threw on ${page.url}: ${String(cause)}`, { cause })
  }
}

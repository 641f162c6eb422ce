/**
 * claim -> fetch -> parse -> commit -> release: the only file that sees every stage, and it only sequences.
 *
 *   scheduler.candidate -> fetch stage -> [received] -> parse stage -> [window] -> commits -> scheduler.settled
 *
 * `#pump` moves what can move, from the last stage to the first, so that room made at the end is used at once: results
 * leave their slots, slots take what was received, and then new fetches begin. It runs after every event, once a turn
 * of the event loop. Back-pressure is the absence of room: a consumer that does not acknowledge fills the window, a
 * full window leaves results in their slots, full slots stop the dispatch, and without dispatch nothing is claimed.
 * Besides, a pump moves what is due back into the queue, and suspects of an earlier death are dispatched before the rest.
 *
 * Invariant: no stage waits on one before it. Main thread.
 */
import type { CommitBatch, CommitResult } from '../storage/store.ts'
import type { BlockedOn, ShedStats } from './core/api-types.ts'
import { invariant, isWall, SluiceError, type WallCode } from './core/errors.ts'
import { limits } from './core/limits.ts'
import { stateOfOutcome, type QueuedUrl } from './core/types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { Dispatcher } from './dispatcher.ts'
import { DuePump } from './due-pump.ts'
import { comparedWithStored } from './near-duplicates.ts'
import { FetchStage } from './fetch-stage.ts'
import { PressureMeter } from './flow/pressure.ts'
import { ParseStage, type Settled } from './parse-stage.ts'
import type { Run } from './run.ts'
import { confirmPage } from './schedule/rulings.ts'

export class CrawlLoop {
  readonly #parts: CrawlParts
  readonly #fetches: FetchStage
  readonly #parses: ParseStage
  readonly #due: DuePump
  readonly #dispatcher: Dispatcher
  /** What it is blocked on, and how long things take. */
  readonly meter: PressureMeter
  #run: Run<Settled> | undefined
  #isPumpDue = false
  #cancelTimer: (() => void) | undefined
  #parked = 0
  /** Since when nothing was left but hosts that rest, probes that failed included (monotonic). */
  #restingSinceMs: number | undefined
  /** What ended a run as failed. */
  #failure: unknown
  /** What lies in slots is waited for no longer, and comes again. So these stages make no other run. */
  #leavesSlots = false

  constructor(parts: CrawlParts) {
    this.#parts = parts
    this.meter = new PressureMeter(parts.clock.nowMs())
    this.#parses = new ParseStage(parts, this.meter)
    this.#due = new DuePump(parts)
    this.#fetches = new FetchStage({ parts, meter: this.meter, onProgress: this.wake, onBroken: (error) => this.end('failed', true, error) })
    this.#dispatcher = new Dispatcher({ parts, fetches: this.#fetches, meter: this.meter, isDrained: () => this.#isDrained, wake: this.wake })
  }

  get blockedOn(): BlockedOn {
    return this.#dispatcher.shortage ?? this.meter.blocked.on
  }

  get inFlight(): number {
    return this.#fetches.inFlight
  }

  /** Bodies that wait for a slot. */
  get receivedCount(): number {
    return this.#fetches.received.length
  }

  /** Challenge and block pages so far. */
  get walls(): Readonly<Record<WallCode, number>> {
    return this.#fetches.walls
  }

  get shed(): ShedStats {
    return this.#dispatcher.shedding.stats
  }

  /** Links that workers dropped because they are known. */
  get linksKnown(): number {
    return this.#parses.linksKnown
  }

  /** URLs that the last run left waiting because their moment lies beyond the tail. */
  get parked(): number {
    return this.#parked
  }

  begin(run: Run<Settled>): void {
    this.#run = run
    this.#parked = 0
    this.#restingSinceMs = undefined
    if (run.limits.maxTimeMs < Number.POSITIVE_INFINITY) {
      const cancel = this.#parts.clock.after(run.limits.maxTimeMs, () => this.end('limit', true))
      void run.drained.then(cancel)
    }
    if (this.#leavesSlots) return this.end('failed', true, this.#failure ?? new SluiceError('crawler_closed', 'pages of the last run lie in slots; open the directory again'))
    this.wake()
  }

  /** Ends the run; `isAbort` also gives up what is being fetched. */
  end(reason: 'stopped' | 'failed' | 'limit', isAbort: boolean, error?: unknown): void {
    if (reason === 'failed') {
      this.#failure ??= error
      // No slot is parsed and no result is stored any more: waiting for them would be waiting for ever.
      this.#leavesSlots = true
    }
    const run = this.#run
    if (run === undefined) return
    // Also of a run that ends at a limit: its slots may be full.
    if (reason === 'stopped' && run.stop === 'none') {
      run.stop = 'draining'
      const cancel = this.#parts.clock.after(limits.stopDrainMs, () => {
        run.stop = 'withdrawing'
        this.wake()
      })
      void run.drained.then(cancel)
    }
    run.end(reason, error)
    if (isAbort) run.abort()
    if (run.aborter.signal.aborted) this.#parts.network.release()
    this.wake()
  }

  /**
   * A stop waits no longer for what no worker has taken, and for what has no slot: that comes again in the next run. So
   * does, later, a page whose worker died, unless another worker is faster.
   */
  #withdraw(): void {
    for (const { url, release } of this.#fetches.received.splice(0)) {
      release()
      this.#giveBack(url)
    }
    for (const url of this.#parses.withdraw()) this.#giveBack(url)
  }

  /** Of the run that is ending, gives up what still lies in slots: what a worker has in hand, and may have for long. */
  leaveSlots(): void {
    this.#leavesSlots = true
    this.wake()
  }

  setPaused(isPaused: boolean): void {
    this.#dispatcher.isPaused = isPaused
    this.wake()
  }

  /** Something has changed: pump once the present turn of the event loop is over. */
  readonly wake = (): void => {
    if (this.#isPumpDue) return
    this.#isPumpDue = true
    setImmediate(() => {
      this.#isPumpDue = false
      try {
        this.#pump()
      } catch (error) {
        this.end('failed', true, error)
      }
    })
  }

  /** Hands a page to the commit: it was acknowledged, or nobody consumes. */
  store(run: Run<Settled>, settled: Settled): void {
    const { ended, warc, record } = settled
    const isPage = stateOfOutcome[ended.outcome] === 'done'
    if (run.window !== undefined) {
      this.#parts.gate.bounds.window.left()
      // There is room in the window.
      this.wake()
    }
    if (isPage) run.pagesStored += 1
    else run.giveBack(ended.url)
    if (isPage) this.#restingSinceMs = undefined
    this.#parts.scheduler.places.move(ended.url.sequence, 'commit')
    this.#parts.commits.end(comparedWithStored(this.#parts, settled), warc)
    if (record === undefined) return
    if (isPage) this.#parts.events.page(record)
    else this.#parts.events.failed(record)
  }

  /** After the end was decided: gives back what nobody acknowledged, stores the rest, and cuts the WARC files to that. */
  async conclude(run: Run<Settled>): Promise<void> {
    const inHand = run.window?.takeBack()
    if (inHand !== undefined) this.#giveBack(inHand.ended.url)
    await run.drained
    this.#run = undefined
    await this.#parts.commits.flushLast()
    if (this.#failure !== undefined) throw run.error ?? this.#failure
    // While pages lie in slots workers may append, so that the next opening has to cut the WARC files.
    if (!this.#leavesSlots) await this.#parses.cutWarc()
    this.meter.blocked.found('idle', this.#parts.clock.nowMs())
  }

  /** Its URLs are in the queue still, so that none of them is new when it is given again. */
  #isParked(host: string): boolean {
    const { scheduler, store } = this.#parts
    return (scheduler.host(host) ?? store.host(host))?.parked !== undefined
  }

  /** A batch is stored: its leases end, its hosts may have more to do. */
  readonly committed = (batch: CommitBatch, result: CommitResult): void => {
    const { gate, scheduler } = this.#parts
    gate.bounds.commitUrls.left(batch.ended.length + batch.deferred.length)
    for (const { url } of [...batch.ended, ...batch.deferred]) scheduler.settled(url.host, url.sequence)
    for (const { name, priority } of result.hostsGrown) scheduler.grow(name, priority)
    // Only for those who ask for it: a page that falls due again gives no dead host a new chance.
    for (const [i, { host, again }] of batch.added.entries()) if (again === true && (result.addedNew[i] === true || this.#isParked(host))) scheduler.revive(host)
    this.#dispatcher.shedding.stored(result)
    this.#parses.stored(batch.warcLengths)
    this.#due.changed()
    this.wake()
  }

  /** A worker died and has left: its WARC file must end with the last page that reached a done slot. */
  readonly workerLost = async (lost: { readonly warcFile?: number; readonly warcLength: number }): Promise<void> => {
    if (lost.warcFile === undefined) return
    try {
      await this.#parts.store.cutWarc(lost.warcFile, lost.warcLength)
    } catch (error) {
      this.end('failed', true, error)
    }
  }

  #pump(): void {
    const run = this.#run
    if (run === undefined) return
    this.#collect(run)
    // A run that is over waits for no room on the disk: only the run that goes on does.
    if (run.stop === 'withdrawing' || (run.reason !== undefined && this.#dispatcher.isStuck)) this.#withdraw()
    else this.#parses.fill(this.#fetches.received)
    if (run.reason === undefined) this.#dispatcher.dispatch(run)
    // Last, since a suspect begins only while no commit is under way.
    if (run.reason === undefined && !this.#dispatcher.isPaused) this.#due.pump()
    this.#decideEnd(run)
    if (run.reason === undefined) this.#setTimer()
    else this.#finishIfDrained(run)
  }

  /** Takes results out of their slots as far as those after them have room. */
  #collect(run: Run<Settled>): void {
    const { commits, events, scheduler } = this.#parts
    const isConsumerGone = run.window !== undefined && run.aborter.signal.aborted
    if (isConsumerGone || (run.reason !== undefined && commits.isStuck)) return this.#collectUnwanted()
    const needsRecord = run.window !== undefined || events.areHeard
    while (!commits.isFull && run.window?.isFull !== true) {
      const settled = this.#parses.collect(needsRecord)
      if (settled === undefined) return
      this.#parts.gate.bounds.slots.left()
      if (this.#isWall(run, settled)) continue
      if (run.window === undefined) {
        this.store(run, settled)
        continue
      }
      scheduler.places.move(settled.ended.url.sequence, 'window')
      run.window.push(settled)
    }
  }

  /** The worker found a wall in the place of the page, and its URL goes back to the queue. */
  #isWall(run: Run<Settled>, { ended: { url, code }, startedAtMs }: Settled): boolean {
    if (isWall(code)) return this.#fetches.reconsider(run, url, code, startedAtMs)
    confirmPage(this.#parts.scheduler.host(url.host))
    return false
  }

  /** The consumer will ask for no more pages, or none can be stored: what lies in slots comes again. */
  #collectUnwanted(): void {
    for (let settled = this.#parses.collect(false); settled !== undefined; settled = this.#parses.collect(false)) {
      this.#giveBack(settled.ended.url)
    }
  }

  #decideEnd(run: Run<Settled>): void {
    const { clock, commits, network, options, scheduler, store } = this.#parts
    if (run.reason !== undefined || this.#dispatcher.isPaused || !this.#isDrained || !commits.isIdle) return
    if ((run.window?.size ?? 0) > 0) return
    const dueInMs = this.#due.waitMs
    const isDueSoon = dueInMs !== undefined && dueInMs <= options.tailMs
    if (scheduler.leasedCount === 0 && scheduler.isEmpty && !isDueSoon) {
      invariant(store.counters().pending === 0, 'nothing is pending when no host has work')
      return run.end('complete')
    }
    if (!run.hasRoom) return run.end('limit')
    if (isDueSoon) return
    const restingUntilMs = scheduler.restingUntilMs()
    this.#restingSinceMs = restingUntilMs === undefined ? undefined : this.#restingSinceMs ?? clock.nowMs()
    // A network that is away for so long is waited for in another run: nothing of it was charged.
    const isLongDown = network.downForMs > Math.max(options.tailMs, limits.networkDownMsMax)
    // Parked hosts wait for somebody, which no tail waits for.
    if (!isLongDown && (restingUntilMs === undefined || (restingUntilMs < Number.POSITIVE_INFINITY && restingUntilMs - this.#restingSinceMs! <= options.tailMs))) return
    this.#parked = store.counters().pending
    run.end('complete')
  }

  get #isDrained(): boolean {
    return this.inFlight === 0 && this.receivedCount === 0 && this.#parses.size === 0
  }

  #finishIfDrained(run: Run<Settled>): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const isDrained = this.#leavesSlots ? this.inFlight === 0 : this.#isDrained
    if (run.aborter.signal.aborted || isDrained) for (const { ended } of run.window?.close() ?? []) this.#giveBack(ended.url)
    if (isDrained) run.drain()
  }

  #giveBack(url: QueuedUrl): void {
    this.#parts.scheduler.giveBackUnstored(url)
    this.#parts.scheduler.places.move(url.sequence, 'claimed')
    this.#run?.giveBack(url)
  }

  #setTimer(): void {
    const { clock } = this.#parts
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#dispatcher.isPaused) return
    const waitMs = Math.min((this.#dispatcher.againAtMs ?? Number.POSITIVE_INFINITY) - clock.nowMs(), this.#due.lookInMs)
    if (waitMs < Number.POSITIVE_INFINITY) this.#cancelTimer = clock.after(waitMs, this.wake)
  }
}

/**
 * The parse stage as the main thread sees it: slots (slots.ts) to be filled with pages and emptied of results, and the
 * pool of workers that take turns at them (turns.ts). Main thread; the only importer of piscina.
 *
 * Invariants: a ticket given by `fill` comes out of `collect` or of `withdraw`, and exactly once, whatever happens to
 * workers; a slot is not touched before the thread that had it in hand has exited; when nothing is outstanding, no timer
 * and no wait is left, and the process may end.
 *
 * Piscina traps met here: it forgets a worker before the thread has exited (worker-registry.ts); after one worker died
 * while starting it replaces no dead worker any more, until a task is run (`#nudge`); a task with an AbortSignal waits
 * in a queue that `maxQueue` does not bound, so turns are counted here; `atomics: 'sync'` would stop a worker's loop.
 */
import { Piscina } from 'piscina'
import type { Clock } from '../engine/core/clock.ts'
import { invariant, SluiceError } from '../engine/core/errors.ts'
import { limits } from '../engine/core/limits.ts'
import type { FetchedPage } from '../engine/core/types.ts'
import { Arena, control } from './arena.ts'
import { RingWait } from './ring-wait.ts'
import type { RingCounts } from './ring.ts'
import type { RobotsText } from './robots-text.ts'
import { Slots, type CollectedPage, type ParseFailure } from './slots.ts'
import type { TurnResult } from './turn.ts'
import { Turns, type EndedTurn } from './turns.ts'
import type { RobotsTask } from './worker-entry.ts'
import type { WorkerOptions } from './worker-options.ts'
import { workerPath } from './worker-path.ts'
import { WorkerRegistry, type LoopTimes } from './worker-registry.ts'

export interface ParsePoolOptions {
  readonly threads: number
  readonly maxBodyBytes: number
  readonly worker: Omit<WorkerOptions, 'arena' | 'maxBodyBytes'>
  readonly clock: Clock
  /** A page may be in a worker's hands for so long; default limits.parseDeadlineMs. */
  readonly deadlineMs?: number
  /** Limit of each worker's heap; default limits.workerHeapMb. */
  readonly heapMb?: number
  readonly turnMs?: number
  readonly slots?: number
  /** Further flags of Node for the workers. */
  readonly execArgv?: readonly string[]
}

export type { CollectedPage, ParseFailure }

export interface LostWorker {
  /** The file that the worker appended to; absent when it had none. Nobody appends to it any more. */
  readonly warcFile?: number
  /** Where the last record ends whose page reached a done slot. What follows must be cut. */
  readonly warcLength: number
  readonly code: ParseFailure
}

export interface ParsePoolStats extends RingCounts {
  readonly slots: number
  readonly turns: number
  readonly workersLost: number
  /** Age of the page that has waited longest for a worker; 0 when none waits. */
  readonly oldestFilledMs: number
  /** Age of the page that has no result for longest since it was filled; 0 when none is. Absent where no slots are. */
  readonly oldestUnreadMs?: number
  /** Age of the page that is done and waits longest to be collected; 0 when none does. Absent likewise. */
  readonly oldestDoneMs?: number
  /** Of each worker. Absent where no threads parse. */
  readonly loops?: readonly LoopTimes[]
  /** Mean share of time in which the workers were busy since the last call, from 0 to 1. */
  readonly utilization: number
}

/** Deaths of workers and failures of turns, one after the other, without a page in hand: then the pages are charged, so that the crawl goes on. */
const DEATHS_IN_A_ROW_MAX = 16
/**
 * Piscina tries require() on its file first. When a worker is ended while require() loads an ES module, Node 20 aborts
 * the whole process ("IsGraphAsync must be used on an instantiated module", 1 in about 1,500 kills); import() does not.
 */
const WORKER_FLAGS = ['--no-experimental-require-module']
/** One robots.txt for each host that is being opened, see the option `connections`. */
const ROBOTS_QUEUED_MAX = 10_000

/** 0 for what is not there: its moment is infinite. */
function ageMs(atMs: number, nowMs: number): number {
  return Math.max(0, nowMs - atMs)
}

export class ParsePool {
  /** Called on the loop, once for many events, when something may be collected or a slot may be free. */
  onProgress: () => void = () => {}
  /** Called when a worker died in its turn and its thread has exited. */
  onWorkerLost: (lost: LostWorker) => void = () => {}
  /** Called when a WARC file could not be written. No more pages are parsed then. */
  onDiskFailed: (error: SluiceError) => void = () => {}
  /** Called when there was no room for a WARC record: the page comes again, and no worker takes one before `retry`. */
  onDiskFull: () => void = () => {}

  readonly #options: ParsePoolOptions
  readonly #arena: Arena
  readonly #slots: Slots
  readonly #pool: Piscina
  readonly #registry: WorkerRegistry
  readonly #wait: RingWait
  readonly #turns: Turns
  #workersLost = 0
  #deathsInARow = 0
  #isProgressDue = false
  #isStuck = false
  #closing: Promise<void> | undefined

  private constructor(options: ParsePoolOptions) {
    const { clock, maxBodyBytes, threads, deadlineMs = limits.parseDeadlineMs, turnMs = limits.turnMsMax } = options
    this.#options = options
    this.#arena = Arena.create(maxBodyBytes, options.slots)
    this.#arena.control[control.warcFileNext] = options.worker.warcFileFirst ?? 0
    this.#slots = new Slots(this.#arena)
    const workerData: WorkerOptions = { ...options.worker, arena: this.#arena.memory, maxBodyBytes }
    this.#pool = new Piscina({
      filename: workerPath(), name: 'turn', workerData,
      minThreads: threads, maxThreads: threads, idleTimeout: Number.POSITIVE_INFINITY, maxQueue: ROBOTS_QUEUED_MAX,
      atomics: 'disabled', recordTiming: false, execArgv: [...WORKER_FLAGS, ...options.execArgv ?? []],
      resourceLimits: { maxOldGenerationSizeMb: options.heapMb ?? limits.workerHeapMb },
    })
    // A worker that dies without a task is replaced like any other; its exit is counted, its error has no page.
    this.#pool.on('error', () => {})
    this.#registry = new WorkerRegistry(() => this.#pool.threads, () => this.#exited())
    this.#pool.on('workerCreate', () => this.#registry.track())
    this.#wait = new RingWait(this.#arena.control, control.doneCount, () => this.#progress())
    this.#turns = new Turns({
      arena: this.#arena, ring: this.#slots.ring, clock, threads, turnMs, deadlineMs,
      run: (task, signal) => this.#pool.run(task, { signal }) as Promise<TurnResult>,
      departed: () => this.#registry.departed(),
      onEnd: (turn) => this.#turnEnded(turn),
    })
  }

  /** Starts the workers and has one load what pages need. Throws `extractor_unloadable`. */
  static async open(options: ParsePoolOptions): Promise<ParsePool> {
    const pool = new ParsePool(options)
    const late = new AbortController()
    const cancel = options.clock.after(options.deadlineMs ?? limits.parseDeadlineMs, () => late.abort())
    try {
      await pool.#pool.run(undefined, { name: 'ready', signal: late.signal })
      return pool
    } catch (error) {
      await pool.close()
      const { extractor } = options.worker
      if (extractor === undefined) throw new SluiceError('internal', `no parse worker could be started: ${String(error)}`, { cause: error })
      const reason = late.signal.aborted ? 'it does not finish loading' : (error as Error).message
      throw new SluiceError('extractor_unloadable', reason.startsWith(extractor) ? reason : `${extractor}: ${reason}`, { cause: error })
    } finally {
      cancel()
    }
  }

  get slotsFree(): number {
    return this.#closing === undefined ? this.#slots.ring.free : 0
  }

  /** Copies the page into a free slot. Answers its ticket, or undefined when no slot is free. */
  fill(page: FetchedPage): number | undefined {
    if (this.#closing !== undefined) return undefined
    // Waits before the page can be done, so that no change is missed.
    this.#wait.start()
    const ticket = this.#slots.fill(page, this.#options.clock.nowMs())
    if (ticket !== undefined) this.#turns.start()
    return ticket
  }

  /** Takes up to `max` finished pages, oldest first, and releases their slots. */
  collect(max: number): CollectedPage[] {
    const pages: CollectedPage[] = []
    while (pages.length < max) {
      const page = this.#slots.collect()
      if (page === undefined) break
      pages.push(page)
    }
    if (pages.some((page) => 'result' in page)) this.#deathsInARow = 0
    if (this.#slots.ring.outstanding === 0) this.#wait.stop()
    return pages
  }

  /** Pages wait in their slots for room on the disk. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** There may be room on the disk again. */
  retry(): void {
    if (!this.#isStuck) return
    // Those that waited for room may have been withdrawn: then no turn is taken that could tell.
    this.#isStuck = this.#slots.ring.outstanding > 0
    this.#turns.resume()
  }

  /** Takes back the pages that wait for a worker: answers their tickets, which are void now. */
  withdraw(): readonly number[] {
    const tickets = this.#slots.withdraw()
    if (this.#slots.ring.outstanding === 0) this.#wait.stop()
    return tickets
  }

  /**
   * Reads a robots.txt in a worker; undefined when its coding is broken. Rejects when the pool is closed meanwhile, or
   * when two workers died of it.
   */
  async readRobots(file: Omit<RobotsTask, 'agent'>, productToken: string): Promise<RobotsText | undefined> {
    const task: RobotsTask = { ...file, agent: productToken }
    for (let tries = 1; ; tries += 1) {
      if (this.#closing !== undefined) throw new SluiceError('crawler_closed', 'the parse pool is closed')
      // Tells the workers that a task waits, so that turns end sooner.
      Atomics.add(this.#arena.control, control.tasksWaiting, 1)
      try {
        return await this.#pool.run(task, { name: 'robots' }) as RobotsText | undefined
      } catch (error) {
        if (tries >= limits.parseTriesMax) throw new SluiceError('internal', `a robots.txt cost ${tries} workers their life`, { cause: error })
      } finally {
        // Tells the workers that it waits no longer.
        Atomics.sub(this.#arena.control, control.tasksWaiting, 1)
      }
    }
  }

  /** All slots are free: from the next page on, workers append to new WARC files. */
  rotateWarc(): void {
    invariant(this.#slots.ring.outstanding === 0, 'WARC files are changed while no page is in a slot')
    // Tells the workers, who look at it before each record.
    Atomics.add(this.#arena.control, control.warcEpoch, 1)
  }

  /** Age of the page that has waited longest for a worker; 0 when none waits. Looks at every slot. */
  get oldestFilledMs(): number {
    return ageMs(this.#slots.look().oldestFilledAtMs, this.#options.clock.nowMs())
  }

  stats(): ParsePoolStats {
    const { oldestFilledAtMs, oldestUnreadAtMs, oldestDoneAtMs, ...counts } = this.#slots.look()
    const nowMs = this.#options.clock.nowMs()
    return {
      slots: this.#arena.slots, ...counts, turns: this.#turns.count, workersLost: this.#workersLost,
      oldestFilledMs: ageMs(oldestFilledAtMs, nowMs), oldestUnreadMs: ageMs(oldestUnreadAtMs, nowMs), oldestDoneMs: ageMs(oldestDoneAtMs, performance.timeOrigin + performance.now()),
      utilization: this.#registry.utilization(), loops: this.#registry.loops(),
    }
  }

  /** Ends the workers, whatever they do. Resolves when their threads have exited; nothing is left open. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#turns.stop()
    this.#wait.stop()
    await this.#pool.destroy()
    await this.#registry.departed()
    await this.#turns.settled()
  }

  #progress(): void {
    if (this.#isProgressDue) return
    this.#isProgressDue = true
    setImmediate(() => {
      this.#isProgressDue = false
      if (this.#closing === undefined) this.onProgress()
    })
  }

  #turnEnded({ owner, end }: EndedTurn): void {
    if (this.#closing !== undefined) return
    if (end.kind === 'returned') {
      if (end.result.kind === 'overflow') this.#slots.arrived(end.result.slot, end.result.frame)
      if (end.result.kind === 'disk_failed') return this.#diskFailed(end.result.message)
      if (end.result.kind === 'disk_full') this.#diskFull(owner)
      else if (!this.#turns.isPaused) this.#isStuck = false
    } else {
      const hadPage = this.#slots.takeBack(owner, end.code)
      this.#deathsInARow = hadPage ? 0 : this.#deathsInARow + 1
      if (this.#deathsInARow > DEATHS_IN_A_ROW_MAX) this.#slots.chargeOldest(end.code)
      this.#reportLost(owner, end.code)
    }
    this.#progress()
  }

  #reportLost(owner: number, code: ParseFailure): void {
    // Reads the file that the worker named before it began it; its thread has exited.
    const file = Atomics.load(this.#arena.warcFiles, owner) - 1
    if (file < 0) return this.onWorkerLost({ warcLength: 0, code })
    this.onWorkerLost({ warcFile: file, warcLength: this.#slots.warcEnd(file), code })
  }

  #diskFailed(message: string): void {
    this.#turns.stop()
    this.onDiskFailed(new SluiceError('disk_failed', message))
  }

  #diskFull(owner: number): void {
    this.#isStuck = true
    this.#turns.pause()
    this.#slots.putBack(owner)
    this.onDiskFull()
  }

  #exited(): void {
    if (this.#closing !== undefined) return
    this.#workersLost += 1
    this.#deathsInARow += 1
    this.#registry.track()
    if (this.#deathsInARow > DEATHS_IN_A_ROW_MAX) this.#turns.abortIdle('parse_crashed')
    this.#nudge()
  }

  /** A pool that is short of workers starts one for a task, but not for tasks that wait already. */
  #nudge(): void {
    if (this.#pool.threads.length >= this.#options.threads) return
    // A worker that dies of it too is counted by its exit.
    this.#pool.run(undefined, { name: 'ready' }).catch(() => {})
    this.#registry.track()
  }
}


/**
 * Keeps an engine running: starts its process, starts it again when it dies, and gives up when that does not help. V8
 * can abort a whole process because of one page, and the store has been made for it: what was committed is there, and
 * what was not is fetched again. Runs in the parent; never touches the store.
 *
 *            start             opened               ended, failed
 *   (pause) -------> opening ----------> running -----------------> result
 *      ^               | dies               | dies
 *      |               v                    |
 *      |            result: the store       |
 *      +------------- is unusable ----------+   deathsMax in a row within deathsWindowMs: result: failed
 *
 * A row of deaths ends where something was stored: an engine that has other sums when it is opened than the one before
 * it had. So a crawl with many pages that end the process gets through, each of them three deaths (one in company and
 * two alone, see suspects.ts) before it is set aside, which is stored; and one that dies of something else is given up.
 * Pauses grow along a row.
 *
 * stop() once: the engine is asked to end, and killed when it takes too long. Twice: it is killed at once.
 */
import type { Summary } from '../core/api-types.ts'
import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Counters } from '../core/types.ts'
import type { Death, EngineProcess } from './engine-process.ts'
import { noFailures, type FailureCounts, type RunBaseline, type StartMessage, type ToParent } from './messages.ts'

const deathsMax = 5
const deathsWindowMs = 10 * 60_000
const pauseMsMin = 1_000
/** Ctrl-C below `npm start` comes twice, from the terminal and from npm: signals this close together are one. */
const signalsApartMs = 100
/** What is left of the time to stop is for this process. */
const stopGraceMs = limits.stopMsMax - 200

/** How it ended. */
export type Ending =
  | { readonly kind: 'ended'; readonly summary: Summary; readonly failures: FailureCounts }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string; readonly stack?: string }
  /** By a signal, before the engine could say anything. */
  | { readonly kind: 'stopped' }

export interface SupervisorOptions {
  readonly clock: Clock
  /** The message of the first start. */
  readonly first: StartMessage
  /** Named in messages. */
  readonly dir: string
  /** Whether the seeds can be read a second time. */
  readonly canReread: boolean
  /** Starts a process; with seeds, it gets the seed file as its standard input. */
  readonly start: (onMessage: (message: ToParent) => void, withSeeds: boolean) => EngineProcess
  /** Every message of the engine. */
  readonly onMessage: (message: ToParent) => void
  /** The engine died and will be started again. */
  readonly onDeath: (text: string, pauseMs: number) => void
}

export class Supervisor {
  readonly #options: SupervisorOptions
  #engine: EngineProcess | undefined
  #ending: Ending | undefined
  #isOpened = false
  #isSeeded = false
  /** Where the first engine answered: the next ones do so there too, whatever port was free. */
  #listen: string | undefined
  #baseline: { readonly pages: number; readonly wireBytes: number } | undefined
  #stops = 0
  #stopAtMs = Number.NEGATIVE_INFINITY
  #endPause: () => void = () => undefined
  #cancelKill: () => void = () => undefined
  /** The row of deaths. */
  #deathsAtMs: number[] = []
  #storedBefore: number | undefined
  /** Of the engines that died, as far as they told, and with those of the one that runs. */
  #failuresBefore = noFailures
  #failures = noFailures

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** Runs engines until one has ended by itself, or must not be started again. */
  async run(): Promise<Ending> {
    const startedAtMs = this.#options.clock.nowMs()
    for (;;) {
      const death = await this.#live(startedAtMs)
      const ending = this.#ending ?? this.#afterDeath(death)
      if (ending !== undefined) return ending
      const pauseMs = pauseMsMin * 2 ** (this.#deathsAtMs.length - 1)
      this.#options.onDeath(deathText(death), pauseMs)
      await this.#pause(pauseMs)
      if (this.#stops > 0) return { kind: 'stopped' }
    }
  }

  /** Answers false for a signal that is the echo of the one before. */
  stop(): boolean {
    const nowMs = this.#options.clock.nowMs()
    if (nowMs - this.#stopAtMs < signalsApartMs) return false
    this.#stopAtMs = nowMs
    this.#stops += 1
    this.#endPause()
    this.#stopEngine()
    return true
  }

  /** No URL is started until `resume`. */
  pause(): void {
    this.#engine?.send({ type: 'pause' })
  }

  resume(): void {
    this.#engine?.send({ type: 'resume' })
  }

  #stopEngine(): void {
    if (this.#stops > 1) return this.#engine?.kill()
    this.#engine?.send({ type: 'stop' })
    this.#killLater()
  }

  async #live(startedAtMs: number): Promise<Death> {
    const { first, start } = this.#options
    this.#isOpened = false
    const { seeds, ...withoutSeeds } = first
    const engine = start((message) => this.#handle(message), seeds !== undefined && !this.#isSeeded)
    this.#engine = engine
    engine.send({
      ...(this.#isSeeded ? withoutSeeds : first),
      ...(this.#listen !== undefined && { crawl: { ...first.crawl, listen: this.#listen } }),
      ...(this.#baseline !== undefined && { baseline: this.#baselineAt(this.#options.clock.nowMs() - startedAtMs) }),
    })
    const death = await engine.exited
    this.#engine = undefined
    this.#failuresBefore = this.#failures
    this.#cancelKill()
    return death
  }

  #baselineAt(elapsedMs: number): RunBaseline {
    return { ...this.#baseline!, elapsedMs }
  }

  #handle(given: ToParent): void {
    const message = 'failures' in given ? { ...given, failures: this.#failures = sumOf(this.#failuresBefore, given.failures) } : given
    if (message.type === 'opened') {
      this.#isOpened = true
      this.#listen = message.listen
      this.#lookForProgress(message.counters)
      this.#baseline ??= { pages: message.counters.pages, wireBytes: message.counters.wireBytes }
    } else if (message.type === 'seeded') {
      this.#isSeeded = true
    } else if (message.type === 'ended') {
      this.#ending = { kind: 'ended', summary: this.#wholeRun(message.summary), failures: message.failures }
      this.#killLater()
    } else if (message.type === 'failed') {
      this.#ending = { kind: 'failed', code: message.code, message: message.message, ...(message.stack !== undefined && { stack: message.stack }) }
      this.#killLater()
    }
    this.#options.onMessage(message)
  }

  /** What the engine before this one has stored ends the row of deaths. */
  #lookForProgress({ pages, failed, dropped, excluded }: Counters): void {
    const stored = pages + failed + dropped + excluded
    if (this.#storedBefore !== undefined && stored !== this.#storedBefore) this.#deathsAtMs = []
    this.#storedBefore = stored
  }

  /** The last engine's summary, with the pages of those before it. */
  #wholeRun(summary: Summary): Summary {
    return { ...summary, pagesThisRun: summary.pages - (this.#baseline?.pages ?? summary.pages) }
  }

  #killLater(): void {
    this.#cancelKill()
    this.#cancelKill = this.#options.clock.after(stopGraceMs, () => this.#engine?.kill())
  }

  /** What follows when an engine is gone without a word; undefined: it is started again. */
  #afterDeath(death: Death): Ending | undefined {
    const { clock, dir, canReread } = this.#options
    if (this.#stops > 0) return { kind: 'stopped' }
    if (death.signal === null && (death.code ?? 0) < 128) return { kind: 'failed', code: 'internal', message: `the engine ended by itself with exit code ${death.code}` }
    if (!this.#isOpened && speaksOfDamage(death)) return { kind: 'failed', code: 'store_corrupt', message: `the engine ${deathText(death)} while it opened the store in ${dir}, which is probably damaged; nothing was changed` }
    if (!this.#isSeeded && this.#options.first.seeds !== undefined && !canReread) {
      return { kind: 'failed', code: 'seeds_unreadable', message: `the engine ${deathText(death)} before it had read all seeds, and they cannot be read a second time: give them again, what is known is not added twice` }
    }
    const nowMs = clock.nowMs()
    this.#deathsAtMs = [...this.#deathsAtMs.filter((atMs) => nowMs - atMs < deathsWindowMs), nowMs]
    if (this.#deathsAtMs.length < deathsMax) return undefined
    return { kind: 'failed', code: 'engine_died', message: `the engine died ${deathsMax} times within ${deathsWindowMs / 60_000} minutes and stored nothing between (at last it ${deathText(death)}); what was stored is safe in ${dir}: go on with the same command, with --verbose to see what it says when it dies, and with fewer --threads, a smaller --max-body or without --extract if one of them may be the cause` }
  }

  async #pause(pauseMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(pauseMs, resolve)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
    this.#endPause = () => undefined
  }
}

function sumOf(before: FailureCounts, now: FailureCounts): FailureCounts {
  const byCode = { ...before.byCode }
  for (const [code, times] of Object.entries(now.byCode)) byCode[code] = (byCode[code] ?? 0) + times
  return { byCode, seeds: before.seeds + now.seeds }
}

/** `died of SIGABRT (Reached heap limit ...)`, `ended with exit code 134`. */
function deathText(death: Death): string {
  const how = death.signal === null ? `ended with exit code ${death.code}` : `died of ${death.signal}`
  return death.reason === undefined ? how : `${how} (${death.reason})`
}

/** LMDB has no checksums: a damaged file ends the process that reads it by one of these. Others were sent by somebody. */
function speaksOfDamage({ code, signal }: Death): boolean {
  return ['SIGSEGV', 'SIGBUS', 'SIGABRT'].includes(signal ?? '') || [134, 135, 139].includes(code ?? 0)
}

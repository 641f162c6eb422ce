/**
 * `sluice crawl`, the parent's side: checks what was given before anything is made, keeps the engine running in a
 * process of its own, shows its progress, and turns signals into a stop. Never touches the store.
 */
import fs from 'node:fs'
import type { AddResult } from '../core/api-types.ts'
import { systemClock } from '../core/clock.ts'
import { errorCodes, SluiceError } from '../core/errors.ts'
import { fetchUrl, hostOfUrl, refusalOf } from '../core/fetch-url.ts'
import { resolveCrawlOptions, type CrawlOptionsGiven, type RunLimitsGiven } from '../core/options.ts'
import type { Counters } from '../core/types.ts'
import { whyNotFetched, withoutUser } from '../core/url-text.ts'
import { holdsStore } from './crawl-dir.ts'
import { startEngineProcess } from './engine-process.ts'
import type { OpenedMessage, StartMessage, ToParent } from './messages.ts'
import { Reporter, type ProgressMode } from './reporter.ts'
import { Screen } from './screen.ts'
import { openSeeds, type OpenedSeeds } from './seeds.ts'
import { sumsSoFar } from './summary.ts'
import { Supervisor, type Ending } from './supervisor.ts'

export interface CrawlCommand {
  readonly urls: readonly string[]
  /** A path, or `-` for standard input. */
  readonly seedsFile?: string
  readonly crawl: CrawlOptionsGiven
  readonly run: RunLimitsGiven
  readonly progress: ProgressMode
  readonly verbose: boolean
  /** What is crawled ends with this process, so there is nothing to go on with. */
  readonly isDemonstration?: true
}

/** Exit code of a crawl that was stopped by a signal, with its state saved. */
const exitStopped = 3

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Crawls; resolves to the exit code. Throws what is wrong with the command. */
export async function runCrawl(command: CrawlCommand): Promise<number> {
  const { dir } = resolveCrawlOptions(command.crawl)
  checkSeeds(command, dir)
  const seeds = command.seedsFile === undefined ? undefined : openSeeds(command.seedsFile)
  const screen = new Screen(process.stdout, process.stderr)
  const reporter = new Reporter({ screen, mode: command.progress, clock: systemClock, dir })
  const watch = new EngineWatch(reporter)
  const supervisor = supervisorOf(command, { dir, seeds, reporter, watch })
  const signalled = (): void => {
    if (supervisor.stop()) reporter.stopping()
  }
  // Ctrl-Z stops this process alone, so the engine is told.
  const suspended = (): void => {
    supervisor.pause()
    reporter.clear()
    process.kill(process.pid, 'SIGSTOP')
  }
  const continued = (): void => supervisor.resume()
  for (const signal of stopSignals) process.on(signal, signalled)
  process.on('SIGTSTP', suspended).on('SIGCONT', continued)
  // Whoever read the output has gone; the crawl itself goes on, and its records are in files.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  try {
    return conclude(await supervisor.run(), { dir, reporter, watch, command })
  } finally {
    for (const signal of stopSignals) process.off(signal, signalled)
    process.off('SIGTSTP', suspended).off('SIGCONT', continued)
    reporter.clear()
  }
}

/** What the engine has said about itself. */
class EngineWatch {
  readonly #reporter: Reporter
  /** As the first engine said it. */
  opened: OpenedMessage | undefined
  /** The latest sums that an engine told, at its opening or since. */
  counters: Counters | undefined
  seeded: AddResult | undefined

  constructor(reporter: Reporter) {
    this.#reporter = reporter
  }

  take(message: ToParent): void {
    switch (message.type) {
      case 'opened':
        // An engine that was started again has nothing new to say here.
        if (this.opened === undefined) this.#reporter.opened(message)
        this.opened ??= message
        this.counters = message.counters
        return
      case 'seeded':
        this.seeded = message.result
        return this.#reporter.seeded(message.result, this.opened?.isContinued === true)
      case 'failures': return void (this.#reporter.failures = message.failures)
      case 'stats':
        this.counters = message.stats
        return this.#reporter.snapshot(message.stats, message.failures)
      case 'seed_failed': return this.#reporter.seedFailed(message.url, message.code)
      case 'paused': return this.#reporter.paused(message.blockedOn)
      default: return
    }
  }
}

interface Wiring {
  readonly dir: string
  readonly seeds: OpenedSeeds | undefined
  readonly reporter: Reporter
  readonly watch: EngineWatch
}

function supervisorOf(command: CrawlCommand, { dir, seeds, reporter, watch }: Wiring): Supervisor {
  const hasSeeds = command.urls.length > 0 || command.seedsFile !== undefined
  const stdinName = command.seedsFile === '-' ? 'standard input' : command.seedsFile
  const first: StartMessage = {
    type: 'start', crawl: command.crawl, run: command.run, statsEveryMs: reporter.statsEveryMs, verbose: command.verbose,
    ...(hasSeeds && { seeds: { urls: command.urls, ...(stdinName !== undefined && { stdinName }) } }),
  }
  let fd = seeds?.fd
  return new Supervisor({
    clock: systemClock, first, dir, canReread: seeds?.canReread ?? true,
    onMessage: (message) => watch.take(message),
    onDeath: (text, pauseMs) => reporter.died(text, pauseMs),
    start(onMessage, withSeeds) {
      const stdinFd = withSeeds && command.seedsFile !== undefined ? (fd ?? openSeeds(command.seedsFile).fd) : undefined
      const engine = startEngineProcess({ ...(stdinFd !== undefined && { stdinFd }), keepsDump: command.verbose, isFrugal: command.crawl.memoryBytes !== undefined, onMessage, onLine: (line) => reporter.engineLine(line) })
      // The engine has its own copy of the descriptor now.
      if (stdinFd !== undefined && stdinFd !== 0) fs.closeSync(stdinFd)
      fd = undefined
      return engine
    },
  })
}

/** Refuses, before a directory is made, a command from which no crawl can come. */
function checkSeeds({ urls, seedsFile }: CrawlCommand, dir: string): void {
  if (seedsFile !== undefined || holdsStore(dir)) return
  if (urls.length === 0) throw new SluiceError('usage', `nothing to crawl: give URLs or --seeds FILE, or --dir with a directory that holds a crawl (${dir} does not)`)
  if (urls.some((url) => fetchUrl(url.trim()) !== undefined)) return
  throw new SluiceError('bad_url', `URL: expected an http or https URL, given ${JSON.stringify(withoutUser(urls[0]!))}${suggestion(urls[0]!)}`)
}

function suggestion(text: string): string {
  if (refusalOf(text.trim()) === 'port') return ` (${whyNotFetched(text.trim())})`
  const url = fetchUrl(`https://${text.trim()}`)
  return !text.includes('://') && url !== undefined && hostOfUrl(url).includes('.') ? ` (did you mean ${url}?)` : ''
}

interface Conclusion {
  readonly dir: string
  readonly reporter: Reporter
  readonly watch: EngineWatch
  readonly command: CrawlCommand
}

function conclude(ending: Ending, { dir, reporter, watch, command }: Conclusion): number {
  const { elapsedMs } = reporter
  if (ending.kind === 'failed') reporter.error(ending.code, ending.message, command.verbose ? ending.stack : undefined)
  const error = ending.kind === 'failed' ? { code: ending.code, message: ending.message } : undefined
  const summary = ending.kind === 'ended' ? ending.summary : { ...sumsSoFar(watch.counters, watch.opened?.counters, reporter.stats), state: ending.kind, ...(error && { error }) }
  const failures = ending.kind === 'ended' ? ending.failures : reporter.failures
  // A store that could not be opened has no sums; programs get their last line all the same.
  if (watch.opened !== undefined || command.progress === 'json') reporter.end({ dir, summary, failures, elapsedMs, canContinue: command.isDemonstration !== true })
  if (ending.kind === 'failed') return errorCodes[ending.code]
  if (summary.state === 'stopped') return exitStopped
  return summary.state === 'failed' ? errorCodes.internal : seedsExitCode(watch)
}

/** A new crawl whose every seed was refused is wrong usage, although nothing failed. */
function seedsExitCode({ opened, seeded }: EngineWatch): number {
  const isEmpty = opened?.isContinued === false && seeded !== undefined && seeded.rejected > 0 && seeded.added + seeded.known === 0
  return isEmpty ? errorCodes.bad_url : 0
}

/**
 * Says what a crawl does, in the mode that was asked for. Takes the engine's messages, writes to the screen. A place;
 * runs in the parent.
 */
import type { AddResult, Stats } from '../core/api-types.ts'
import type { Clock } from '../core/clock.ts'
import { failureTable, type FailureCode } from '../core/errors.ts'
import { count, plural, shortDuration } from './human.ts'
import { errorLine } from './lines.ts'
import { noFailures, type FailureCounts, type OpenedMessage } from './messages.ts'
import { blockLines, jsonLine, PageRate, plainLine, type ProgressView } from './progress.ts'
import type { Screen } from './screen.ts'
import { summaryJson, summaryLines, type SummaryView } from './summary.ts'

export const progressModes = ['auto', 'plain', 'json', 'none'] as const
export type ProgressMode = (typeof progressModes)[number]

/** Lines on failed seeds; the others are counted in one. */
const seedLinesMax = 20

const liveEveryMs = 250
const plainEveryMs = 10_000

export class Reporter {
  readonly #screen: Screen
  readonly #mode: 'live' | 'plain' | 'json' | 'none'
  readonly #clock: Clock
  readonly #dir: string
  readonly #startedAtMs: number
  readonly #rate = new PageRate()
  #isStopping = false
  #seedLines = 0
  #seedsRejected = 0
  /** The latest that the engine said. */
  stats: Stats | undefined
  failures: FailureCounts = noFailures

  constructor(options: { screen: Screen; mode: ProgressMode; clock: Clock; dir: string }) {
    const isLive = options.screen.out.isTTY === true && process.env['TERM'] !== 'dumb'
    this.#mode = options.mode === 'auto' ? (isLive ? 'live' : 'plain') : options.mode
    this.#screen = options.screen
    this.#clock = options.clock
    this.#dir = options.dir
    this.#startedAtMs = options.clock.nowMs()
  }

  /** How often the engine should send a snapshot. */
  get statsEveryMs(): number {
    return this.#mode === 'live' ? liveEveryMs : plainEveryMs
  }

  get elapsedMs(): number {
    return Math.round(this.#clock.nowMs() - this.#startedAtMs)
  }

  opened({ isContinued, changedOptions, counters, listen }: OpenedMessage): void {
    this.#rate.add(this.elapsedMs, counters.pages)
    if (this.#mode === 'json') return this.#json({ event: 'opened', continued: isContinued, pages: counters.pages, queued: counters.pending, changedOptions, ...(listen !== undefined && { listen }) })
    if (listen !== undefined) this.#say(`metrics at http://${listen}/metrics`)
    if (!isContinued) return
    this.#say(`continuing ${this.#dir}: ${count(counters.pages)} pages done, ${count(counters.pending)} queued`)
    for (const change of changedOptions) this.#say(`changed option: ${change}`)
  }

  /** `isContinued`: the crawl had seeds before these. */
  seeded({ added, known, rejected, rejections, usersLeftOut }: AddResult, isContinued: boolean): void {
    for (const { code, input, message } of rejections) this.#seedLine(code, `${JSON.stringify(input)}: ${message}`)
    if (usersLeftOut > 0) this.#screen.errorLine(`sluice: the user and password in ${plural(usersLeftOut, 'seed')} are not used: see --host-headers`)
    this.#seedsRejected = rejected
    if (this.#mode === 'json') return this.#json({ event: 'seeds', added, known, rejected })
    if (added + known + rejected === 0) return this.#say('no seeds: there was no URL among them')
    if (isContinued && added > 0) this.#say(`new seeds: ${plural(added, 'URL')} added to this crawl (${count(known)} known already)`)
  }

  seedFailed(url: string, code: FailureCode): void {
    this.#seedLine(code, `${url}: ${failureTable[code].meaning}`)
  }

  snapshot(stats: Stats, failures: FailureCounts): void {
    this.stats = stats
    this.failures = failures
    const view: ProgressView = {
      dir: this.#dir, stats, elapsedMs: this.elapsedMs, pagesPerSecond: this.#rate.add(this.elapsedMs, stats.pages),
      memoryBytes: stats.residentBytes + process.memoryUsage.rss(),
    }
    if (this.#mode === 'live') this.#screen.draw(blockLines(view, this.#screen.out.columns ?? 80))
    else if (this.#mode === 'plain') this.#screen.line(plainLine(view))
    else if (this.#mode === 'json') this.#screen.line(jsonLine(view))
  }

  died(text: string, pauseMs: number): void {
    this.#screen.errorLine(errorLine('engine_died', `the engine ${text}; nothing stored is lost, it starts again in ${shortDuration(pauseMs)}`))
    if (this.#mode === 'json') this.#json({ event: 'restart', reason: text, pauseMs })
  }

  /** There is no room to go on: on the disk, or below `--max-store`. */
  paused(blockedOn: 'disk' | 'store_full'): void {
    const why = blockedOn === 'disk' ? `too little is free on the disk of ${this.#dir}` : 'the store has reached --max-store; stop, and go on with a larger one'
    this.#screen.errorLine(`sluice: paused until there is room: ${why}`)
  }

  /** A signal came; the first is explained. */
  stopping(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#screen.errorLine('stopping: what was received is being stored; once more to stop at once')
  }

  /** A line of the engine's own output: its log, and what an extractor prints. */
  engineLine(line: string): void {
    this.#screen.errorLine(line)
  }

  error(code: string, message: string, stack?: string): void {
    this.#screen.errorLine(errorLine(code, message))
    if (stack !== undefined) this.#screen.errorLine(stack)
  }

  /** The end; nothing is written to standard output after it. */
  end(view: SummaryView): void {
    const seedsUnsaid = this.#seedsRejected + view.failures.seeds - this.#seedLines
    if (seedsUnsaid > 0) this.#screen.errorLine(`sluice: and ${plural(seedsUnsaid, 'more seed')} without a page`)
    this.#screen.clear()
    for (const line of this.#mode === 'json' ? [summaryJson(view)] : summaryLines(view)) this.#screen.line(line)
  }

  /** Ends without a summary: no crawl was opened. */
  clear(): void {
    this.#screen.clear()
  }

  #seedLine(code: string, message: string): void {
    if (this.#seedLines >= seedLinesMax) return
    this.#seedLines += 1
    this.#screen.errorLine(errorLine(code, message))
  }

  #say(text: string): void {
    if (this.#mode !== 'none') this.#screen.line(text)
  }

  #json(value: object): void {
    this.#screen.line(JSON.stringify(value))
  }
}

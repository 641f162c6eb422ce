/**
 * A crawl under way, as text: the live block, the plain line, the JSON line. Pure functions over one view, and the rate
 * of the last seconds.
 */
import type { Stats } from '../core/api-types.ts'
import { count, percent, plural, rate, shortDuration, shortSize } from './human.ts'

export interface ProgressView {
  readonly dir: string
  readonly stats: Stats
  /** Of this run, engines that died included. */
  readonly elapsedMs: number
  readonly pagesPerSecond: number
  readonly memoryBytes: number
}

/** Pages per second over the last five seconds, or since the snapshot before when they come less often. */
export class PageRate {
  readonly #windowMs = 5_000
  #samples: { readonly atMs: number; readonly pages: number }[] = []

  /** Takes a sample and answers the rate. */
  add(atMs: number, pages: number): number {
    this.#samples.push({ atMs, pages })
    while (this.#samples.length > 2 && this.#samples[1]!.atMs <= atMs - this.#windowMs) this.#samples.shift()
    const first = this.#samples[0]!
    const spanMs = atMs - first.atMs
    return spanMs <= 0 ? 0 : Math.max(0, pages - first.pages) / spanMs * 1_000
  }
}

/** What holds a crawl back, in words. */
export const blockedOnText: Readonly<Record<Stats['blockedOn'], string>> = {
  nothing: 'nothing', consumer: 'the consumer', commit: 'the store', page_ring: 'the parse workers', body_bytes: 'bytes in flight',
  connections: 'connections', loop: 'its own loop', memory: 'memory', rate: '--rate', bandwidth: '--bandwidth', network_down: 'the network', gateway: 'a gateway', limit: 'a limit of the run', suspects: 'pages read alone', politeness: 'politeness', disk: 'room on the disk', store_full: '--max-store', paused: 'pause', idle: 'no work',
}

export function blockedOn({ blockedOn, pending, nextDueAtMs }: Stats): string {
  return blockedOn === 'idle' && pending === 0 && nextDueAtMs !== undefined ? 'pages not due yet' : blockedOnText[blockedOn]
}

/** The live block, each line shorter than `columns`. */
export function blockLines(view: ProgressView, columns: number): readonly string[] {
  const { stats } = view
  const connections = stats.bounds.find((bound) => bound.name === 'connections')
  const cells: readonly (readonly string[])[] = [
    [`pages ${count(stats.pages)}`, rate(view.pagesPerSecond), `queue ${count(stats.pending)}`, `failed ${count(stats.failed)}`],
    [`hosts ${count(stats.hosts)}`, `in flight ${count(stats.inFlight)}${connections === undefined ? '' : `/${count(connections.limit)}`}`, `retries ${percent(stats.retryShare)}`, shortDuration(view.elapsedMs)],
    [`received ${shortSize(stats.wireBytes)}`, `memory ${shortSize(view.memoryBytes)}`, `blocked on ${blockedOn(stats)}`, view.dir],
  ]
  // One less than the terminal has: a line that fills the last column would wrap.
  return cells.map((row) => cut(row.map((cell, index) => (index < row.length - 1 ? cell.padEnd(20) : cell)).join('  '), Math.max(1, columns - 1)))
}

function cut(line: string, charsMax: number): string {
  return line.length <= charsMax ? line : `${line.slice(0, Math.max(0, charsMax - 1))}…`
}

/** The line that is written every ten seconds where there is no terminal. */
export function plainLine(view: ProgressView): string {
  const { stats } = view
  return [
    `${shortDuration(view.elapsedMs)}: ${count(stats.pages)} pages`, rate(view.pagesPerSecond), `${count(stats.pending)} queued`,
    `${count(stats.failed)} failed`, plural(stats.hosts, 'host'), `${count(stats.inFlight)} in flight`,
    `retries ${percent(stats.retryShare)}`, `blocked on ${blockedOn(stats)}`,
    `${shortSize(stats.wireBytes)} received`, `memory ${shortSize(view.memoryBytes)}`,
  ].join(', ')
}

/** The same for programs: the snapshot itself. */
export function jsonLine({ stats, elapsedMs, pagesPerSecond, memoryBytes }: ProgressView): string {
  return JSON.stringify({ event: 'progress', ...stats, queued: stats.pending, elapsedMs, pagesPerSecond: Math.round(pagesPerSecond * 10) / 10, memoryBytes })
}

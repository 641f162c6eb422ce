/**
 * Where each leased URL stands on its way round, and since when. A URL stands in exactly one place, so one entry for each
 * follows it from its claim until its outcome is stored; a place is a line of entries in order of arrival.
 *
 *     claimed -> fetch -> received -> slots -> (window) -> commit -> left          line: first <-> ... <-> last
 *        ^---------- given back, or its host rests ----------'
 *
 * Invariants: the first of a line has been there longest, so depth and oldest age cost nothing to keep and nothing to
 * read; a move is a few links, however long the lines are. As many entries as leased URLs, which are bounded. Main thread.
 *
 * Measured: a page's whole way, with all that pressure.ts observes of it, takes 0.6 to 0.8 microseconds (bench/metrics.ts).
 */
import type { Clock } from '../core/clock.ts'
import { Histogram } from './histogram.ts'

export const placeNames = ['claimed', 'fetch', 'received', 'slots', 'window', 'commit'] as const
export type PlaceName = (typeof placeNames)[number]

interface Entry {
  line: Line
  sinceMs: number
  before: Entry | undefined
  behind: Entry | undefined
}

class Line {
  first: Entry | undefined
  last: Entry | undefined
  depth = 0
  /** How long entries stood here that have left. */
  readonly stays = new Histogram()

  append(entry: Entry): void {
    entry.before = this.last
    entry.behind = undefined
    if (this.last === undefined) this.first = entry
    else this.last.behind = entry
    this.last = entry
    this.depth += 1
  }

  remove({ before, behind }: Entry): void {
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.last = before
    else behind.before = before
    this.depth -= 1
  }
}

export class Places {
  readonly #clock: Pick<Clock, 'nowMs'>
  readonly #entries = new Map<number, Entry>()
  readonly #lines = Object.fromEntries(placeNames.map((name) => [name, new Line()])) as Readonly<Record<PlaceName, Line>>

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock
  }

  /** URLs that stand somewhere. */
  get size(): number {
    return this.#entries.size
  }

  /** A URL was claimed; `sequence` is its number. */
  enter(sequence: number): void {
    const line = this.#lines.claimed
    const entry: Entry = { line, sinceMs: this.#clock.nowMs(), before: undefined, behind: undefined }
    line.append(entry)
    this.#entries.set(sequence, entry)
  }

  /** A URL goes on, or back; one that is not here stays away. */
  move(sequence: number, name: PlaceName): void {
    const entry = this.#entries.get(sequence)
    if (entry === undefined) return
    this.#depart(entry)
    entry.line = this.#lines[name]
    entry.line.append(entry)
  }

  /** Its outcome is stored, or its claim is given up. */
  leave(sequence: number): void {
    const entry = this.#entries.get(sequence)
    if (entry === undefined) return
    this.#depart(entry)
    this.#entries.delete(sequence)
  }

  depthOf(name: PlaceName): number {
    return this.#lines[name].depth
  }

  /** Age of the URL that has been there longest, milliseconds; 0 when none is. */
  oldestMsOf(name: PlaceName): number {
    const { first } = this.#lines[name]
    return first === undefined ? 0 : this.#clock.nowMs() - first.sinceMs
  }

  /** How long URLs stood there that have gone on. */
  staysIn(name: PlaceName): Histogram {
    return this.#lines[name].stays
  }

  #depart(entry: Entry): void {
    const nowMs = this.#clock.nowMs()
    entry.line.remove(entry)
    entry.line.stays.observe(nowMs - entry.sinceMs)
    entry.sinceMs = nowMs
  }
}

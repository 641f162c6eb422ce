/**
 * A clock that stands still until a test moves it. Timers fire in the order of their moments, and among equal moments
 * in the order in which they were set, each at its own moment, as they would on an unloaded machine.
 */
import type { Clock } from '../../engine/core/clock.ts'

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly callback: () => void
}

export class TestClock implements Clock {
  #nowMs: number
  #wallOffsetMs: number
  #order = 0
  readonly #timers = new Set<Timer>()

  constructor(options: { nowMs?: number; wallMs?: number } = {}) {
    this.#nowMs = options.nowMs ?? 1_000
    this.#wallOffsetMs = (options.wallMs ?? Date.UTC(2026, 0, 1)) - this.#nowMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, callback }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  nextTurn(callback: () => void): () => void {
    return this.after(0, callback)
  }

  /** Timers that have neither fired nor been cancelled. */
  get timersCount(): number {
    return this.#timers.size
  }

  /** The moment of the next timer; undefined when none is set. */
  get nextTimerAtMs(): number | undefined {
    return this.#next()?.atMs
  }

  /** Fires every timer up to then, those set meanwhile included, and stands at `nowMs() + ms`. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms
    while (this.#fireNext(untilMs));
    this.#nowMs = untilMs
  }

  /** The same, but promises have their turn before the first timer and after each. */
  async play(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await turn()
    while (this.#fireNext(untilMs)) await turn()
    this.#nowMs = untilMs
    await turn()
  }

  /** The operator, or a time server, sets the time of day; the monotonic time does not notice. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms
  }

  #next(): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (next === undefined || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order)) next = timer
    }
    return next
  }

  #fireNext(untilMs: number): boolean {
    const timer = this.#next()
    if (timer === undefined || timer.atMs > untilMs) return false
    this.#timers.delete(timer)
    this.#nowMs = Math.max(this.#nowMs, timer.atMs)
    timer.callback()
    return true
  }
}

/** Lets every promise that is ready go on, and what follows from it. */
export function turn(): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve) })
}

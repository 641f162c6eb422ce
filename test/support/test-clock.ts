/**
 * A clock that stands still until a test moves it. Timers fire in the order of their moments, and among equal moments
 * in the order in which they were set, each at its own moment, as they would on an unloaded machine.
 */
import type { Clock } from '../../engine/core/clock.ts'
import { Heap, type HeapItem } from '../../engine/schedule/heap.ts'

interface Timer extends HeapItem {
  readonly atMs: number
  readonly order: number
  readonly callback: () => void
}

/** More timers than any test needs at one moment: they set each other, and a test would never end. */
const TIMERS_AT_ONCE_MAX = 100_000

export class TestClock implements Clock {
  #nowMs: number
  /** Timers that have fired since time last passed. */
  #firedAtOnce = 0
  #wallOffsetMs: number
  #order = 0
  readonly #timers = new Heap<Timer>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order))

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
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, callback, heapIndex: -1 }
    this.#timers.set(timer)
    return () => this.#timers.delete(timer)
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
    return this.#timers.peek()?.atMs
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

  #fireNext(untilMs: number): boolean {
    const timer = this.#timers.peek()
    if (timer === undefined || timer.atMs > untilMs) return false
    this.#timers.delete(timer)
    this.#firedAtOnce = timer.atMs > this.#nowMs ? 0 : this.#firedAtOnce + 1
    if (this.#firedAtOnce > TIMERS_AT_ONCE_MAX) throw new Error(`timers set each other at ${this.#nowMs} ms, and no time passes`)
    this.#nowMs = Math.max(this.#nowMs, timer.atMs)
    timer.callback()
    return true
  }
}

/** Lets every promise that is ready go on, and what follows from it. */
export function turn(): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve) })
}

/** The same, until nothing has called `setImmediate` any more: whatever the last event led to has happened. */
export async function settle(turnsMax = 10_000): Promise<void> {
  for (let turns = 0; turns < turnsMax; turns++) {
    await turn()
    if (!process.getActiveResourcesInfo().includes('Immediate')) return
  }
  throw new Error(`after ${turnsMax} turns of the loop something still calls setImmediate, and no time passes`)
}

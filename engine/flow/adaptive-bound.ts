/**
 * A bound of a queue that follows the speed of the stage behind it: rate x tolerated delay (Little's law), so that what
 * stands in the queue waits about that long, whatever the stage's speed. Pure state; times are given by the caller.
 * Main thread.
 *
 *   limit = rate x tolerated delay, within [min, max]; rate = what left the queue, while it was never short of work
 *
 * A stage that had nothing to do for a moment says nothing about how fast it could be: then the limit doubles towards
 * `max`. So a bound never holds up a stage that has free hands for longer than one look, and what is not slow is bounded
 * by memory alone (`max`). Invariant: min <= limit <= max.
 */
import { invariant } from '../core/errors.ts'

export interface AdaptiveBoundOptions {
  readonly name: string
  readonly unit: 'items' | 'bytes'
  readonly min: number
  /** What memory allows. */
  readonly max: number
  readonly toleratedMs: number
  /** With so many in the queue or fewer, the stage may have had free hands. */
  readonly idleAt: number
  /** Why this delay, for people. */
  readonly reason: string
}

export class AdaptiveBound {
  readonly is: AdaptiveBoundOptions
  #limit: number
  #used = 0
  #left = 0
  #hadFreeHands = true
  #lookedAtMs: number | undefined

  constructor(options: AdaptiveBoundOptions) {
    invariant(options.min <= options.max, `the bound ${options.name} has room`)
    this.is = options
    this.#limit = options.max
  }

  /** Whole, at least `min`. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  get used(): number {
    return this.#used
  }

  get isFull(): boolean {
    return this.#used >= this.limit
  }

  /** How many stand in the queue now. */
  observe(used: number): void {
    this.#used = used
    if (used <= this.is.idleAt) this.#hadFreeHands = true
  }

  /** So many have left the queue. */
  left(count = 1): void {
    this.#left += count
  }

  /** Looks at the time since the last look. Called a few times a second. */
  adapt(nowMs: number): void {
    const { min, max, toleratedMs } = this.is
    const elapsedMs = nowMs - (this.#lookedAtMs ?? nowMs)
    this.#lookedAtMs = nowMs
    if (elapsedMs > 0) {
      const wanted = this.#left / elapsedMs * toleratedMs
      // An average over the tolerated delay: one slow item is no slow stage.
      const weight = 1 - Math.exp(-elapsedMs / toleratedMs)
      const next = this.#hadFreeHands ? this.#limit * 2 : this.#limit + (wanted - this.#limit) * weight
      this.#limit = Math.min(max, Math.max(min, next))
    }
    this.#left = 0
    this.#hadFreeHands = this.#used <= this.is.idleAt
  }
}

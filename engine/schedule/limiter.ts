/**
 * How many requests a host is given at once: additive increase, multiplicative decrease (Chiu and Jain, 1989), as
 * TCP does. A success adds 1/limit, so that a full round of successes adds one; a throttle or a time-out halves the
 * limit, once per congestion event: what was already in flight when the limit fell says nothing new about it.
 *
 * Invariant: floor <= limit <= ceiling. Pure state, no clock of its own; times are given by the caller. Main thread.
 */
import type { Concurrency } from '../core/options.ts'

export class Limiter {
  #bounds: Concurrency
  #limit: number
  #decreasedAtMs = Number.NEGATIVE_INFINITY
  /** Requests under way. */
  inFlight = 0

  constructor(bounds: Concurrency, start = bounds.start) {
    this.#bounds = bounds
    this.#limit = Math.min(bounds.ceiling, Math.max(bounds.floor, start))
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  get isFull(): boolean {
    return this.inFlight >= this.limit
  }

  /** The operator's word: the limit moves within the new bounds from now on. */
  setBounds(bounds: Concurrency): void {
    this.#bounds = bounds
    this.#limit = Math.min(bounds.ceiling, Math.max(bounds.floor, this.#limit))
  }

  success(): void {
    this.#limit = Math.min(this.#bounds.ceiling, this.#limit + 1 / this.limit)
  }

  /** Answers whether this was a new congestion event: a request that started after the last decrease. */
  throttle(startedAtMs: number, nowMs: number): boolean {
    if (startedAtMs <= this.#decreasedAtMs) return false
    this.#decreasedAtMs = nowMs
    this.#limit = Math.max(this.#bounds.floor, this.#limit / 2)
    return true
  }
}

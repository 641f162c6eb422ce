/**
 * The one wall-clock deadline of a fetch: over look-up, connection, TLS, headers and body together. Time in which we
 * ourselves made it wait (`hold` to `proceed`) does not count. It also carries the abort from outside, so each stage
 * has one thing to listen to. At most one stage runs under it at a time. Main thread.
 *
 *   start ----- counted -----| hold ... proceed |----- counted ----- end
 *
 * One timer serves both the deadline and the bound on silence in a body: it fires at the earlier of the two, and is
 * armed again when a byte came meanwhile. So a byte costs an assignment and no timer. By how much our own loop was late
 * to see it, it is put off (patience.ts).
 */
import type { Clock } from '../core/clock.ts'
import { afterPatiently } from './patience.ts'
import { onAbort } from './shared-abort.ts'

export interface Stop {
  readonly code: 'timeout' | 'aborted'
  readonly detail: string
}

export class Deadline {
  readonly #clock: Clock
  #limitMs: number
  readonly #forgetSignal: () => void = () => {}
  #countedMs = 0
  /** What our own loop was late by. */
  #excusedMs = 0
  /** When counting began or went on; undefined while held. */
  #countingSinceMs: number | undefined
  #silenceMsMax = Number.POSITIVE_INFINITY
  #heardAtMs = 0
  #cancelTimer: (() => void) | undefined
  #stop: Stop | undefined
  #listener: ((stop: Stop) => void) | undefined

  constructor(clock: Clock, limitMs: number, signal?: AbortSignal) {
    this.#clock = clock
    this.#limitMs = limitMs
    this.#countingSinceMs = clock.nowMs()
    const abort = (): void => this.stop({ code: 'aborted', detail: 'the fetch was aborted' })
    if (signal?.aborted === true) abort()
    else {
      if (signal !== undefined) this.#forgetSignal = onAbort(signal, abort)
      this.#arm()
    }
  }

  /** Why the fetch must stop; undefined while it may go on. */
  get stopped(): Stop | undefined {
    return this.#stop
  }

  /** Milliseconds that count. */
  get elapsedMs(): number {
    return this.#countedMs + (this.#countingSinceMs === undefined ? 0 : this.#clock.nowMs() - this.#countingSinceMs)
  }

  /** Names the stage that is told when the fetch must stop, in place of the stage before it; told at once if it must. */
  onStop(listener: ((stop: Stop) => void) | undefined): void {
    this.#listener = listener
    if (this.#stop !== undefined) listener?.(this.#stop)
  }

  /** From now on silence longer than this ends the fetch. */
  limitSilence(silenceMsMax: number): void {
    this.#silenceMsMax = silenceMsMax
    this.heard()
    this.#arm()
  }

  /** A byte came. */
  heard(): void {
    this.#heardAtMs = this.#clock.nowMs()
  }

  /** From now on it passes at another number of counted milliseconds. */
  extend(limitMs: number): void {
    this.#limitMs = limitMs
    if (this.#countingSinceMs !== undefined) this.#arm()
  }

  hold(): void {
    this.#countedMs = this.elapsedMs
    this.#countingSinceMs = undefined
    this.#disarm()
  }

  proceed(): void {
    if (this.#stop !== undefined) return
    this.#countingSinceMs = this.#clock.nowMs()
    this.heard()
    this.#arm()
  }

  stop(stop: Stop): void {
    if (this.#stop !== undefined) return
    this.#stop = stop
    this.end()
    this.#listener?.(stop)
  }

  /** The fetch is over: nothing fires any more. */
  end(): void {
    this.#disarm()
    this.#forgetSignal()
  }

  get #untilDeadlineMs(): number {
    return this.#limitMs + this.#excusedMs - this.elapsedMs
  }

  get #untilSilenceMs(): number {
    return this.#heardAtMs + this.#silenceMsMax - this.#clock.nowMs()
  }

  /** Never stops at once: whoever calls may be reading what came in time. Whole milliseconds: rounding leaves rests that no clock can wait for. */
  #arm(): void {
    this.#disarm()
    this.#cancelTimer = afterPatiently(this.#clock, Math.max(0, Math.ceil(Math.min(this.#untilDeadlineMs, this.#untilSilenceMs))), (lateMs) => {
      this.#excusedMs += lateMs
      if (this.#untilDeadlineMs <= 0) this.stop({ code: 'timeout', detail: `no complete answer within ${this.#limitMs} ms` })
      else if (this.#untilSilenceMs <= 0) this.stop({ code: 'timeout', detail: `no byte of the body for ${this.#silenceMsMax} ms` })
      else this.#arm()
    })
  }

  #disarm(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }
}

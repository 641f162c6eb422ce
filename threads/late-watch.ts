/**
 * Notices what lasts too long: a page in a worker's hands, a turn that never ends. Main thread. The workers tell no
 * times; what is seen at one look and still there at a later one has lasted at least that long. Invariant: one timer,
 * and none while there is nothing to watch, so that the watch keeps no process alive.
 */
import type { Clock } from '../engine/core/clock.ts'

export interface Watched {
  /** Names the page in this owner's hands, or the turn; equal as long as it is the same one. */
  readonly key: string
  readonly owner: number
  readonly limitMs: number
}

/** Looks are taken so many times within a deadline: what is late is noticed a quarter of it late at most. */
const LOOKS = 4

export class LateWatch {
  readonly #clock: Clock
  readonly #periodMs: number
  readonly #look: () => readonly Watched[]
  readonly #onLate: (late: Watched) => void
  #since = new Map<string, number>()
  #cancel: (() => void) | undefined

  constructor(parts: { clock: Clock; deadlineMs: number; look: () => readonly Watched[]; onLate: (late: Watched) => void }) {
    this.#clock = parts.clock
    this.#periodMs = parts.deadlineMs / LOOKS
    this.#look = parts.look
    this.#onLate = parts.onLate
  }

  /** Watches from now on, until there is nothing to watch. */
  start(): void {
    this.#cancel ??= this.#clock.after(this.#periodMs, () => this.#tick())
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#since.clear()
  }

  #tick(): void {
    this.#cancel = undefined
    const nowMs = this.#clock.nowMs()
    const watched = this.#look()
    const since = new Map(watched.map(({ key }) => [key, this.#since.get(key) ?? nowMs]))
    this.#since = since
    if (watched.length > 0) this.start()
    for (const one of watched) if (nowMs - since.get(one.key)! >= one.limitMs) this.#onLate(one)
  }
}

/**
 * What holds the crawl back, since when, and how much of its time each cause has taken. Pure state; times are given by
 * the caller. Main thread. Invariant: the times of all causes together are the time since the beginning.
 */
import type { BlockedOn } from '../core/api-types.ts'

interface Cause {
  ms: number
  /** Times that it began. */
  times: number
  /** Looks for another fetch that ended on it. */
  refused: number
}

const never: Readonly<Cause> = { ms: 0, times: 0, refused: 0 }

export class Blocked {
  readonly #causes = new Map<BlockedOn, Cause>()
  #on: BlockedOn = 'idle'
  #sinceMs: number
  #changes = 0

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  get on(): BlockedOn {
    return this.#on
  }

  /** How often it has changed. */
  get changes(): number {
    return this.#changes
  }

  /** The crawl looked for another fetch, and this is why it began none, or no more. Answers whether that is new. */
  found(on: BlockedOn, nowMs: number): boolean {
    const isNew = on !== this.#on
    if (isNew) {
      this.#causeOf(this.#on).ms += nowMs - this.#sinceMs
      this.#on = on
      this.#sinceMs = nowMs
      this.#changes += 1
      this.#causeOf(on).times += 1
    }
    this.#causeOf(on).refused += 1
    return isNew
  }

  /** For how long it has been what it is. */
  forMs(nowMs: number): number {
    return nowMs - this.#sinceMs
  }

  /** Of one cause until now; one that still holds included. */
  of(on: BlockedOn, nowMs: number): Readonly<Cause> {
    const cause = this.#causes.get(on) ?? never
    return on === this.#on ? { ...cause, ms: cause.ms + this.forMs(nowMs) } : cause
  }

  /** Causes that ever held, each with its time. */
  times(nowMs: number): Partial<Record<BlockedOn, number>> {
    const causes = new Set([...this.#causes.keys(), this.#on])
    return Object.fromEntries([...causes].map((on) => [on, this.of(on, nowMs).ms]))
  }

  #causeOf(on: BlockedOn): Cause {
    let cause = this.#causes.get(on)
    if (cause === undefined) this.#causes.set(on, cause = { ...never })
    return cause
  }
}

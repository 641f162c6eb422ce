/**
 * How many requests may be under way: as many as the event loop can serve. While the limit is what binds and the loop
 * has time, it grows; while the loop is busy it shrinks, since one more request would only wait longer for its turn, and
 * its waiting would look like a slow server. Pure state; utilisation is given by the caller. Main thread.
 *
 *     utilisation   0 ......... half ........ GROW_BELOW ........ SHRINK_ABOVE ......... 1
 *     the limit       doubles      grows 1/4       stays                 shrinks 1/8, when it lasts
 *
 * A burst of new connections keeps the loop busy for a moment and says nothing of those that wait already, and on a
 * crowded machine the loop looks busy while it is not given a processor. So only a second of it counts. Measured against
 * no governor (128 requests throughout) on a crowded machine, HTTPS, pages a second: 1.00 and 1.11 times as many in two
 * pairs with 60 ms of latency; without latency, with a step down for each busy window, 1.16 to 1.43 in three. Under Node's CPU profiler an idle loop was measured as 0.9 busy:
 * a profiled crawl grows slowly.
 *
 * Invariants: min(floor, ceiling) <= limit <= ceiling; the limit grows only in a window in which it was reached.
 */

/** Utilisation of the event loop, from 0 to 1. */
export const GROW_BELOW = 0.8
export const SHRINK_ABOVE = 0.95
/** So many windows in a row must have been busy for one step down. */
const BUSY_WINDOWS = 4

export interface GovernorOptions {
  readonly start: number
  /** With so many a busy loop still works at full speed. */
  readonly floor: number
  readonly ceiling: number
}

export class LoopGovernor {
  readonly #floor: number
  #ceiling: number
  #limit: number
  #peak = 0
  #busyWindows = 0
  #utilization = 0

  constructor({ start, floor, ceiling }: GovernorOptions) {
    this.#floor = floor
    this.#ceiling = ceiling
    this.#limit = Math.min(start, ceiling)
  }

  get limit(): number {
    return this.#limit
  }

  /** Of the last window. */
  get utilization(): number {
    return this.#utilization
  }

  /** What holds those back that find the limit reached. */
  get reason(): 'loop' | 'connections' {
    return this.#limit < this.#ceiling && this.#utilization >= GROW_BELOW ? 'loop' : 'connections'
  }

  setCeiling(ceiling: number): void {
    this.#ceiling = ceiling
    this.#limit = Math.min(this.#limit, ceiling)
  }

  /** So many are under way. */
  observe(inFlight: number): void {
    this.#peak = Math.max(this.#peak, inFlight)
  }

  /** A window has passed in which the loop was so busy. */
  adapt(utilization: number): void {
    this.#utilization = utilization
    const floor = Math.min(this.#floor, this.#ceiling)
    this.#busyWindows = utilization > SHRINK_ABOVE ? this.#busyWindows + 1 : 0
    if (this.#busyWindows === BUSY_WINDOWS) {
      this.#busyWindows = 0
      // From what there was: a limit far above it would take long to bind.
      this.#limit = Math.max(floor, Math.floor(Math.min(this.#limit, Math.max(this.#peak, floor)) * 7 / 8))
    } else if (utilization < GROW_BELOW && this.#peak >= this.#limit) {
      this.#limit = Math.min(this.#ceiling, Math.ceil(this.#limit * (utilization < GROW_BELOW / 2 ? 2 : 1.25)))
    }
    if (this.#busyWindows === 0) this.#peak = 0
  }
}

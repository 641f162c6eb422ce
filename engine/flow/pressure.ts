/**
 * The meters of a crawl that its stages write: what it is blocked on, and how long things take. What is read of them is
 * put together in engine/pressure.ts, when somebody asks. Pure state. Main thread.
 */
import { Blocked } from './blocked.ts'
import { Histogram } from './histogram.ts'

export class PressureMeter {
  readonly blocked: Blocked
  /** How long a URL waited that could have started: its host was ready, and something else held the crawl. */
  readonly queueAge = new Histogram()
  /** From the request to the first byte of its answer. */
  readonly ttfb = new Histogram()
  /** From the start of a fetch to its end, look-up and connection included, whatever the end was. */
  readonly fetch = new Histogram()
  /** From the moment a worker takes a page until it hands back the result. */
  readonly parse = new Histogram()

  constructor(nowMs: number) {
    this.blocked = new Blocked(nowMs)
  }

  fetched({ ttfbMs, totalMs }: { readonly ttfbMs?: number; readonly totalMs?: number }): void {
    if (ttfbMs !== undefined) this.ttfb.observe(ttfbMs)
    if (totalMs !== undefined) this.fetch.observe(totalMs)
  }
}

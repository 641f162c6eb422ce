/**
 * The bounds that follow the speed of the stage behind them, one for each queue between two stages. A place: the crawl
 * loop and the commit loop say what stands in them and what has left, the gate asks whether there is room. Main thread.
 *
 *   fetch -> [ slots ] -> parse -> [ window ] -> consumer -> [ commitUrls ] -> store
 */
import { limits } from '../core/limits.ts'
import { AdaptiveBound } from './adaptive-bound.ts'
import type { MemoryBudget } from './memory-budget.ts'

/** A page that waits longer for a worker has stopped being fetched fast: what is in slots is lost to no one, but it fills memory. */
export const SLOT_WAIT_MS = 2_000
/** What waits for the store is what a crash would fetch again. */
const COMMIT_WAIT_MS = 2_000
/** What a consumer has not acknowledged comes again after a crash. */
const WINDOW_WAIT_MS = 10_000
/** A consumer that was stopped and goes on has so many pages before it, while the bound grows again. */
const WINDOW_PAGES_MIN = 16

export class FlowBounds {
  readonly slots: AdaptiveBound
  readonly commitUrls: AdaptiveBound
  readonly window: AdaptiveBound

  constructor({ slots }: Pick<MemoryBudget, 'slots'>, workers: number) {
    // A page in hand for each worker and one behind it: with fewer a worker waits for the loop's next turn.
    const inHands = Math.min(slots, 2 * workers)
    this.slots = new AdaptiveBound({ name: 'slots', unit: 'items', min: inHands, max: slots, toleratedMs: SLOT_WAIT_MS, idleAt: workers, reason: `a page waits ${SLOT_WAIT_MS / 1_000} s for a parse worker` })
    // Two batches: one that is being filled while the other is stored.
    const batches = Math.min(2 * limits.commitUrlsMax, limits.commitQueueUrlsMax)
    this.commitUrls = new AdaptiveBound({ name: 'commitQueueUrls', unit: 'items', min: batches, max: limits.commitQueueUrlsMax, toleratedMs: COMMIT_WAIT_MS, idleAt: 0, reason: `an outcome waits ${COMMIT_WAIT_MS / 1_000} s for the store, and batches stay large` })
    this.window = new AdaptiveBound({ name: 'pagesUnacked', unit: 'items', min: WINDOW_PAGES_MIN, max: limits.pagesUnackedMax, toleratedMs: WINDOW_WAIT_MS, idleAt: 1, reason: `a page waits ${WINDOW_WAIT_MS / 1_000} s for the consumer` })
  }

  adapt(nowMs: number): void {
    for (const bound of [this.slots, this.commitUrls, this.window]) bound.adapt(nowMs)
  }
}

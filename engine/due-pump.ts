/**
 * Moves ended URLs back into the queue as they fall due, the longest due first. There they compete by priority with
 * URLs that are new, under the same clocks, limits and admission. Main thread.
 *
 *     due index -> [ at most 500 ] -> commits.again -> queue
 *
 * Invariant: one batch at a time, and none while outcomes wait to be stored: so what is moved costs the loop little at
 * once, however much has fallen due while nobody crawled, and finished pages are stored first. How much lies in the queue
 * is no bound here: the queue is on disk, as the index is, and URLs of a slow host that waited in the index would keep
 * those of all others behind them.
 */
import type { AgainUrl } from '../storage/store.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { limits } from './core/limits.ts'

export class DuePump {
  readonly #parts: Pick<CrawlParts, 'store' | 'commits' | 'clock'>
  #nextAtMs: number | undefined
  #isRead = false
  #isMoving = false

  constructor(parts: Pick<CrawlParts, 'store' | 'commits' | 'clock'>) {
    this.#parts = parts
  }

  /** A batch is stored: due times may have come and gone. */
  changed(): void {
    this.#isRead = false
  }

  /** Milliseconds until the next ended URL falls due, 0 when one has; undefined when none ever does. */
  get waitMs(): number | undefined {
    const { clock, store } = this.#parts
    if (!this.#isRead) {
      this.#nextAtMs = store.nextDueAtMs()
      this.#isRead = true
    }
    return this.#nextAtMs === undefined ? undefined : Math.max(0, this.#nextAtMs - clock.wallMs())
  }

  /** Milliseconds until `pump` may have something to do that no commit announces; infinite when that is not a matter of time. */
  get lookInMs(): number {
    const { waitMs } = this
    return waitMs === undefined || waitMs === 0 ? Number.POSITIVE_INFINITY : Math.min(waitMs, limits.dueLookMsMax)
  }

  /** Begins to move what is due now, if nothing is being moved. */
  pump(): void {
    const { clock, commits, store } = this.#parts
    if (this.#isMoving || commits.isFull || this.waitMs !== 0) return
    void this.#move(store.due(clock.wallMs(), limits.dueUrlsPerCommitMax))
  }

  async #move(urls: readonly AgainUrl[]): Promise<void> {
    this.#isMoving = true
    try {
      await this.#parts.commits.again(urls)
    } catch {
      // Of a store that cannot be written the run is told by the commit loop.
    } finally {
      this.#isMoving = false
    }
  }
}

/**
 * Whether there is room on the disk for what the crawl may write, looked at once a second. A place that the crawl loop
 * asks; it stops nothing itself. Main thread; `statfs` runs in Node's pool.
 *
 *     free >= needed -------- look: free < needed, or a write found no room --------> short
 *          ^                                                                            |
 *          +-- look: free >= needed x RESUME_FACTOR: those whose writes failed try again
 *
 * Invariant: what waits for room is told to try again only at a look that found some, and at each such look. A quota or
 * a limit on the size of files shows in no count of free bytes: then that is one try a second.
 */
import type { Clock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'

/** So many times the least room must be there before the crawl goes on, or it would pause again at once. */
const RESUME_FACTOR = 1.5

/** Of the file system that holds the crawl directory. */
export interface FreeSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

export interface DiskSpaceOptions {
  readonly clock: Clock
  readonly look: () => Promise<FreeSpace>
  readonly storeBytes: () => number
  readonly storeBytesMax: number
  /** There may be room: what failed may be tried again, and what waited may begin. */
  readonly onRoom: () => void
}

/** Free bytes below which nothing more is fetched. */
export function neededBytes(totalBytes: number): number {
  return Math.min(limits.diskFreeBytesMin, limits.diskFreeShareMin * totalBytes)
}

export class DiskSpace {
  readonly #is: DiskSpaceOptions
  #isShort = false
  #isStoreFull = false
  #cancelTimer: (() => void) | undefined
  #isStopped = false

  constructor(options: DiskSpaceOptions) {
    this.#is = options
  }

  /** What there is too little of, as of the last look; undefined while there is room. */
  get shortOf(): 'disk' | 'store_full' | undefined {
    if (this.#isShort) return 'disk'
    return this.#isStoreFull ? 'store_full' : undefined
  }

  /** A write found no room. */
  noteFull(): void {
    this.#isShort = true
  }

  /** Looks now, and once a second until `stop`. Resolves after the first look. */
  async start(): Promise<void> {
    await this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  async #look(): Promise<void> {
    const { clock, look, onRoom, storeBytes, storeBytesMax } = this.#is
    try {
      const { freeBytes, totalBytes } = await look()
      if (this.#isStopped) return
      const factor = this.#isShort ? RESUME_FACTOR : 1
      this.#isShort = freeBytes < neededBytes(totalBytes) * factor
    } catch {
      // Where nobody can say how much is free, a write that fails tells.
      this.#isShort = false
    }
    if (this.#isStopped) return
    this.#isStoreFull = storeBytes() >= storeBytesMax
    if (!this.#isShort) onRoom()
    this.#cancelTimer = clock.after(limits.diskLookMs, () => void this.#look())
  }
}

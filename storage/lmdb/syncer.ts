/**
 * When what was committed reaches the disk, unless each commit waits for it. Main thread; the syncs themselves run in
 * threads of lmdb-js and of Node. Invariant: the sink files that a transaction names are synced before the store, so
 * that a store that reached the disk never names bytes that did not.
 *
 *   commit     nothing to do here
 *   interval   one sync at a time, begun `syncIntervalMs` after the first commit that it covers
 *   system     never, but for `flush` at a clean close
 */
import type { Clock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import type { Durability } from '../../engine/core/options.ts'

export interface SyncerOptions {
  readonly durability: Durability
  readonly clock: Clock
  /** Syncs these sink files, then the store. Rejects when that failed, which is final. */
  readonly sync: (files: readonly string[]) => Promise<void>
}

export class Syncer {
  readonly #is: SyncerOptions
  #files = new Set<string>()
  /** Something was committed since the last sync began. */
  #isDue = false
  #syncing: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined

  constructor(options: SyncerOptions) {
    this.#is = options
  }

  /** A transaction that names these sink files has ended. */
  committed(files: Iterable<string>): void {
    if (this.#is.durability === 'commit') return
    for (const file of files) this.#files.add(file)
    this.#isDue = true
    this.#schedule()
  }

  /** Resolves when all that was committed is on the disk. Rejects when a sync failed. */
  async flush(): Promise<void> {
    await this.#syncing
    if (this.#isDue) await this.#sync()
  }

  /** Begins no sync any more. */
  stop(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #schedule(): void {
    if (this.#is.durability !== 'interval' || this.#syncing !== undefined) return
    this.#cancelTimer ??= this.#is.clock.after(limits.syncIntervalMs, () => {
      this.#sync().catch(() => {
        // The next commit is refused with the reason.
      })
    })
  }

  async #sync(): Promise<void> {
    this.stop()
    this.#isDue = false
    const files = [...this.#files]
    this.#files.clear()
    this.#syncing = this.#is.sync(files)
    try {
      await this.#syncing
    } finally {
      this.#syncing = undefined
    }
    if (this.#isDue) this.#schedule()
  }
}

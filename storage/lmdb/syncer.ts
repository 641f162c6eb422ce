/**
 * When what was committed reaches the disk, unless each commit waits for it. Main thread; the syncs themselves run in
 * threads of lmdb-js and of Node. Invariant: the sink files that a transaction names are synced before the store, so
 * that a synced store never names bytes that are not on the disk.
 *
 *   commit     nothing to do here
 *   interval   one sync at a time, begun `syncIntervalMs` after the first commit that it covers
 *   system     never, but for `flush` at a clean close
 *
 * Without a sync in each commit LMDB is not safe from a loss of power: its pages reach the disk in any order. lmdb-js has
 * a mode that is (overlappingSync, which keeps the last synced root), but it syncs after every commit, and refuses to be
 * asked otherwise. Measured with 150 commits of 50 pages and 50 new links, three runs of each in turn on a busy 2-core
 * machine, a commit takes: `commit` 4.2 to 5.9 ms of CPU and 12 to 25 ms in the median, `interval` 3.6 to 4.0 and 7 to 9,
 * `system` 2.7 to 3.6 and 2 to 12.
 */
import type { Clock } from '../../engine/core/clock.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { Durability } from '../../engine/core/options.ts'

export interface SyncerOptions {
  readonly durability: Durability
  readonly clock: Clock
  /** Syncs these sink files, then the store. Rejects with `disk_full` when that may be tried again, else for ever. */
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
    } catch (error) {
      // It could not even begin, for want of file descriptors.
      if (error instanceof SluiceError && error.code === 'disk_full') {
        for (const file of files) this.#files.add(file)
        this.#isDue = true
      }
      throw error
    } finally {
      this.#syncing = undefined
      if (this.#isDue) this.#schedule()
    }
  }
}

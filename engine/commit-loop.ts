/**
 * Gathers outcomes, deferrals, new URLs and host records, and has the store commit them: one transaction a batch, one
 * batch at a time, so that a slow disk makes larger batches and not more of them.
 *
 *     end, defer, add, noteHost -> [ next batch ] -> store.commit -> known links filled, leases settled
 *
 * Invariant: what was given before `flush` is stored when it resolves. The queue is bounded by its callers, which ask
 * `isFull` before they take work that ends here. A batch that finds no room on the disk is kept and written again, in
 * place of those behind it. Main thread; waits for nothing but the store and the disk.
 */
import type { AgainUrl, CommitBatch, CommitResult, DeferredUrl, EndedUrl, HostUpdate, Store } from '../storage/store.ts'
import type { Clock } from './core/clock.ts'
import { SluiceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { NewUrl, WarcPlace } from './core/types.ts'

/** Waits for the answers of some of the URLs in a row. */
interface Waiter {
  readonly count: number
  readonly resolve: (answers: readonly boolean[]) => void
  readonly reject: (error: unknown) => void
}

interface OpenBatch {
  readonly ended: EndedUrl[]
  readonly deferred: DeferredUrl[]
  readonly added: NewUrl[]
  readonly again: AgainUrl[]
  readonly hosts: Map<string, HostUpdate>
  readonly scope: string[]
  readonly warcLengths: Map<number, number>
  readonly adders: Waiter[]
  readonly againAskers: Waiter[]
  bytes: number
  /** When the first of it came. */
  sinceMs: number | undefined
}

function newBatch(): OpenBatch {
  return { ended: [], deferred: [], added: [], again: [], hosts: new Map(), scope: [], warcLengths: new Map(), adders: [], againAskers: [], bytes: 0, sinceMs: undefined }
}

export interface CommitLoopOptions {
  readonly store: Pick<Store, 'commit'>
  readonly clock: Clock
  /** A batch is stored. */
  readonly onCommitted: (batch: CommitBatch, result: CommitResult) => void
  /** The store cannot be written; nothing more will be. */
  readonly onFailed: (error: unknown) => void
  /** There is no room for the batch on the disk: it waits for `retry`. */
  readonly onFull: () => void
  /** Outcomes that may wait; default limits.commitQueueUrlsMax. */
  readonly queueUrlsMax?: () => number
  /** Bytes of a batch; default limits.commitBytesMax. */
  readonly commitBytesMax?: number
}

export class CommitLoop {
  readonly #is: CommitLoopOptions
  readonly #queueUrlsMax: () => number
  readonly #bytesMax: number
  #batch = newBatch()
  #committing: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  /** Since when the batch waited that is being committed. */
  #committingSinceMs: number | undefined
  #failure: unknown
  /** Tries the batch again for which there was no room. */
  #tryAgain: (() => void) | undefined
  #isStuck = false
  /** Nothing waits for room any more. */
  #isLast = false

  constructor(options: CommitLoopOptions) {
    this.#is = options
    this.#queueUrlsMax = options.queueUrlsMax ?? (() => limits.commitQueueUrlsMax)
    this.#bytesMax = options.commitBytesMax ?? limits.commitBytesMax
  }

  /** Outcomes and deferrals that wait, without the batch that is being committed. */
  get queued(): number {
    return this.#batch.ended.length + this.#batch.deferred.length
  }

  get isFull(): boolean {
    return this.queued >= this.#queueUrlsMax() || this.#batch.bytes >= 2 * this.#bytesMax
  }

  /** Bytes of what waits, without the batch that is being committed. */
  get queuedBytes(): number {
    return this.#batch.bytes
  }

  get isIdle(): boolean {
    return this.#committing === undefined && this.#isEmpty
  }

  /** Age of the oldest outcome that is not stored. */
  get lagMs(): number {
    const sinceMs = this.#committingSinceMs ?? this.#batch.sinceMs
    return sinceMs === undefined ? 0 : this.#is.clock.nowMs() - sinceMs
  }

  end(ended: EndedUrl, warc?: WarcPlace): void {
    this.#batch.ended.push(ended)
    this.#batch.bytes += bytesOf(ended)
    if (warc !== undefined) this.#batch.warcLengths.set(warc.file, warc.offset + warc.length)
    this.#schedule()
  }

  defer(deferred: DeferredUrl): void {
    this.#batch.deferred.push(deferred)
    this.#schedule()
  }

  /** Resolves when the URLs are stored, with one answer each: was it new? */
  add(urls: readonly NewUrl[], scope: readonly string[]): Promise<readonly boolean[]> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      for (const url of urls) this.#batch.added.push(url)
      for (const name of scope) this.#batch.scope.push(name)
      this.#batch.adders.push({ count: urls.length, resolve, reject })
      this.#schedule()
    })
  }

  /** Resolves when it is stored which of these ended URLs are in the queue again. */
  again(urls: readonly AgainUrl[]): Promise<readonly boolean[]> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure)
      for (const url of urls) this.#batch.again.push(url)
      this.#batch.againAskers.push({ count: urls.length, resolve, reject })
      this.#schedule()
    })
  }

  /** Travels with the next batch; later notes of the same host win field by field. */
  noteHost(update: HostUpdate): void {
    this.#batch.hosts.set(update.name, { ...this.#batch.hosts.get(update.name), ...update })
    this.#schedule()
  }

  /** A batch found no room on the disk, and is not stored yet. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** There may be room on the disk again. */
  retry(): void {
    this.#tryAgain?.()
    this.#tryAgain = undefined
  }

  /** As `flush`, but a full disk is a failure: `disk_full`. What is not stored then comes again. */
  async flushLast(): Promise<void> {
    this.#isLast = true
    this.retry()
    await this.flush()
    this.#isLast = false
  }

  /** Commits all that was given until now, and no more: a busy crawl gives something at every moment. */
  async flush(): Promise<void> {
    // The batch under way, and the one behind it.
    if (this.#committing !== undefined) await this.#committing
    if (this.#failure === undefined && !this.isIdle) await (this.#committing ?? this.#commit())
    if (this.#failure !== undefined) throw this.#failure
  }

  get #isEmpty(): boolean {
    const { ended, deferred, adders, againAskers, hosts } = this.#batch
    return ended.length + deferred.length + adders.length + againAskers.length + hosts.size === 0
  }

  #schedule(): void {
    const nowMs = this.#is.clock.nowMs()
    this.#batch.sinceMs ??= nowMs
    if (this.#committing !== undefined || this.#failure !== undefined) return
    const waitMs = this.#batch.sinceMs + limits.commitAgeMsMax - nowMs
    const isLarge = this.queued >= limits.commitUrlsMax || this.#batch.bytes >= this.#bytesMax
    if (isLarge || waitMs <= 0 || this.#batch.adders.length + this.#batch.againAskers.length > 0) {
      void this.#commit()
      return
    }
    this.#cancelTimer ??= this.#is.clock.after(waitMs, () => void this.#commit())
  }

  #commit(): Promise<void> {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#committing ??= this.#run()
    return this.#committing
  }

  async #store(batch: CommitBatch): Promise<CommitResult> {
    for (;;) {
      try {
        const result = await this.#is.store.commit(batch)
        this.#isStuck = false
        return result
      } catch (error) {
        if (!(error instanceof SluiceError) || error.code !== 'disk_full' || this.#isLast) throw error
        this.#isStuck = true
        const again = new Promise<void>((resolve) => { this.#tryAgain = resolve })
        this.#is.onFull()
        await again
      }
    }
  }

  async #run(): Promise<void> {
    const batch = this.#batch
    this.#batch = newBatch()
    const stored = { ...batch, hosts: [...batch.hosts.values()] }
    this.#committingSinceMs = batch.sinceMs
    try {
      const result = await this.#store(stored)
      this.#committing = undefined
      this.#committingSinceMs = undefined
      this.#is.onCommitted(stored, result)
      answer(batch.adders, result.addedNew)
      answer(batch.againAskers, result.again)
      if (!this.#isEmpty) this.#schedule()
    } catch (error) {
      this.#committing = undefined
      this.#committingSinceMs = undefined
      this.#failure = error
      for (const { adders, againAskers } of [batch, this.#batch]) for (const waiter of [...adders, ...againAskers]) waiter.reject(error)
      this.#is.onFailed(error)
    }
  }
}

/** Bytes of an outcome in memory, about. */
export function bytesOf({ line, links }: EndedUrl): number {
  return line.byteLength + links.count * 100
}

/** Hands each waiter the answers to its own URLs. */
function answer(waiters: readonly Waiter[], answers: readonly boolean[]): void {
  let start = 0
  for (const { count, resolve } of waiters) resolve(answers.slice(start, start += count))
}

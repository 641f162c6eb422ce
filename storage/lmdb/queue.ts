/**
 * Reading the queue: which URLs of a host come next. Main thread; reads only. Invariant: best first, that is deferred
 * rows that are due in the order of their times, then ready rows by priority and arrival, then those of the later class;
 * never a leased one.
 *
 * Cost: two range reads, three when the host has deferred rows, however long the queue is. Leased deferred rows are
 * stepped over each time; they are bounded by what the engine holds at once. Rows whose URLs are all leased are spared by
 * the cursor (cursors.ts).
 */
import type { PreviousFetch, QueuedUrl } from '../../engine/core/types.ts'
import type { Claim } from '../store.ts'
import type { Cursors } from './cursors.ts'
import type { Table } from './environment.ts'
import { deferredRange, dueRange, laterRange, notBeforeMsOf, readyRange } from './layout.ts'
import { decodeQueueRow, type DecodedUrl, type RowFilter } from './queue-row.ts'

/** As much of the tables as a claim reads. */
export interface QueueReader {
  readonly queue: Pick<Table, 'keys' | 'entries'>
  /** What is remembered of an earlier fetch of the URL. */
  readonly previousOf: (url: QueuedUrl) => PreviousFetch | undefined
}

export interface ClaimOptions {
  readonly limit: number
  readonly nowMs: number
  readonly leased: ReadonlySet<number>
  readonly isWithoutDeferred?: boolean
}

export function claim(reader: QueueReader, cursors: Cursors, host: { name: string; key: Uint8Array }, options: ClaimOptions): Claim {
  const { queue } = reader
  const taken = new Taking(host.name, options)
  const [deferred] = queue.keys({ ...deferredRange(host.key), limit: 1 })
  if (deferred !== undefined && options.isWithoutDeferred !== true) {
    for (const { key, value } of queue.entries(dueRange(host.key, options.nowMs))) {
      if (taken.isFull) break
      taken.row(key, value)
    }
  }
  if (!taken.isFull) claimReady(queue, cursors, host.key, taken)
  const urls = taken.urls.map(({ url, isAgain }) => (isAgain ? withPrevious(url, reader) : url))
  const [next] = deferred === undefined ? [] : options.isWithoutDeferred === true ? [deferred] : queue.keys({ ...laterRange(host.key, options.nowMs), limit: 1 })
  return next === undefined ? { urls } : { urls, nextDueAtMs: notBeforeMsOf(next) }
}

function withPrevious(url: QueuedUrl, { previousOf }: QueueReader): QueuedUrl {
  const previous = previousOf(url)
  return previous === undefined ? url : { ...url, previous }
}

/** What a claim has taken so far. */
class Taking {
  readonly urls: DecodedUrl[] = []
  readonly #host: string
  readonly #options: ClaimOptions

  constructor(host: string, options: ClaimOptions) {
    this.#host = host
    this.#options = options
  }

  get leased(): ReadonlySet<number> {
    return this.#options.leased
  }

  get isFull(): boolean {
    return this.urls.length >= this.#options.limit
  }

  /** Takes what is free in a row; answers the sequences that are leased or taken now, and whether those are all. */
  row(key: Uint8Array, value: Uint8Array): { readonly passed: readonly number[]; readonly isWhole: boolean } {
    const { leased, limit } = this.#options
    const passed: number[] = []
    let open = limit - this.urls.length
    let isWhole = true
    const filter: RowFilter = {
      limit: Number.POSITIVE_INFINITY,
      wants: (sequence) => {
        if (leased.has(sequence)) {
          passed.push(sequence)
          return false
        }
        if (open === 0) {
          isWhole = false
          return false
        }
        open -= 1
        passed.push(sequence)
        return true
      },
    }
    this.urls.push(...decodeQueueRow(key, value, this.#host, filter))
    return { passed, isWhole }
  }
}

function claimReady(queue: QueueReader['queue'], cursors: Cursors, hostKey: Uint8Array, taken: Taking): void {
  const held: number[] = []
  let last: Uint8Array | undefined
  for (const { key, value } of queue.entries(readyRange(hostKey, cursors.of(hostKey, taken.leased)))) {
    const { passed, isWhole } = taken.row(key, value)
    if (isWhole) {
      held.push(...passed)
      last = key
    }
    if (taken.isFull) break
  }
  if (last !== undefined) cursors.advance(hostKey, last, held)
}

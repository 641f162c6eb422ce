/**
 * Reading the queue: which URLs of a host come next. Main thread; reads only. Invariant: best first, that is deferred
 * rows that are due in the order of their times, then ready rows by priority and arrival; never a leased one.
 *
 * Cost: two or three range reads, one key for each row that is stepped over and one look-up for each row that is
 * handed out, however long the queue is. Leased deferred rows are stepped over each time; they are bounded by what the
 * engine holds at once. Leased ready rows are spared by the cursor (cursors.ts).
 */
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { Claim } from '../store.ts'
import { decodeQueueRow } from './codec.ts'
import type { Cursors } from './cursors.ts'
import type { Table } from './environment.ts'
import { dueRange, laterRange, notBeforeMsOf, readyRange, sequenceOf } from './layout.ts'

/** As much of the queue table as a claim reads. */
export type QueueReader = Pick<Table, 'get' | 'keys'>

export interface ClaimOptions {
  readonly limit: number
  readonly nowMs: number
  readonly leased: ReadonlySet<number>
}

export function claim(queue: QueueReader, cursors: Cursors, host: { name: string; key: Uint8Array }, options: ClaimOptions): Claim {
  const rows: Uint8Array[] = []
  for (const row of queue.keys(dueRange(host.key, options.nowMs))) {
    if (rows.length >= options.limit) break
    if (!options.leased.has(sequenceOf(row))) rows.push(row)
  }
  if (rows.length < options.limit) {
    rows.push(...claimReady(queue, cursors, host.key, { ...options, limit: options.limit - rows.length }))
  }
  const urls: QueuedUrl[] = rows.map((row) => decodeQueueRow(row, queue.get(row)!, host.name))
  const [later] = queue.keys({ ...laterRange(host.key, options.nowMs), limit: 1 })
  return later === undefined ? { urls } : { urls, nextDueAtMs: notBeforeMsOf(later) }
}

function claimReady(queue: QueueReader, cursors: Cursors, hostKey: Uint8Array, options: ClaimOptions): Uint8Array[] {
  const rows: Uint8Array[] = []
  const passed: number[] = []
  let last: Uint8Array | undefined
  for (const row of queue.keys(readyRange(hostKey, cursors.of(hostKey, options.leased)))) {
    if (rows.length >= options.limit) break
    const sequence = sequenceOf(row)
    if (!options.leased.has(sequence)) rows.push(row)
    passed.push(sequence)
    last = row
  }
  if (last !== undefined) cursors.advance(hostKey, last, passed)
  return rows
}

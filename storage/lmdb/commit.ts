/**
 * One commit, in its order: plan (reads), sinks (append and sync), transaction (writes). Main thread; lmdb-js does the
 * writing in a thread of its own, the file system in Node's pool. Invariant: the transaction that takes a URL out of
 * the queue also holds its outcome, its links, the counters and the lengths of the sink files that hold its record; and
 * those bytes are on the disk before it. So a death at any moment leaves the last transaction and, behind the
 * committed lengths, bytes that opening cuts.
 *
 * Cost, measured by bench/store on a busy 2-core machine with Node 20.20: commits of 128 pages of 128 hosts, each page
 * with 9 links that are in the store and 1 that is new, 1 million URLs queued; microseconds of CPU a page, claim included:
 *   main thread        85    of which half plans, and the larger part of that are look-ups
 *   all threads       165 without a sync to the disk, 190 with one a commit; the writing thread has about 50 of them
 * Writes sorted by table and key, or by table alone, cost the same as in the order of the plan (158 to 183 against 165):
 * the leaves of 128 hosts lie apart in any order. Filling a store costs 16 for each URL.
 * The plan is one synchronous piece, and its length bounds how long a batch should be.
 * With a table of known links in front, the links that were seen before do not get here at all.
 */
import * as path from 'node:path'
import { warcFileName } from '../../engine/core/types.ts'
import type { CommitBatch, EndedUrl } from '../store.ts'
import { syncFile } from '../sinks/files.ts'
import { joinLines, type JsonlSink } from '../sinks/jsonl.ts'
import type { Environment, Write } from './environment.ts'
import { putNumber } from './layout.ts'
import type { Plan } from './plan.ts'
import { SINK_PREFIX, stateRow, type StoredState } from './state.ts'

export interface CommitPlaces {
  readonly dir: string
  readonly environment: Environment
  readonly jsonl: JsonlSink
  /** Committed lengths; a commit that succeeds brings them up to date. */
  readonly lengths: Map<string, number>
}

/** Makes a planned batch last. Rejects with `disk_failed`; then nothing of it counts. */
export async function writePlan(plan: Plan, batch: CommitBatch, places: CommitPlaces, commitNumber: number): Promise<StoredState> {
  const lengths = await appendToSinks(plan, batch, places)
  const state: StoredState = { counters: plan.counters, sequence: plan.queue.sequence, commitNumber, clean: false }
  const writes: Write[] = [...plan.writes, stateRow(state)]
  for (const [name, length] of lengths) writes.push(lengthRow(name, length))
  await places.environment.write(writes)
  for (const [name, length] of lengths) places.lengths.set(name, length)
  return state
}

/** Appends the records and syncs what was appended, by this thread or by the workers. Answers the files that grew. */
async function appendToSinks(plan: Plan, batch: CommitBatch, places: CommitPlaces): Promise<ReadonlyMap<string, number>> {
  const lengths = new Map<string, number>()
  // Results of two batches may name one WARC file in either order; its length never goes back.
  for (const [file, length] of batch.warcLengths) {
    if (length > (places.lengths.get(warcFileName(file)) ?? 0)) lengths.set(warcFileName(file), length)
  }
  const lines = joinLines(batch.ended.map((ended, index) => (readsLinks(ended) ? { line: ended.line, newLinks: plan.newLinks[index]! } : { line: ended.line })))
  try {
    await Promise.all([...lengths.keys()].map((name) => syncFile(path.join(places.dir, name))))
    if (lines.length > 0) {
      const { name, length } = await places.jsonl.append(lines)
      lengths.set(name, length)
    }
  } catch (error) {
    throw await places.environment.fail(error)
  }
  return lengths
}

/** Of these pages the links are known: a worker that dropped all of them as known leaves none, and none are new. */
function readsLinks({ links, outcome }: EndedUrl): boolean {
  return links.count > 0 || outcome === 'ok' || outcome === 'redirect'
}

function lengthRow(name: string, length: number): Write {
  const value = new Uint8Array(8)
  putNumber(value, 0, length)
  return { table: 'meta', key: Buffer.from(SINK_PREFIX + name), value }
}

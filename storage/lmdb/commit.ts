/**
 * One commit, in its order: plan (reads), sinks (append and sync), transaction (writes). Main thread; lmdb-js does the
 * writing in a thread of its own, the file system in Node's pool. Invariant: the transaction that takes a URL out of
 * the queue also holds its outcome, its links, the counters and the lengths of the sink files that hold its record; and
 * those bytes are written before it (and on the disk before it, unless the durability leaves that to syncer.ts). So a
 * death at any moment leaves the last transaction and, behind the committed lengths, bytes that opening cuts. A commit
 * that fails changes nothing, in memory neither: the same batch may be planned and written again.
 *
 * Cost, measured by bench/store with Node 20.20 (RESULTS.md): commits of 128 pages of 128 hosts, each page with 9 links
 * that are in the store and 1 that is new, synced at an interval; microseconds of CPU a page, claim included, main thread /
 * all threads: 62 / 114 with 100,000 URLs queued, 71 / 148 with 10 million. Filling a store costs 14 to 23 for each URL.
 * Writes sorted by table and key, or by table alone, showed no difference from the order of the plan in two noisy runs
 * (158 to 183 against 164 and 165): the leaves of 128 hosts lie apart in any order.
 * The plan is one synchronous piece, and its length bounds how long a batch should be.
 * With a table of known links in front, the links that were seen before do not get here at all.
 */
import * as path from 'node:path'
import { SluiceError } from '../../engine/core/errors.ts'
import { warcFileName } from '../../engine/core/types.ts'
import type { CommitBatch, EndedUrl } from '../store.ts'
import { syncFile } from '../sinks/files.ts'
import { joinLines, type JsonlSink } from '../sinks/jsonl.ts'
import type { Environment, Write } from './environment.ts'
import { putNumber } from './layout.ts'
import type { Plan } from './plan.ts'
import { SINK_PREFIX, stateRow, type StoredState } from './state.ts'
import type { Syncer } from './syncer.ts'

export interface CommitPlaces {
  readonly dir: string
  readonly environment: Environment
  readonly jsonl: JsonlSink
  readonly syncer: Syncer
  /** Each commit waits until its bytes are on the disk. */
  readonly syncsCommits: boolean
  /** Committed lengths; a commit that succeeds brings them up to date. */
  readonly lengths: Map<string, number>
}

/** Makes a planned batch last. Rejects with `disk_full` or `disk_failed`; then nothing of it counts. */
export async function writePlan(plan: Plan, batch: CommitBatch, places: CommitPlaces, commitNumber: number): Promise<StoredState> {
  const { environment, jsonl, syncer } = places
  const state: StoredState = { counters: plan.counters, sequence: plan.queue.sequence, commitNumber, clean: false }
  const writes: Write[] = [...plan.writes, stateRow(state)]
  let lengths: ReadonlyMap<string, number>
  try {
    lengths = await appendToSinks(plan, batch, places)
    for (const [name, length] of lengths) writes.push(lengthRow(name, length))
    await environment.write(writes)
  } catch (error) {
    await jsonl.rewind()
    throw error
  }
  jsonl.commit()
  for (const [name, length] of lengths) places.lengths.set(name, length)
  syncer.committed(lengths.keys())
  return state
}

/** Appends the records, and syncs what was appended by this thread or by the workers. Answers the files that grew. */
async function appendToSinks(plan: Plan, batch: CommitBatch, places: CommitPlaces): Promise<ReadonlyMap<string, number>> {
  const lengths = new Map<string, number>()
  // Results of two batches may name one WARC file in either order; its length never goes back.
  for (const [file, length] of batch.warcLengths) {
    if (length > (places.lengths.get(warcFileName(file)) ?? 0)) lengths.set(warcFileName(file), length)
  }
  const lines = joinLines(batch.ended.map((ended, index) => (readsLinks(ended) ? { line: ended.line, newLinks: plan.newLinks[index]! } : { line: ended.line })))
  try {
    if (places.syncsCommits) await syncFiles(places.dir, lengths.keys())
    if (lines.length > 0) {
      const { name, length } = await places.jsonl.append(lines)
      lengths.set(name, length)
    }
  } catch (error) {
    throw await places.environment.refusal(error)
  }
  return lengths
}

/** Writes whether the stop is a clean one, and has all that was committed on the disk. Nothing is written after it. */
export async function writeClean({ environment, syncer }: CommitPlaces, state: StoredState): Promise<void> {
  try {
    await environment.write([stateRow(state)])
    syncer.committed([])
  } catch (error) {
    // On a full disk the stop is not a clean one, and nothing else is lost.
    if (!(error instanceof SluiceError) || error.code !== 'disk_full') throw error
  }
  await syncer.flush()
}

/** What the syncer does: these sink files first, then the store. */
export async function syncCommitted(dir: string, environment: Environment, names: readonly string[]): Promise<void> {
  try {
    await syncFiles(dir, names)
  } catch (error) {
    throw await environment.refusal(error)
  }
  await environment.sync()
}

async function syncFiles(dir: string, names: Iterable<string>): Promise<void> {
  await Promise.all([...names].map((name) => syncFile(path.join(dir, name))))
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

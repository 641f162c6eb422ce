import { expect, test } from 'vitest'
import { CommitLoop } from '../../engine/commit-loop.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { noLinks, type NewUrl, type QueuedUrl } from '../../engine/core/types.ts'
import type { CommitBatch, CommitResult, DeferredUrl, EndedUrl } from '../../storage/store.ts'
import { integer, withSeeds } from '../support/random.ts'
import { TestClock, turn } from '../support/test-clock.ts'

interface Commit { readonly batch: CommitBatch; readonly atMs: number; finish(): void; fail(error: Error): void }

function setUp() {
  const clock = new TestClock()
  const commits: Commit[] = []
  const committed: CommitBatch[] = []
  const failures: unknown[] = []
  const fullCount = { times: 0 }
  const loop = new CommitLoop({
    clock,
    store: {
      commit: (batch) => new Promise((resolve, reject) => {
        const result: CommitResult = {
          commitNumber: commits.length, shed: [], hostsGrown: [], again: batch.again.map(() => true), addedNew: batch.added.map(({ depth }) => depth === 0), newLinks: batch.ended.map(() => 0),
        }
        commits.push({ batch, atMs: clock.nowMs(), finish: () => resolve(result), fail: reject })
      }),
    },
    onCommitted: (batch) => committed.push(batch),
    onFailed: (error) => failures.push(error),
    onFull: () => { fullCount.times += 1 },
  })
  return { clock, commits, committed, failures, fullCount, loop }
}

function queued(sequence: number): QueuedUrl {
  return { row: new Uint8Array(), fingerprint: new Uint8Array(16), host: 'a', sequence, url: `http://a/${sequence}`, depth: 0, priority: 0, attempts: 0 }
}

function ended(sequence: number, lineBytes = 10, links = noLinks): EndedUrl {
  return { url: queued(sequence), outcome: 'ok', atMs: 0, links, line: new Uint8Array(lineBytes), wireBytes: 0, bodyBytes: 0 }
}

function deferred(sequence: number): DeferredUrl {
  return { url: queued(sequence), attempts: 1, notBeforeMs: 0, retry: true }
}

/** A flush, and whether it has resolved. */
function flushing(loop: CommitLoop): { readonly isDone: boolean; readonly promise: Promise<void> } {
  const flush = { isDone: false, promise: Promise.resolve() }
  flush.promise = (async () => {
    await loop.flush()
    flush.isDone = true
  })()
  return flush
}

/** The fake store says of it that it was new when `isNew`. */
function added(isNew: boolean): NewUrl {
  return { url: 'http://a/', host: 'a', fingerprint: new Uint8Array(16), depth: isNew ? 0 : 1, priority: 0 }
}

test('a batch is committed when its first outcome is as old as the limit, and not before', () => {
  const { clock, commits, loop } = setUp()
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax - 1)
  loop.defer(deferred(2))
  expect([commits.length, loop.lagMs, loop.queued]).toEqual([0, limits.commitAgeMsMax - 1, 2])
  clock.advance(1)
  expect(commits.length).toBe(1)
  expect(commits[0]!.batch).toMatchObject({ ended: [{ url: { sequence: 1 } }], deferred: [{ url: { sequence: 2 } }] })
  expect([loop.queued, loop.isIdle, clock.timersCount]).toEqual([0, false, 0])
})

test('a batch is committed at once when it has as many outcomes as the limit', () => {
  const { commits, loop } = setUp()
  for (let i = 0; i < limits.commitUrlsMax; i++) {
    expect(commits.length).toBe(0)
    if (i % 2 === 0) loop.end(ended(i))
    else loop.defer(deferred(i))
  }
  expect(commits.length).toBe(1)
})

test('a batch is committed at once when its lines and links have as many bytes as the limit', () => {
  const { commits, loop } = setUp()
  loop.end(ended(1, limits.commitBytesMax - 200_000))
  expect(commits.length).toBe(0)
  loop.end(ended(2, 0, { ...noLinks, count: 2_000 }))
  expect(commits.length).toBe(1)
})

test('what comes during a commit waits for its end, and its age counts from when it came', async () => {
  const { clock, commits, loop } = setUp()
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax)
  loop.end(ended(2))
  await clock.play(limits.commitAgeMsMax - 10)
  for (let i = 0; i < limits.commitQueueUrlsMax; i++) loop.defer(deferred(10 + i))
  expect([commits.length, loop.isFull]).toEqual([1, true])
  commits[0]!.finish()
  await turn()
  expect(commits.length).toBe(2)

  loop.end(ended(3))
  await clock.play(limits.commitAgeMsMax - 10)
  commits[1]!.finish()
  await turn()
  expect(commits.length).toBe(2)
  await clock.play(10)
  expect(commits.length).toBe(3)
})

test('the queue is full by number and by bytes, and has room again when its batch is being committed', async () => {
  const { clock, commits, loop } = setUp()
  loop.noteHost({ name: 'a' })
  clock.advance(limits.commitAgeMsMax)
  loop.end(ended(1, 2 * limits.commitBytesMax))
  expect(loop.isFull).toBe(true)
  commits[0]!.finish()
  await turn()
  expect([commits.length, loop.isFull]).toEqual([2, false])
})

test('add answers for each URL of its caller whether it was new, in one commit with the others that wait', async () => {
  const { commits, loop } = setUp()
  loop.end(ended(1))
  const first = loop.add([added(true), added(false)], ['a'])
  const second = loop.add([added(false)], ['b'])
  const third = loop.add([added(true)], [])
  expect(commits.map(({ batch }) => [batch.added.length, batch.ended.length, batch.scope])).toEqual([[2, 1, ['a']]])
  commits[0]!.finish()
  await turn()
  expect(commits[1]!.batch).toMatchObject({ added: [{}, {}], scope: ['b'] })
  commits[1]!.finish()
  expect(await Promise.all([first, second, third])).toEqual([[true, false], [false], [true]])
})

test('a million URLs can be added in one call', async () => {
  const { commits, loop } = setUp()
  const answer = loop.add(Array.from({ length: 1_000_000 }, () => added(true)), [])
  commits[0]!.finish()
  expect((await answer).length).toBe(1_000_000)
})

test('notes on one host are one record, in which the later wins field by field', () => {
  const { clock, commits, loop } = setUp()
  loop.noteHost({ name: 'a', limit: 3, failures: 1 })
  loop.noteHost({ name: 'b', excluded: true })
  loop.noteHost({ name: 'a', failures: 2 })
  clock.advance(limits.commitAgeMsMax)
  expect(commits[0]!.batch.hosts).toEqual([{ name: 'a', limit: 3, failures: 2 }, { name: 'b', excluded: true }])
})

test('a batch holds the length of each WARC file up to its last page', () => {
  const { clock, commits, loop } = setUp()
  loop.end(ended(1), { file: 1, offset: 0, length: 10 })
  loop.end(ended(2), { file: 2, offset: 100, length: 5 })
  loop.end(ended(3), { file: 1, offset: 10, length: 7 })
  clock.advance(limits.commitAgeMsMax)
  expect([...commits[0]!.batch.warcLengths]).toEqual([[1, 17], [2, 105]])
})

test('flush resolves when everything that was given before is stored, and at once when there is nothing', async () => {
  const { clock, commits, committed, loop } = setUp()
  await loop.flush()
  expect(commits.length).toBe(0)
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax)
  loop.end(ended(2))
  const flush = flushing(loop)
  commits[0]!.finish()
  await turn()
  expect([flush.isDone, commits.length]).toEqual([false, 2])
  commits[1]!.finish()
  await flush.promise
  expect(committed.map((batch) => batch.ended.map(({ url }) => url.sequence))).toEqual([[1], [2]])
  expect([loop.isIdle, loop.lagMs, clock.timersCount]).toEqual([true, 0, 0])
})

test('flush waits for what was given before it, not for what a busy crawl goes on giving', async () => {
  const { clock, commits, loop } = setUp()
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax)
  loop.end(ended(2))
  const flush = flushing(loop)
  for (const commit of [0, 1]) {
    clock.advance(limits.commitAgeMsMax)
    commits[commit]!.finish()
    await turn()
    loop.end(ended(3 + commit))
  }
  await turn()
  expect([flush.isDone, loop.isIdle]).toEqual([true, false])
})

test('a store that fails rejects every add that waits and every later one, ends flush, and is reported once', async () => {
  const { clock, commits, failures, loop } = setUp()
  const [first, second] = [loop.add([added(true)], []), loop.add([added(true)], [])]
  loop.end(ended(1))
  const answers = Promise.allSettled([first, second, loop.flush()])
  const error = new Error('no space left')
  commits[0]!.fail(error)
  const failed = { status: 'rejected', reason: error }
  expect(await answers).toEqual([failed, failed, failed])
  await expect(loop.add([added(true)], [])).rejects.toBe(error)
  await expect(loop.flush()).rejects.toBe(error)
  for (let i = 0; i < limits.commitQueueUrlsMax; i++) loop.end(ended(i))
  await clock.play(10 * limits.commitAgeMsMax)
  expect([commits.length, failures, clock.timersCount]).toEqual([1, [error], 0])
  expect(loop.isFull, 'its callers stop').toBe(true)
})

test('flush after a failure tells of it, though nothing waits any more', async () => {
  const { clock, commits, loop } = setUp()
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax)
  const error = new Error('no space left')
  commits[0]!.fail(error)
  await turn()
  expect(loop.isIdle).toBe(true)
  await expect(loop.flush()).rejects.toBe(error)
})

test('the lag is that of the oldest outcome that is not stored, the one being committed before those that wait', () => {
  const { clock, loop } = setUp()
  expect(loop.lagMs).toBe(0)
  loop.end(ended(1))
  clock.advance(limits.commitAgeMsMax + 30)
  loop.end(ended(2))
  clock.advance(5)
  expect(loop.lagMs).toBe(limits.commitAgeMsMax + 35)
})

test('over random work and latencies one commit runs at a time, each outcome is in exactly one, and order is kept', async () => {
  await withSeeds(60, async (random) => {
    const { clock, commits, committed, loop } = setUp()
    let given = 0
    let finished = 0
    const answers: Promise<readonly boolean[]>[] = []
    for (let i = 0; i < 150; i++) {
      const roll = random()
      if (roll < 0.3) for (let n = integer(random, 200); n > 0; n--) loop.end(ended(given++))
      else if (roll < 0.4) loop.defer(deferred(given++))
      else if (roll < 0.45) answers.push(loop.add([added(true)], []))
      else if (roll < 0.5) loop.noteHost({ name: 'a' })
      else if (roll < 0.7) await clock.play(integer(random, 2 * limits.commitAgeMsMax))
      else if (finished < commits.length) {
        commits[finished++]!.finish()
        await turn()
      }
      expect(commits.length - finished, 'commits under way').toBeLessThanOrEqual(1)
      if (commits.length === finished) expect(loop.lagMs, 'the age of what waits').toBeLessThanOrEqual(limits.commitAgeMsMax)
    }
    const flush = flushing(loop)
    while (!flush.isDone) {
      if (finished < commits.length) commits[finished++]!.finish()
      await turn()
    }
    await flush.promise
    expect((await Promise.all(answers)).flat().every(Boolean)).toBe(true)
    const sequencesOf = (urls: readonly { url: QueuedUrl }[]): number[] => urls.map(({ url }) => url.sequence)
    for (const kind of ['ended', 'deferred'] as const) {
      const sequences = committed.flatMap((batch) => sequencesOf(batch[kind]))
      expect(sequences).toEqual([...sequences].sort((a, b) => a - b))
    }
    const all = committed.flatMap((batch) => [...sequencesOf(batch.ended), ...sequencesOf(batch.deferred)])
    expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: given }, (_, i) => i))
    expect(clock.timersCount).toBe(0)
  })
})

test('a batch that finds no room is written again as it was, before what came meanwhile', async () => {
  const { commits, committed, failures, fullCount, loop } = setUp()
  const answers = loop.add([added(true)], [])
  loop.end(ended(1))
  for (let times = 1; times <= 3; times += 1) {
    commits.at(-1)!.fail(new SluiceError('disk_full', 'no room'))
    await turn()
    expect([loop.isStuck, loop.isIdle, fullCount.times, commits.length]).toEqual([true, false, times, times])
    loop.end(ended(1 + times))
    loop.retry()
    await turn()
    expect([loop.isStuck, commits.length, commits.at(-1)!.batch === commits[0]!.batch]).toEqual([true, times + 1, true])
  }
  commits.at(-1)!.finish()
  expect(await answers).toEqual([true])
  expect([loop.isStuck, loop.queued, committed, failures]).toEqual([false, 4, [commits[0]!.batch], []])
})

test('a last flush tries once more, and then a full disk is a failure that everybody is told', async () => {
  const { commits, failures, loop } = setUp()
  const added_ = loop.add([added(true)], []).catch((error: unknown) => error)
  const error = new SluiceError('disk_full', 'no room')
  commits[0]!.fail(error)
  await turn()
  const last = loop.flushLast().catch((failure: unknown) => failure)
  await turn()
  expect(commits.length).toBe(2)
  commits[1]!.fail(error)
  expect([await last, await added_, failures]).toEqual([error, error, [error]])
})

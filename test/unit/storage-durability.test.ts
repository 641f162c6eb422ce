import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SluiceError } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { Durability } from '../../engine/core/options.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { Syncer } from '../../storage/lmdb/syncer.ts'
import { emptyBatch, ended, faultsOf, newUrl, pageRow } from '../contract/store-batch.ts'
import { TestClock, turn } from '../support/test-clock.ts'

function setUp(durability: Durability) {
  const clock = new TestClock()
  const syncs: { readonly files: readonly string[]; finish(): void; fail(error: Error): void }[] = []
  const syncer = new Syncer({ durability, clock, sync: (files) => new Promise((resolve, reject) => { syncs.push({ files, finish: resolve, fail: reject }) }) })
  return { clock, syncer, syncs }
}

test('at an interval all commits of a second are synced together, and the files of each once', async () => {
  const { clock, syncer, syncs } = setUp('interval')
  for (const file of ['a', 'b', 'a']) syncer.committed([file])
  clock.advance(limits.syncIntervalMs - 1)
  expect(syncs).toEqual([])
  clock.advance(1)
  expect(syncs.map(({ files }) => files)).toEqual([['a', 'b']])
  clock.advance(10 * limits.syncIntervalMs)
  expect(syncs.length).toBe(1)
})

test('one sync runs at a time, however slow the disk; what is committed meanwhile is synced a second after its end', async () => {
  const { clock, syncer, syncs } = setUp('interval')
  syncer.committed(['a'])
  clock.advance(limits.syncIntervalMs)
  for (let times = 0; times < 5; times += 1) {
    syncer.committed(['b'])
    clock.advance(limits.syncIntervalMs)
  }
  expect(syncs.length).toBe(1)
  syncs[0]!.finish()
  await turn()
  clock.advance(limits.syncIntervalMs)
  expect(syncs.map(({ files }) => files)).toEqual([['a'], ['b']])
})

test('a flush syncs what no sync has begun with, and resolves after the one that runs', async () => {
  const { clock, syncer, syncs } = setUp('interval')
  syncer.committed(['a'])
  clock.advance(limits.syncIntervalMs)
  syncer.committed(['b'])
  let isFlushed = false
  const flush = async (): Promise<void> => {
    await syncer.flush()
    isFlushed = true
  }
  void flush()
  await turn()
  expect([syncs.length, isFlushed]).toEqual([1, false])
  syncs[0]!.finish()
  await turn()
  expect([syncs.map(({ files }) => files), isFlushed]).toEqual([[['a'], ['b']], false])
  syncs[1]!.finish()
  await turn()
  expect([isFlushed, clock.timersCount]).toEqual([true, 0])
})

test('left to the system nothing is synced but by a flush, and with every commit there is nothing to do', async () => {
  for (const [durability, flushes] of [['system', 1], ['commit', 0]] as const) {
    const { clock, syncer, syncs } = setUp(durability)
    syncer.committed(['a'])
    expect(clock.timersCount).toBe(0)
    void syncer.flush()
    await turn()
    expect(syncs.length).toBe(flushes)
  }
})

test('a sync that could not begin is made up for with the same files; one that failed is not tried again', async () => {
  for (const [code, times] of [['disk_full', 2], ['disk_failed', 1]] as const) {
    const { clock, syncer, syncs } = setUp('interval')
    syncer.committed(['a'])
    clock.advance(limits.syncIntervalMs)
    syncs[0]!.fail(new SluiceError(code, 'no'))
    await turn()
    clock.advance(2 * limits.syncIntervalMs)
    expect(syncs.map(({ files }) => files)).toEqual(Array.from({ length: times }, () => ['a']))
  }
})

let dir: string
beforeEach(() => { dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-durability-')) })
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

test('a store that was made with one durability opens with each other one, and goes on', async () => {
  const modes: readonly Durability[] = ['commit', 'interval', 'system', 'commit', 'system', 'interval', 'commit']
  for (const [round, durability] of modes.entries()) {
    const store = await openStore(dir, { durability, clock: new TestClock() })
    expect(store.openedUnclean).toBe(false)
    expect(store.counters()).toMatchObject({ done: 5 * round })
    await store.commit(emptyBatch({ added: Array.from({ length: 5 }, (_, index) => newUrl(`http://a.test/${round}/${index}`)) }))
    const { urls } = store.claim('a.test', { limit: 5, nowMs: 0, leased: new Set() })
    await store.commit(emptyBatch({ ended: urls.map((url) => ended(url, { page: pageRow(url.url) })) }))
    await store.flushed()
    await store.close()
  }
  const store = await openStore(dir)
  expect(await faultsOf(store)).toEqual([])
  await store.close()
  expect(fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8').split('\n').length - 1).toBe(5 * modes.length)
})

test('a failed sync ends all writing, at an interval too: what the disk did not take is not known', async () => {
  const clock = new TestClock()
  const store = await openStore(dir, { durability: 'interval', clock })
  await store.commit(emptyBatch({ added: [newUrl('http://a.test/')] }))
  const { urls } = store.claim('a.test', { limit: 1, nowMs: 0, leased: new Set() })
  await store.commit(emptyBatch({ ended: [ended(urls[0]!)] }))
  fs.rmSync(path.join(dir, 'pages-000001.jsonl'))
  await expect(store.flushed()).rejects.toMatchObject({ code: 'disk_failed' })
  await expect(store.commit(emptyBatch())).rejects.toMatchObject({ code: 'disk_failed' })
  await store.close()
})

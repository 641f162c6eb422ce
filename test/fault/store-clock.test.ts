import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { expect, it } from 'vitest'
import { emptyBatch, ended, faultsOf, newUrl, pageRow } from '../contract/store-batch.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'

const HOUR = 3_600_000
const T = 1_700_000_000_000

function claimable(store: LmdbStore, nowMs: number): readonly string[] {
  return store.claim('a.test', { limit: 10, nowMs, leased: new Set() }).urls.map(({ url }) => url)
}

it.each([['forward', HOUR], ['back', -HOUR]])('a clock that jumps %s by an hour, while the store is open or before the next opening, loses no URL and ends none', async (_, jumpMs) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-clock-'))
  let store = await openStore(dir)
  await store.commit(emptyBatch({ added: ['1', '2', '3'].map((name) => newUrl(`http://a.test/${name}`)) }))
  const [first, second] = store.claim('a.test', { limit: 2, nowMs: T, leased: new Set() }).urls
  await store.commit(emptyBatch({
    deferred: [{ url: first!, attempts: 1, notBeforeMs: T + 5_000, retry: true }],
    ended: [ended(second!, { page: pageRow(second!.url), due: { atMs: T + 60_000, intervalMs: 60_000 } })],
  }))
  for (const isReopened of [false, true]) {
    if (isReopened) {
      await store.close()
      store = await openStore(dir)
    }
    // What waits goes by the wall clock: it is there as soon as that says so, and until then the store names the moment.
    const isLate = jumpMs > 0
    expect(claimable(store, T + jumpMs)).toEqual(isLate ? [first!.url, 'http://a.test/3'] : ['http://a.test/3'])
    expect(store.claim('a.test', { limit: 10, nowMs: T + jumpMs, leased: new Set() }).nextDueAtMs).toBe(isLate ? undefined : T + 5_000)
    expect(store.due(T + jumpMs, 10).length).toBe(isLate ? 1 : 0)
    expect(store.nextDueAtMs()).toBe(T + 60_000)
    // And when it is right again, all is as if it had never jumped.
    expect(claimable(store, T + 5_000)).toEqual([first!.url, 'http://a.test/3'])
    expect(store.counters()).toMatchObject({ pending: 2, done: 1 })
  }
  // A page that ended before the time at which it was found takes part like any other.
  const [again] = store.due(T + 60_000, 1)
  expect((await store.commit(emptyBatch({ again: [again!] }))).again).toEqual([true])
  const late = store.claim('a.test', { limit: 3, nowMs: T + HOUR, leased: new Set() }).urls
  await store.commit(emptyBatch({ ended: late.map((url) => ended(url, { atMs: T + jumpMs, page: pageRow(url.url) })) }))
  expect(store.counters()).toMatchObject({ pending: 0, done: 3 })
  expect(await faultsOf(store)).toEqual([])
  await store.close()
  fs.rmSync(dir, { recursive: true })
})

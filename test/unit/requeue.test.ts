import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RequeueFilter, RequeueResult } from '../../engine/core/api-types.ts'
import { limits } from '../../engine/core/limits.ts'
import { requeueUrls, wantedOf } from '../../engine/requeue.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, faultsOf, newUrl } from '../contract/store-batch.ts'

let dir: string
let store: LmdbStore

beforeEach(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-requeue-'))
  store = await openStore(dir)
})
afterEach(async () => {
  expect(await faultsOf(store)).toEqual([])
  await store.close()
  fs.rmSync(dir, { recursive: true })
})

const endings = [{ outcome: 'ok' }, { outcome: 'failed', code: 'timeout' }, { outcome: 'failed', code: 'dns_failed' }, { outcome: 'robots_denied' }, { outcome: 'http_error' }] as const

/** `each` URLs of each ending on each host, and one more that is pending. */
async function endAll(hosts: readonly string[], each = 1): Promise<void> {
  for (const host of hosts) {
    await store.commit(emptyBatch({ added: Array.from({ length: endings.length * each }, (_, index) => newUrl(`http://${host}/${index}`)) }))
    const { urls } = store.claim(host, { limit: 1e6, nowMs: 0, leased: new Set() })
    await store.commit(emptyBatch({ ended: urls.map((url, index) => ended(url, { ...endings[index % endings.length]! })) }))
    await store.commit(emptyBatch({ added: [newUrl(`http://${host}/pending`)] }))
  }
}

const batches: number[] = []
const revived: string[] = []

async function requeue(filter: RequeueFilter, onProgress?: (soFar: RequeueResult) => void): Promise<RequeueResult> {
  batches.length = 0
  revived.length = 0
  return requeueUrls({
    store, revive: ({ name }) => void revived.push(name),
    again: async (again) => {
      batches.push(again.length)
      return (await store.commit(emptyBatch({ again }))).again
    },
  }, wantedOf(filter), onProgress)
}

it.each([
  [{ all: true, hosts: 'a.test' }, 'requeue: unknown option "hosts"; known are outcome, code, host, all'],
  [{ code: 'http_404' }, '--code: expected a code such as timeout or http_503, given "http_404"; answers that are not tried again have no code, only the outcome http_error'],
  [{ code: 'time-out' }, '--code: expected a code such as timeout or http_503, given "time-out"; the README lists them all'],
])('a filter that says %j is refused: it would take more than was meant, or nothing', (filter, message) => {
  expect(() => wantedOf(filter as RequeueFilter)).toThrow(expect.objectContaining({ code: 'bad_option', message }))
})

describe('a requeue', () => {
  it.each([
    [{ outcome: 'failed' }, 4], [{ outcome: 'ok, http_error' }, 4], [{ outcome: ['ok', 'robots_denied'] }, 4], [{ code: 'timeout' }, 2],
    [{ outcome: 'failed', host: 'a.test' }, 2], [{ host: 'http://A.test/' }, 5], [{ outcome: 'ok', code: 'timeout' }, 0], [{ host: 'none.test' }, 0], [{ all: true }, 10],
  ])('by %j takes what matches all of it, once', async (filter, requeued) => {
    await endAll(['a.test', 'b.test'])
    expect(await requeue(filter)).toEqual({ requeued, excluded: 0 })
    expect(store.counters()).toMatchObject({ discovered: 12, pending: 2 + requeued })
    expect(await requeue(filter)).toEqual({ requeued: 0, excluded: 0 })
  })

  it('passes over excluded hosts and counts their URLs, and revives each of the others once', async () => {
    await endAll(['a.test', 'b.test', 'c.test'])
    await store.commit(emptyBatch({ hosts: [{ name: 'b.test', excluded: true }] }))
    expect(await requeue({ outcome: 'failed' })).toEqual({ requeued: 4, excluded: 2 })
    expect(revived.toSorted()).toEqual(['a.test', 'c.test'])
  })

  it('goes in bounded batches, tells how far it is, and takes what ends again meanwhile no second time', async () => {
    await endAll(['a.test'], 300)
    const progress: number[] = []
    const counted = await requeueUrls({
      store, revive: () => undefined,
      again: async (again) => {
        batches.push(again.length)
        const result = await store.commit(emptyBatch({ again }))
        const { urls } = store.claim('a.test', { limit: 1e6, nowMs: 0, leased: new Set() })
        await store.commit(emptyBatch({ ended: urls.map((url) => ended(url)) }))
        return result.again
      },
    }, wantedOf({ all: true }), ({ requeued }) => progress.push(requeued))
    // The one that was pending has ended in the first batch, and its row lay before or behind the cursor.
    expect([1_500, 1_501]).toContain(counted.requeued)
    expect(Math.max(...batches)).toBeLessThanOrEqual(limits.requeueRowsPerTurnMax)
    expect(progress.at(-1)).toBe(counted.requeued)
    expect(progress.length).toBeGreaterThanOrEqual(3)
  })
})

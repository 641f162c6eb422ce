import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { queryPathHash } from '../../engine/core/traps.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { Arena, decodeJson, encodeJson } from '../../storage/lmdb/codec.ts'
import { metaKeys } from '../../storage/lmdb/state.ts'
import { openEnvironment } from '../../storage/lmdb/environment.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { QueryGrowth } from '../../storage/query-growth.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl, noRefusals } from '../contract/store-batch.ts'
import { integer, withSeeds } from '../support/random.ts'

const hashAt = (low: number, high: number): Uint8Array => Buffer.from(Int32Array.of(low, high).buffer)

describe('QueryGrowth', () => {
  it('counts exactly, and another view of its memory sees it', () => {
    const table = QueryGrowth.create()
    const view = QueryGrowth.over(table.memory)
    const paths = Array.from({ length: 5_000 }, (_, index) => queryPathHash(`http://a.test/${index}?x`)!)
    for (const [index, hash] of paths.entries()) {
      table.add(hash, 1)
      table.add(hash, index)
    }
    expect(paths.filter((hash, index) => view.countOf(hash) !== index + 1)).toEqual([])
    expect(view.countOf(queryPathHash('http://b.test/?x')!)).toBe(0)
  })

  it('tells hashes apart that agree in one half, a half of zeros included', () => {
    const table = QueryGrowth.create(64)
    table.add(hashAt(0, 0), 1)
    table.add(hashAt(0, 7), 2)
    table.add(hashAt(7, 0), 3)
    expect([hashAt(0, 0), hashAt(0, 7), hashAt(7, 0), hashAt(7, 7)].map((hash) => table.countOf(hash))).toEqual([1, 2, 3, 0])
  })

  it('gives the place of the least count to a new path, which begins at its own number', () => {
    const table = QueryGrowth.create(64)
    for (let path = 1; path <= 5; path += 1) table.add(hashAt(path, path), path * 10)
    table.add(hashAt(6, 6), 1)
    expect([1, 2, 3, 4, 5, 6].map((path) => table.countOf(hashAt(path, path)))).toEqual([0, 20, 30, 40, 50, 1])
    table.add(hashAt(7, 7), 1)
    expect([2, 6, 7].map((path) => table.countOf(hashAt(path, path)))).toEqual([20, 0, 1])
  })

  it('never says more than was added, and keeps a path that grows while others stream through', () => withSeeds(5, (random) => {
    const table = QueryGrowth.create(256)
    const added = new Map<number, number>()
    table.add(hashAt(0, 1), 100)
    for (let step = 0; step < 5_000; step += 1) {
      const path = 1 + integer(random, 500)
      table.add(hashAt(path, path), 1)
      added.set(path, (added.get(path) ?? 0) + 1)
    }
    expect(table.countOf(hashAt(0, 1))).toBe(100)
    expect([...added].filter(([path, count]) => table.countOf(hashAt(path, path)) > count)).toEqual([])
    expect([...added].filter(([path]) => table.countOf(hashAt(path, path)) > 0).length).toBeLessThanOrEqual(4 * 5 - 1)
  }))
})

describe('caps at commit', () => {
  let dir: string
  let store: LmdbStore
  let queries: QueryGrowth

  beforeEach(async () => {
    dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-caps-'))
    queries = QueryGrowth.create(4_096)
    store = await openStore(dir, { queries })
  })

  afterEach(async () => {
    await store.close()
    fs.rmSync(dir, { recursive: true, force: true })
  })

  const add = (...urls: string[]): Promise<{ addedNew: readonly boolean[] }> => store.commit(emptyBatch({ added: urls.map((url) => newUrl(url)) }))
  const claim = (host: string): readonly QueuedUrl[] => store.claim(host, { limit: 100, nowMs: 0, leased: new Set() }).urls
  const countOf = (url: string): number => queries.countOf(queryPathHash(url)!)

  it('a host takes links up to its cap, exactly, over pages of one batch and of the next', async () => {
    await store.setCaps({ queuedPerHostMax: 3 })
    await add('http://a.test/0', 'http://a.test/1', 'http://c.test/')
    const [first, second] = claim('a.test')
    const links = (page: string): ReturnType<typeof linkList> => linkList([1, 2].map((index) => `http://b.test/${page}${index}`))
    const result = await store.commit(emptyBatch({ ended: [ended(first!, { links: links('x') }), ended(second!, { links: links('y') })] }))
    expect([result.newLinks, store.host('b.test')?.pending, store.counters().refused.host_full]).toEqual([[2, 1], 3, 1])
    // An outcome of the host makes room for one.
    await store.commit(emptyBatch({ ended: [ended(claim('b.test')[0]!, { links: linkList(['http://b.test/z1', 'http://b.test/z2']) })] }))
    expect([store.host('b.test')?.pending, store.counters().refused]).toEqual([3, { ...noRefusals, host_full: 2 }])
  })

  it('a link that a full host did not take is taken later, and one that it has is not refused', async () => {
    await store.setCaps({ queuedPerHostMax: 1 })
    await add('http://a.test/0', 'http://c.test/', 'http://d.test/')
    const links = linkList(['http://b.test/1', 'http://b.test/2', 'http://b.test/1'])
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { links })] }))
    expect(store.counters().refused.host_full).toBe(1)
    await store.commit(emptyBatch({ ended: [ended(claim('b.test')[0]!)] }))
    await store.commit(emptyBatch({ ended: [ended(claim('c.test')[0]!, { links })] }))
    expect([claim('b.test').map(({ url }) => url), store.counters().refused.host_full]).toEqual([['http://b.test/2'], 1])
  })

  it('a host whose first link is refused leaves no row, and what the user adds is taken all the same', async () => {
    await store.setCaps({ queuedPerHostMax: 1 })
    expect((await add('http://a.test/0', 'http://a.test/1', 'http://a.test/2')).addedNew).toEqual([true, true, true])
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { links: linkList(['http://a.test/3']) })] }))
    expect([store.host('a.test')?.pending, store.counters().refused.host_full]).toEqual([2, 1])
  })

  it('a redirect within a full host takes the place of the URL that led to it', async () => {
    await add('http://a.test/0', 'http://a.test/1')
    await store.setCaps({ queuedPerHostMax: 2 })
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { outcome: 'redirect', links: linkList(['http://a.test/to'], { redirect: true }) })] }))
    expect([store.host('a.test')?.pending, store.counters().refused.host_full]).toEqual([2, 0])
  })

  it('a redirect to another host that is full is taken all the same: no link will lead to its target again', async () => {
    await add('http://a.test/0', 'http://b.test/0')
    await store.setCaps({ queuedPerHostMax: 1 })
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { outcome: 'redirect', links: linkList(['http://b.test/to'], { redirect: true }) })] }))
    expect([claim('b.test').map(({ url }) => url), store.counters().refused.host_full]).toEqual([['http://b.test/0', 'http://b.test/to'], 0])
    await store.commit(emptyBatch({ ended: [ended(claim('b.test')[0]!, { links: linkList(['http://b.test/2', 'http://b.test/3']) })] }))
    expect([claim('b.test').map(({ url }) => url), store.counters().refused.host_full]).toEqual([['http://b.test/to'], 2])
    expect(await faultsOf(store)).toEqual([])
  })

  it('a path takes queries up to its number, exactly, over pages of one batch and of the next', async () => {
    await store.setCaps({ queriesPerPathMax: 3 })
    await add('http://a.test/0', 'http://a.test/1')
    const [first, second] = claim('a.test')
    const links = (page: string): ReturnType<typeof linkList> => linkList([...[1, 2].map((index) => `http://b.test/p?${page}${index}`), `http://b.test/${page}`, `http://b.test/q?${page}`])
    const result = await store.commit(emptyBatch({ ended: [ended(first!, { links: links('x') }), ended(second!, { links: links('y') })] }))
    expect([result.newLinks, countOf('http://b.test/p?'.concat('x')), countOf('http://b.test/q?x')]).toEqual([[4, 3], 3, 2])
    await store.commit(emptyBatch({ ended: [ended(claim('b.test')[0]!, { links: linkList(['http://b.test/p?z', 'http://b.test/p?x1', 'http://b.test/q?z']) })] }))
    expect(store.counters().refused).toEqual({ ...noRefusals, query_growth: 2 })
    expect([countOf('http://b.test/p?x'), countOf('http://b.test/q?x')]).toEqual([3, 3])
  })

  it('queries are counted when they are new: links and redirects, not what the user adds', async () => {
    await store.setCaps({ queriesPerPathMax: 1 })
    await add('http://a.test/0', 'http://a.test/1', 'http://b.test/p?seed')
    expect(countOf('http://b.test/p?x')).toBe(0)
    const [first, second] = claim('a.test')
    await store.commit(emptyBatch({ ended: [ended(first!, { links: linkList(['http://b.test/p?seed', 'http://b.test/p?x', 'http://b.test/p?x']) })] }))
    expect([countOf('http://b.test/p?x'), store.counters().refused.query_growth]).toEqual([1, 0])
    await store.commit(emptyBatch({ ended: [ended(second!, { outcome: 'redirect', links: linkList(['http://b.test/p?to'], { redirect: true }) })] }))
    expect([countOf('http://b.test/p?x'), store.counters().refused.query_growth]).toEqual([2, 0])
  })

  it('a batch that is thrown out counts nothing', async () => {
    await add('http://a.test/0')
    const [url] = claim('a.test')
    const one = ended(url!, { links: linkList(['http://b.test/p?x']) })
    await expect(store.commit(emptyBatch({ ended: [one, one] }))).rejects.toThrow()
    expect(countOf('http://b.test/p?x')).toBe(0)
  })

  it('a store that was written before a reason existed counts it from 0', async () => {
    await add('http://a.test/0')
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { refused: { scope: 4, depth: 2 } })] }))
    await store.close()
    const environment = openEnvironment(path.join(dir, 'store'), { readOnly: false }, () => {})!
    const { meta } = environment.tables
    const state = decodeJson(meta.get(metaKeys.state)!) as { counters: { refused: Record<string, number> } }
    const refused = { scope: 4, depth: 2 }
    await environment.write([{ table: 'meta', key: metaKeys.state, value: encodeJson(new Arena(), { ...state, counters: { ...state.counters, refused } }) }])
    await environment.close()
    store = await openStore(dir)
    expect(store.counters().refused).toEqual({ ...noRefusals, scope: 4, depth: 2 })
    await add('http://a.test/1')
    await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { refused: { url_length: 3 } })] }))
    expect(store.counters().refused).toEqual({ ...noRefusals, scope: 4, depth: 2, url_length: 3 })
  })
})

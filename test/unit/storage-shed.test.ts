import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { LinkFacts } from '../../engine/core/priority.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from '../contract/store-batch.ts'

let dir: string
let store: LmdbStore

beforeEach(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-shed-'))
  store = await openStore(dir)
})

afterEach(async () => {
  expect(await faultsOf(store)).toEqual([])
  await store.close()
  fs.rmSync(dir, { recursive: true, force: true })
})

const claim = (host: string): readonly QueuedUrl[] => store.claim(host, { limit: 100, nowMs: 0, leased: new Set() }).urls
const add = (...urls: string[]): ReturnType<LmdbStore['commit']> => store.commit(emptyBatch({ added: urls.map((url) => newUrl(url)) }))

it('the user\'s priority is asked for once for each URL that is new, with what is known of it, and orders the queue', async () => {
  const asked: LinkFacts[] = []
  store.setLinkRules({ priorityOf: (link) => {
    asked.push(link)
    return link.url.endsWith('good') ? -3 : link.url.endsWith('bad') ? 1e9 : 7.6
  } })
  await add('http://a.test/', 'http://a.test/')
  const links = linkList(['http://b.test/bad', 'http://b.test/x', 'http://b.test/good', 'http://b.test/x', 'http://a.test/'])
  await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { links })] }))
  const redirect = linkList(['http://c.test/x'], { redirect: true })
  const good = claim('b.test')[0]!
  await store.commit(emptyBatch({ ended: [ended(good, { outcome: 'redirect', links: redirect })] }))
  expect([good, ...claim('b.test'), ...claim('c.test')].map(({ url, priority }) => [url, priority])).toEqual([
    ['http://b.test/good', 0], ['http://b.test/x', 8], ['http://b.test/bad', 255], ['http://c.test/x', 8],
  ])
  expect(asked).toEqual([
    { url: 'http://a.test/', host: 'a.test', depth: 0, priority: 0, isSeed: true },
    ...['bad', 'x', 'good'].map((name) => ({ url: `http://b.test/${name}`, host: 'b.test', depth: 1, priority: 1, referrer: 'http://a.test/', isSeed: false })),
    { url: 'http://c.test/x', host: 'c.test', depth: 1, priority: 0, referrer: 'http://b.test/good', isSeed: false },
  ])
})

it.each([
  ['throws', () => { throw new Error('no idea') }, 'priority: the function threw on http://b.test/1: Error: no idea'],
  ['answers a promise', () => Promise.resolve(1) as unknown as number, 'priority: expected a number for http://b.test/1, given object [object Promise]'],
  ['answers no number', () => Number.NaN, 'priority: expected a number for http://b.test/1, given number NaN'],
])('a function that %s refuses the batch in one line and changes nothing', async (_, priorityOf, message) => {
  await add('http://a.test/')
  store.setLinkRules({ priorityOf })
  const batch = emptyBatch({ ended: [ended(claim('a.test')[0]!, { links: linkList(['http://b.test/1']) })] })
  const before = store.counters()
  await expect(store.commit(batch)).rejects.toMatchObject({ code: 'bad_option', message })
  expect([store.counters(), claim('a.test').length]).toEqual([before, 1])
  store.setLinkRules({ priorityOf: undefined })
  expect((await store.commit(batch)).newLinks).toEqual([1])
})

it('what is dropped from a full queue for a better URL is reported, and what is refused as far as it was asked for', async () => {
  store.setLinkRules({ priorityOf: ({ url }) => Number(/\d+$/.exec(url)?.[0] ?? 0) })
  await store.setCaps({ queuedPerHostMax: 2 })
  await add('http://a.test/', 'http://c.test/', 'http://d.test/')
  const commit = (from: string, ...urls: string[]): ReturnType<LmdbStore['commit']> => store.commit(emptyBatch({ ended: [ended(claim(from)[0]!, { links: linkList(urls.map((name) => `http://b.test/${name}`)) })] }))
  // Full with 5 and 9 in the first batch: only what was in the queue before a batch can be dropped.
  expect((await commit('a.test', '5', '9', '3')).shed).toEqual([])
  store.setLinkRules({ refusedReportedMax: 2 })
  const shed = (name: string, action: string): object => ({ url: `http://b.test/${name}`, host: 'b.test', priority: Number(name), depth: 1, reason: 'host_full', action })
  expect((await commit('c.test', '4', '20', '30', '40')).shed).toEqual([shed('9', 'dropped'), shed('20', 'refused'), shed('30', 'refused')])
  expect([store.counters().dropped, store.counters().refused.host_full]).toEqual([1, 4])
})

it('what a store that is nearly full refuses is reported, and nobody is asked for its priority', async () => {
  await add('http://a.test/')
  await store.setCaps({}, 1)
  store.setLinkRules({ refusedReportedMax: 10, priorityOf: () => { throw new Error('asked') } })
  const result = await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { links: linkList(['http://b.test/1']) })] }))
  expect(result.shed).toEqual([{ url: 'http://b.test/1', host: 'b.test', priority: 1, depth: 1, reason: 'store_full', action: 'refused' }])
})

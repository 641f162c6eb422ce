/** What every implementation of `Store` must do with URLs that come back after their end, and with queues that are full. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { CheckReport, Store } from '../../storage/store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from './store-batch.ts'

interface StoreUnderTest extends Store {
  check(): Promise<CheckReport>
  setCaps(caps: { queuedPerHostMax?: number; queuedPerDomainMax?: number; queuedMax?: number; domainBudget?: number }): Promise<void>
  setLeases(isLeased: (host: string, sequence: number) => boolean): void
  setScope(mode: 'any' | 'host' | 'domain', domainOf: (host: string) => string): void
}

const domainOf = (host: string): string => host.split('.').slice(-2).join('.')

export function storeAgainContract(name: string, open: (dir: string) => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let dir: string
    let store: StoreUnderTest

    beforeEach(async () => {
      dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-again-'))
      store = await open(dir)
      store.setScope('any', domainOf)
    })

    afterEach(async () => {
      expect(await faultsOf(store)).toEqual([])
      await store.close()
      fs.rmSync(dir, { recursive: true, force: true })
    })

    async function reopen(): Promise<void> {
      await store.close()
      store = await open(dir)
    }

    const claim = (host: string, limit = 100): readonly QueuedUrl[] => store.claim(host, { limit, nowMs: 0, leased: new Set() }).urls
    const textsOf = (host: string): string[] => claim(host).map(({ url }) => url)
    const add = (...urls: string[]): Promise<unknown> => store.commit(emptyBatch({ added: urls.map((url) => newUrl(url)) }))
    const sums = (): Partial<Store['counters']> => {
      const { discovered, pending, done, failed, dropped, excluded } = store.counters()
      expect(pending + done + failed + dropped + excluded).toBe(discovered)
      return { discovered, pending, done, failed, dropped, excluded } as never
    }

    describe('a URL that is tried again', () => {
      test('is pending again with its depth and priority, no attempts, and what is remembered of it', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/x', { depth: 3, priority: 3 })] }))
        const [url] = claim('a.test')
        const page = { status: 200, contentHash: new Uint8Array(16).fill(7), etag: '"1"', lastModified: 'Mon', payloadDigest: new Uint8Array(20).fill(8), payloadAtMs: 900, goneTimes: 2 }
        await store.commit(emptyBatch({ ended: [ended(url!, { atMs: 5_000, page, due: { atMs: 9_000, intervalMs: 4_000 } })] }))
        const again = [{ host: 'a.test', fingerprint: url!.fingerprint }]
        const result = await store.commit(emptyBatch({ again }))
        expect([result.again, result.hostsGrown]).toEqual([[true], [{ name: 'a.test', priority: 3 }]])
        expect(sums()).toEqual({ discovered: 1, pending: 1, done: 0, failed: 0, dropped: 0, excluded: 0 })
        const [second] = claim('a.test')
        expect(second).toMatchObject({ url: 'http://a.test/x', depth: 3, priority: 3, attempts: 0, previous: { fetchedAtMs: 5_000, intervalMs: 4_000, ...page } })
        expect((await store.commit(emptyBatch({ again }))).again).toEqual([false])
        await store.commit(emptyBatch({ ended: [ended(second!, { outcome: 'not_modified', page: { status: 304, etag: '"2"' } })] }))
        expect(store.counters()).toMatchObject({ discovered: 1, done: 1, pending: 0, pages: 2, refetched: 1, notModified: 1 })
      })

      test('whatever its outcome was, and once in a batch', async () => {
        const outcomes = ['ok', 'redirect', 'http_error', 'failed', 'robots_denied', 'excluded', 'dropped'] as const
        await add(...outcomes.map((outcome) => `http://a.test/${outcome}`))
        const urls = claim('a.test')
        await store.commit(emptyBatch({ ended: urls.map((url, index) => ended(url, { outcome: outcomes[index]! })) }))
        const again = [...urls, ...urls].map(({ host, fingerprint }) => ({ host, fingerprint }))
        expect((await store.commit(emptyBatch({ again }))).again).toEqual([...outcomes.map(() => true), ...outcomes.map(() => false)])
        expect(sums()).toMatchObject({ discovered: outcomes.length, pending: outcomes.length })
        expect(textsOf('a.test').sort()).toEqual(urls.map(({ url }) => url).sort())
      })

      test('not when it is pending, unknown, or of an excluded host', async () => {
        await add('http://a.test/0', 'http://b.test/0')
        const [url] = claim('b.test')
        await store.commit(emptyBatch({ ended: [ended(url!)] }))
        const again = [newUrl('http://a.test/0'), newUrl('http://a.test/unknown'), newUrl('http://c.test/'), newUrl('http://b.test/0')]
        expect((await store.commit(emptyBatch({ again, hosts: [{ name: 'b.test', excluded: true }] }))).again).toEqual([false, false, false, false])
        expect(sums()).toMatchObject({ discovered: 2, pending: 1, done: 1 })
        expect(store.host('c.test')).toBeUndefined()
      })

      test('keeps what is known of its page when no server answers the second time', async () => {
        await add('http://a.test/0')
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { page: { status: 200, etag: '"1"', contentHash: new Uint8Array(16).fill(1) } })] }))
        for (let round = 0; round < 2; round += 1) {
          await store.commit(emptyBatch({ again: [newUrl('http://a.test/0')] }))
          const [url] = claim('a.test')
          expect(url!.previous).toMatchObject({ etag: '"1"', contentHash: new Uint8Array(16).fill(1) })
          await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'failed', code: 'timeout' })] }))
        }
        expect(store.counters()).toMatchObject({ failed: 1, done: 0, refetched: 0 })
      })

      test('keeps its earlier facts through a deferral and a reopening', async () => {
        await add('http://a.test/0')
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { page: { status: 200, etag: '"1"' } })] }))
        await store.commit(emptyBatch({ again: [newUrl('http://a.test/0')] }))
        await store.commit(emptyBatch({ deferred: [{ url: claim('a.test')[0]!, attempts: 1, notBeforeMs: 0, retry: true }] }))
        await reopen()
        const [url] = claim('a.test')
        expect(url).toMatchObject({ attempts: 1, previous: { etag: '"1"' } })
        expect(store.queued(url!.row, url!.sequence)).toEqual(url)
        expect(store.queued(url!.row, url!.sequence + 1)).toBeUndefined()
      })

      test('because the user adds it again: always, or if it was fetched before a moment; another spelling counts', async () => {
        await add('http://a.test/%41')
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { atMs: 1_000 })] }))
        const given = (again: true | number | undefined): ReturnType<typeof newUrl> => newUrl('http://a.test/A', again === undefined ? {} : { again })
        expect((await store.commit(emptyBatch({ added: [given(undefined), given(1_000), given(1_001), given(true)] }))).addedNew).toEqual([false, false, true, false])
        expect(textsOf('a.test')).toEqual(['http://a.test/A'])
        expect((await store.commit(emptyBatch({ added: [given(true), newUrl('http://a.test/new', { again: true })] }))).addedNew).toEqual([false, true])
        expect(sums()).toMatchObject({ discovered: 2, pending: 2 })
      })
    })

    describe('a due time', () => {
      test('brings its URL when it is over, the longest due first, until the URL is in the queue', async () => {
        await add('http://a.test/0', 'http://a.test/1', 'http://b.test/2')
        const urls = [...claim('a.test'), ...claim('b.test')]
        const times = [3_000, 1_000, 2_000]
        await store.commit(emptyBatch({ ended: urls.map((url, index) => ended(url, { due: { atMs: times[index]!, intervalMs: 9 } })) }))
        expect(store.nextDueAtMs()).toBe(1_000)
        expect(store.due(999, 10)).toEqual([])
        expect(store.due(2_000, 10).map(({ host }) => host)).toEqual(['a.test', 'b.test'])
        expect(store.due(9_000, 1)).toHaveLength(1)
        await reopen()
        await store.commit(emptyBatch({ again: store.due(2_000, 10) }))
        expect([store.due(9_000, 10).length, store.nextDueAtMs()]).toEqual([1, 3_000])
        expect(textsOf('a.test')).toEqual(['http://a.test/1'])
      })

      test('of an excluded host is forgotten when it is over, and does not come back', async () => {
        await add('http://a.test/0', 'http://a.test/1')
        await store.commit(emptyBatch({ ended: claim('a.test').map((url, index) => ended(url, { due: { atMs: 1_000 + index, intervalMs: 9 } })) }))
        await store.commit(emptyBatch({ hosts: [{ name: 'a.test', excluded: true }] }))
        expect((await store.commit(emptyBatch({ again: store.due(1_000, 10) }))).again).toEqual([false])
        expect([store.due(1_000, 10), store.nextDueAtMs()]).toEqual([[], 1_001])
        expect(store.pageRows(undefined, 10).rows.map(({ page }) => page.due?.atMs).toSorted()).toEqual([1_001, undefined])
        expect(sums()).toMatchObject({ discovered: 2, pending: 0, done: 2 })
      })

      test('is replaced by that of the next end, and taken away by an end without one', async () => {
        await add('http://a.test/0')
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { due: { atMs: 10, intervalMs: 10 } })] }))
        await store.commit(emptyBatch({ again: [newUrl('http://a.test/0')] }))
        expect(store.nextDueAtMs()).toBeUndefined()
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!, { due: { atMs: 30, intervalMs: 20 } })] }))
        expect(store.nextDueAtMs()).toBe(30)
        await store.commit(emptyBatch({ again: store.due(30, 1) }))
        await store.commit(emptyBatch({ ended: [ended(claim('a.test')[0]!)] }))
        expect(store.nextDueAtMs()).toBeUndefined()
      })
    })

    describe('a full queue', () => {
      const links = (page: QueuedUrl, ...urls: string[]): ReturnType<typeof ended> => ended(page, { links: linkList(urls) })
      const refused = (): Partial<Record<string, number>> => Object.fromEntries(Object.entries(store.counters().refused).filter(([, count]) => count > 0))

      test('of a host gives up its worst URL for a better one, the last to be claimed, and counts it as dropped', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/from', { depth: 1 }), ...[7, 9, 9, 8].map((priority, index) => newUrl(`http://b.test/${index}`, { priority, depth: priority }))] }))
        await store.setCaps({ queuedPerHostMax: 4 })
        await store.commit(emptyBatch({ ended: [links(claim('a.test')[0]!, 'http://b.test/better')] }))
        expect(textsOf('b.test')).toEqual(['better', '0', '3', '1'].map((name) => `http://b.test/${name}`))
        expect(sums()).toEqual({ discovered: 6, pending: 4, done: 1, failed: 0, dropped: 1, excluded: 0 })
        expect(refused()).toEqual({})
        expect((await store.commit(emptyBatch({ again: [newUrl('http://b.test/2')] }))).again).toEqual([true])
      })

      test('refuses a link that is no better than its worst, or when all that is worse is in somebody’s hands', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/0'), newUrl('http://a.test/1', { depth: 8 }), newUrl('http://b.test/0', { priority: 5 })] }))
        await store.setCaps({ queuedPerHostMax: 1 })
        const [first, second] = claim('a.test')
        await store.commit(emptyBatch({ ended: [links(second!, 'http://b.test/worse')] }))
        const [leased] = claim('b.test')
        store.setLeases((host, sequence) => host === 'b.test' && sequence === leased!.sequence)
        await store.commit(emptyBatch({ ended: [links(first!, 'http://b.test/better')] }))
        expect([textsOf('b.test'), refused()]).toEqual([['http://b.test/0'], { host_full: 2 }])
        expect(sums()).toMatchObject({ dropped: 0 })
      })

      test('never gives up more than there is: many better links take the place of as many worse ones', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/0'), ...Array.from({ length: 30 }, (_, index) => newUrl(`http://b.test/${index}`, { priority: 9 }))] }))
        await store.setCaps({ queuedPerHostMax: 30 })
        await store.commit(emptyBatch({ ended: [links(claim('a.test')[0]!, ...Array.from({ length: 50 }, (_, index) => `http://b.test/better${index}`))] }))
        expect(textsOf('b.test').filter((url) => url.includes('better'))).toHaveLength(30)
        expect([store.host('b.test')?.pending, refused()]).toEqual([30, { host_full: 20 }])
        expect(sums()).toMatchObject({ pending: 30, dropped: 30, discovered: 61 })
      })

      test('hands out nothing that the commit under way is giving up', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/0'), newUrl('http://b.test/worst', { priority: 9 })] }))
        await store.setCaps({ queuedPerHostMax: 1 })
        const committing = store.commit(emptyBatch({ ended: [links(claim('a.test')[0]!, 'http://b.test/better')] }))
        expect(claim('b.test')).toEqual([])
        await committing
        expect(textsOf('b.test')).toEqual(['http://b.test/better'])
        for (const url of claim('b.test')) await store.commit(emptyBatch({ ended: [ended(url)] }))
      })

      test('does not give up a page that is to be fetched again, however bad its priority', async () => {
        await store.commit(emptyBatch({ added: [newUrl('http://a.test/0'), newUrl('http://b.test/worst', { priority: 9 })] }))
        const [worst] = claim('b.test')
        const page = { status: 200, contentHash: new Uint8Array(16).fill(7), etag: '"1"' }
        await store.commit(emptyBatch({ ended: [ended(worst!, { atMs: 5_000, page })] }))
        await store.commit(emptyBatch({ again: [worst!] }))
        await store.setCaps({ queuedPerHostMax: 1 })
        await store.commit(emptyBatch({ ended: [links(claim('a.test')[0]!, 'http://b.test/better')] }))
        expect([textsOf('b.test'), refused()]).toEqual([[worst!.url], { host_full: 1 }])
        expect(claim('b.test')[0]!.previous).toMatchObject(page)
      })

      test('of a registrable domain counts all its hosts, also those that were there before it was asked for', async () => {
        await add('http://x.test/0', 'http://a.b.test/0', 'http://c.b.test/0')
        await store.setCaps({ queuedPerDomainMax: 3 })
        await store.commit(emptyBatch({ ended: [links(claim('x.test')[0]!, 'http://d.b.test/0', 'http://e.b.test/0', 'http://y.test/0')] }))
        expect([store.host('d.b.test')?.pending, store.host('e.b.test'), store.host('y.test')?.pending, refused()]).toEqual([1, undefined, 1, { domain_full: 1 }])
        await reopen()
        store.setScope('any', domainOf)
        await store.setCaps({ queuedPerDomainMax: 3 })
        await store.commit(emptyBatch({ ended: [links(claim('a.b.test')[0]!, 'http://f.b.test/0')] }))
        expect(store.host('f.b.test')?.pending).toBe(1)
        // Asked for no more, and again later: counted anew, not on top of the old counts.
        await store.setCaps({})
        await store.commit(emptyBatch({ ended: ['c', 'd'].map((name) => ended(claim(`${name}.b.test`)[0]!)) }))
        await store.setCaps({ queuedPerDomainMax: 2 })
        await store.commit(emptyBatch({ ended: [links(claim('y.test')[0]!, 'http://g.b.test/0', 'http://g.b.test/1')] }))
        expect([store.host('g.b.test')?.pending, refused()]).toEqual([1, { domain_full: 2 }])
      })

      test('of the whole crawl refuses links of every host, and takes redirects and what the user adds', async () => {
        await add('http://a.test/0', 'http://a.test/1')
        await store.setCaps({ queuedMax: 2 })
        const [first, second] = claim('a.test')
        await store.commit(emptyBatch({ ended: [links(first!, 'http://b.test/0', 'http://b.test/1')] }))
        expect([textsOf('b.test'), refused()]).toEqual([['http://b.test/0'], { queue_full: 1 }])
        await add('http://c.test/0')
        await store.commit(emptyBatch({ ended: [ended(second!, { outcome: 'redirect', links: linkList(['http://d.test/'], { redirect: true }) })] }))
        expect([sums(), textsOf('d.test')]).toMatchObject([{ pending: 3 }, ['http://d.test/']])
      })

      test('over a domain’s budget links wait in the later class, behind those of the first; other domains’ links raise it', async () => {
        await store.setCaps({ domainBudget: 2 })
        await add('http://a.test/0', 'http://x.test/0', 'http://y.test/0')
        await store.commit(emptyBatch({ ended: [links(claim('a.test')[0]!, ...[1, 2, 3].map((page) => `http://a.test/${page}`))] }))
        expect(claim('a.test').map(({ url, isLater }) => [url, isLater ?? false])).toEqual([['http://a.test/1', false], ['http://a.test/2', false], ['http://a.test/3', true]])
        await store.commit(emptyBatch({ ended: [links(claim('x.test')[0]!, 'http://a.test/4', 'http://a.test/5', 'http://a.test/6'), links(claim('y.test')[0]!, 'http://a.test/7')] }))
        expect(claim('a.test').filter(({ isLater }) => isLater).map(({ url }) => url)).toEqual(['3', '6'].map((page) => `http://a.test/${page}`))
        for (const url of claim('a.test')) await store.commit(emptyBatch({ ended: [ended(url)] }))
        expect(sums()).toMatchObject({ pending: 0 })
      })
    })

    test('rows are looked at a part at a time, each once, whatever the size of the parts', async () => {
      await store.commit(emptyBatch({ added: Array.from({ length: 25 }, (_, index) => newUrl(`http://h${index % 4}.test/${index}`, { priority: index % 3 })) }))
      const [done, later] = claim('h0.test')
      await store.commit(emptyBatch({ ended: [ended(done!)], deferred: [{ url: later!, attempts: 1, notBeforeMs: 77, retry: true }] }))
      for (const limit of [1, 2, 1_000]) {
        const all = <T>(read: (cursor: Uint8Array | undefined, limit: number) => { readonly rows: readonly T[]; readonly cursor?: Uint8Array }): T[] => {
          const rows: T[] = []
          let cursor: Uint8Array | undefined
          do {
            const part = read(cursor, limit)
            rows.push(...part.rows)
            cursor = part.cursor
          } while (cursor !== undefined)
          return rows
        }
        const queue = all((cursor, count) => store.queueRows(cursor, count))
        expect(new Set(queue.map(({ url }) => url)).size).toBe(24)
        expect(queue.filter(({ notBeforeMs }) => notBeforeMs === 77).map(({ url, attempts }) => [url, attempts])).toEqual([[later!.url, 1]])
        expect(all((cursor, count) => store.pageRows(cursor, count)).map(({ host, page }) => [host, page.url])).toEqual([['h0.test', done!.url]])
        expect(all((cursor, count) => store.hostRows(cursor, count)).map(({ name, pending }) => [name, pending]).sort()).toEqual([['h0.test', 6], ['h1.test', 6], ['h2.test', 6], ['h3.test', 6]])
      }
      expect(queueSequencesBelow(store, store.nextSequence)).toBe(true)
    })
  })
}

function queueSequencesBelow(store: Store, sequence: number): boolean {
  return store.queueRows(undefined, 1_000).rows.every((url) => url.sequence < sequence)
}

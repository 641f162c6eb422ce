/** What every implementation of `Store` must do with sitemaps, and with what a site lists in them. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { NewUrl, QueuedUrl } from '../../engine/core/types.ts'
import { keyOf, plainKeys, sitemapFingerprintOf } from '../../engine/core/url-key.ts'
import type { CheckReport, Store } from '../../storage/store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from './store-batch.ts'

interface StoreUnderTest extends Store {
  check(): Promise<CheckReport>
  setCaps(caps: { queuedPerHostMax?: number }): Promise<void>
  setScope(mode: 'any' | 'host' | 'domain', domainOf: (host: string) => string): void
}

const SITEMAP = 'http://a.test/sitemap.xml'

function newSitemap(url: string, parts: Partial<NewUrl> = {}): NewUrl {
  return newUrl(url, { kind: 'sitemap', fingerprint: sitemapFingerprintOf(keyOf(url, plainKeys)), ...parts })
}

export function storeSitemapsContract(name: string, open: (dir: string) => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let dir: string
    let store: StoreUnderTest

    beforeEach(async () => {
      dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-sitemaps-'))
      store = await open(dir)
      store.setScope('any', (host) => host)
    })

    afterEach(async () => {
      expect(await faultsOf(store)).toEqual([])
      await store.close()
      fs.rmSync(dir, { recursive: true, force: true })
    })

    const claim = (host = 'a.test'): readonly QueuedUrl[] => store.claim(host, { limit: 100, nowMs: 0, leased: new Set() }).urls
    const kinds = (host = 'a.test'): unknown[] => claim(host).map(({ url, kind }) => [url, kind])
    const listed = (url: string, parts: Partial<NewUrl> = {}): NewUrl => newUrl(url, { referrer: SITEMAP, priority: 3, ...parts })

    test('a sitemap and the page of the same address are two URLs, and each keeps its kind through a deferral and a reopening', async () => {
      expect((await store.commit(emptyBatch({ added: [newSitemap(SITEMAP), newUrl(SITEMAP), newSitemap(SITEMAP)] }))).addedNew).toEqual([true, true, false])
      const [sitemap] = claim()
      await store.commit(emptyBatch({ deferred: [{ url: sitemap!, attempts: 1, notBeforeMs: 0, retry: true }] }))
      await store.close()
      store = await open(dir)
      expect(kinds()).toEqual([[SITEMAP, 'sitemap'], [SITEMAP, undefined]])
      expect(store.queueRows(undefined, 10).rows.map(({ kind }) => kind)).toEqual(['sitemap', undefined])
    })

    test('a sitemap that has ended is no page in the sums, and comes back as a sitemap', async () => {
      await store.commit(emptyBatch({ added: [newSitemap(SITEMAP)] }))
      const [{ fingerprint }] = claim() as [QueuedUrl]
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!)] }))
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 0, wireBytes: 0, bodyBytes: 0 })
      expect(store.pageRows(undefined, 10).rows.map(({ page }) => [page.kind, page.outcome])).toEqual([['sitemap', 'ok']])
      expect((await store.commit(emptyBatch({ again: [{ host: 'a.test', fingerprint }] }))).again).toEqual([true])
      expect(kinds()).toEqual([[SITEMAP, 'sitemap']])
    })

    test('the target of a sitemap that has moved is a sitemap', async () => {
      await store.commit(emptyBatch({ added: [newSitemap(SITEMAP)] }))
      const to = newSitemap('http://a.test/map.xml')
      const links = { ...linkList([to.url], { redirect: true }), fingerprint: () => to.fingerprint }
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!, { outcome: 'redirect', links })] }))
      expect(claim()).toMatchObject([{ url: to.url, kind: 'sitemap', fingerprint: to.fingerprint, redirectedFrom: [SITEMAP] }])
    })

    test('what a sitemap lists is judged by scope and by the bound of its host, and what the user adds is not', async () => {
      store.setScope('host', (host) => host)
      await store.setCaps({ queuedPerHostMax: 2 })
      const added = [newUrl('http://a.test/'), listed('http://a.test/1'), listed('http://a.test/2'), listed('http://b.test/'), newUrl('http://a.test/user')]
      expect((await store.commit(emptyBatch({ added, scope: ['a.test'] }))).addedNew).toEqual([true, true, false, false, true])
      expect(store.counters().refused).toMatchObject({ host_full: 1, scope: 1 })
      expect(claim().map(({ url, depth, priority, referrer }) => [url, depth, priority, referrer])).toEqual([
        ['http://a.test/', 0, 0, undefined], ['http://a.test/user', 0, 0, undefined], ['http://a.test/1', 0, 3, SITEMAP],
      ])
    })

    test('a page that a sitemap lists comes back when it was modified since its fetch, and only then', async () => {
      await store.commit(emptyBatch({ added: [newUrl('http://a.test/')] }))
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!, { atMs: 5_000 })] }))
      expect((await store.commit(emptyBatch({ added: [listed('http://a.test/', { again: 4_000 })] }))).addedNew).toEqual([false])
      expect((await store.commit(emptyBatch({ added: [listed('http://a.test/', { again: 6_000 })] }))).addedNew).toEqual([true])
    })
  })
}

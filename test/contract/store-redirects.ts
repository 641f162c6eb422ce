/** What every implementation of `Store` must do with redirects that lead back to what the crawl has seen. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { twinHostOf } from '../../engine/core/url-key.ts'
import type { Outcome, QueuedUrl } from '../../engine/core/types.ts'
import type { CheckReport, EndedUrl, Store } from '../../storage/store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from './store-batch.ts'

interface StoreUnderTest extends Store {
  check(): Promise<CheckReport>
  setTwins(twinOf: (host: string) => string | undefined): void
}

export function storeRedirectsContract(name: string, open: (dir: string) => Promise<StoreUnderTest>): void {
  describe(`${name}: a redirect`, () => {
    let dir: string
    let store: StoreUnderTest

    beforeEach(async () => {
      dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-redirects-'))
      store = await open(dir)
    })

    afterEach(async () => {
      const { discovered, pending, done, failed, dropped, excluded } = store.counters()
      expect(pending + done + failed + dropped + excluded).toBe(discovered)
      expect(await faultsOf(store)).toEqual([])
      await store.close()
      fs.rmSync(dir, { recursive: true, force: true })
    })

    const claim = (host = 'a.test'): readonly QueuedUrl[] => store.claim(host, { limit: 10, nowMs: 0, leased: new Set() }).urls
    const add = (...urls: string[]): Promise<unknown> => store.commit(emptyBatch({ added: urls.map((url) => newUrl(url)) }))

    /** The one URL that waits on a host ends and leads to another. */
    async function hop(to: string, parts: Partial<EndedUrl> & { readonly host?: string; readonly outcome?: Outcome } = {}): Promise<readonly string[]> {
      const { host = 'a.test', ...rest } = parts
      const [url] = claim(host)
      await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'redirect', links: linkList([to], { redirect: true }), ...rest })] }))
      return claim().map((each) => each.url)
    }

    test('back to another spelling of a URL of its chain is followed, since that one gave no page', async () => {
      await add('http://a.test/%41')
      expect(await hop('http://a.test/b')).toEqual(['http://a.test/b'])
      expect(await hop('http://a.test/A')).toEqual(['http://a.test/A'])
      expect(claim()[0]!.redirectedFrom).toEqual(['http://a.test/%41', 'http://a.test/b'])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 1, done: 1 })
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!)] }))
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 0, done: 2, pages: 3 })
    })

    test('that leads in a ring through the spellings of a URL ends when the chain has each of them', async () => {
      await add('http://a.test/%41')
      await hop('http://a.test/b')
      await hop('http://a.test/A')
      expect(await hop('http://a.test/b')).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 0, done: 2, pages: 3 })
    })

    test('to another spelling of a URL that gave a page is followed no further, in its chain or not', async () => {
      await add('http://a.test/%41')
      await hop('http://a.test/b', { outcome: 'ok' })
      expect(await hop('http://a.test/A')).toEqual([])
      await add('http://a.test/c')
      expect(await hop('http://a.test/A')).toEqual([])
    })

    test('to another spelling of a redirect of which its own chain knows nothing is followed no further', async () => {
      await add('http://a.test/%41')
      await hop('http://a.test/b')
      await hop('http://a.test/c')
      await hop('http://a.test/d')
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!)] }))
      await add('http://a.test/e')
      expect(await hop('http://a.test/A')).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 5, pending: 0 })
    })

    test('back to a URL under the other name of its host is one more, as it is at once', async () => {
      store.setTwins(twinHostOf)
      const twin = (url: string): ReturnType<typeof linkList> => {
        const [www, bare] = [linkList([url], { redirect: true }), linkList([url.replace('www.', '')], { redirect: true })]
        return { ...www, fingerprint: bare.fingerprint }
      }
      await add('http://a.test/')
      await hop('http://a.test/b')
      await hop('', { links: twin('http://www.a.test/') })
      expect(claim('www.a.test')[0]).toMatchObject({ url: 'http://www.a.test/', redirectedFrom: ['http://a.test/', 'http://a.test/b'] })
      expect(store.counters()).toMatchObject({ discovered: 3, pending: 1, done: 2 })
    })

    test('to the very same URL, after a cookie, is followed once', async () => {
      await add('http://a.test/A')
      expect(await hop('http://a.test/A', { setsCookie: true })).toEqual(['http://a.test/A'])
      expect(claim()[0]).toMatchObject({ redirectedFrom: ['http://a.test/A'], hasCookie: true })
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 1, done: 0, pages: 1 })
      expect(await hop('http://a.test/A', { setsCookie: true })).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 2 })
    })

    test('back to its start is followed once after a cookie of any answer of the chain, which is remembered beyond a wait and a stop', async () => {
      await add('http://a.test/A')
      await hop('http://a.test/check', { setsCookie: true })
      await store.commit(emptyBatch({ deferred: [{ url: claim()[0]!, attempts: 1, notBeforeMs: 0, retry: true }] }))
      await store.close()
      store = await open(dir)
      expect(await hop('http://a.test/A')).toEqual(['http://a.test/A'])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 1, done: 1 })
      expect(await hop('http://a.test/check')).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 0, done: 2, pages: 3 })
    })

    test('after a cookie goes to no URL that its own chain has not been at', async () => {
      await add('http://a.test/seen')
      await store.commit(emptyBatch({ ended: [ended(claim()[0]!)] }))
      await add('http://a.test/A')
      expect(await hop('http://a.test/seen', { setsCookie: true })).toEqual([])
    })

    test('of a page that set a cookie and refreshes itself is followed once, and its page is read anew', async () => {
      await add('http://a.test/A')
      expect(await hop('http://a.test/A', { outcome: 'ok', setsCookie: true })).toEqual(['http://a.test/A'])
      expect(await hop('http://a.test/A', { outcome: 'ok', setsCookie: true })).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 2 })
    })

    test('that leads back takes the due time of what it led to, and what is due is offered once', async () => {
      const due = { atMs: 50, intervalMs: 5 }
      await add('http://a.test/%41')
      await hop('http://a.test/A', { due })
      expect(store.due(100, 10)).toEqual([])
      await hop('http://a.test/b', { due })
      expect(store.due(100, 10)).toHaveLength(1)
      await hop('http://a.test/%41', { due, setsCookie: true })
      expect(store.due(100, 10).map(({ fingerprint }) => Buffer.from(fingerprint))).toEqual([Buffer.from(newUrl('http://a.test/b').fingerprint)])
    })

    test('back to a host that was excluded meanwhile is refused', async () => {
      await add('http://a.test/%41')
      await hop('http://b.test/')
      await store.commit(emptyBatch({ hosts: [{ name: 'a.test', excluded: true }] }))
      expect(await hop('http://a.test/A', { host: 'b.test' })).toEqual([])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 0, done: 2, refused: { excluded_host: 1 } })
    })
  })
}

/** What every implementation of `Store` must do. Call `storeContract` in a test file of the implementation. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fingerprintOf, twinHostOf } from '../../engine/core/url-key.ts'
import type { Claim, HostRecord, Store } from '../../storage/store.ts'
import { emptyBatch, ended, linkList, newUrl, noRefusals } from './store-batch.ts'

export interface StoreUnderTest extends Store {
  setScope(mode: 'any' | 'host' | 'domain', domainOf: (host: string) => string): void
  setTwins(twinOf: (host: string) => string | undefined): void
}

export type OpenUnderTest = (dir: string, options?: { hostHash?: (name: string) => Uint8Array }) => Promise<StoreUnderTest>

const none: ReadonlySet<number> = new Set()
const oneHash = (): Uint8Array => new Uint8Array(8).fill(0xff)

function urlsOf(claimed: Claim): string[] {
  return claimed.urls.map(({ url }) => url)
}

export function storeContract(name: string, open: OpenUnderTest): void {
  describe(name, () => {
    let dir: string
    let store: StoreUnderTest

    beforeEach(async () => {
      dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-store-'))
      store = await open(dir)
    })

    afterEach(async () => {
      await store.close()
      fs.rmSync(dir, { recursive: true, force: true })
    })

    async function reopen(): Promise<void> {
      await store.close()
      store = await open(dir)
    }

    const claim = (host: string, limit = 10, leased = none, nowMs = 0): Claim => store.claim(host, { limit, nowMs, leased })
    const add = (...urls: string[]): Promise<unknown> => store.commit(emptyBatch({ added: urls.map((url) => newUrl(url)) }))

    function sum(): number {
      const { pending, done, failed, dropped, excluded } = store.counters()
      return pending + done + failed + dropped + excluded
    }

    test('a new directory is an empty crawl with an id that stays', async () => {
      const id = store.crawlId
      expect(store.counters()).toMatchObject({ discovered: 0, pending: 0, pages: 0, refused: noRefusals })
      expect(id).not.toBe('')
      await reopen()
      expect(store.crawlId).toBe(id)
    })

    test('a URL that is added twice is new once, within a batch and between batches', async () => {
      const urls = [newUrl('http://a.test/1'), newUrl('http://a.test/2'), newUrl('http://a.test/1')]
      expect((await store.commit(emptyBatch({ added: urls }))).addedNew).toEqual([true, true, false])
      expect((await store.commit(emptyBatch({ added: urls.slice(1) }))).addedNew).toEqual([false, false])
      expect(store.counters()).toMatchObject({ discovered: 2, pending: 2 })
    })

    test('a claimed URL carries every fact that it was added with', async () => {
      const url = newUrl('http://a.test/x?q=ü', {
        depth: 7, priority: 9, referrer: 'http://r.test/é', redirectedFrom: ['http://b.test/1', 'http://b.test/2'],
      })
      await store.commit(emptyBatch({ added: [url] }))
      const [claimed] = claim('a.test').urls
      expect(claimed).toMatchObject({ ...url, attempts: 0 })
    })

    test('URLs are claimed by priority and then in the order of arrival', async () => {
      const added = [3, 1, 2, 1].map((priority, index) => newUrl(`http://a.test/${index}`, { priority }))
      await store.commit(emptyBatch({ added }))
      expect(urlsOf(claim('a.test'))).toEqual(['http://a.test/1', 'http://a.test/3', 'http://a.test/2', 'http://a.test/0'])
    })

    test('a claim leaves out what is leased and what belongs to other hosts', async () => {
      await add('http://a.test/0', 'http://b.test/0', 'http://a.test/1', 'http://a.test/2')
      const first = claim('a.test', 2).urls
      const leased = new Set(first.map(({ sequence }) => sequence))
      expect(urlsOf(claim('a.test', 10, leased))).toEqual(['http://a.test/2'])
      expect(urlsOf(claim('b.test', 10, leased))).toEqual(['http://b.test/0'])
    })

    test('a URL that is given back without a commit is claimed again', async () => {
      await add('http://a.test/0', 'http://a.test/1', 'http://a.test/2')
      const [first, second] = claim('a.test', 2).urls
      expect(urlsOf(claim('a.test', 1, new Set([first!.sequence, second!.sequence])))).toEqual(['http://a.test/2'])
      expect(urlsOf(claim('a.test', 5, new Set([second!.sequence])))).toEqual(['http://a.test/0', 'http://a.test/2'])
    })

    test('a better URL that arrives late is claimed next', async () => {
      await store.commit(emptyBatch({ added: [0, 1, 2, 3].map((index) => newUrl(`http://a.test/${index}`, { priority: 5 })) }))
      const leased = new Set(claim('a.test', 2).urls.map(({ sequence }) => sequence))
      await store.commit(emptyBatch({ added: [newUrl('http://a.test/best', { priority: 1 })] }))
      expect(urlsOf(claim('a.test', 2, leased))).toEqual(['http://a.test/best', 'http://a.test/2'])
    })

    test('a restart can claim at once what was leased', async () => {
      await add('http://a.test/0')
      expect(claim('a.test').urls).toHaveLength(1)
      await reopen()
      expect(urlsOf(claim('a.test'))).toEqual(['http://a.test/0'])
    })

    test('an ended URL leaves the queue and is not new again', async () => {
      await add('http://a.test/0')
      const [url] = claim('a.test').urls
      await store.commit(emptyBatch({ ended: [ended(url!)] }))
      expect(claim('a.test').urls).toEqual([])
      expect((await store.commit(emptyBatch({ added: [newUrl('http://a.test/0')] }))).addedNew).toEqual([false])
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 1, wireBytes: 10, bodyBytes: 30 })
    })

    test('each outcome moves its URL to one state, and the states sum to what was discovered', async () => {
      const outcomes = ['ok', 'redirect', 'http_error', 'failed', 'robots_denied', 'excluded', 'dropped'] as const
      await add(...outcomes.map((_, index) => `http://a.test/${index}`), 'http://a.test/left')
      const { urls } = claim('a.test', outcomes.length)
      await store.commit(emptyBatch({ ended: urls.map((url, index) => ended(url, { outcome: outcomes[index]! })) }))
      expect(store.counters()).toMatchObject({ discovered: 8, pending: 1, done: 3, failed: 1, excluded: 2, dropped: 1, pages: 3, wireBytes: 30 })
      expect(sum()).toBe(8)
    })

    test('links enter with the next depth, that depth as priority, and the page as referrer', async () => {
      await store.commit(emptyBatch({ added: [newUrl('http://a.test/', { depth: 4, priority: 1 })] }))
      const [page] = claim('a.test').urls
      const result = await store.commit(emptyBatch({ ended: [ended(page!, { links: linkList(['http://a.test/', 'http://b.test/', 'http://b.test/']) })] }))
      expect(result.newLinks).toEqual([1])
      expect(result.hostsGrown).toEqual([{ name: 'b.test', priority: 5 }])
      expect(claim('b.test').urls[0]).toMatchObject({ url: 'http://b.test/', depth: 5, priority: 5, referrer: 'http://a.test/' })
    })

    test('a redirect keeps depth, priority and referrer, and gets the chain', async () => {
      await store.commit(emptyBatch({ added: [newUrl('http://a.test/', { depth: 4, priority: 1, referrer: 'http://r.test/' })] }))
      for (const [from, to] of [['a.test', 'http://b.test/'], ['b.test', 'http://c.test/']] as const) {
        const [url] = claim(from).urls
        await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'redirect', links: linkList([to], { redirect: true }) })] }))
      }
      expect(claim('c.test').urls[0]).toMatchObject({
        depth: 4, priority: 1, referrer: 'http://r.test/', redirectedFrom: ['http://a.test/', 'http://b.test/'],
      })
    })

    test('a redirect to another spelling of the URL itself keeps it pending under that spelling, and the sums', async () => {
      await add('http://a.test/%41')
      const [url] = claim('a.test').urls
      const result = await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'redirect', links: linkList(['http://a.test/A'], { redirect: true }) })] }))
      expect(result.hostsGrown).toEqual([{ name: 'a.test', priority: 0 }])
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 1, done: 0, pages: 1 })
      const [again] = claim('a.test').urls
      expect(again).toMatchObject({ url: 'http://a.test/A', redirectedFrom: ['http://a.test/%41'] })
      await store.commit(emptyBatch({ ended: [ended(again!)] }))
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 2 })
      expect(sum()).toBe(1)
    })

    test('a redirect back to a spelling that it came from is followed no further', async () => {
      const spellings = ['http://a.test/%41', 'http://a.test/A', 'http://a.test/%41']
      await add(spellings[0]!)
      for (const to of spellings.slice(1)) {
        const [url] = claim('a.test').urls
        await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'redirect', links: linkList([to], { redirect: true }) })] }))
      }
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, pages: 2 })
      expect(claim('a.test').urls).toEqual([])
    })

    test('a redirect to another spelling is refused when its host is excluded by then', async () => {
      await add('http://a.test/%41')
      const [url] = claim('a.test').urls
      const outcome = ended(url!, { outcome: 'redirect', links: linkList(['http://a.test/A'], { redirect: true }) })
      await store.commit(emptyBatch({ ended: [outcome], hosts: [{ name: 'a.test', excluded: true }] }))
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1, refused: { excluded_host: 1 } })
    })

    test('a redirect to the very same URL is followed no further', async () => {
      await add('http://a.test/A')
      const [url] = claim('a.test').urls
      await store.commit(emptyBatch({ ended: [ended(url!, { outcome: 'redirect', links: linkList(['http://a.test/A'], { redirect: true }) })] }))
      expect(store.counters()).toMatchObject({ discovered: 1, pending: 0, done: 1 })
    })

    test('two pages of a batch that share a link count it as new once', async () => {
      await add('http://a.test/0', 'http://a.test/1')
      const links = linkList(['http://a.test/shared'])
      const result = await store.commit(emptyBatch({ ended: claim('a.test').urls.map((url) => ended(url, { links })) }))
      expect(result.newLinks).toEqual([1, 0])
      expect(store.counters()).toMatchObject({ discovered: 3, pending: 1 })
    })

    test('a URL that is deferred to the very moment at which it lay stays in the queue', async () => {
      await add('http://a.test/')
      for (const attempts of [1, 2]) {
        const [url] = claim('a.test', 1, none, 5).urls
        await store.commit(emptyBatch({ deferred: [{ url: url!, attempts, notBeforeMs: 5, retry: true }] }))
      }
      expect(claim('a.test', 1, none, 5).urls).toMatchObject([{ url: 'http://a.test/', attempts: 2 }])
    })

    test('a URL that ends twice, or was never queued, breaks an invariant and changes nothing', async () => {
      await add('http://a.test/0')
      const [url] = claim('a.test').urls
      await expect(store.commit(emptyBatch({ ended: [ended(url!), ended(url!)] }))).rejects.toMatchObject({ code: 'internal' })
      await expect(store.commit(emptyBatch({ ended: [ended(url!)], deferred: [{ url: url!, attempts: 1, notBeforeMs: 0, retry: true }] })))
        .rejects.toMatchObject({ code: 'internal' })
      await expect(store.commit(emptyBatch({ ended: [ended({ ...url!, fingerprint: fingerprintOf('else') })] }))).rejects.toMatchObject({ code: 'internal' })
      expect(store.counters()).toMatchObject({ pending: 1, done: 0 })
      await store.commit(emptyBatch({ ended: [ended(url!)] }))
      await expect(store.commit(emptyBatch({ ended: [ended(url!)] }))).rejects.toMatchObject({ code: 'internal' })
    })

    test('a second commit before the first has resolved is refused', async () => {
      const first = add('http://a.test/0')
      await expect(add('http://a.test/1')).rejects.toMatchObject({ code: 'internal' })
      await first
      expect(store.counters().discovered).toBe(1)
    })

    test('a deferred URL waits for its time, comes before ready ones then, and keeps its attempts', async () => {
      await add('http://a.test/0', 'http://a.test/1', 'http://a.test/2')
      const [first, second] = claim('a.test', 2).urls
      await store.commit(emptyBatch({
        deferred: [{ url: first!, attempts: 2, notBeforeMs: 2_000, retry: true }, { url: second!, attempts: 0, notBeforeMs: 1_000, retry: false }],
      }))
      expect(store.counters()).toMatchObject({ pending: 3, retries: 1 })
      expect(claim('a.test', 5, none, 999)).toMatchObject({ urls: [{ url: 'http://a.test/2' }], nextDueAtMs: 1_000 })
      expect(claim('a.test', 5, none, 1_000)).toMatchObject({ urls: [{ url: 'http://a.test/1' }, { url: 'http://a.test/2' }], nextDueAtMs: 2_000 })
      const due = claim('a.test', 5, none, 2_000)
      expect(urlsOf(due)).toEqual(['http://a.test/1', 'http://a.test/0', 'http://a.test/2'])
      expect(due.nextDueAtMs).toBeUndefined()
      expect(due.urls[1]).toMatchObject({ attempts: 2, sequence: first!.sequence })
    })

    test('a claim without deferred URLs passes over those that are due, and says when the first of them was', async () => {
      await add('http://a.test/0', 'http://a.test/1')
      await store.commit(emptyBatch({ deferred: [{ url: claim('a.test', 1).urls[0]!, attempts: 1, notBeforeMs: 1_000, retry: true }] }))
      const others = store.claim('a.test', { limit: 5, nowMs: 3_000, leased: none, isWithoutDeferred: true })
      expect([urlsOf(others), others.nextDueAtMs]).toEqual([['http://a.test/1'], 1_000])
      expect(urlsOf(claim('a.test', 5, none, 3_000))).toEqual(['http://a.test/0', 'http://a.test/1'])
    })

    test('a deferred URL can end, and its host then has no work', async () => {
      await add('http://a.test/0')
      await store.commit(emptyBatch({ deferred: [{ url: claim('a.test').urls[0]!, attempts: 1, notBeforeMs: 5, retry: true }] }))
      await store.commit(emptyBatch({ ended: [ended(claim('a.test', 1, none, 5).urls[0]!, { outcome: 'failed', code: 'timeout' })] }))
      expect(store.counters()).toMatchObject({ pending: 0, failed: 1 })
      expect(store.hostsWithWork(undefined, 10).hosts).toEqual([])
    })

    test('hosts with work are listed page by page, each once, with their pending rows', async () => {
      await add(...[0, 1, 2, 3, 4].flatMap((host) => Array.from({ length: host }, (_, index) => `http://h${host}.test/${index}`)))
      const seen: HostRecord[] = []
      let cursor: Uint8Array | undefined
      do {
        const page = store.hostsWithWork(cursor, 3)
        expect(page.hosts.length).toBeLessThanOrEqual(3)
        seen.push(...page.hosts)
        cursor = page.cursor
      } while (cursor !== undefined)
      expect(seen.map(({ name, pending }) => [name, pending]).sort()).toEqual([['h1.test', 1], ['h2.test', 2], ['h3.test', 3], ['h4.test', 4]])
    })

    test('what is remembered of a host is merged, and survives', async () => {
      const robots = { 'http://a.test': { rule: 'rules', lines: '-/ü\n', expiresAtMs: 5 } } as const
      await store.commit(emptyBatch({ hosts: [{ name: 'a.test', limit: 3, robots }] }))
      await store.commit(emptyBatch({ hosts: [{ name: 'a.test', failures: 2, failureCode: 'timeout', pending: 99 }], added: [newUrl('http://a.test/')] }))
      await reopen()
      expect(store.host('a.test')).toEqual({ name: 'a.test', pending: 1, limit: 3, robots, failures: 2, failureCode: 'timeout' })
      expect(store.host('b.test')).toBeUndefined()
    })

    test('links to an excluded host are refused, also when the exclusion is in the same batch', async () => {
      await add('http://a.test/0', 'http://a.test/1')
      const [first, second] = claim('a.test').urls
      const links = linkList(['http://bad.test/', 'http://good.test/'])
      await store.commit(emptyBatch({ ended: [ended(first!, { links })], hosts: [{ name: 'bad.test', excluded: true }] }))
      const again = await store.commit(emptyBatch({ ended: [ended(second!, { links })], added: [newUrl('http://bad.test/x')] }))
      expect(again.addedNew).toEqual([false])
      expect(store.counters().refused).toEqual({ ...noRefusals, excluded_host: 3 })
      expect(store.counters()).toMatchObject({ discovered: 3 })
      expect(store.host('bad.test')).toMatchObject({ excluded: true, pending: 0 })
    })

    test('links that the worker refused are counted by reason', async () => {
      await add('http://a.test/0')
      await store.commit(emptyBatch({ ended: [ended(claim('a.test').urls[0]!, { refused: { depth: 4, scheme: 1 } })] }))
      expect(store.counters().refused).toEqual({ ...noRefusals, depth: 4, scheme: 1 })
    })

    test('near-duplicates are counted, and what was refused of their links', async () => {
      await add('http://a.test/0', 'http://a.test/1')
      const [first, second] = claim('a.test').urls
      await store.commit(emptyBatch({ ended: [ended(first!), ended(second!, { isNearDuplicate: true, refused: { near_duplicate: 7 } })] }))
      await reopen()
      expect(store.counters()).toMatchObject({ done: 2, nearDuplicates: 1, refused: { ...noRefusals, near_duplicate: 7 } })
    })

    test('links and redirects outside the scope are refused by exact name; what the user adds is not', async () => {
      store.setScope('domain', (host) => host.split('.').slice(-2).join('.'))
      await store.commit(emptyBatch({ added: [newUrl('http://www.a.test/')], scope: ['a.test'] }))
      const links = linkList(['http://x.a.test/', 'http://b.test/'])
      await store.commit(emptyBatch({ ended: [ended(claim('www.a.test').urls[0]!, { links })] }))
      const redirect = linkList(['http://c.test/'], { redirect: true })
      await store.commit(emptyBatch({ ended: [ended(claim('x.a.test').urls[0]!, { outcome: 'redirect', links: redirect })] }))
      expect(store.counters()).toMatchObject({ discovered: 2, refused: { ...noRefusals, scope: 2 } })
      expect(store.host('b.test')).toBeUndefined()
      await reopen()
      expect([...store.scope()]).toEqual(['a.test'])
    })

    test('with the scope of hosts, a new name counts for the links of its own batch', async () => {
      store.setScope('host', (host) => host)
      await store.commit(emptyBatch({ added: [newUrl('http://a.test/')], scope: ['a.test'] }))
      const links = linkList(['http://b.test/', 'http://www.a.test/'])
      const result = await store.commit(emptyBatch({ ended: [ended(claim('a.test').urls[0]!, { links })], scope: ['b.test'] }))
      expect(result.newLinks).toEqual([1])
      expect(store.counters().refused).toMatchObject({ scope: 1 })
    })

    test('a URL that stands under the twin of its host is known, and each ends where it stands', async () => {
      const same = fingerprintOf('the key of both')
      const [www, bare] = ['http://www.a.test/x', 'http://a.test/x'].map((url) => newUrl(url, { fingerprint: same }))
      expect(await store.commit(emptyBatch({ added: [www!, newUrl('http://b.test/')] }))).toMatchObject({ addedNew: [true, true] })
      store.setTwins(twinHostOf)
      expect(await store.commit(emptyBatch({ added: [bare!, newUrl('http://www.b.test/y'), newUrl('http://b.test/y')] }))).toMatchObject({ addedNew: [false, true, true] })
      const toBoth = { ...linkList(['http://a.test/x', 'http://www.a.test/x', 'http://a.test/new', 'http://www.a.test/new']), fingerprint: (index: number) => index < 2 ? same : fingerprintOf('another') }
      expect((await store.commit(emptyBatch({ ended: [ended(claim('b.test').urls[0]!, { links: toBoth })] }))).newLinks).toEqual([1])
      await store.commit(emptyBatch({ ended: [ended(claim('www.a.test').urls[0]!)] }))
      expect(urlsOf(claim('a.test'))).toEqual(['http://a.test/new'])
      expect(store.counters()).toMatchObject({ discovered: 5, done: 2, pending: 3 })
      store.setTwins(() => undefined)
      expect((await store.commit(emptyBatch({ added: [www!, bare!] }))).addedNew).toEqual([false, true])
    })

    test('two host names with one hash keep their queues and records apart', async () => {
      await store.close()
      store = await open(`${dir}/collide`, { hostHash: oneHash })
      await add('http://a.test/', 'http://b.test/', 'http://a.test/2')
      await store.commit(emptyBatch({ hosts: [{ name: 'b.test', limit: 7 }, { name: 'c.test', limit: 8 }] }))
      expect(urlsOf(claim('a.test'))).toEqual(['http://a.test/', 'http://a.test/2'])
      expect(urlsOf(claim('b.test'))).toEqual(['http://b.test/'])
      expect(store.host('a.test')).toEqual({ name: 'a.test', pending: 2 })
      expect(store.host('b.test')).toEqual({ name: 'b.test', pending: 1, limit: 7 })
      const links = linkList(['http://a.test/', 'http://d.test/'], { hashOf: oneHash })
      expect((await store.commit(emptyBatch({ ended: [ended(claim('b.test').urls[0]!, { links })] }))).newLinks).toEqual([1])
      expect(store.host('d.test')).toEqual({ name: 'd.test', pending: 1 })
      expect(store.hostsWithWork(undefined, 10).hosts.map((host) => host.name).sort()).toEqual(['a.test', 'd.test'])
    })

    test('a crawl that was closed is clean, one that was not is unclean', async () => {
      expect(store.openedUnclean).toBe(false)
      await reopen()
      expect(store.openedUnclean).toBe(false)
    })

    test('options are kept with the crawl', async () => {
      await store.saveOptions({ scope: 'domain', delayMs: 5 })
      await reopen()
      expect(store.options()).toEqual({ scope: 'domain', delayMs: 5 })
    })

    test('closing twice is closing once, and a commit after it is refused', async () => {
      await Promise.all([store.close(), store.close()])
      await expect(add('http://a.test/')).rejects.toMatchObject({ code: 'internal' })
    })

    test('what was committed is flushed, and counted from one', async () => {
      expect((await store.commit(emptyBatch())).commitNumber).toBe(1)
      await store.flushed()
      await reopen()
      expect((await store.commit(emptyBatch())).commitNumber).toBe(2)
    })
  })
}

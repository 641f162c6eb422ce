/** One sitemap while it is fetched, with a thread and a store that the test plays; and what its end leads to. */
import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions } from '../../engine/core/options.ts'
import type { NewUrl, QueuedUrl } from '../../engine/core/types.ts'
import { plainKeys } from '../../engine/core/url-key.ts'
import type { CrawlParts } from '../../engine/crawl-parts.ts'
import type { FetchedResponse } from '../../engine/fetch/fetcher.ts'
import { readHead } from '../../engine/fetch/response-head.ts'
import { pageMetaOf } from '../../engine/page-meta.ts'
import { SitemapReading, type ReadingOptions } from '../../engine/sitemap-reading.ts'
import { SitemapStage } from '../../engine/sitemap-stage.ts'
import { newUrlOf } from '../../engine/sitemap-urls.ts'
import type { DeferredUrl, EndedUrl } from '../../storage/store.ts'
import type { SitemapEntry, SitemapPart, SitemapStream } from '../../threads/sitemap/types.ts'
import { TestClock } from '../support/test-clock.ts'

const SITEMAP = 'http://a.test/sitemap.xml'
const rules = { keyPolicy: plainKeys, include: [], exclude: [/no/] }
const by = { url: SITEMAP, depth: 0, nowMs: 2_000, openedAtMs: 1_000 }
const head = readHead(200, 'OK', [Buffer.from('Content-Type'), Buffer.from('application/xml')])
const entriesOf = (count: number, from = 0): SitemapEntry[] => Array.from({ length: count }, (_, at) => ({ url: `http://a.test/${from + at}` }))

interface Played {
  readonly reading: SitemapReading
  readonly calls: string[]
  readonly added: NewUrl[][]
  readonly aborter: AbortController
}

/** A thread that answers these parts, and then an end of a urlset. */
function play(parts: readonly (SitemapPart | Error)[], given: Partial<ReadingOptions> = {}): Played {
  const [calls, added, aborter]: [string[], NewUrl[][], AbortController] = [[], [], new AbortController()]
  const left = [...parts]
  const answer = async (call: string): Promise<SitemapPart> => {
    calls.push(call)
    const part = left.shift()!
    if (part instanceof Error) throw part
    return part
  }
  const stream: SitemapStream = {
    push: () => answer('push'), more: () => answer('more'), close: () => void calls.push('close'),
    end: async (isCut) => {
      calls.push(`end ${isCut}`)
      return { type: 'urlset', entriesCount: 7, bytes: 1, isCut, errors: [], entries: entriesOf(1, 99_999), hasMore: false }
    },
  }
  const reading = new SitemapReading({
    sitemap: by, rules, signal: aborter.signal, open: () => stream,
    add: async (urls) => {
      calls.push(`add ${urls.length}`)
      added.push([...urls])
      return urls.map(() => true)
    },
    ...given,
  })
  return { reading, calls, added, aborter }
}

test('a chunk is done when all that it holds is stored, a bounded number of URLs at a time, and not before', async () => {
  const max = limits.sitemapUrlsPerCommitMax
  const { reading, calls } = play([{ entries: entriesOf(max + 1), hasMore: true }, { entries: entriesOf(2, max + 1), hasMore: false }])
  expect(await reading.write(new Uint8Array(1), head)).toBe(true)
  expect(calls).toEqual(['push', `add ${max}`, 'add 1', 'more', 'add 2'])
  expect(await reading.end(false)).toMatchObject({ kind: 'read', newUrls: max + 4, end: { type: 'urlset', isCut: false } })
})

test('of what will not be read no more is fetched, and that it was cut there is not its fault', async () => {
  const { reading, calls } = play([{ entries: [], hasMore: false, isDone: true }])
  expect(await reading.write(new Uint8Array(1), head)).toBe(false)
  expect(await reading.end(true)).toMatchObject({ kind: 'read', end: { isCut: false } })
  expect(calls).toEqual(['push', 'end false', 'add 1'])
})

test('the body of an error is not read, and an empty one is no sitemap', async () => {
  const { reading, calls } = play([])
  expect(await reading.write(new Uint8Array(1), { ...head, status: 404 })).toBe(false)
  expect(await reading.end(false)).toMatchObject({ kind: 'read', end: { entriesCount: 0, errors: ['the body is empty'] } })
  expect(calls).toEqual([])
})

test('an abort ends it though the store never answers, and a store that fails is not its fault', async () => {
  let asked = 0
  const stuck = play([{ entries: [], hasMore: false }], {
    add: () => {
      asked += 1
      stuck.aborter.abort()
      return new Promise(() => {})
    },
  })
  expect(await stuck.reading.write(new Uint8Array(1), head)).toBe(true)
  expect(await stuck.reading.end(false)).toEqual({ kind: 'aborted' })
  expect(asked).toBe(1)
  const failed = play([{ entries: entriesOf(1), hasMore: false }], { add: () => Promise.reject(new Error('disk')) })
  expect(await failed.reading.write(new Uint8Array(1), head)).toBe(false)
  expect(await failed.reading.end(false)).toEqual({ kind: 'aborted' })
})

test('what is listed has the depth of a seed, a priority behind seeds, and comes back once whatever its date', () => {
  const facts = (entry: Partial<SitemapEntry>): unknown => {
    const url = newUrlOf({ url: 'http://a.test/x', ...entry }, by, rules)
    return typeof url === 'string' ? url : [url.depth, url.priority, url.again, url.kind, url.referrer]
  }
  expect([1, 0.75, 0.5, undefined, 0.1, 0].map((priority) => facts({ ...(priority !== undefined && { priority }) }))).toEqual(
    [1, 2, 3, 3, 5, 5].map((priority) => [0, priority, undefined, undefined, SITEMAP]),
  )
  expect([500, 1_500, 9_999].map((lastModifiedMs) => facts({ lastModifiedMs }))).toEqual([500, 1_500, 2_000].map((again) => [0, 3, again, undefined, SITEMAP]))
  expect(facts({ isSitemap: true, lastModifiedMs: 9_999 })).toEqual([1, 0, 1_000, 'sitemap', SITEMAP])
  expect(newUrlOf({ url: 'http://a.test/x', isSitemap: true }, { ...by, depth: limits.sitemapDepthMax }, rules)).toBe('depth')
  expect(facts({ url: 'http://a.test/no' })).toBe('pattern')
})

const url: QueuedUrl = { row: new Uint8Array(16), host: 'a.test', sequence: 1, fingerprint: new Uint8Array(16), url: SITEMAP, depth: 0, priority: 0, attempts: 0, kind: 'sitemap' }

function playStage(): { readonly stage: SitemapStage; readonly ended: EndedUrl[]; readonly deferred: DeferredUrl[] } {
  const [ended, deferred]: [EndedUrl[], DeferredUrl[]] = [[], []]
  const parts = {
    clock: new TestClock(), options: resolveCrawlOptions({}), robots: { sitemapsOf: () => [] }, events: { failed: () => {} },
    recrawl: { scheduled: (outcome: EndedUrl) => outcome },
    scheduler: { places: { move: () => {} }, rowsMs: () => 0, willComeLater: () => {} },
    commits: { end: (outcome: EndedUrl) => ended.push(outcome), defer: (later: DeferredUrl) => deferred.push(later) },
  } as unknown as CrawlParts
  return { stage: new SitemapStage(parts), ended, deferred }
}

test('there are so many places and no more, and those who find none come again one after the other', () => {
  const { stage, deferred } = playStage()
  const urls = Array.from({ length: limits.sitemapsReadingMax }, (_, at) => ({ ...url, host: `${at}.test` }))
  const open = urls.map((each) => stage.open(each, new AbortController().signal))
  expect(stage.isFullFor('a.test')).toBe(true)
  for (let count = 0; count < 3; count += 1) stage.putOff(url)
  expect(deferred).toMatchObject([1, 2, 3].map((place) => ({ attempts: 0, retry: false, notBeforeMs: place * limits.sitemapPutOffMs })))
  stage.close(urls[0]!, open[0]!)
  expect(stage.isFullFor('a.test')).toBe(false)
})

test('a host whose sitemaps never end holds few of the places, and those of others are read beside it', () => {
  const { stage } = playStage()
  const open = Array.from({ length: limits.sitemapsReadingPerHostMax }, () => stage.open(url, new AbortController().signal))
  expect([stage.isFullFor(url.host), stage.isFullFor('b.test')]).toEqual([true, false])
  stage.close(url, open[0]!)
  expect(stage.isFullFor(url.host)).toBe(false)
})

test('a sitemap whose thread died is read once more, and then it is a bad one', async () => {
  const { stage, ended, deferred } = playStage()
  let released = 0
  for (const attempts of [0, 1]) {
    const { reading } = play([new Error('the sitemap thread has ended')])
    const answer = { ok: true, ...head, body: [], bodyBytes: 1, truncated: true, timings: {}, fetchedAtMs: 1, release: () => { released += 1 } } satisfies FetchedResponse
    expect(await reading.write(new Uint8Array(1), head)).toBe(false)
    await stage.settle({ ...url, attempts }, pageMetaOf({ ...url, attempts }, answer, true), { answer, reading })
  }
  expect(released).toBe(2)
  expect(deferred).toMatchObject([{ attempts: 1, retry: true }])
  expect(ended).toMatchObject([{ outcome: 'failed', code: 'bad_sitemap' }])
  expect(JSON.parse(`${Buffer.from(ended[0]!.line).toString()}}`)).toMatchObject({ url: SITEMAP, code: 'bad_sitemap', attempts: 2, sitemap: { errors: ['the sitemap thread has ended'] } })
})

/** The types that a program writes against the library; that this compiles is most of the test. */
import { expect, expectTypeOf, test } from 'vitest'
import type {
  AddOptions, AddResult, Crawler, CrawlOptionsGiven, Extractor, HostStats, ParsedPage, RecrawlFacts, RecrawlFunction, RequeueFilter, RequeueResult, SeedSource, SeedUrl, Stats, Summary,
} from '../../engine/index.ts'

test('an extractor can be typed from the package alone', () => {
  const extractor: Extractor = (page: ParsedPage) => ({ title: page.meta.title, links: page.links.map(({ url }) => url) })
  const page: Pick<ParsedPage, 'meta' | 'links'> = { meta: { title: 'a', robots: {} }, links: [] }
  expect(extractor(page as ParsedPage)).toEqual({ title: 'a', links: [] })
})

test('seeds, their options and the filters of a requeue can be typed from the package alone, and misspelt ones are told', () => {
  const seeds: readonly SeedUrl[] = [{ url: new URL('http://a.test/'), lastmod: new Date(0) }, { url: 'http://a.test/', lastmod: '2026-01-31', again: true }, { url: 'http://a.test/', lastmod: 0 }]
  const sources: readonly SeedSource[] = ['http://a.test/', new URL('http://a.test/'), seeds, new Set(['http://a.test/']), (async function* () { yield seeds[0]! })()]
  const options: AddOptions = { again: true }
  const filters: readonly RequeueFilter[] = [{ outcome: 'failed', host: 'a.test' }, { outcome: ['ok', 'http_error'] }, { code: 'timeout,http_503' }, { all: true }]
  // @ts-expect-error -- misspelt
  const wrongOptions: AddOptions = { agian: true }
  // @ts-expect-error -- misspelt
  const wrongFilter: RequeueFilter = { all: true, hosts: 'a.test' }
  expect([sources.length, filters.length, options, wrongOptions, wrongFilter]).toHaveLength(5)
  expectTypeOf<ReturnType<Crawler['add']>>().toEqualTypeOf<Promise<AddResult>>()
  expectTypeOf<ReturnType<Crawler['requeue']>>().toEqualTypeOf<Promise<RequeueResult>>()
  expectTypeOf<Summary['nextDueAtMs']>().toEqualTypeOf<Stats['nextDueAtMs']>()
  expectTypeOf<HostStats['givenUp']>().toEqualTypeOf<{ readonly code: string; readonly at: string } | undefined>()
})

test('the options of a frontier can be typed from the package alone, the function that decides on recrawls among them', () => {
  const recrawl: RecrawlFunction = ({ isChanged, status, previous }: RecrawlFacts) => (status === 200 ? (isChanged === false ? 2 : 1) * (previous?.intervalMs ?? 1_000) : undefined)
  const options: CrawlOptionsGiven = { recrawl, durability: 'interval', maxQueued: 1, maxQueuedPerHost: '10', maxQueuedPerDomain: 'none', domainBudget: 5, maxStoreBytes: '1GB', tailMs: 'park' }
  const named: readonly CrawlOptionsGiven[] = [{ recrawl: 'never' }, { recrawl: 'fixed:1h' }, { recrawl: 'adaptive:1h:7d' }]
  // @ts-expect-error -- misspelt
  const wrong: CrawlOptionsGiven = { durabilty: 'system' }
  expect([options, named, wrong]).toHaveLength(3)
})

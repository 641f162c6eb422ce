/** Which URLs are one, by the options of a crawl: of seeds, and of what a crawl meets where a site redirects one spelling to another. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { faultsOf } from '../contract/store-batch.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { countsOf, notOnce, readPages } from '../support/crawl.ts'
import { openSmallWeb, type SmallAnswer, type SmallRequest } from '../support/small-web.ts'

let dir: string
beforeEach(() => { dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-dedupe-')) })
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

/** Opens the crawl with the options, adds the seeds one after the other, and answers which were new and which options changed. */
async function added(options: CrawlOptionsGiven, ...seeds: string[]): Promise<{ readonly news: readonly number[]; readonly changed: readonly string[] }> {
  const crawler = await Crawler.open({ dir, threads: 1, ...options })
  try {
    const news: number[] = []
    for (const seed of seeds) news.push((await crawler.add(seed)).added)
    return { news, changed: crawler.changedOptions }
  } finally {
    await crawler.close()
  }
}

const seeds = ['http://www.a.test/x/?utm_source=1', 'http://www.a.test/x/', 'http://a.test/x/', 'http://a.test/x']

it('seeds are one by the rules that were chosen, and by those of the store on continuing', async () => {
  expect(await added({ dedupe: ['tracking', 'www'] }, ...seeds)).toEqual({ news: [1, 0, 0, 1], changed: [] })
  expect(await added({}, ...seeds, 'http://a.test/y?b', 'http://www.a.test/y?b&gclid=1')).toEqual({ news: [0, 0, 0, 0, 1, 0], changed: [] })
})

it('a line says that the rules have changed, and with other keys a URL comes once more', async () => {
  expect(await added({}, ...seeds)).toEqual({ news: [1, 1, 1, 1], changed: [] })
  expect(await added({ dedupe: 'tracking,slash' }, 'http://www.a.test/x/', 'http://www.a.test/x')).toEqual({ news: [1, 0], changed: ['dedupe: [] -> ["tracking","slash"]'] })
  expect((await added({ dedupe: [] })).changed).toEqual(['dedupe: ["tracking","slash"] -> []'])
})

it('of a bound that comes or goes a line says so too', async () => {
  await added({}, 'http://a.test/')
  expect((await added({ maxQueuedPerHost: '5' })).changed).toEqual(['maxQueuedPerHost: none -> 5'])
  expect((await added({ maxQueuedPerHost: Number.POSITIVE_INFINITY })).changed).toEqual(['maxQueuedPerHost: 5 -> none'])
})

it('of an option that is younger than the crawl nothing is said', async () => {
  await added({}, 'http://a.test/')
  const store = await openStore(dir)
  const { dedupe: _dedupe, ...older } = store.options()
  await store.saveOptions(older)
  await store.close()
  expect(await added({}, 'http://a.test/')).toEqual({ news: [0], changed: [] })
})

it('a seed that is too long as it would be requested is rejected as that', async () => {
  const crawler = await Crawler.open({ dir, threads: 1 })
  const { rejections } = await crawler.add([`http://a.test/${'é'.repeat(3_000)}`, `ftp://a.test/${'x'.repeat(9_000)}`])
  await crawler.close()
  expect(rejections.map(({ message }) => message)).toEqual(['longer than 8000 bytes', 'not an http or https URL'])
})

interface Crawled {
  readonly asked: readonly string[]
  readonly summary: Summary
  readonly records: readonly PageRecord[]
  /** What the store finds wrong with itself. */
  readonly problems: readonly string[]
}

async function crawled({ dedupe, scope = 'any' }: Pick<CrawlOptionsGiven, 'dedupe' | 'scope'>, seed: string, answerOf: (request: SmallRequest) => SmallAnswer): Promise<Crawled> {
  const web = await openSmallWeb(['site.test', 'www.site.test'], answerOf)
  try {
    const crawler = await Crawler.open({ ...web.options, dedupe, scope })
    const [host, ...rest] = seed.split('/')
    await crawler.add(`${web.origin(host!)}/${rest.join('/')}`)
    const summary = await crawler.start()
    await crawler.close()
    const store = await openStore(web.options.dir)
    const problems = await faultsOf(store)
    await store.close()
    return { asked: web.asked, summary, records: await readPages(web.options.dir), problems }
  } finally {
    await web.close()
  }
}

function expectSums({ asked, summary, records, problems }: Crawled): void {
  const { discovered, pending, done, failed, dropped, excluded } = summary
  expect(problems).toEqual([])
  expect({ state: summary.state, pending, failed, dropped, excluded, sum: done }).toEqual({ state: 'complete', pending: 0, failed: 0, dropped: 0, excluded: 0, sum: discovered })
  // Each answer has its record, also where one URL had two of them.
  expect([summary.pages, records.length]).toEqual([asked.length, asked.length])
  expect(records.reduce((sum, { newLinks = 0 }) => sum + newLinks, 0)).toBe(discovered - 1)
}

const PAGES = 40
/** The spellings of each page: the first answers, each other one redirects to the one before it. */
const siteKinds: readonly { readonly dedupe: string; readonly kind: string; readonly spellings: (page: number) => readonly string[] }[] = [
  { dedupe: 'www', kind: 'that answers with www', spellings: (page) => [`www.site.test/${page || ''}`, `site.test/${page || ''}`] },
  { dedupe: 'www', kind: 'that answers without www', spellings: (page) => [`site.test/${page || ''}`, `www.site.test/${page || ''}`] },
  { dedupe: 'slash', kind: 'that answers with a slash', spellings: (page) => [`site.test/${page}/`, `site.test/${page}`] },
  { dedupe: 'slash', kind: 'that answers without a slash', spellings: (page) => [`site.test/${page}`, `site.test/${page}/`] },
  {
    dedupe: 'www,slash', kind: 'that answers with both, three hops away',
    spellings: (page) => [`www.site.test/${page}/`, `www.site.test/${page}`, `site.test/${page}/`, `site.test/${page}`],
  },
]

describe.each(siteKinds)('of a site $kind, with $dedupe', ({ dedupe, spellings }) => {
  const placeOf = new Map(Array.from({ length: PAGES }, (_, page) => spellings(page).map((spelling, at) => [spelling, { page, at }] as const)).flat())

  /** Links to its children and to the first pages, in a spelling or two that differ from page to page. */
  function htmlOf(page: number, port: string): string {
    const targets = [2 * page + 1, 2 * page + 2, 0, 1, 2, 3].filter((target) => target < PAGES)
    const links = targets.flatMap((target) => {
      const all = spellings(target)
      return [all[(page + target) % all.length]!, ...(target % 3 === 0 ? all : [])]
    })
    return `<title>${page}</title>${links.map((link) => `<a href="//${link.replace('/', `:${port}/`)}">x</a>`).join('')}`
  }

  it('each page is fetched once where it answers, and no other spelling more than once', async () => {
    const found = await crawled({ dedupe }, spellings(0).at(-1)!, ({ host, path, origin }) => {
      const place = placeOf.get(host + path)
      if (place === undefined) return undefined
      const port = new URL(origin).port
      if (place.at === 0) return { html: htmlOf(place.page, port) }
      return { location: `http://${spellings(place.page)[place.at - 1]!.replace('/', `:${port}/`)}` }
    })
    const counts = countsOf(found.asked)
    expect(Array.from({ length: PAGES }, (_, page) => spellings(page)[0]!).filter((answering) => counts.get(answering) !== 1)).toEqual([])
    expect(notOnce(found.asked)).toEqual([])
    // Otherwise no link led to another spelling first, or the rules did nothing.
    expect(found.asked.length).toBeGreaterThan(PAGES + 5)
    expect(found.asked.length).toBeLessThan(placeOf.size)
    expectSums(found)
  })
})

it('a page that redirects from one spelling to another and back is asked for once in each', async () => {
  const slash = await crawled({ dedupe: 'slash' }, 'site.test/a', ({ path }) => ({ location: path === '/a' ? '/a/' : '/a' }))
  expect(slash.asked).toEqual(['site.test/a', 'site.test/a/'])
  expect(slash.summary.discovered).toBe(1)
  expectSums(slash)
  const www = await crawled({ dedupe: 'www' }, 'site.test/', ({ host, origin }) => ({ location: host === 'site.test' ? origin.replace('//', '//www.') : origin.replace('www.', '') }))
  expect(www.asked).toEqual(['site.test/', 'www.site.test/'])
  expect(www.summary.discovered).toBe(2)
  expectSums(www)
})

describe.each(['host', 'domain'] as const)('with www and the scope %s', (scope) => {
  const html = '<a href="http://site.test:PORT/1">x</a><a href="http://www.site.test:PORT/2">x</a><a href="http://b.www.site.test.other.test/">x</a>'
  const answer = ({ origin }: SmallRequest): SmallAnswer => ({ html: html.replaceAll('PORT', new URL(origin).port) })

  it('a site that answers under its other name is crawled', async () => {
    const found = await crawled({ dedupe: 'www', scope }, 'site.test/', (request) => (
      request.host === 'site.test' ? { location: request.origin.replace('//', '//www.') + request.path } : answer(request)))
    expect(found.asked.toSorted()).toEqual(['site.test/', 'site.test/1', 'www.site.test/', 'www.site.test/1', 'www.site.test/2'])
    expect(found.summary.refused.scope).toBe(3)
    expectSums(found)
  })

  it('links to either name are followed', async () => {
    const found = await crawled({ dedupe: 'www', scope }, 'www.site.test/', answer)
    expect(found.asked.toSorted()).toEqual(['site.test/1', 'www.site.test/', 'www.site.test/2'])
    expectSums(found)
  })
})

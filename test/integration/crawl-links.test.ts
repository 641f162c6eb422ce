/** The options that say which links a crawl takes, from the crawler through worker and commit and back. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { Crawler } from '../../engine/index.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

const deep = `/${Array.from({ length: 21 }, (_, index) => index).join('/')}`
const long = `/${'x'.repeat(2_000)}`
const generated = [long, deep, '/a/a/a/', '/list?1', '/list?2', '/list?3']
const html = `${generated.map((path) => `<a href="${path}">x</a>`).join('')}<img src="/picture"><iframe src="/frame"></iframe>`

let web: SmallWeb
// Each page repeats the links of the first, so that the worker judges them again with what was committed meanwhile.
beforeEach(async () => { web = await openSmallWeb(['site.test'], () => ({ html })) })
afterEach(() => web.close())

async function crawled(options: CrawlOptionsGiven): Promise<{ readonly paths: readonly string[]; readonly refused: object }> {
  const crawler = await Crawler.open({ ...web.options, ...options })
  await crawler.add(`${web.origin('site.test')}/`)
  const { refused } = await crawler.start()
  await crawler.close()
  return {
    paths: web.asked.map((url) => url.slice('site.test'.length)).toSorted(),
    refused: Object.fromEntries(Object.entries(refused).filter(([, count]) => count > 0)),
  }
}

it('by default links to addresses that look generated are refused and counted for each page that has them', async () => {
  const { paths, refused } = await crawled({})
  expect(paths).toEqual(['/', '/frame', '/list?1', '/list?2', '/list?3'])
  expect(refused).toEqual({ url_length: 5, path_depth: 5, path_repeat: 5 })
})

it('a path gets as many queries as it may have', async () => {
  const { paths, refused } = await crawled({ maxQueriesPerPath: 2 })
  expect(paths).toEqual(['/', '/frame', '/list?1', '/list?2'])
  expect(refused).toEqual({ url_length: 4, path_depth: 4, path_repeat: 4, query_growth: 4 })
})

it('with traps off they are followed', async () => {
  const { paths, refused } = await crawled({ traps: 'off', maxQueriesPerPath: 1 })
  expect(paths).toEqual(['/', '/frame', ...generated].toSorted())
  expect(refused).toEqual({})
})

it('the elements that were chosen link, and no others', async () => {
  expect((await crawled({ linkElements: 'img' })).paths).toEqual(['/', '/picture'])
})

it('a host takes as many links into its queue as it may have', async () => {
  const { paths, refused } = await crawled({ maxQueuedPerHost: 1, maxDepth: 1 })
  expect(paths).toEqual(['/', '/list?1'])
  expect(refused).toMatchObject({ host_full: 3 })
})

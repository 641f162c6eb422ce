import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { notOnce, readPages } from '../support/crawl.ts'
import { openSmallWeb, type SmallAnswer, type SmallWeb } from '../support/small-web.ts'

let web: SmallWeb | undefined
let crawler: Crawler | undefined

afterEach(async () => {
  await crawler?.close()
  await web?.close()
  crawler = web = undefined
})

const asksInHead: SmallAnswer = { html: 'Just a moment', status: 403, headers: { 'cf-mitigated': 'challenge' } }
const blocksInBody: SmallAnswer = { html: '<TITLE>Access Denied</TITLE>Reference&#32;&#35;18&#46;3f', status: 403 }
const asksInBody: SmallAnswer = { html: '<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&amp;edet=12">incident</iframe>' }

it.each([['in its head', asksInHead, 'challenged'], ['in its body', blocksInBody, 'blocked'], ['in its body, with 200', asksInBody, 'challenged']] as const)(
  'a site that answers with a wall for a while, told %s, costs no page: its URLs come again, and the wall is no page of the crawl',
  async (_, wall, code) => {
    const links = Array.from({ length: 6 }, (_, index) => `<a href="/${index}">x</a>`).join('')
    let walls = 1
    web = await openSmallWeb(['a.test'], ({ path }) => (path !== '/' && walls-- > 0 ? wall : { html: `<title>${path}</title>${links}` }))
    crawler = await Crawler.open({ ...web.options, concurrency: '1:1:1', format: 'jsonl,warc' })
    await crawler.add(`${web.origin('a.test')}/`)
    const summary = await crawler.start()
    const stats = crawler.stats()
    await crawler.close()
    expect([summary.done, summary.failed, summary.pages]).toEqual([7, 0, 7])
    const pages = await readPages(web.options.dir)
    expect(notOnce(pages.map(({ url }) => url))).toEqual([])
    expect(pages.filter(({ outcome, title }) => outcome !== 'ok' || title === undefined)).toEqual([])
    expect(stats[code]).toBe(1)
    const warcs = readdirSync(join(web.options.dir, 'warc')).map((name) => gunzipSync(readFileSync(join(web!.options.dir, 'warc', name))).toString('latin1')).join('')
    expect(warcs.match(/WARC-Type: response/g)).toHaveLength(7)
  },
)

it('a URL that is walled while the rest of its host is well ends with the code of the wall, and its host goes on', async () => {
  web = await openSmallWeb(['a.test'], ({ path }) => (path === '/admin' ? blocksInBody : { html: '<a href="/admin">x</a><a href="/b">x</a><a href="/c">x</a>' }))
  crawler = await Crawler.open({ ...web.options, retries: 1 })
  await crawler.add(`${web.origin('a.test')}/`)
  const summary = await crawler.start()
  await crawler.close()
  expect([summary.done, summary.failed]).toEqual([3, 1])
  expect((await readPages(web.options.dir)).filter(({ outcome }) => outcome === 'failed')).toMatchObject([{ code: 'blocked', status: 403, attempts: 2 }])
})

it('a site that answers with nothing but walls in its bodies is given up, though each answer looks like a success at first', async () => {
  web = await openSmallWeb(['a.test'], () => blocksInBody)
  crawler = await Crawler.open({ ...web.options, concurrency: '1:1:1', delayMs: 10, hostPatienceMs: 0 })
  await crawler.add(Array.from({ length: 100 }, (_, index) => `${web!.origin('a.test')}/${index}`))
  const summary = await crawler.start()
  expect([summary.done, summary.failed]).toEqual([0, 100])
  expect(crawler.host('a.test')).toMatchObject({ givenUp: { code: 'blocked' } })
  // Those that were asked for before the first was read are not counted again: the host is tried thrice.
  expect(web.asked.length).toBeLessThan(100)
  expect(crawler.stats().blocked).toBe(web.asked.length)
  expect(summary.flow, 'and the summary tells of it').toMatchObject({ blocked: web.asked.length, hostsGivenUp: 1, hostsParked: 0 })
})

it('a site that asks to be paid is parked with its price', async () => {
  web = await openSmallWeb(['a.test'], () => ({ html: 'pay', status: 402, headers: { 'crawler-price': 'USD 0.01' } }))
  crawler = await Crawler.open(web.options)
  await crawler.add(`${web.origin('a.test')}/`)
  expect((await crawler.start()).flow).toMatchObject({ hostsGivenUp: 0, hostsParked: 1 })
  expect(crawler.host('a.test')).toMatchObject({ pending: 1, parked: { code: 'http_402', price: 'USD 0.01' } })
})

it.each(['requeue', 'add'] as const)('a site that asked to be paid is asked again when somebody wants its URLs (%s), which are in the queue all the time', async (way) => {
  let isFree = false
  web = await openSmallWeb(['a.test'], () => (isFree ? { html: 'page' } : { html: 'pay', status: 402 }))
  const url = `${web.origin('a.test')}/`
  crawler = await Crawler.open(web.options)
  await crawler.add(url)
  await crawler.start()
  isFree = true
  expect((await crawler.start()).pages, 'nobody asked').toBe(0)
  if (way === 'add') await crawler.add(url, { again: true })
  else expect(await crawler.requeue({ host: 'a.test', code: 'http_402' })).toEqual({ requeued: 1, excluded: 0 })
  expect(await crawler.start()).toMatchObject({ pages: 1, pending: 0 })
})

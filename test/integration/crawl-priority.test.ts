import { afterEach, expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

let web: SmallWeb | undefined
let crawler: Crawler | undefined

afterEach(async () => {
  await crawler?.close()
  await web?.close()
  crawler = web = undefined
})

it('a crawl goes by the user\'s priorities: of the seeds as they were added, of links as the function says', async () => {
  web = await openSmallWeb(['a.test'], ({ path }) => ({ html: path === '/first' ? '<a href="/low">x</a><a href="/high">x</a>' : path }))
  const origin = web.origin('a.test')
  crawler = await Crawler.open({ ...web.options, concurrency: '1:1:1', priority: ({ url, priority, isSeed }) => (isSeed ? priority : url.endsWith('high') ? 1 : 200) })
  await crawler.add([{ url: `${origin}/last`, priority: 250.4 }, { url: `${origin}/second`, priority: 100 }, { url: `${origin}/first`, priority: -1 }])
  await crawler.start()
  const order = (names: readonly string[]): readonly string[] => web!.asked.map((url) => url.replace('a.test/', '')).filter((name) => names.includes(name))
  expect(order(['first', 'second', 'last'])).toEqual(['first', 'second', 'last'])
  expect(order(['low', 'high'])).toEqual(['high', 'low'])
})

it.each([
  ['throws', () => { throw new Error('boom') }, 'priority: the function threw on'],
  ['answers no number', () => undefined as unknown as number, 'priority: expected a number for'],
])('a priority function that %s on a link ends the run in one line, and the next opening loses nothing', async (_, broken, message) => {
  web = await openSmallWeb(['a.test'], ({ path }) => ({ html: path === '/' ? '<a href="/x">x</a>' : 'x' }))
  crawler = await Crawler.open({ ...web.options, priority: (link) => (link.isSeed ? 0 : broken()) })
  await crawler.add(`${web.origin('a.test')}/`)
  const run = crawler.start()
  await expect(run).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(new RegExp(`^${message} [^\n]*$`)) })
  await crawler.close().catch(() => {})
  crawler = await Crawler.open(web.options)
  expect(await crawler.start()).toMatchObject({ state: 'complete', done: 2, failed: 0 })
})

it('a priority of a seed that is no number is refused, and the message names it', async () => {
  web = await openSmallWeb(['a.test'], () => undefined)
  crawler = await Crawler.open(web.options)
  await expect(crawler.add({ url: 'http://a.test/', priority: 'high' as unknown as number })).rejects.toMatchObject({
    code: 'bad_option', message: 'add: priority: expected a number from 0 to 255, given high for http://a.test/',
  })
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { notOnce, readPages } from '../support/crawl.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

let web: SmallWeb | undefined
let crawler: Crawler | undefined

afterEach(async () => {
  await crawler?.close()
  await web?.close()
  crawler = web = undefined
})

const good = Array.from({ length: 10 }, (_, at) => `good${at}.test`)
const bad = Array.from({ length: 10 }, (_, at) => `bad${at}.test`)

function readLog(): readonly Record<string, unknown>[] {
  return readFileSync(join(web!.options.dir, 'shed.jsonl'), 'utf8').trim().split('\n').filter((text) => text !== '').map((text) => JSON.parse(text) as Record<string, unknown>)
}

/** Crawls so many pages of ten good and ten bad hosts each, with a consumer that takes a page a millisecond. Answers how many it had. */
async function crawlSlowly(shedAfterMs: number, perHost: number): Promise<number> {
  web = await openSmallWeb([...good, ...bad], () => ({ html: 'x' }))
  crawler = await Crawler.open({ ...web.options, shedAfterMs, shedLog: join(web.options.dir, 'shed.jsonl') })
  const seeds = (hosts: readonly string[], priority: number) => hosts.flatMap((host) => Array.from({ length: perHost }, (_, at) => ({ url: `${web!.origin(host)}/${at}`, priority })))
  await crawler.add([...seeds(bad, 5), ...seeds(good, 0)])
  let pages = 0
  for await (const _ of crawler.run()) {
    pages += 1
    await new Promise((resolve) => { setTimeout(resolve, 1) })
  }
  return pages
}

it('a crawl that its consumer holds passes over its worst hosts, counts and writes down each of them, and loses none', async () => {
  expect(await crawlSlowly(0, 30)).toBe(600)
  const { shed } = crawler!.stats()
  await crawler!.close()
  expect(notOnce((await readPages(web!.options.dir)).map(({ url }) => url))).toEqual([])
  const lines = readLog()
  const deferred = Object.values(shed.deferred).reduce((sum, count) => sum + count, 0)
  expect(deferred).toBeGreaterThan(0)
  expect(lines).toHaveLength(deferred)
  expect(lines.filter(({ action, priority, host }) => action !== 'deferred' || priority !== 5 || !bad.includes(String(host)))).toEqual([])
  expect(shed.logLinesLost).toBe(0)
})

it('none: nothing is passed over, and the log stays empty', async () => {
  expect(await crawlSlowly(Number.POSITIVE_INFINITY, 5)).toBe(100)
  expect(crawler!.stats().shed).toMatchObject({ isShedding: false, logLinesLost: 0 })
  expect(readLog()).toEqual([])
})

it('links that a full host does not take, and URLs that it drops for better ones, have their lines', async () => {
  const links = (from: number, to: number): string => Array.from({ length: to - from }, (_, at) => `<a href="/${from + at}">x</a>`).join('')
  web = await openSmallWeb(['a.test'], ({ path }) => ({ html: path === '/start' ? links(40, 80) : path === '/40' ? links(1, 20) : 'x' }))
  crawler = await Crawler.open({
    ...web.options, maxQueuedPerHost: 20, concurrency: '1:1:1', delayMs: 20, shedLog: join(web.options.dir, 'shed.jsonl'), priority: ({ url }) => Number(/\d+$/.exec(url)?.[0] ?? 0),
  })
  await crawler.add(`${web.origin('a.test')}/start`)
  const summary = await crawler.start()
  const { shed } = crawler.stats()
  await crawler.close()
  const lines = readLog()
  const of = (wanted: string): number => lines.filter(({ action }) => action === wanted).length
  expect([of('refused'), of('dropped')]).toEqual([summary.refused.host_full, summary.dropped])
  expect([shed.refused.host_full, shed.dropped.host_full]).toEqual([summary.refused.host_full, summary.dropped])
  expect(summary.refused.host_full).toBeGreaterThan(0)
  expect(summary.dropped).toBeGreaterThan(0)
})

it('a shed log that cannot be written is refused before anything is opened', async () => {
  web = await openSmallWeb([], () => undefined)
  await expect(Crawler.open({ ...web.options, shedLog: web.options.dir })).rejects.toMatchObject({ code: 'bad_option', message: expect.stringContaining('--shed-log: expected a file') })
  crawler = await Crawler.open(web.options)
})

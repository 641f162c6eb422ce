import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Crawler, type BlockedOn, type Bound } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { until } from '../support/processes.ts'

describe('a consumer', () => {
  let bed: CrawlBed

  beforeEach(async () => {
    bed = await openBed({ hosts: 6, pagesPerHost: 120, sizeScale: 0.05, tls: false })
  })
  afterEach(() => bed.close())

  it('that does not ask for the next page stops the crawl, and is named as the reason', async () => {
    const crawler = await Crawler.open(bed.options)
    await crawler.add(bed.web.seeds)
    const reasons: BlockedOn[] = []
    crawler.on('pressure', (blockedOn) => reasons.push(blockedOn))
    const bound = (name: string): Bound => crawler.stats().bounds.find((each) => each.name === name)!
    let seen = 0
    for await (const page of crawler.run()) {
      expect(page.url).toMatch(/^http:/)
      seen += 1
      if (seen !== 200) continue
      await until(() => bound('pagesUnacked').used >= bound('pagesUnacked').limit && crawler.stats().inFlight === 0)
      expect(bound('pagesUnacked').used).toBeLessThanOrEqual(256)
      const { blockedOn, pages } = crawler.stats()
      expect(blockedOn).toBe('consumer')
      expect(reasons.at(-1)).toBe('consumer')
      expect(pages).toBeLessThan(200)
      expect(bound('slots').used).toBeLessThanOrEqual(bound('slots').max)
    }
    expect(seen).toBe(bed.web.pages)
    expect(crawler.stats()).toMatchObject({ pending: 0, pages: bed.web.pages })
    await crawler.close()
  })

  it('that leaves gives back exactly what it had not finished', async () => {
    const crawler = await Crawler.open({ ...bed.options, format: ['jsonl', 'warc'] })
    await crawler.add(bed.web.seeds)
    const finished: string[] = []
    for await (const page of crawler.run()) {
      if (finished.length === 50) break
      finished.push(page.url)
    }
    expect((await readPages(bed.dir)).filter(({ outcome }) => outcome === 'ok').map(({ url }) => url)).toEqual(finished)
    expect((await readWarcs(bed.dir)).map(({ url }) => url).sort()).toEqual([...finished].sort())
    const rest: string[] = []
    for await (const page of crawler.run()) rest.push(page.url)
    await crawler.close()
    expect(notOnce([...finished, ...rest])).toEqual([])
    expect(finished.length + rest.length).toBe(bed.web.pages)
    expect(notOnce((await readWarcs(bed.dir)).map(({ url }) => url))).toEqual([])
  })

  it('that throws ends the run with its error, and its page comes again', async () => {
    const crawler = await Crawler.open(bed.options)
    await crawler.add(bed.web.seeds)
    let refused = ''
    await expect(crawler.start({ onPage: (page) => { refused = page.url; throw new Error('no') } })).rejects.toMatchObject({ code: 'consumer_failed' })
    const again: string[] = []
    await crawler.start({ onPage: (page) => again.push(page.url) })
    await crawler.close()
    expect(again).toContain(refused)
    expect(again).toHaveLength(bed.web.pages)
  })

  it('may close the crawler while it holds a page, and the loop ends', async () => {
    const crawler = await Crawler.open(bed.options)
    await crawler.add(bed.web.seeds)
    let seen = 0
    for await (const page of crawler.run()) {
      seen += 1
      expect(page.url).not.toBe('')
      if (seen === 5) await crawler.close()
    }
    expect(seen).toBe(5)
    expect((await readPages(bed.dir)).filter(({ outcome }) => outcome === 'ok')).toHaveLength(4)
  })

  it('never sees more pages than maxPages allows, and a later run goes on', async () => {
    const crawler = await Crawler.open(bed.options)
    await crawler.add(bed.web.seeds)
    const first = await crawler.start({ maxPages: 37 })
    expect(first).toMatchObject({ state: 'limit', pagesThisRun: 37, pages: 37 })
    const second = await crawler.start()
    expect(second).toMatchObject({ state: 'complete', pages: bed.web.pages })
    await crawler.close()
    expect(notOnce((await bed.requests()).map(({ host, path }) => `${host}${path}`))).toEqual([])
  })
})

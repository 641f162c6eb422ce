import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed, type ServerRequest } from '../support/crawl.ts'

describe('a crawl of a web over HTTPS', () => {
  let bed: CrawlBed
  let summary: Summary
  let requests: readonly ServerRequest[]
  let records: readonly PageRecord[]

  beforeAll(async () => {
    bed = await openBed({ hosts: 6, pagesPerHost: 20, sizeScale: 0.5 })
    const crawler = await Crawler.open({ ...bed.options, format: ['jsonl', 'warc'] })
    await crawler.add(bed.web.seeds)
    summary = await crawler.start()
    await crawler.close()
    requests = await bed.requests()
    records = await readPages(bed.dir)
  })
  afterAll(() => bed.close())

  const pageUrls = (): string[] => [...bed.site.allPages()].map((page) => page.url)
  const asked = (): Map<string, number> => {
    const origin = new Map([...bed.site.allPages()].map((page) => [page.host, new URL(page.url).origin]))
    const counts = new Map<string, number>()
    for (const { host, path } of requests) counts.set(`${origin.get(host)}${path}`, (counts.get(`${origin.get(host)}${path}`) ?? 0) + 1)
    return counts
  }

  it('ends by itself as complete, with sums that hold', () => {
    expect(summary.state).toBe('complete')
    expect(summary.pending).toBe(0)
    expect(summary.discovered).toBe(summary.pending + summary.done + summary.failed + summary.dropped + summary.excluded)
  })

  it("fetches every page of the web exactly once by the server's own count", () => {
    const counts = asked()
    expect(pageUrls().filter((url) => counts.get(url) !== 1)).toEqual([])
    expect([...counts].filter(([url, count]) => count !== 1 && bed.site.pageAt(url) !== undefined)).toEqual([])
  })

  it('asks each host for robots.txt once, before any of its pages', () => {
    const first = new Map<string, string>()
    for (const { host, path } of requests) if (!first.has(host)) first.set(host, path)
    expect([...first.values()].filter((path) => path !== '/robots.txt')).toEqual([])
    expect(requests.filter(({ path }) => path === '/robots.txt')).toHaveLength(first.size)
  })

  it('fetches nothing that robots.txt forbids, and says so in a record for each', () => {
    expect(requests.filter(({ path }) => path.startsWith('/private/'))).toEqual([])
    const denied = records.filter(({ outcome }) => outcome === 'robots_denied')
    expect(denied.length).toBeGreaterThan(0)
    expect(denied.filter(({ url }) => !bed.site.robotsDisallowed(url))).toEqual([])
  })

  it('asks for nothing that is only in a comment or a script', () => {
    expect(requests.filter(({ status }) => status === 404)).toEqual([])
  })

  it('writes one line for each URL that it discovered', () => {
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    expect(records).toHaveLength(summary.discovered)
    const urls = new Set(records.map(({ url }) => url))
    expect(pageUrls().filter((url) => !urls.has(url))).toEqual([])
  })

  it('fills the page record from the page and from the connection', () => {
    const record = records.find(({ outcome, depth }) => outcome === 'ok' && depth > 0)!
    expect(record).toMatchObject({ status: 200, attempts: 1, charset: expect.any(String), title: expect.any(String), lang: expect.any(String), hash: expect.stringMatching(/^[0-9a-f]{32}$/) })
    expect(record.ip).toMatch(/^127\./)
    expect(record.tls?.version).toMatch(/^TLSv1\.[23]$/)
    expect(record.links).toBeGreaterThan(0)
    expect(record.timings?.totalMs).toBeGreaterThan(0)
    expect(Object.values(record).filter((value) => value === null || value === '')).toEqual([])
    const newLinks = records.reduce((sum, { newLinks: count = 0 }) => sum + count, 0)
    expect(newLinks).toBe(summary.discovered - bed.web.seeds.length)
  })

  it('stores in its WARC files the payload bytes that the server sent', async () => {
    const sent = new Map(requests.map(({ host, path, sha256 }) => [`${host}${path}`, sha256]))
    const responses = await readWarcs(bed.dir)
    const pages = records.filter(({ status }) => status !== undefined)
    expect(notOnce(responses.map(({ url }) => url))).toEqual([])
    expect(responses.map(({ url }) => url).sort()).toEqual(pages.map(({ url }) => url).sort())
    for (const { url, payload, truncated } of responses) {
      const { hostname, pathname, search } = new URL(url)
      if (truncated === undefined) expect(createHash('sha256').update(payload).digest('hex'), url).toBe(sent.get(`${hostname}${pathname}${search}`))
    }
  })
})

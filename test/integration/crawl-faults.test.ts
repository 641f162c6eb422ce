import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Fault } from '../../engine/demo/index.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { notOnce, openBed, readPages, type CrawlBed } from '../support/crawl.ts'

const expected: Record<Fault, Partial<PageRecord>> = {
  not_found: { outcome: 'http_error', status: 404, attempts: 1 },
  gone: { outcome: 'http_error', status: 410, attempts: 1 },
  server_error: { outcome: 'http_error', status: 500, attempts: 2 },
  unavailable: { outcome: 'http_error', status: 503 },
  redirect: { outcome: 'redirect', attempts: 1 },
  redirect_chain: { outcome: 'redirect', attempts: 1 },
  redirect_self: { outcome: 'redirect', attempts: 1 },
  reset: { outcome: 'failed', code: 'connection_closed', attempts: 2 },
  no_answer: { outcome: 'failed', code: 'connection_closed', attempts: 2 },
  stall: { outcome: 'failed', code: 'timeout', attempts: 2 },
  wrong_type: { outcome: 'failed', code: 'unsupported_type', attempts: 1 },
  broken_gzip: { outcome: 'failed', code: 'bad_content_encoding', attempts: 1 },
  truncated: { outcome: 'failed', code: 'connection_closed', attempts: 2 },
}

describe('a crawl of a web in which many pages misbehave', () => {
  let bed: CrawlBed
  let summary: Summary
  let records: ReadonlyMap<string, PageRecord>

  beforeAll(async () => {
    bed = await openBed({ hosts: 10, pagesPerHost: 20, sizeScale: 0.05, faultShare: 0.5, tls: false })
    const crawler = await Crawler.open({ ...bed.options, retries: 1, timeoutMs: 1_000 })
    await crawler.add(bed.web.seeds)
    summary = await crawler.start()
    await crawler.close()
    const lines = await readPages(bed.dir)
    expect(notOnce(lines.map(({ url }) => url))).toEqual([])
    records = new Map(lines.map((record) => [record.url, record]))
  })
  afterAll(() => bed.close())

  it('completes, and every page of the web has one outcome', () => {
    expect(summary).toMatchObject({ state: 'complete', pending: 0 })
    expect([...bed.site.allPages()].filter(({ url }) => !records.has(url))).toEqual([])
  })

  it.each(Object.entries(expected) as [Fault, Partial<PageRecord>][])('gives each page that answers with %s its outcome', (fault, record) => {
    const pages = [...bed.site.allPages()].filter((page) => page.fault === fault)
    expect(pages.length, `pages with ${fault}`).toBeGreaterThan(0)
    for (const { url } of pages) expect(records.get(url), url).toMatchObject(record)
  })

  it('gives the pages without a fault theirs all the same', () => {
    for (const { url, fault } of bed.site.allPages()) {
      if (fault === 'none') expect(records.get(url), url).toMatchObject({ outcome: 'ok', status: 200 })
    }
  })
})

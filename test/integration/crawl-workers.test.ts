import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Crawler, type PageRecord } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'

/** What the extractor does to its worker, and on how many pages. */
const faults = [
  ['exits', 3, 'process.exit(1)'],
  ['throws', 3, "throw new Error('no')"],
  ['throws later, outside of the page', 3, "setTimeout(() => { throw new Error('late') }, 0); await new Promise(() => {})"],
  // Small objects: at one large array V8 may abort the process in spite of the limit (nodejs/node #47224). One page, since
  // a worker takes seconds to fill its heap, and each page costs two.
  ['reaches its memory limit', 1, "let kept; for (;;) kept = { kept, text: 'kept' }"],
] as const

describe('a worker that dies on some pages', () => {
  let bed: CrawlBed
  let scratch: string

  beforeEach(async () => {
    bed = await openBed({ hosts: 4, pagesPerHost: 20, sizeScale: 0.05, tls: false })
    scratch = await mkdtemp(join(tmpdir(), 'sluice-extractor-'))
  })
  afterEach(async () => {
    await bed.close()
    await rm(scratch, { recursive: true, force: true })
  })

  const crawlWith = async (pages: number, body: string): Promise<{ records: PageRecord[]; poisoned: (record: PageRecord) => boolean }> => {
    const extractor = join(scratch, 'extractor.mjs')
    // Not the seed, so that the others are found.
    const poisoned = new Set([...bed.site.allPages()].slice(3, 3 + pages).map(({ url }) => url))
    await writeFile(extractor, `const poisoned = new Set(${JSON.stringify([...poisoned])})\nexport default async (page) => { if (poisoned.has(page.url)) { ${body} } return { length: page.text.length } }\n`)
    const crawler = await Crawler.open({ ...bed.options, extract: extractor, format: ['jsonl', 'warc'] })
    await crawler.add(bed.web.seeds)
    await crawler.start()
    await crawler.close()
    return { records: await readPages(bed.dir), poisoned: ({ url }) => poisoned.has(url) }
  }

  it.each(faults)('because the extractor %s: the crawl completes, and only those pages get a code', async (name, pages, body) => {
    const { records, poisoned } = await crawlWith(pages, body)
    const read = records.filter(({ outcome }) => outcome !== 'robots_denied')
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    const bad = read.filter(poisoned)
    expect(bad, name).toHaveLength(pages)
    for (const record of bad) expect(record).toMatchObject({ outcome: 'failed', code: expect.stringMatching(/^(extractor_failed|parse_crashed|parse_out_of_memory|parse_timeout)$/) })
    for (const record of read.filter((each) => !poisoned(each))) expect(record).toMatchObject({ outcome: 'ok', record: { length: expect.any(Number) } })
    const warcs = (await readWarcs(bed.dir)).map(({ url }) => url)
    expect(notOnce(warcs)).toEqual([])
    expect(warcs).toEqual(expect.arrayContaining(read.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url)))
  })
})

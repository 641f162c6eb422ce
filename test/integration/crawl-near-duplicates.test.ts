/** Pages that look alike, through the whole engine: from the scanner's spans of text to the record, the counters and the links that are left out. */
import { expect, it } from 'vitest'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { faultsOf } from '../contract/store-batch.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { readPages } from '../support/crawl.ts'
import { openSmallWeb } from '../support/small-web.ts'

const words = (stem: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${stem}${index.toString(36)}`)
const text = words('river', 300)
const copy = text.with(150, 'another')
const link = (path: string): string => `<a href="${path}"></a>`

/** The copy lies in other markup than the original, beside much that is no text: only the words of both are nearly the same. */
const pages: Readonly<Record<string, string>> = {
  '/': `<title>seed</title>${link('/original')}${link('/other')}${link('/short')}`,
  '/original': `<title>one</title><p>${text.join(' ')}</p>${link('/copy')}`,
  '/copy': `<title>one</title><style>${words('rule', 200).join(' ')}</style><script>${words('call', 200).join(' ')}</script>`
    + `<!--${words('note', 200).join(' ')}--><table><tr><td data-x="${words('data', 200).join(' ')}">${copy.join('</td>\n<td>')}</td></tr></table>`
    + `<noscript>${words('plea', 200).join(' ')}</noscript><template>${words('mould', 200).join(' ')}</template>`
    + `${link('/behind-1')}${link('/behind-2')}`,
  '/other': `<title>two</title><p>${words('valley', 300).join(' ')}</p>`,
  '/short': `<title>three</title><p>${text.slice(0, 60).join(' ')}</p>`,
  '/behind-1': '<title>behind</title>',
  '/behind-2': '<title>behind</title>',
}

interface Crawled {
  readonly summary: Summary
  readonly problems: readonly string[]
  /** By path. */
  readonly records: ReadonlyMap<string, PageRecord>
}

async function crawled(options: CrawlOptionsGiven): Promise<Crawled> {
  const web = await openSmallWeb(['site.test'], ({ path }) => (pages[path] === undefined ? undefined : { html: pages[path] }))
  try {
    const crawler = await Crawler.open({ ...web.options, ...options })
    await crawler.add(`${web.origin('site.test')}/`)
    const summary = await crawler.start()
    await crawler.close()
    const store = await openStore(web.options.dir)
    const problems = await faultsOf(store)
    expect(store.counters().nearDuplicates).toBe(summary.nearDuplicates)
    await store.close()
    return { summary, problems, records: new Map((await readPages(web.options.dir)).map((record) => [new URL(record.url).pathname, record])) }
  } finally {
    await web.close()
  }
}

const paths = Object.keys(pages)
const withField = ({ records }: Crawled, field: 'simhash' | 'nearDuplicate'): string[] => [...records.values()].filter((record) => field in record).map(({ url }) => new URL(url).pathname).sort()

/** Bits in which the SimHashes of two pages differ. */
function distance({ records }: Crawled, one: string, other: string): number {
  const bits = [one, other].map((path) => BigInt(`0x${records.get(path)!.simhash!}`))
  return (bits[0]! ^ bits[1]!).toString(2).replaceAll('0', '').length
}

it('with simhash each page of enough words has one in its record, and a copy is marked, counted and read all the same', async () => {
  const found = await crawled({ simhash: true })
  expect([...found.records.keys()].sort()).toEqual([...paths].sort())
  expect(withField(found, 'simhash')).toEqual(['/copy', '/original', '/other'])
  for (const path of ['/copy', '/original', '/other']) expect(found.records.get(path)!.simhash).toMatch(/^[0-9a-f]{16}$/)
  expect(distance(found, '/original', '/copy')).toBeLessThanOrEqual(3)
  expect(distance(found, '/original', '/other')).toBeGreaterThan(10)
  expect(withField(found, 'nearDuplicate')).toEqual(['/copy'])
  expect(found.records.get('/copy')).toMatchObject({ outcome: 'ok', nearDuplicate: true, links: 2, newLinks: 2 })
  expect(found.summary).toMatchObject({ state: 'complete', discovered: 7, pending: 0, done: 7, pages: 7, nearDuplicates: 1, refused: { near_duplicate: 0 } })
  expect(found.problems).toEqual([])
})

it('with near-duplicates skip, which turns simhash on, the links of a copy are refused by that name, and what is behind it is not asked for', async () => {
  const found = await crawled({ nearDuplicates: 'skip' })
  expect([...found.records.keys()].sort()).toEqual(paths.filter((path) => !path.startsWith('/behind')).sort())
  expect(withField(found, 'simhash')).toEqual(['/copy', '/original', '/other'])
  expect(withField(found, 'nearDuplicate')).toEqual(['/copy'])
  expect(found.records.get('/copy')).toMatchObject({ outcome: 'ok', nearDuplicate: true, links: 2 })
  expect(found.records.get('/copy')!.newLinks ?? 0).toBe(0)
  expect(found.summary).toMatchObject({ state: 'complete', discovered: 5, pending: 0, done: 5, pages: 5, nearDuplicates: 1, refused: { near_duplicate: 2 } })
  expect(found.problems).toEqual([])
})

it('without either, no record has a SimHash and no page is compared', async () => {
  const found = await crawled({})
  expect([...withField(found, 'simhash'), ...withField(found, 'nearDuplicate')]).toEqual([])
  expect(found.summary).toMatchObject({ state: 'complete', discovered: 7, done: 7, nearDuplicates: 0, refused: { near_duplicate: 0 } })
})

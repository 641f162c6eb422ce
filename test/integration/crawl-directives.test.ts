/** What pages and headers ask for, in whole crawls over real sockets: each directive obeyed and not, counted by reason. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { directives, type Directive } from '../../engine/core/types.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { readPages, readWarcs } from '../support/crawl.ts'
import { openSmallWeb, type SmallAnswer } from '../support/small-web.ts'

const pages: Readonly<Record<string, SmallAnswer>> = {
  '/': { html: ['plain', 'meta-nofollow', 'header-nofollow', 'others', 'rel', 'meta-noarchive', 'header-noarchive', 'noindex', 'canonical', 'text'].map((path) => `<a href=/${path}>x</a>`).join('') },
  '/plain': { html: '<a href=/from-plain>x</a>' },
  '/meta-nofollow': { html: '<meta name=robots content="nofollow"><a href=/hidden-1>x</a><a href=/plain>x</a><a href=/hidden-2>x</a>' },
  '/header-nofollow': { html: '<a href=/hidden-3>x</a>', headers: { 'X-Robots-Tag': ['googlebot: noindex', 'nofollow'] } },
  '/others': { html: '<a href=/from-others>x</a>', headers: { 'X-Robots-Tag': 'googlebot: nofollow, noarchive' } },
  '/rel': { html: '<a rel=nofollow href=/ad>x</a><a rel="ugc me" href=/comment>x</a><a rel=sponsored href=/plain>x</a>' },
  '/meta-noarchive': { html: '<meta name=sluice content=noarchive>' },
  '/header-noarchive': { html: '<p>x', headers: { 'X-Robots-Tag': 'sluice: noarchive' } },
  '/noindex': { html: '<meta name=robots content=noindex>' },
  '/canonical': { html: '<link rel=canonical href=/own-name>' },
  '/text': { html: 'a text', headers: { 'Content-Type': 'text/plain', Link: '</text-name>; rel="canonical", </text-2>; rel=next' } },
}
const always = ['/', ...Object.keys(pages).slice(1), '/from-plain', '/from-others', '/text-2']

interface Crawled {
  /** Paths that were asked for beside those that always are. */
  readonly more: readonly string[]
  readonly summary: Summary
  readonly records: ReadonlyMap<string, PageRecord>
  readonly archived: ReadonlySet<string>
}

async function crawl(obey: readonly Directive[] | undefined): Promise<Crawled> {
  const web = await openSmallWeb(['site.test'], ({ path }) => pages[path] ?? { html: `<title>${path}</title>` })
  const { dir } = web.options
  const pathOf = (url: string): string => url.slice(web.origin('site.test').length)
  try {
    const extract = join(dir, 'extract.mjs')
    await writeFile(extract, 'export default ({ meta }) => ({ ...meta.robots })')
    const crawler = await Crawler.open({ ...web.options, extract, format: 'jsonl,warc', ...(obey && { obey }) })
    await crawler.add(`${web.origin('site.test')}/`)
    const summary = await crawler.start()
    await crawler.close()
    expect(summary).toMatchObject({ state: 'complete', failed: 0, pending: 0 })
    const asked = web.asked.map((name) => name.slice('site.test'.length))
    expect(always.filter((path) => !asked.includes(path))).toEqual([])
    const records = new Map((await readPages(dir)).map((record) => [pathOf(record.url), record]))
    const warcs = await readWarcs(dir)
    return { more: asked.filter((path) => !always.includes(path)).toSorted(), summary, records, archived: new Set(warcs.map(({ url }) => pathOf(url))) }
  } finally {
    await web.close()
  }
}

const hidden = ['/hidden-1', '/hidden-2', '/hidden-3']
const marked = ['/ad', '/comment']
const canonical = ['/own-name', '/text-name']

describe('a crawl', () => {
  it('that obeys nothing follows all links, archives all pages, and records what each asked for', async () => {
    const { more, summary, records, archived } = await crawl([])
    expect([more, summary.refused.nofollow]).toEqual([[...hidden, ...marked].toSorted(), 0])
    expect([...records.keys()].filter((path) => !archived.has(path))).toEqual([])
    expect(Object.fromEntries(['/meta-nofollow', '/header-nofollow', '/others', '/meta-noarchive', '/header-noarchive', '/noindex'].map((path) => [path, records.get(path)?.robots]))).toEqual({
      '/meta-nofollow': { nofollow: true }, '/header-nofollow': { nofollow: true }, '/others': undefined, '/meta-noarchive': { noarchive: true },
      '/header-noarchive': { noarchive: true }, '/noindex': { noindex: true },
    })
    expect([records.get('/rel')?.nofollowLinks, records.get('/plain')?.nofollowLinks]).toEqual([3, undefined])
    expect([records.get('/canonical')?.canonical, records.get('/text')?.canonical].map((url) => url?.replace(/.*:\d+/, ''))).toEqual(canonical)
    expect([records.get('/noindex')?.record, records.get('/header-noarchive')?.record]).toEqual([{ noindex: true }, { noarchive: true }])
  })

  it('by default leaves the links of nofollow pages and archives no noarchive page', async () => {
    const { more, summary, records, archived } = await crawl(undefined)
    expect([more, summary.refused.nofollow]).toEqual([marked, 3])
    expect([...records.keys()].filter((path) => !archived.has(path)).toSorted()).toEqual(['/header-noarchive', '/meta-noarchive'])
    expect(records.get('/meta-noarchive')).not.toHaveProperty('warc')
    expect(records.get('/noindex')?.record).toEqual({ noindex: true })
  })

  it('that obeys all follows neither marked links nor those of nofollow pages, takes canonical addresses, and extracts nothing of noindex pages', async () => {
    const { more, summary, records, archived } = await crawl(directives)
    expect([more, summary.refused.nofollow]).toEqual([canonical, 5])
    expect(archived.has('/noindex')).toBe(true)
    expect(records.get('/noindex')).not.toHaveProperty('record')
    expect(records.get('/plain')?.record).toEqual({})
  })
})

/** A whole web crawled twice, of which some pages changed in between and some are gone. */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { WARCParser } from 'warcio'
import { expect, test } from 'vitest'
import { pageIn } from '../../engine/demo/index.ts'
import { Crawler } from '../../engine/index.ts'
import { countsOf, notOnce, openBed, readPages } from '../support/crawl.ts'

async function warcTypes(dir: string): Promise<{ readonly kind: string; readonly refersTo: string; readonly key: string }[]> {
  const found = []
  for (const name of (await readdir(join(dir, 'warc'))).sort()) {
    for await (const record of new WARCParser(createReadStream(join(dir, 'warc', name)))) {
      await record.readFully(false)
      if (record.warcType === 'warcinfo') continue
      const [uri, profile] = [record.warcTargetURI!, record.warcHeader('WARC-Profile')]
      found.push({
        kind: `${record.warcType} ${record.httpHeaders?.statusCode} ${profile?.split('/').at(-1) ?? ''}`.trim(), key: `${uri} ${record.warcDate}`,
        refersTo: `${record.warcHeader('WARC-Refers-To-Target-URI')} ${record.warcHeader('WARC-Refers-To-Date')}`,
      })
    }
  }
  return found
}

test('a second crawl of a web finds what changed and what is gone, and is told of the rest that it is as it was', async () => {
  const bed = await openBed({ hosts: 3, pagesPerHost: 12, sizeScale: 0.1, seed: 7, changeShare: 0.3, goneShare: 0.2 })
  try {
    const crawler = await Crawler.open({ ...bed.options, threads: 1, format: 'jsonl,warc' })
    await crawler.add(bed.web.seeds)
    await crawler.start()
    await bed.web.setEdition(1)
    await crawler.requeue({ all: true })
    const summary = await crawler.start()
    await crawler.close()

    const pages = [...bed.site.allPages()]
    const now = pages.map((page) => pageIn(bed.site, page, 1))
    const gone = now.filter(({ fault }) => fault === 'gone').length
    const changed = now.filter(({ revision }) => revision !== undefined).length
    const same = pages.length - gone - changed
    // A web without some of each would prove nothing.
    expect(Math.min(gone, changed, same)).toBeGreaterThan(0)
    expect(summary).toMatchObject({ state: 'complete', done: pages.length, pages: 2 * pages.length, refetched: pages.length, notModified: same, unchanged: 0 })

    // Pages that robots.txt forbids were denied twice.
    const records = (await readPages(bed.dir)).filter(({ outcome }) => outcome !== 'robots_denied')
    expect(countsOf(records.map(({ outcome, status }) => `${outcome} ${status}`))).toEqual(new Map([[`ok 200`, pages.length + changed], ['http_error 410', gone], ['not_modified 304', same]]))
    for (const page of now) {
      const [first, second] = records.filter(({ url }) => url === page.url)
      expect(second!.hash === first!.hash, page.url).toBe(page.revision === undefined && page.fault === 'none')
    }

    const stored = await warcTypes(bed.dir)
    expect(countsOf(stored.map(({ kind }) => kind))).toEqual(new Map([['response 200', pages.length + changed], ['response 410', gone], ['revisit 304 server-not-modified', same]]))
    const keys = new Set(stored.filter(({ kind }) => kind.startsWith('response')).map(({ key }) => key))
    expect(stored.filter(({ kind, refersTo }) => kind.startsWith('revisit') && !keys.has(refersTo))).toEqual([])
    expect(notOnce(stored.map(({ key }) => key))).toEqual([])
  } finally {
    await bed.close()
  }
})

/** Pages that end the whole process: an extractor that sends the abort's signal to its own process stands for V8. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { script, sluice } from '../support/processes.ts'

describe('pages that end the process', () => {
  let bed: CrawlBed
  let extractor: string
  let poisons: readonly string[]

  /** Each writes a line to `deaths` when it is about to end the process, with the number of pages in hand. */
  const poison = (urls: readonly string[]): void => {
    poisons = urls
    writeFileSync(extractor, `
      const poisons = new Set(${JSON.stringify(urls)})
      export default (page) => {
        if (!poisons.has(page.url)) return
        process.kill(process.pid, 'SIGABRT')
        for (;;);
      }`)
  }

  beforeEach(async () => {
    bed = await openBed({ hosts: 4, pagesPerHost: 10, sizeScale: 0.05, tls: false })
    extractor = join(dirname(bed.dir), 'extractor.mjs')
  })
  afterEach(() => bed.close())

  const pages = (): string[] => [...bed.site.allPages()].map(({ url }) => url)

  const expectAllButPoison = async (): Promise<void> => {
    const records = (await readPages(bed.dir)).filter(({ outcome }) => outcome !== 'robots_denied')
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    expect(records.filter(({ code }) => code === 'page_killed').map(({ url }) => url).sort()).toEqual(poisons.toSorted())
    const answered = records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url).sort()
    expect(answered).toEqual(pages().filter((url) => !poisons.includes(url)).sort())
    expect((await readWarcs(bed.dir)).map(({ url }) => url).sort()).toEqual(answered)
    expect(existsSync(join(bed.dir, 'in-hand'))).toBe(false)
  }

  it('are set aside after two deaths alone, and the command line completes the crawl with exit 0', async () => {
    poison(pages().slice(5, 7))
    const command = sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'plain', '--extract', extractor, '--threads', '2'])
    expect(await command.ended).toEqual({ code: 0, signal: null })
    console.log(command.output.stderr, readdirSync(bed.dir))
    await expectAllButPoison()
  })

  it('are set aside by an embedded engine too, each opening going on where the last one died', async () => {
    poison(pages().slice(5, 6))
    const deaths: unknown[] = []
    for (;;) {
      const engine = script(`
        import { Crawler } from 'sluice'
        const crawler = await Crawler.open(${JSON.stringify({ ...bed.options, extract: extractor, format: ['jsonl', 'warc'] })})
        await crawler.add(${JSON.stringify(bed.web.seeds)})
        console.log((await crawler.start()).state)
        await crawler.close()`)
      const { code, signal } = await engine.ended
      if (code === 0) break
      deaths.push(signal)
    }
    // In company, and twice alone.
    expect(deaths).toEqual(['SIGABRT', 'SIGABRT', 'SIGABRT'])
    await expectAllButPoison()
  })
})

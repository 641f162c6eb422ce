/**
 * Pages that end the whole process, as V8 does at some large arrays whatever limit the worker has (nodejs/node #47224):
 * an extractor that sends its own process the signal of an abort.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Crawler, type BlockedOn } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { script, sluice } from '../support/processes.ts'
import { openSmallWeb } from '../support/small-web.ts'

interface PoisonBed {
  readonly bed: CrawlBed
  readonly extractor: string
  readonly poisons: readonly string[]
}

/** A web with so many pages that end the process when the extractor sees them. */
async function withPoison(count: number, body: (bed: PoisonBed) => Promise<void>): Promise<void> {
  const bed = await openBed({ hosts: 4, pagesPerHost: 10, sizeScale: 0.05, tls: false })
  const extractor = join(dirname(bed.dir), 'extractor.mjs')
  const poisons = pagesOf(bed).slice(5, 5 + count)
  writeFileSync(extractor, `
    const poisons = new Set(${JSON.stringify(poisons)})
    export default (page) => {
      if (!poisons.has(page.url)) return
      process.kill(process.pid, 'SIGABRT')
      for (;;);
    }`)
  try {
    await body({ bed, extractor, poisons })
  } finally {
    await bed.close()
  }
}

function pagesOf(bed: CrawlBed): string[] {
  return [...bed.site.allPages()].map(({ url }) => url)
}

async function expectAllButPoison({ bed, poisons }: PoisonBed): Promise<void> {
  const records = (await readPages(bed.dir)).filter(({ outcome }) => outcome !== 'robots_denied')
  expect(notOnce(records.map(({ url }) => url))).toEqual([])
  const killed = records.filter(({ code }) => code === 'page_killed')
  expect(killed.map(({ url }) => url).sort()).toEqual(poisons.toSorted())
  for (const record of killed) expect(record).toMatchObject({ outcome: 'failed', attempts: 0 })
  const answered = records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url).sort()
  expect(answered).toEqual(pagesOf(bed).filter((url) => !poisons.includes(url)).sort())
  expect((await readWarcs(bed.dir)).map(({ url }) => url).sort()).toEqual(answered)
  expect(existsSync(join(bed.dir, 'in-hand'))).toBe(false)
  // Alone twice, before that in company at most twice, and not at all for being set aside.
  const asked = (await bed.requests()).map(({ host, path }) => host.split(':', 1)[0] + path)
  for (const url of poisons) {
    const { hostname, pathname, search } = new URL(url)
    const times = asked.filter((one) => one === hostname + pathname + search).length
    expect(times).toBeGreaterThanOrEqual(3)
    expect(times).toBeLessThanOrEqual(4)
  }
}

/** Opens the crawl in one process after another, as an application does that is started again; answers what those died of that did not complete. */
async function deathsOf({ bed, extractor }: PoisonBed): Promise<unknown[]> {
  const deaths: unknown[] = []
  for (;;) {
    const engine = script(`
      import { Crawler } from 'sluice'
      const crawler = await Crawler.open(${JSON.stringify({ ...bed.options, threads: 2, extract: extractor, format: ['jsonl', 'warc'] })})
      await crawler.add(${JSON.stringify(bed.web.seeds)})
      await crawler.start()
      await crawler.close()`)
    const { code, signal } = await engine.ended
    if (code === 0) return deaths
    deaths.push(signal)
    if (deaths.length > 10) return deaths
  }
}

describe.concurrent('pages that end the process', () => {
  it('are set aside after two deaths alone, and the command line completes the crawl with exit 0', () => withPoison(1, async (poison) => {
    const { bed, extractor } = poison
    const command = sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'json', '--extract', extractor, '--threads', '2'])
    expect(await command.ended).toEqual({ code: 0, signal: null })
    expect(command.output.stderr.match(/engine_died: the engine died of SIGABRT/g)).toHaveLength(3)
    expect(JSON.parse(command.output.stdout.trim().split('\n').at(-1)!)).toMatchObject({ event: 'summary', failures: { page_killed: 1 } })
    await expectAllButPoison(poison)
  }))

  it('are set aside by an embedded engine too, each opening going on where the last one died', () => withPoison(2, async (poison) => {
    const deaths = await deathsOf(poison)
    // Twice alone each, and in company once, or once each.
    expect(deaths.length).toBeGreaterThanOrEqual(5)
    expect(deaths.length).toBeLessThanOrEqual(6)
    expect(new Set(deaths)).toEqual(new Set(['SIGABRT']))
    await expectAllButPoison(poison)
  }))

  it('are asked for first at the next opening, with nothing beside them, and the rest goes on when they were read', async () => {
    const links = Array.from({ length: 30 }, (_, index) => `<a href="/${index}">${index}</a>`).join('')
    const web = await openSmallWeb(['a.test', 'b.test'], ({ path, origin }) => ({ html: path === '/' ? `${links}<a href="${origin.replace('a.test', 'b.test')}/">b</a>` : path }))
    const extractor = join(web.options.dir, 'extractor.mjs')
    writeFileSync(extractor, "export default (page) => { if (page.url.endsWith('/20')) { process.kill(process.pid, 'SIGABRT'); for (;;); } }")
    try {
      const engine = script(`
        import { Crawler } from 'sluice'
        const crawler = await Crawler.open(${JSON.stringify({ ...web.options, concurrency: { start: 1, floor: 1, ceiling: 1 }, extract: extractor })})
        await crawler.add(['${web.origin('a.test')}/'])
        await crawler.start()`)
      expect((await engine.ended).signal).toBe('SIGABRT')
      const before = web.asked.length
      writeFileSync(extractor, 'export default () => 1')
      const crawler = await Crawler.open({ ...web.options, extract: extractor })
      const reasons: BlockedOn[] = []
      const asked: number[] = []
      crawler.on('pressure', (reason) => {
        reasons.push(reason)
        asked.push(web.asked.length - before)
      })
      expect((await crawler.start()).state).toBe('complete')
      await crawler.close()
      expect(web.asked[before]).toBe('a.test/20')
      expect(reasons[0]).toBe('suspects')
      // When the next reason came, the suspect alone had been asked for.
      expect(asked[1]).toBe(1)
      expect(notOnce((await readPages(web.options.dir)).map(({ url }) => url))).toEqual([])
      expect(existsSync(join(web.options.dir, 'in-hand'))).toBe(false)
    } finally {
      await web.close()
    }
  })
})

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { countsOf, notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { childrenOf, isAlive, script, sluice, until } from '../support/processes.ts'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Requests that can be under way, or in slots and not stored, when a process dies. */
const IN_FLIGHT_MAX = 128 + 512 + 1_024

describe('a crawl that is killed', () => {
  let bed: CrawlBed

  beforeEach(async () => {
    bed = await openBed({ hosts: 8, pagesPerHost: 50, sizeScale: 0.2, latencyMs: 5 })
  })
  afterEach(() => bed.close())

  const crawl = (...more: string[]): ReturnType<typeof sluice> =>
    sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'none', ...more])
  const pagesWritten = async (): Promise<number> => (existsSync(bed.dir) ? (await readPages(bed.dir).catch(() => [])).length : 0)

  it('with SIGKILL goes on with the same command, and the files hold each page exactly once', async () => {
    const first = crawl()
    await until(async () => (await pagesWritten()) > 60)
    const children = childrenOf(first.pid)
    expect(children).toHaveLength(1)
    first.process.kill('SIGKILL')
    await first.ended
    await until(() => children.every((pid) => !isAlive(pid)))

    const second = crawl()
    expect(await second.ended).toEqual({ code: 0, signal: null })
    const records = await readPages(bed.dir)
    const pages = [...bed.site.allPages()].map(({ url }) => url)
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    const answered = records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url)
    expect(answered.sort()).toEqual(pages.sort())
    expect((await readWarcs(bed.dir)).map(({ url }) => url).sort()).toEqual(answered)

    const counts = countsOf((await bed.requests()).filter(({ path }) => path !== '/robots.txt').map(({ host, path }) => `${host}${path}`))
    expect([...counts].filter(([, count]) => count > 2)).toEqual([])
    expect([...counts].filter(([, count]) => count === 2).length).toBeLessThanOrEqual(IN_FLIGHT_MAX)
  })

  it('in its engine process alone is restarted by the command line, and completes', async () => {
    const command = crawl()
    await until(async () => (await pagesWritten()) > 60)
    const [engine] = childrenOf(command.pid)
    process.kill(engine!, 'SIGKILL')
    expect(await command.ended).toEqual({ code: 0, signal: null })
    const records = await readPages(bed.dir)
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    expect(records.filter(({ outcome }) => outcome === 'ok')).toHaveLength(bed.web.pages)
  })

  it('refuses a second process on its directory with exit 4 while it runs', async () => {
    const first = crawl('--delay', '1s')
    await until(async () => (await pagesWritten()) > 0)
    const second = crawl()
    expect((await second.ended).code).toBe(4)
    expect(second.output.stderr).toMatch(/^sluice: store_in_use: .+\n$/)
    first.process.kill('SIGINT')
    expect((await first.ended).code).toBe(3)
  })

  it('with SIGINT stores what lies in slots, ends with exit 3 and continues later', async () => {
    const first = crawl()
    await until(async () => (await pagesWritten()) > 60)
    first.process.kill('SIGINT')
    expect(await first.ended).toEqual({ code: 3, signal: null })
    const second = crawl()
    expect((await second.ended).code).toBe(0)
    const records = await readPages(bed.dir)
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    expect(records.filter(({ outcome }) => outcome === 'ok')).toHaveLength(bed.web.pages)
  })

  it('with SIGINT while workers hang ends by itself all the same: the summary is what is stored, and the lock is given back', async () => {
    const extractor = join(dirname(bed.dir), 'hangs.mjs')
    writeFileSync(extractor, 'let pages = 0\nexport default () => { for (pages += 1; pages > 20;); return 1 }\n')
    const command = crawl('--extract', extractor, '--threads', '1', '--progress', 'json')
    await until(async () => (await pagesWritten()) >= 20)
    command.process.kill('SIGINT')
    expect(await command.ended).toEqual({ code: 3, signal: null })
    const records = await readPages(bed.dir)
    const summary = JSON.parse(command.output.stdout.trimEnd().split('\n').at(-1)!) as Record<string, unknown>
    expect(summary).toMatchObject({ event: 'summary', state: 'stopped', pages: records.filter(({ outcome }) => outcome === 'ok').length })
    expect(existsSync(join(bed.dir, 'control.sock'))).toBe(false)
    expect((await readWarcs(bed.dir)).map(({ url }) => url)).not.toEqual([])
  })

  it('while its consumer holds pages hands out again those that were not finished, and only those', async () => {
    const consumer = (stopAfter: number): string => `
      import { Crawler } from 'sluice'
      const crawler = await Crawler.open(${JSON.stringify(bed.options)})
      await crawler.add(${JSON.stringify(bed.web.seeds)})
      let seen = 0
      for await (const page of crawler.run()) {
        console.log('got ' + page.url)
        seen += 1
        while (seen > ${stopAfter}) {
          // What was acknowledged is stored within the age of a batch; the page in hand never is.
          if (crawler.stats().pages === ${stopAfter}) console.log('all stored')
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
      await crawler.close()`
    const first = script(consumer(80))
    const got = (output: string): string[] => output.split('\n').filter((line) => line.startsWith('got ')).map((line) => line.slice(4))
    await first.saw(/all stored/)
    expect(got(first.output.stdout)).toHaveLength(81)
    first.process.kill('SIGKILL')
    await first.ended
    const second = script(consumer(1e9))
    expect((await second.ended).code).toBe(0)
    const [before, after] = [got(first.output.stdout), got(second.output.stdout)]
    expect(after.filter((url) => before.slice(0, 80).includes(url))).toEqual([])
    expect(after).toContain(before[80])
    expect(before.length - 1 + after.length).toBe(bed.web.pages)
  })
})

describe('a crawler in a script', () => {
  it('that is opened and closed leaves no handle: the process ends', async () => {
    const bed = await openBed({ hosts: 1, pagesPerHost: 1, sizeScale: 0.05 })
    try {
      const process = script(`
        import { Crawler } from 'sluice'
        const crawler = await Crawler.open(${JSON.stringify(bed.options)})
        await crawler.close()
        await crawler.close()`)
      expect(await process.ended).toEqual({ code: 0, signal: null })
      const used = script(`
        import { Crawler } from 'sluice'
        const crawler = await Crawler.open(${JSON.stringify(bed.options)})
        await crawler.add(${JSON.stringify(bed.web.seeds)})
        console.log((await crawler.start()).state)
        await crawler.close()`)
      expect(await used.ended).toEqual({ code: 0, signal: null })
      expect(used.output.stdout).toBe('complete\n')
    } finally {
      await bed.close()
    }
  })

  it('that is closed in a run whose store cannot be written leaves no handle either, and tells whoever started the run', async () => {
    const bed = await openBed({ hosts: 4, pagesPerHost: 100, sizeScale: 0.3 })
    try {
      const process = script(`
        import { rmSync } from 'node:fs'
        import { Crawler } from 'sluice'
        const crawler = await Crawler.open(${JSON.stringify(bed.options)})
        await crawler.add(${JSON.stringify(bed.web.seeds)})
        const run = crawler.start().catch((error) => console.log(error.code))
        // What lies in slots then is stored after the directory is gone.
        const slots = () => crawler.stats().bounds.find(({ name }) => name === 'slots').used
        while (crawler.stats().pages < 40 || slots() < 2) await new Promise((resolve) => { setTimeout(resolve, 1) })
        rmSync(${JSON.stringify(bed.dir)}, { recursive: true })
        await crawler.close()
        await run`)
      expect(await process.ended).toEqual({ code: 0, signal: null })
      expect(process.output.stdout).toBe('disk_failed\n')
    } finally {
      await bed.close()
    }
  })

  it('does nothing at import', async () => {
    const process = script(`import 'sluice'; console.log(process.getActiveResourcesInfo().filter((name) => /Timeout|Worker|Message|TCP|TLS|Signal/.test(name)))`)
    expect((await process.ended).code).toBe(0)
    expect(process.output.stdout).toBe('[]\n')
  })
})

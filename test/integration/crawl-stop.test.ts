import { writeFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs } from '../support/crawl.ts'
import { until } from '../support/processes.ts'

it('a stop does not wait for pages that no worker has taken: they come again, each once', async () => {
  const bed = await openBed({ hosts: 4, pagesPerHost: 40, sizeScale: 0.2, tls: false })
  const scratch = await mkdtemp(join(tmpdir(), 'sluice-stop-'))
  try {
    const slow = join(scratch, 'slow.mjs')
    await writeFile(slow, 'export default async (page) => { if (new URL(page.url).pathname !== "/") await new Promise((resolve) => setTimeout(resolve, 150)) }\n')
    const crawler = await Crawler.open({ ...bed.options, format: ['jsonl', 'warc'], extract: slow, threads: 1 })
    await crawler.add(bed.web.seeds)
    const run = crawler.start()
    const slots = (): number => crawler.stats().bounds.find(({ name }) => name === 'slots')!.used
    await until(() => slots() > 60)
    const inSlots = slots()
    const before = crawler.stats().pages
    await crawler.stop()
    const summary = await run
    expect(summary.state).toBe('stopped')
    // A worker that takes 150 ms a page cannot have read them all in the second that a stop lasts.
    expect(summary.pages - before).toBeLessThan(inSlots / 2)
    expect(slots()).toBe(0)
    await crawler.close()

    await writeFile(slow, 'export default () => undefined\n')
    const again = await Crawler.open({ ...bed.options, format: ['jsonl', 'warc'] })
    expect(await again.start()).toMatchObject({ state: 'complete', pages: bed.web.pages })
    await again.close()
    expect(notOnce((await readPages(bed.dir)).map(({ url }) => url))).toEqual([])
    expect((await readWarcs(bed.dir))).toHaveLength(bed.web.pages)
  } finally {
    await bed.close()
    await rm(scratch, { recursive: true, force: true })
  }
})

it('a stop of a run that ends at its time limit does not wait for pages that no worker has taken either', async () => {
  const bed = await openBed({ hosts: 4, pagesPerHost: 40, sizeScale: 0.2, tls: false })
  const scratch = await mkdtemp(join(tmpdir(), 'sluice-stop-'))
  try {
    const slow = join(scratch, 'slow.mjs')
    await writeFile(slow, 'export default async (page) => { if (new URL(page.url).pathname !== "/") await new Promise((resolve) => setTimeout(resolve, 150)) }\n')
    const crawler = await Crawler.open({ ...bed.options, extract: slow, threads: 1 })
    await crawler.add(bed.web.seeds)
    const run = crawler.start({ maxTimeMs: 1_500 })
    const limitAtMs = crawler.stats().elapsedMs + 1_500
    const slots = (): number => crawler.stats().bounds.find(({ name }) => name === 'slots')!.used
    await until(() => slots() > 40 && crawler.stats().elapsedMs > limitAtMs + 100)
    const [inSlots, before] = [slots(), crawler.stats().pages]
    await crawler.stop()
    const summary = await run
    expect(summary.state).toBe('limit')
    expect(summary.pages - before).toBeLessThan(inSlots / 2)
    await crawler.close()
  } finally {
    await bed.close()
    await rm(scratch, { recursive: true, force: true })
  }
})

it('a page whose worker dies late in a stop comes again, and is not tried to its end', async () => {
  const bed = await openBed({ hosts: 4, pagesPerHost: 40, sizeScale: 0.2, tls: false })
  const scratch = await mkdtemp(join(tmpdir(), 'sluice-stop-'))
  try {
    const [dying, die] = [join(scratch, 'dying.mjs'), join(scratch, 'die')]
    await writeFile(dying, `import { existsSync } from 'node:fs'
      export default async (page) => {
        if (new URL(page.url).pathname === '/') return
        while (!existsSync(${JSON.stringify(die)})) await new Promise((resolve) => setTimeout(resolve, 10))
        process.exit(1)
      }\n`)
    const crawler = await Crawler.open({ ...bed.options, extract: dying, threads: 1 })
    await crawler.add(bed.web.seeds)
    const run = crawler.start()
    const slots = (): number => crawler.stats().bounds.find(({ name }) => name === 'slots')!.used
    await until(() => slots() > 5)
    const stopped = crawler.stop()
    await until(() => slots() === 1)
    await writeFile(die, '')
    await stopped
    expect(await run).toMatchObject({ state: 'stopped', failed: 0 })
    expect(crawler.stats().workersLost).toBe(1)
    await crawler.close()
  } finally {
    await bed.close()
    await rm(scratch, { recursive: true, force: true })
  }
})

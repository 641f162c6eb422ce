/** Which URLs are one, by the options of a crawl. Nothing is fetched. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { Crawler } from '../../engine/index.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'

let dir: string
beforeEach(() => { dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-dedupe-')) })
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

/** Opens the crawl with the options, adds the seeds one after the other, and answers which were new and which options changed. */
async function added(options: CrawlOptionsGiven, ...seeds: string[]): Promise<{ readonly news: readonly number[]; readonly changed: readonly string[] }> {
  const crawler = await Crawler.open({ dir, threads: 1, ...options })
  try {
    const news: number[] = []
    for (const seed of seeds) news.push((await crawler.add(seed)).added)
    return { news, changed: crawler.changedOptions }
  } finally {
    await crawler.close()
  }
}

const seeds = ['http://www.a.test/x/?utm_source=1', 'http://www.a.test/x/', 'http://a.test/x/', 'http://a.test/x']

it('seeds are one by the rules that were chosen, and by those of the store on continuing', async () => {
  expect(await added({ dedupe: ['tracking', 'www'] }, ...seeds)).toEqual({ news: [1, 0, 0, 1], changed: [] })
  expect(await added({}, ...seeds, 'http://a.test/y?b', 'http://www.a.test/y?b&gclid=1')).toEqual({ news: [0, 0, 0, 0, 1, 0], changed: [] })
})

it('a line says that the rules have changed, and with other keys a URL comes once more', async () => {
  expect(await added({}, ...seeds)).toEqual({ news: [1, 1, 1, 1], changed: [] })
  expect(await added({ dedupe: 'tracking,slash' }, 'http://www.a.test/x/', 'http://www.a.test/x')).toEqual({ news: [1, 0], changed: ['dedupe: [] -> ["tracking","slash"]'] })
  expect((await added({ dedupe: [] })).changed).toEqual(['dedupe: ["tracking","slash"] -> []'])
})

it('of an option that is younger than the crawl nothing is said', async () => {
  await added({}, 'http://a.test/')
  const store = await openStore(dir)
  const { dedupe: _dedupe, ...older } = store.options()
  await store.saveOptions(older)
  await store.close()
  expect(await added({}, 'http://a.test/')).toEqual({ news: [0], changed: [] })
})

/** The whole hostile table in one crawl beside healthy hosts: each host ends as its row says, and takes nothing from the others. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { limits } from '../../engine/core/limits.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { openBed, readPages, type CrawlBed } from '../support/crawl.ts'
import { hostileLinks, okPagesOf, rowsAmiss } from '../support/hostile-crawl.ts'
import { hostileRows } from '../support/hostile-rows.ts'
import { startHostileServer, type HostileServer } from '../support/hostile-server.ts'

// Rests and waits are as they are, only shorter: a test has seconds.
vi.mock('../../engine/core/limits.ts', async (importOriginal) => {
  const original = await importOriginal<{ limits: typeof limits }>()
  return { ...original, limits: { ...original.limits, backoffMsMin: 20, backoffMsMax: 50, hostRestMsMax: 50, robotsRetryMsMin: 20, networkHoldMsMax: 200, networkSilenceMsMax: 500 } }
})

const rejections: unknown[] = []
let bed: CrawlBed
let server: HostileServer
let summary: Summary
let records: readonly PageRecord[]
let openAtEnd = -1

beforeAll(async () => {
  process.on('unhandledRejection', (reason) => rejections.push(reason))
  ;[bed, server] = await Promise.all([openBed({ hosts: 5, pagesPerHost: 12, seed: 7 }), startHostileServer()])
  const ca = join(bed.dir, '../both.pem')
  await writeFile(ca, `${bed.web.caPem}\n${await readFile(server.caFile, 'utf8')}`)
  const crawler = await Crawler.open({
    ...bed.options, ca, threads: 1, exclude: hostileLinks, timeoutMs: 4_000, retries: 0, hostPatienceMs: 0,
    resolve: { ...bed.options.resolve as object, ...server.resolve },
  })
  await crawler.add([...bed.web.seeds, ...hostileRows.map((row) => server.url(row))])
  summary = await crawler.start()
  await crawler.close()
  await server.drained()
  openAtEnd = server.connectionsOpen
  records = await readPages(bed.dir)
})
afterAll(async () => {
  await Promise.all([bed.close(), server.close()])
})

test('every host of the table ends as its row says', () => {
  expect(rowsAmiss(records)).toEqual([])
})

test('every healthy page is fetched, once', () => {
  const pages = okPagesOf(records, bed.web.resolve)
  expect(new Set(pages.map(({ url }) => url)).size).toBe(bed.web.pages)
  expect(pages).toHaveLength(bed.web.pages)
})

test('the crawl is complete, no promise was rejected that nobody caught, and no socket is left', () => {
  expect(summary).toMatchObject({ state: 'complete', pending: 0 })
  expect(rejections).toEqual([])
  expect(openAtEnd).toBe(0)
})

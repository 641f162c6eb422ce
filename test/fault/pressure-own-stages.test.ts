/**
 * Bad afternoons of our own stages, on a clock that stands still until everything has happened that can: a slow parser, a
 * slow and a full store, a slow consumer, dying workers. Each is played a second time without the control that
 * should save it, and must then fail its criterion. Figures are of virtual time.
 */
import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { hostNames, urlsOf, VirtualCrawl, type VirtualCrawlOptions } from '../support/virtual-crawl.ts'

const hosts = hostNames(20)
/** Twenty hosts that give 20 pages a second each. */
const steady = { behaviour: () => ({ status: 200, latencyMs: 100 }), options: { concurrency: '2:1:2' }, pool: { slots: 64, workers: 2, serviceMs: () => 3 } } as const
const FAULT = { fromMs: 5_000, toMs: 15_000 }

function during(nowMs: number): boolean {
  return nowMs >= FAULT.fromMs && nowMs < FAULT.toMs
}

function crawlOf(options: Partial<VirtualCrawlOptions>, pagesEach = 400): VirtualCrawl {
  const crawl = new VirtualCrawl({ seed: 5, ...steady, ...options })
  crawl.store.add(urlsOf(hosts, pagesEach))
  return crawl
}

/** Pages a second before the fault, and as a share of that during it and in the second after it. */
function throughput(crawl: VirtualCrawl): { before: number; during: number; after: number } {
  const before = crawl.pagesPerSecond(1_000, FAULT.fromMs)
  return { before, during: crawl.pagesPerSecond(FAULT.fromMs, FAULT.toMs) / before, after: crawl.pagesPerSecond(FAULT.toMs + 1_000, FAULT.toMs + 2_000) / before }
}

test('a parser that is ten times slower slows all fetching, holds no more pages than there are slots, and is caught up with in a second', async () => {
  const slow = (without?: 'page_ring'): VirtualCrawl => crawlOf({ pool: { ...steady.pool, serviceMs: (_, nowMs) => (during(nowMs) ? 30 : 3) }, ...(without && { without }) })
  const crawl = await slow().play()
  crawl.expectWhole()
  const speed = throughput(crawl)
  expect(speed.before).toBeGreaterThan(390)
  expect(crawl.blockedShares(FAULT.fromMs + 1_000, FAULT.toMs).page_ring).toBeGreaterThan(0.8)
  expect(speed.after).toBeGreaterThan(0.9)
  expect(crawl.pool.bytesMost).toBeLessThanOrEqual(64 * 20_000)

  const uncontrolled = await slow('page_ring').playUntil(FAULT.toMs)
  expect(uncontrolled.pool.bytesMost, 'without a bound of slots').toBeGreaterThan(10 * 64 * 20_000)
})

test('a store that stalls for 10 s holds all fetching with a bounded queue of outcomes, and is caught up with in a second', async () => {
  // Whatever commit begins before the end of the fault ends with it.
  const stalled = (without?: 'commit_queue'): VirtualCrawl => crawlOf({ store: { commitMs: (_, nowMs) => (during(nowMs) ? FAULT.toMs - nowMs : 2) }, ...(without && { without }) })
  const crawl = await stalled().play()
  crawl.expectWhole()
  const speed = throughput(crawl)
  expect(crawl.blockedShares(FAULT.fromMs + 2_000, FAULT.toMs).commit).toBeGreaterThan(0.95)
  expect(crawl.most.commitQueue).toBeLessThanOrEqual(limits.commitQueueUrlsMax)
  expect(speed.after).toBeGreaterThan(0.9)

  const uncontrolled = await stalled('commit_queue').playUntil(FAULT.toMs)
  expect(uncontrolled.most.commitQueue, 'without a bound of the queue').toBeGreaterThan(2 * limits.commitQueueUrlsMax)
})

test('a disk that fills pauses the crawl, loses nothing, and the crawl goes on within two seconds of there being room', async () => {
  const filling = (without?: 'disk'): VirtualCrawl => crawlOf({
    freeBytes: (nowMs) => (during(nowMs) ? 0 : 50 * 1024 ** 3), store: { isFull: during }, ...(without && { without }),
  })
  const crawl = await filling().play()
  crawl.expectWhole()
  const asked = ({ web }: VirtualCrawl): number => web.log.filter(({ startMs }) => during(startMs)).length
  expect(crawl.blockedShares(FAULT.fromMs + 1_000, FAULT.toMs).disk).toBeGreaterThan(0.99)
  // Until the first commit after the last good one has failed.
  expect(asked(crawl), 'requests while the disk is full').toBeLessThan(100)
  expect(throughput(crawl).after).toBeGreaterThan(0.9)

  const uncontrolled = await filling('disk').playUntil(FAULT.toMs)
  expect(asked(uncontrolled), 'requests if nobody looked at the disk').toBeGreaterThan(250)
})

test('a consumer that stops for 10 s is waited for with at most 256 pages before it, and the crawl is at full speed within a second', async () => {
  const stopped = (without?: 'consumer_window'): VirtualCrawl => crawlOf({ consumeMs: (nowMs) => (during(nowMs) ? FAULT.toMs - nowMs : 1), ...(without && { without }) })
  const crawl = await stopped().play()
  crawl.expectWhole()
  expect(crawl.blockedShares(FAULT.fromMs + 2_000, FAULT.toMs).consumer).toBeGreaterThan(0.95)
  expect(crawl.most.window).toBeLessThanOrEqual(limits.pagesUnackedMax)
  expect(throughput(crawl).after).toBeGreaterThan(0.9)

  const uncontrolled = await stopped('consumer_window').playUntil(FAULT.toMs)
  expect(uncontrolled.most.window, 'without a window').toBeGreaterThan(10 * limits.pagesUnackedMax)
})

test('a worker that dies every second costs no page, and the crawl keeps its speed', async () => {
  const deadly = async (triesMax?: number): Promise<VirtualCrawl> => {
    const crawl = crawlOf({ pool: { ...steady.pool, ...(triesMax !== undefined && { triesMax }) } })
    for (let atMs = FAULT.fromMs; atMs < FAULT.toMs; atMs += 1_000) crawl.at(atMs + 1, () => crawl.pool.killWorker())
    return crawl.play()
  }
  const crawl = await deadly()
  crawl.expectWhole()
  expect([crawl.pool.stats().workersLost, crawl.store.counters().failed]).toEqual([10, 0])
  expect(throughput(crawl).during).toBeGreaterThan(0.95)

  const uncontrolled = await deadly(1)
  expect(uncontrolled.store.counters().failed, 'without a second try of the page').toBeGreaterThan(0)
})

/**
 * Bad afternoons of memory: sites that turn to large pages, and a budget that thousands of them would overrun. Each is
 * played a second time without the control that should save it, and must then fail its criterion. Figures are of virtual
 * time; the memory of the process is what bodies in flight, slots and the rest are known to take.
 */
import { expect, test } from 'vitest'
import { hostNames, urlsOf, VirtualCrawl } from '../support/virtual-crawl.ts'

const MB = 1024 ** 2

test('with 256 MB and 2,000 large pages that could be in flight, the process stays below its budget and loses nothing', async () => {
  const hosts = hostNames(500)
  const play = async (without?: 'body_bytes'): Promise<{ crawl: VirtualCrawl; mostMb: number }> => {
    let most = 0
    const held = (): number => {
      const bytes = 90 * MB + crawl.budget.reservedBytes + crawl.pool.bytes
      most = Math.max(most, bytes)
      return bytes
    }
    const crawl: VirtualCrawl = new VirtualCrawl({
      seed: 17, behaviour: () => ({ status: 200, latencyMs: 200, bytes: MB, bodyMs: 800 }), heldBytes: held, ...(without && { without }),
      options: { memoryBytes: '256MB', maxBodyBytes: '1MB', concurrency: '4:4:4' }, pool: { workers: 4, serviceMs: () => 8 },
    })
    crawl.store.add(urlsOf(hosts, 8))
    await crawl.playUntil(20_000)
    return { crawl, mostMb: most / MB }
  }
  const { crawl, mostMb } = await play()
  expect(mostMb).toBeLessThan(256)
  expect(crawl.blockedShares(1_000, 20_000).body_bytes).toBeGreaterThan(0.8)
  await crawl.play()
  crawl.expectWhole()
  expect((await play('body_bytes')).mostMb, 'if bodies in flight had no bound').toBeGreaterThan(256)
})

test('sites that turn to 2 MB pages are read within their share of the bytes in flight, and no other site is slowed by more than 5 %', async () => {
  const hosts = hostNames(20)
  const large = new Set(hosts.slice(0, 4))
  const fault = { fromMs: 5_000, toMs: 15_000 }
  const play = async (without?: 'body_share'): Promise<VirtualCrawl> => {
    const crawl = new VirtualCrawl({
      seed: 19, options: { delayMs: 50, concurrency: '16:1:32', maxBodyBytes: '2MB', memoryBytes: '4GB' }, pool: { workers: 2, serviceMs: () => 2 }, ...(without && { without }),
      behaviour: ({ host, nowMs }) => (large.has(host) && nowMs >= fault.fromMs && nowMs < fault.toMs ? { status: 200, latencyMs: 100, bytes: 2 * MB, bodyMs: 2_000 } : { status: 200, latencyMs: 100 }),
    })
    crawl.store.add(urlsOf(hosts, 400))
    return crawl.play()
  }
  const share = (crawl: VirtualCrawl): number => {
    const others = (host: string): boolean => !large.has(host)
    return crawl.pagesPerSecond(fault.fromMs, fault.toMs, others) / crawl.pagesPerSecond(1_000, fault.fromMs, others)
  }
  const crawl = await play()
  crawl.expectWhole()
  expect(share(crawl)).toBeGreaterThan(0.95)
  expect(share(await play('body_share')), 'if a site could take them all').toBeLessThan(0.5)
})

/**
 * Bad afternoons of what lies between us and the hosts, on a clock that stands still until everything has happened that
 * can. Each is played a second time without the control that should save it, and must then fail its criterion.
 */
import { expect, test } from 'vitest'
import { hostNames, urlsOf, VirtualCrawl } from '../support/virtual-crawl.ts'

test('a network that is away for a minute charges no host and no URL, asks little meanwhile, and is at full speed within 40 s of its return', async () => {
  const hosts = hostNames(30)
  const away = { fromMs: 5_000, toMs: 65_000 }
  let tries = 0
  const play = async (without?: 'network_watch'): Promise<VirtualCrawl> => {
    tries = 0
    const crawl = new VirtualCrawl({
      seed: 11, options: { concurrency: '2:1:2', connections: 64 }, pool: { workers: 4, serviceMs: () => 3 }, ...(without && { without }),
      behaviour: ({ nowMs }) => {
        if (nowMs < away.fromMs || nowMs >= away.toMs) return { status: 200, latencyMs: 100 }
        tries += 1
        return { refuses: 'connect_failed', afterMs: 20 }
      },
    })
    crawl.store.add(urlsOf(hosts, 400))
    return crawl.play()
  }
  const recovery = (crawl: VirtualCrawl): number => [...Array(120).keys()].find((s) => crawl.pagesPerSecond(away.toMs + s * 1_000, away.toMs + s * 1_000 + 1_000) >= 0.9 * 600) ?? Number.POSITIVE_INFINITY
  const crawl = await play()
  crawl.expectWhole()
  expect(crawl.store.counters()).toMatchObject({ failed: 0, retries: 0 })
  expect(crawl.blockedShares(away.fromMs + 1_000, away.toMs).network_down).toBeGreaterThan(0.95)
  expect(tries, 'connections tried while there is none').toBeLessThan(100)
  expect(recovery(crawl)).toBeLessThanOrEqual(40)

  expect(recovery(await play('network_watch')), 'if each host were charged').toBeGreaterThan(40)
})

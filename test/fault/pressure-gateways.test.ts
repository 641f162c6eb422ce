/**
 * Bad afternoons of gateways, on a clock that stands still until everything has happened that can: one at its ceiling slows
 * itself and no host, one out of quota pauses what goes through it and nothing else. Figures are of virtual time.
 */
import { expect, test } from 'vitest'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { hostNames, urlsOf, VirtualCrawl } from '../support/virtual-crawl.ts'
import type { Behaviour } from '../support/virtual-web.ts'

const [through, direct] = [hostNames(10, 'via'), hostNames(10, 'own')]
const good = { status: 200, latencyMs: 100 } as const
const isThrough = (host: string): boolean => host.startsWith('via')

/** Ten hosts behind a scraping API, and ten that are fetched themselves, 20 pages a second each. */
function crawlOf(behaviour: Behaviour, concurrency: string, pages: number): VirtualCrawl {
  const gateway = { gateways: [{ name: 'api', template: 'https://api.test/?url={url}', hosts: through, concurrency }] }
  const crawl = new VirtualCrawl({
    seed: 13, behaviour, pool: { workers: 4, serviceMs: () => 3 }, options: { concurrency: '2:1:2', connections: 64, gateway: gateway as unknown as CrawlOptionsGiven['gateway'] },
  })
  crawl.store.add(urlsOf([...through, ...direct], pages))
  return crawl
}

test('a gateway that answers 429 above eight at once is given about eight, charges no host and no URL, and costs other hosts nothing', async () => {
  const ceiling = 8
  const play = (concurrency: string): Promise<VirtualCrawl> => crawlOf(({ host, atGateway }) => (isThrough(host) && atGateway > ceiling ? { status: 429, latencyMs: 10, bytes: 100 } : good), concurrency, 300).play()
  const refusedShare = (crawl: VirtualCrawl): number => {
    const settled = crawl.web.log.filter(({ host, startMs }) => isThrough(host) && startMs >= 10_000)
    return settled.filter(({ status }) => status === 429).length / settled.length
  }
  const crawl = await play('4:1:32')
  crawl.expectWhole()
  expect(crawl.store.counters()).toMatchObject({ failed: 0, retries: 0 })
  expect(refusedShare(crawl)).toBeLessThan(0.02)
  expect(crawl.pagesPerSecond(10_000, 15_000, isThrough), 'of 80 a second').toBeGreaterThan(64)
  expect(crawl.pagesPerSecond(1_000, 14_000, (host) => !isThrough(host)), 'of 200 a second').toBeGreaterThan(190)

  const uncontrolled = await play('32:32:32')
  expect(refusedShare(uncontrolled), 'if it did not slow down').toBeGreaterThan(0.1)
})

test('what a gateway says of itself is no answer of a host behind it, which stays a stranger', async () => {
  const crawl = await crawlOf(({ host }) => (isThrough(host) ? { breaks: 'gateway_throttled', afterMs: 50 } : good), '4:1:32', 200).playUntil(2_000)
  expect(crawl.web.log.filter(({ host }) => isThrough(host)).length).toBeGreaterThan(100)
  const answered = [...crawl.parts.scheduler.hosts.values()].filter(({ hasAnswered }) => hasAnswered).map(({ name }) => name)
  expect(answered.filter(isThrough)).toEqual([])
  expect(answered.length).toBe(10)
})

test('a gateway out of quota pauses what goes through it until the time that it names, and no other host', async () => {
  const spent = { fromMs: 5_000, toMs: 65_000 }
  const play = (status: number): Promise<VirtualCrawl> => crawlOf(({ host, nowMs }) => {
    if (!isThrough(host) || nowMs < spent.fromMs || nowMs >= spent.toMs) return good
    return { status, latencyMs: 20, bytes: 100, headers: { 'x-ratelimit-reset': String(Math.ceil((spent.toMs - nowMs) / 1_000)) } }
  }, '20:1:32', 200).play()
  const asked = (crawl: VirtualCrawl): number => crawl.web.log.filter(({ host, startMs }) => isThrough(host) && startMs >= spent.fromMs && startMs < spent.toMs).length
  const crawl = await play(509)
  crawl.expectWhole()
  expect(crawl.store.counters()).toMatchObject({ failed: 0, retries: 0 })
  expect(asked(crawl), 'requests through it meanwhile').toBeLessThanOrEqual(20)
  expect(crawl.blockedShares(15_000, spent.toMs).gateway, 'when nothing else is left').toBeGreaterThan(0.99)
  expect(crawl.pagesPerSecond(5_000, 9_000, (host) => !isThrough(host)), 'of 200 a second').toBeGreaterThan(190)
  expect(crawl.pagesPerSecond(spent.toMs + 1_000, spent.toMs + 3_000, isThrough), 'of 200 a second, a second later').toBeGreaterThan(180)

  // A status that nobody takes for a word of the gateway.
  const uncontrolled = await play(403)
  expect(asked(uncontrolled), 'if nobody heeded it').toBeGreaterThan(500)
})

test('a gateway that reaches nobody any more costs neither host nor URL, and the crawl ends by its tail with what is left parked', async () => {
  const deadFromMs = 5_000
  const crawl: VirtualCrawl = crawlOf(({ host, nowMs, atGateway }) => {
    if (!isThrough(host) || nowMs < deadFromMs) return good
    crawl.flow.gateways!.of(host)!.failed({ startedAtMs: nowMs, inFlight: atGateway, nowMs }, () => 0.5)
    return { refuses: 'gateway_failed' }
  }, '4:1:32', 200)
  await crawl.play()
  const { pending, failed } = crawl.store.counters()
  expect([failed, crawl.loop.parked]).toEqual([0, pending])
  expect(pending).toBeGreaterThan(0)
  expect(crawl.web.log.filter(({ host, isPage }) => isPage && !isThrough(host))).toHaveLength(2_000)
})

/**
 * Bad afternoons of the hosts, on a clock that stands still until everything has happened that can. What is wrong with one
 * host costs no other one its pages. Each is played a second time without the control that should save it, and must then
 * fail its criterion. Figures are of virtual time.
 */
import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { hostNames, urlsOf, VirtualCrawl, type VirtualCrawlOptions } from '../support/virtual-crawl.ts'
import type { Behaviour, VirtualRequest } from '../support/virtual-web.ts'

const hosts = hostNames(20)
const good = { status: 200, latencyMs: 100 } as const

const usual = { concurrency: '2:1:2', connections: 64 } as const

/** Twenty hosts that give 20 pages a second each; some of them may behave otherwise. */
function crawlOf(behaviour: Behaviour, options: Partial<VirtualCrawlOptions> = {}): VirtualCrawl {
  return new VirtualCrawl({ seed: 7, behaviour, options: usual, pool: { workers: 4, serviceMs: () => 3 }, ...options })
}

function failures(crawl: VirtualCrawl): Record<string, number> {
  return Object.fromEntries(crawl.store.codes)
}

test('a host that is down for a minute loses no URL and costs no other host its pages, and is at full speed within 70 s of its return', async () => {
  const down = { fromMs: 5_000, toMs: 65_000 }
  const isDown = ({ host, nowMs }: VirtualRequest): boolean => host === hosts[0] && nowMs >= down.fromMs && nowMs < down.toMs
  const play = async (hostPatienceMs: string): Promise<VirtualCrawl> => {
    const crawl = crawlOf((request) => (isDown(request) ? { refuses: 'connect_refused' } : good), { options: { ...usual, hostPatienceMs } })
    crawl.store.add(urlsOf(hosts.slice(0, 1), 800))
    crawl.store.add(urlsOf(hosts.slice(1), 250))
    return crawl.play()
  }
  const crawl = await play('5m')
  crawl.expectWhole()
  const others = (host: string): boolean => host !== hosts[0]
  expect(failures(crawl)).toEqual({})
  expect(crawl.pagesPerSecond(down.fromMs, 11_000, others) / crawl.pagesPerSecond(1_000, down.fromMs, others)).toBeGreaterThan(0.95)
  const own = (host: string): boolean => host === hosts[0]
  const back = [...Array(90).keys()].find((s) => crawl.pagesPerSecond(down.toMs + s * 1_000, down.toMs + s * 1_000 + 1_000, own) >= 18)
  // Its last rest was 64 s at most.
  expect(back).toBeLessThanOrEqual(70)
  expect(failures(await play('0s')), 'if nobody had patience with it').toMatchObject({ connect_refused: expect.any(Number) })
})

test('with 30 % of all hosts failing at every third request, retries stay within their budget and the others keep 95 % of their pages', async () => {
  const bad = new Set(hosts.slice(0, 6))
  const play = async (isBad: boolean, without?: 'retry_budget'): Promise<VirtualCrawl> => {
    const asked = new Map<string, number>()
    const isThird = (host: string): boolean => asked.set(host, (asked.get(host) ?? 0) + 1).get(host)! % 3 === 0
    const crawl = crawlOf(({ host }) => (isBad && bad.has(host) && isThird(host) ? { status: 500, latencyMs: 100 } : good), { options: { ...usual, retries: 8 }, ...(without && { without }) })
    crawl.store.add(urlsOf(hosts, 240))
    return crawl.play()
  }
  // Of one of them in the first twenty seconds.
  const retriesOf = (crawl: VirtualCrawl): { made: number; budget: number } => {
    const paths = crawl.web.log.filter(({ host, startMs }) => host === hosts[0] && startMs < 20_000).map(({ path }) => path)
    const firsts = new Set(paths).size
    return { made: paths.length - firsts, budget: limits.retryTokensPerHostMax + firsts / 10 + 20_000 / limits.retryHostTokenMs }
  }
  const [crawl, well] = [await play(true), await play(false)]
  crawl.expectWhole()
  expect(failures(crawl)).toEqual({})
  const isWell = (host: string): boolean => !bad.has(host)
  expect(retriesOf(crawl).made).toBeLessThanOrEqual(retriesOf(crawl).budget)
  expect(crawl.pagesPerSecond(1_000, 11_000, isWell) / well.pagesPerSecond(1_000, 11_000, isWell)).toBeGreaterThan(0.95)

  const uncontrolled = await play(true, 'retry_budget')
  expect(retriesOf(uncontrolled).made, 'if each were made when it falls due').toBeGreaterThan(1.5 * retriesOf(uncontrolled).budget)
})

test('a site that turns to challenge pages for a minute is asked little, loses no URL, and costs no other site its pages', async () => {
  const walled = { fromMs: 5_000, toMs: 65_000 }
  const play = async (hasSigns: boolean): Promise<VirtualCrawl> => {
    const crawl = crawlOf(({ host, path, nowMs }) => {
      if (host !== hosts[0] || nowMs < walled.fromMs || nowMs >= walled.toMs) return good
      if (!hasSigns) return { status: 403, latencyMs: 100 }
      // Some say it in the head, some in the body.
      return Number(path.slice(1)) % 2 === 0 ? { status: 403, latencyMs: 100, headers: { 'cf-mitigated': 'challenge' } } : { status: 200, latencyMs: 100, wall: 'challenged' }
    })
    crawl.store.add(urlsOf(hosts.slice(0, 1), 800))
    crawl.store.add(urlsOf(hosts.slice(1), 250))
    return crawl.play()
  }
  const own = (host: string): boolean => host === hosts[0]
  const asked = (crawl: VirtualCrawl): number => crawl.web.log.filter(({ host, startMs }) => own(host) && startMs >= walled.fromMs + 1_000 && startMs < walled.toMs).length
  const crawl = await play(true)
  crawl.expectWhole()
  expect(failures(crawl)).toEqual({})
  expect(asked(crawl), 'requests while there is a wall').toBeLessThan(20)
  const others = (host: string): boolean => !own(host)
  expect(crawl.pagesPerSecond(walled.fromMs, 11_000, others) / crawl.pagesPerSecond(1_000, walled.fromMs, others)).toBeGreaterThan(0.95)

  const uncontrolled = await play(false)
  expect(asked(uncontrolled), 'if nobody saw the wall').toBeGreaterThan(500)
  expect(uncontrolled.pages(0, uncontrolled.clock.nowMs(), own), 'pages of the site, of 800').toBeLessThan(400)
})

test('beside a host with a million URLs a thousand hosts with ten each are finished, and the big one keeps its own pace', async () => {
  const small = hostNames(1_000, 's')
  const play = async (without?: 'host_queues'): Promise<VirtualCrawl> => {
    const crawl = crawlOf(() => good, { options: { delayMs: 500, connections: 512 }, pool: { workers: 8, serviceMs: () => 2 }, ...(without && { without }) })
    crawl.store.addMany('big.test', 1_000_000)
    crawl.store.add(urlsOf(small, 10))
    return crawl.playUntil(15_000)
  }
  const isSmall = (host: string): boolean => host !== 'big.test'
  const crawl = await play()
  expect(crawl.pages(0, 15_000, isSmall)).toBe(10_000)
  expect(crawl.pagesPerSecond(0, 15_000, (host) => !isSmall(host)), 'of two a second').toBeGreaterThan(1.9)
  expect((await play('host_queues')).pages(0, 15_000, isSmall), 'if all hosts had one queue').toBeLessThan(100)
})

test('a host that refuses more than three at once, and later more than eight, is given as many as it takes, and is refused under 2 % of them', async () => {
  const change = 60_000
  const play = (concurrency: string): Promise<VirtualCrawl> => {
    const crawl = crawlOf(({ concurrent, nowMs }) => (concurrent > (nowMs < change ? 3 : 8) ? { status: 429, latencyMs: 10, bytes: 100 } : good), { options: { concurrency, connections: 64 } })
    crawl.store.add(urlsOf(hosts.slice(0, 1), 12_000))
    return crawl.playUntil(3 * change)
  }
  /** Share of its requests that were refused, and how many it served at once, in the second half of each time. */
  const settled = (crawl: VirtualCrawl, fromMs: number, toMs: number): { refused: number; atOnce: number } => {
    const served = crawl.web.log.filter(({ startMs }) => startMs >= fromMs && startMs < toMs)
    const pages = served.filter(({ isPage }) => isPage)
    return { refused: 1 - pages.length / served.length, atOnce: pages.length * good.latencyMs / (toMs - fromMs) }
  }
  const crawl = await play('4:1:32')
  for (const [ceiling, { refused, atOnce }] of [[3, settled(crawl, 30_000, 60_000)], [8, settled(crawl, 120_000, 180_000)]] as const) {
    expect(refused).toBeLessThan(0.02)
    expect(atOnce).toBeGreaterThan(0.8 * ceiling)
  }
  expect(settled(await play('16:16:16'), 30_000, 60_000).atOnce, 'if the limit stood still').toBeLessThan(1)
})

test('a host whose latency rises with what it is given is kept where it still answers fast', async () => {
  const play = async (concurrency: string): Promise<{ pagesPerSecond: number; medianMs: number }> => {
    // It serves four at once; more wait for their turn.
    const crawl = crawlOf(({ concurrent }) => ({ status: 200, latencyMs: 100 * Math.max(1, concurrent / 4) }), { options: { concurrency, connections: 64 } })
    crawl.store.add(urlsOf(hosts.slice(0, 1), 4_000))
    await crawl.playUntil(60_000)
    const waits = crawl.web.log.filter(({ startMs, isPage }) => isPage && startMs >= 30_000).map(({ startMs, endMs }) => endMs - startMs).sort((a, b) => a - b)
    return { pagesPerSecond: waits.length / 30, medianMs: waits[Math.floor(waits.length / 2)]! }
  }
  const { medianMs, pagesPerSecond } = await play('4:1:32')
  expect(medianMs).toBeLessThan(250)
  expect(pagesPerSecond, 'of 40').toBeGreaterThan(36)
  expect((await play('32:32:32')).medianMs, 'if its latency said nothing').toBeGreaterThan(500)
})

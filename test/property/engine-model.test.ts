/**
 * A hundred afternoons drawn by chance: hosts, what they answer and when they fail, our own stages and when they stall, a
 * consumer or none, pauses, deaths of workers, a stop. The real engine plays each on a virtual clock. After every event the
 * bounds and sums are checked (virtual-crawl.ts), with every request the limits, gaps and rests; at the end that no URL was
 * lost and none has two outcomes, by the store and by the web's own log.
 */
import { expect, test } from 'vitest'
import type { Random } from '../../engine/core/clock.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import type { CrawlOptionsGiven } from '../../engine/core/options.ts'
import { integer, pick, seededRandom, withSeeds } from '../support/random.ts'
import { urlsOf, VirtualCrawl, type VirtualCrawlOptions } from '../support/virtual-crawl.ts'
import type { Behaviour, VirtualAnswer } from '../support/virtual-web.ts'

interface Window { readonly fromMs: number; readonly toMs: number }

function windowOf(random: Random): Window {
  const fromMs = integer(random, 20_000)
  return { fromMs, toMs: fromMs + integer(random, pick(random, [500, 5_000, 90_000])) }
}

function isIn({ fromMs, toMs }: Window, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < toMs
}

const never: Window = { fromMs: 0, toMs: 0 }

/** What a host does in its bad time. */
function badnessOf(random: Random): Behaviour {
  const limit = 1 + integer(random, 6)
  const retryAfter: Record<string, string> = random() < 0.5 ? { 'retry-after': String(integer(random, 8)) } : {}
  const bytes = pick(random, [0, 1_000, 250_000, 3_000_000])
  return pick<Behaviour>(random, [
    ({ concurrent }) => (concurrent > limit ? { status: 429, headers: retryAfter, latencyMs: 5, bytes: 100 } : { status: 200 }),
    () => ({ status: 503, headers: retryAfter, latencyMs: 20 }),
    () => ({ status: pick(random, [500, 502, 504, 408, 425]) }),
    () => ({ status: pick(random, [200, 200, 200, 404, 301, 500, 503, 429]) }),
    () => ({ refuses: pick(random, ['connect_refused', 'connect_failed', 'tls_failed', 'dns_failed', 'address_refused'] as const) }),
    () => ({ refuses: 'connect_timeout', afterMs: 1_000 }),
    () => ({ breaks: 'connection_closed', afterMs: integer(random, 200) }),
    () => ({ isSilent: true }),
    ({ concurrent }) => ({ status: 200, latencyMs: 60 * concurrent }),
    () => ({ status: 200, bytes, bodyMs: integer(random, 1_500) }),
    () => ({ status: 402 }),
    () => ({ status: 403, headers: { 'cf-mitigated': 'challenge' }, wall: 'challenged' }),
    () => ({ status: pick(random, [200, 403]), wall: pick(random, ['challenged', 'blocked'] as const) }),
    () => ({ status: 200, headers: { 'content-type': 'video/mp4' } }),
  ])
}

function behaviourOf(random: Random): Behaviour {
  const bad = badnessOf(random)
  const window = pick(random, [windowOf(random), windowOf(random), never, { fromMs: 0, toMs: Number.POSITIVE_INFINITY }])
  const latencyMs = integer(random, 300)
  return (request) => {
    if (isIn(window, request.nowMs)) return bad(request)
    return { status: 200, latencyMs, bytes: integer(random, 100_000) } satisfies VirtualAnswer
  }
}

function optionsOf(random: Random): CrawlOptionsGiven {
  return {
    delayMs: pick(random, [0, 0, 10, 200]), concurrency: pick(random, ['4:1:32', '1:1:1', '2:2:8', '8:1:16']), politeness: pick(random, ['host', 'domain'] as const),
    connections: pick(random, [1, 4, 16, 128]), retries: integer(random, 4), timeoutMs: pick(random, [500, 3_000]), 
    // Never without an end: when all hosts that are left have died, that looks like a network that is away, which is waited for.
    tailMs: pick(random, ['2h', 'park', '30s']),
  }
}

/** Of our own stages: when they stall. A busy afternoon has enough to fetch to fill every queue meanwhile. */
function stagesOf(random: Random, isBusy: boolean): Pick<VirtualCrawlOptions, 'store' | 'freeBytes' | 'consumeMs'> {
  const stall = isBusy ? { fromMs: 1_000, toMs: 31_000 } : windowOf(random)
  const [commits, full, consumer] = [pick(random, [never, stall]), pick(random, [never, never, windowOf(random)]), pick(random, [never, stall])]
  const [commitMs, consumeMs] = [1 + integer(random, 60), integer(random, 30)]
  return {
    store: { commitMs: (_, nowMs) => (isIn(commits, nowMs) ? commits.toMs - nowMs : commitMs), isFull: (nowMs) => isIn(full, nowMs) },
    freeBytes: (nowMs) => (isIn(full, nowMs) ? 0 : 50 * 1024 ** 3),
    ...(random() < 0.4 && { consumeMs: (nowMs: number) => (isIn(consumer, nowMs) ? consumer.toMs - nowMs : consumeMs) }),
  }
}

function afternoon(random: Random, seed: number): VirtualCrawl {
  const isBusy = random() < 0.08
  const hosts = Array.from({ length: isBusy ? 40 : 1 + integer(random, pick(random, [3, 12, 12, 40])) }, (_, i) => `${pick(random, ['a', 'b'])}${i}.d${integer(random, isBusy ? 40 : 5)}.test`)
  const behaviours = new Map(hosts.map((host) => [host, behaviourOf(random)]))
  const pages = isBusy ? 40 : 1 + integer(random, 60)
  const [areSeeds, fanOut, robotsStatus, serviceMs] = [isBusy || random() < 0.3, integer(random, 5), pick(random, [404, 200, 503]), 1 + integer(random, isBusy ? 4 : 40)]
  const crawl = new VirtualCrawl({
    seed, options: { ...optionsOf(random), ...(isBusy && { connections: 128, delayMs: 0, concurrency: '8:1:16' }) }, asksRobots: random() < 0.5,
    behaviour: (request) => (request.path === '/robots.txt' && robotsStatus === 404 ? { status: 404, latencyMs: 20 } : behaviours.get(request.host)!(request)),
    pool: { slots: 2 + integer(random, isBusy ? 400 : 20), workers: 1 + integer(random, 4), serviceMs: () => serviceMs, linksOf: (url) => linksOf(url, { hosts, pages, fanOut }) },
    ...stagesOf(random, isBusy),
    ...(random() < 0.2 && { run: { maxPages: 1 + integer(random, 100) } }),
  })
  crawl.store.add(urlsOf(hosts, areSeeds ? pages : 1))
  return crawl
}

/** Pages of one site lie in a tree, and each links to the root of another site. */
function linksOf(url: string, { hosts, pages, fanOut }: { hosts: readonly string[]; pages: number; fanOut: number }): string[] {
  const { host, pathname } = new URL(url)
  const page = Number(pathname.slice(1))
  const links = [`http://${hosts[(hosts.indexOf(host) + 1) % hosts.length]}/0`]
  for (let i = 1; i <= fanOut; i++) if (page * fanOut + i < pages) links.push(`http://${host}/${page * fanOut + i}`)
  return links
}

test('over a hundred bad afternoons every bound and sum holds at every moment, and no URL is lost or done twice', async () => {
  let [requests, events] = [0, 0]
  await withSeeds(100, async (random, seed) => {
    const crawl = afternoon(random, seed)
    for (let i = integer(random, 6); i > 0; i--) crawl.at(integer(random, 20_000), () => crawl.pool.killWorker())
    if (random() < 0.3) {
      const paused = windowOf(random)
      crawl.at(paused.fromMs, () => crawl.setPaused(true)).at(paused.toMs, () => crawl.setPaused(false))
    }
    const isStopped = random() < 0.2
    if (isStopped) crawl.at(integer(random, 10_000), () => crawl.loop.end('stopped', true))
    await crawl.play().catch((error: unknown) => {
      // A stop does not wait for room on the disk.
      if (!(error instanceof SluiceError && error.code === 'disk_full' && ['stopped', 'limit'].includes(crawl.run.reason!))) throw error
    })
    const { reason } = crawl.run
    expect(['complete', ...(isStopped || crawl.hasConsumer ? ['stopped'] : []), ...(crawl.run.limits.maxPages < Number.POSITIVE_INFINITY ? ['limit'] : [])]).toContain(reason)
    expect(crawl.run.pagesStored).toBeLessThanOrEqual(crawl.run.limits.maxPages)
    if (reason === 'complete') crawl.expectWhole()
    requests += crawl.web.log.length
    events += crawl.events
  })
  if (process.env['SEED'] === undefined) expect([requests > 8_000, events > 20_000]).toEqual([true, true])
})


test('a seed is the same afternoon each time, to the last request', async () => {
  await withSeeds(3, async (_, seed) => {
    const logs = []
    for (let times = 0; times < 2; times++) {
      const crawl = await afternoon(seededRandom(seed), seed).playUntil(20_000)
      logs.push([crawl.events, crawl.web.log])
    }
    expect(logs[0]).toEqual(logs[1])
  })
})

import { expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { openBed, readPages, type ServerRequest } from '../support/crawl.ts'
import { integer, withSeeds } from '../support/random.ts'
import { childrenOf, isAlive, sluice, until } from '../support/processes.ts'

const DELAY_MS = 400

/** Gaps between one request and the next on a unit, by the server's clock. */
function gapsBy<T extends { readonly t: number }>(requests: readonly T[], unitOf: (request: T) => string): number[] {
  const last = new Map<string, number>()
  const gaps: number[] = []
  for (const request of [...requests].sort((a, b) => a.t - b.t)) {
    const before = last.get(unitOf(request))
    if (before !== undefined) gaps.push(request.t - before)
    last.set(unitOf(request), request.t)
  }
  return gaps
}

// A request that the busy server notices late makes the gap behind it look short, so the bound is half the delay: a
// crawler that does not wait, or waits for each host alone where the unit is a domain, leaves gaps near zero.
it.each([
  { politeness: 'host', unitOf: ({ host }: { host: string }) => host },
  { politeness: 'domain', unitOf: ({ host }: { host: string }) => host.split('.').slice(-2).join('.') },
] as const)("keeps the delay between two requests to one $politeness, by the server's clock", async ({ politeness, unitOf }) => {
  const bed = await openBed({ hosts: 6, pagesPerHost: 4, sizeScale: 0.3 })
  try {
    const crawler = await Crawler.open({ ...bed.options, delayMs: DELAY_MS, politeness })
    await crawler.add(bed.web.seeds)
    await crawler.start()
    await crawler.close()
    const gaps = gapsBy(await bed.requests(), unitOf)
    expect(gaps.length).toBeGreaterThan(20)
    expect(gaps.filter((gap) => gap < DELAY_MS / 2)).toEqual([])
  } finally {
    await bed.close()
  }
})

it('keeps the delay also to a server that closes connections without an answer, and still tries such a page as often as it may', async () => {
  const bed = await openBed({ hosts: 1, pagesPerHost: 16, sizeScale: 0.1, faultShare: 0.5, seed: 44, tls: false })
  try {
    const crawler = await Crawler.open({ ...bed.options, delayMs: 120, retries: 1, timeoutMs: 1_000 })
    await crawler.add(bed.web.seeds)
    await crawler.start()
    await crawler.close()
    const requests = await bed.requests()
    const silent = [...bed.site.allPages()].filter(({ fault }) => fault === 'no_answer')
    expect(silent.length).toBeGreaterThan(0)
    for (const { path } of silent) expect(requests.filter((request) => request.path === path).length).toBeGreaterThanOrEqual(2)
    expect(gapsBy(requests, ({ host }) => host).filter((gap) => gap < 60)).toEqual([])
  } finally {
    await bed.close()
  }

/** Much longer than a process takes to start: one that does not wait asks too soon. */
const RESTART_DELAY_MS = 2_000

const MODES = [
  { politeness: 'host', unitOf: ({ host }: ServerRequest) => host },
  { politeness: 'domain', unitOf: ({ host }: ServerRequest) => host.split('.').slice(-2).join('.') },
  // Each host of the web has an address of its own where the system has them; else all share one.
  { politeness: 'ip', unitOf: undefined },
] as const

it.concurrent.each(MODES)('keeps the delay of one $politeness across kills at any moment too, since a restart waits one delay before the first request', { timeout: 60_000 }, async ({ politeness, unitOf }) => {
  await withSeeds(1, async (random) => {
    const bed = await openBed({ hosts: 6, pagesPerHost: 30, sizeScale: 0.1 })
    try {
      for (let kills = 0, stored = 0; kills < 3; kills++) {
        const crawl = sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--delay', `${RESTART_DELAY_MS}ms`, '--politeness', politeness, '--progress', 'none'])
        const wanted = stored + 1 + integer(random, 3)
        await until(async () => (stored = (await readPages(bed.dir).catch(() => [])).length) >= wanted)
        const children = childrenOf(crawl.pid)
        for (const pid of [crawl.pid, ...children]) process.kill(pid, 'SIGKILL')
        await until(() => children.every((pid) => !isAlive(pid)))
      }
      const addressOf = ({ host }: ServerRequest): string => bed.web.resolve.get(host)!
      const gaps = gapsBy(await bed.requests(), unitOf ?? addressOf)
      expect(gaps.length).toBeGreaterThan(2)
      expect(gaps.filter((gap) => gap < 0.75 * RESTART_DELAY_MS)).toEqual([])
    } finally {
      await bed.close()
    }
  })
})

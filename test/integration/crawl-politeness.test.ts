import { expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { openBed, readPages, type ServerRequest } from '../support/crawl.ts'
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
it.concurrent.each([
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
})

/** Much longer than an opening takes: a crawler that does not wait asks too soon. */
const RESTART_DELAY_MS = 3_000

const MODES = [
  { politeness: 'host', unitOf: ({ host }: ServerRequest) => host },
  { politeness: 'domain', unitOf: ({ host }: ServerRequest) => host.split('.').slice(-2).join('.') },
  // Each host of the web has an address of its own where the system has them; else all share one.
  { politeness: 'ip', unitOf: undefined },
] as const

// Killed when a page was just stored: of all moments the one at which the last starts are the latest.
it.concurrent.each(MODES)('keeps the delay of one $politeness across a kill too, since an opening waits one delay before the first request', { timeout: 60_000 }, async ({ politeness, unitOf }) => {
  const bed = await openBed({ hosts: 6, pagesPerHost: 30, sizeScale: 0.1 })
  try {
    const stored = async (): Promise<number> => (await readPages(bed.dir).catch(() => [])).length
    const killed = sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--delay', `${RESTART_DELAY_MS}ms`, '--politeness', politeness, '--progress', 'none'])
    await until(async () => (await stored()) > 0)
    const children = childrenOf(killed.pid)
    for (const pid of [killed.pid, ...children]) process.kill(pid, 'SIGKILL')
    await until(() => children.every((pid) => !isAlive(pid)))
    const before = await stored()
    // In this process, which has started already: the time that another takes to start would pass for the delay.
    const crawler = await Crawler.open({ ...bed.options, delayMs: RESTART_DELAY_MS, politeness })
    const run = crawler.start()
    await until(async () => (await stored()) > before)
    await crawler.close()
    await run
    const gaps = gapsBy(await bed.requests(), unitOf ?? (({ host }) => bed.web.resolve.get(host)!))
    expect(gaps.length).toBeGreaterThan(1)
    expect(gaps.filter((gap) => gap < 0.75 * RESTART_DELAY_MS)).toEqual([])
  } finally {
    await bed.close()
  }
})

/** The pressure of real crawls: that the stages hold what is leased, and that those who look from outside see the same. */
import diagnostics from 'node:diagnostics_channel'
import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Crawler, type Stats, type StageName, type StagePressure } from '../../engine/index.ts'
import { script, until } from '../support/processes.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

/** Each page links to three more, up to so many a host. */
const PAGES = 300
const hosts = ['a.test', 'b.test', 'c.test']

let web: SmallWeb
let crawler: Crawler | undefined

beforeEach(async () => {
  web = await openSmallWeb(hosts, ({ path }) => {
    const page = Number(path.slice(1) || 0)
    return { html: [1, 2, 3].map((n) => page * 3 + n).filter((next) => next < PAGES).map((next) => `<a href="/${next}">${next}</a>`).join('') }
  })
})
afterEach(async () => {
  await crawler?.close()
  await web.close()
})

async function openCrawler(given: object = {}): Promise<Crawler> {
  crawler = await Crawler.open({ ...web.options, ...given })
  await crawler.add(hosts.map((host) => `${web.origin(host)}/`))
  return crawler
}

function stage({ pressure }: Stats, name: StageName): StagePressure {
  return pressure.stages.find((one) => one.name === name)!
}

function held({ pressure }: Stats): number {
  return pressure.stages.reduce((sum, { depth }) => sum + depth, 0)
}

describe('the stages', () => {
  it('hold together exactly the leased URLs, whenever one looks, and each at some time', async () => {
    const opened = await openCrawler()
    const unequal: unknown[] = []
    const seen = new Set<StageName>()
    const look = (): void => {
      const stats = opened.stats()
      if (held(stats) !== stats.leased) unequal.push([held(stats), stats.leased])
      for (const { name, depth, oldestMs } of stats.pressure.stages) {
        if (depth > 0) seen.add(name)
        if (depth === 0 && oldestMs !== 0) unequal.push([name, oldestMs])
      }
    }
    opened.on('page', look).on('pressure', look)
    await opened.start()
    expect(unequal).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(['claimed', 'fetch', 'slots', 'commit']))
    const stats = opened.stats()
    expect([held(stats), stats.leased, stats.pages]).toEqual([0, 0, hosts.length * PAGES])
    for (const name of ['queueAge', 'ttfb', 'fetch', 'parse'] as const) expect([name, stats.pressure.latencies[name].count]).toEqual([name, hosts.length * PAGES])
    expect(stats.pressure.latencies.commit.count).toBe(hosts.length * PAGES)
  })

  it('say that the consumer is what the crawl waits for, with what it holds and for how long', async () => {
    const opened = await openCrawler()
    let seen = 0
    for await (const page of opened.run()) {
      expect(page.status).toBe(200)
      seen += 1
      if (seen < 150) continue
      await until(() => opened.stats().blockedOn === 'consumer' && opened.stats().inFlight === 0)
      const before = stage(opened.stats(), 'window')
      await until(() => stage(opened.stats(), 'window').oldestMs > before.oldestMs)
      const stats = opened.stats()
      const { used, limit } = stats.bounds.find(({ name }) => name === 'pagesUnacked')!
      expect(stage(stats, 'window').depth).toBe(used)
      expect(used).toBeGreaterThanOrEqual(limit)
      expect(stats.blockedOn).toBe('consumer')
      expect(stage(stats, 'window').refused).toBeGreaterThan(0)
      expect(stats.pressure.blockedMs.consumer).toBeGreaterThanOrEqual(stage(stats, 'window').blockedMs)
      expect(stage(stats, 'commit').blocked).toBe(0)
      break
    }
  })
})

describe('diagnostics channels', () => {
  it('tell each request once, and the stages at each change and once a second', async () => {
    const fetches: { readonly url: string; readonly status?: number; readonly waitedMs: number }[] = []
    const pressures: { readonly blockedOn: string; readonly stages: readonly StagePressure[] }[] = []
    const [onFetch, onPressure] = [(message: unknown) => void fetches.push(message as never), (message: unknown) => void pressures.push(message as never)]
    diagnostics.subscribe('sluice:fetch', onFetch)
    diagnostics.subscribe('sluice:pressure', onPressure)
    try {
      const opened = await openCrawler()
      let changes = 0
      opened.on('pressure', () => { changes += 1 })
      await opened.start({ maxPages: 50 })
      await until(() => pressures.length > changes)
    } finally {
      diagnostics.unsubscribe('sluice:fetch', onFetch)
      diagnostics.unsubscribe('sluice:pressure', onPressure)
    }
    expect(fetches.map(({ url }) => url.replace(/^http:\/\//, '').replace(/:\d+/, '')).toSorted()).toEqual(web.asked.toSorted())
    expect(fetches.every(({ status, waitedMs }) => status === 200 && waitedMs >= 0)).toBe(true)
    expect(pressures.every(({ stages }) => stages.length === 7)).toBe(true)
  })
})

describe('a crawler that listens', () => {
  it('tells over HTTP what it tells in the process', async () => {
    const opened = await openCrawler({ listen: '0' })
    await opened.start({ maxPages: 40 })
    const text = await (await fetch(opened.metricsUrl!)).text()
    const status = await (await fetch(opened.metricsUrl!.replace('metrics', 'status.json'))).json() as Record<string, unknown>
    const { pending, ...stats } = opened.stats()
    expect(text).toContain(`sluice_pages_total ${stats.pages}\n`)
    expect(text).toContain(`sluice_urls{state="pending"} ${pending}\n`)
    expect(text).toMatch(/sluice_loop_busy_seconds_total\{loop="worker_1"\} [\d.]+\n/)
    expect(text.match(/sluice_worst_host_health/g)!.length).toBeLessThanOrEqual(2 + 20)
    expect(Object.keys(status).toSorted()).toEqual([...Object.keys(stats), 'queued', 'worstHosts', 'pid'].toSorted())
    expect(status).toMatchObject({ queued: pending, pages: stats.pages, pid: process.pid, worstHosts: opened.worstHosts().map(({ name }) => ({ name })) })
  })

  it('at a port that is taken does not open, stores nothing, and leaves the directory to the next', async () => {
    const opened = await openCrawler({ listen: '[::1]:0' })
    const listen = new URL(opened.metricsUrl!).host
    expect(listen).toMatch(/^\[::1\]:\d+$/)
    const dir = `${web.options.dir}/second`
    await expect(Crawler.open({ ...web.options, dir, listen })).rejects.toMatchObject({ code: 'port_in_use' })
    expect(readdirSync(dir)).toEqual([])
    const second = await Crawler.open({ ...web.options, dir })
    expect(second.metricsUrl).toBeUndefined()
    await second.close()
  })

  it('lets its process end when it is closed, though a client keeps its connection', async () => {
    const source = `
      import { Agent, get } from 'node:http'
      import { Crawler } from 'sluice'
      const crawler = await Crawler.open({ dir: ${JSON.stringify(web.options.dir)}, threads: 1, listen: '0' })
      const agent = new Agent({ keepAlive: true })
      await new Promise((resolve) => get(crawler.metricsUrl, { agent }, (response) => response.resume().on('end', resolve)))
      await crawler.close()
      console.log('closed')`
    const running = script(source)
    expect(await running.ended).toEqual({ code: 0, signal: null })
    expect(running.output.stdout).toBe('closed\n')
  })
})

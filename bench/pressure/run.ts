/**
 * One bad afternoon in this process: a demonstration web in another, a crawl of it, and a fault in mid-crawl. Every page
 * of the web is given to the crawl, so that each has to be found again afterwards: among the records, or in the queue.
 * The delay makes the throughput known (as many pages a second as hosts, with a delay of one second), so that what a
 * fault costs is not lost in what the machine can do.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { limits } from '../../engine/core/limits.ts'
import { share } from '../../engine/demo/random.ts'
import { Site, spawnDemoWeb, type DemoWebOptions, type SpawnedDemoWeb } from '../../engine/demo/index.ts'
import { Crawler, type CrawlOptionsGiven } from '../../engine/index.ts'
import { readEvidence } from './evidence.ts'
import { moodFileVariable } from './extractor.ts'
import { Consumer, fillDisk, lockStore, mountSmallDisk, Parser, unmount } from './props.ts'
import { Sampler } from './sampler.ts'
import type { Evidence, Scenario, Stage, Step, Verdict } from './scenario.ts'
import { judge } from './verdicts.ts'

export interface RunOrder {
  readonly seed: number
  /** Factor on all times. */
  readonly scale: number
  readonly isContrast: boolean
}

export interface RunResult {
  readonly evidence: Evidence
  readonly verdicts: readonly Verdict[]
}

const usualWeb = { hosts: 200, pagesPerHost: 200, firstHostPages: 200, sizeScale: 0.05, latencyMs: 100 } as const satisfies DemoWebOptions
const usualDelayMs = 1_000
const beforeSUsual = 10
/** robots.txt of every host, and limits that find their place. */
const warmS = 6
const smallDiskMb = 96

export async function runScenario(scenario: Scenario, order: RunOrder): Promise<RunResult> {
  const [dir, props] = await Promise.all(['crawl', 'props'].map((name) => mkdtemp(join(tmpdir(), `sluice-pressure-${name}-`)))) as [string, string]
  const hasSmallDisk = scenario.needs?.includes('smallDisk') === true
  if (hasSmallDisk) mountSmallDisk(dir, smallDiskMb)
  const logFile = join(props, 'requests.jsonl')
  const web = await spawnDemoWeb({ ...usualWeb, ...scenario.web, seed: order.seed, logFile })
  try {
    const site = siteOf({ ...usualWeb, ...scenario.web }, web, order.seed)
    const parser = new Parser(props)
    process.env[moodFileVariable] = parser.file
    const crawler = await Crawler.open({ ...usualOptions(dir, web), ...scenario.options, ...(order.isContrast && scenario.contrast?.options) })
    const seen = await crawl({ scenario, order, web, site, crawler, parser, dir })
    await web.flush()
    const evidence = { ...seen, ...await readEvidence(dir, logFile, site) }
    return { evidence, verdicts: judge(scenario.claims, evidence) }
  } finally {
    await web.close()
    if (hasSmallDisk) unmount(dir)
    for (const name of [dir, props]) await rm(name, { recursive: true, force: true })
  }
}

function usualOptions(dir: string, web: SpawnedDemoWeb): CrawlOptionsGiven {
  return {
    dir, scope: 'any', delayMs: usualDelayMs, timeoutMs: 10_000, threads: 1, allowAddress: ['127.0.0.0/8'], resolve: Object.fromEntries(web.resolve),
    extract: fileURLToPath(new URL('./extractor.js', import.meta.url)),
  }
}

function siteOf(options: DemoWebOptions & Record<keyof typeof usualWeb, number>, { port, pages }: SpawnedDemoWeb, seed: number): Site {
  const { hosts, firstHostPages, sizeScale } = options
  return new Site({ scheme: 'http', port, hosts, pages, seed, firstHostPages, faultShare: 0, sizeScale, bodies: 'made' })
}

interface Crawl {
  readonly scenario: Scenario
  readonly order: RunOrder
  readonly web: SpawnedDemoWeb
  readonly site: Site
  readonly crawler: Crawler
  readonly parser: Parser
  readonly dir: string
}

type Seen = Pick<Evidence, 'steps' | 'samples' | 'counters' | 'underWayMax' | 'workersLost'>

async function crawl(given: Crawl): Promise<Seen> {
  const { scenario, order, web, site, crawler } = given
  const consumer = new Consumer()
  const stage = stageOf(given, consumer)
  await crawler.add(urlsOf(site))
  const running = crawler.start(scenario.needs?.includes('consumer') === true ? { onPage: consumer.take } : {})
  await setDelays(stage, scenario.concernedDelayMs, order.seed)
  await sleep(warmS * 1_000 * Math.max(1, order.scale))
  const [first] = stage.concerned as [string]
  const sampler = new Sampler({
    crawler, concerned: new Set(stage.concerned), limit: () => crawler.host(first)?.limit ?? 0,
    tally: async () => (await web.takeTallies()).get(first),
  })
  const steps: Step[] = []
  const during = async (name: string, kind: Step['kind'], seconds: number): Promise<void> => {
    const fromMs = sampler.nowMs
    await Promise.race([sleep(seconds * 1_000 * order.scale), running])
    steps.push({ name, kind, fromMs, toMs: sampler.nowMs })
  }
  await during('before', 'before', scenario.beforeS ?? beforeSUsual)
  for (const fault of scenario.faults) {
    await fault.begin(stage, fault.seconds * 1_000 * order.scale)
    await during(fault.name, 'fault', fault.seconds)
    await fault.end?.(stage)
  }
  await during('after', 'after', scenario.afterS)
  const samples = await sampler.stop()
  await crawler.stop()
  await running
  const { workersLost, discovered, pending, done, failed, dropped, excluded } = crawler.stats()
  const underWayMax = crawler.options.connections + limits.slotsMax + limits.pagesUnackedMax
  await crawler.close()
  return { steps, samples, workersLost, underWayMax, counters: { discovered, pending, done, failed, dropped, excluded } }
}

function* urlsOf(site: Site): Generator<string, void, void> {
  for (const { url } of site.allPages()) yield url
}

function stageOf({ scenario, order, web, site, crawler, parser, dir }: Crawl, consumer: Consumer): Stage {
  const allHosts = Array.from({ length: site.layout.hosts }, (_, host) => site.layout.hostName(host))
  return {
    web, crawler, allHosts, concerned: concernedOf(scenario, allHosts, order.seed),
    behave: (hosts, behaviour) => web.behave(hosts, behaviour),
    setParser: (mood) => parser.set(mood),
    stallStore: (forMs) => lockStore(join(dir, 'store'), forMs),
    fillDisk: (isFull) => fillDisk(dir, isFull),
    holdConsumer: (isHeld) => consumer.hold(isHeld),
    setGateway: () => Promise.reject(new Error('the scenario has no gateway')),
  }
}

function concernedOf({ concerned }: Scenario, allHosts: readonly string[], seed: number): readonly string[] {
  if (concerned === 'all') return allHosts
  if (typeof concerned === 'number') return allHosts.slice(0, concerned)
  return allHosts.filter((_, host) => share(seed, host, 41) < concerned.share)
}

/**
 * Delays of the hosts, a second in the mean: were they all the same, pages would come in waves, and a window would count
 * one more or less. A host takes its delay once it is in memory.
 */
async function setDelays({ crawler, concerned, allHosts }: Stage, concernedDelayMs: number | undefined, seed: number): Promise<void> {
  for (const [host, name] of allHosts.entries()) {
    const delayMs = concerned.includes(name) && concernedDelayMs !== undefined ? concernedDelayMs : Math.round(usualDelayMs * (0.75 + 0.5 * share(seed, host, 42)))
    while (crawler.host(name)?.delayMs !== delayMs) {
      crawler.setLimit(name, { delayMs })
      await sleep(5)
    }
  }
}

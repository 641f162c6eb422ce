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
import type { HostRule } from '../../engine/core/options.ts'
import { share } from '../../engine/demo/random.ts'
import { Site, spawnDemoWeb, type DemoWebOptions, type SpawnedDemoWeb } from '../../engine/demo/index.ts'
import { Crawler, type CrawlOptionsGiven, type GatewayFile } from '../../engine/index.ts'
import { readEvidence } from './evidence.ts'
import { moodFileVariable } from './extractor.ts'
import { spawnGateway, type Gateway } from './gateway.ts'
import { Consumer, cutNetwork, fillDisk, lockStore, mountSmallDisk, Parser, unmount } from './props.ts'
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
const warmSUsual = 6
const smallDiskMb = 96

export async function runScenario(scenario: Scenario, order: RunOrder): Promise<RunResult> {
  const [dir, props] = await Promise.all(['crawl', 'props'].map((name) => mkdtemp(join(tmpdir(), `sluice-pressure-${name}-`)))) as [string, string]
  const hasSmallDisk = scenario.needs?.includes('smallDisk') === true
  if (hasSmallDisk) mountSmallDisk(dir, smallDiskMb)
  const logFile = join(props, 'requests.jsonl')
  const web = await spawnDemoWeb({ ...usualWeb, ...scenario.web, seed: order.seed, logFile })
  const gateway = scenario.needs?.includes('gateway') === true ? await spawnGateway(web.resolve) : undefined
  try {
    const site = siteOf({ ...usualWeb, ...scenario.web }, web, order.seed)
    const parser = new Parser(props)
    process.env[moodFileVariable] = parser.file
    const cast = castOf(scenario, site, order.seed)
    const hostLimits = hostLimitsOf(scenario, cast, order.seed)
    const without = order.isContrast ? scenario.contrast : undefined
    const crawler = await Crawler.open({
      ...usualOptions(dir, web), hostLimits, ...(gateway && { gateway: gatewayFile(gateway, without?.gatewayConcurrency) }), ...scenario.options, ...without?.options,
    })
    const seen = await crawl({ scenario, order, web, cast, site, crawler, parser, gateway, dir })
    await web.flush()
    const evidence = { ...seen, pace: paceOf(cast, hostLimits), ...await readEvidence({ dir, logFile, site, concerned: cast.concerned }) }
    return { evidence, verdicts: judge(scenario.claims, evidence) }
  } finally {
    gateway?.close()
    await web.close()
    if (hasSmallDisk) unmount(dir)
    for (const name of [dir, props]) await rm(name, { recursive: true, force: true })
  }
}

function usualOptions(dir: string, web: SpawnedDemoWeb): CrawlOptionsGiven {
  return {
    dir, scope: 'any', timeoutMs: 10_000, threads: 1, allowAddress: ['127.0.0.0/8'], resolve: Object.fromEntries(web.resolve),
    extract: fileURLToPath(new URL('./extractor.js', import.meta.url)),
  }
}

function siteOf(options: DemoWebOptions & Record<keyof typeof usualWeb, number>, { port, pages }: SpawnedDemoWeb, seed: number): Site {
  const { hosts, firstHostPages, sizeScale } = options
  return new Site({ scheme: 'http', port, hosts, pages, seed, firstHostPages, faultShare: 0, sizeScale, bodies: 'made' })
}

function gatewayFile({ port }: Gateway, concurrency = '32:1:64'): GatewayFile {
  return { gateways: [{ name: 'api', hosts: ['*'], template: `http://127.0.0.1:${port}/?url={url}`, concurrency }] }
}

/** Names of hosts. */
interface Cast {
  readonly allHosts: readonly string[]
  readonly concerned: ReadonlySet<string>
}

function castOf({ concerned }: Scenario, { layout }: Site, seed: number): Cast {
  const allHosts = Array.from({ length: layout.hosts }, (_, host) => layout.hostName(host))
  const isConcerned = (host: number): boolean => concerned === 'all' || (typeof concerned === 'number' ? host < concerned : share(seed, host, 41) < concerned.share)
  return { allHosts, concerned: new Set(allHosts.filter((_, host) => isConcerned(host))) }
}

interface Crawl {
  readonly scenario: Scenario
  readonly order: RunOrder
  readonly web: SpawnedDemoWeb
  readonly cast: Cast
  readonly gateway: Gateway | undefined
  readonly site: Site
  readonly crawler: Crawler
  readonly parser: Parser
  readonly dir: string
}

type Seen = Pick<Evidence, 'steps' | 'samples' | 'counters' | 'underWayMax' | 'workersLost'>

async function crawl(given: Crawl): Promise<Seen> {
  const { scenario, order, web, cast, gateway, site, crawler } = given
  const consumer = new Consumer()
  const stage = stageOf(given, consumer)
  await crawler.add(urlsOf(site))
  const running = crawler.start(scenario.needs?.includes('consumer') === true ? { onPage: consumer.take } : {})
  await sleep((scenario.warmS ?? warmSUsual) * 1_000)
  const [first] = stage.concerned as [string]
  const sampler = new Sampler({
    crawler, concerned: cast.concerned,
    limit: (stats) => (gateway === undefined ? crawler.host(first)?.limit : stats.gateways?.[0]?.limit) ?? 0,
    tally: async () => (gateway === undefined ? (await web.takeTallies()).get(first) : gateway.takeTally()),
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
  const underWayMax = Math.max(...samples.map(({ bounds }) => bounds['connections']?.max ?? 0)) + limits.slotsMax + limits.pagesUnackedMax
  await crawler.close()
  return { steps, samples, workersLost, underWayMax, counters: { discovered, pending, done, failed, dropped, excluded } }
}

function* urlsOf(site: Site): Generator<string, void, void> {
  for (const { url } of site.allPages()) yield url
}

function stageOf({ web, cast, crawler, parser, gateway, dir }: Crawl, consumer: Consumer): Stage {
  return {
    web, crawler, allHosts: cast.allHosts, concerned: [...cast.concerned],
    behave: (hosts, behaviour) => web.behave(hosts, behaviour),
    setParser: (mood) => parser.set(mood),
    stallStore: (forMs) => lockStore(join(dir, 'store'), forMs),
    fillDisk: (isFull) => fillDisk(dir, isFull),
    cutNetwork,
    holdConsumer: (isHeld) => consumer.hold(isHeld),
    setGateway: (rules) => gateway!.setRules(rules),
  }
}

/**
 * Delays of the hosts, a second in the mean: were they all the same, pages would come in waves, and a window would count
 * one more or less.
 */
function hostLimitsOf({ delayMs = usualDelayMs, concernedDelayMs }: Scenario, { allHosts, concerned }: Cast, seed: number): (HostRule & { readonly delayMs: number })[] {
  return allHosts.map((hosts, host) => ({
    hosts, delayMs: concerned.has(hosts) && concernedDelayMs !== undefined ? concernedDelayMs : Math.round(delayMs * (0.75 + 0.5 * share(seed, host, 42))),
  }))
}

function paceOf({ allHosts, concerned }: Cast, rules: ReturnType<typeof hostLimitsOf>): Evidence['pace'] {
  const of = concerned.size === allHosts.length ? 'all' : 'others'
  return { of, pagesPerSecond: rules.filter(({ hosts }) => of === 'all' || !concerned.has(hosts)).reduce((sum, { delayMs }) => sum + 1_000 / delayMs, 0) }
}

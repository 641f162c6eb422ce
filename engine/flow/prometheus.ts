/**
 * The crawl's numbers in Prometheus's text format: one table of families, read from a snapshot when somebody scrapes.
 * Nothing is kept here between two scrapes, so what has gone (a host that is no longer among the worst) leaves no series.
 * No label holds a host but that of the worst twenty. Main thread; the only importer of prom-client.
 *
 * prom-client (15.1.3, Node 16 and later) writes the text and escapes it. Its own counters and histograms are not used: an
 * observation of its histogram builds and hashes a label object, and ours are counted for `stats()` anyway.
 */
import { Gauge, Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client'
import type { LoopTimes } from '../../threads/worker-registry.ts'
import type { Bound, GatewayStats, StagePressure, Stats } from '../core/api-types.ts'
import { histogramBoundsMs, type Histogram } from './histogram.ts'
import type { HostSurvey } from './host-survey.ts'
import { mainLoopTimes } from './loop-shares.ts'
import { placeNames, type Places } from './places.ts'
import type { PressureMeter } from './pressure.ts'

export interface MetricsSource {
  stats(): Stats
  survey(): HostSurvey
  workerLoops(): readonly LoopTimes[]
  readonly meter: PressureMeter
  readonly places: Pick<Places, 'staysIn'>
}

/** Taken once for each scrape. */
interface Snapshot {
  readonly stats: Stats
  readonly survey: HostSurvey
  readonly loops: readonly (readonly [string, LoopTimes])[]
}

interface Sample {
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
  /** Behind the name of the family: `_bucket`. */
  readonly suffix?: string
}

interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly read: (snapshot: Snapshot) => readonly Sample[]
}

/** A family as prom-client's registry asks for it. */
class FamilyMetric extends Gauge {
  readonly #family: Family
  readonly #snapshot: () => Snapshot

  constructor(family: Family, snapshot: () => Snapshot) {
    super({ name: `sluice_${family.name}`, help: family.help, registers: [] })
    this.#family = family
    this.#snapshot = snapshot
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const { help, name: short, read, type } = this.#family
    const name = `sluice_${short}`
    const values = read(this.#snapshot()).map(({ labels = {}, suffix = '', value }) => ({ labels, value, metricName: `${name}${suffix}` }))
    // The registry writes what stands here; the typings ask for more than it reads, and know the type of a gauge alone.
    return { name, help, type, values, aggregator: 'sum' } as unknown as MetricObjectWithValues<MetricValue<string>>
  }
}

export class Prometheus {
  readonly #registry = new Registry()
  readonly #source: MetricsSource
  #snapshot: Snapshot | undefined

  constructor(source: MetricsSource) {
    this.#source = source
    for (const family of [...crawlFamilies, ...pressureFamilies, ...latencyFamilies(source)]) this.#registry.registerMetric(new FamilyMetric(family, () => this.#snapshot ??= this.#take()))
  }

  text(): Promise<string> {
    this.#snapshot = this.#take()
    return this.#registry.metrics()
  }

  #take(): Snapshot {
    const { stats, survey, workerLoops } = this.#source
    const workers = workerLoops().map((loop, index) => [`worker_${index + 1}`, loop] as const)
    return { stats: stats(), survey: survey(), loops: [['main', mainLoopTimes()], ...workers] }
  }
}

function counter(name: string, help: string, read: (stats: Stats) => number): Family {
  return { name, type: 'counter', help, read: ({ stats }) => [{ value: read(stats) }] }
}

function gauge(name: string, help: string, read: (stats: Stats) => number): Family {
  return { name, type: 'gauge', help, read: ({ stats }) => [{ value: read(stats) }] }
}

/** One sample for each entry, under one label. */
function samples(label: string, entries: Iterable<readonly [string, number]>): Sample[] {
  return Array.from(entries, ([name, value]) => ({ labels: { [label]: name }, value }))
}

const shedActions = ['deferred', 'dropped', 'refused'] as const

const crawlFamilies: readonly Family[] = [
  counter('pages_total', 'Pages of the crawl: answers of servers that are stored.', ({ pages }) => pages),
  {
    name: 'urls', type: 'gauge', help: 'URLs of the crawl by their state.',
    read: ({ stats: { pending, done, failed, dropped, excluded } }) => samples('state', Object.entries({ pending, done, failed, dropped, excluded })),
  },
  {
    name: 'links_refused_total', type: 'counter', help: 'Links that never became URLs of the crawl, by reason.',
    read: ({ stats: { refused } }) => samples('reason', Object.entries(refused)),
  },
  counter('wire_bytes_total', 'Bytes of pages as received.', ({ wireBytes }) => wireBytes),
  counter('body_bytes_total', 'Bytes of pages, decoded.', ({ bodyBytes }) => bodyBytes),
  counter('fetches_total', 'Fetches of this process.', ({ fetches }) => fetches),
  counter('retries_total', 'Retries of the crawl.', ({ retries }) => retries),
  gauge('retry_share', 'Tries after the first as a share of all fetches of this process.', ({ retryShare }) => retryShare),
  counter('challenge_pages_total', 'Answers to this process that were a challenge in the place of the page.', ({ challenged }) => challenged),
  counter('block_pages_total', 'Answers to this process that said that it is blocked, in the place of the page.', ({ blocked }) => blocked),
  counter('workers_lost_total', 'Parse workers that died.', ({ workersLost }) => workersLost),
  gauge('hosts', 'Hosts with work that are in memory.', ({ hosts }) => hosts),
  gauge('hosts_unhealthy', 'Hosts in memory that rest, or are probed, because their health has sunk too low.', ({ hostsUnhealthy }) => hostsUnhealthy),
  counter('hosts_given_up_total', 'Hosts that this process gave up.', ({ hostsGivenUp }) => hostsGivenUp),
  counter('hosts_parked_total', 'Hosts that this process parked, because they ask to be paid.', ({ hostsParked }) => hostsParked),
  counter('network_downs_total', 'Times that the network here was found to be away.', ({ networkDowns }) => networkDowns),
  counter('network_down_seconds_total', 'Time in which the network here was away.', ({ networkDownMs }) => networkDownMs / 1_000),
  gauge('shedding', '1 while URLs give way because our own stages hold the crawl.', ({ shed }) => Number(shed.isShedding)),
  {
    name: 'shed_urls_total', type: 'counter', help: 'URLs that gave way: deferred (their turn, by the stage that held the crawl), dropped from the queue or refused, by what was full.',
    read: ({ stats: { shed } }) => shedActions.flatMap((action) => Object.entries(shed[action]).map(([reason, value]) => ({ labels: { action, reason }, value }))),
  },
  gateway('in_flight', 'gauge', 'Requests under way through each gateway.', ({ inFlight }) => inFlight),
  gateway('limit', 'gauge', 'Requests at once that each gateway is given now.', ({ limit }) => limit),
  gateway('paused', 'gauge', '1 while nothing goes through a gateway.', ({ pausedUntil }) => Number(pausedUntil !== undefined)),
  gateway('throttled_total', 'counter', 'Answers 429 of each gateway.', ({ throttled }) => throttled),
  gateway('quota_hits_total', 'counter', 'Answers of each gateway that its quota is spent.', ({ quotaHits }) => quotaHits),
  gateway('failures_total', 'counter', 'Failures of each gateway itself.', ({ failed }) => failed),
  gauge('resident_bytes', 'Resident memory of the engine.', ({ residentBytes }) => residentBytes),
  gauge('store_bytes', "Bytes in use of the store's file.", ({ store }) => store.bytesUsed),
  counter('commits_total', 'Transactions of this process.', ({ store }) => store.commits),
]

const pressureFamilies: readonly Family[] = [
  bound('used', 'What each bound holds.', ({ used }) => used),
  bound('limit', 'What each bound may hold now.', ({ limit }) => limit),
  bound('max', 'What each bound may hold at most.', ({ max }) => max),
  stage('depth', 'gauge', 'URLs in each stage.', ({ depth }) => depth),
  stage('oldest_seconds', 'gauge', 'Age of the URL that has been in a stage longest.', ({ oldestMs }) => oldestMs / 1_000),
  stage('refused_total', 'counter', 'Looks for another fetch that found no room in a stage.', ({ refused }) => refused),
  stage('blocked_total', 'counter', 'Times that a stage began to hold the crawl back.', ({ blocked }) => blocked),
  stage('blocked_seconds_total', 'counter', 'Time in which a stage held the crawl back.', ({ blockedMs }) => blockedMs / 1_000),
  { name: 'blocked_on', type: 'gauge', help: 'What holds the crawl back now: 1 for one cause.', read: ({ stats }) => samples('cause', [[stats.blockedOn, 1]]) },
  {
    name: 'blocked_seconds_total', type: 'counter', help: 'Time of this process by what held the crawl back.',
    read: ({ stats }) => samples('cause', Object.entries(stats.pressure.blockedMs).map(([cause, ms]) => [cause, ms / 1_000])),
  },
  counter('blocked_changes_total', 'Changes of what holds the crawl back.', ({ pressure }) => pressure.blockedChanges),
  { name: 'loop_busy_seconds_total', type: 'counter', help: 'Time in which an event loop was busy.', read: ({ loops }) => samples('loop', loops.map(([name, { busyMs }]) => [name, busyMs / 1_000])) },
  { name: 'loop_idle_seconds_total', type: 'counter', help: 'Time in which an event loop was idle.', read: ({ loops }) => samples('loop', loops.map(([name, { idleMs }]) => [name, idleMs / 1_000])) },
  { name: 'hosts_by_limit', type: 'gauge', help: 'Hosts in memory by their limit of requests at once, up to this and above the one before.', read: ({ survey }) => samples('limit', survey.byLimit.map(({ limitMax, hosts }) => [String(limitMax), hosts])) },
  {
    name: 'worst_host_health', type: 'gauge', help: 'Health of the hosts that are worst off, at most twenty.',
    read: ({ survey }) => survey.worst.map(({ name, health }, index) => ({ labels: { rank: String(index + 1), host: name }, value: health })),
  },
]

function bound(name: string, help: string, read: (bound: Bound) => number): Family {
  return { name: `bound_${name}`, type: 'gauge', help, read: ({ stats }) => samples('bound', stats.bounds.map((one) => [one.name, read(one)])) }
}

function gateway(name: string, type: Family['type'], help: string, read: (gateway: GatewayStats) => number): Family {
  return { name: `gateway_${name}`, type, help, read: ({ stats: { gateways = [] } }) => samples('gateway', gateways.map((one) => [one.name, read(one)])) }
}

function stage(name: string, type: Family['type'], help: string, read: (stage: StagePressure) => number): Family {
  return { name: `stage_${name}`, type, help, read: ({ stats }) => samples('stage', stats.pressure.stages.map((one) => [one.name, read(one)])) }
}

function latencyFamilies({ meter, places }: MetricsSource): readonly Family[] {
  return [
    latency('queue_age_seconds', 'How long URLs waited that could have started.', meter.queueAge),
    latency('ttfb_seconds', 'From a request to the first byte of its answer.', meter.ttfb),
    latency('fetch_seconds', 'A whole fetch, look-up and connection included.', meter.fetch),
    latency('parse_seconds', 'A page in the hands of its worker.', meter.parse),
    {
      name: 'stay_seconds', type: 'histogram', help: 'How long URLs stood in each place; of commit: from the end of a page until its outcome is stored.',
      read: () => placeNames.flatMap((place) => buckets(places.staysIn(place), { place })),
    },
  ]
}

function latency(name: string, help: string, histogram: Histogram): Family {
  return { name, type: 'histogram', help, read: () => buckets(histogram, {}) }
}

function buckets(histogram: Histogram, labels: Readonly<Record<string, string>>): Sample[] {
  let sum = 0
  const upTo = histogramBoundsMs.map((boundMs, index) => ({ suffix: '_bucket', labels: { ...labels, le: String(boundMs / 1_000) }, value: sum += histogram.counts[index]! }))
  return [
    ...upTo, { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: histogram.count },
    { suffix: '_sum', labels, value: histogram.sumMs / 1_000 }, { suffix: '_count', labels, value: histogram.count },
  ]
}

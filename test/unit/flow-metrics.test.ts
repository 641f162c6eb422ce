/** What Prometheus is told, and which hosts are told to be worst off. */
import { describe, expect, it } from 'vitest'
import type { HostPressure, Stats } from '../../engine/core/api-types.ts'
import { HostSurveys, surveyHosts } from '../../engine/flow/host-survey.ts'
import { Places } from '../../engine/flow/places.ts'
import { PressureMeter } from '../../engine/flow/pressure.ts'
import { Prometheus } from '../../engine/flow/prometheus.ts'
import { newHost, readySinceMs, Unit, type Host } from '../../engine/schedule/host.ts'
import { Limiter } from '../../engine/schedule/limiter.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { noPressure, statsWith } from '../support/cli.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { integer, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

function hostWith(name: string, facts: Partial<Host> & { readonly limit?: number } = {}): Host {
  const { limit = 4, ...rest } = facts
  return { ...newHost({ name, unit: new Unit(name, 32), limiter: new Limiter({ start: limit, floor: 1, ceiling: 10_000 }) }), ...rest }
}

describe('the worst hosts', () => {
  it('are the twenty that sorting all of them by health and age gives, and those without work are not among them', async () => {
    await withSeeds(20, (random) => {
      const hosts = Array.from({ length: integer(random, 200) }, (_, index) => hostWith(`h${index}.test`, {
        health: integer(random, 8) / 8, startedAtMs: index === 0 ? 0 : 1_000 + integer(random, 9_000) + index / 1_000, isDrained: random() < 0.2,
      }))
      const sorted = hosts.filter(({ isDrained }) => !isDrained).toSorted((a, b) => a.health - b.health || a.startedAtMs - b.startedAtMs)
      expect(surveyHosts(hosts, 10_000).worst.map(({ name }) => name)).toEqual(sorted.slice(0, 20).map(({ name }) => name))
    })
  })

  it('stand beside the count of all hosts by their limit', () => {
    const hosts = [1, 1, 2, 3, 4, 5, 32, 10_000].map((limit, index) => hostWith(`h${index}.test`, { limit }))
    expect(surveyHosts(hosts, 0).byLimit.filter(({ hosts }) => hosts > 0)).toEqual([
      { limitMax: 1, hosts: 2 }, { limitMax: 2, hosts: 1 }, { limitMax: 4, hosts: 2 }, { limitMax: 8, hosts: 1 }, { limitMax: 32, hosts: 1 }, { limitMax: 16_384, hosts: 1 },
    ])
  })

  it('are looked for once a second, however many ask', () => {
    const clock = new TestClock()
    const hosts = new Map([['a.test', hostWith('a.test')]])
    let looks = 0
    const counted = { get: () => undefined, values: () => (looks += 1, hosts.values()) } as unknown as ReadonlyMap<string, Host>
    const surveys = new HostSurveys(counted, clock)
    for (let times = 0; times < 100; times += 1) {
      expect(surveys.read().worst).toHaveLength(1)
      clock.advance(50)
    }
    expect(looks).toBe(5)
  })
})

/** The text format 0.0.4: a comment, or a name with labels and a number. */
const LINE = /^(?:# HELP [a-z_]+ \S.*|# TYPE ([a-z_]+) (?:counter|gauge|histogram)|([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (?:[-+]?[\d.]+(?:e[-+]?\d+)?|[-+]Inf|NaN))$/

function sourceWith(worst: readonly HostPressure[] = [], given: Partial<Stats> = {}): { prometheus: Prometheus; meter: PressureMeter; places: Places; clock: TestClock } {
  const clock = new TestClock()
  const [meter, places] = [new PressureMeter(clock.nowMs()), new Places(clock)]
  const stats = statsWith({
    pages: 7, bounds: [{ name: 'slots', unit: 'items', used: 3, limit: 8, max: 8, derivedFrom: 'its size' }], blockedOn: 'commit',
    pressure: { ...noPressure, stages: [{ name: 'commit', depth: 2, oldestMs: 1_500, refused: 9, blocked: 1, blockedMs: 250 }], blockedMs: { commit: 250, nothing: 750 } }, ...given,
  })
  const prometheus = new Prometheus({ stats: () => stats, survey: () => ({ worst: [...worst], byLimit: [{ limitMax: 4, hosts: 3 }] }), workerLoops: () => [{ busyMs: 1_500, idleMs: 500 }], meter, places })
  return { prometheus, meter, places, clock }
}

describe('the text for Prometheus', () => {
  const worstHost = (name: string): HostPressure => ({ name, health: 0.5, idleMs: 1, inFlight: 0, limit: 1, waitMs: 0, failures: 0 })

  it('is lines of its format, every family with its help and type before its samples, and no series twice', async () => {
    const { prometheus } = sourceWith([worstHost('a.test'), worstHost('quote".test'), worstHost('b\\\n.test')])
    const lines = (await prometheus.text()).split('\n').filter((line) => line !== '')
    expect(lines.filter((line) => !LINE.test(line))).toEqual([])
    const types = lines.flatMap((line) => LINE.exec(line)?.[1] ?? [])
    const series = lines.filter((line) => !line.startsWith('#')).map((line) => line.slice(0, line.lastIndexOf(' ')))
    expect(new Set(types).size).toBe(types.length)
    expect(new Set(series).size).toBe(series.length)
    expect(series.filter((name) => !types.some((type) => name.startsWith(type)) || !name.startsWith('sluice_'))).toEqual([])
  })

  it('tells stages, bounds, causes and loops in seconds', async () => {
    const text = await sourceWith().prometheus.text()
    for (const line of [
      'sluice_pages_total 7', 'sluice_bound_max{bound="slots"} 8', 'sluice_stage_oldest_seconds{stage="commit"} 1.5', 'sluice_stage_refused_total{stage="commit"} 9',
      'sluice_blocked_on{cause="commit"} 1', 'sluice_blocked_seconds_total{cause="nothing"} 0.75', 'sluice_loop_busy_seconds_total{loop="worker_1"} 1.5',
      'sluice_hosts_by_limit{limit="4"} 3',
    ]) expect(text.split('\n')).toContain(line)
  })

  it('tells what went wrong: gateways, walls, the network, hosts that are ill, given up or parked, and what was shed', async () => {
    const full = { host_full: 0, domain_full: 0, queue_full: 3, store_full: 0 }
    const text = await sourceWith([], {
      challenged: 2, blocked: 1, networkDowns: 1, networkDownMs: 1_500, hostsUnhealthy: 4, hostsGivenUp: 5, hostsParked: 6, shed: { isShedding: true, deferred: { commit: 7 }, dropped: full, refused: full },
      gateways: [{ name: 'one', limit: 8, inFlight: 3, throttled: 9, quotaHits: 1, failed: 2, pausedUntil: 'resume' }],
    }).prometheus.text()
    for (const line of [
      'challenge_pages_total 2', 'block_pages_total 1', 'network_downs_total 1', 'network_down_seconds_total 1.5', 'hosts_unhealthy 4', 'hosts_given_up_total 5', 'hosts_parked_total 6', 'shedding 1',
      'shed_urls_total{action="deferred",reason="commit"} 7', 'shed_urls_total{action="dropped",reason="queue_full"} 3', 'gateway_limit{gateway="one"} 8', 'gateway_in_flight{gateway="one"} 3',
      'gateway_paused{gateway="one"} 1', 'gateway_throttled_total{gateway="one"} 9', 'gateway_quota_hits_total{gateway="one"} 1', 'gateway_failures_total{gateway="one"} 2',
    ]) expect(text.split('\n')).toContain(`sluice_${line}`)
  })

  it('has histograms whose buckets add up, those observed since the last scrape among them', async () => {
    const { prometheus, meter, places, clock } = sourceWith()
    await prometheus.text()
    for (const ms of [1, 1, 30, 1_000_000]) meter.ttfb.observe(ms)
    places.enter(1)
    clock.advance(20)
    places.leave(1)
    const lines = (await prometheus.text()).split('\n')
    expect(lines.filter((line) => /^sluice_ttfb_seconds_(?:sum|count|bucket\{le="(?:0.001|0.02|0.05|500|\+Inf)"\})/.test(line))).toEqual([
      'sluice_ttfb_seconds_bucket{le="0.001"} 2', 'sluice_ttfb_seconds_bucket{le="0.02"} 2', 'sluice_ttfb_seconds_bucket{le="0.05"} 3',
      'sluice_ttfb_seconds_bucket{le="500"} 3', 'sluice_ttfb_seconds_bucket{le="+Inf"} 4', 'sluice_ttfb_seconds_sum 1000.032', 'sluice_ttfb_seconds_count 4',
    ])
    expect(lines).toContain('sluice_stay_seconds_bucket{place="claimed",le="0.02"} 1')
    expect(lines).toContain('sluice_stay_seconds_bucket{place="claimed",le="0.01"} 0')
  })

  it('names a host only among the worst, with its rank, and no longer than it is one of them', async () => {
    const worst = [worstHost('a.test'), worstHost('b.test')]
    const { prometheus } = sourceWith(worst)
    const hostsOf = async (): Promise<string[]> => (await prometheus.text()).split('\n').filter((line) => line.includes('.test'))
    expect(await hostsOf()).toEqual(['sluice_worst_host_health{rank="1",host="a.test"} 0.5', 'sluice_worst_host_health{rank="2",host="b.test"} 0.5'])
    worst.shift()
    expect(await hostsOf()).toEqual(['sluice_worst_host_health{rank="1",host="b.test"} 0.5'])
  })
})

describe('the age of a URL that could have started', () => {
  function schedulerWith(delayMs: number, limit: number): { scheduler: Scheduler; clock: TestClock } {
    const [clock, frontier] = [new TestClock(), new MemoryFrontier()]
    frontier.add('a.test', 9)
    const scheduler = new Scheduler({
      store: frontier, clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: () => {},
      options: { concurrency: { start: limit, floor: 1, ceiling: limit }, delayMs, retries: 2 },
    } as ConstructorParameters<typeof Scheduler>[0])
    scheduler.open(false)
    return { scheduler, clock }
  }

  /** Starts the URL whose turn it is; answers how long it could have started before. */
  function start(scheduler: Scheduler, clock: TestClock): { readonly ageMs: number; end(): void } {
    const candidate = scheduler.candidate()!
    const ageMs = clock.nowMs() - readySinceMs(candidate.host)
    const lease = scheduler.start(candidate)
    scheduler.sent(lease.host, lease)
    return { ageMs, end: () => void scheduler.release(lease, { ok: true }) }
  }

  it('counts from the end of the delay, and not the delay', () => {
    const { scheduler, clock } = schedulerWith(1_000, 4)
    clock.advance(70)
    expect(start(scheduler, clock).ageMs).toBe(70)
    clock.advance(1_300)
    expect(start(scheduler, clock).ageMs).toBe(300)
  })

  it("counts from the answer that made room at the host's limit", () => {
    const { scheduler, clock } = schedulerWith(0, 1)
    const first = start(scheduler, clock)
    clock.advance(500)
    expect(scheduler.candidate()).toBeUndefined()
    first.end()
    clock.advance(200)
    expect(start(scheduler, clock).ageMs).toBe(200)
  })

  it('counts from the start before it where the host has room for more', () => {
    const { scheduler, clock } = schedulerWith(0, 4)
    start(scheduler, clock)
    clock.advance(40)
    expect([start(scheduler, clock).ageMs, start(scheduler, clock).ageMs]).toEqual([40, 0])
  })
})

/**
 * What the stages hold and wait for, put together when somebody asks: from where leased URLs stand (flow/places.ts), what
 * the crawl is blocked on (flow/blocked.ts), the page ring's own words and the meters. Reads, never writes. Main thread.
 */
import type { BlockedOn, LatencySummary, Pressure, StageName, StagePressure } from './core/api-types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import type { Histogram } from './flow/histogram.ts'
import type { PlaceName } from './flow/places.ts'
import type { PressureMeter } from './flow/pressure.ts'

export interface PressureSource {
  readonly parts: Pick<CrawlParts, 'clock' | 'pool' | 'scheduler'>
  readonly meter: PressureMeter
}

/** Which stage has no room when the crawl is blocked on this. Other causes lie outside the stages. */
const causesOf: Readonly<Record<StageName, readonly BlockedOn[]>> = {
  claimed: ['politeness'],
  fetch: ['connections', 'loop', 'memory', 'rate', 'bandwidth', 'network_down', 'gateway'],
  received: ['body_bytes'], slots: ['page_ring'], done: [], window: ['consumer'], commit: ['commit', 'disk', 'store_full'],
}

export function stagesOf({ parts, meter }: PressureSource): readonly StagePressure[] {
  const { clock, pool, scheduler: { places } } = parts
  const [nowMs, ring] = [clock.nowMs(), pool.stats()]
  const stage = (name: StageName, depth: number, oldestMs: number): StagePressure => {
    const causes = causesOf[name].map((on) => meter.blocked.of(on, nowMs))
    const sumOf = (field: 'ms' | 'times' | 'refused'): number => causes.reduce((sum, cause) => sum + cause[field], 0)
    return { name, depth, oldestMs: tenths(oldestMs), refused: sumOf('refused'), blocked: sumOf('times'), blockedMs: Math.round(sumOf('ms')) }
  }
  const place = (name: PlaceName): StagePressure => stage(name, places.depthOf(name), places.oldestMsOf(name))
  return [
    place('claimed'), place('fetch'), place('received'),
    stage('slots', ring.filled + ring.taken, ring.oldestUnreadMs ?? 0), stage('done', ring.done, ring.oldestDoneMs ?? 0),
    place('window'), place('commit'),
  ]
}

export function pressureOf(source: PressureSource, workers: readonly number[]): Pressure {
  const { parts: { clock, scheduler: { places } }, meter } = source
  const { blocked, fetch, parse, queueAge, ttfb } = meter
  const nowMs = clock.nowMs()
  return {
    stages: stagesOf(source), blockedForMs: Math.round(blocked.forMs(nowMs)), blockedChanges: blocked.changes,
    blockedMs: Object.fromEntries(Object.entries(blocked.times(nowMs)).map(([on, ms]) => [on, Math.round(ms)])),
    workerUtilizations: workers,
    latencies: { queueAge: summaryOf(queueAge), ttfb: summaryOf(ttfb), fetch: summaryOf(fetch), parse: summaryOf(parse), commit: summaryOf(places.staysIn('commit')) },
  }
}

function summaryOf(histogram: Histogram): LatencySummary {
  const { count } = histogram
  return { count, meanMs: count === 0 ? 0 : tenths(histogram.sumMs / count), p50Ms: histogram.quantileMs(0.5), p95Ms: histogram.quantileMs(0.95), p99Ms: histogram.quantileMs(0.99) }
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

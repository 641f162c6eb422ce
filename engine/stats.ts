/**
 * The snapshot that `stats()` gives: every bound with its fill, and what holds the crawl back. Reads, never writes.
 * Main thread.
 */
import type { CrawlState, FlowCounts, HostPressure, HostStats, Stats, Summary } from './core/api-types.ts'
import type { Counters } from './core/types.ts'
import type { CrawlLoop } from './crawl-loop.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { boundTable } from './flow/bound-table.ts'
import { sharesOf } from './flow/host-survey.ts'
import { LoopShares } from './flow/loop-shares.ts'
import type { Settled } from './parse-stage.ts'
import { pressureOf } from './pressure.ts'
import type { Run } from './run.ts'
import { givenUpOf, parkedStats, restsOf } from './schedule/host-memory.ts'
import { robotsStatsOf } from './web/robots-stats.ts'

/** Utilisation of the loops between two looks, 0 to 1. Each reader has its own, so that none shortens the time of another. */
export class LoopMeter {
  readonly workers = new LoopShares()
  #last = performance.eventLoopUtilization()

  read(): number {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, this.#last)
    this.#last = now
    return Math.round(utilization * 1_000) / 1_000
  }
}

export interface StatsSource {
  readonly parts: CrawlParts
  readonly loop: CrawlLoop
  readonly meter: LoopMeter
  readonly state: CrawlState
  readonly run: Run<Settled> | undefined
  readonly elapsedMs: number
  /** Of this process. */
  readonly fetches: number
}

export function statsOf({ parts, loop, meter, state, run, elapsedMs, fetches }: StatsSource): Stats {
  const { commits, fetcher, gate, options, pool, scheduler, store } = parts
  const [counters, nextDueAtMs] = [store.counters(), store.nextDueAtMs()]
  const [slots, sockets] = [pool.stats(), fetcher.stats()]
  const bounds = boundTable({
    gate, inFlight: loop.inFlight, received: loop.receivedCount, slotsUsed: slots.slots - slots.free,
    window: run?.window, commits, sockets, hosts: scheduler.hosts.size,
  })
  return Object.freeze({
    ...counters, state, blockedOn: loop.blockedOn, leased: scheduler.leasedCount, inFlight: loop.inFlight, hosts: scheduler.hosts.size,
    retryShare: scheduler.retries.share, fetches, ...flowCountsOf(parts, loop), commitLagMs: Math.round(commits.lagMs),
    loopUtilization: meter.read(), workersLost: slots.workersLost, linksDroppedKnown: loop.linksKnown,
    store: store.stats(), ...(nextDueAtMs !== undefined && { nextDueAtMs }), durability: options.durability, bounds,
    pressure: pressureOf({ parts, meter: loop.meter }, meter.workers.read(slots.loops ?? [])), residentBytes: process.memoryUsage.rss(), elapsedMs,
  })
}

function flowCountsOf({ gateways, network, scheduler }: CrawlParts, { shed, walls }: CrawlLoop): FlowCounts {
  return { networkDowns: network.downs, networkDownMs: Math.round(network.downMs), hostsUnhealthy: scheduler.sets.unwell.size, ...scheduler.rulingCounts, ...walls, shed, ...(gateways && { gateways: gateways.stats() }) }
}

/** How a crawl stands, as `sluice status --json` and /status.json tell it. */
export function statusOf({ state, pages, failed, pending, ...rest }: Counters & { readonly state: string; readonly worstHosts?: readonly HostPressure[]; readonly pid?: number }): object {
  return { state, pages, failed, queued: pending, ...rest }
}

export function summaryOf(parts: CrawlParts, run: Run<Settled>, loop: CrawlLoop): Summary {
  const [{ error }, nextDueAtMs] = [run, parts.store.nextDueAtMs()]
  return Object.freeze({
    ...parts.store.counters(), state: run.reason ?? 'stopped', pagesThisRun: run.pagesStored, fetchesThisRun: run.fetches, parked: loop.parked, ...(nextDueAtMs !== undefined && { nextDueAtMs }),
    elapsedMs: Math.round(parts.clock.nowMs() - run.startedAtMs), flow: flowCountsOf(parts, loop),
    ...(error && { error: { code: error.code, message: error.message } }),
  })
}

export function hostStatsOf(parts: CrawlParts, name: string): HostStats | undefined {
  const record = parts.store.host(name)
  if (record === undefined) return undefined
  const host = parts.scheduler.host(name)
  const { restMs, backoffMs, retryAfterMs } = restsOf(host, record, parts.clock)
  const [code, givenUp, parked] = host === undefined ? [record.failureCode, record.givenUp, record.parked] : [host.failureCode, givenUpOf(host), host.parked]
  return Object.freeze({
    name, pending: record.pending, excluded: record.excluded === true || host?.ended?.outcome === 'excluded', inFlight: host?.limiter.inFlight ?? 0,
    limit: host?.limiter.limit ?? record.limit ?? parts.options.concurrency.start,
    delayMs: Math.max(host?.delayMs ?? parts.options.delayMs, host?.crawlDelayMs ?? record.crawlDelayMs ?? 0),
    // Of its clocks alone, since a host without work is never ready. A unit's clock stands while a request of it is being
    // connected.
    waitMs: Math.max(restMs, host?.unit.holder === undefined ? (host?.unit.nextStartAtMs ?? 0) - parts.clock.nowMs() : 0),
    backoffMs, retryAfterMs, paceMs: Math.round(Math.max(0, (host?.paceUntilMs ?? 0) - parts.clock.nowMs())), ...sharesOf(host), health: Math.round((host?.health ?? record.health ?? 1) * 100) / 100,
    unhealthy: host?.healthFacts?.isUnwell === true,
    failures: host?.failures ?? record.failures ?? 0, ...(code !== undefined && { failureCode: code }),
    ...(givenUp !== undefined && { givenUp: { code: givenUp.code, at: new Date(givenUp.atMs).toISOString() } }),
    ...(parked !== undefined && { parked: parkedStats(parked) }), robots: robotsStatsOf(record.robots),
  })
}

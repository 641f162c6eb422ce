/**
 * A host with work, and the politeness unit that it belongs to. Plain state with the few questions that can be
 * answered from it alone; the scheduler moves it. Only hosts with work are in memory. Main thread.
 *
 *     Unit (host, registrable domain or IP)          Host
 *       nextStartAtMs  no start before this            claimed   URLs read ahead from the store, best first
 *       hosts: heap by readyAtMs  ------------------>  leased    sequences of claimed URLs without a stored outcome
 *                                                      limiter   how many may be under way
 */
import type { HostRecord } from '../../storage/store.ts'
import type { FailureCode } from '../core/errors.ts'
import type { QueuedUrl } from '../core/types.ts'
import { Heap, type HeapItem } from './heap.ts'
import type { Limiter } from './limiter.ts'

export interface Unit extends HeapItem {
  readonly name: string
  /** The unit's clock: no start before this (monotonic). */
  nextStartAtMs: number
  /** Whose request has started and not yet been sent; until it is, nothing else of the unit starts. */
  holder: object | undefined
  /** Hosts that could start, soonest first. */
  readonly hosts: Heap<Host>
  /** Hosts in memory that belong here, those in the heap and those that wait for something else. */
  hostsCount: number
}

export interface Host extends HeapItem {
  readonly name: string
  readonly unit: Unit
  readonly limiter: Limiter
  /** The heap that it lies in: its unit's when it could start, the idle hosts' when there is nothing to do. */
  place: Heap<Host> | undefined
  /** Claimed and not yet started, best first. */
  readonly claimed: QueuedUrl[]
  /** Sequences of URLs that were claimed and whose outcome is not stored. */
  readonly leased: Set<number>
  /** The store had no more due rows at the last claim; a commit that adds some says so. */
  isDrained: boolean
  /** When the store's earliest deferred row falls due (monotonic). */
  dueAtMs: number
  /** Back-off and Retry-After (monotonic). */
  restUntilMs: number
  /** When a URL was last taken or started, for turns among the hosts of one unit. */
  startedAtMs: number
  /** While idle: when it may be forgotten, as far as is known. */
  forgetAtMs: number
  crawlDelayMs: number
  delayMs: number | undefined
  /** Failures of the host in a row, since which moment, and the latest cause. */
  failures: number
  failedAtMs: number
  failureCode: FailureCode | undefined
  /** Sequences of the URLs whose tries failed with it and that are in hand again. */
  readonly refused: Set<number>
  /** Waits for a verdict of robots.txt. */
  isGated: boolean
  /** Its URLs end without a fetch. */
  ended: { readonly outcome: 'failed'; readonly code: FailureCode } | { readonly outcome: 'excluded' } | undefined
}

export function newUnit(name: string): Unit {
  return {
    name, nextStartAtMs: 0, holder: undefined, heapIndex: -1, hostsCount: 0,
    hosts: new Heap<Host>((a, b) => turnAtMs(a) < turnAtMs(b)),
  }
}

export function newHost(record: Pick<HostRecord, 'name' | 'excluded' | 'crawlDelayMs'>, unit: Unit, limiter: Limiter): Host {
  return {
    name: record.name, unit, limiter, claimed: [], leased: new Set(), heapIndex: -1, place: undefined,
    isDrained: false, dueAtMs: Number.POSITIVE_INFINITY, restUntilMs: 0,
    startedAtMs: 0, forgetAtMs: 0, crawlDelayMs: record.crawlDelayMs ?? 0, delayMs: undefined,
    failures: 0, failedAtMs: Number.NEGATIVE_INFINITY, failureCode: undefined, refused: new Set(), isGated: false,
    ended: record.excluded === true ? { outcome: 'excluded' } : undefined,
  }
}

/** The next moment at which the host itself would let a URL go: its rest unless it has ended, or the first deferred row when nothing else is left. */
export function readyAtMs(host: Host): number {
  const workAtMs = host.claimed.length > 0 || !host.isDrained ? 0 : host.dueAtMs
  return host.ended === undefined ? Math.max(host.restUntilMs, workAtMs) : workAtMs
}

/**
 * Order among the hosts of a unit. A last start is never in the future, so the later of both is in the future exactly
 * when the host is not ready; among those that are ready, the one that waits longest for its turn is first, whether or
 * not it once rested. Ended hosts cost no fetch and go before all.
 */
function turnAtMs(host: Host): number {
  return host.ended === undefined ? Math.max(readyAtMs(host), host.startedAtMs) : readyAtMs(host)
}

/** When the unit may start a URL of its first host. Ended hosts wait for no clock of their unit, only for their turn among units. */
export function unitReadyAtMs(unit: Unit): number {
  const host = unit.hosts.peek()
  if (host === undefined) return Number.POSITIVE_INFINITY
  if (host.ended !== undefined) return Math.max(host.startedAtMs, readyAtMs(host))
  return unit.holder === undefined ? Math.max(unit.nextStartAtMs, readyAtMs(host)) : Number.POSITIVE_INFINITY
}

/** Until then its clocks still run: forgotten before, a host that comes back would be hit too soon. */
export function clocksUntilMs(host: Host): number {
  const { hostsCount, nextStartAtMs } = host.unit
  // The clock of a unit lives as long as one of its hosts is in memory.
  return hostsCount > 1 ? host.restUntilMs : Math.max(host.restUntilMs, nextStartAtMs)
}

/** There is something to claim or to start, now or later. */
export function hasWork(host: Host): boolean {
  return host.claimed.length > 0 || !host.isDrained || host.dueAtMs < Number.POSITIVE_INFINITY
}

/** Nothing to do and nothing under way. */
export function isIdle(host: Host): boolean {
  return !hasWork(host) && host.leased.size === 0 && host.limiter.inFlight === 0 && !host.isGated
}

/** The host waits because of a failure, not because of its pace. */
export function isResting(host: Host, nowMs: number): boolean {
  return readyAtMs(host) > nowMs
}

/** When every one of them rests: the end of the first rest. */
export function firstRestEndMs(hosts: Iterable<Host>, nowMs: number): number | undefined {
  let untilMs = Number.POSITIVE_INFINITY
  for (const host of hosts) {
    if (host.isGated || !isResting(host, nowMs)) return undefined
    untilMs = Math.min(untilMs, readyAtMs(host))
  }
  return untilMs === Number.POSITIVE_INFINITY ? undefined : untilMs
}

/** Neither full, nor behind its gate, nor probing with a URL that is still under way. */
export function canStart(host: Host): boolean {
  if (host.ended !== undefined) return hasWork(host)
  if (host.isGated || host.limiter.isFull || !hasWork(host)) return false
  return host.failures === 0 || host.limiter.inFlight === 0
}

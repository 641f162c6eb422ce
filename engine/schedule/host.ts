/**
 * A host with work, and the politeness unit that it belongs to. Plain state with the few questions that can be
 * answered from it alone; the scheduler moves it. Only hosts with work are in memory, a hundred thousand of them, so
 * what most hosts do not need is made when it is needed. Main thread.
 *
 *     Unit (host, registrable domain or IP)                   Host
 *       nextStartAtMs  no start before this                     claimed   the hand: URLs read ahead from the store
 *       first, later: lanes, heaps of hosts by turn  -------->  leased    sequences of claimed URLs without a stored outcome
 *       inFlight, ceiling: of its hosts together                limiter   how many may be under way
 *                                                               caps      bounds that it shares with hosts of other units
 *
 * The hand holds URLs of the first class, best first, then those of the later class (over their domain's budget). A host
 * lies in the later lane when neither its hand nor the store has anything else.
 */
import type { HostRecord } from '../../storage/store.ts'
import type { FailureCode } from '../core/errors.ts'
import type { QueuedUrl } from '../core/types.ts'
import type { Health } from './health.ts'
import { Heap, type HeapItem } from './heap.ts'
import type { Limiter, StartedRequest } from './limiter.ts'
import type { TokenBucket } from './retry-budget.ts'
import type { SharedCap } from './shared-cap.ts'

/** Hosts of a unit that could start a URL of one class, soonest first. */
export class Lane extends Heap<Host> implements HeapItem {
  readonly unit: Unit
  heapIndex = -1
  /** Its place in `Turns`: whether it lies among those that may start, and where. */
  isReady = false
  rankMs = 0
  order = 0

  constructor(unit: Unit) {
    super(hasEarlierTurn)
    this.unit = unit
  }
}

export class Unit {
  readonly name: string
  /** The unit's clock: no start before this (monotonic). */
  nextStartAtMs = 0
  /** Requests of its hosts under way, and how many there may be. */
  inFlight = 0
  ceiling: number
  /** Whose request has started and not yet been sent; until it is, nothing else of the unit starts. */
  holder: object | undefined
  readonly first = new Lane(this)
  later: Lane | undefined
  /** Hosts in memory that belong here, those in the lanes and those that wait for something else. */
  hostsCount = 0

  constructor(name: string, ceiling = Number.POSITIVE_INFINITY) {
    this.name = name
    this.ceiling = ceiling
  }
}

export interface Host extends HeapItem {
  readonly name: string
  readonly unit: Unit
  readonly limiter: Limiter
  /** Bounds that it shares with hosts of other units; absent when there are none. */
  readonly caps: readonly SharedCap[] | undefined
  /** The one that it found full when its turn came. */
  waitsAt: SharedCap | undefined
  /** Starts in one turn, and what is left of them in this one. */
  weight: number
  turnsLeft: number
  /** The heap that it lies in: a lane of its unit when it could start, the idle hosts' when there is nothing to do. */
  place: Heap<Host> | undefined
  /** The hand: claimed and not yet started. */
  readonly claimed: QueuedUrl[]
  /** Sequences of URLs that were claimed and whose outcome is not stored; absent when there are none. */
  leased: Set<number> | undefined
  /** The store had no more due rows at the last claim; a commit that adds some says so. */
  isDrained: boolean
  /** The store had no more due rows of the first class at the last claim. */
  isFirstDrained: boolean
  /** When the store's earliest deferred row falls due (monotonic). */
  dueAtMs: number
  /** While the hand holds nothing but retries: when one may go. Infinity: when the crawl has a token for it. See retry-budget.ts. */
  retryAtMs: number
  /** Absent while it is full. */
  retryTokens: TokenBucket | undefined
  /** Ends of its rests (monotonic): the one that we chose, and the one that the server asked for. */
  backoffUntilMs: number
  retryAfterUntilMs: number
  /** When a URL was last taken or started, and when the last turn ended, for turns among hosts. */
  startedAtMs: number
  turnEndedAtMs: number
  /** When it came to its place; see `readySinceMs`. */
  placedAtMs: number
  /** While idle: when it may be forgotten, as far as is known. */
  forgetAtMs: number
  crawlDelayMs: number
  delayMs: number | undefined
  /** End of its own pace, which its limiter asks for below one request at a time (monotonic). */
  paceUntilMs: number
  /** Failures of the host in a row, when the first and the last began to count, and the latest cause. */
  failures: number
  failingSinceMs: number
  failedAtMs: number
  failureCode: FailureCode | undefined
  /** Its failures when a page of it was last found to be a wall; 0 when one was read since. */
  wallFailures: number
  /** How many may be under way while it goes on after a failure; infinity when that is over. */
  rampMax: number
  /** Bytes of its latest bodies, and how many of them its share of the bytes in flight holds; see `noteBody`. */
  bodyBytes: number
  bodiesMax: number
  /** From 0 to 1 after its last answer, and what it is made of; absent while all is well. See health.ts. */
  health: number
  healthFacts: Health | undefined
  /** It answered this process before. */
  hasAnswered: boolean
  /** Or an earlier one, or before it was last forgotten. */
  answeredOnce: boolean
  /** Sequences of the URLs whose tries failed with it and that are in hand again; absent when there are none. */
  refused: Set<number> | undefined
  /** Waits for a verdict of robots.txt. */
  isGated: boolean
  /** Its URLs end without a fetch. */
  ended: { readonly outcome: 'failed'; readonly code: FailureCode } | { readonly outcome: 'excluded' } | undefined
  /** It asks for something that we do not have, and when it did so first (wall clock): nothing is asked of it until somebody wants it. */
  parked: { readonly code: FailureCode; readonly price?: string; readonly atMs: number } | undefined
  /** When it was given up (wall clock). */
  givenUpAtMs: number | undefined
  /** Of what is stored of it: what may drift away from that without being worth a row each time. */
  storedLimit: number
  storedLimitMemory: HostRecord['limitMemory']
  storedHealth: number
}

/** A URL whose turn it is; not yet started. */
export interface Candidate {
  readonly host: Host
  readonly url: QueuedUrl
}

/** A URL that is being fetched. */
export interface Lease extends Candidate, StartedRequest {
  /** A delay lies between its request and the next one of its unit. */
  readonly isPaced: boolean
}

export function newHost({ name, unit, limiter, caps }: Pick<Host, 'name' | 'unit' | 'limiter'> & { readonly caps?: readonly SharedCap[] | undefined }): Host {
  return {
    name, unit, limiter, caps, waitsAt: undefined, weight: 1, turnsLeft: 1, paceUntilMs: 0, claimed: [], leased: undefined, heapIndex: -1, place: undefined,
    isDrained: false, isFirstDrained: false, dueAtMs: Number.POSITIVE_INFINITY, retryAtMs: 0, retryTokens: undefined, backoffUntilMs: 0, retryAfterUntilMs: 0,
    startedAtMs: 0, turnEndedAtMs: 0, placedAtMs: 0, forgetAtMs: 0, crawlDelayMs: 0, delayMs: undefined,
    failures: 0, failingSinceMs: 0, failedAtMs: Number.NEGATIVE_INFINITY, failureCode: undefined, wallFailures: 0, rampMax: Number.POSITIVE_INFINITY, bodyBytes: 0, bodiesMax: Number.POSITIVE_INFINITY,
    health: 1, healthFacts: undefined, hasAnswered: false, answeredOnce: false, refused: undefined, isGated: false,
    ended: undefined, parked: undefined, givenUpAtMs: undefined, storedLimit: limiter.limit, storedLimitMemory: undefined, storedHealth: 1,
  }
}

export function restUntilMs(host: Host): number {
  return Math.max(host.backoffUntilMs, host.retryAfterUntilMs)
}

/** The URL was fetched before, or its host refused it while it rested. */
export function isRetry({ refused }: Pick<Host, 'refused'>, { attempts, sequence }: QueuedUrl): boolean {
  return attempts > 0 || refused?.has(sequence) === true
}

/** When something that was deferred, or that waits to be tried again, may go: 0 when there is other work. */
function workAtMs({ claimed, isDrained, isFirstDrained, dueAtMs, retryAtMs, ended }: Host): number {
  if (claimed.length === 0) return isDrained ? dueAtMs : 0
  return isFirstDrained && ended === undefined ? retryAtMs : 0
}

/** The next URL is of the later class. A row that was deferred is of the first, and what is not known may be. */
export function isLaterNext({ claimed, isDrained, isFirstDrained }: Host): boolean {
  return isFirstDrained && (claimed.length === 0 ? !isDrained : claimed[0]!.isLater === true)
}

/** The hand has nothing to start, or the store may have better: a few bad URLs in a row are no bad host, and later ones wait. */
export function needsClaim({ claimed, isDrained, isFirstDrained, refused }: Host, mayRetry: boolean): boolean {
  const [next] = claimed
  if (next === undefined) return true
  if (isDrained) return false
  if (next.isLater === true && !isFirstDrained) return true
  if (!mayRetry && !isFirstDrained && claimed.every((url) => isRetry({ refused }, url))) return true
  return refused !== undefined && claimed.every(({ sequence }) => refused.has(sequence))
}

/** Puts URLs into the hand, before or behind the others of their class. */
export function putInHand(host: Host, urls: readonly QueuedUrl[], where: 'before' | 'behind'): void {
  const { claimed } = host
  host.retryAtMs = 0
  const firstLater = claimed.findIndex(({ isLater }) => isLater === true)
  const edge = firstLater === -1 ? claimed.length : firstLater
  const [first, later] = [urls.filter(({ isLater }) => isLater !== true), urls.filter(({ isLater }) => isLater === true)]
  claimed.splice(where === 'before' ? edge : claimed.length, 0, ...later)
  claimed.splice(where === 'before' ? 0 : edge, 0, ...first)
}

/** The next moment at which the host itself would let a URL go: its rest and its pace unless it has ended, or the first deferred row when nothing else is left. */
export function readyAtMs(host: Host): number {
  return host.ended === undefined ? Math.max(restUntilMs(host), host.paceUntilMs, workAtMs(host)) : workAtMs(host)
}

/**
 * Order among the hosts of a unit. The end of a turn is never in the future, so the later of both is in the future exactly
 * when the host is not ready; among those that are ready, the one that waits longest for its turn is first, whether or
 * not it once rested. Ended hosts cost no fetch and go before all.
 */
function turnAtMs(host: Host): number {
  return host.ended === undefined ? Math.max(readyAtMs(host), host.turnEndedAtMs) : readyAtMs(host)
}

function hasEarlierTurn(one: Host, other: Host): boolean {
  return turnAtMs(one) < turnAtMs(other)
}

/** When the unit may start a URL of the lane's first host. Ended hosts wait for no clock of their unit, only for their turn among units. */
export function laneReadyAtMs(lane: Lane): number {
  const { unit } = lane
  const host = lane.peek()
  if (host === undefined) return Number.POSITIVE_INFINITY
  if (host.ended !== undefined) return Math.max(host.turnEndedAtMs, readyAtMs(host))
  const isHeld = unit.holder !== undefined || unit.inFlight >= unit.ceiling
  return isHeld ? Number.POSITIVE_INFINITY : Math.max(unit.nextStartAtMs, readyAtMs(host))
}

/** Since when a host that may start could have: nothing of its own or of its unit has held it back since. */
export function readySinceMs(host: Host): number {
  return Math.max(host.placedAtMs, host.startedAtMs, host.unit.nextStartAtMs, readyAtMs(host))
}

/** Until then its clocks still run: forgotten before, a host that comes back would be hit too soon. */
export function clocksUntilMs(host: Host): number {
  const { hostsCount, nextStartAtMs } = host.unit
  // The clock of a unit lives as long as one of its hosts is in memory.
  const untilMs = Math.max(restUntilMs(host), host.paceUntilMs)
  return hostsCount > 1 ? untilMs : Math.max(untilMs, nextStartAtMs)
}

/** There is something to claim or to start, now or later. */
export function hasWork(host: Host): boolean {
  return host.claimed.length > 0 || !host.isDrained || host.dueAtMs < Number.POSITIVE_INFINITY
}

/** Nothing to do and nothing under way. */
export function isIdle(host: Host): boolean {
  return !hasWork(host) && host.leased === undefined && host.limiter.inFlight === 0 && !host.isGated
}

/** The host waits because of a failure, not because of its pace. */
export function isResting(host: Host, nowMs: number): boolean {
  return Math.max(restUntilMs(host), workAtMs(host)) > nowMs
}

/** When a host that rests, or that waits at a cap for a moment, may go on. */
function restEndMs(host: Host, nowMs: number): number | undefined {
  // A token of the crawl comes within a second.
  if (host.isGated || host.retryAtMs === Number.POSITIVE_INFINITY) return undefined
  if (isResting(host, nowMs)) return readyAtMs(host)
  const atMs = host.waitsAt?.roomAtMs(nowMs)
  // No moment is known at which a gateway that has no quota may be used again: but it may be, unlike a parked host.
  return atMs === undefined || (host.waitsAt?.inFlight ?? 0) > 0 ? undefined : Math.min(atMs, Number.MAX_SAFE_INTEGER)
}

/** When every one of them rests: the end of the first rest; infinity when all that have work are parked. */
export function firstRestEndMs(hosts: Iterable<Host>, nowMs: number): number | undefined {
  let [untilMs, hasAny] = [Number.POSITIVE_INFINITY, false]
  for (const host of hosts) {
    hasAny = true
    if (host.parked !== undefined && host.ended === undefined) continue
    const endMs = restEndMs(host, nowMs)
    if (endMs === undefined) return undefined
    untilMs = Math.min(untilMs, endMs)
  }
  return hasAny ? untilMs : undefined
}

/** Neither full, nor behind its gate, nor probing with a URL that is still under way: while it fails, or is unwell, one at a time. */
export function canStart(host: Host): boolean {
  if (host.ended !== undefined) return hasWork(host)
  if (host.isGated || host.parked !== undefined || host.limiter.isFull || !hasWork(host)) return false
  const isProbed = host.failures > 0 || host.healthFacts?.isUnwell === true
  return host.limiter.inFlight < (isProbed ? 1 : Math.min(host.rampMax, host.bodiesMax))
}

/** Of the bytes in flight a host may take an eighth, or its part when fewer hosts have work. */
const HOSTS_SHARING_MAX = 8

/**
 * A body of the host takes so many bytes. A site that turns to large pages would else hold all bytes that bodies in flight may hold, and
 * every other host would wait for them. What is larger counts at once, what is smaller again by an eighth each time.
 */
export function noteBody(host: Host, bytes: number, { budgetBytes, hostsWorking }: { readonly budgetBytes: number; readonly hostsWorking: number }): void {
  host.bodyBytes = Math.max(bytes, host.bodyBytes + (bytes - host.bodyBytes) / 8)
  host.bodiesMax = Math.max(1, Math.floor(budgetBytes / Math.min(HOSTS_SHARING_MAX, Math.max(1, hostsWorking)) / host.bodyBytes))
}

/**
 * The global gate: whether another fetch may begin, and if not, which bound forbids it. What it asks describes our own
 * side (parse stage, store, consumer, disk, memory, event loop, the crawl's own ceilings) and never a host: those have
 * their limiters. A place that the crawl loop asks before each start; it stops nothing itself. Main thread.
 *
 *   consumer <- disk, store <- commit <- page ring <- body bytes <- memory <- connections, loop <- rate, bandwidth
 *   the last stage is asked first: what it lacks is why the stages before it wait
 *
 * A few times a second it looks at what changes without an event: memory, the loop's utilisation, rates. Then the loop
 * is told, since room may have been made.
 *
 * Invariant: a bound of ours closes the gate only while something is under way that will open it, or until a moment that
 * is known; so it never stays closed for ever.
 */
import type { BlockedOn } from '../core/api-types.ts'
import type { Clock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import type { ConnectionCeiling } from './connection-ceiling.ts'
import { SLOT_WAIT_MS, type FlowBounds } from './flow-bounds.ts'
import { LoopGovernor, SHRINK_ABOVE } from './loop-governor.ts'
import type { MemoryBudget } from './memory-budget.ts'
import type { MemoryGuard } from './memory-guard.ts'
import type { RateLimit } from './rate-limit.ts'

/** A timer that fires so much later than it was set for found the loop blocked. */
const LATE_MS = 50
/** Requests under way when a crawl begins, and the least that a busy loop leaves. */
const IN_FLIGHT_START = 128
const IN_FLIGHT_FLOOR = 64

export interface GateOptions {
  readonly clock: Clock
  readonly memory: MemoryBudget
  readonly bounds: FlowBounds
  readonly guard: MemoryGuard
  readonly ceiling: ConnectionCeiling
  readonly rates: Pick<RateLimit, 'blocked'>
  /** Utilisation of the event loop since the last call, from 0 to 1. */
  readonly utilization: () => number
  readonly commits: { readonly isFull: boolean, readonly queued: number }
  readonly pool: { readonly slotsFree: number, readonly oldestFilledMs: number }
  readonly fetcher: { readonly isShortOfBytes: boolean }
  /** There may be room that was not there before. */
  readonly onRoom: () => void
}

/** What the crawl loop knows. */
export interface GateFacts {
  readonly run: { readonly window: { readonly size: number, readonly isFull: boolean } | undefined, readonly hasRoom: boolean }
  /** What there is no room for on the disk. */
  readonly shortOf: 'disk' | 'store_full' | undefined
  readonly inFlight: number
  /** Bodies that wait for a slot. */
  readonly received: number
}

export class Gate {
  readonly #is: GateOptions
  readonly governor: LoopGovernor
  #oldestFilledMs = 0
  #tickedAtMs: number
  #busyAtMs = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined

  constructor(options: GateOptions) {
    this.#is = options
    this.#tickedAtMs = options.clock.nowMs()
    this.governor = new LoopGovernor({ start: IN_FLIGHT_START, floor: IN_FLIGHT_FLOOR, ceiling: options.ceiling.max })
  }

  get bounds(): FlowBounds {
    return this.#is.bounds
  }

  get memory(): MemoryBudget {
    return this.#is.memory
  }

  /** Memory of the process, as of the last look. */
  get heldBytes(): number {
    return this.#is.guard.heldBytes
  }

  /** Requests that may be under way at the very most. */
  get connectionsMax(): number {
    return this.#is.ceiling.max
  }

  /** What forbids another fetch now. */
  blockedOn({ run, shortOf, inFlight, received }: GateFacts): BlockedOn {
    const { bounds, ceiling, clock, commits, fetcher, guard, pool, rates } = this.#is
    const slotsUsed = bounds.slots.is.max - pool.slotsFree
    bounds.slots.observe(slotsUsed)
    bounds.commitUrls.observe(commits.queued)
    bounds.window.observe(run.window?.size ?? 0)
    this.governor.observe(inFlight)
    if (run.window?.isFull === true) return 'consumer'
    if (shortOf !== undefined) return shortOf
    if (commits.isFull) return 'commit'
    if (pool.slotsFree === 0 || received > 0 || bounds.slots.isFull || this.#isParseLate) return 'page_ring'
    if (fetcher.isShortOfBytes) return 'body_bytes'
    if (guard.isShut && inFlight + slotsUsed > 0) return 'memory'
    if (ceiling.waitUntilMs > clock.nowMs()) return 'connections'
    if (inFlight >= this.governor.limit) return this.governor.reason
    return rates.blocked?.on ?? (run.hasRoom ? 'nothing' : 'limit')
  }

  /** When a bound that only time opens will open; undefined when that is not a matter of time alone. */
  opensAtMs(blockedOn: BlockedOn): number | undefined {
    if (blockedOn === 'rate' || blockedOn === 'bandwidth') return this.#is.rates.blocked?.untilMs ?? this.#is.clock.nowMs()
    return blockedOn === 'connections' && this.#is.ceiling.waitUntilMs > this.#is.clock.nowMs() ? this.#is.ceiling.waitUntilMs : undefined
  }

  /** The loop was blocked, or all but fully busy, at some time since then: what took long may have waited for us. */
  isOwnFault(sinceMs: number): boolean {
    return this.#busyAtMs >= sinceMs
  }

  /** Looks a few times a second until `stop`. */
  start(): void {
    this.#tickedAtMs = this.#is.clock.nowMs()
    this.#cancelTimer = this.#is.clock.after(limits.gateLookMs, () => {
      this.#look()
      this.start()
    })
  }

  stop(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  /** The page that waits longest has waited too long; unless so few are left that a worker may be free at the next look. */
  get #isParseLate(): boolean {
    const { slots } = this.#is.bounds
    return this.#oldestFilledMs > SLOT_WAIT_MS && slots.used > slots.is.min
  }

  #look(): void {
    const { bounds, ceiling, clock, guard, onRoom, pool, utilization } = this.#is
    const nowMs = clock.nowMs()
    const busy = utilization()
    if (busy > SHRINK_ABOVE || nowMs - this.#tickedAtMs - limits.gateLookMs > LATE_MS) this.#busyAtMs = nowMs
    this.#oldestFilledMs = pool.oldestFilledMs
    guard.look()
    bounds.adapt(nowMs)
    ceiling.rise(nowMs)
    this.governor.setCeiling(ceiling.limit)
    this.governor.adapt(busy)
    onRoom()
  }
}

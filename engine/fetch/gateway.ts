/**
 * A gateway as it stands: how many requests go through it, how many may, and until when it rests. Its limiter is of the
 * same kind as a host's, and has nothing to do with any host's. Pure state; times and chance are given by the caller.
 * Main thread.
 *
 *     429                       the limiter decreases; at its floor, or when a Retry-After comes with it, a rest
 *     not reached, no proxy     the limiter decreases, and a rest that doubles
 *     quota status              a rest until the time in its reset header; without one until `resume`
 *     407                       a rest until `resume`: with these credentials every other URL would be refused too
 *     5xx to a CONNECT          says nothing of who is to blame: see `blames`
 *
 * Invariant: what it holds is bounded, whatever is sent through it and whatever comes back.
 */
import type { GatewayStats } from '../core/api-types.ts'
import { backoffMs, type Random } from '../core/clock.ts'
import type { GatewayConfig } from '../core/gateway-config.ts'
import { limits } from '../core/limits.ts'
import { httpDateMs } from '../page-meta.ts'
import { Limiter } from '../schedule/limiter.ts'
import { SharedCap } from '../schedule/shared-cap.ts'

/** A request as it began. */
export interface Begun {
  /** Monotonic. */
  readonly startedAtMs: number
  /** Requests under way through the gateway, itself among them. */
  readonly inFlight: number
}

/** When its end came. */
export interface Span extends Begun {
  readonly nowMs: number
}

export class Gateway {
  readonly config: GatewayConfig
  readonly limiter: Limiter
  /** Where hosts wait for it. */
  readonly caps: readonly [SharedCap]
  #pausedUntilMs = 0
  /** Rests in a row, and when the last began: what was under way then begins no other. */
  #rests = 0
  #restedAtMs = Number.NEGATIVE_INFINITY
  /** Hosts that it did not reach, one after the other. */
  readonly #hostsFailed = new Set<string>()
  #throttled = 0
  #quotaHits = 0
  #failed = 0

  constructor(config: GatewayConfig) {
    this.config = config
    this.limiter = new Limiter(config.concurrency)
    this.caps = [new SharedCap(`gateway ${config.name}`, {
      room: (inFlight, nowMs) => (this.#pausedUntilMs > nowMs ? 0 : this.limiter.limit - inFlight),
      roomAtMs: (nowMs) => (this.#pausedUntilMs > nowMs ? this.#pausedUntilMs : Number.POSITIVE_INFINITY),
    })]
  }

  get name(): string {
    return this.config.name
  }

  /** Nothing starts before (monotonic); infinity: before `resume`. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs
  }

  /** It did what it is there for, whatever the site answered. */
  worked(span: Span): void {
    this.limiter.success(span, span.nowMs)
    this.reached()
  }

  /** It made a connection to a site. */
  reached(): void {
    this.#rests = 0
    this.#hostsFailed.clear()
  }

  /** It answered 429; `retryAfterMs` is 0 when it named no time. */
  throttled(span: Span, retryAfterMs: number, random: Random): void {
    this.#throttled += 1
    this.limiter.throttle(span, span.nowMs)
    if (retryAfterMs > 0) this.#pauseUntil(span.nowMs + retryAfterMs)
    else if (this.limiter.limit <= this.config.concurrency.floor) this.#rest(span, random)
  }

  /** Its quota is spent; `resetMs`: filled again in so long, if it said so. */
  quotaSpent(nowMs: number, resetMs: number | undefined): void {
    this.#quotaHits += 1
    this.#pauseUntil(resetMs === undefined ? Number.POSITIVE_INFINITY : nowMs + Math.min(Math.max(resetMs, limits.gatewayQuotaMsMin), limits.gatewayQuotaMsMax))
  }

  /** It could not be reached, or is no proxy. */
  failed(span: Span, random: Random): void {
    this.#failed += 1
    this.limiter.throttle(span, span.nowMs)
    this.#rest(span, random)
  }

  /** It does not know us. */
  refusedCredentials(): void {
    this.#failed += 1
    this.#pauseUntil(Number.POSITIVE_INFINITY)
  }

  /**
   * It did not reach a host (5xx, or silence, to a CONNECT). Is that its own failure, and not the host's? A proxy says the
   * same of a dead host as of itself, so it is blamed when it reached none of many hosts in a row: else a dead host would
   * be tried for ever, and would slow down all others.
   */
  blames(host: string): boolean {
    if (this.#hostsFailed.size < limits.gatewayHostsFailedMax) this.#hostsFailed.add(host)
    return this.#hostsFailed.size >= limits.gatewayHostsFailedMax
  }

  /** The operator's word: its quota is filled, its credentials are good. */
  resume(): void {
    this.#pausedUntilMs = 0
    this.#rests = 0
  }

  stats(nowMs: number, wallMs: number): GatewayStats {
    const untilMs = this.#pausedUntilMs
    const until = untilMs === Number.POSITIVE_INFINITY ? 'resume' : new Date(Math.round(wallMs + untilMs - nowMs)).toISOString()
    return Object.freeze({
      name: this.name, limit: this.limiter.limit, inFlight: this.limiter.inFlight, ...(untilMs > nowMs && { pausedUntil: until }),
      throttled: this.#throttled, quotaHits: this.#quotaHits, failed: this.#failed,
    })
  }

  #rest({ startedAtMs, nowMs }: Span, random: Random): void {
    if (startedAtMs <= this.#restedAtMs) return
    this.#restedAtMs = nowMs
    this.#pauseUntil(nowMs + backoffMs(this.#rests, limits.backoffMsMin, limits.backoffMsMax, random))
    this.#rests += 1
  }

  #pauseUntil(untilMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs)
  }
}

/** Seconds since 1970 are more than this, seconds to wait are less: 2001, or 31 years. */
const EPOCH_SECONDS_MIN = 1_000_000_000

/**
 * Milliseconds until the time in a reset header: seconds, seconds (or milliseconds) since 1970, or a date; below 0 when it
 * has passed, undefined when it is none of these.
 */
export function resetMsOf(value: string | undefined, wallMs: number): number | undefined {
  const text = value?.trim() ?? ''
  if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) {
    const seconds = Number(text)
    if (seconds < EPOCH_SECONDS_MIN) return seconds * 1_000
    return (seconds < EPOCH_SECONDS_MIN * 1_000 ? seconds * 1_000 : seconds) - wallMs
  }
  const atMs = httpDateMs(text)
  return Number.isNaN(atMs) ? undefined : atMs - wallMs
}

/**
 * How a host's failures are counted, and how long it rests for them. Pure but for the host that is changed. Main thread.
 */
import { backoffMs, type Random } from '../core/clock.ts'
import { failureRule, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Host } from './host.ts'

/** A server's word is kept as its own: the longest that it said wins. */
export function heedRetryAfter(host: Host, waitMs: number, nowMs: number): void {
  if (waitMs > 0) host.retryAfterUntilMs = Math.max(host.retryAfterUntilMs, nowMs + Math.min(waitMs, limits.retryAfterMsMax))
}

/** What one more answer weighs in a host's health. */
const HEALTH_WEIGHT = 1 / 8

/**
 * Health is a mean of what the host's requests led to that forgets: health += (worth - health) / 8, from 1 at first. An
 * answer is worth 1, a throttle or a time-out (what slows the limiter) a half, another failure nothing. What is the
 * URL's own fault leaves it as it is.
 */
export function judge(host: Host, code: FailureCode | undefined): void {
  const rule = code === undefined ? undefined : failureRule(code)
  if (rule?.retry === 'never') return
  const worth = rule === undefined ? 1 : rule.limiter === 'throttle' ? 0.5 : 0
  host.health += (worth - host.health) * HEALTH_WEIGHT
}

export interface HostFailure {
  readonly code: FailureCode
  /** When the request started that failed. */
  readonly startedAtMs: number
  readonly retryAfterMs: number
}

/** Counts a failure of the host, once for all requests that were under way when it began. */
export function chargeHost(host: Host, { code, startedAtMs, retryAfterMs }: HostFailure, nowMs: number, random: Random): 'rests' | 'given up' {
  if (startedAtMs > host.failedAtMs) {
    host.backoffUntilMs = Math.max(host.backoffUntilMs, nowMs + backoffMs(host.failures, limits.backoffMsMin, limits.backoffMsMax, random))
    host.failures += 1
    host.failedAtMs = nowMs
    host.failureCode = code
  }
  heedRetryAfter(host, retryAfterMs, nowMs)
  return host.failures >= (failureRule(code).hostTriesMax ?? 1) ? 'given up' : 'rests'
}

type Ended = NonNullable<Host['ended']>

/**
 * What this process knows of hosts beside their records, which are stored a little later: that one was given up or
 * excluded, so that a late link to it costs no new tries, or that it gets a new chance. The oldest is forgotten.
 */
export class EndedHosts {
  readonly #known = new Map<string, { readonly ended: Ended | undefined; readonly untilMs: number }>()
  readonly #namesMax: number

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  get(name: string, nowMs: number): { readonly ended: Ended | undefined } | undefined {
    const known = this.#known.get(name)
    return known === undefined || known.untilMs <= nowMs ? undefined : known
  }

  note(name: string, ended: Ended | undefined, nowMs: number): void {
    this.#known.delete(name)
    this.#known.set(name, { ended, untilMs: ended?.outcome === 'failed' ? nowMs + limits.hostGivenUpMs : Number.POSITIVE_INFINITY })
    if (this.#known.size > this.#namesMax) this.#known.delete(this.#known.keys().next().value!)
  }
}

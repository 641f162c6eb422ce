/**
 * How a host's failures are counted, and how long it rests for them. Pure but for the host that is changed. Main thread.
 */
import { backoffMs, type Random } from '../core/clock.ts'
import { failureRule, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Host } from './host.ts'

/** The longest of all waits that were asked for wins. */
export function restHost(host: Host, waitMs: number, nowMs: number): void {
  if (waitMs > 0) host.restUntilMs = Math.max(host.restUntilMs, nowMs + Math.min(waitMs, limits.retryAfterMsMax))
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
    restHost(host, backoffMs(host.failures, limits.backoffMsMin, limits.backoffMsMax, random), nowMs)
    host.failures += 1
    host.failedAtMs = nowMs
    host.failureCode = code
  }
  restHost(host, retryAfterMs, nowMs)
  return host.failures >= (failureRule(code).hostTriesMax ?? 1) ? 'given up' : 'rests'
}

type Ended = NonNullable<Host['ended']>

/** Hosts that were given up or excluded in this process, so that a late link to one costs no new tries. The oldest is forgotten. */
export class EndedHosts {
  readonly #ended = new Map<string, Ended>()
  readonly #namesMax: number

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  get(name: string): Ended | undefined {
    return this.#ended.get(name)
  }

  note(name: string, ended: Ended): void {
    this.#ended.set(name, ended)
    if (this.#ended.size > this.#namesMax) this.#ended.delete(this.#ended.keys().next().value!)
  }
}

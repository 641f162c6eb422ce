/**
 * How a host's failures are counted, and how long it rests for them. Pure but for the host that is changed. Main thread.
 *
 * A host that answers nothing is tried over minutes before it is given up, because most of what makes a host fail passes:
 * a restart takes a minute, a deployment a few. The rests are a random part of 1, 2, 4 and so on up to 32 seconds, so
 * that a host is back soon after its outage, and a long one costs few requests (about two dozen in the default five
 * minutes, one at a time), and hosts that failed together are not tried again together. One that answers, and asks for
 * rest by its status, rests up to 256 seconds. It is given up when it has been tried as often as the
 * failure table says and for `hostPatienceMs`; a name that does not exist at the first alone, for its server has answered.
 * The URLs that are left then end with the code of the last failure; before that none is charged.
 *
 * After a good probe a host goes on at the limit that it had, but not at once: two at a time, one more with each answer.
 */
import { backoffMs, type Random } from '../core/clock.ts'
import { failureRule, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { Health, isWell, type Answer } from './health.ts'
import type { Host } from './host.ts'

/** A server's word is kept as its own: the longest that it said wins. */
export function heedRetryAfter(host: Host, waitMs: number, nowMs: number): void {
  if (waitMs > 0) host.retryAfterUntilMs = Math.max(host.retryAfterUntilMs, nowMs + Math.min(waitMs, limits.retryAfterMsMax))
}

/** Counts an answer in the host's health, and lets the host rest when that has sunk too low; in the end it is hopeless. */
export function judge(host: Host, answer: Answer, nowMs: number, random: Random): 'goes on' | 'rests' | 'hopeless' {
  if (host.healthFacts === undefined && isWell(answer)) return 'goes on'
  const facts = host.healthFacts ??= new Health(nowMs)
  const state = facts.count(answer, nowMs)
  host.health = facts.value
  if (state === 'well again') goOnSlowly(host)
  if (facts.isForgotten) host.healthFacts = undefined
  if (host.healthFacts === undefined) host.health = 1
  if (state !== 'rests') return 'goes on'
  host.backoffUntilMs = Math.max(host.backoffUntilMs, nowMs + backoffMs(facts.rests - 1, limits.healthRestMsMin, limits.healthRestMsMax, random))
  return facts.rests > limits.healthRestsMax ? 'hopeless' : 'rests'
}

/** From now on more and more at once. */
export function goOnSlowly(host: Host): void {
  host.rampMax = 2
}

/** The host answered: one more at once, until its limit is all that bounds it. */
export function ramp(host: Host): void {
  host.rampMax = host.rampMax + 1 >= host.limiter.limit ? Number.POSITIVE_INFINITY : host.rampMax + 1
}

/** What a host that has never answered gets of --host-patience. */
const STRANGER_PATIENCE = 0.1

export interface HostFailure {
  readonly code: FailureCode
  /** When the request started that failed. */
  readonly startedAtMs: number
  readonly retryAfterMs: number
}

/** Counts a failure of the host, once for all requests that were under way when it began. */
export function chargeHost(host: Host, { code, startedAtMs, retryAfterMs }: HostFailure, { nowMs, patienceMs, random }: Charge): 'rests' | 'given up' {
  if (startedAtMs > host.failedAtMs) {
    if (host.failures === 0) host.failingSinceMs = nowMs
    const restMsMax = failureRule(code).retry === 'host' ? limits.hostRestMsMax : limits.backoffMsMax
    host.backoffUntilMs = Math.max(host.backoffUntilMs, nowMs + backoffMs(host.failures, limits.backoffMsMin, restMsMax, random))
    host.failures += 1
    host.failedAtMs = nowMs
    host.failureCode = code
  }
  heedRetryAfter(host, retryAfterMs, nowMs)
  const { hostTriesMax = 1, isCertain = false, retry } = failureRule(code)
  // A host that never answered may never have been there: a mistyped seed need not be waited for as an outage is.
  const patienceLeftMs = (host.hasAnswered || host.answeredOnce ? patienceMs : STRANGER_PATIENCE * patienceMs) - (nowMs - host.failingSinceMs)
  const isPatienceOver = isCertain || retry === 'never' || patienceLeftMs <= 0
  return host.failures >= hostTriesMax && isPatienceOver ? 'given up' : 'rests'
}

export interface Charge {
  readonly nowMs: number
  /** How long a host is tried at least. */
  readonly patienceMs: number
  readonly random: Random
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

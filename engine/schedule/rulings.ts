/**
 * What the end of a fetch means for its URL and for its host, by the failure table (core/errors.ts). It changes the host
 * and says what becomes of the URL; where both lie afterwards is the scheduler's. Main thread; no I/O.
 *
 *     failure of the URL       tried again within its own budget, a random part of a growing wait later
 *     failure of the host      it rests, is probed one URL at a time, and in the end it is given up; its URLs are not charged
 *     the host asks for money  it is parked: its URLs stay queued until somebody asks for them
 *     failure of the gateway   neither is charged: the URL goes back to the hand
 *
 * Invariant: what was under way when a host failed says nothing of its state since: one failure for all of it, and only a
 * request that began later ends the failure.
 */
import { backoffMs, type Clock, type Random } from '../core/clock.ts'
import { failureRule, type FailureCode, type FailureRule, type WallCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Answer } from './health.ts'
import { chargeHost, goOnSlowly, heedRetryAfter, judge, ramp, type HostFailure } from './host-failures.ts'
import { isRetry, type Host, type Lease } from './host.ts'

/** How a fetch ended. `price`: what the site asks for a page, with 402. `isFinal`: it was tried again already, by a gateway. `latencyMs`: to the first byte, unless our own loop may be to blame. */
export type FetchEnd =
  | { readonly ok: true; readonly latencyMs?: number | undefined; readonly retryAfterMs?: number }
  | { readonly ok: false; readonly code: FailureCode; readonly retryAfterMs?: number; readonly price?: string; readonly isFinal?: true }

/** What the end of a fetch means for its URL. */
export type Ruling =
  | { readonly kind: 'page' }
  | { readonly kind: 'retry'; readonly waitMs: number }
  /** The host rests; the URL is back in its hands, its attempts uncharged. */
  | { readonly kind: 'rest' }
  /** Back in the hands of its host, as if it had never been started. */
  | { readonly kind: 'back' }
  | { readonly kind: 'fail' }

export interface RulingsOptions {
  readonly clock: Clock
  readonly random: Random
  /** Further tries of a URL, and how long a host that answers nothing is tried at least. */
  readonly retries: number
  readonly patienceMs: number
  readonly delayMsOf: (host: Host) => number
  /** What the host must know after a restart has changed. */
  readonly note: (host: Host) => void
  /** It was given up: its URLs end with this code. */
  readonly onGivenUp: (host: Host) => void
}

export class Rulings {
  readonly #is: RulingsOptions
  readonly #unwell = new Set<Host>()
  /** How often a host was given up, and parked. */
  readonly counts = { hostsGivenUp: 0, hostsParked: 0 }

  constructor(options: RulingsOptions) {
    this.#is = options
  }

  /** Of a fetch that has ended. */
  of(lease: Lease, end: FetchEnd): Ruling {
    return end.ok ? this.#succeed(lease, end) : this.#fail(lease, end)
  }

  /** Hosts in memory that are unwell: see health.ts. */
  get unwell(): ReadonlySet<Host> {
    return this.#unwell
  }

  /** It leaves memory. */
  forget(host: Host): void {
    this.#unwell.delete(host)
  }

  /**
   * Of an answer that was found to be a wall when it was read: its end has been taken for a success, and the failures
   * before it, which that made good, are failures again.
   */
  reconsider(lease: Lease, code: WallCode, isFinal: boolean): Ruling {
    const { host } = lease
    host.failures = Math.max(host.failures, host.wallFailures)
    const ruling = this.#fail(lease, { ok: false, code, ...(isFinal && { isFinal }) })
    host.wallFailures = host.failures
    return ruling
  }

  /** The host's robots.txt could not be had, or the host itself: it rests, and in the end it is given up. */
  failHost(host: Host, failure: HostFailure): void {
    this.#judge(host, { ...failure, isRetry: false, isDecrease: false })
    // Up to half as long again: hosts whose robots.txt failed together are not asked for it together.
    this.#charge(host, { ...failure, retryAfterMs: failure.retryAfterMs * (1 + this.#is.random() / 2) })
    this.#is.note(host)
  }

  #succeed(lease: Lease, { latencyMs, retryAfterMs = 0 }: Extract<FetchEnd, { ok: true }>): Ruling {
    const { host, url, startedAtMs } = lease
    if (!isProbe(lease)) host.limiter.success(lease, this.#is.clock.nowMs(), latencyMs)
    host.hasAnswered = true
    ramp(host)
    this.#judge(host, { code: undefined, startedAtMs, isRetry: isRetry(host, url), isDecrease: false })
    if (startedAtMs > host.failedAtMs && host.failures > 0) {
      host.failures = 0
      host.failureCode = undefined
      host.refused = undefined
      goOnSlowly(host)
      this.#is.note(host)
    }
    if (retryAfterMs > 0) {
      heedRetryAfter(host, retryAfterMs, this.#is.clock.nowMs())
      this.#is.note(host)
    }
    return { kind: 'page' }
  }

  #judge(host: Host, facts: Omit<Answer, 'isFailing'>): void {
    const answer = { ...facts, isFailing: host.failures > 0 }
    const state = judge(host, answer, this.#is.clock.nowMs(), this.#is.random)
    if (host.healthFacts?.isUnwell === true) this.#unwell.add(host)
    else this.#unwell.delete(host)
    if (state === 'hopeless') this.#giveUp(host, answer.code!)
    if (state !== 'goes on') this.#is.note(host)
  }

  #fail(lease: Lease, { code, retryAfterMs = 0, price, isFinal }: Extract<FetchEnd, { ok: false }>): Ruling {
    const { host, url, startedAtMs } = lease
    const [nowMs, rule] = [this.#is.clock.nowMs(), failureRule(code)]
    if (rule.retry === 'gateway') return { kind: 'back' }
    const isDecrease = !isProbe(lease) && this.#slowDown(lease, rule.limiter, retryAfterMs)
    this.#judge(host, { code, startedAtMs, isRetry: isRetry(host, url), isDecrease })
    if (rule.retry === 'never' || host.ended?.outcome === 'failed') return { kind: 'fail' }
    if (rule.retry === 'park') return this.#park(host, { code, ...(price !== undefined && { price }) })
    if (isFinal === true) return { kind: 'fail' }
    if (rule.retry === 'url') {
      heedRetryAfter(host, retryAfterMs, nowMs)
      if (retryAfterMs > 0) this.#is.note(host)
      return this.#retry(url.attempts)
    }
    const wasWell = host.failures === 0
    const state = this.#charge(host, { code, startedAtMs, retryAfterMs })
    this.#is.note(host)
    if (state === 'given up') return { kind: 'fail' }
    return rule.retry === 'both' && wasWell ? this.#retry(url.attempts) : { kind: 'rest' }
  }

  /** Answers whether the limit of the host was lowered. */
  #slowDown(lease: Lease, signal: FailureRule['limiter'], retryAfterMs: number): boolean {
    const { clock, delayMsOf } = this.#is
    const { limiter } = lease.host
    if (signal === 'none') return false
    if (signal === 'strain' && retryAfterMs === 0) return limiter.strain(lease, clock.nowMs())
    return limiter.throttle(lease, clock.nowMs(), delayMsOf(lease.host))
  }

  #retry(attempts: number): Ruling {
    const { random, retries } = this.#is
    if (attempts >= retries) return { kind: 'fail' }
    return { kind: 'retry', waitMs: backoffMs(attempts, limits.backoffMsMin, limits.backoffMsMax, random) }
  }

  #park(host: Host, parked: Omit<NonNullable<Host['parked']>, 'atMs'>): Ruling {
    if (host.parked === undefined) this.counts.hostsParked += 1
    host.parked ??= { ...parked, atMs: this.#is.clock.wallMs() }
    this.#is.note(host)
    return { kind: 'rest' }
  }

  #charge(host: Host, failure: HostFailure): 'rests' | 'given up' {
    const { clock, patienceMs, random } = this.#is
    const state = chargeHost(host, failure, { nowMs: clock.nowMs(), patienceMs, random })
    if (state === 'given up') this.#giveUp(host, failure.code)
    return state
  }

  #giveUp(host: Host, code: FailureCode): void {
    if (host.ended !== undefined) return
    this.counts.hostsGivenUp += 1
    host.ended = { outcome: 'failed', code }
    host.givenUpAtMs = this.#is.clock.wallMs()
    this.#is.onGivenUp(host)
  }
}

/** It asks whether a failing host is there again, after a rest: neither answer says anything about how many at once are too many. */
function isProbe({ host, startedAtMs }: Lease): boolean {
  return host.failures > 0 && startedAtMs > host.failedAtMs
}

/** An answer of the host was read, and is a page. */
export function confirmPage(host: Host | undefined): void {
  if (host !== undefined) host.wallFailures = 0
}

/**
 * How well a host is, from 0 to 1, and the shares that this is made of. Each answer is one of five bad kinds or well; a share
 * is a mean that forgets, by answers (the newest weighs a sixteenth) and by time (it halves in ten minutes without any):
 *
 *     health = 1 - (throttled / 2 + timed out x 0.9 + blocked + challenged + otherwise failed) - (retries + decreases) / 4
 *
 * A throttle is half as bad as a failure, since the limiter sees to it; time-outs hold a place in flight for long; retries and
 * decreases of the limit are the same trouble once more, seen from our side. What is the URL's own fault is well. A host
 * under `healthMin` rests, longer after each bad answer, and is asked one URL at a time until it is at `healthWellMin` again.
 *
 * Invariant: 0 <= health <= 1, and the shares of answers together are at most 1. Pure state; times are given by the caller.
 * A host to which nothing happened has none of this. Main thread.
 */
import { failureRule, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'

/** Shares of a host's answers, 0 to 1. */
export interface HealthShares {
  /** Answers to tries after a URL's first. */
  readonly retryShare: number
  readonly throttleShare: number
  readonly timeoutShare: number
  /** Pages that say that we are blocked, and those that ask for a proof, in place of the page. */
  readonly blockShare: number
  readonly challengeShare: number
  /** Every other failure. */
  readonly failureShare: number
  /** Answers upon which the limit of the host was lowered. */
  readonly decreaseShare: number
}

export type HealthShare = keyof HealthShares

const weights: HealthShares = {
  throttleShare: 0.5, timeoutShare: 0.9, blockShare: 1, challengeShare: 1, failureShare: 1, retryShare: 0.25, decreaseShare: 0.25,
}
const names = Object.keys(weights) as readonly HealthShare[]

/** What one more answer weighs: so little that a host of which half of the answers are bad does not sink by chance (its mean of 0.5 varies by 0.09). */
const ANSWER_WEIGHT = 1 / 16
/** Less than this is nothing: about 65 good answers after a single bad one. */
const SHARE_MIN = 0.001

export const noShares: HealthShares = Object.freeze(Object.fromEntries(names.map((name) => [name, 0])) as Record<HealthShare, number>)

/** What a host's request led to. */
export interface Answer {
  readonly code: FailureCode | undefined
  readonly isRetry: boolean
  /** The limit of the host was lowered upon it. */
  readonly isDecrease: boolean
  /** The host rests for failures of its own already. */
  readonly isFailing: boolean
  readonly startedAtMs: number
}

/** Nothing about it is bad. */
export function isWell({ code, isRetry, isDecrease }: Answer): boolean {
  return kindOf(code) === undefined && !isRetry && !isDecrease
}

export class Health {
  readonly #shares: Record<HealthShare, number> = { ...noShares }
  #atMs: number
  #rests = 0
  /** When it sank under the threshold, and when the last rest began; what began before is no reason for a rest. */
  #sankAtMs = Number.POSITIVE_INFINITY
  #restedAtMs = Number.NEGATIVE_INFINITY

  /** `failureShare`: of a host of which only its health is remembered, all that it lacks. */
  constructor(nowMs: number, failureShare = 0) {
    this.#atMs = nowMs
    this.#shares.failureShare = failureShare
  }

  get value(): number {
    const lost = names.reduce((sum, name) => sum + weights[name] * this.#shares[name], 0)
    return Math.min(1, Math.max(0, 1 - lost))
  }

  get shares(): HealthShares {
    return { ...this.#shares }
  }

  /** It sank too low and has not risen far enough since. */
  get isUnwell(): boolean {
    return this.#rests > 0
  }

  /** Rests in a row that no good answer came between. */
  get rests(): number {
    return this.#rests
  }

  /** What was bad is so long ago, or so many answers, that it is as if it had not been. */
  get isForgotten(): boolean {
    return !this.isUnwell && names.every((name) => this.#shares[name] < SHARE_MIN)
  }

  /** Counts an answer. A burst of bad ones is one event: only one that was asked for since is a reason to rest. */
  count({ code, isRetry, isDecrease, isFailing, startedAtMs }: Answer, nowMs: number): 'as before' | 'rests' | 'well again' {
    this.#fade(nowMs)
    const kind = kindOf(code)
    for (const name of names) {
      const isSo = name === kind || (name === 'retryShare' && isRetry) || (name === 'decreaseShare' && isDecrease)
      this.#shares[name] += ((isSo ? 1 : 0) - this.#shares[name]) * ANSWER_WEIGHT
    }
    if (this.value >= limits.healthMin) this.#sankAtMs = Number.POSITIVE_INFINITY
    else this.#sankAtMs = Math.min(this.#sankAtMs, nowMs)
    if (kind === undefined) return this.#recover()
    const isNew = startedAtMs > (this.isUnwell ? this.#restedAtMs : this.#sankAtMs)
    if (!isNew || isFailing) return 'as before'
    this.#rests += 1
    this.#restedAtMs = nowMs
    return 'rests'
  }

  #recover(): 'as before' | 'well again' {
    if (!this.isUnwell) return 'as before'
    this.#rests = this.value >= limits.healthWellMin ? 0 : 1
    return this.isUnwell ? 'as before' : 'well again'
  }

  #fade(nowMs: number): void {
    const left = 0.5 ** (Math.max(0, nowMs - this.#atMs) / limits.healthHalfLifeMs)
    for (const name of names) this.#shares[name] *= left
    this.#atMs = nowMs
  }
}

/** The share that a failure counts to; none for an answer, and for what is the URL's own fault. */
function kindOf(code: FailureCode | undefined): HealthShare | undefined {
  if (code === undefined || failureRule(code).retry === 'never') return undefined
  if (code === 'blocked') return 'blockShare'
  if (code === 'challenged') return 'challengeShare'
  if (code === 'timeout' || code === 'connect_timeout') return 'timeoutShare'
  return failureRule(code).limiter !== 'none' ? 'throttleShare' : 'failureShare'
}

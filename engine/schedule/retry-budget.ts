/**
 * Retries as load. A retry is a URL that was fetched before, or one that its host refused while it rested; it costs a token
 * of its host's bucket and one of the crawl's. A first try earns a tenth of a token in both. So retries are at most a tenth
 * of the first tries, and beside that a floor that time alone earns, so that the last URLs of a crawl are still tried.
 *
 *     host:   10 tokens, 1 in 10 s      has none: the host's own moment is known, it waits in its lane (`retryAtMs`)
 *     crawl:  100 tokens, 1 a second    has none: the host waits in `queue`; the first in it gets the next token
 *
 * A bucket holds what a hundred (a thousand) first tries earn. That is a burst for a short fault: a host of ten requests at
 * once can try all of them again at once, and a crawl those that were under way; what a bucket holds beyond its floor is
 * spent once, and then a fault that lasts costs its tenth. (Finagle lets unused retries expire after ten seconds; the crawl's
 * bucket is what ten seconds of 100 pages a second earn.) A bucket is full at first, and a full one is none: only hosts
 * that have tried again have one.
 *
 * Invariant: from any moment on, retries <= capacity + first tries / 10 + floor x time, for each host and for the crawl.
 * Pure state; times are given by the caller. Main thread.
 */
import { limits } from '../core/limits.ts'
import type { QueuedUrl } from '../core/types.ts'
import { isRetry, type Host } from './host.ts'

export interface BucketSize {
  readonly tokensMax: number
  readonly msPerToken: number
}

const hostBucket: BucketSize = { tokensMax: limits.retryTokensPerHostMax, msPerToken: limits.retryHostTokenMs }
const crawlBucket: BucketSize = { tokensMax: limits.retryTokensMax, msPerToken: limits.retryTokenMs }

/** What a first try earns. */
const TOKENS_PER_FIRST_TRY = 0.1

/** Sums of tenths are not whole numbers in binary. */
const ALMOST_ONE = 1 - 1e-9

export class TokenBucket {
  readonly #size: BucketSize
  #tokens: number
  #atMs: number

  constructor(size: BucketSize, nowMs: number) {
    this.#size = size
    this.#tokens = size.tokensMax
    this.#atMs = nowMs
  }

  tokens(nowMs: number): number {
    const { tokensMax, msPerToken } = this.#size
    this.#tokens = Math.min(tokensMax, this.#tokens + Math.max(0, nowMs - this.#atMs) / msPerToken)
    this.#atMs = nowMs
    return this.#tokens
  }

  has(nowMs: number): boolean {
    return this.tokens(nowMs) >= ALMOST_ONE
  }

  /** When there is a token, if nothing is earned but by time. */
  nextAtMs(nowMs: number): number {
    return nowMs + Math.max(0, 1 - this.tokens(nowMs)) * this.#size.msPerToken
  }

  earn(tokens: number, nowMs: number): void {
    this.#tokens = Math.min(this.#size.tokensMax, this.tokens(nowMs) + tokens)
  }

  /** Takes one, though there be none: it is owed then. */
  take(nowMs: number): void {
    this.#tokens = this.tokens(nowMs) - 1
  }
}

/** As much of a host as its retries are about. */
export type Retrying = Pick<Host, 'claimed' | 'refused' | 'retryAtMs' | 'retryTokens'>

export class RetryBudget<H extends Retrying = Host> {
  readonly #crawl: TokenBucket
  /** Hosts that could try again but for the crawl's bucket, in the order in which they came. */
  readonly #queue = new Set<H>()
  /** Those for which one of its tokens was taken already. */
  readonly #granted = new WeakSet<H>()
  #firstTries = 0
  #retries = 0

  constructor(nowMs: number) {
    this.#crawl = new TokenBucket(crawlBucket, nowMs)
  }

  /** Retries as a share of all requests for pages, 0 to 1. */
  get share(): number {
    const all = this.#firstTries + this.#retries
    return all === 0 ? 0 : this.#retries / all
  }

  get retries(): number {
    return this.#retries
  }

  /** Hosts that wait for a token of the crawl. */
  get hostsWaiting(): number {
    return this.#queue.size
  }

  /** Its own bucket is empty. */
  isSpent({ retryTokens }: H, nowMs: number): boolean {
    return retryTokens !== undefined && !retryTokens.has(nowMs)
  }

  /** The host may try again now. Whoever comes while others wait goes behind them. */
  mayRetry(host: H, nowMs: number): boolean {
    if (this.isSpent(host, nowMs)) return false
    return this.#granted.has(host) || (this.#queue.size === 0 && this.#crawl.has(nowMs))
  }

  /** When its own bucket has a token. */
  ownAtMs({ retryTokens }: H, nowMs: number): number {
    return retryTokens?.nextAtMs(nowMs) ?? nowMs
  }

  /** No deferred row of the store is claimed before this moment: nothing could be done with it. Undefined: it may be claimed. */
  claimAtMs(host: H, mayRetry: boolean, nowMs: number): number | undefined {
    return mayRetry || (host.claimed.length === 0 && !this.isSpent(host, nowMs)) ? undefined : this.ownAtMs(host, nowMs)
  }

  /** The host has nothing to start but retries, and may not: it is not looked at before it may. */
  wait(host: H, nowMs: number): void {
    if (this.isSpent(host, nowMs)) host.retryAtMs = this.ownAtMs(host, nowMs)
    else {
      host.retryAtMs = Number.POSITIVE_INFINITY
      this.#queue.add(host)
    }
  }

  /** Hosts whose turn has come, with a token each. */
  wake(nowMs: number): readonly H[] {
    const woken: H[] = []
    for (const host of this.#queue) {
      // It has something else to start, or ended: when it needs a token it comes again.
      const isWaiting = host.retryAtMs === Number.POSITIVE_INFINITY
      if (isWaiting && !this.#crawl.has(nowMs)) break
      this.#queue.delete(host)
      if (!isWaiting) continue
      this.#crawl.take(nowMs)
      this.#granted.add(host)
      host.retryAtMs = 0
      woken.push(host)
    }
    return woken
  }

  /** When `wake` may wake somebody; infinity when nobody waits. */
  nextAtMs(nowMs: number): number {
    return this.#queue.size === 0 ? Number.POSITIVE_INFINITY : this.#crawl.nextAtMs(nowMs)
  }

  /** A request begins: a retry is paid for, a first try earns. */
  begun(host: H, url: QueuedUrl, nowMs: number): void {
    if (!isRetry(host, url)) {
      this.#firstTries += 1
      this.#crawl.earn(TOKENS_PER_FIRST_TRY, nowMs)
      host.retryTokens?.earn(TOKENS_PER_FIRST_TRY, nowMs)
      if (host.retryTokens?.tokens(nowMs) === hostBucket.tokensMax) host.retryTokens = undefined
      return
    }
    this.#retries += 1
    host.retryTokens ??= new TokenBucket(hostBucket, nowMs)
    host.retryTokens.take(nowMs)
    if (!this.#granted.delete(host)) this.#crawl.take(nowMs)
  }
}

/** Puts the URL that goes next first in its hand: when no retry may, one of the same class that is none. False: all of them wait. */
export function bringNext({ claimed, refused }: Pick<Host, 'claimed' | 'refused'>, mayRetry: boolean): boolean {
  if (mayRetry) return true
  const isLater = claimed[0]?.isLater === true
  const at = claimed.findIndex((url) => (url.isLater === true) === isLater && !isRetry({ refused }, url))
  if (at > 0) claimed.unshift(...claimed.splice(at, 1))
  return at >= 0
}

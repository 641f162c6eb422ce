/**
 * The ceilings of the whole crawl on requests and on bytes a second. Two token buckets; a place that the gate asks and
 * the fetcher tells. Pure state; times are given by the caller. Main thread.
 *
 *   request begins:  requests - 1,  bytes - what one is expected to bring
 *   request ends:                   bytes - (what it brought - what was expected)
 *
 * The expectation is the mean of what was received lately, and the most that a page may bring before one was seen. It
 * spreads starts evenly: without it all that may be under way would begin before the first byte is counted. What came above it is a debt of later starts, so that the average holds
 * whatever the sizes. A request that must be sent goes out in any case (a hop of robots.txt, one sent again): a debt too.
 */
import type { CrawlOptions } from '../core/options.ts'

/** A bucket holds what comes in so long: nothing is saved up for a burst after a quiet time. */
const BURST_MS = 100
/** The mean is over about so many, and comes down from the most as slowly: one small page first must not open the gate for many. */
const MEAN_OF = 32

export class TokenBucket {
  readonly #perMs: number
  readonly #burst: number
  #tokens: number
  #atMs: number | undefined

  /** `least`: so many must be there for one start. An infinite rate is no bound. */
  constructor(perSecond: number, least: number) {
    this.#perMs = perSecond / 1_000
    this.#burst = Math.max(least, this.#perMs * BURST_MS)
    this.#tokens = this.#burst
  }

  take(count: number, nowMs: number): void {
    if (this.#perMs === Number.POSITIVE_INFINITY) return
    this.#tokens = this.#at(nowMs) - count
    this.#atMs = nowMs
  }

  /** When there are as many as one start needs: now, or later. */
  readyAtMs(least: number, nowMs: number): number {
    if (this.#perMs === Number.POSITIVE_INFINITY) return nowMs
    const missing = least - this.#at(nowMs)
    return missing <= 0 ? nowMs : nowMs + missing / this.#perMs
  }

  #at(nowMs: number): number {
    return Math.min(this.#burst, this.#tokens + (nowMs - (this.#atMs ?? nowMs)) * this.#perMs)
  }
}

export class RateLimit {
  readonly #requests: TokenBucket
  readonly #bytes: TokenBucket
  readonly #nowMs: () => number
  #bytesExpected: number

  constructor(options: Pick<CrawlOptions, 'bytesPerSecond' | 'maxBodyBytes' | 'requestsPerSecond'>, nowMs: () => number) {
    this.#bytesExpected = options.maxBodyBytes
    this.#requests = new TokenBucket(options.requestsPerSecond, 1)
    this.#bytes = new TokenBucket(options.bytesPerSecond, 1)
    this.#nowMs = nowMs
  }

  /** A request is sent once more than was begun. */
  readonly resent = (): void => this.#requests.take(1, this.#nowMs())

  /** A fetch begins; answers what it is expected to bring, for `ended`. */
  readonly began = (): number => {
    const nowMs = this.#nowMs()
    this.#requests.take(1, nowMs)
    this.#bytes.take(this.#bytesExpected, nowMs)
    return this.#bytesExpected
  }

  /** It has ended, and brought so many bytes. */
  readonly ended = (expectedBytes: number, bytes: number): void => {
    this.#bytes.take(bytes - expectedBytes, this.#nowMs())
    this.#bytesExpected += (bytes - this.#bytesExpected) / MEAN_OF
  }

  /** Which of the two forbids a start, and until when; undefined when neither does. */
  get blocked(): { readonly on: 'rate' | 'bandwidth'; readonly untilMs: number } | undefined {
    const nowMs = this.#nowMs()
    const [requestsAtMs, bytesAtMs] = [this.#requests.readyAtMs(1, nowMs), this.#bytes.readyAtMs(1, nowMs)]
    if (requestsAtMs <= nowMs && bytesAtMs <= nowMs) return undefined
    return requestsAtMs >= bytesAtMs ? { on: 'rate', untilMs: requestsAtMs } : { on: 'bandwidth', untilMs: bytesAtMs }
  }
}

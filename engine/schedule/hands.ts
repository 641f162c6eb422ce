/**
 * The hands of the hosts: URLs that were claimed from the store and have no stored outcome. Main thread; reads the store,
 * writes nothing. Invariant: `leasedCount` is the sum of all `leased`, and stays below `claimedUrlsMax` and what one
 * claim takes for each host, since a hand is filled again only when it is empty, or holds nothing that may go but retries.
 *
 * It also owns the time of the store's rows. That is the wall clock as it was at the opening and what has passed since,
 * so that a jump of the wall clock while the process runs moves no wait.
 */
import type { Store } from '../../storage/store.ts'
import type { Clock } from '../core/clock.ts'
import { invariant } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { QueuedUrl } from '../core/types.ts'
import { Places } from '../flow/places.ts'
import { needsClaim, putInHand, type Host } from './host.ts'
import { bringNext, type RetryBudget } from './retry-budget.ts'

const nothing: ReadonlySet<number> = new Set()

export class Hands {
  /** Where each leased URL stands. */
  readonly places: Places
  readonly #store: Pick<Store, 'claim'>
  readonly #clock: Clock
  readonly #retries: RetryBudget
  #leasedCount = 0
  /** Time of the rows less monotonic time. */
  #rowsAheadMs: number

  constructor({ store, clock }: { readonly store: Pick<Store, 'claim'>; readonly clock: Clock }, retries: RetryBudget) {
    this.#store = store
    this.#clock = clock
    this.#retries = retries
    this.places = new Places(clock)
    this.#rowsAheadMs = clock.wallMs() - clock.nowMs()
  }

  get leasedCount(): number {
    return this.#leasedCount
  }

  /** The present time of the store's rows. */
  rowsMs(): number {
    return this.#clock.nowMs() + this.#rowsAheadMs
  }

  /** What a host that is ready starts next, one of so many that have work. Undefined: its hand was filled, or it waits to try again. */
  next(host: Host, hostsWorking: number): QueuedUrl | undefined {
    const nowMs = this.#clock.nowMs()
    const mayRetry = host.ended !== undefined || this.#retries.mayRetry(host, nowMs)
    if (needsClaim(host, mayRetry)) this.#claim(host, hostsWorking, this.#retries.claimAtMs(host, mayRetry, nowMs))
    else if (bringNext(host, mayRetry)) return host.claimed[0]!
    else this.#retries.wait(host, nowMs)
    return undefined
  }

  /** With `deferredAtMs`, deferred rows are left alone until then. */
  #claim(host: Host, hostsWorking: number, deferredAtMs: number | undefined): void {
    const limit = this.#limit(hostsWorking)
    const isWithoutDeferred = deferredAtMs !== undefined
    const { urls, nextDueAtMs } = this.#store.claim(host.name, { limit, nowMs: this.rowsMs(), leased: host.leased ?? nothing, isWithoutDeferred })
    putInHand(host, urls, 'before')
    if (urls.length > 0) host.leased ??= new Set()
    for (const { sequence } of urls) {
      host.leased!.add(sequence)
      this.places.enter(sequence)
    }
    this.#leasedCount += urls.length
    host.isDrained = urls.length < limit
    // Best first: behind one of the later class there is none of the first.
    host.isFirstDrained = host.isDrained || urls.at(-1)?.isLater === true
    host.dueAtMs = nextDueAtMs === undefined ? Number.POSITIVE_INFINITY : Math.max(deferredAtMs ?? 0, this.#clock.nowMs() + this.#waitMsUntil(nextDueAtMs))
  }

  /** The outcome of a URL is stored. */
  settled(host: Host | undefined, sequence: number): asserts host is Host {
    invariant(host?.leased?.has(sequence) === true, 'only a leased URL gets an outcome')
    this.#release(host, sequence)
  }

  /** Puts a queued URL first into the hand; answers false when it is leased and in the hand no more. */
  bringForward(host: Host, url: QueuedUrl): boolean {
    const at = host.claimed.findIndex(({ sequence }) => sequence === url.sequence)
    if (at < 0 && host.leased?.has(url.sequence) === true) return false
    if (at >= 0) host.claimed.splice(at, 1)
    else {
      this.#leasedCount += 1
      this.places.enter(url.sequence)
    }
    host.leased = (host.leased ?? new Set()).add(url.sequence)
    host.claimed.unshift(url)
    host.retryAtMs = 0
    return true
  }

  /** Lets go of what the hand holds of the later class: the store may have better ones now. */
  dropLater(host: Host): void {
    while (host.claimed.at(-1)?.isLater === true) this.#release(host, host.claimed.pop()!.sequence)
  }

  /** Lets go of what the hand holds of a worse priority than the store has now. */
  dropWorse(host: Host, priority: number): void {
    if (!host.claimed.some((url) => url.priority > priority)) return
    const [kept, worse] = [host.claimed.filter((url) => url.priority <= priority), host.claimed.filter((url) => url.priority > priority)]
    host.claimed.splice(0, host.claimed.length, ...kept)
    for (const { sequence } of worse) this.#release(host, sequence)
  }

  /** With many hosts fewer, so that all hands together stay bounded; one at least, so that every host gets its turn. */
  #limit(hostsWorking: number): number {
    if (this.#leasedCount >= limits.claimedUrlsMax) return 1
    return Math.min(limits.claimUrlsPerHost, Math.max(1, Math.floor(limits.claimedUrlsMax / hostsWorking)))
  }

  #waitMsUntil(rowMs: number): number {
    // No wait for another try is longer than the longest: the wall clock was set back since the row was written.
    this.#rowsAheadMs = Math.max(this.#rowsAheadMs, rowMs - limits.backoffMsMax - this.#clock.nowMs())
    // In whole milliseconds, as rows are: a fraction less, and the row would not be due when the wait is over.
    return Math.max(0, Math.ceil(rowMs - this.rowsMs()))
  }

  #release(host: Host, sequence: number): void {
    host.leased!.delete(sequence)
    this.places.leave(sequence)
    if (host.leased!.size === 0) host.leased = undefined
    this.#leasedCount -= 1
  }
}

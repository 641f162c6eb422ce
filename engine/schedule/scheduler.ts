/**
 * Chooses what is fetched next: first the unit, then its host, then that host's best URL. Hosts with work lie in
 * heaps by the next moment at which each may start, so a choice is O(log hosts), and a host that waits costs nothing:
 * no timer, no socket, no place in flight.
 *
 *     units: heap by max(unit clock, its soonest host)
 *        unit -> hosts: heap by rest or due time, then by last start (so hosts of one unit take turns)
 *                 host -> claimed: a few URLs read ahead; the rest stays in the store
 *     idle: heap of hosts without work, by the end of their clocks; then they are forgotten
 *
 * Invariants: a host lies in its unit's heap exactly when it could start; a URL is in `leased` from its claim until
 * its outcome is stored. Nothing here waits or does I/O except the store's synchronous reads. Main thread.
 */
import type { HostRecord, Store } from '../../storage/store.ts'
import { backoffMs, type Clock, type Random } from '../core/clock.ts'
import { failureRule, invariant, type FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { CrawlOptions, HostLimit } from '../core/options.ts'
import type { QueuedUrl } from '../core/types.ts'
import { Heap } from './heap.ts'
import { chargeHost, EndedHosts, restHost, type HostFailure } from './host-failures.ts'
import { canStart, clocksUntilMs, firstRestEndMs, hasWork, isIdle, newHost, newUnit, unitReadyAtMs, type Host, type Unit } from './host.ts'
import { HostLoader, type HostLoaderOptions } from './host-loader.ts'
import { Limiter } from './limiter.ts'

/** A URL whose turn it is; not yet started. */
export interface Candidate {
  readonly host: Host
  readonly url: QueuedUrl
}

/** A URL that is being fetched. */
export interface Lease extends Candidate {
  readonly startedAtMs: number
  /** A delay lies between its request and the next one of its unit. */
  readonly isPaced: boolean
}

/** What the end of a fetch means for its URL. */
export type Ruling =
  | { readonly kind: 'page' }
  | { readonly kind: 'retry'; readonly waitMs: number }
  /** The host rests; the URL is back in its hands, its attempts uncharged. */
  | { readonly kind: 'rest' }
  | { readonly kind: 'fail' }

export interface SchedulerOptions {
  readonly store: Pick<Store, 'claim' | 'host' | 'hostsWithWork'>
  readonly options: Pick<CrawlOptions, 'concurrency' | 'delayMs' | 'retries'>
  readonly clock: Clock
  readonly random: Random
  readonly unitOf: HostLoaderOptions['unitOf']
  /** Called when something may start that could not before. */
  readonly onWork: () => void
  /** Hosts in memory; a test sets fewer. */
  readonly hostsActiveMax?: number
}

export class Scheduler {
  readonly #is: SchedulerOptions
  readonly #hostsMax: number
  readonly #loader: HostLoader
  readonly #hosts = new Map<string, Host>()
  readonly #unitsByName = new Map<string, Unit>()
  readonly #units = new Heap<Unit>((a, b) => unitReadyAtMs(a) < unitReadyAtMs(b))
  /** Hosts with work, now or later, whether they may start or not. */
  readonly #working = new Set<Host>()
  readonly #idle = new Heap<Host>((a, b) => a.forgetAtMs < b.forgetAtMs)
  readonly #ended: EndedHosts
  /** Sequences of leased URLs that will be deferred: their rows come back to the host. */
  readonly #retrying = new Set<number>()
  #leasedCount = 0
  /** When the crawl went on from an earlier process: that one's last starts are unknown. */
  #continuedAtMs: number | undefined

  constructor(options: SchedulerOptions) {
    this.#is = options
    this.#hostsMax = options.hostsActiveMax ?? limits.hostsActiveMax
    this.#ended = new EndedHosts(limits.hostsActiveMax)
    this.#loader = new HostLoader({
      store: options.store, unitOf: options.unitOf, hosts: this.#hosts, hostsMax: this.#hostsMax,
      onLoaded: (record, unitName) => this.#attach(record, unitName), onLoadedLate: options.onWork,
    })
  }

  get hostsCount(): number {
    return this.#hosts.size
  }

  get leasedCount(): number {
    return this.#leasedCount
  }

  /** A URL of the host was claimed and has no stored outcome. */
  isLeased(name: string, sequence: number): boolean {
    return this.#hosts.get(name)?.leased.has(sequence) === true
  }

  host(name: string): Host | undefined {
    return this.#hosts.get(name)
  }

  /**
   * Reads hosts with work from the store, these before all others. When the crawl goes on from an earlier process, each
   * waits one delay.
   */
  open(isContinued: boolean, first: readonly string[] = []): void {
    if (isContinued) this.#continuedAtMs = this.#is.clock.nowMs()
    for (const name of first) this.#loader.load(name)
    this.#loader.refill()
  }

  /** The URL whose turn it is now, or undefined. Reads ahead from the store as needed. */
  candidate(): Candidate | undefined {
    this.#forgetIdle()
    if (this.#loader.isRoomy) this.#loader.refill()
    for (;;) {
      const unit = this.#units.peek()
      if (unit === undefined || unitReadyAtMs(unit) > this.#is.clock.nowMs()) {
        if (!this.#loader.hasMore || this.#loader.room <= 0) return undefined
        this.#loader.refill()
        continue
      }
      const host = unit.hosts.peek()!
      const [url] = host.claimed
      // When the host refused all that are in hand, the store may have others: a few bad URLs in a row are no bad host.
      if (url !== undefined && (host.isDrained || !host.refused.has(url.sequence))) return { host, url }
      this.#claim(host)
      this.#settle(host)
    }
  }

  /** Makes a queued URL the next of its host, whatever its priority. Undefined when the host is not in memory, or the URL has its outcome. */
  bringForward(url: QueuedUrl): Candidate | undefined {
    const host = this.#hosts.get(url.host)
    const at = host?.claimed.findIndex(({ sequence }) => sequence === url.sequence) ?? -1
    if (host === undefined || (at < 0 && host.leased.has(url.sequence))) return undefined
    if (at >= 0) host.claimed.splice(at, 1)
    else this.#leasedCount += 1
    host.leased.add(url.sequence)
    host.claimed.unshift(url)
    this.#settle(host)
    return { host, url }
  }

  /** Starts a candidate: the unit and the host's limiter are charged. */
  start(candidate: Candidate): Lease {
    const { host } = candidate
    this.take(candidate)
    host.limiter.inFlight += 1
    const lease = { ...candidate, startedAtMs: host.startedAtMs, isPaced: this.#delayMsOf(host) > 0 }
    this.hold(host, lease)
    return lease
  }

  /** Takes a candidate away without a fetch; it stays leased until its outcome is stored. */
  take({ host, url }: Candidate): void {
    invariant(host.claimed[0] === url, 'only the first claimed URL is taken')
    host.claimed.shift()
    // Its turn is over for others that are ready, though no clock was charged: URLs that end unfetched come in masses.
    host.startedAtMs = this.#is.clock.nowMs()
    host.unit.nextStartAtMs = Math.max(host.unit.nextStartAtMs, host.startedAtMs)
    this.#settle(host)
  }

  /**
   * A request of the host begins: with a delay, nothing else of the unit starts before `sent`. The delay counts from the
   * sending, because the connection that comes before takes its time, and the server sees requests, not starts.
   */
  hold(host: Host, holder: object): void {
    host.startedAtMs = this.#is.clock.nowMs()
    if (this.#delayMsOf(host) > 0) host.unit.holder = holder
    this.#settle(host)
  }

  /** The request was sent, or ended without; more than once is as good as the last time. */
  sent(host: Host, holder: object): void {
    const { unit } = host
    if (unit.holder === holder) unit.holder = undefined
    unit.nextStartAtMs = Math.max(unit.nextStartAtMs, this.#is.clock.nowMs() + this.#delayMsOf(host))
    this.#settle(host)
  }

  #delayMsOf(host: Host): number {
    return Math.max(host.delayMs ?? this.#is.options.delayMs, host.crawlDelayMs)
  }

  #unhold(lease: Lease): void {
    if (lease.host.unit.holder === lease) this.sent(lease.host, lease)
  }

  /** Ends a fetch, and rules what becomes of its URL. The only reader of the failure table. */
  release(lease: Lease, end: { ok: true } | { ok: false; code: FailureCode; retryAfterMs?: number }): Ruling {
    const { host, url } = lease
    host.limiter.inFlight -= 1
    this.#unhold(lease)
    const ruling = end.ok ? this.#succeed(lease) : this.#fail(lease, end.code, end.retryAfterMs ?? 0)
    if (ruling.kind === 'rest') {
      // Last, so that the host is probed with another URL if there is one.
      host.claimed.push(url)
      host.refused.add(url.sequence)
    }
    if (ruling.kind === 'retry') this.#retrying.add(url.sequence)
    this.#settle(host)
    return ruling
  }

  /** Gives a lease back as if it had never been taken. */
  giveBack(lease: Lease): void {
    lease.host.limiter.inFlight -= 1
    this.#unhold(lease)
    lease.host.claimed.unshift(lease.url)
    this.#settle(lease.host)
  }

  /** Gives back a URL whose page was received and will not be stored. */
  giveBackUnstored(url: QueuedUrl): void {
    const host = this.#hosts.get(url.host)
    invariant(host?.leased.has(url.sequence) === true, 'only a leased URL is given back')
    host.claimed.unshift(url)
    this.#settle(host)
  }

  /** The host's robots.txt could not be had, or the host itself: it rests, and in the end it is given up. */
  failHost(host: Host, { code, retryAfterMs }: { code: FailureCode; retryAfterMs: number }, startedAtMs: number): void {
    if (this.#charge(host, { code, startedAtMs, retryAfterMs }) === 'given up') this.#giveUp(host, code)
    this.#settle(host)
  }

  setGate(host: Host, isGated: boolean): void {
    host.isGated = isGated
    this.#settle(host)
  }

  setCrawlDelay(host: Host, crawlDelayMs: number): void {
    host.crawlDelayMs = Math.min(crawlDelayMs, limits.crawlDelayMsMax)
  }

  /** The operator's word on one host, as long as it is in memory. */
  setLimit(host: Host, { concurrency, delayMs }: HostLimit): void {
    if (concurrency !== undefined) host.limiter.setBounds(concurrency)
    if (delayMs !== undefined) host.delayMs = delayMs
    this.#settle(host)
  }

  exclude(name: string): void {
    this.#ended.note(name, { outcome: 'excluded' })
    const host = this.#hosts.get(name)
    if (host === undefined) return
    host.ended = { outcome: 'excluded' }
    this.#settle(host)
  }

  /** The outcome (or the deferral) of a leased URL is stored. */
  settled(name: string, sequence: number): void {
    const host = this.#hosts.get(name)
    invariant(host?.leased.delete(sequence) === true, 'only a leased URL gets an outcome')
    this.#leasedCount -= 1
    // Its row lies in the store under a later moment: the next claim tells when, also if it is the host's last.
    if (this.#retrying.delete(sequence)) host.isDrained = false
    this.#settle(host)
  }

  /** The store has more rows of this host than before. */
  grow(name: string): void {
    const host = this.#hosts.get(name)
    if (host === undefined) return this.#loader.load(name)
    host.isDrained = false
    this.#settle(host)
  }

  /** When `candidate` may have another answer (monotonic); undefined when that is not a matter of time. */
  nextAtMs(): number | undefined {
    const unit = this.#units.peek()
    const startAtMs = unit === undefined ? Number.POSITIVE_INFINITY : unitReadyAtMs(unit)
    const roomAtMs = (this.#loader.hasMore ? this.#idle.peek()?.forgetAtMs : undefined) ?? Number.POSITIVE_INFINITY
    const atMs = Math.min(startAtMs, roomAtMs)
    return atMs === Number.POSITIVE_INFINITY ? undefined : atMs
  }

  /** No host has work, here or in the store. Work under way is not counted. */
  get isEmpty(): boolean {
    return this.#working.size === 0 && !this.#loader.isResolving && !this.#loader.hasMore
  }

  /** When every host with work rests because of failures: the end of the first rest. Looks at every host with work. */
  restingUntilMs(): number | undefined {
    return this.#loader.isResolving || this.#loader.hasMore ? undefined : firstRestEndMs(this.#working, this.#is.clock.nowMs())
  }

  #succeed({ host, startedAtMs }: Lease): Ruling {
    host.limiter.success()
    // What was under way when the host failed says nothing of its state since: only a probe ends a failure.
    if (startedAtMs > host.failedAtMs) {
      host.failures = 0
      host.failureCode = undefined
      host.refused.clear()
    }
    return { kind: 'page' }
  }

  #fail(lease: Lease, code: FailureCode, retryAfterMs: number): Ruling {
    const { host, url, startedAtMs } = lease
    const [nowMs, rule] = [this.#is.clock.nowMs(), failureRule(code)]
    if (rule.limiter === 'throttle') host.limiter.throttle(startedAtMs, nowMs)
    if (rule.retry === 'never') return { kind: 'fail' }
    if (rule.retry === 'url') {
      restHost(host, retryAfterMs, nowMs)
      return this.#retry(url)
    }
    const wasWell = host.failures === 0
    if (this.#charge(host, { code, startedAtMs, retryAfterMs }) === 'given up') {
      this.#giveUp(host, code)
      return { kind: 'fail' }
    }
    return rule.retry === 'both' && wasWell ? this.#retry(url) : { kind: 'rest' }
  }

  #retry({ attempts }: QueuedUrl): Ruling {
    const { options, random } = this.#is
    if (attempts >= options.retries) return { kind: 'fail' }
    return { kind: 'retry', waitMs: backoffMs(attempts, limits.backoffMsMin, limits.backoffMsMax, random) }
  }

  #charge(host: Host, failure: HostFailure): 'rests' | 'given up' {
    return chargeHost(host, failure, this.#is.clock.nowMs(), this.#is.random)
  }

  #giveUp(host: Host, code: FailureCode): void {
    host.ended ??= { outcome: 'failed', code }
    this.#ended.note(host.name, host.ended)
  }

  #claim(host: Host): void {
    const { clock, store } = this.#is
    const nowMs = clock.wallMs()
    const claim = store.claim(host.name, { limit: limits.claimUrlsPerHost, nowMs, leased: host.leased })
    host.claimed.unshift(...claim.urls)
    for (const { sequence } of claim.urls) host.leased.add(sequence)
    this.#leasedCount += claim.urls.length
    host.isDrained = claim.urls.length < limits.claimUrlsPerHost
    // The store speaks wall clock; a jump of it moves a wait, and the next claim looks again.
    host.dueAtMs = claim.nextDueAtMs === undefined ? Number.POSITIVE_INFINITY : clock.nowMs() + Math.max(0, claim.nextDueAtMs - nowMs)
  }

  /** Puts host and unit where their state says they belong. Called after every change. */
  #settle(host: Host): void {
    const { unit } = host
    if (hasWork(host)) this.#working.add(host)
    else this.#working.delete(host)
    if (isIdle(host)) {
      host.forgetAtMs = clocksUntilMs(host)
      this.#move(host, this.#idle)
    } else {
      this.#move(host, canStart(host) ? unit.hosts : undefined)
    }
    if (unit.hosts.size > 0) this.#units.set(unit)
    else this.#units.delete(unit)
  }

  #move(host: Host, place: Heap<Host> | undefined): void {
    if (host.place !== place) host.place?.delete(host)
    host.place = place
    place?.set(host)
  }

  #forgetIdle(): void {
    const nowMs = this.#is.clock.nowMs()
    for (let host = this.#idle.peek(); host !== undefined && host.forgetAtMs <= nowMs; host = this.#idle.peek()) {
      // Another host of its unit may have started since.
      if (clocksUntilMs(host) > nowMs) this.#settle(host)
      else this.#forget(host)
    }
  }

  #forget(host: Host): void {
    this.#move(host, undefined)
    this.#hosts.delete(host.name)
    host.unit.hostsCount -= 1
    if (host.unit.hostsCount === 0) this.#unitsByName.delete(host.unit.name)
  }

  #attach(record: HostRecord, unitName: string): void {
    const { clock, options } = this.#is
    let unit = this.#unitsByName.get(unitName)
    if (unit === undefined) this.#unitsByName.set(unitName, unit = newUnit(unitName))
    unit.hostsCount += 1
    if (this.#continuedAtMs !== undefined) {
      unit.nextStartAtMs = Math.max(unit.nextStartAtMs, this.#continuedAtMs + Math.max(options.delayMs, record.crawlDelayMs ?? 0))
    }
    const host = newHost(record, unit, new Limiter(options.concurrency, record.limit))
    host.startedAtMs = clock.nowMs()
    if (record.notBeforeMs !== undefined) restHost(host, record.notBeforeMs - clock.wallMs(), clock.nowMs())
    host.ended = this.#ended.get(record.name) ?? host.ended
    this.#hosts.set(record.name, host)
    this.#settle(host)
  }
}

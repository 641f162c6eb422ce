/**
 * Chooses what is fetched next: first the unit, then its host, then that host's best URL. Hosts with work lie in
 * heaps by the next moment at which each may start, so a choice is O(log hosts), and a host that waits costs nothing:
 * no timer, no socket, no place in flight.
 *
 *     turns: heaps of lanes by max(unit clock, its soonest host), one for each class
 *        lane -> hosts: heap by rest or due time, then by last start (so hosts of one unit take turns)
 *                 host -> claimed: a few URLs read ahead; the rest stays in the store
 *     idle: heap of hosts without work, by the end of their clocks; then they are forgotten
 *
 * What a host must know after a restart (host-memory.ts) is handed to `note` when its failures, rests or its end change;
 * limit and health, which change with every answer, when it is forgotten or the crawl is closed.
 *
 * Invariants: a host lies in a lane of its unit exactly when it could start; a URL is in `leased` from its claim until
 * its outcome is stored. Nothing here waits or does I/O except the store's synchronous reads. Main thread.
 */
import type { HostUpdate, Store } from '../../storage/store.ts'
import type { Clock, Random } from '../core/clock.ts'
import { invariant, type FailureCode, type WallCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { CrawlOptions, HostLimit } from '../core/options.ts'
import type { QueuedUrl } from '../core/types.ts'
import type { Places } from '../flow/places.ts'
import { Hands } from './hands.ts'
import { EndedHosts } from './host-failures.ts'
import { firstRestEndMs, noteBody, putInHand, type Candidate, type Host, type Lease } from './host.ts'
import { HostLoader, type HostLoaderOptions } from './host-loader.ts'
import { forgive, forgiven, isUnstored, memoryOf, noteStored } from './host-memory.ts'
import { HostMaker } from './host-maker.ts'
import { relist } from './listed-hosts.ts'
import { RetryBudget } from './retry-budget.ts'
import { Rulings, type FetchEnd, type Ruling } from './rulings.ts'
import type { SharedCap } from './shared-cap.ts'
import { Workbench } from './workbench.ts'

export interface SchedulerOptions {
  readonly store: Pick<Store, 'claim' | 'host' | 'hostsWithWork'>
  readonly options: Pick<CrawlOptions, 'concurrency' | 'delayMs' | 'retries'> & Partial<Pick<CrawlOptions, 'hostLimits' | 'hostPatienceMs' | 'maxPerAddress'>>
  readonly clock: Clock
  readonly random: Random
  readonly unitOf: HostLoaderOptions['unitOf']
  /** Called when something may start that could not before. */
  readonly onWork: () => void
  /** Bounds that the host shares with hosts of other units, besides that of its address. */
  readonly capsOf?: (host: string) => readonly SharedCap[]
  /** Takes what is to be stored of a host. */
  readonly note: (update: HostUpdate) => void
  /** The operator's list of hosts that are asked for nothing; `excludeListed` when it has changed. */
  readonly isExcluded?: (host: string) => boolean
  /** Hosts in memory; a test sets fewer. */
  readonly hostsActiveMax?: number
}

export class Scheduler {
  readonly #is: SchedulerOptions
  readonly #loader: HostLoader
  readonly #bench: Workbench
  readonly #hands: Hands
  readonly #ended: EndedHosts
  readonly #rulings: Rulings
  readonly retries: RetryBudget
  /** The hosts in memory, by name. */
  readonly hosts: ReadonlyMap<string, Host>
  /** Where each leased URL stands, for whoever moves it on. */
  readonly places: Places
  /** How often a host was given up, and parked, by this process. */
  readonly rulingCounts: Readonly<Rulings['counts']>
  readonly #maker: HostMaker
  /** Sequences of leased URLs that will be deferred: their rows come back to the host. */
  readonly #retrying = new Set<number>()

  constructor(options: SchedulerOptions) {
    this.#is = options
    this.#bench = new Workbench(options.clock, (host) => this.#forgotten(host), (host) => this.#expectMore(host))
    this.hosts = this.#bench.hosts
    this.retries = new RetryBudget(options.clock.nowMs())
    this.#hands = new Hands(options, this.retries)
    this.places = this.#hands.places
    this.#ended = new EndedHosts(limits.hostsActiveMax)
    this.#maker = new HostMaker({
      clock: options.clock, options: options.options, capsOf: options.capsOf, ended: this.#ended, isExcluded: options.isExcluded, join: (name, ceiling) => this.#bench.join(name, ceiling),
    })
    this.#rulings = new Rulings({
      clock: options.clock, random: options.random, retries: options.options.retries, patienceMs: options.options.hostPatienceMs ?? 0,
      delayMsOf: (host) => this.#delayMsOf(host), note: (host) => this.#note(host), onGivenUp: ({ name, ended }) => this.#ended.note(name, ended, options.clock.nowMs()),
    })
    this.rulingCounts = this.#rulings.counts
    this.#loader = new HostLoader({
      store: options.store, unitOf: options.unitOf, hosts: this.#bench.hosts, hostsMax: options.hostsActiveMax ?? limits.hostsActiveMax,
      onLoaded: (record, belonging) => this.#bench.add(this.#maker.make(record, belonging)), onLoadedLate: options.onWork,
    })
  }

  /** Hosts in memory that have work, and those that are unwell (health.ts). */
  get sets(): { readonly working: ReadonlySet<Host>; readonly unwell: ReadonlySet<Host> } {
    return { working: this.#bench.working, unwell: this.#rulings.unwell }
  }

  get leasedCount(): number {
    return this.#hands.leasedCount
  }

  /** A URL of the host was claimed and has no stored outcome. */
  isLeased(name: string, sequence: number): boolean {
    return this.#bench.hosts.get(name)?.leased?.has(sequence) === true
  }

  host(name: string): Host | undefined {
    return this.#bench.hosts.get(name)
  }

  /**
   * Reads the first hosts with work from the store, these before all others. When the crawl goes on from an earlier
   * process, each waits one delay from now, also after a clean stop: the wall clock alone could say how long ago that was.
   */
  open(isContinued: boolean, first: readonly string[] = []): void {
    if (isContinued) this.#maker.continuedAtMs = this.#is.clock.nowMs()
    for (const name of first) this.#loader.load(name)
    this.#loader.refill()
  }

  /** Brings in the next few hosts from the store, once a turn of the event loop; answers whether the next turn should. */
  refill(): boolean {
    this.#bench.forgetIdle()
    if (this.#wantsHosts) this.#loader.refill()
    return this.#wantsHosts
  }

  /** There is room for many hosts, or for one while no other may start. */
  get #wantsHosts(): boolean {
    const { hasMore, isRoomy, room } = this.#loader
    return hasMore && room > 0 && (isRoomy || this.#bench.next() === undefined)
  }

  /** The URL whose turn it is now, or undefined. Reads ahead from the store as needed. */
  candidate(): Candidate | undefined {
    this.#bench.forgetIdle()
    for (const host of this.retries.wake(this.#is.clock.nowMs())) this.#settle(host)
    for (;;) {
      const host = this.#bench.next()
      if (host === undefined) return undefined
      const url = this.#hands.next(host, this.#bench.working.size)
      if (url !== undefined) return { host, url }
      this.#settle(host)
    }
  }

  /** Makes a queued URL the next of its host, whatever its priority. Undefined when the host is not in memory, or the URL has its outcome. */
  bringForward(url: QueuedUrl): Candidate | undefined {
    const host = this.#bench.hosts.get(url.host)
    if (host === undefined || !this.#hands.bringForward(host, url)) return undefined
    this.#settle(host)
    return { host, url }
  }

  /** The time by which rows of the queue are deferred; see hands.ts. */
  rowsMs(): number {
    return this.#hands.rowsMs()
  }

  /** Starts a candidate: the unit and the host's limiter are charged. */
  start(candidate: Candidate): Lease {
    const { host, url } = candidate
    this.retries.begun(host, url, this.#is.clock.nowMs())
    this.take(candidate)
    host.limiter.inFlight += 1
    this.#count(host, 1)
    const lease = { ...candidate, startedAtMs: host.startedAtMs, inFlight: host.limiter.inFlight, isPaced: this.#delayMsOf(host) > 0 }
    this.#pace(host)
    this.hold(host, lease)
    return lease
  }

  /** Takes a candidate away without a fetch; it stays leased until its outcome is stored. */
  take({ host, url }: Candidate): void {
    invariant(host.claimed[0] === url, 'only the first claimed URL is taken')
    host.claimed.shift()
    host.retryAtMs = 0
    host.startedAtMs = this.#is.clock.nowMs()
    this.#endTurn(host)
    this.#settle(host)
  }

  /** The row of a leased URL goes under a later moment, as that of a retry does: the next claim of its host looks for it. */
  readonly willComeLater = ({ sequence }: QueuedUrl): void => void this.#retrying.add(sequence)

  /** Its turn is over for others that are ready, though no clock was charged: URLs that end unfetched come in masses. */
  #endTurn(host: Host): void {
    host.turnsLeft -= 1
    if (host.turnsLeft > 0) return
    host.turnsLeft = host.weight
    host.turnEndedAtMs = host.startedAtMs
    host.unit.nextStartAtMs = Math.max(host.unit.nextStartAtMs, host.turnEndedAtMs)
  }

  /** A request of the host begins to count, or no longer does, for the bounds that it shares with other hosts. */
  #count({ caps, unit }: Host, change: 1 | -1): void {
    unit.inFlight += change
    for (const cap of caps ?? []) {
      cap.inFlight += change
      if (change < 0) this.#bench.wake(cap)
    }
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
    const delayMs = this.#delayMsOf(host)
    if (delayMs > 0) unit.nextStartAtMs = Math.max(unit.nextStartAtMs, this.#is.clock.nowMs() + delayMs)
    this.#settle(host)
  }

  #delayMsOf(host: Host): number {
    return Math.max(host.delayMs ?? this.#is.options.delayMs, host.crawlDelayMs)
  }

  /** Its own clock, on top of its delay; few have one. */
  #pace(host: Host): void {
    const { limiter, startedAtMs } = host
    host.paceUntilMs = limiter.paceMs === 0 ? 0 : startedAtMs + this.#delayMsOf(host) + limiter.paceWaitMs(this.#is.random)
  }

  #unhold(lease: Lease): void {
    if (lease.host.unit.holder === lease) this.sent(lease.host, lease)
  }

  /** Ends a fetch, and rules what becomes of its URL and its host, by the failure table. */
  release(lease: Lease, end: FetchEnd): Ruling {
    this.#count(lease.host, -1)
    this.#unhold(lease)
    const ruling = this.#rulings.of(lease, end)
    lease.host.limiter.inFlight -= 1
    this.#pace(lease.host)
    return this.#ruled(lease, ruling)
  }

  /** A page that was released as an answer turned out to be a wall; `startedAtMs` is its lease's, `isFinal` as of a fetch. */
  reconsider(url: QueuedUrl, code: WallCode, startedAtMs: number, isFinal: boolean): Ruling {
    const host = this.#bench.hosts.get(url.host)!
    const lease = { host, url, startedAtMs, inFlight: host.limiter.inFlight, isPaced: false }
    return this.#ruled(lease, this.#rulings.reconsider(lease, code, isFinal))
  }

  #ruled({ host, url }: Candidate, ruling: Ruling): Ruling {
    if (ruling.kind === 'back') putInHand(host, [url], 'before')
    if (ruling.kind === 'rest') {
      // Last, so that the host is probed with another URL if there is one.
      putInHand(host, [url], 'behind')
      host.refused = (host.refused ?? new Set()).add(url.sequence)
    }
    if (ruling.kind === 'retry') this.#retrying.add(url.sequence)
    this.#settle(host)
    return ruling
  }

  /** Gives a lease back as if it had never been taken, but for the turn: a probe of the network goes to another host each time. */
  giveBack(lease: Lease): void {
    lease.host.unit.nextStartAtMs = Math.max(lease.host.unit.nextStartAtMs, this.#is.clock.nowMs())
    lease.host.limiter.inFlight -= 1
    this.#count(lease.host, -1)
    this.#unhold(lease)
    putInHand(lease.host, [lease.url], 'before')
    this.#settle(lease.host)
  }

  /** Gives back a URL whose page was received and will not be stored. */
  giveBackUnstored(url: QueuedUrl): void {
    const host = this.#bench.hosts.get(url.host)
    invariant(host?.leased?.has(url.sequence) === true, 'only a leased URL is given back')
    putInHand(host, [url], 'before')
    this.#settle(host)
  }

  /** The host's robots.txt could not be had, or the host itself: it rests, and in the end it is given up. */
  failHost(host: Host, { code, retryAfterMs }: { code: FailureCode; retryAfterMs: number }, startedAtMs: number): void {
    this.#rulings.failHost(host, { code, retryAfterMs, startedAtMs })
    this.#settle(host)
  }

  /** A body of the host takes so many of the bytes that bodies in flight may take. */
  noteBody(host: Host, bytes: number, budgetBytes: number): void {
    noteBody(host, bytes, { budgetBytes, hostsWorking: this.#bench.working.size })
    this.#settle(host)
  }

  setGate(host: Host, isGated: boolean): void {
    if (isGated !== host.isGated) this.#count(host, isGated ? 1 : -1)
    host.isGated = isGated
    this.#settle(host)
  }

  setCrawlDelay(host: Host, crawlDelayMs: number): void {
    host.crawlDelayMs = Math.min(crawlDelayMs, limits.crawlDelayMsMax)
  }

  /** The operator's word on the hosts of a pattern, as long as the process runs. */
  setLimit(pattern: string, limit: HostLimit): void {
    for (const host of this.#maker.setLimit(pattern, limit, this.#bench.hosts.values())) this.#settle(host)
  }

  /** A host whose turn it is leaves it to others, and waits until the cap lets it go. */
  stepBack(host: Host, cap: SharedCap): void {
    this.#bench.waitAt(host, cap)
  }

  /** A cap that is not counted here has room: a gateway goes on, its limit has risen. */
  wake(cap: SharedCap): void {
    this.#bench.wake(cap)
    this.#is.onWork()
  }

  /** Somebody wants URLs of a host tried again: if it was given up or parked, it gets a new chance. */
  revive(name: string): void {
    const { clock, note, store } = this.#is
    const host = this.#bench.hosts.get(name)
    const ended = (host ?? this.#ended.get(name, clock.nowMs()) ?? { ended: undefined }).ended
    const isGivenUp = ended === undefined ? host === undefined && store.host(name)?.givenUp !== undefined : ended.outcome === 'failed'
    if (!isGivenUp && (host ?? store.host(name))?.parked === undefined) return
    this.#ended.note(name, undefined, clock.nowMs())
    if (host === undefined) return note(forgiven(name))
    forgive(host)
    this.#note(host)
    this.#settle(host)
  }

  /** What is not stored of the hosts in memory, for a stop. */
  * unstored(): Iterable<HostUpdate> {
    for (const host of this.#bench.hosts.values()) if (isUnstored(host)) yield memoryOf(host, this.#is.clock)
  }

  exclude(name: string): void {
    this.#ended.note(name, { outcome: 'excluded' }, this.#is.clock.nowMs())
    const host = this.#bench.hosts.get(name)
    if (host === undefined) return
    host.ended = { outcome: 'excluded' }
    this.#settle(host)
  }

  /** The list of excluded hosts has changed: hosts in memory end, and those that it named before go on. */
  excludeListed(): void {
    const { clock, isExcluded, store } = this.#is
    const isNamed = (name: string): boolean => this.#ended.get(name, clock.nowMs())?.ended?.outcome === 'excluded' || store.host(name)?.excluded === true
    for (const host of relist(this.#bench.hosts.values(), { isListed: (name) => isExcluded?.(name) === true, isNamed })) this.#settle(host)
    this.#is.onWork()
  }

  /** The outcome (or the deferral) of a leased URL is stored. */
  settled(name: string, sequence: number): void {
    const host = this.#bench.hosts.get(name)
    this.#hands.settled(host, sequence)
    // Its row lies in the store under a later moment: the next claim tells when, also if it is the host's last.
    if (this.#retrying.delete(sequence)) this.#expectMore(host)
    else this.#settle(host)
  }

  /** The store has more rows of this host than before, the best of them of this priority: what is worse in its hand waits for them. */
  grow(name: string, priority = 0): void {
    const host = this.#bench.hosts.get(name)
    if (host === undefined) return this.#loader.load(name)
    this.#hands.dropWorse(host, priority)
    this.#expectMore(host)
  }

  /** The next claim looks for rows of the first class. */
  #expectMore(host: Host): void {
    host.isDrained = false
    host.isFirstDrained = false
    this.#hands.dropLater(host)
    this.#settle(host)
  }

  /** When `candidate` may have another answer (monotonic); undefined when that is not a matter of time. */
  nextAtMs(): number | undefined {
    const atMs = Math.min(this.#bench.nextAtMs, this.#loader.hasMore ? this.#bench.roomAtMs : Number.POSITIVE_INFINITY, this.retries.nextAtMs(this.#is.clock.nowMs()))
    return atMs === Number.POSITIVE_INFINITY ? undefined : atMs
  }

  /** No host has work, here or in the store. Work under way is not counted. */
  get isEmpty(): boolean {
    return this.#bench.working.size === 0 && !this.#loader.isResolving && !this.#loader.hasMore
  }

  /** When every host with work rests because of failures: the end of the first rest. Looks at every host with work. */
  restingUntilMs(): number | undefined {
    return this.#loader.isResolving || this.#loader.hasMore ? undefined : firstRestEndMs(this.#bench.working, this.#is.clock.nowMs())
  }

  #note(host: Host): void {
    this.#is.note(memoryOf(host, this.#is.clock))
    noteStored(host)
  }

  #settle(host: Host): void {
    this.#bench.settle(host)
  }

  #forgotten(host: Host): void {
    if (isUnstored(host)) this.#note(host)
    this.#rulings.forget(host)
    this.#maker.forget(host)
  }
}

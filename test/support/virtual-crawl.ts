/**
 * The engine on a clock that a test moves: the real crawl loop with its stages, scheduler, commit loop, robots gate, run and
 * window, over a virtual web, virtual parse workers and a virtual store. Wired as `engine/open-stages.ts` does. Between two
 * moments of virtual time everything happens that can, so that a run is a function of its seed and of nothing else.
 *
 *     play: settle -> check -> on to the next timer, and again
 *
 * After every event the bounds and sums are checked that must hold at all times, whatever the afternoon is like; at the end
 * `expectWhole` compares the engine's word with the web's own log.
 */
import { setMaxListeners } from 'node:events'
import { expect } from 'vitest'
import { scopeNameOf } from '../../engine/add-urls.ts'
import { bytesOf, CommitLoop } from '../../engine/commit-loop.ts'
import type { BlockedOn, Stats } from '../../engine/core/api-types.ts'
import type { Random } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions, resolveRunLimits, type CrawlOptions, type CrawlOptionsGiven, type RunLimitsGiven } from '../../engine/core/options.ts'
import { stateOfOutcome } from '../../engine/core/types.ts'
import { CrawlLoop } from '../../engine/crawl-loop.ts'
import type { CrawlParts } from '../../engine/crawl-parts.ts'
import { Events } from '../../engine/events.ts'
import { ByteBudget } from '../../engine/fetch/byte-budget.ts'
import { createAddressGuard } from '../../engine/fetch/address-guard.ts'
import { readGateways } from '../../engine/fetch/gateway-file.ts'
import { Gateways } from '../../engine/fetch/gateways.ts'
import { createTlsTrust } from '../../engine/fetch/tls-context.ts'
import { AckWindow } from '../../engine/flow/ack-window.ts'
import { ConnectionCeiling, ceilingsOf } from '../../engine/flow/connection-ceiling.ts'
import { DiskSpace } from '../../engine/flow/disk-space.ts'
import { FlowBounds } from '../../engine/flow/flow-bounds.ts'
import { Gate } from '../../engine/flow/gate.ts'
import { memoryBudgetOf, type MemoryBudget } from '../../engine/flow/memory-budget.ts'
import { MemoryGuard } from '../../engine/flow/memory-guard.ts'
import { RateLimit } from '../../engine/flow/rate-limit.ts'
import type { Settled } from '../../engine/parse-stage.ts'
import { Run } from '../../engine/run.ts'
import type { Host } from '../../engine/schedule/host.ts'
import { NetworkWatch } from '../../engine/schedule/network-watch.ts'
import { Recrawl } from '../../engine/schedule/recrawl.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { statsOf, type LoopMeter } from '../../engine/stats.ts'
import { RobotsGate } from '../../engine/web/robots.ts'
import { seededRandom } from './random.ts'
import { settle, TestClock } from './test-clock.ts'
import { VirtualPool, type VirtualPoolOptions } from './virtual-pool.ts'
import { VirtualStore, type VirtualStoreOptions } from './virtual-store.ts'
import { VirtualWeb, type Behaviour, type Served } from './virtual-web.ts'

const GB = 1024 ** 3

/** A control that a run may be made without, to see that it is the control that saves the afternoon. */
export type Control =
  /** Slots for as many pages as there are. */
  | 'page_ring'
  /** Bodies take no bytes from the budget's bound. */
  | 'body_bytes'
  /** A host may take all bytes that bodies in flight may take. */
  | 'body_share'
  /** Outcomes queue up as they come. */
  | 'commit_queue'
  /** Nobody looks at the disk, and a write that finds no room holds nobody. */
  | 'disk'
  /** Pages wait for the consumer in any number. */
  | 'consumer_window'
  /** Each failure is its host's. */
  | 'network_watch'
  /** Tries after the first are made as they fall due. */
  | 'retry_budget'
  /** All hosts are one unit with one clock. */
  | 'host_queues'

export interface VirtualCrawlOptions {
  readonly seed: number
  readonly behaviour: Behaviour
  readonly options?: CrawlOptionsGiven
  readonly run?: RunLimitsGiven
  readonly pool?: Partial<Omit<VirtualPoolOptions, 'clock'>>
  readonly store?: Omit<VirtualStoreOptions, 'clock'>
  /** Free bytes of a disk of 100 GB; default half of it. */
  readonly freeBytes?: (nowMs: number) => number
  /** How long the consumer takes over a page; absent: there is no consumer. */
  readonly consumeMs?: (nowMs: number) => number
  /** Memory of the process; default none. */
  readonly heldBytes?: () => number
  /** Utilisation of the event loop, 0 to 1; default 0.3. */
  readonly utilization?: (nowMs: number) => number
  /** Every origin is asked for its robots.txt first; default no. */
  readonly asksRobots?: boolean
  readonly without?: Control
}

/** From here on until the next mark the crawl was blocked on this. */
interface Mark {
  readonly atMs: number
  readonly blockedOn: BlockedOn
}

/** A loop without load: how busy this process is says nothing of virtual time. */
const noLoops = { read: () => 0, workers: { read: () => [] } } as unknown as LoopMeter

/** A prime, so that no rhythm of a crawl hides anything from it. */
const STATS_EVERY = 7

/** No crawl of these tests is that long: it does not end. */
const END_MS = 24 * 60 * 60_000
const EVENTS_MAX = 500_000

export class VirtualCrawl {
  readonly clock = new TestClock({ nowMs: 0 })
  readonly web: VirtualWeb
  readonly pool: VirtualPool
  readonly store: VirtualStore
  readonly options: CrawlOptions
  readonly flow: VirtualFlow
  readonly budget: ByteBudget
  readonly random: Random
  readonly parts: CrawlParts
  readonly loop: CrawlLoop
  readonly run: Run<Settled>
  /** How the bounds followed each other. */
  readonly marks: Mark[] = []
  readonly #is: VirtualCrawlOptions
  readonly #disk: DiskSpace
  readonly #gate: Gate
  /** When a request of a unit was last sent, and until when a host asked not to be asked. */
  readonly #sentAtMs = new Map<string, number>()
  readonly #retryAfterMs = new Map<string, number>()
  #isPaused = false
  #isOver = false
  #failure: unknown
  /** Events of the whole run. */
  events = 0
  /** The most outcomes that waited, and the most pages that the consumer had before it. */
  readonly most = { commitQueue: 0, window: 0, leased: 0 }

  constructor(is: VirtualCrawlOptions) {
    this.#is = is
    const { clock } = this
    this.random = seededRandom(is.seed)
    this.options = resolveCrawlOptions({ scope: 'any', delayMs: 0, ...is.options })
    this.flow = flowOf(is, this.options, clock)
    this.budget = new ByteBudget(is.without === 'body_bytes' ? 1_000 * GB : this.flow.memory.bodyBytes)
    this.web = new VirtualWeb({
      clock, budget: this.budget, behaviour: is.behaviour, rates: this.flow.rates, gateways: this.flow.gateways,
      onFetch: (url) => this.#checkDispatch(url), onSend: (served) => this.#checkSent(served),
      onRetryAfter: (host, ms) => this.#retryAfterMs.set(host, Math.max(this.#retryAfterMs.get(host) ?? 0, clock.nowMs() + ms)),
    })
    this.pool = new VirtualPool({ clock, ...workersOf(is), slots: this.flow.memory.slots })
    this.store = new VirtualStore({ clock, ...is.store })
    const { parts, disk, gate } = this.#wire()
    this.parts = parts
    this.#disk = disk
    this.#gate = gate
    this.loop = new CrawlLoop(parts)
    this.run = this.#newRun()
  }

  /** The whole crawl, to its end. */
  async play(): Promise<this> {
    await this.playUntil(END_MS)
    expect(this.#isOver, `the crawl ends; blocked on ${this.loop.blockedOn} with ${this.store.counters().pending} pending`).toBe(true)
    if (this.#failure !== undefined) throw this.#failure
    return this
  }

  /** To a moment of virtual time, or to the end of the crawl. */
  async playUntil(untilMs: number): Promise<this> {
    if (this.events === 0) this.#begin()
    for (;;) {
      await settle()
      this.events += 1
      this.check()
      if (this.events > EVENTS_MAX) expect.fail(`at ${this.clock.nowMs()} ms the crawl does not end; blocked on ${this.loop.blockedOn} with ${this.store.counters().pending} pending`)
      const nextMs = this.clock.nextTimerAtMs
      if (this.#isOver || nextMs === undefined || nextMs > untilMs) return this
      this.clock.advance(nextMs - this.clock.nowMs())
    }
  }

  get hasConsumer(): boolean {
    return this.run.window !== undefined
  }

  get isOver(): boolean {
    return this.#isOver
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    this.loop.setPaused(isPaused)
  }

  /** Calls back at a moment of virtual time. */
  at(ms: number, act: () => void): this {
    this.clock.after(ms - this.clock.nowMs(), act)
    return this
  }

  stats(): Stats {
    return statsOf({
      parts: this.parts, loop: this.loop, meter: noLoops, state: 'running', run: this.run, elapsedMs: this.clock.nowMs(),
      fetches: this.run.fetches,
    })
  }

  /** Good answers of these hosts (of all, without) that ended in [from, to), by the web's log. */
  pages(fromMs: number, toMs: number, isOf: (host: string) => boolean = () => true): number {
    return this.web.log.filter(({ host, endMs, isPage }) => isPage && endMs >= fromMs && endMs < toMs && isOf(host)).length
  }

  /** The same a virtual second. */
  pagesPerSecond(fromMs: number, toMs: number, isOf?: (host: string) => boolean): number {
    return this.pages(fromMs, toMs, isOf) / ((toMs - fromMs) / 1_000)
  }

  /** Shares of the time in [from, to) in which each bound held the crawl. */
  blockedShares(fromMs: number, toMs: number): Partial<Record<BlockedOn, number>> {
    const shares: Partial<Record<BlockedOn, number>> = {}
    for (const [i, { atMs, blockedOn }] of this.marks.entries()) {
      const ms = Math.min(toMs, this.marks[i + 1]?.atMs ?? this.clock.nowMs()) - Math.max(fromMs, atMs)
      if (ms > 0) shares[blockedOn] = (shares[blockedOn] ?? 0) + ms / (toMs - fromMs)
    }
    return shares
  }

  /** What holds at every moment, whatever happens. */
  check(): void {
    const { clock, loop, most, parts, run, store } = this
    const { discovered, pending, done, failed, dropped, excluded } = store.counters()
    const nowMs = clock.nowMs()
    if (this.marks.at(-1)?.blockedOn !== loop.blockedOn) this.marks.push({ atMs: nowMs, blockedOn: loop.blockedOn })
    most.commitQueue = Math.max(most.commitQueue, parts.commits.queued)
    most.window = Math.max(most.window, run.window?.size ?? 0)
    most.leased = Math.max(most.leased, parts.scheduler.leasedCount)
    if (discovered !== pending + done + failed + dropped + excluded) expect.fail(`at ${nowMs} ms the sums do not hold: ${JSON.stringify(store.counters())}`)
    if (parts.scheduler.leasedCount > pending) expect.fail(`at ${nowMs} ms ${parts.scheduler.leasedCount} leased of ${pending} pending`)
    if (this.#is.without === undefined) this.#checkRetries()
    // The table costs more than an event: now and then all of it, and the stages, whose depths are what is leased.
    if (this.#is.without !== undefined || this.events % STATS_EVERY !== 0) return
    const { bounds, leased, pressure } = this.stats()
    for (const { name, used, max } of bounds) if (used > max) expect.fail(`at ${nowMs} ms ${used} of ${max} ${name}`)
    const depth = pressure.stages.reduce((sum, stage) => sum + stage.depth, 0)
    if (depth !== leased) expect.fail(`at ${nowMs} ms ${depth} URLs in stages, and ${leased} leased: ${JSON.stringify(pressure.stages)}`)
  }

  /** Of all requests, those for a page that was asked for before: within what first tries and time have earned. */
  #checkRetries(): void {
    const { retries } = this.parts.scheduler.retries
    const earned = limits.retryTokensMax + (this.run.fetches - retries) / 10 + this.clock.nowMs() / limits.retryTokenMs
    if (retries > earned + 1) expect.fail(`at ${this.clock.nowMs()} ms ${retries} retries, and ${earned} were earned`)
  }

  /** At the end: no URL lost and none done twice, by the counters, by the store's rows and by the web's own log. */
  expectWhole(): void {
    const counters = this.store.counters()
    const states = { done: 0, failed: 0, dropped: 0, excluded: 0, pending: 0 }
    const answered = new Map<string, number>()
    for (const { host, path, isPage } of this.web.log) {
      if (!isPage || path === '/robots.txt') continue
      const url = `http://${host}${path}`
      answered.set(url, (answered.get(url) ?? 0) + 1)
    }
    for (const [url, outcome] of this.store.outcomes) {
      states[outcome === 'pending' ? 'pending' : stateOfOutcome[outcome]] += 1
      const times = answered.get(url) ?? 0
      if (outcome === 'ok' && times !== 1) expect.fail(`${url} is done, and was answered ${times} times`)
      if (outcome === 'pending' && times > 0) expect.fail(`${url} was answered ${times} times, and has no outcome`)
    }
    expect({ ...counters }).toMatchObject(states)
    expect(counters.pending, 'pending at the end').toBe(this.loop.parked)
    // What is parked may lie in its host's hand.
    expect(this.parts.scheduler.leasedCount, 'leased at the end').toBeLessThanOrEqual(this.loop.parked)
    expect([this.budget.reservedBytes, this.web.stats().inFlight], 'bytes and requests at the end').toEqual([0, 0])
  }

  #begin(): void {
    this.parts.scheduler.open(false)
    void this.#disk.start()
    this.#gate.start()
    this.loop.begin(this.run)
    void this.#live()
  }

  async #live(): Promise<void> {
    try {
      await this.#crawl()
    } catch (error) {
      this.#failure = error
    }
    this.#isOver = true
  }

  async #crawl(): Promise<void> {
    const { consumeMs } = this.#is
    const { clock, loop, run } = this
    if (run.window !== undefined && consumeMs !== undefined) {
      for (let item = await run.window.next(); item !== undefined; item = await run.window.next()) {
        await new Promise<void>((resolve) => { clock.after(consumeMs(clock.nowMs()), resolve) })
      }
      loop.end('stopped', true)
    }
    await run.drained
    await loop.conclude(run)
    this.#disk.stop()
    this.#gate.stop()
    this.flow.gateways?.close()
    if (run.error !== undefined) throw run.error
  }

  #newRun(): Run<Settled> {
    const { consumeMs, run: runLimits = {}, without } = this.#is
    const window: AckWindow<Settled> | undefined = consumeMs === undefined ? undefined : new AckWindow({
      sizeMax: () => (without === 'consumer_window' ? Number.POSITIVE_INFINITY : this.flow.bounds.window.limit),
      bytesOf: ({ ended }) => 2 * bytesOf(ended), bytesMax: this.flow.memory.windowBytes,
      isHanded: ({ ended }) => stateOfOutcome[ended.outcome] === 'done',
      onAck: (settled) => this.loop.store(run, settled),
    })
    const run = new Run<Settled>({ limits: resolveRunLimits(runLimits), startedAtMs: 0, window })
    setMaxListeners(0, run.aborter.signal)
    return run
  }

  /** Nothing begins while something forbids it, and no host is given more than its limit. */
  #checkDispatch(url: URL): void {
    if (this.#is.without !== undefined) return
    const { flow: { bounds, guard, rates }, parts: { commits, disk, gate, pool, scheduler }, run, loop, web } = this
    const limiter = url.pathname === '/robots.txt' ? undefined : scheduler.host(url.hostname)!.limiter
    const slotsUsed = pool.stats().slots - pool.slotsFree
    const holders = [
      [this.#isPaused, 'the crawl is paused'], [run.reason !== undefined, 'the run is over'],
      [run.window?.isFull === true, 'the window is full'], [commits.isFull, 'the commit queue is full'],
      [pool.slotsFree === 0 || slotsUsed >= bounds.slots.limit, 'no slot is free'], [disk.shortOf !== undefined, 'the disk is full'],
      [web.isShortOfBytes, 'bodies wait for bytes'], [loop.inFlight > gate.governor.limit, 'all connections are used'],
      [guard.isShut && loop.inFlight - 1 + slotsUsed > 0, 'memory is full'], [rates.blocked !== undefined, 'the rate is reached'],
      [limiter !== undefined && limiter.inFlight > limiter.limit, 'the host is at its limit'],
    ] as const
    for (const [isHolding, what] of holders) if (isHolding) expect.fail(`at ${this.clock.nowMs()} ms ${url.href} is fetched though ${what}`)
  }

  /** The delay between two requests of a unit, a host's Retry-After and the ceiling of its limit, by the web's own clock. */
  #checkSent({ host, path, startMs, concurrent }: Served): void {
    const { delayMs, concurrency: { ceiling }, politeness } = this.parts.options
    const unit = politeness === 'domain' ? scopeNameOf(host, 'domain') : host
    const sinceMs = startMs - (this.#sentAtMs.get(unit) ?? Number.NEGATIVE_INFINITY)
    this.#sentAtMs.set(unit, startMs)
    if (sinceMs < delayMs) expect.fail(`${host}${path} was asked ${sinceMs} ms after the last request, sooner than ${delayMs} ms`)
    const earlyMs = (this.#retryAfterMs.get(host) ?? 0) - startMs
    if (earlyMs > 0) expect.fail(`${host}${path} was asked at ${startMs} ms, ${earlyMs} ms before its Retry-After was over`)
    // A robots.txt is no page, and is asked for beside them.
    if (concurrent > ceiling + 1) expect.fail(`${host} serves ${concurrent} requests at once, more than ${ceiling}`)
  }

  /** As open-stages.ts wires the stages: the one place to follow it in. */
  #wire(): { parts: CrawlParts; disk: DiskSpace; gate: Gate } {
    const { clock, flow: { bounds, ceiling, gateways, guard, memory, rates }, options, pool, random, store, web } = this
    const { asksRobots = false, freeBytes = () => 50 * GB, utilization = () => 0.3, without } = this.#is
    const events = new Events('virtual')
    const onWork = (): void => this.loop.wake()
    const robotsGate = new RobotsGate({
      fetcher: web, clock, userAgent: options.userAgent, deadlineMs: options.timeoutMs, readRobots: async () => ({ lines: '' }), stored: (host) => store.host(host)?.robots,
    })
    const robots: CrawlParts['robots'] = asksRobots ? robotsGate : { ask: async () => ({ kind: 'known' }), check: () => ({ kind: 'allowed' }), sitemapsOf: () => [], verdictsOf: () => ({}) }
    const scheduler = new Scheduler({
      store, options, clock, random, onWork, note: (update) => commits.noteHost(update), capsOf: (host) => gateways?.capsOf(host) ?? [],
      unitOf: (host) => (without === 'host_queues' ? 'one' : scopeNameOf(host, options.politeness === 'domain' ? 'domain' : 'host')),
    })
    if (gateways !== undefined) gateways.onRoom = (cap) => scheduler.wake(cap)
    if (without === 'retry_budget') Object.assign(scheduler.retries, { mayRetry: () => true, isSpent: () => false })
    const network = new NetworkWatch<Host>({ clock, random, hostsWorking: () => scheduler.sets.working.size, onChange: onWork })
    if (without === 'network_watch') network.failed = (_, settle) => settle('host')
    const onFull = (): void => {
      disk.noteFull()
      onWork()
    }
    const commits = new CommitLoop({
      store, clock, onFull, onCommitted: (batch, result) => this.loop.committed(batch, result), onFailed: (error) => this.loop.end('failed', true, error),
      queueUrlsMax: () => bounds.commitUrls.limit, commitBytesMax: memory.commitBytes,
    })
    if (without === 'commit_queue') Object.defineProperty(commits, 'isFull', { value: false })
    if (without === 'disk') Object.defineProperty(commits, 'isStuck', { value: false })
    pool.onProgress = onWork
    const disk = new DiskSpace({
      clock, look: async () => ({ freeBytes: freeBytes(clock.nowMs()), totalBytes: 100 * GB }), storeBytes: () => 0, storeBytesMax: options.maxStoreBytes,
      onRoom: () => {
        commits.retry()
        onWork()
      },
    })
    // A host's share of the bytes is made of what the gate says of memory.
    const seen = without === 'body_share' ? { ...memory, bodyBytes: 1_000 * GB } : memory
    const gate = new Gate({ clock, memory: seen, bounds, guard, ceiling, rates, utilization: () => utilization(clock.nowMs()), commits, fetcher: web, pool: without === 'page_ring' ? { slotsFree: 1e9, oldestFilledMs: 0 } : pool, onRoom: onWork })
    return {
      disk, gate,
      parts: {
        store, scheduler, network, fetcher: web, ...(gateways && { gateways }), robots, pool, commits, clock, options, events, gate, disk: without === 'disk' ? { shortOf: undefined } : disk,
        suspects: { hosts: [], isEmpty: true, next: () => ({ kind: 'none' }) }, recrawl: new Recrawl(options.recrawl, random), nearDuplicates: undefined,
      },
    }
  }
}

type VirtualFlow = ReturnType<typeof flowOf>

function workersOf({ pool }: VirtualCrawlOptions): Pick<VirtualPoolOptions, 'serviceMs' | 'workers'> & Partial<VirtualPoolOptions> {
  return { workers: 2, serviceMs: () => 5, ...pool }
}

/** As flow/flow.ts does, on a machine of 8 GB with as many open files as one likes. */
function flowOf(is: VirtualCrawlOptions, options: CrawlOptions, clock: TestClock) {
  const { without } = is
  const { workers } = workersOf(is)
  const budget = memoryBudgetOf(options, 8 * GB)
  const memory: MemoryBudget = { ...budget, slots: without === 'page_ring' ? 1e9 : is.pool?.slots ?? budget.slots }
  const { connections } = ceilingsOf({ connections: options.connections, filesMax: Number.POSITIVE_INFINITY, socketsMax: memory.socketsMax, workers })
  const { list: configs } = readGateways(options.gateway)
  const [guard, trust] = [createAddressGuard([]), createTlsTrust({ ca: undefined, insecure: false })]
  return {
    memory, bounds: new FlowBounds(memory, workers), rates: new RateLimit(options, () => clock.nowMs()), ceiling: new ConnectionCeiling(connections),
    guard: new MemoryGuard(memory.bytes, () => is.heldBytes?.() ?? 0),
    gateways: configs.length === 0 ? undefined : new Gateways({ configs, guard, trust, clock, random: seededRandom(is.seed), userAgent: options.userAgent, pins: {} }),
  }
}

/** Names `h0.test` and on. */
export function hostNames(count: number, prefix = 'h'): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}.test`)
}

/** URLs `http://HOST/0` and on. */
export function* urlsOf(hosts: Iterable<string>, each: number): Iterable<string> {
  for (const host of hosts) for (let i = 0; i < each; i++) yield `http://${host}/${i}`
}

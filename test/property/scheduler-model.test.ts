/**
 * The scheduler against a model that knows nothing of heaps: a world of a few hosts, an in-memory frontier, a clock
 * that a test moves, and random events in random order. The model remembers when each unit may be hit next, what is
 * under way, and what has ended; it says what must never happen. At the end chance stops, every fetch succeeds, and
 * time is moved only to where the scheduler says that something happens: then no URL may be left.
 */
import { expect, test } from 'vitest'
import { failureRule, type FailureCode } from '../../engine/core/errors.ts'
import type { Random } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { isRetry, restUntilMs, type Host, type Lease } from '../../engine/schedule/host.ts'
import { NetworkWatch } from '../../engine/schedule/network-watch.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock, turn } from '../support/test-clock.ts'

const CONNECTIONS = 12
const names = Array.from({ length: 14 }, (_, i) => `h${String(i).padStart(2, '0')}.test`)
const codes: readonly FailureCode[] = ['http_429', 'http_503', 'dns_failed', 'timeout', 'http_500', 'connection_closed', 'bad_http', 'connect_timeout']

const networkCodes = codes.filter((code) => failureRule(code).network === true)

/** Hosts of several units share an address. */
const addressOf = (host: string): string => `address ${names.indexOf(host) % 4}`

/** One URL at a time. */
const isProbed = (host: Host): boolean => host.failures > 0 || host.healthFacts?.isUnwell === true

interface Tries { first: number; retries: number; readonly sinceMs: number }

interface Change { readonly url: QueuedUrl; readonly notBeforeMs?: number }

class World {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  readonly scheduler: Scheduler
  readonly network: NetworkWatch<Host>
  readonly random: Random
  readonly delayMs: number
  readonly unitOfHost: (host: string) => string
  isLookedUpLate = false
  readonly hostsMax: number
  /** Requests at once to a unit, and to an address; infinite in some worlds. */
  readonly ceiling: number
  readonly perAddressMax: number
  /** When each unit may be started next, by what was started on it. */
  readonly unitFreeAtMs = new Map<string, number>()
  /** With a delay, nothing else of a unit starts before this request was sent. */
  readonly unitHeldBy = new Map<string, object>()
  readonly restUntilMs = new Map<string, number>()
  readonly crawlDelayMs = new Map<string, number>()
  readonly inFlight: Lease[] = []
  readonly unsent: Lease[] = []
  /** Ended, and it is not known yet whether the network here is to blame. */
  readonly held = new Set<Lease>()
  /** While the network here is away nobody answers. */
  isAway = false
  spared = 0
  readonly gated: Host[] = []
  /** Received, and not stored: in a slot, or in the consumer's window. */
  readonly received: QueuedUrl[] = []
  changes: Change[] = []
  /** Stored, and the scheduler was not told yet. */
  stored: Change[] = []
  grown: string[] = []
  readonly underWay = new Set<number>()
  readonly endedHosts = new Set<string>()
  readonly outcomes = new Map<number, number>()
  readonly tries: Tries = { first: 0, retries: 0, sinceMs: this.clock.nowMs() }
  readonly triesOf = new WeakMap<Host, Tries>()
  starts = 0
  laterStarts = 0

  constructor(random: Random, seed: number) {
    this.random = random
    this.delayMs = pick(random, [0, 7, 100, 1_000])
    const kind = pick(random, ['host', 'domain', 'late'] as const)
    this.isLookedUpLate = kind === 'late'
    this.unitOfHost = kind === 'host' ? (host) => host : (host) => `unit ${names.indexOf(host) % 3}`
    this.hostsMax = pick(random, [2, 3, 5, 100])
    const concurrency = pick(random, [{ start: 1, floor: 1, ceiling: 2 }, { start: 4, floor: 1, ceiling: 8 }])
    this.ceiling = concurrency.ceiling
    this.perAddressMax = pick(random, [Number.POSITIVE_INFINITY, 1, 3])
    this.scheduler = new Scheduler({
      store: this.frontier, clock: this.clock, random,
      options: {
        concurrency, delayMs: this.delayMs, retries: 2, maxPerAddress: this.perAddressMax,
        hostLimits: random() < 0.5 ? [] : [{ hosts: '*.test', weight: 1 + integer(random, 4) }, { hosts: 'h03.test', concurrency: { start: 1, floor: 1, ceiling: 1 } }],
      },
      hostsActiveMax: this.hostsMax,
      onWork: () => {},
      note: ({ name, ...facts }) => this.frontier.note(name, facts),
      unitOf: (host) => this.isLookedUpLate
        ? new Promise((resolve) => { this.clock.after(integer(random, 50), () => resolve(this.belongingOf(host))) })
        : this.belongingOf(host),
    })
    this.network = new NetworkWatch<Host>({ clock: this.clock, random, hostsWorking: () => this.scheduler.sets.working.size, onChange: () => {} })
    for (const name of names.slice(0, integer(random, names.length))) this.frontier.add(name, 1 + integer(random, 20), random() < 0.3)
    this.scheduler.open(seed % 2 === 0)
  }

  charge(host: Host): void {
    // As the crawl loop does before each start, from the verdict of robots.txt; it may change.
    if (this.random() < 0.1) this.crawlDelayMs.set(host.name, pick(this.random, [0, 50, 300]))
    this.scheduler.setCrawlDelay(host, this.crawlDelayMs.get(host.name) ?? 0)
    const unit = this.unitOfHost(host.name)
    const nowMs = this.clock.nowMs()
    expect(nowMs, `two starts on ${unit}`).toBeGreaterThanOrEqual(this.unitFreeAtMs.get(unit) ?? 0)
    expect(nowMs, `a start on ${host.name} while it rests`).toBeGreaterThanOrEqual(this.restUntilMs.get(host.name) ?? 0)
    expect(this.unitHeldBy.has(unit), `a start on ${unit} while another is not sent`).toBe(false)
    expect(this.hasRoom(host.name), `a start on ${host.name} beyond the bound of its unit or its address`).toBe(true)
  }

  belongingOf(host: string): { unit: string; address: string } {
    return { unit: this.unitOfHost(host), address: addressOf(host) }
  }

  /** Requests under way, those for robots.txt included. */
  underWayAt(isOf: (host: string) => boolean): number {
    return this.inFlight.filter(({ host }) => isOf(host.name)).length + this.gated.filter(({ name }) => isOf(name)).length
  }

  hasRoom(name: string): boolean {
    const [unit, address] = [this.unitOfHost(name), addressOf(name)]
    return this.underWayAt((other) => this.unitOfHost(other) === unit) < this.ceiling
      && this.underWayAt((other) => addressOf(other) === address) < this.perAddressMax
  }

  delayOf(host: Host): number {
    return Math.max(this.delayMs, this.crawlDelayMs.get(host.name) ?? 0)
  }

  hold(host: Host, holder: object): void {
    if (this.delayOf(host) > 0) this.unitHeldBy.set(this.unitOfHost(host.name), holder)
  }

  /** The request has left, or has ended without. */
  sent(host: Host, holder: object): void {
    const unit = this.unitOfHost(host.name)
    if (this.unitHeldBy.get(unit) === holder) this.unitHeldBy.delete(unit)
    this.unitFreeAtMs.set(unit, Math.max(this.unitFreeAtMs.get(unit) ?? 0, this.clock.nowMs() + this.delayOf(host)))
  }

  lease({ sequence, host }: QueuedUrl): void {
    expect(this.underWay.has(sequence), `${sequence} of ${host} is handed out twice`).toBe(false)
    expect(this.outcomes.has(sequence), `${sequence} of ${host} is handed out after its outcome`).toBe(false)
    this.underWay.add(sequence)
  }

  /** A host in memory that could start a URL now, as its rows and clocks say; of the first class, or of any. */
  readyHost(isOfFirst: boolean): string | undefined {
    return names.find((name) => {
      const host = this.scheduler.host(name)
      if (host === undefined || host.ended !== undefined || host.isGated || this.grown.includes(name)) return false
      const [unit, nowMs] = [this.unitOfHost(name), this.clock.nowMs()]
      if (this.unitHeldBy.has(unit) || (this.unitFreeAtMs.get(unit) ?? 0) > nowMs || host.unit.nextStartAtMs > nowMs || Math.max(restUntilMs(host), host.paceUntilMs) > nowMs) return false
      const together = this.inFlight.filter((lease) => lease.host === host).length
      if (together >= Math.min(isProbed(host) ? 1 : host.rampMax, host.limiter.limit) || !this.hasRoom(name)) return false
      const rows = this.frontier.dueRowsOf(name, this.scheduler.rowsMs()).filter(({ sequence }) => !this.underWay.has(sequence))
      // A retry may have to wait for its token, and those of the first class keep later URLs of their host waiting.
      const hasRetry = rows.some((url) => url.isLater !== true && isRetry(host, url))
      return rows.some((url) => !isRetry(host, url) && !((isOfFirst || hasRetry) && url.isLater === true))
    })
  }

  dispatch(chanceOfGate: number): void {
    this.scheduler.refill()
    while (this.inFlight.length + this.gated.length < CONNECTIONS && (!this.network.isDown || this.network.wantsProbe)) {
      const candidate = this.scheduler.candidate()
      if (candidate === undefined) {
        expect(this.readyHost(false), 'nothing to start, though a host could').toBeUndefined()
        return
      }
      const { host, url } = candidate
      if (url.isLater === true && host.ended === undefined) expect(this.readyHost(true), `a later URL of ${host.name} before one of the first class`).toBeUndefined()
      const roll = this.random()
      if (host.ended !== undefined) {
        this.scheduler.take(candidate)
        this.lease(url)
        this.changes.push({ url })
      } else if (roll < chanceOfGate) {
        this.charge(host)
        this.scheduler.setGate(host, true)
        this.scheduler.hold(host, host)
        this.hold(host, host)
        this.gated.push(host)
        this.network.begun(host)
      } else if (roll < 2 * chanceOfGate) {
        this.scheduler.take(candidate)
        this.lease(url)
        this.changes.push({ url })
      } else {
        this.start(candidate)
      }
    }
  }

  start(candidate: { host: Host; url: QueuedUrl }): void {
    const { host, url } = candidate
    expect(this.endedHosts.has(host.name), `a start on ${host.name} after its end`).toBe(false)
    this.charge(host)
    const isProbe = isProbed(host)
    this.count(host, url)
    const lease = this.scheduler.start(candidate)
    this.hold(host, lease)
    this.lease(url)
    this.inFlight.push(lease)
    this.network.begun(host)
    this.unsent.push(lease)
    this.starts += 1
    if (url.isLater === true) this.laterStarts += 1
    const together = this.inFlight.filter((other) => other.host === host).length
    expect(together, `in flight at ${host.name}`).toBeLessThanOrEqual(isProbe ? 1 : host.limiter.limit)
    expect(host.limiter.inFlight).toBe(together)
  }

  /** Retries are at most a tenth of the first tries, what time earned, and a bucket. */
  count(host: Host, url: QueuedUrl): void {
    const nowMs = this.clock.nowMs()
    const ofHost = this.triesOf.get(host) ?? { first: 0, retries: 0, sinceMs: nowMs }
    this.triesOf.set(host, ofHost)
    for (const tries of [ofHost, this.tries]) {
      if (isRetry(host, url)) tries.retries += 1
      else tries.first += 1
    }
    const most = ({ first, sinceMs }: Tries, tokensMax: number, msPerToken: number): number => tokensMax + first / 10 + (nowMs - sinceMs) / msPerToken + 1e-6
    expect(ofHost.retries, `retries of ${host.name}`).toBeLessThanOrEqual(most(ofHost, limits.retryTokensPerHostMax, limits.retryHostTokenMs))
    expect(this.tries.retries, 'retries').toBeLessThanOrEqual(most(this.tries, limits.retryTokensMax, limits.retryTokenMs))
  }

  /** A request has ended: its lease hears of it at once, or when it is known whose failure it is. */
  finish(lease: Lease, end: 'ok' | 'back' | FailureCode): void {
    const { host, startedAtMs } = lease
    if (end !== 'ok' && end !== 'back' && failureRule(end).network === true) {
      this.held.add(lease)
      this.network.failed({ host, startedAtMs, isLocal: false }, (blame) => {
        expect(this.held.delete(lease), 'a failure is settled once').toBe(true)
        if (blame === 'network') this.spared += 1
        this.release(lease, blame === 'host' ? end : 'back')
        this.network.ended(host)
      })
      return
    }
    if (end !== 'back') this.network.answered(host)
    this.release(lease, end)
    this.network.ended(host)
  }

  release(lease: Lease, end: 'ok' | 'back' | FailureCode): void {
    this.inFlight.splice(this.inFlight.indexOf(lease), 1)
    const { host, url } = lease
    const unsentAt = this.unsent.indexOf(lease)
    if (unsentAt >= 0) {
      this.unsent.splice(unsentAt, 1)
      if (this.unitHeldBy.get(this.unitOfHost(host.name)) === lease) this.sent(host, lease)
    }
    if (end === 'back') {
      this.scheduler.giveBack(lease)
      this.underWay.delete(url.sequence)
      return
    }
    if (end === 'ok') {
      expect(this.scheduler.release(lease, { ok: true })).toEqual({ kind: 'page' })
      this.received.push(url)
      return
    }
    expect(this.network.isDown, 'charged while the network is down').toBe(false)
    const retryAfterMs = this.random() < 0.3 ? integer(this.random, 5_000) : 0
    const ruling = this.scheduler.release(lease, { ok: false, code: end, retryAfterMs })
    if (retryAfterMs > 0 && end !== 'bad_http') {
      this.restUntilMs.set(host.name, Math.max(this.restUntilMs.get(host.name) ?? 0, this.clock.nowMs() + retryAfterMs))
    }
    if (host.ended !== undefined) this.endedHosts.add(host.name)
    if (ruling.kind === 'rest') this.underWay.delete(url.sequence)
    else if (ruling.kind === 'retry') this.changes.push({ url, notBeforeMs: this.scheduler.rowsMs() + ruling.waitMs })
    else this.changes.push({ url })
  }

  openGate(outcome: 'ok' | FailureCode): void {
    const host = this.gated.shift()!
    if (!this.isAway) this.network.answered(host)
    if (outcome !== 'ok') this.scheduler.failHost(host, { code: outcome, retryAfterMs: 0 }, host.startedAtMs)
    if (host.ended !== undefined) this.endedHosts.add(host.name)
    this.scheduler.sent(host, host)
    this.sent(host, host)
    this.scheduler.setGate(host, false)
    this.network.ended(host)
  }

  /** Some request that was not heard of yet ends in some way. */
  finishOne(): void {
    const open = this.inFlight.filter((lease) => !this.held.has(lease))
    if (open.length === 0) return
    const end = this.isAway ? pick(this.random, networkCodes) : this.random() < 0.6 ? 'ok' : pick(this.random, ['back' as const, ...codes])
    this.finish(pick(this.random, open), end)
  }

  /** What waited is in the store; the scheduler hears of it later, as between a transaction and its callback. */
  commit(): void {
    if (this.stored.length > 0) return
    this.stored = this.changes
    this.changes = []
    for (const { url, notBeforeMs } of this.stored) {
      if (notBeforeMs === undefined) this.frontier.end(url)
      else this.frontier.defer(url, notBeforeMs)
    }
  }

  committed(): void {
    for (const { url, notBeforeMs } of this.stored) {
      this.scheduler.settled(url.host, url.sequence)
      this.underWay.delete(url.sequence)
      // A deferral does not count as growth: the scheduler ruled it, and must know by itself that a row is left.
      if (notBeforeMs === undefined) this.outcomes.set(url.sequence, (this.outcomes.get(url.sequence) ?? 0) + 1)
    }
    this.stored = []
    for (const host of this.grown) this.scheduler.grow(host)
    this.grown = []
  }

  step(): void {
    const { random } = this
    const roll = random()
    if (random() < 0.01) this.isAway = !this.isAway
    if (roll < 0.25) this.dispatch(0.05)
    else if (roll < 0.5 && this.inFlight.length > 0) this.finishOne()
    else if (roll < 0.57 && this.unsent.length > 0) this.send()
    else if (roll < 0.62 && this.received.length > 0) this.leaveSlot()
    else if (roll < 0.67) this.commit()
    else if (roll < 0.72) this.committed()
    else if (roll < 0.76) this.grow(pick(random, names), 1 + integer(random, 12))
    else if (roll < 0.8 && this.gated.length > 0) this.openGate(random() < 0.7 || this.isAway ? 'ok' : 'robots_unreachable')
    else if (roll < 0.805) this.exclude(pick(random, names))
    else if (roll < 0.82) this.clock.jumpWall(integer(random, 2_000) - 1_000)
    else this.clock.advance(integer(random, 300))
    this.check()
  }

  send(): void {
    const [lease] = this.unsent.splice(integer(this.random, this.unsent.length), 1)
    this.scheduler.sent(lease!.host, lease!)
    this.sent(lease!.host, lease!)
  }

  leaveSlot(): void {
    const [url] = this.received.splice(integer(this.random, this.received.length), 1)
    if (this.random() < 0.8) {
      this.changes.push({ url: url! })
      return
    }
    this.scheduler.giveBackUnstored(url!)
    this.underWay.delete(url!.sequence)
  }

  grow(host: string, count: number): void {
    this.frontier.add(host, count, this.random() < 0.4)
    this.grown.push(host)
  }

  exclude(host: string): void {
    this.scheduler.exclude(host)
    this.frontier.note(host, { excluded: true })
    this.endedHosts.add(host)
  }

  check(): void {
    const { scheduler } = this
    expect(scheduler.hosts.size, 'hosts in memory').toBeLessThanOrEqual(this.hostsMax)
    if (scheduler.isEmpty && this.grown.length === 0 && this.stored.length === 0) {
      const idle = names.flatMap((name) => this.frontier.rowsOf(name)).filter(({ sequence }) => !this.underWay.has(sequence))
      expect(idle, 'empty, though a URL waits in the store').toEqual([])
    }
  }

  /** When something more may start, if nothing ends. */
  get startAtMs(): number {
    if (this.inFlight.length >= CONNECTIONS) return Number.POSITIVE_INFINITY
    const atMs = this.scheduler.nextAtMs() ?? Number.POSITIVE_INFINITY
    return this.network.isDown ? Math.max(atMs, this.network.probeAtMs) : atMs
  }

  /** Chance has ended: time moves only to where the scheduler says that something happens. */
  async drain(): Promise<void> {
    this.isAway = false
    for (let rounds = 0; rounds < 20_000; rounds++) {
      await turn()
      for (const lease of this.inFlight.filter((open) => !this.held.has(open))) this.finish(lease, 'ok')
      while (this.gated.length > 0) this.openGate('ok')
      for (const url of this.received.splice(0)) this.changes.push({ url })
      this.commit()
      this.committed()
      this.check()
      this.dispatch(0)
      if (this.inFlight.length - this.held.size + this.gated.length + this.changes.length > 0 || this.scheduler.refill()) continue
      if (this.scheduler.isEmpty && this.held.size === 0) return
      const nextMs = Math.min(this.startAtMs, this.clock.nextTimerAtMs ?? Number.POSITIVE_INFINITY)
      expect(nextMs, 'nothing is empty and nothing will happen').toBeLessThan(Number.POSITIVE_INFINITY)
      this.clock.advance(Math.max(0, nextMs - this.clock.nowMs()))
    }
    expect.unreachable('the crawl does not end')
  }
}

test('over random events no unit is hit too soon, no limit is passed, no URL is leased twice, none is forgotten, later ones wait, retries keep to their budget, and nobody is charged for our network', async () => {
  let [starts, laterStarts, spared] = [0, 0, 0]
  await withSeeds(120, async (random, seed) => {
    const world = new World(random, seed)
    for (let i = 0; i < 600; i++) {
      world.step()
      if (world.isLookedUpLate) await turn()
    }
    await world.drain()
    starts += world.starts
    laterStarts += world.laterStarts
    spared += world.spared
    expect(world.frontier.pending).toBe(0)
    expect(world.scheduler.leasedCount).toBe(0)
    expect([...world.outcomes.values()].filter((count) => count !== 1)).toEqual([])
    // Nothing is left to do, so in the end nothing is left in memory.
    world.clock.advance(2 * 60 * 60_000)
    expect(world.scheduler.candidate()).toBeUndefined()
    expect(world.scheduler.hosts.size).toBe(0)
  })
  expect(starts, 'fetches in all').toBeGreaterThan(process.env['SEED'] === undefined ? 5_000 : 0)
  expect(laterStarts, 'of the later class').toBeGreaterThan(process.env['SEED'] === undefined ? 500 : -1)
  expect(spared, 'failures that the network here was to blame for').toBeGreaterThan(process.env['SEED'] === undefined ? 100 : -1)
})

import { expect, test } from 'vitest'
import { failureTable } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { restUntilMs, type Candidate, type Lease } from '../../engine/schedule/host.ts'
import { Scheduler, type SchedulerOptions } from '../../engine/schedule/scheduler.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { TestClock, turn } from '../support/test-clock.ts'

interface Setting extends Partial<Omit<SchedulerOptions, 'options'>> {
  delayMs?: number
  start?: number
  hosts?: Readonly<Record<string, number>>
  isContinued?: boolean
}

function setUp({ delayMs = 1_000, start = 4, hosts = {}, isContinued = false, ...others }: Setting = {}) {
  const clock = new TestClock()
  const frontier = new MemoryFrontier()
  for (const [host, count] of Object.entries(hosts)) frontier.add(host, count)
  const scheduler = new Scheduler({
    store: frontier, clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: ({ name, ...facts }) => frontier.note(name, facts),
    options: { concurrency: { start, floor: 1, ceiling: 32 }, delayMs, retries: 2 }, ...others,
  })
  scheduler.open(isContinued)
  const next = (): Candidate => {
    scheduler.refill()
    const candidate = scheduler.candidate()
    expect(candidate, 'a candidate').toBeDefined()
    return candidate!
  }
  /** Starts the next URL and sends its request at once. */
  const startNext = (): Lease => {
    const lease = scheduler.start(next())
    scheduler.sent(lease.host, lease)
    return lease
  }
  const store = (url: QueuedUrl): void => {
    frontier.end(url)
    scheduler.settled(url.host, url.sequence)
  }
  const succeed = (lease: Lease): void => {
    scheduler.release(lease, { ok: true })
    store(lease.url)
  }
  return { clock, frontier, scheduler, next, startNext, store, succeed }
}

/** Starts and finishes whatever is ready, moving time to where the scheduler says, until nothing is left; answers the hosts in order. */
function crawl({ clock, scheduler, succeed }: ReturnType<typeof setUp>): readonly string[] {
  const order: string[] = []
  for (;;) {
    const isMore = scheduler.refill()
    const candidate = scheduler.candidate()
    if (candidate === undefined && isMore) continue
    if (candidate !== undefined) {
      order.push(candidate.host.name)
      succeed(scheduler.start(candidate))
      continue
    }
    const atMs = scheduler.nextAtMs()
    if (atMs === undefined) return order
    clock.advance(atMs - clock.nowMs())
  }
}

test.each([
  ['on units of their own', (host: string) => host],
  ['on one unit', () => 'one'],
])('a host with three thousand URLs does not delay those of many hosts with ten, %s', (_, unitOf) => {
  const small = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`small${i}`, 10]))
  const order = crawl(setUp({ delayMs: 100, hosts: { big: 3_000, ...small }, unitOf }))
  expect(order).toHaveLength(3_300)
  const lastSmall = order.findLastIndex((host) => host !== 'big')
  const bigBefore = order.slice(0, lastSmall).filter((host) => host === 'big').length
  expect(bigBefore).toBeLessThanOrEqual(11)
})

test('a host that once rested takes its turns among the hosts of its unit like the others', () => {
  const world = setUp({ delayMs: 100, hosts: { calm: 50, rested: 50 }, unitOf: () => 'one' })
  const { clock, scheduler, startNext } = world
  let lease = startNext()
  while (lease.host.name !== 'rested') {
    world.succeed(lease)
    clock.advance(100)
    lease = startNext()
  }
  scheduler.release(lease, { ok: false, code: 'http_429' })
  clock.advance(10_000)
  const order = crawl(world).slice(0, 20)
  expect(order.filter((host) => host === 'rested').length).toBe(10)
})

test('the URLs of an ended host go at once, all of them, but a live host that is ready does not wait for them', () => {
  const { clock, scheduler, next } = setUp({ delayMs: 100, hosts: { dead: 1_000, live: 3 } })
  scheduler.exclude('dead')
  const order: string[] = []
  for (let i = 0; i < 1_003; i++) {
    const candidate = next()
    order.push(candidate.host.name)
    if (candidate.host.ended === undefined) scheduler.sent(candidate.host, scheduler.start(candidate))
    else scheduler.take(candidate)
    clock.advance(1)
  }
  const live = order.flatMap((host, i) => (host === 'live' ? [i] : []))
  expect(live[0]).toBeLessThanOrEqual(1)
  expect(live[1]! - live[0]!).toBeLessThanOrEqual(102)
  expect(live[2]! - live[1]!).toBeLessThanOrEqual(102)
  expect(scheduler.candidate()).toBeUndefined()
})

test('URLs that end without a fetch cost their host its turn', () => {
  const { clock, scheduler, next } = setUp({ hosts: { denied: 100, other: 1 } })
  const order: string[] = []
  for (let i = 0; i < 3; i++) {
    const candidate = next()
    order.push(candidate.host.name)
    scheduler.take(candidate)
    clock.advance(1)
  }
  expect(order).toContain('other')
})

test('a URL that was put off without a fetch is claimed when its moment has come, though its host has nothing else', () => {
  const { clock, frontier, scheduler, next } = setUp({ hosts: { a: 1 }, delayMs: 0 })
  const candidate = next()
  scheduler.take(candidate)
  // What is claimed meanwhile: nothing is left.
  expect(scheduler.candidate()).toBeUndefined()
  scheduler.willComeLater(candidate.url)
  frontier.defer(candidate.url, clock.wallMs() + 5_000)
  scheduler.settled('a', candidate.url.sequence)
  expect(scheduler.candidate()).toBeUndefined()
  expect(scheduler.nextAtMs()! - clock.nowMs()).toBe(5_000)
  clock.advance(5_000)
  expect(next().url.url).toBe(candidate.url.url)
})

test('an ended host whose rows are all deferred waits for them, and its rest does not hold it', () => {
  const { clock, frontier, scheduler, startNext } = setUp({ hosts: { a: 1 } })
  const lease = startNext()
  const ruling = scheduler.release(lease, { ok: false, code: 'http_500', retryAfterMs: 3_600_000 })
  expect(ruling.kind).toBe('retry')
  frontier.defer(lease.url, clock.wallMs() + 5_000)
  scheduler.settled('a', lease.url.sequence)
  scheduler.grow('a')
  scheduler.exclude('a')
  expect(scheduler.candidate()).toBeUndefined()
  expect(scheduler.isEmpty).toBe(false)
  expect(scheduler.nextAtMs()! - clock.nowMs()).toBe(5_000)
  clock.advance(5_000)
  expect(scheduler.candidate()?.host.ended).toEqual({ outcome: 'excluded' })
})

test('a host that goes idle during a rest is remembered until the rest is over, also on a unit with others', () => {
  const world = setUp({ delayMs: 0, start: 1, hosts: { a: 1, b: 100 }, unitOf: () => 'one' })
  const { clock, frontier, scheduler, startNext, store } = world
  let lease = startNext()
  while (lease.host.name !== 'a') {
    world.succeed(lease)
    clock.advance(1)
    lease = startNext()
  }
  scheduler.release({ ...lease, url: { ...lease.url, attempts: 2 } }, { ok: false, code: 'http_500', retryAfterMs: 60_000 })
  store(lease.url)
  clock.advance(1_000)
  startNext()
  expect(scheduler.host('a')).toBeDefined()
  frontier.add('a')
  scheduler.grow('a')
  expect(restUntilMs(scheduler.host('a')!) - clock.nowMs()).toBe(59_000)
})

test('the clock of a unit outlives a host that was due to be forgotten while another host of the unit has started', () => {
  const world = setUp({ delayMs: 1_000, hosts: { a: 1 }, unitOf: () => 'one' })
  const { clock, frontier, scheduler, startNext, store, succeed } = world
  const first = startNext()
  scheduler.release({ ...first, url: { ...first.url, attempts: 2 } }, { ok: false, code: 'http_500', retryAfterMs: 5_000 })
  store(first.url)
  clock.advance(4_500)
  frontier.add('b')
  scheduler.grow('b')
  succeed(startNext())
  clock.advance(500)
  expect(scheduler.candidate()).toBeUndefined()
  frontier.add('c')
  scheduler.grow('c')
  expect(scheduler.candidate(), 'half a second after the start of b').toBeUndefined()
  clock.advance(500)
  expect(scheduler.candidate()?.host.name).toBe('c')
})

test('hosts that are being looked up count as hosts in memory, so look-ups are bounded', async () => {
  const asked: string[] = []
  const resolvers: ((unit: string) => void)[] = []
  const { frontier, scheduler, next } = setUp({
    hosts: Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`h${i}`, 1])), hostsActiveMax: 3,
    unitOf: (host) => {
      asked.push(host)
      return new Promise((resolve) => { resolvers.push(resolve) })
    },
  })
  frontier.add('late')
  scheduler.grow('late')
  expect(scheduler.candidate()).toBeUndefined()
  expect(asked).toHaveLength(3)
  for (const resolve of resolvers) resolve('one')
  await turn()
  expect(scheduler.hosts.size).toBe(3)
  expect(next().host.unit.hostsCount).toBe(3)
  expect(scheduler.isEmpty).toBe(false)
})

test('look-ups are bounded however many hosts may be in memory', () => {
  const hosts = Object.fromEntries(Array.from({ length: limits.hostsResolvingMax + 50 }, (_, i) => [`h${i}`, 1]))
  let asked = 0
  const { scheduler } = setUp({ hosts, unitOf: () => {
    asked += 1
    return new Promise(() => {})
  } })
  while (scheduler.refill());
  expect(asked).toBe(limits.hostsResolvingMax)
})

test('a success of a request that was under way when the host failed does not end the failure; the probe does', () => {
  const { clock, scheduler, startNext } = setUp({ delayMs: 0, hosts: { a: 20 } })
  const [one, other] = [startNext(), startNext()]
  clock.advance(10)
  expect(scheduler.release(one, { ok: false, code: 'dns_failed' })).toEqual({ kind: 'rest' })
  scheduler.release(other, { ok: true })
  expect(scheduler.host('a')!.failures).toBe(1)
  expect(scheduler.candidate(), 'during the rest').toBeUndefined()
  clock.advance(scheduler.nextAtMs()! - clock.nowMs())
  const probe = startNext()
  expect(scheduler.candidate(), 'beside the probe').toBeUndefined()
  scheduler.release(probe, { ok: true })
  expect(scheduler.host('a')!.failures).toBe(0)
  startNext()
  expect(scheduler.candidate(), 'after the probe').toBeDefined()
})

test('eight refusals of requests that were under way together are one failure of the host, and the longest Retry-After wins', () => {
  const { clock, scheduler, startNext } = setUp({ delayMs: 0, start: 8, hosts: { a: 20 } })
  const leases = Array.from({ length: 8 }, startNext)
  clock.advance(10)
  for (const [i, lease] of leases.entries()) {
    expect(scheduler.release(lease, { ok: false, code: 'http_429', retryAfterMs: i === 5 ? 120_000 : 1_000 }).kind).toBe(i === 0 ? 'retry' : 'rest')
    clock.advance(1)
  }
  const host = scheduler.host('a')!
  expect([host.failures, host.limiter.limit]).toEqual([1, 4])
  expect(restUntilMs(host) - clock.nowMs()).toBe(120_000 - 3)
  expect(scheduler.leasedCount).toBe(8)
})

test('a shorter wait that comes later does not shorten a longer one', () => {
  const { clock, scheduler, startNext } = setUp({ delayMs: 0, hosts: { a: 20 } })
  const [one, other] = [startNext(), startNext()]
  scheduler.release(one, { ok: false, code: 'http_500', retryAfterMs: 600_000 })
  scheduler.release(other, { ok: false, code: 'http_429' })
  expect(restUntilMs(scheduler.host('a')!) - clock.nowMs()).toBe(600_000)
})

test('a redirect that asks to wait lets its host rest, which is no failure, and is remembered', () => {
  const noted: object[] = []
  const { clock, scheduler, startNext } = setUp({ delayMs: 0, hosts: { a: 2 }, note: (facts) => noted.push(facts) })
  expect(scheduler.release(startNext(), { ok: true, retryAfterMs: 7_000 }).kind).toBe('page')
  const host = scheduler.host('a')!
  expect([restUntilMs(host) - clock.nowMs(), host.failures, host.limiter.limit]).toEqual([7_000, 0, 4])
  expect(scheduler.candidate()).toBeUndefined()
  expect(noted).toMatchObject([{ name: 'a', retryAfterUntilMs: clock.wallMs() + 7_000 }])
  clock.advance(7_000)
  expect(scheduler.candidate()?.host.name).toBe('a')
})

test('a zero Retry-After does not cancel the back-off', () => {
  const { clock, scheduler, startNext } = setUp({ hosts: { a: 2 } })
  scheduler.release(startNext(), { ok: false, code: 'http_429', retryAfterMs: 0 })
  expect(restUntilMs(scheduler.host('a')!) - clock.nowMs()).toBeGreaterThanOrEqual(limits.backoffMsMin / 2)
})

test('hosts in the store come in while hosts in memory never run out of work', () => {
  const world = setUp({ delayMs: 0, hosts: { a0: 1, a1: 1, a2: 1, big: 1_000, z: 1 }, hostsActiveMax: 4 })
  const order: string[] = []
  for (let i = 0; i < 20; i++) {
    const lease = world.startNext()
    order.push(lease.host.name)
    world.succeed(lease)
    world.clock.advance(1)
  }
  expect(order).toContain('z')
})

test('after an unclean stop each host waits one delay from the opening, its Crawl-delay if that is longer', () => {
  const frontier = new MemoryFrontier()
  frontier.add('fast')
  frontier.add('slow')
  frontier.note('slow', { crawlDelayMs: 30_000 })
  const { clock, scheduler } = setUp({ store: frontier, isContinued: true })
  const startsAtMs: Record<string, number> = {}
  for (let i = 0; i < 2; i++) {
    clock.advance(scheduler.nextAtMs()! - clock.nowMs())
    const lease = scheduler.start(scheduler.candidate()!)
    startsAtMs[lease.host.name] = clock.nowMs() - 1_000
  }
  expect(startsAtMs).toEqual({ fast: 1_000, slow: 30_000 })
})

test('a stored rest goes on after a restart, and is not longer than a Retry-After may be', () => {
  const frontier = new MemoryFrontier()
  const clock = new TestClock()
  for (const [host, waitMs] of [['a', 5_000], ['b', 10 * limits.retryAfterMsMax], ['c', -1]] as const) {
    frontier.add(host)
    frontier.note(host, { retryAfterUntilMs: clock.wallMs() + waitMs })
  }
  const { scheduler } = setUp({ store: frontier, clock })
  const waits = ['a', 'b', 'c'].map((name) => Math.max(0, restUntilMs(scheduler.host(name)!) - clock.nowMs()))
  expect(waits).toEqual([5_000, limits.retryAfterMsMax, 0])
})

test('the end of the first rest is told when all work rests, and only then', () => {
  const { clock, frontier, scheduler, startNext } = setUp({ delayMs: 0, start: 1, hosts: { a: 2, b: 2 } })
  expect(scheduler.restingUntilMs(), 'both are ready').toBeUndefined()
  const [a, b] = [startNext(), startNext()]
  scheduler.release(a, { ok: false, code: 'http_429', retryAfterMs: 50_000 })
  expect(scheduler.restingUntilMs(), 'one has work and is under way').toBeUndefined()
  scheduler.release(b, { ok: false, code: 'http_429', retryAfterMs: 20_000 })
  expect(scheduler.restingUntilMs()! - clock.nowMs()).toBe(20_000)
  scheduler.setGate(b.host, true)
  expect(scheduler.restingUntilMs(), 'one waits for its robots.txt').toBeUndefined()
  scheduler.setGate(b.host, false)
  expect(scheduler.restingUntilMs()).toBeDefined()
  frontier.add('c')
  scheduler.grow('c')
  expect(scheduler.restingUntilMs(), 'a third is ready').toBeUndefined()
})

test('what waits for its delay does not rest', () => {
  const { scheduler, startNext, succeed } = setUp({ hosts: { a: 2 } })
  succeed(startNext())
  expect(scheduler.candidate()).toBeUndefined()
  expect(scheduler.restingUntilMs()).toBeUndefined()
  expect(scheduler.isEmpty).toBe(false)
})

test('hosts that are still in the store are work, though all in memory rest', () => {
  const { scheduler, startNext } = setUp({ hosts: { a: 1, b: 1 }, hostsActiveMax: 1 })
  scheduler.release(startNext(), { ok: false, code: 'http_429', retryAfterMs: 50_000 })
  expect(scheduler.hosts.size).toBe(1)
  expect(scheduler.restingUntilMs()).toBeUndefined()
  expect(scheduler.isEmpty).toBe(false)
})

test('a scheduler with work behind a gate or a full limiter is not empty', () => {
  const { scheduler, startNext, next } = setUp({ delayMs: 0, start: 1, hosts: { a: 3 } })
  const lease = startNext()
  expect(scheduler.candidate(), 'the limit is one').toBeUndefined()
  expect(scheduler.isEmpty).toBe(false)
  scheduler.giveBack(lease)
  scheduler.setGate(next().host, true)
  expect(scheduler.candidate(), 'behind its gate').toBeUndefined()
  expect(scheduler.isEmpty).toBe(false)
})

test('a host is given up after as many failures in a row as the table says; its URLs then end with the code of the last, also those that come later', () => {
  const world = setUp({ delayMs: 0, hosts: { a: 3, other: 1 } })
  const { clock, frontier, scheduler, next, store } = world
  const tries = failureTable.dns_failed.hostTriesMax
  let fetches = 0
  for (;;) {
    const candidate = scheduler.candidate()
    if (candidate === undefined) {
      clock.advance(scheduler.nextAtMs()! - clock.nowMs())
    } else if (candidate.host.name === 'other') {
      world.succeed(scheduler.start(candidate))
    } else if (candidate.host.ended === undefined) {
      fetches += 1
      const lease = scheduler.start(candidate)
      if (scheduler.release(lease, { ok: false, code: 'dns_failed' }).kind === 'fail') {
        store(lease.url)
        break
      }
    }
    clock.advance(1)
  }
  expect(fetches).toBe(tries)
  for (let i = 0; i < 2; i++) {
    const candidate = next()
    expect(candidate.host.ended).toEqual({ outcome: 'failed', code: 'dns_failed' })
    scheduler.take(candidate)
    store(candidate.url)
  }
  clock.advance(2 * limits.retryAfterMsMax)
  expect(scheduler.candidate()).toBeUndefined()
  expect(scheduler.host('a'), 'forgotten').toBeUndefined()
  frontier.add('a')
  scheduler.grow('a')
  expect(next().host.ended).toEqual({ outcome: 'failed', code: 'dns_failed' })
})

test('an excluded host stays excluded when its last request fails, and when it is loaded before the exclusion is stored', async () => {
  let found: (unit: string) => void = () => {}
  const { frontier, scheduler, startNext, next } = setUp({
    hosts: { a: 2 },
    unitOf: (host) => (host === 'late' ? new Promise((resolve) => { found = resolve }) : host),
  })
  const lease = startNext()
  scheduler.exclude('a')
  for (let i = 0; i < 2; i++) scheduler.failHost(lease.host, { code: 'dns_not_found', retryAfterMs: 0 }, lease.startedAtMs + i)
  expect(next().host.ended).toEqual({ outcome: 'excluded' })
  scheduler.take(next())
  frontier.add('late')
  scheduler.grow('late')
  scheduler.exclude('late')
  found('late')
  await turn()
  expect(next().host).toMatchObject({ name: 'late', ended: { outcome: 'excluded' } })
})

test('a limit that the operator lowers below what is under way stops further starts at once', () => {
  const { scheduler, startNext, next } = setUp({ delayMs: 0, hosts: { a: 10 } })
  startNext()
  startNext()
  const { host } = next()
  scheduler.setLimit(host.name, { concurrency: { start: 1, floor: 1, ceiling: 2 } })
  expect(scheduler.candidate()).toBeUndefined()
  scheduler.setLimit(host.name, { concurrency: { start: 1, floor: 3, ceiling: 3 }, delayMs: 500 })
  startNext()
  expect(host.unit.nextStartAtMs - host.startedAtMs).toBe(500)
})

test('a URL is tried again as often as the options say, and its waits grow', () => {
  const { scheduler, startNext } = setUp({ hosts: { a: 1 } })
  const lease = startNext()
  const waits: number[] = []
  for (let attempts = 0; attempts < 3; attempts++) {
    lease.host.limiter.inFlight = 1
    const ruling = scheduler.release({ ...lease, url: { ...lease.url, attempts } }, { ok: false, code: 'http_500' })
    if (ruling.kind === 'retry') waits.push(ruling.waitMs)
    else expect([ruling, attempts]).toEqual([{ kind: 'fail' }, 2])
  }
  expect(waits).toHaveLength(2)
  expect(waits[1]).toBeGreaterThan(waits[0]!)
})

test('URLs that were given back come again in any order of giving back, and end once each', () => {
  const { scheduler, startNext, store, next } = setUp({ delayMs: 0, hosts: { a: 3 } })
  const leases = [startNext(), startNext(), startNext()]
  scheduler.release(leases[1]!, { ok: true })
  scheduler.giveBack(leases[2]!)
  scheduler.giveBackUnstored(leases[1]!.url)
  scheduler.giveBack(leases[0]!)
  const again = new Set([startNext(), startNext(), startNext()].map(({ url }) => url))
  expect(again).toEqual(new Set(leases.map(({ url }) => url)))
  for (const url of again) store(url)
  expect(scheduler.leasedCount).toBe(0)
  expect(() => scheduler.giveBackUnstored(leases[0]!.url)).toThrow('only a leased URL')
  expect(() => scheduler.settled('a', leases[0]!.url.sequence)).toThrow('only a leased URL')
  expect(() => next()).toThrow()
})

test('two hundred thousand hosts come and go, and only those of the last delay are in memory', () => {
  const clock = new TestClock()
  let present = ''
  const scheduler = new Scheduler({
    clock, random: Math.random, unitOf: (host) => host, onWork: () => {}, note: () => {},
    options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 1_000, retries: 0 },
    store: {
      host: (name) => ({ name, pending: 1 }),
      hostsWithWork: () => ({ hosts: [] }),
      claim: (host, { leased }) => ({
        urls: host === present && leased.size === 0 ? [{ row: new Uint8Array(), fingerprint: new Uint8Array(), host, sequence: 0, url: '', depth: 0, priority: 0, attempts: 0 }] : [],
      }),
    },
  })
  scheduler.open(false)
  let most = 0
  for (let i = 0; i < 200_000; i++) {
    present = `host${i}.test`
    scheduler.grow(present)
    const lease = scheduler.start(scheduler.candidate()!)
    scheduler.release(lease, { ok: true })
    scheduler.settled(present, 0)
    clock.advance(10)
    most = Math.max(most, scheduler.hosts.size)
  }
  expect(most).toBeLessThanOrEqual(1_000 / 10 + 1)
})

test('no more hosts are read than fit, and a host that is missed is read when there is room', () => {
  const hosts = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`h${i}`, 1]))
  const world = setUp({ delayMs: 0, hosts, hostsActiveMax: 10 })
  expect(world.frontier.recordsRead).toBe(10)
  const order = crawl(world)
  expect(new Set(order).size).toBe(100)
  expect(world.scheduler.isEmpty).toBe(true)
})

test('one free place is enough for a host in the store when nothing in memory can start', () => {
  const { clock, scheduler, startNext, succeed } = setUp({ delayMs: 0, hosts: { a: 1, b: 1, c: 1, d: 1, e: 1 }, hostsActiveMax: 4 })
  for (let i = 0; i < 3; i++) scheduler.release(startNext(), { ok: false, code: 'http_429', retryAfterMs: 50_000 })
  succeed(startNext())
  clock.advance(1)
  scheduler.refill()
  expect(scheduler.candidate()?.host.name).toBe('e')
})

test('with a delay, nothing else of a unit starts before the request is sent, and the delay counts from there', () => {
  const { clock, scheduler, next } = setUp({ hosts: { a: 3 } })
  const lease = scheduler.start(next())
  clock.advance(5_000)
  expect(scheduler.candidate()).toBeUndefined()
  expect(scheduler.nextAtMs()).toBeUndefined()
  scheduler.sent(lease.host, lease)
  clock.advance(999)
  expect(scheduler.candidate()).toBeUndefined()
  clock.advance(1)
  const second = scheduler.start(next())
  // The first ends while the second is being connected: that frees nothing.
  scheduler.release(lease, { ok: true })
  clock.advance(5_000)
  expect(scheduler.candidate()).toBeUndefined()
  // A request that ended before it was sent counts as sent.
  scheduler.release(second, { ok: false, code: 'dns_failed' })
  expect(lease.host.unit.nextStartAtMs).toBe(clock.nowMs() + 1_000)
})

test('a host is not given up for bad URLs in a row while it has others: when all in hand were refused, it is probed with the next', () => {
  const { clock, frontier, scheduler, startNext, store } = setUp({ delayMs: 0, start: 1, hosts: { a: 20 } })
  const bad = new Set(frontier.rowsOf('a').slice(0, limits.claimUrlsPerHost - 2).map(({ sequence }) => sequence))
  for (let done = 0; done < 20 - bad.size;) {
    const lease = startNext()
    const isBad = bad.has(lease.url.sequence)
    const ruling = scheduler.release(lease, isBad ? { ok: false, code: 'http_503' } : { ok: true })
    if (ruling.kind === 'retry') frontier.defer(lease.url, clock.wallMs() + 3_600_000)
    if (ruling.kind === 'retry') scheduler.settled('a', lease.url.sequence)
    if (ruling.kind === 'page') store(lease.url)
    if (ruling.kind === 'page') done += 1
    clock.advance(60_000)
    expect(lease.host.ended).toBeUndefined()
  }
})

test('a URL that a well host refuses with 503 is charged, the next one is not, and the host is probed with another', () => {
  const { clock, scheduler, startNext } = setUp({ delayMs: 0, hosts: { a: 4 } })
  expect(scheduler.release(startNext(), { ok: false, code: 'http_503' }).kind).toBe('retry')
  clock.advance(60_000)
  const probe = startNext()
  expect(scheduler.release(probe, { ok: false, code: 'http_503' })).toEqual({ kind: 'rest' })
  clock.advance(60_000)
  const other = startNext()
  expect(other.url).not.toBe(probe.url)
  expect(scheduler.release(other, { ok: true })).toEqual({ kind: 'page' })
  const last = startNext()
  expect(scheduler.release({ ...last, url: { ...last.url, attempts: 2 } }, { ok: false, code: 'http_503' })).toEqual({ kind: 'fail' })
  expect(last.host.ended).toBeUndefined()
})

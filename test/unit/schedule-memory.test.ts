import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { HostUpdate } from '../../storage/store.ts'
import { restUntilMs } from '../../engine/schedule/host.ts'
import type { Host, Lease } from '../../engine/schedule/host.ts'
import { Scheduler, type SchedulerOptions } from '../../engine/schedule/scheduler.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { TestClock, turn } from '../support/test-clock.ts'

const HOUR_MS = 60 * 60_000

/** A crawl whose process can end and begin again, with its frontier and its wall clock; a new process has a new monotonic clock. */
class Crawl {
  readonly frontier: MemoryFrontier
  readonly more: Partial<SchedulerOptions>
  clock = new TestClock()
  scheduler!: Scheduler

  constructor(hosts: Readonly<Record<string, number>>, more: Partial<SchedulerOptions> = {}) {
    this.frontier = new MemoryFrontier()
    this.more = more
    for (const [host, count] of Object.entries(hosts)) this.frontier.add(host, count)
    this.open()
  }

  open(isContinued = false): void {
    const { clock, frontier } = this
    this.scheduler = new Scheduler({
      store: frontier, clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: ({ name, ...facts }) => frontier.note(name, facts),
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 0, retries: 2 }, ...this.more,
    })
    this.scheduler.open(isContinued)
  }

  restart(wallJumpMs = 0, isContinued = false): void {
    this.clock = new TestClock({ nowMs: 77, wallMs: this.clock.wallMs() + wallJumpMs })
    this.open(isContinued)
  }

  start(): Lease {
    const lease = this.scheduler.start(this.scheduler.candidate()!)
    this.scheduler.sent(lease.host, lease)
    return lease
  }

  end(url: QueuedUrl): void {
    this.frontier.end(url)
    this.scheduler.settled(url.host, url.sequence)
  }

  restOf(name: string): number {
    return Math.max(0, restUntilMs(this.scheduler.host(name)!) - this.clock.nowMs())
  }

  /** Fails until the host is given up. */
  giveUp(): void {
    for (;;) {
      const lease = this.start()
      if (this.scheduler.release(lease, { ok: false, code: 'connect_refused' }).kind === 'fail') return this.end(lease.url)
      this.clock.advance(limits.backoffMsMax)
    }
  }
}

describe('a restart', () => {
  test('finds limit, Crawl-delay, failures, health and both rests of a host as they were, and probes it with one URL', () => {
    const crawl = new Crawl({ a: 20 })
    const leases = Array.from({ length: 4 }, () => crawl.start())
    crawl.scheduler.setCrawlDelay(leases[0]!.host, 2_000)
    crawl.scheduler.release(leases[0]!, { ok: false, code: 'http_429', retryAfterMs: 30_000 })
    const before = crawl.scheduler.host('a')!
    crawl.restart()
    const after = crawl.scheduler.host('a')!
    expect(after).toMatchObject({ crawlDelayMs: 2_000, failures: 1, failureCode: 'http_429', health: 0.95 })
    expect(after.limiter.limit).toBe(before.limiter.limit)
    expect(after.limiter.limit).toBe(2)
    expect(after.retryAfterUntilMs - crawl.clock.nowMs()).toBe(30_000)
    expect(after.backoffUntilMs - crawl.clock.nowMs()).toBe(750)
    crawl.clock.advance(30_000)
    crawl.start()
    expect(crawl.scheduler.candidate(), 'beside the probe').toBeUndefined()
  })

  test('finds what a host refused, and its pace, from which it goes on one pace after the opening', () => {
    const crawl = new Crawl({ a: 500, b: 500, c: 5 })
    const [a, b] = ['a', 'b'].map((name) => crawl.scheduler.host(name)!)
    const end = (host: Host, inFlight: number, hasRefused: boolean): void => {
      crawl.clock.advance(1)
      const request = { startedAtMs: crawl.clock.nowMs(), inFlight }
      crawl.clock.advance(1)
      if (hasRefused) host.limiter.throttle(request, crawl.clock.nowMs())
      else host.limiter.success(request, crawl.clock.nowMs())
    }
    end(a!, 4, true)
    for (const inFlight of [4, 1, 1, 1]) end(b!, inFlight, true)
    for (const update of crawl.scheduler.unstored()) crawl.frontier.note(update.name, JSON.parse(JSON.stringify(update)) as HostUpdate)
    expect([...crawl.frontier.host('a')!.limitMemory ? ['a'] : [], ...crawl.frontier.host('c')?.limitMemory ? ['c'] : []], 'only those that refused').toEqual(['a'])
    const memories = [a!, b!].map(({ limiter }) => limiter.memory())
    expect(memories).toMatchObject([{ limit: 2, known: 3 }, { limit: 1, paceMs: expect.any(Number) }])
    crawl.restart(0, true)
    expect(['a', 'b'].map((name) => crawl.scheduler.host(name)!.limiter.memory())).toEqual(memories)
    expect([...crawl.scheduler.unstored()]).toEqual([])
    const { limiter, paceUntilMs } = crawl.scheduler.host('b')!
    expect(paceUntilMs - crawl.clock.nowMs()).toBe(limiter.paceMs)
  })

  test.each([
    ['an hour ahead', HOUR_MS, 0, 0],
    ['an hour back', -HOUR_MS, limits.retryAfterMsMax, limits.healthRestMsMax],
    ['not at all', 0, 120_000, 750],
  ])('after the wall clock jumped %s waits no longer than such a wait can be, and not for what is over', (_, jumpMs, retryAfterMs, backoffMs) => {
    const crawl = new Crawl({ a: 20 })
    crawl.scheduler.release(crawl.start(), { ok: false, code: 'http_429', retryAfterMs: 120_000 })
    crawl.restart(jumpMs)
    const host = crawl.scheduler.host('a')!
    expect([host.retryAfterUntilMs, host.backoffUntilMs].map((atMs) => Math.max(0, atMs - crawl.clock.nowMs()))).toEqual([retryAfterMs, backoffMs])
  })

  test.each([['ahead', HOUR_MS], ['back', -HOUR_MS]])('after a jump an hour %s comes to a deferred URL within the longest back-off', (_, jumpMs) => {
    const crawl = new Crawl({ a: 1 })
    const lease = crawl.start()
    const ruling = crawl.scheduler.release(lease, { ok: false, code: 'http_500' })
    expect(ruling.kind).toBe('retry')
    crawl.frontier.defer(lease.url, crawl.scheduler.rowsMs() + 5_000)
    crawl.restart(jumpMs)
    const openedAtMs = crawl.clock.nowMs()
    while (crawl.scheduler.candidate() === undefined) crawl.clock.advance(crawl.scheduler.nextAtMs()! - crawl.clock.nowMs())
    expect(crawl.clock.nowMs() - openedAtMs).toBe(jumpMs > 0 ? 0 : limits.backoffMsMax)
  })

  test('gives a host that was given up no new chance within a day, and then one from its first failure on', () => {
    const crawl = new Crawl({ a: 5 })
    crawl.giveUp()
    expect(crawl.frontier.host('a')!.givenUp).toEqual({ code: 'connect_refused', atMs: crawl.clock.wallMs() })
    crawl.restart()
    expect(crawl.scheduler.host('a')!.ended).toEqual({ outcome: 'failed', code: 'connect_refused' })
    crawl.clock.advance(limits.hostGivenUpMs)
    crawl.restart()
    expect(crawl.scheduler.host('a')).toMatchObject({ ended: undefined, failures: 0 })
    expect(crawl.scheduler.release(crawl.start(), { ok: false, code: 'connect_refused' })).toEqual({ kind: 'rest' })
  })

  test('a day before the giving up, by a clock that was set back, gives its chance a day later', () => {
    const crawl = new Crawl({ a: 5 })
    crawl.giveUp()
    crawl.restart(-24 * HOUR_MS)
    expect(crawl.scheduler.host('a')!.ended).toBeDefined()
    crawl.clock.advance(2 * limits.hostGivenUpMs)
    crawl.restart()
    expect(crawl.scheduler.host('a')!.ended).toBeUndefined()
  })

  test('does not trust a record: odd facts are brought within their bounds, unknown codes are no end', () => {
    const crawl = new Crawl({ a: 1, b: 1, c: 1, d: 1 })
    crawl.frontier.note('a', { health: 7, crawlDelayMs: 1e12, limit: 1e9, retryAfterUntilMs: 1e15, backoffUntilMs: -5 })
    const odd = { known: -2, patience: 'much', paceMs: 1e300 } as unknown as { patience: number }
    crawl.frontier.note('c', { limit: 1, limitMemory: odd })
    crawl.frontier.note('d', { limit: null as unknown as number, limitMemory: 'none' as unknown as object })
    crawl.frontier.note('b', { givenUp: { code: 'no such code', atMs: crawl.clock.wallMs() } })
    crawl.restart()
    const { health, crawlDelayMs, limiter, backoffUntilMs } = crawl.scheduler.host('a')!
    expect([health, crawlDelayMs, limiter.limit, backoffUntilMs]).toEqual([1, limits.crawlDelayMsMax, 32, 0])
    expect(crawl.restOf('a')).toBe(limits.retryAfterMsMax)
    expect(['c', 'd'].map((name) => crawl.scheduler.host(name)!.limiter.memory())).toEqual([
      { limit: 1, known: undefined, patience: 1, paceMs: limits.paceMsMax }, { limit: 4 },
    ])
    expect(crawl.scheduler.host('b')!.ended).toBeUndefined()
  })
})

test.each([['ahead', HOUR_MS], ['back', -HOUR_MS]])('a jump of the wall clock an hour %s moves no wait of a running process', (_, jumpMs) => {
  const crawl = new Crawl({ a: 20, b: 1 })
  const leases = [crawl.start(), crawl.start()]
  const [a, b] = leases[0]!.host.name === 'a' ? leases : leases.toReversed()
  crawl.scheduler.release(a!, { ok: false, code: 'http_429', retryAfterMs: 120_000 })
  crawl.scheduler.release(b!, { ok: false, code: 'http_500' })
  crawl.frontier.defer(b!.url, crawl.scheduler.rowsMs() + 5_000)
  crawl.scheduler.settled('b', b!.url.sequence)
  expect(crawl.scheduler.candidate()).toBeUndefined()
  crawl.clock.jumpWall(jumpMs)
  expect([crawl.scheduler.nextAtMs()! - crawl.clock.nowMs(), crawl.restOf('a')]).toEqual([5_000, 120_000])
  crawl.clock.advance(5_000)
  expect(crawl.scheduler.candidate()?.url.url).toBe(b!.url.url)
})

describe('a host row', () => {
  test('is not written for pages that go well: of a thousand pages of a hundred hosts one in ten at most', () => {
    const hosts = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`h${i}`, 10]))
    const crawl = new Crawl(hosts)
    let pages = 0
    for (let candidate = crawl.scheduler.candidate(); candidate !== undefined; candidate = crawl.scheduler.candidate()) {
      const lease = crawl.scheduler.start(candidate)
      crawl.scheduler.release(lease, { ok: true })
      crawl.end(lease.url)
      pages += 1
      crawl.clock.advance(1)
    }
    expect(crawl.scheduler.hosts.size).toBe(0)
    expect([pages, crawl.frontier.recordsWritten]).toEqual([1_000, 0])
  })

  test('is written once for a host that is forgotten with the limit that it had', () => {
    const crawl = new Crawl({ a: 1 })
    for (let round = 0; round < 5; round++) {
      const lease = crawl.start()
      crawl.scheduler.release(lease, { ok: true })
      crawl.end(lease.url)
      crawl.clock.advance(1)
      expect(crawl.scheduler.candidate()).toBeUndefined()
      expect(crawl.scheduler.host('a'), 'forgotten').toBeUndefined()
      crawl.frontier.add('a')
      crawl.scheduler.grow('a')
    }
    expect(crawl.frontier.recordsWritten).toBe(0)
  })

  test('tells at a stop what drifted of the hosts in memory, and not what is stored already', () => {
    const crawl = new Crawl({ a: 20, b: 1 })
    for (let i = 0; i < 6; i++) for (const lease of [crawl.start(), crawl.start()]) crawl.scheduler.release(lease, { ok: true })
    expect([...crawl.scheduler.unstored()].map(({ name, limit }) => [name, limit])).toEqual([['a', 5]])
    crawl.scheduler.release(crawl.start(), { ok: false, code: 'http_429' })
    expect([...crawl.scheduler.unstored()]).toEqual([])
  })

  test('gives a host that answered once all of the patience with hosts, and a stranger a tenth', () => {
    const givenUpAfter = (answered: true | undefined): number => {
      const crawl = new Crawl({ a: 5 }, { options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 0, retries: 2, hostPatienceMs: 300_000 } })
      crawl.frontier.note('a', { answered })
      crawl.restart()
      const sinceMs = crawl.clock.nowMs()
      while (crawl.scheduler.release(crawl.start(), { ok: false, code: 'connect_refused' }).kind !== 'fail') crawl.clock.advance(crawl.restOf('a'))
      return crawl.clock.nowMs() - sinceMs
    }
    expect(givenUpAfter(true)).toBeGreaterThanOrEqual(300_000)
    expect(givenUpAfter(undefined)).toBeGreaterThanOrEqual(30_000)
    expect(givenUpAfter(undefined)).toBeLessThan(300_000)
  })

  test('is written when a failing host has recovered', () => {
    const crawl = new Crawl({ a: 20 })
    crawl.scheduler.release(crawl.start(), { ok: false, code: 'dns_failed' })
    expect(crawl.frontier.host('a')).toMatchObject({ failures: 1, failureCode: 'dns_failed' })
    crawl.clock.advance(limits.backoffMsMax)
    crawl.scheduler.release(crawl.start(), { ok: true })
    expect(crawl.frontier.host('a')).not.toHaveProperty('failures')
    expect(crawl.frontier.host('a')).not.toHaveProperty('backoffUntilMs')
  })
})

test('health falls with failures, less with throttles, not at all with what is the fault of a URL, and comes back with answers', () => {
  const crawl = new Crawl({ a: 200, b: 200, c: 200 })
  const healthAfter = (code: 'http_500' | 'http_504' | 'bad_http'): number => {
    const { host, ...rest } = crawl.start()
    for (let i = 0; i < 16; i++) {
      host.limiter.inFlight = 1
      crawl.scheduler.release({ ...rest, host }, { ok: false, code })
    }
    return host.health
  }
  const [failing, slow, well] = [healthAfter('http_500'), healthAfter('http_504'), healthAfter('bad_http')]
  expect(failing).toBeCloseTo((15 / 16) ** 16)
  expect(slow, 'one of the sixteen lowered the limit').toBeCloseTo(0.5 + 0.5 * (15 / 16) ** 16 - 0.25 / 16 * (15 / 16) ** 15)
  expect(well).toBe(1)
})

describe('revive', () => {
  test('gives a host that was given up a new chance, in memory, in the store and for URLs that come later', () => {
    const crawl = new Crawl({ a: 5 })
    crawl.giveUp()
    crawl.scheduler.revive('a')
    expect(crawl.frontier.host('a')).not.toHaveProperty('givenUp')
    expect(crawl.start().host).toMatchObject({ ended: undefined, failures: 0 })
  })

  test('reaches a host that was forgotten, also while its unit is being looked up', async () => {
    const found: ((unit: string) => void)[] = []
    const crawl = new Crawl({ a: 1 }, { unitOf: () => new Promise((resolve) => { found.push(resolve) }) })
    const look = async (): Promise<void> => {
      found.pop()!('unit')
      await turn()
    }
    await look()
    crawl.giveUp()
    crawl.clock.advance(HOUR_MS)
    expect(crawl.scheduler.candidate()).toBeUndefined()
    expect(crawl.scheduler.host('a'), 'forgotten').toBeUndefined()
    crawl.frontier.add('a')
    crawl.scheduler.grow('a')
    crawl.scheduler.revive('a')
    await look()
    expect(crawl.start().host).toMatchObject({ name: 'a', ended: undefined, failures: 0 })
  })

  test('leaves alone what is excluded, what is well and the rest that a server asked for', () => {
    const crawl = new Crawl({ well: 20, excluded: 1 })
    crawl.scheduler.exclude('excluded')
    for (const name of ['excluded', 'well', 'unknown']) crawl.scheduler.revive(name)
    expect(crawl.scheduler.host('excluded')!.ended).toEqual({ outcome: 'excluded' })
    expect(crawl.frontier.recordsWritten).toBe(0)
    const lease = [crawl.start(), crawl.start()].find(({ host }) => host.name === 'well')!
    crawl.scheduler.failHost(lease.host, { code: 'robots_unreachable', retryAfterMs: HOUR_MS }, lease.startedAtMs)
    for (let i = 1; i < 4; i++) {
      crawl.clock.advance(1)
      crawl.scheduler.failHost(lease.host, { code: 'robots_unreachable', retryAfterMs: 0 }, crawl.clock.nowMs())
      crawl.clock.advance(1)
    }
    expect(lease.host.ended).toBeDefined()
    crawl.scheduler.revive('well')
    expect([lease.host.ended, crawl.restOf('well') > HOUR_MS / 2]).toEqual([undefined, true])
  })
})

describe('URLs of the later class', () => {
  test('wait until no URL of the first may start, on their own host and on others, and then go at once', () => {
    const crawl = new Crawl({ a: 2, b: 3 })
    crawl.frontier.add('a', 12, true)
    crawl.frontier.add('c', 1, true)
    const order: string[] = []
    for (let i = 0; i < 18; i++) {
      const lease = crawl.start()
      order.push(lease.url.isLater === true ? 'later' : 'first')
      crawl.scheduler.release(lease, { ok: true })
      crawl.end(lease.url)
      if (i === 0) crawl.scheduler.grow('c')
      crawl.clock.advance(1)
    }
    expect(order).toEqual([...Array.from({ length: 5 }, () => 'first'), ...Array.from({ length: 13 }, () => 'later')])
  })

  test('are let go from the hand when better ones arrive', () => {
    const crawl = new Crawl({})
    crawl.frontier.add('a', 20, true)
    crawl.scheduler.grow('a')
    crawl.start()
    const [better] = crawl.frontier.add('a', 1)
    crawl.scheduler.grow('a')
    expect(crawl.scheduler.leasedCount).toBe(1)
    expect(crawl.start().url).toBe(better)
    expect(crawl.start().url.isLater).toBe(true)
  })

  test('do not hold up a further try of a URL of the first class that has fallen due on their host', () => {
    const crawl = new Crawl({ a: 1, b: 20 })
    crawl.frontier.add('a', 40, true)
    const tried = crawl.start()
    expect(tried.host.name).toBe('a')
    const ruling = crawl.scheduler.release(tried, { ok: false, code: 'http_500' })
    if (ruling.kind !== 'retry') throw new Error(ruling.kind)
    crawl.frontier.defer(tried.url, crawl.scheduler.rowsMs() + ruling.waitMs)
    crawl.scheduler.settled('a', tried.url.sequence)
    for (let starts = 0; starts < 4; starts += 1) expect(crawl.start().host.name).toBe('b')
    // Host b is full: now the later class has its turn.
    expect(crawl.start().url).toMatchObject({ host: 'a', isLater: true })
    crawl.clock.advance(ruling.waitMs)
    expect(crawl.start().url.sequence).toBe(tried.url.sequence)
  })

  test('do not go before URLs that were given back', () => {
    const crawl = new Crawl({ a: 1 })
    crawl.frontier.add('a', 5, true)
    const first = crawl.start()
    const later = crawl.start()
    crawl.scheduler.giveBack(first)
    crawl.scheduler.giveBack(later)
    expect([crawl.start().url, crawl.start().url]).toEqual([first.url, later.url])
  })
})

describe('many hosts', () => {
  const manyHosts = (count: number): Record<string, number> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, 20]))

  test('are read a bounded number in each turn, and the first fetch starts before the second turn', () => {
    const crawl = new Crawl(manyHosts(2_000))
    expect(crawl.frontier.recordsRead).toBe(limits.hostsPerRefillMax)
    expect(crawl.scheduler.candidate()).toBeDefined()
    let turns = 1
    for (let isMore = true; isMore; turns++) {
      const before = crawl.frontier.recordsRead
      isMore = crawl.scheduler.refill()
      expect(crawl.frontier.recordsRead - before).toBeLessThanOrEqual(limits.hostsPerRefillMax)
    }
    expect([crawl.scheduler.hosts.size, turns]).toEqual([2_000, Math.ceil(2_000 / limits.hostsPerRefillMax)])
  })

  test('have fewer URLs claimed ahead the more of them there are, and one at least', () => {
    const hosts = 10_000
    const crawl = new Crawl(manyHosts(hosts))
    while (crawl.scheduler.refill());
    const hands: number[] = []
    for (let i = 0; i < hosts; i++) hands.push(crawl.start().host.claimed.length + 1)
    expect(Math.max(...hands)).toBe(Math.floor(limits.claimedUrlsMax / hosts))
    expect(Math.min(...hands)).toBeGreaterThanOrEqual(1)
    expect(crawl.scheduler.leasedCount).toBeLessThanOrEqual(limits.claimedUrlsMax)
  })
})

import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions, type HostRule } from '../../engine/core/options.ts'
import type { Lease } from '../../engine/schedule/host.ts'
import { HostRules } from '../../engine/schedule/host-rules.ts'
import { Scheduler, type SchedulerOptions } from '../../engine/schedule/scheduler.ts'
import { SharedCap } from '../../engine/schedule/shared-cap.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { TestClock } from '../support/test-clock.ts'

interface Setting extends Partial<Omit<SchedulerOptions, 'options'>> {
  readonly hosts: Readonly<Record<string, number>>
  readonly delayMs?: number
  readonly start?: number
  readonly hostLimits?: readonly HostRule[]
  readonly maxPerAddress?: number
}

/** A crawl that answers its requests one after the other, `slots` of them under way at once. */
class Crawl {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  readonly scheduler: Scheduler
  readonly underWay: Lease[] = []
  /** Names of hosts, in the order of their starts. */
  readonly starts: string[] = []

  constructor({ hosts, delayMs = 0, start = 4, hostLimits = [], maxPerAddress = Number.POSITIVE_INFINITY, ...others }: Setting) {
    for (const [host, count] of Object.entries(hosts)) this.frontier.add(host, count)
    this.scheduler = new Scheduler({
      store: this.frontier, clock: this.clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: ({ name, ...facts }) => this.frontier.note(name, facts),
      options: { concurrency: { start, floor: 1, ceiling: 32 }, delayMs, retries: 2, hostLimits, maxPerAddress }, ...others,
    })
    this.scheduler.open(false)
  }

  /** Starts what may start, up to so many under way. */
  fill(slots: number): void {
    this.scheduler.refill()
    while (this.underWay.length < slots) {
      const candidate = this.scheduler.candidate()
      if (candidate === undefined) return
      const lease = this.scheduler.start(candidate)
      this.scheduler.sent(lease.host, lease)
      this.starts.push(lease.host.name)
      this.underWay.push(lease)
    }
  }

  /** The oldest request is answered. */
  answer(): void {
    const lease = this.underWay.shift()!
    this.scheduler.release(lease, { ok: true })
    this.frontier.end(lease.url)
    this.scheduler.settled(lease.url.host, lease.url.sequence)
  }

  run(slots: number, starts: number, stepMs = 1): void {
    while (this.starts.length < starts) {
      this.fill(slots)
      if (this.underWay.length > 0) this.answer()
      this.clock.advance(stepMs)
    }
  }

  count(host: string): number {
    return this.starts.filter((name) => name === host).length
  }
}

test('between hosts priority is a weight: a host with worse URLs starts less often, and not never', () => {
  const crawl = new Crawl({ hosts: { seeds: 0, deep: 0, deeper: 0 } })
  const priorities = { seeds: 0, deep: 2, deeper: 200 }
  for (const [name, priority] of Object.entries(priorities)) {
    crawl.frontier.add(name, 1_000, false, priority)
    crawl.scheduler.grow(name)
  }
  crawl.run(1, 1_000, 10)
  const counts = Object.keys(priorities).map((name) => crawl.count(name))
  expect(counts[0]).toBeGreaterThan(counts[1]! * 1.5)
  expect(counts[1]).toBeGreaterThan(counts[2]! * 1.5)
  expect(counts[2]).toBeGreaterThan(0)
  // Whoever has waited for longer than the handicap goes before all that became ready since.
  const turns = crawl.starts.flatMap((name, at) => (name === 'deeper' ? [at] : []))
  const gaps = turns.slice(1).map((at, i) => at - turns[i]!)
  expect(Math.max(...gaps) * 10).toBeLessThanOrEqual(limits.handicapMsMax + 3 * 10)
})

test('inside a host priority is strict: a better URL that arrives late goes before what was read ahead', () => {
  const crawl = new Crawl({ hosts: { a: 0 } })
  crawl.frontier.add('a', 20, false, 5)
  crawl.scheduler.grow('a', 5)
  const started: number[] = []
  const startOne = (): void => {
    crawl.fill(1)
    started.push(crawl.underWay[0]!.url.priority)
    crawl.answer()
  }
  startOne()
  crawl.frontier.add('a', 2, false, 1)
  crawl.frontier.add('a', 2, false, 3)
  crawl.scheduler.grow('a', 1)
  for (let i = 0; i < 6; i++) startOne()
  expect(started).toEqual([5, 1, 1, 3, 3, 5, 5])
  expect(crawl.scheduler.leasedCount).toBeLessThanOrEqual(limits.claimUrlsPerHost)
})

test('a host that waits for its turn is not overtaken by new hosts, however many come', () => {
  const crawl = new Crawl({ hosts: { old: 3 } })
  crawl.run(1, 1)
  for (let i = 0; i < 50; i++) {
    crawl.frontier.add(`new${i}`)
    crawl.scheduler.grow(`new${i}`)
  }
  crawl.run(1, 3)
  expect(crawl.starts.slice(0, 2)).toEqual(['old', 'old'])
})

test('a weight of three is three starts in a turn', () => {
  const crawl = new Crawl({ hosts: { heavy: 300, light: 300 }, hostLimits: [{ hosts: 'heavy', weight: 3 }] })
  crawl.run(1, 200)
  expect(crawl.count('heavy') / crawl.count('light')).toBeCloseTo(3, 1)
})

test('a weight shortens no delay', () => {
  const crawl = new Crawl({ hosts: { heavy: 10 }, delayMs: 1_000, hostLimits: [{ hosts: 'heavy', weight: 9 }] })
  crawl.fill(9)
  expect(crawl.starts).toHaveLength(1)
  crawl.clock.advance(999)
  crawl.fill(9)
  expect(crawl.starts).toHaveLength(1)
  crawl.clock.advance(1)
  crawl.fill(9)
  expect(crawl.starts).toHaveLength(2)
})

test('one host with a hundred thousand URLs goes on beside a thousand hosts with ten, and takes no more turns than each of them', () => {
  const small = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`small${i}`, 10]))
  const crawl = new Crawl({ hosts: { big: 100_000, ...small } })
  // It is among the first that are read from the store, some turns before the last.
  crawl.run(16, 10_040)
  for (const name of Object.keys(small)) expect(crawl.count(name)).toBe(10)
  expect(crawl.count('big')).toBe(40)
  const lastSmall = crawl.starts.findLastIndex((name) => name !== 'big')
  expect(crawl.starts.slice(0, lastSmall).filter((name) => name === 'big').length).toBeLessThanOrEqual(15)
})

test('hosts of one domain share its ceiling, and the others go on', () => {
  const hosts = { 'a.one': 50, 'b.one': 50, 'c.one': 50, other: 50 }
  const crawl = new Crawl({ hosts, start: 32, unitOf: (host) => (host.endsWith('.one') ? 'one' : host) })
  crawl.fill(1_000)
  const ofUnit = crawl.underWay.filter(({ host }) => host.unit.name === 'one').length
  expect(ofUnit).toBe(32)
  expect(crawl.underWay.length - ofUnit).toBe(32)
})

test('hosts of one address share its bound in the order in which they came to it, robots.txt included', () => {
  const names = Array.from({ length: 9 }, (_, i) => `host${i}`)
  const crawl = new Crawl({
    hosts: { ...Object.fromEntries(names.map((name) => [name, 4])), elsewhere: 4 }, maxPerAddress: 3,
    unitOf: (host) => ({ unit: host, address: host === 'elsewhere' ? 'b' : 'a' }),
  })
  crawl.fill(1_000)
  expect(crawl.underWay.filter(({ host }) => host.name !== 'elsewhere')).toHaveLength(3)
  expect(crawl.underWay.filter(({ host }) => host.name === 'elsewhere')).toHaveLength(3)
  const order: string[] = []
  const startsBefore = crawl.starts.length
  while (crawl.underWay.length > 0) {
    crawl.answer()
    crawl.fill(1_000)
    expect(crawl.underWay.filter(({ host }) => host.name !== 'elsewhere').length).toBeLessThanOrEqual(3)
  }
  order.push(...crawl.starts.slice(startsBefore).filter((name) => name !== 'elsewhere'))
  // Each waits for its turn behind all that waited before it.
  expect(new Set(order.slice(0, 6)).size).toBe(6)
  expect(crawl.starts).toHaveLength(40)
})

test('a cap that has room at a moment wakes those that wait for it then, and the scheduler says when', () => {
  let openAtMs = Number.POSITIVE_INFINITY
  const gateway = new SharedCap('gateway', { room: (inFlight, nowMs) => (nowMs < openAtMs ? 0 : 2 - inFlight), roomAtMs: () => openAtMs })
  const crawl = new Crawl({ hosts: { a: 3, b: 3, direct: 3 }, capsOf: (host) => (host === 'direct' ? [] : [gateway]) })
  openAtMs = crawl.clock.nowMs() + 5_000
  crawl.fill(100)
  expect(new Set(crawl.starts)).toEqual(new Set(['direct']))
  expect(crawl.scheduler.nextAtMs()).toBe(openAtMs)
  while (crawl.underWay.length > 0) crawl.answer()
  expect(crawl.scheduler.restingUntilMs()).toBe(openAtMs)
  crawl.clock.advance(5_000)
  crawl.fill(100)
  expect(gateway.inFlight).toBe(2)
  while (crawl.underWay.length > 0) {
    crawl.answer()
    crawl.fill(100)
  }
  expect(crawl.starts).toHaveLength(9)
})

test('a host that waits at a cap and is excluded ends its URLs at once', () => {
  const closed = new SharedCap('closed', { room: () => 0 })
  const crawl = new Crawl({ hosts: { a: 3 }, capsOf: () => [closed] })
  crawl.fill(10)
  expect(crawl.starts).toEqual([])
  expect(closed.waiting.size).toBe(1)
  crawl.scheduler.exclude('a')
  expect(closed.waiting.size).toBe(0)
  expect(crawl.scheduler.candidate()?.host.ended).toEqual({ outcome: 'excluded' })
})

test('a host that asks to be paid is parked with its price, its URLs stay queued, and whoever wants them gets them', () => {
  const crawl = new Crawl({ hosts: { paid: 5, free: 1 } })
  crawl.fill(2)
  const paid = crawl.underWay.splice(crawl.underWay.findIndex(({ host }) => host.name === 'paid'), 1)[0]!
  expect(crawl.scheduler.release(paid, { ok: false, code: 'http_402', price: 'USD 0.01' })).toEqual({ kind: 'rest' })
  while (crawl.underWay.length > 0) {
    crawl.answer()
    crawl.fill(10)
  }
  expect(crawl.starts.filter((name) => name === 'paid').length, 'those that were under way').toBeLessThanOrEqual(2)
  expect(crawl.frontier.host('paid')).toMatchObject({ parked: { code: 'http_402', price: 'USD 0.01' }, pending: 5 })
  expect(crawl.scheduler.restingUntilMs(), 'nothing is waited for').toBe(Number.POSITIVE_INFINITY)
  crawl.scheduler.revive('paid')
  expect(crawl.frontier.host('paid')).not.toHaveProperty('parked')
  crawl.fill(10)
  while (crawl.underWay.length > 0) {
    crawl.answer()
    crawl.fill(10)
  }
  expect(crawl.frontier.pending).toBe(0)
})

test('of the rules for a host the most specific holds, fact by fact', () => {
  const rules = new HostRules(resolveCrawlOptions({
    hostLimits: ['*=delay:2s', '*.example.com=delay:5s,weight:2', 'www.example.com=concurrency:1:1:2', '*.com=weight:7'] as unknown as string,
  }).hostLimits)
  expect(rules.of('other.test')).toEqual({ delayMs: 2_000 })
  expect(rules.of('example.com')).toEqual({ delayMs: 2_000, weight: 7 })
  expect(rules.of('a.b.example.com')).toEqual({ delayMs: 5_000, weight: 2 })
  expect(rules.of('www.example.com')).toEqual({ delayMs: 5_000, weight: 2, concurrency: { start: 1, floor: 1, ceiling: 2 } })
  expect(new HostRules([{ hosts: '*.0.0.1', weight: 2 }]).of('127.0.0.1')).toEqual({})
})

test.each([
  'example.com', '=delay:1s', 'a.test=', 'a.test=speed:3', 'a.test=delay:fast', 'a.test=weight:0', 'a.test=concurrency:4:1', '*a.test=delay:1s', 'a.*.test=delay:1s', '*.=delay:1s', 'a.test=constructor:1',
])('--host-limit %j is refused in one line that says what was expected', (text) => {
  expect(() => resolveCrawlOptions({ hostLimits: text })).toThrowError(/^--host-limit.*: expected .*, given .*$/)
})

test('a limit that is set for a pattern holds for hosts in memory and for those that come later', () => {
  const crawl = new Crawl({ hosts: { 'a.one': 10, 'b.two': 10 }, start: 8 })
  crawl.scheduler.refill()
  crawl.scheduler.candidate()
  crawl.scheduler.setLimit('*.one', { concurrency: { start: 1, floor: 1, ceiling: 2 }, delayMs: 300 })
  expect(crawl.scheduler.host('a.one')).toMatchObject({ delayMs: 300, limiter: { limit: 2 } })
  expect(crawl.scheduler.host('b.two')).toMatchObject({ delayMs: undefined, limiter: { limit: 8 } })
  crawl.frontier.add('c.one', 3)
  crawl.scheduler.grow('c.one')
  expect(crawl.scheduler.host('c.one')).toMatchObject({ delayMs: 300, limiter: { limit: 2 } })
})

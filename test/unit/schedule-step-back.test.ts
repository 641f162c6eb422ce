import { expect, it } from 'vitest'
import type { BlockedOn } from '../../engine/core/api-types.ts'
import { limits } from '../../engine/core/limits.ts'
import { Shed } from '../../engine/flow/shed.ts'
import type { Candidate } from '../../engine/schedule/host.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { StepBack } from '../../engine/schedule/step-back.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { TestClock } from '../support/test-clock.ts'

/** A crawl with room for one URL at a time, held by the page ring but for the moments in which it starts one. */
class Crawl {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  readonly scheduler: Scheduler
  readonly shed = new Shed(1_000)
  readonly turns: StepBack
  readonly deferred: string[] = []

  constructor(options: { readonly delayMs?: number } = {}) {
    this.scheduler = new Scheduler({
      store: this.frontier, clock: this.clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: ({ name, ...facts }) => this.frontier.note(name, facts),
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: options.delayMs ?? 0, retries: 2 },
    })
    this.turns = new StepBack({ scheduler: this.scheduler, shed: this.shed, clock: this.clock, onDeferred: ({ host }, reason) => this.deferred.push(`${host} ${reason}`) })
  }

  open(): void {
    this.scheduler.open(false)
    // As a crawl that has gone on for a while: most of what had its turn was of the first priorities.
    for (let at = 0; at < 100; at += 1) this.shed.claimed(at % 3)
  }

  /** A commit brought these. */
  add(host: string, count: number, priority = 0): void {
    this.frontier.add(host, count, false, priority)
    this.scheduler.grow(host, priority)
  }

  hold(blockedOn: BlockedOn = 'page_ring', ms = 1_000): void {
    this.shed.note(blockedOn, this.clock.nowMs())
    this.clock.advance(ms)
    this.shed.note(blockedOn, this.clock.nowMs())
  }

  /** Starts the URL whose turn it is, and ends it. Answers its host. */
  start(): string | undefined {
    this.scheduler.refill()
    const candidate = this.turns.next()
    if (candidate !== undefined) this.#fetch(candidate)
    return candidate?.host.name
  }

  #fetch(candidate: Candidate): void {
    const lease = this.scheduler.start(candidate)
    this.scheduler.sent(lease.host, lease)
    this.scheduler.release(lease, { ok: true })
    this.frontier.end(lease.url)
    this.scheduler.settled(lease.url.host, lease.url.sequence)
  }

  starts(count: number, stepMs = 1): readonly (string | undefined)[] {
    return Array.from({ length: count }, () => {
      this.clock.advance(stepMs)
      return this.start()
    })
  }
}

it('while it sheds, hosts whose best URL is of the worst give way to all others, and each is told once', () => {
  const crawl = new Crawl()
  crawl.frontier.add('bad.test', 20, false, 9)
  crawl.frontier.add('good.test', 10, false, 0)
  crawl.open()
  expect(new Set(crawl.starts(4, 100))).toEqual(new Set(['bad.test', 'good.test']))
  crawl.hold()
  expect(crawl.starts(6)).toEqual(Array(6).fill('good.test'))
  expect(crawl.deferred).toEqual(['bad.test page_ring'])
})

it('what has stepped back starts as soon as nothing better can: no room stays empty, and nothing counts as put off', () => {
  const crawl = new Crawl({ delayMs: 100 })
  crawl.frontier.add('bad.test', 20, false, 9)
  crawl.open()
  crawl.hold()
  expect(crawl.starts(2)).toEqual(['bad.test', undefined])
  expect([crawl.deferred, crawl.turns.size]).toEqual([[], 0])
})

it('nothing steps back once the claims are free, and what had comes forward with the first room', () => {
  const crawl = new Crawl({ delayMs: 500 })
  crawl.frontier.add('bad.test', 20, false, 9)
  crawl.frontier.add('good.test', 20, false, 0)
  crawl.open()
  expect(crawl.starts(1)).toEqual(['good.test'])
  crawl.hold()
  expect(crawl.starts(1)).toEqual(['good.test'])
  expect(crawl.turns.size).toBe(1)
  crawl.shed.note('politeness', crawl.clock.nowMs())
  expect(crawl.starts(2)).toEqual(['bad.test', undefined])
  expect(crawl.turns.size).toBe(0)
  crawl.hold('politeness', 250)
  crawl.add('bad2.test', 1, 9)
  crawl.hold('politeness', 250)
  expect([crawl.shed.isShedding, ...crawl.starts(2), crawl.deferred.length]).toEqual([true, 'bad2.test', 'good.test', 1])
})

it('a host that was passed over has its turn after a minute in any case, once, and then steps back again', () => {
  const crawl = new Crawl()
  crawl.frontier.add('bad.test', 20, false, 9)
  crawl.frontier.add('good.test', 1_000, false, 0)
  crawl.open()
  crawl.hold()
  expect(crawl.starts(10)).not.toContain('bad.test')
  crawl.clock.advance(limits.shedHoldMsMax)
  expect(crawl.starts(500).filter((host) => host === 'bad.test')).toHaveLength(1)
  expect(crawl.deferred).toEqual(Array(2).fill('bad.test page_ring'))
})

it('inside a host nothing changes: its best goes first, and a better URL that comes late brings it forward', () => {
  const crawl = new Crawl()
  crawl.frontier.add('bad.test', 5, false, 9)
  crawl.frontier.add('good.test', 1_000, false, 0)
  crawl.open()
  crawl.hold()
  crawl.starts(3)
  expect(crawl.turns.size).toBe(1)
  crawl.add('bad.test', 1)
  expect(crawl.turns.size).toBe(0)
  expect(crawl.starts(6).filter((host) => host === 'bad.test')).toHaveLength(1)
})

it('the later class starts behind what has stepped back, and a host that ends without a fetch steps back for nobody', () => {
  const crawl = new Crawl()
  crawl.frontier.add('later.test', 1, true, 0)
  crawl.frontier.add('bad.test', 1, false, 9)
  crawl.open()
  crawl.hold()
  expect(crawl.starts(2)).toEqual(['bad.test', 'later.test'])
  crawl.add('good.test', 2)
  crawl.add('ended.test', 1, 9)
  crawl.scheduler.exclude('ended.test')
  crawl.hold()
  expect(crawl.start()).toBe('good.test')
  expect(crawl.turns.next()?.host.name).toBe('ended.test')
})

it('a second sees a bounded number of hosts step back, whatever the crawl holds', () => {
  const crawl = new Crawl()
  for (let at = 0; at < 2_000; at += 1) crawl.frontier.add(`bad${at}.test`, 2, false, 9)
  crawl.open()
  while (crawl.scheduler.refill());
  crawl.add('good.test', 1_000)
  crawl.hold()
  let starts = 0
  const untilMs = crawl.clock.nowMs() + 2_000
  while (crawl.clock.nowMs() < untilMs) starts += crawl.starts(20).length
  expect(starts).toBe(2_000)
  expect(crawl.deferred.length).toBeGreaterThan(limits.shedTurnsMax)
  expect(crawl.deferred.length).toBeLessThanOrEqual(3 * limits.shedTurnsMax)
  expect(crawl.turns.size).toBeLessThanOrEqual(3 * limits.shedTurnsMax)
})

it('an excluded host leaves, and a crawl whose hosts have all stepped back is not over', () => {
  const crawl = new Crawl()
  crawl.frontier.add('bad.test', 5, false, 9)
  crawl.frontier.add('good.test', 5, false, 0)
  crawl.open()
  crawl.hold()
  expect(crawl.starts(5)).toEqual(Array(5).fill('good.test'))
  expect([crawl.turns.size, crawl.scheduler.isEmpty]).toEqual([1, false])
  crawl.scheduler.exclude('bad.test')
  expect(crawl.turns.size).toBe(0)
  expect(crawl.turns.next()?.host.name).toBe('bad.test')
})

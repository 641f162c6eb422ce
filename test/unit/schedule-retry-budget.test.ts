import { expect, onTestFinished, test, vi } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { Limiter } from '../../engine/schedule/limiter.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { bringNext, RetryBudget, TokenBucket, type Retrying } from '../../engine/schedule/retry-budget.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

function urlOf(sequence: number, attempts = 0, isLater = false): QueuedUrl {
  return { row: new Uint8Array(), fingerprint: new Uint8Array(16), host: 'a.test', sequence, url: `http://a.test/${sequence}`, depth: 0, priority: 0, attempts, ...(isLater && { isLater }) }
}

function hostOf(...claimed: readonly QueuedUrl[]): Retrying {
  return { claimed: [...claimed], refused: undefined, retryAtMs: 0, retryTokens: undefined }
}

test('over random first tries, retries and waits a bucket never gives more than its capacity, what first tries earned and what time did', async () => {
  await withSeeds(100, (random) => {
    const size = { tokensMax: 1 + integer(random, 20), msPerToken: pick(random, [10, 1_000, 10_000]) }
    const bucket = new TokenBucket(size, 0)
    let [nowMs, first, retries] = [0, 0, 0]
    for (let i = 0; i < 500; i++) {
      const roll = random()
      if (roll < 0.4) nowMs += random() * 2_000
      else if (roll < 0.7) {
        bucket.earn(0.1, nowMs)
        first += 1
      } else {
        while (bucket.has(nowMs) && random() < 0.8) {
          bucket.take(nowMs)
          retries += 1
        }
        expect(retries).toBeLessThanOrEqual(size.tokensMax + first / 10 + nowMs / size.msPerToken + 1e-6)
      }
    }
  })
})

test('at the moment that a bucket names, and not a millisecond before, there is a token', async () => {
  await withSeeds(200, (random) => {
    const bucket = new TokenBucket({ tokensMax: 3, msPerToken: 1_000 }, 0)
    for (let i = 0; i < 3 + integer(random, 3); i++) bucket.take(random() * 500)
    bucket.earn(integer(random, 9) / 10, 500)
    const atMs = bucket.nextAtMs(500)
    expect(bucket.has(Math.max(500, atMs - 1))).toBe(atMs <= 500)
    expect(bucket.has(atMs)).toBe(true)
  })
})

test('a host that has spent its tokens names its own moment, and asks the crawl for none', () => {
  const [budget, host] = [new RetryBudget<Retrying>(0), hostOf(urlOf(1, 1))]
  for (let i = 0; i < limits.retryTokensPerHostMax; i++) {
    expect(budget.mayRetry(host, 0)).toBe(true)
    budget.begun(host, urlOf(1, 1), 0)
  }
  expect(budget.mayRetry(host, 0)).toBe(false)
  budget.wait(host, 0)
  expect([host.retryAtMs, budget.hostsWaiting, budget.nextAtMs(0)]).toEqual([limits.retryHostTokenMs, 0, Number.POSITIVE_INFINITY])
})

test('hosts that wait for the crawl get its tokens in the order in which they came, and none that comes later goes before them', () => {
  const budget = new RetryBudget<Retrying>(0)
  for (let i = 0; i < limits.retryTokensMax; i++) budget.begun(hostOf(), urlOf(i, 1), 0)
  const hosts = Array.from({ length: 5 }, (_, i) => hostOf(urlOf(i, 1)))
  for (const host of hosts) {
    expect(budget.mayRetry(host, 0)).toBe(false)
    budget.wait(host, 0)
  }
  const woken: number[] = []
  for (let nowMs = 0; nowMs <= 5_000; nowMs += 500) {
    expect(budget.mayRetry(hostOf(urlOf(8, 1)), nowMs), 'whoever comes before they are woken').toBe(false)
    for (const host of budget.wake(nowMs)) {
      woken.push(hosts.indexOf(host))
      expect(budget.mayRetry(host, nowMs)).toBe(true)
    }
    expect(budget.mayRetry(hostOf(urlOf(9, 1)), nowMs), 'whoever comes now').toBe(false)
    if (woken.length < 5) expect(budget.nextAtMs(nowMs)).toBe((woken.length + 1) * limits.retryTokenMs)
    if (woken.length === 5) break
  }
  expect(woken).toEqual([0, 1, 2, 3, 4])
})

test('a host in the queue that got something else to start loses its place, and costs no token', () => {
  const budget = new RetryBudget<Retrying>(0)
  for (let i = 0; i < limits.retryTokensMax; i++) budget.begun(hostOf(), urlOf(i, 1), 0)
  const [gone, waiting] = [hostOf(urlOf(1, 1)), hostOf(urlOf(2, 1))]
  budget.wait(gone, 0)
  budget.wait(waiting, 0)
  gone.retryAtMs = 0
  expect(budget.wake(limits.retryTokenMs)).toEqual([waiting])
})

test('a retry that may not go lets the first try behind it go first, but not one of the later class', () => {
  const hand = hostOf(urlOf(1, 1), urlOf(2, 2), urlOf(3), urlOf(4, 0, true))
  expect([bringNext(hand, false), hand.claimed.map(({ sequence }) => sequence)]).toEqual([true, [3, 1, 2, 4]])
  const retries = hostOf(urlOf(1, 1), urlOf(4, 0, true))
  expect([bringNext(retries, false), bringNext(retries, true)]).toEqual([false, true])
  const refused = { ...hostOf(urlOf(1), urlOf(2)), refused: new Set([1, 2]) }
  expect(bringNext(refused, false)).toBe(false)
})

/** Hosts of which some fail every URL, as often as they may; a crawl of so many connections for so long. */
class Crawl {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  readonly scheduler: Scheduler
  readonly failing: (host: string) => boolean
  /** First tries and retries, by whether the host fails. */
  readonly starts = { well: 0, failing: 0, retries: 0 }

  constructor({ hosts, urls, retries, failing }: { hosts: number; urls: number; retries: number; failing: (host: string) => boolean }) {
    this.failing = failing
    this.scheduler = new Scheduler({
      store: this.frontier, clock: this.clock, random: () => 0.5, unitOf: (host) => host, onWork: () => {}, note: () => {},
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 0, retries },
    })
    for (let i = 0; i < hosts; i++) this.frontier.add(`h${i}.test`, urls)
    this.scheduler.open(false)
    while (this.scheduler.refill());
  }

  /** Starts all that may start, each ending at once, until so much time has passed or nothing is left. */
  run(ms: number): void {
    const untilMs = this.clock.nowMs() + ms
    for (;;) {
      this.scheduler.refill()
      const candidate = this.scheduler.candidate()
      if (candidate === undefined) {
        const atMs = this.scheduler.nextAtMs()
        if (atMs === undefined || atMs > untilMs) return
        expect(atMs, 'nothing may start, and the scheduler names the present').toBeGreaterThan(this.clock.nowMs())
        this.clock.advance(atMs - this.clock.nowMs())
        continue
      }
      const { host, url } = candidate
      const isFailing = this.failing(host.name)
      if (url.attempts > 0) this.starts.retries += 1
      else this.starts[isFailing ? 'failing' : 'well'] += 1
      const lease = this.scheduler.start(candidate)
      const ruling = this.scheduler.release(lease, isFailing ? { ok: false, code: 'http_502' } : { ok: true })
      if (ruling.kind === 'retry') this.frontier.defer(url, this.scheduler.rowsMs() + ruling.waitMs)
      else this.frontier.end(url)
      this.scheduler.settled(url.host, url.sequence)
    }
  }
}

test('with three hosts of ten failing, retries are their tenth and no more, and all other URLs are fetched as if none failed', () => {
  const crawl = new Crawl({ hosts: 100, urls: 50, retries: 100, failing: (host) => Number(host.slice(1, -5)) % 10 < 3 })
  const startedAtMs = crawl.clock.nowMs()
  crawl.run(60_000)
  expect(crawl.starts.well).toBe(70 * 50)
  const first = crawl.starts.well + crawl.starts.failing
  const seconds = (crawl.clock.nowMs() - startedAtMs) / 1_000
  expect(crawl.starts.retries).toBeLessThanOrEqual(limits.retryTokensMax + first / 10 + seconds)
  expect(crawl.starts.retries, 'retries').toBeGreaterThan(100)
  expect(crawl.scheduler.retries.share).toBeCloseTo(crawl.starts.retries / (first + crawl.starts.retries))
})

test('many retries that are due and may not go do not keep the first tries of their host waiting', () => {
  // Such a host is slowed down to a pace, which would hide what is asked here.
  const limiter = vi.spyOn(Limiter.prototype, 'throttle').mockReturnValue(false)
  onTestFinished(() => limiter.mockRestore())
  const crawl = new Crawl({ hosts: 1, urls: 100, retries: 100, failing: () => true })
  crawl.run(5_000)
  crawl.frontier.add('h0.test', 10)
  crawl.scheduler.grow('h0.test')
  expect(crawl.starts).toMatchObject({ failing: 100, retries: limits.retryTokensPerHostMax })
  crawl.run(0)
  expect(crawl.starts.failing).toBe(110)
  expect(crawl.scheduler.leasedCount, 'and do not fill its hand').toBeLessThanOrEqual(2 * limits.claimUrlsPerHost)
})

test('the last URLs of a crawl are still tried, at the pace of the floor, until each has had its tries', () => {
  const crawl = new Crawl({ hosts: 40, urls: 2, retries: 5, failing: () => true })
  crawl.run(24 * 60 * 60_000)
  expect(crawl.frontier.pending).toBe(0)
  expect(crawl.starts.retries).toBeGreaterThanOrEqual(40)
  expect(crawl.scheduler.isEmpty).toBe(true)
})

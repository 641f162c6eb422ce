import { describe, expect, test } from 'vitest'
import type { Random } from '../../engine/core/clock.ts'
import { failureTable, type FailureCode } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { Health, noShares, type HealthShares } from '../../engine/schedule/health.ts'
import { restUntilMs, type Host, type Lease } from '../../engine/schedule/host.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { MemoryFrontier } from '../support/memory-frontier.ts'
import { pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

const PATIENCE_MS = 300_000
const codes = Object.keys(failureTable) as readonly FailureCode[]

/** One host, whose requests all take so long and end as the test says. */
class OneHost {
  readonly clock = new TestClock()
  readonly frontier = new MemoryFrontier()
  readonly scheduler: Scheduler
  /** Whoever is under way, the longest first. */
  readonly underWay: { readonly lease: Lease; readonly endAtMs: number }[] = []
  readonly failed: string[] = []
  pages = 0
  starts = 0

  constructor(urls: number, random: Random = () => 0.5) {
    this.frontier.add('a.test', urls)
    this.scheduler = new Scheduler({
      store: this.frontier, clock: this.clock, random, unitOf: (host) => host, onWork: () => {}, note: ({ name, ...facts }) => this.frontier.note(name, facts),
      options: { concurrency: { start: 4, floor: 1, ceiling: 32 }, delayMs: 0, retries: 2, hostPatienceMs: PATIENCE_MS },
    })
    this.scheduler.open(false)
  }

  get host(): Host {
    return this.scheduler.host('a.test')!
  }

  /** Until so much time has passed, nothing is left, or the test has seen enough. */
  run(ms: number, endOf: (nowMs: number) => FailureCode | undefined, { requestMs = 100, isEnough = (): boolean => false } = {}): void {
    const untilMs = this.clock.nowMs() + ms
    while (!isEnough()) {
      for (let next = this.scheduler.candidate(); next !== undefined && !isEnough(); next = this.scheduler.candidate()) {
        if (next.host.ended !== undefined) {
          this.scheduler.take(next)
          this.failed.push(next.url.url)
          this.#end(next.url)
        } else {
          this.starts += 1
          this.underWay.push({ lease: this.scheduler.start(next), endAtMs: this.clock.nowMs() + requestMs })
        }
      }
      const nextMs = Math.min(this.underWay[0]?.endAtMs ?? Number.POSITIVE_INFINITY, this.scheduler.nextAtMs() ?? Number.POSITIVE_INFINITY)
      if (nextMs > untilMs) return
      this.clock.advance(nextMs - this.clock.nowMs())
      while (this.underWay.length > 0 && this.underWay[0]!.endAtMs <= this.clock.nowMs()) this.#finish(this.underWay.shift()!.lease, endOf(this.clock.nowMs()))
    }
  }

  #finish(lease: Lease, code: FailureCode | undefined): void {
    const { url } = lease
    const ruling = this.scheduler.release(lease, code === undefined ? { ok: true } : { ok: false, code })
    if (ruling.kind === 'retry') this.frontier.defer(url, this.scheduler.rowsMs() + ruling.waitMs)
    else if (ruling.kind === 'page') this.pages += 1
    else if (ruling.kind === 'fail') this.failed.push(url.url)
    if (ruling.kind === 'retry') this.scheduler.settled(url.host, url.sequence)
    else if (ruling.kind !== 'rest') this.#end(url)
  }

  #end(url: Lease['url']): void {
    this.frontier.end(url)
    this.scheduler.settled(url.host, url.sequence)
  }
}

describe('a host that answers nothing', () => {
  test.each(['connect_refused', 'connect_timeout', 'dns_failed', 'tls_failed'] as const)('for a minute (%s) loses none of its URLs, fails none, is asked ten times at most beside what was under way, and is asked within its longest rest of its return', async (code) => {
    await withSeeds(30, (random) => {
      const world = new OneHost(200, random)
      world.run(300, () => undefined)
      const [downAtMs, before] = [world.clock.nowMs(), world.starts]
      let asked = 0
      let backAtMs = Number.POSITIVE_INFINITY
      world.run(60 * 60_000, (nowMs) => {
        if (nowMs >= downAtMs + 60_000) {
          backAtMs = Math.min(backAtMs, nowMs)
          return undefined
        }
        asked += 1
        return code
      })
      expect([world.failed, world.pages, world.frontier.pending]).toEqual([[], 200, 0])
      expect(before).toBeGreaterThan(8)
      expect(asked).toBeLessThanOrEqual(32 + 10)
      // What one request takes comes on top.
      expect(backAtMs - downAtMs - 60_000).toBeLessThanOrEqual(limits.hostRestMsMax + 100)
    })
  })

  test.each([[true, 1], [false, 0.1]])('for good (it answered before: %s) is tried over the whole of its patience, one URL at a time and fewer than forty times, and then its URLs fail', async (hasAnswered, share) => {
    const tries: number[] = []
    await withSeeds(50, (random) => {
      const world = new OneHost(100, random)
      const startedAtMs = world.clock.nowMs()
      let mostAtOnce = 0
      world.run(24 * 60 * 60_000, () => {
        world.host.hasAnswered = hasAnswered
        if (world.host.failures > 1) mostAtOnce = Math.max(mostAtOnce, world.host.limiter.inFlight)
        return 'connect_refused'
      }, { isEnough: () => world.host?.ended !== undefined })
      expect(world.clock.nowMs() - startedAtMs).toBeGreaterThanOrEqual(share * PATIENCE_MS)
      if (!hasAnswered) expect(world.clock.nowMs() - startedAtMs).toBeLessThan(PATIENCE_MS)
      expect(mostAtOnce).toBeLessThanOrEqual(1)
      tries.push(world.starts)
      world.run(1_000, () => undefined)
      expect([world.failed.length, world.frontier.pending]).toEqual([100, 0])
    })
    expect(Math.max(...tries)).toBeLessThan(40)
  })

  test('because its name does not exist is given up after two look-ups, however soon', () => {
    const world = new OneHost(5)
    world.run(10_000, () => 'dns_not_found', { isEnough: () => world.host.ended !== undefined })
    expect(world.host.ended).toEqual({ outcome: 'failed', code: 'dns_not_found' })
    expect(world.clock.nowMs()).toBeLessThan(10_000)
  })

  test('goes on after a good probe at the limit that it had, two at a time at first', () => {
    const world = new OneHost(500)
    world.run(400, () => undefined)
    const { limit } = world.host.limiter
    expect(limit).toBeGreaterThan(4)
    const downUntilMs = world.clock.nowMs() + 20_000
    world.run(60_000, (nowMs) => (nowMs < downUntilMs ? 'connect_refused' : undefined), { isEnough: () => world.clock.nowMs() >= downUntilMs && world.host.failures === 0 })
    const atOnce: number[] = []
    for (let i = 0; i < 5; i++) {
      world.run(0, () => undefined)
      atOnce.push(world.host.limiter.inFlight)
      world.run(100, () => undefined)
    }
    expect(world.host.limiter.limit).toBeGreaterThanOrEqual(limit)
    expect(atOnce.slice(0, 2)).toEqual([2, 4])
    expect(atOnce.at(-1)).toBeGreaterThan(4)
    expect(world.host.rampMax).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('health', () => {
  test('stays from 0 to 1 whatever comes, and the shares of answers are together at most 1', async () => {
    await withSeeds(100, (random) => {
      const health = new Health(0)
      let nowMs = 0
      for (let i = 0; i < 200; i++) {
        nowMs += random() * 60_000
        health.count({ code: random() < 0.3 ? undefined : pick(random, codes), isRetry: random() < 0.5, isDecrease: random() < 0.5, isFailing: random() < 0.5, startedAtMs: nowMs }, nowMs)
        const { throttleShare, timeoutShare, blockShare, challengeShare, failureShare, ...others } = health.shares
        expect(throttleShare + timeoutShare + blockShare + challengeShare + failureShare).toBeLessThanOrEqual(1 + 1e-9)
        for (const share of [health.value, ...Object.values(others)]) expect(share >= 0 && share <= 1, `${share} is a share`).toBe(true)
      }
    })
  })

  test.each<[FailureCode, keyof HealthShares]>([
    ['blocked', 'blockShare'], ['challenged', 'challengeShare'], ['http_429', 'throttleShare'], ['http_504', 'throttleShare'], ['timeout', 'timeoutShare'],
    ['connect_timeout', 'timeoutShare'], ['http_500', 'failureShare'], ['dns_failed', 'failureShare'],
  ])('counts %s as %s and as nothing else', (code, share) => {
    const health = new Health(0)
    health.count({ code, isRetry: false, isDecrease: false, isFailing: false, startedAtMs: 0 }, 0)
    expect(health.shares).toEqual({ ...noShares, [share]: 1 / 16 })
  })

  test('forgets half of what was bad in ten minutes without any, and all of it after some good answers', () => {
    const health = new Health(0)
    const count = (code: FailureCode | undefined, nowMs: number): void => void health.count({ code, isRetry: false, isDecrease: false, isFailing: false, startedAtMs: nowMs }, nowMs)
    count('blocked', 0)
    count(undefined, limits.healthHalfLifeMs)
    expect(health.shares.blockShare).toBeCloseTo(1 / 16 / 2 * 15 / 16)
    for (let i = 0; i < 80; i++) count(undefined, limits.healthHalfLifeMs)
    expect(health.isForgotten).toBe(true)
  })
})

describe('a host that answers badly', () => {
  test('rests when its health has sunk too low, longer after each bad answer, and is one of the unwell meanwhile', () => {
    const world = new OneHost(1_000)
    const rests: number[] = []
    let [rested, asked] = [0, 0]
    world.run(2 * 60 * 60_000, () => {
      asked += 1
      return 'http_500'
    }, { isEnough: () => {
      const leftMs = (world.host?.backoffUntilMs ?? 0) - world.clock.nowMs()
      if (world.host?.healthFacts !== undefined && world.host.healthFacts.rests > rested && world.underWay.length === 0) {
        rested = world.host.healthFacts.rests
        rests.push(leftMs)
        expect(world.scheduler.sets.unwell).toEqual(new Set([world.host]))
        if (rested === 1) expect(world.host.health).toBeLessThan(limits.healthMin)
      }
      return world.host?.ended !== undefined
    } })
    expect(rests.slice(0, 4)).toEqual(rests.slice(0, 4).sort((a, b) => a - b))
    expect(rests.length).toBeGreaterThanOrEqual(limits.healthRestsMax)
    // Whatever its health, what was under way when it fell is no reason for another rest.
    expect(asked).toBeLessThanOrEqual(40 + 2 * limits.healthRestsMax)
    expect(world.host.ended).toEqual({ outcome: 'failed', code: 'http_500' })
  })

  test('recovers by probes, one at a time, and is well again before more than one is under way', () => {
    const world = new OneHost(1_000)
    world.run(60_000, () => 'http_500', { isEnough: () => world.host.healthFacts?.isUnwell === true && world.underWay.length === 0 })
    const atOnce: number[] = []
    world.run(10 * 60_000, () => {
      atOnce.push(world.host.limiter.inFlight)
      return undefined
    }, { isEnough: () => world.host.healthFacts?.isUnwell !== true })
    expect(new Set(atOnce)).toEqual(new Set([1]))
    expect(world.host.health).toBeGreaterThanOrEqual(limits.healthWellMin)
    expect(world.scheduler.sets.unwell.size).toBe(0)
    world.run(3_000, () => undefined)
    expect(world.host).toMatchObject({ health: 1, healthFacts: undefined, rampMax: Number.POSITIVE_INFINITY })
  })

  test('in two of five requests is not unwell, nor one that is only throttled', async () => {
    await withSeeds(20, (random) => {
      const world = new OneHost(300, random)
      world.run(10_000, () => (random() < 0.2 ? 'http_500' : undefined))
      expect(world.host.healthFacts?.isUnwell ?? false).toBe(false)
      expect(restUntilMs(world.host)).toBe(0)
    })
  })
})

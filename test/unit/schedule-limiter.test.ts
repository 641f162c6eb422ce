import fc from 'fast-check'
import { expect, test } from 'vitest'
import { limited, logNormal, simulate, slowing, type SimulatedServer } from '../../bench/simulated-server.ts'
import { limits } from '../../engine/core/limits.ts'
import { Limiter, type LimiterMemory } from '../../engine/schedule/limiter.ts'
import { withSeeds } from '../support/random.ts'

const bounds = { start: 4, floor: 1, ceiling: 32 }

/** A limiter with a clock, whose requests start and end at once, so many at a time. */
class Played {
  readonly limiter: Limiter
  nowMs = 0

  constructor(memory: LimiterMemory = {}) {
    this.limiter = new Limiter(bounds, memory)
  }

  succeed(times: number, underWay = this.limiter.limit): void {
    for (let i = 0; i < times; i++) this.#end(underWay, (request) => this.limiter.success(request, this.nowMs))
  }

  throttle(underWay = this.limiter.limit, delayMs = 0): void {
    this.#end(underWay, (request) => this.limiter.throttle(request, this.nowMs, delayMs))
  }

  #end(underWay: number, end: (request: { startedAtMs: number; inFlight: number }) => void): void {
    const startedAtMs = this.nowMs += 1
    this.nowMs += 1
    this.limiter.inFlight = underWay
    end({ startedAtMs, inFlight: underWay })
  }
}

test('a full round of successes adds one to the limit, at any limit', () => {
  for (let start = 1; start < 32; start++) {
    const played = new Played({ limit: start })
    for (let i = 1; i < start; i++) played.succeed(1, start)
    expect(played.limiter.limit, `one short of a round from ${start}`).toBe(start)
    // n times 1/n may be a hair less than one in floating point: then the next success counts.
    played.succeed(2, start)
    expect(played.limiter.limit, `a round from ${start}`).toBe(start + 1)
  }
})

test('a limit that was not half used does not grow', () => {
  const played = new Played({ limit: 10 })
  played.succeed(1_000, 4)
  expect(played.limiter.limit).toBe(10)
  played.succeed(100, 5)
  expect(played.limiter.limit).toBe(11)
})

test('eight throttles of requests that were under way together halve the limit once', () => {
  const limiter = new Limiter(bounds, { limit: 16 })
  limiter.inFlight = 16
  const counted = Array.from({ length: 8 }, (_, i) => limiter.throttle({ startedAtMs: i, inFlight: 9 + i }, 100 + i))
  expect(counted).toEqual([true, false, false, false, false, false, false, false])
  expect(limiter.limit).toBe(8)
})

test('a success of a request that started before the decrease says nothing of the new limit', () => {
  const limiter = new Limiter(bounds, { limit: 8 })
  limiter.inFlight = 8
  limiter.throttle({ startedAtMs: 10, inFlight: 8 }, 100)
  for (let i = 0; i < 100; i++) limiter.success({ startedAtMs: 100, inFlight: 8 }, 200)
  expect(limiter.limit).toBe(4)
})

test('what was refused is what was under way, not the limit', () => {
  const played = new Played({ limit: 32 })
  played.throttle(6)
  expect(played.limiter.limit).toBe(5)
  expect(played.limiter.memory().known).toBe(5)
})

test('the limit climbs back to what was not refused, waits, and a refused probe falls back to it and doubles the wait', () => {
  const played = new Played({ limit: 9 })
  played.throttle()
  const waits: number[] = []
  for (let probes = 0; probes < 9; probes++) {
    while (played.limiter.limit < 8) played.succeed(1)
    let successes = 0
    while (played.limiter.limit === 8) {
      played.succeed(1)
      successes += 1
    }
    waits.push(successes)
    played.throttle()
    expect(played.limiter.limit).toBe(8)
  }
  // The first is the success with which the limit reaches 8 in floating point, or the eight after it.
  expect(waits.slice(1)).toEqual([16, 32, 64, 128, 256, 512, 512, 512])
})

test('a probe that holds ends the memory, and the limit climbs as at first', () => {
  const played = new Played({ limit: 9 })
  played.throttle()
  while (played.limiter.limit <= 8) played.succeed(1)
  played.succeed(limits.limiterProbeMin)
  expect(played.limiter.memory().known).toBeUndefined()
  played.succeed(100)
  expect(played.limiter.limit).toBeGreaterThan(12)
})

test('a memory that is old ends with the next success, whatever the patience', () => {
  const played = new Played({ limit: 8, known: 8, patience: limits.limiterPatienceMax })
  played.throttle()
  while (played.limiter.limit < 7) played.succeed(1)
  played.nowMs += limits.limiterMemoryMs
  played.succeed(1)
  expect(played.limiter.limit).toBe(8)
})

test('at the floor throttles double the pace, from the delay on or half a second, up to a minute', () => {
  for (const [delayMs, first] of [[0, 500], [2_000, 2_000]] as const) {
    const played = new Played({ limit: 1 })
    expect(played.limiter.paceMs).toBe(0)
    const paces = Array.from({ length: 9 }, () => {
      played.throttle(1, delayMs)
      return played.limiter.paceMs
    })
    expect(paces.slice(0, 3)).toEqual([first, 2 * first, 4 * first])
    expect(paces.at(-1)).toBe(limits.paceMsMax)
  }
})

test('after an outage each success or two halves the pace, until there is none', () => {
  const played = new Played({ limit: 1 })
  for (let i = 0; i < 7; i++) played.throttle()
  expect(played.limiter.paceMs).toBe(32_000)
  const successes = Array.from({ length: 14 }, () => {
    played.succeed(1)
    return played.limiter.paceMs
  })
  expect(successes.at(-1)).toBe(0)
})

test('the wait of a pace is up to a tenth longer, never shorter', () => {
  const played = new Played({ limit: 1 })
  played.throttle()
  expect([played.limiter.paceWaitMs(() => 0), played.limiter.paceWaitMs(() => 0.5)]).toEqual([500, 525])
})

test('a memory makes the same limiter again, and one that makes no sense makes a new one', () => {
  const played = new Played({ limit: 9 })
  played.throttle()
  expect(new Limiter(bounds, played.limiter.memory()).memory()).toEqual(played.limiter.memory())
  const slow = new Played({ limit: 1 })
  slow.throttle()
  slow.throttle()
  expect(new Limiter(bounds, slow.limiter.memory()).paceMs).toBe(1_000)
  const nonsense = fc.oneof(fc.constantFrom(undefined, Number.NaN, Infinity, -Infinity, -1, 0, 1e308), fc.double())
  fc.assert(fc.property(nonsense, nonsense, nonsense, nonsense, (limit, known, patience, paceMs) => {
    const limiter = new Limiter(bounds, { limit, known, patience, paceMs })
    expect(limiter.limit).toBeGreaterThanOrEqual(1)
    expect(limiter.limit).toBeLessThanOrEqual(32)
    expect(limiter.paceMs).toBeGreaterThanOrEqual(0)
    expect(limiter.paceMs).toBeLessThanOrEqual(limits.paceMsMax)
    for (let i = 0; i < 3_000; i++) limiter.success({ startedAtMs: i, inFlight: limiter.limit }, i)
    expect(limiter.limit).toBeGreaterThanOrEqual(1)
    expect(limiter.limit).toBeLessThanOrEqual(32)
  }))
})

test('a limit stays within floor and ceiling, and the operator may move both at any time', () => {
  const anyBounds = fc.tuple(fc.integer({ min: 1, max: 8 }), fc.nat(8), fc.nat(16))
    .map(([floor, above, more]) => ({ floor, start: floor + above, ceiling: floor + above + more }))
  const step = fc.oneof(
    fc.record({ kind: fc.constant('success' as const), latencyMs: fc.option(fc.nat(5_000), { nil: undefined }), times: fc.nat(40) }),
    fc.record({ kind: fc.constant('throttle' as const), ageMs: fc.nat(50) }),
    fc.record({ kind: fc.constant('bounds' as const), bounds: anyBounds }),
  )
  fc.assert(fc.property(anyBounds, fc.option(fc.nat(100), { nil: undefined }), fc.array(step, { maxLength: 200 }), (first, limit, steps) => {
    let present = first
    const limiter = new Limiter(first, { limit })
    let nowMs = 0
    for (const step of steps) {
      nowMs += 10
      limiter.inFlight = limiter.limit
      const before = limiter.limit
      if (step.kind === 'success') {
        for (let i = 0; i < step.times; i++) limiter.success({ startedAtMs: nowMs, inFlight: limiter.limit }, nowMs += 1, step.latencyMs)
      } else if (step.kind === 'throttle') {
        if (!limiter.throttle({ startedAtMs: nowMs - step.ageMs, inFlight: limiter.limit }, nowMs)) expect(limiter.limit).toBe(before)
        else expect(limiter.limit).toBeLessThanOrEqual(before)
      } else {
        present = step.bounds
        limiter.setBounds(present)
      }
      expect(limiter.limit).toBeGreaterThanOrEqual(present.floor)
      expect(limiter.limit).toBeLessThanOrEqual(present.ceiling)
      limiter.inFlight = limiter.limit - 1
      expect(limiter.isFull).toBe(false)
      limiter.inFlight = limiter.limit
      expect(limiter.isFull).toBe(true)
    }
  }), { numRuns: 300 })
})

test.each([[1], [3], [8], [20]])('a server that refuses more than %i at once is held within a fifth below it from the 300th request on, under 1 in 200 refused', async (cap) => {
  await withSeeds(5, (random, seed) => {
    const { settled } = simulate(new Limiter(bounds), limited(() => cap, random), { requests: 5_000, seed, settleRequests: 300 })
    expect(settled.refusedShare).toBeLessThan(0.005)
    expect(settled.timeShareOf(({ limit }) => limit >= 0.8 * cap && limit <= cap)).toBeGreaterThan(0.97)
  })
})

test.each([[3, 8], [8, 3]])('a server that changes from %i at once to %i has its new limit within 600 requests', async (before, after) => {
  await withSeeds(5, (random, seed) => {
    const { settled } = simulate(new Limiter(bounds), limited((served) => (served < 2_000 ? before : after), random), { requests: 8_000, seed, settleRequests: 2_600 })
    expect(settled.refusedShare).toBeLessThan(0.005)
    expect(settled.timeShareOf(({ limit }) => limit >= 0.8 * after && limit <= after)).toBeGreaterThan(0.97)
  })
})

test('a server that becomes slower above 4 at once is held near where its latency has doubled', async () => {
  await withSeeds(5, (random, seed) => {
    const { settled } = simulate(new Limiter(bounds), slowing(4, random), { requests: 8_000, seed, settleRequests: 500 })
    expect(settled.meanLimit).toBeGreaterThan(5)
    expect(settled.meanLimit).toBeLessThan(12)
  })
})

test('noise in a constant latency costs less than a tenth of the throughput', async () => {
  const limits: number[] = []
  await withSeeds(9, (random, seed) => {
    const server: SimulatedServer = { serve: () => logNormal(random, 100, 0.7) }
    const { settled } = simulate(new Limiter(bounds), server, { requests: 10_000, seed, settleRequests: 500 })
    limits.push(settled.meanLimit)
    // Chance may look like a rise now and then.
    expect(settled.meanLimit).toBeGreaterThan(0.6 * bounds.ceiling)
  })
  expect(limits.toSorted((a, b) => a - b)[Math.floor(limits.length / 2)]).toBeGreaterThan(0.9 * bounds.ceiling)
})

test('a site that becomes three times slower whatever we do costs a few decreases, and the limit climbs back', async () => {
  await withSeeds(5, (random, seed) => {
    let served = 0
    const server: SimulatedServer = { serve: () => logNormal(random, (served += 1) > 3_000 ? 300 : 100, 0.5) }
    const { settled } = simulate(new Limiter(bounds), server, { requests: 6_000, seed, settleRequests: 3_000 })
    // By chance a trial may look like relief, and then there is another.
    expect(settled.limits.filter((limit, i) => limit < settled.limits[i - 1]!).length).toBeLessThanOrEqual(5)
    expect(settled.limits.at(-1)).toBeGreaterThanOrEqual(bounds.ceiling / 2)
  })
})

test('a latency that our own loop may have made is ignored', () => {
  const played = new Played()
  for (let i = 0; i < 200; i++) played.limiter.success({ startedAtMs: i, inFlight: 4 }, i, i < 100 ? 50 : undefined)
  const before = played.limiter.limit
  for (let i = 0; i < 100; i++) played.limiter.success({ startedAtMs: 200 + i, inFlight: before }, 300 + i)
  expect(played.limiter.limit).toBeGreaterThanOrEqual(before)
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Limiter } from '../../engine/schedule/limiter.ts'

const bounds = { start: 4, floor: 1, ceiling: 32 }

test('a full round of successes adds one to the limit, at any limit', () => {
  for (let start = 1; start < 32; start++) {
    const limiter = new Limiter(bounds, start)
    for (let i = 1; i < start; i++) limiter.success()
    expect(limiter.limit, `one short of a round from ${start}`).toBe(start)
    // n times 1/n may be a hair less than one in floating point: then the next success counts.
    limiter.success()
    limiter.success()
    expect(limiter.limit, `a round from ${start}`).toBe(start + 1)
  }
})

test('eight throttles of requests that were under way together halve the limit once', () => {
  const limiter = new Limiter(bounds, 16)
  const counted = Array.from({ length: 8 }, (_, i) => limiter.throttle(i, 100 + i))
  expect(counted).toEqual([true, false, false, false, false, false, false, false])
  expect(limiter.limit).toBe(8)
})

test('a throttle of a request that started after the decrease is a new event', () => {
  const limiter = new Limiter(bounds, 16)
  limiter.throttle(0, 100)
  expect(limiter.throttle(100, 150)).toBe(false)
  expect(limiter.throttle(101, 150)).toBe(true)
  expect(limiter.limit).toBe(4)
})

test('a limit stays within floor and ceiling, and the operator may move both at any time', () => {
  const anyBounds = fc.tuple(fc.integer({ min: 1, max: 8 }), fc.nat(8), fc.nat(16))
    .map(([floor, above, more]) => ({ floor, start: floor + above, ceiling: floor + above + more }))
  const step = fc.oneof(
    fc.constant({ kind: 'success' as const }),
    fc.record({ kind: fc.constant('throttle' as const), ageMs: fc.nat(50) }),
    fc.record({ kind: fc.constant('bounds' as const), bounds: anyBounds }),
  )
  fc.assert(fc.property(anyBounds, fc.option(fc.nat(100), { nil: undefined }), fc.array(step, { maxLength: 200 }), (first, start, steps) => {
    let present = first
    const limiter = new Limiter(first, start)
    let nowMs = 0
    let decreasedAtMs = Number.NEGATIVE_INFINITY
    for (const step of steps) {
      nowMs += 10
      const before = limiter.limit
      if (step.kind === 'success') {
        limiter.success()
        expect(limiter.limit - before).toBeGreaterThanOrEqual(0)
        expect(limiter.limit - before).toBeLessThanOrEqual(1)
      } else if (step.kind === 'throttle') {
        const isNew = limiter.throttle(nowMs - step.ageMs, nowMs)
        expect(isNew).toBe(nowMs - step.ageMs > decreasedAtMs)
        if (isNew) decreasedAtMs = nowMs
        else expect(limiter.limit).toBe(before)
        expect(limiter.limit).toBeGreaterThanOrEqual(Math.floor(before / 2))
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

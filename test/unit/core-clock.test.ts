import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { backoffMs, systemClock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { integer, seededRandom } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

const { backoffMsMax: maxMs, backoffMsMin: minMs } = limits

test('a back-off is a random part of a wait that doubles up to a maximum', () => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const ceiling = Math.min(maxMs, minMs * 2 ** attempt)
    expect(backoffMs(attempt, minMs, maxMs, () => 0)).toBe(minMs / 2)
    expect(backoffMs(attempt, minMs, maxMs, () => 0.999_999)).toBeLessThanOrEqual(ceiling)
    expect(backoffMs(attempt, minMs, maxMs, () => 0.999_999)).toBeGreaterThan(ceiling * 0.99)
  }
})

beforeEach(() => { vi.useFakeTimers() })
afterEach(() => { vi.useRealTimers() })

test('a wait longer than a timer of the system takes is not cut', () => {
  const thirtyDaysMs = 30 * 24 * 3_600_000
  const called = vi.fn()
  systemClock.after(thirtyDaysMs, called)
  vi.advanceTimersByTime(thirtyDaysMs - 1)
  expect(called).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(called).toHaveBeenCalledTimes(1)
})

test('a wait can be cancelled, also after its first part', () => {
  const called = vi.fn()
  const cancelShort = systemClock.after(5, called)
  const cancelLong = systemClock.after(2 ** 32, called)
  cancelShort()
  vi.advanceTimersByTime(2 ** 31)
  cancelLong()
  vi.advanceTimersByTime(2 ** 33)
  expect([called.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0])
})

test('a wait of less than nothing ends in the next turn', () => {
  const called = vi.fn()
  systemClock.after(-5, called)
  expect(called).not.toHaveBeenCalled()
  vi.advanceTimersByTime(0)
  expect(called).toHaveBeenCalledTimes(1)
})

test('the clock of the tests fires timers in order, each at its moment, those set meanwhile too', () => {
  const clock = new TestClock({ nowMs: 0, wallMs: 500 })
  const fired: [string, number][] = []
  const note = (name: string) => (): void => { fired.push([name, clock.nowMs()]) }
  clock.after(20, note('b'))
  clock.after(10, () => {
    note('a')()
    clock.after(5, note('a2'))
  })
  clock.after(20, note('c'))
  clock.after(15, note('never'))()
  clock.after(31, note('late'))
  clock.advance(30)
  expect(fired).toEqual([['a', 10], ['a2', 15], ['b', 20], ['c', 20]])
  expect([clock.nowMs(), clock.wallMs(), clock.timersCount, clock.nextTimerAtMs]).toEqual([30, 530, 1, 31])
  clock.jumpWall(-100)
  expect([clock.nowMs(), clock.wallMs()]).toEqual([30, 430])
})

test('random numbers are the same for the same seed, and spread over their range', () => {
  const [one, same, other] = [seededRandom(1), seededRandom(1), seededRandom(2)]
  const numbers = Array.from({ length: 1_000 }, one)
  expect(Array.from({ length: 1_000 }, same)).toEqual(numbers)
  expect(Array.from({ length: 1_000 }, other)).not.toEqual(numbers)
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...numbers)).toBeLessThan(1)
  const tenths = new Set(Array.from({ length: 200 }, () => integer(one, 10)))
  expect([...tenths].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

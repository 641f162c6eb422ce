import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deadline, type Stop } from '../../engine/fetch/deadline.ts'
import { TestClock } from '../support/test-clock.ts'

function rig(limitMs: number, signal?: AbortSignal) {
  const clock = new TestClock()
  const deadline = new Deadline(clock, limitMs, signal)
  const stops: Stop[] = []
  deadline.onStop((stop) => stops.push(stop))
  return { clock, deadline, stops }
}

test('stops when its time is over, once', () => {
  const { clock, deadline, stops } = rig(1_000)
  clock.advance(999)
  expect(deadline.stopped).toBeUndefined()
  clock.advance(1)
  clock.advance(10_000)
  expect(stops).toEqual([{ code: 'timeout', detail: 'no complete answer within 1000 ms' }])
  expect(clock.timersCount).toBe(0)
})

test('time that is held does not count', () => {
  const { clock, deadline, stops } = rig(1_000)
  clock.advance(600)
  deadline.hold()
  clock.advance(1_000_000)
  deadline.proceed()
  expect(deadline.elapsedMs).toBe(600)
  clock.advance(399)
  expect(stops).toEqual([])
  clock.advance(1)
  expect(stops).toHaveLength(1)
})

test('silence stops it, unless a byte comes in time', () => {
  const { clock, deadline, stops } = rig(10_000)
  clock.advance(500)
  deadline.limitSilence(100)
  for (let at = 0; at < 5; at++) {
    clock.advance(99)
    deadline.heard()
  }
  clock.advance(99)
  expect(stops).toEqual([])
  clock.advance(1)
  expect(stops).toEqual([{ code: 'timeout', detail: 'no byte of the body for 100 ms' }])
})

test('an abort stops it at once, before, while and after it is held; and not after its end', () => {
  const before = rig(1_000, AbortSignal.abort())
  expect(before.stops).toEqual([{ code: 'aborted', detail: 'the fetch was aborted' }])
  expect(before.clock.timersCount).toBe(0)
  const aborter = new AbortController()
  const held = rig(1_000, aborter.signal)
  const ended = rig(1_000, aborter.signal)
  held.deadline.hold()
  ended.deadline.end()
  aborter.abort()
  expect(held.stops).toHaveLength(1)
  held.deadline.proceed()
  expect(held.clock.timersCount).toBe(0)
  expect(ended.stops).toEqual([])
})

test('a stage that begins after the stop is told at once, and only the last stage is told', () => {
  const { clock, deadline, stops } = rig(10)
  const later: Stop[] = []
  deadline.onStop((stop) => later.push(stop))
  clock.advance(10)
  expect(stops).toEqual([])
  expect(later).toHaveLength(1)
  deadline.onStop((stop) => stops.push(stop))
  expect(stops).toHaveLength(1)
})

test('stops exactly when the counted time is over, whatever was held and heard', () => {
  const step = fc.record({ kind: fc.constantFrom('hold', 'proceed', 'heard'), ms: fc.integer({ min: 0, max: 40 }) })
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const { clock, deadline, stops } = rig(200)
    deadline.limitSilence(50)
    // The model counts millisecond by millisecond.
    let counted = 0
    let silent = 0
    let isHeld = false
    let isStopped = false
    for (const { kind, ms } of steps) {
      for (let at = 0; at < ms; at++) {
        clock.advance(1)
        if (isHeld || isStopped) continue
        counted++
        silent++
        isStopped = counted >= 200 || silent >= 50
        expect(stops.length > 0).toBe(isStopped)
      }
      if (isStopped) break
      if (kind === 'hold' && !isHeld) { isHeld = true; deadline.hold() }
      else if (kind === 'proceed' && isHeld) { isHeld = false; silent = 0; deadline.proceed() }
      else if (kind === 'heard' && !isHeld) { silent = 0; deadline.heard() }
      expect(deadline.elapsedMs).toBe(counted)
    }
    expect(stops.length > 0).toBe(isStopped)
  }))
})

/** A clock whose timers fire late by so much, as those of a blocked loop do. */
class LateClock extends TestClock {
  lateMs = 0

  override after(delayMs: number, callback: () => void): () => void {
    return super.after(delayMs + this.lateMs, callback)
  }
}

test('what our own loop was late by is put off once, so that a fetch has the time that it was given', () => {
  const clock = new LateClock()
  clock.lateMs = 400
  const deadline = new Deadline(clock, 1_000)
  clock.lateMs = 0
  clock.advance(1_799)
  expect(deadline.stopped).toBeUndefined()
  clock.advance(1)
  expect(deadline.stopped).toMatchObject({ code: 'timeout' })
  expect(clock.timersCount).toBe(0)
})

test('a loop that is late for ever ends a fetch all the same', () => {
  const clock = new LateClock()
  clock.lateMs = 100_000
  const deadline = new Deadline(clock, 1_000)
  clock.advance(1_000_000)
  expect(deadline.stopped).toMatchObject({ code: 'timeout' })
})

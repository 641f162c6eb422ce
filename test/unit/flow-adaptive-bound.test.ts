import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AdaptiveBound } from '../../engine/flow/adaptive-bound.ts'

const LOOK_MS = 250

function boundOf(given: { min?: number; max?: number; toleratedMs?: number } = {}): AdaptiveBound {
  return new AdaptiveBound({ name: 'queue', unit: 'items', min: given.min ?? 4, max: given.max ?? 200, toleratedMs: given.toleratedMs ?? 2_000, idleAt: 0, reason: '' })
}

/** A stage that serves `perSecond`, with a queue that is filled up to its bound before each service; answers the longest wait at the end. */
function play(bound: AdaptiveBound, seconds: number, perSecond: number, from: { nowMs: number; queue: number[] }): number {
  let served = 0
  let waitedMs = 0
  const untilMs = from.nowMs + seconds * 1_000
  const startMs = from.nowMs
  for (; from.nowMs < untilMs; from.nowMs += 10) {
    while (from.queue.length < bound.limit) from.queue.push(from.nowMs)
    bound.observe(from.queue.length)
    while (served < (from.nowMs - startMs) * perSecond / 1_000 && from.queue.length > 0) {
      waitedMs = from.nowMs - from.queue.shift()!
      served += 1
      bound.left()
    }
    bound.observe(from.queue.length)
    if (from.nowMs % LOOK_MS === 0) bound.adapt(from.nowMs)
  }
  return waitedMs
}

describe('a bound that follows its stage', () => {
  it('begins at what memory allows, and stays there for a stage that is fast enough', () => {
    const bound = boundOf()
    expect(bound.limit).toBe(200)
    play(bound, 5, 1_000, { nowMs: 0, queue: [] })
    expect(bound.limit).toBe(200)
  })

  it('comes down to rate x tolerated delay when the stage slows, so that what waits is no older than that', () => {
    const [bound, state] = [boundOf(), { nowMs: 0, queue: [] as number[] }]
    play(bound, 5, 1_000, state)
    const waitedMs = play(bound, 20, 20, state)
    expect(bound.limit).toBeGreaterThan(30)
    expect(bound.limit).toBeLessThan(50)
    expect(waitedMs).toBeLessThan(3_000)
  })

  it('goes up again at once when the stage has free hands', () => {
    const [bound, state] = [boundOf(), { nowMs: 0, queue: [] as number[] }]
    play(bound, 20, 1, state)
    expect(bound.limit).toBeLessThan(10)
    // It drains what there is between two looks: the bound doubles with each of them.
    play(bound, 3, 10_000, state)
    expect(bound.limit).toBe(200)
  })

  it('never holds up a stage with free hands, however long that stood still before', () => {
    const [bound, state] = [boundOf({ min: 1 }), { nowMs: 0, queue: [] as number[] }]
    play(bound, 60, 0, state)
    expect(bound.limit).toBe(1)
    state.queue.length = 0
    bound.observe(0)
    for (const wanted of [2, 4, 8, 16]) {
      bound.adapt(state.nowMs += LOOK_MS)
      expect(bound.limit).toBe(wanted)
    }
  })

  it('stays within its least and its most, whatever happens', () => {
    fc.assert(fc.property(fc.array(fc.record({ used: fc.nat(500), left: fc.nat(500), afterMs: fc.nat(5_000) })), (steps) => {
      const bound = boundOf()
      let nowMs = 0
      for (const { used, left, afterMs } of steps) {
        bound.observe(used)
        bound.left(left)
        bound.adapt(nowMs += afterMs)
        expect(bound.limit).toBeGreaterThanOrEqual(4)
        expect(bound.limit).toBeLessThanOrEqual(200)
      }
    }), { seed: 5 })
  })
})

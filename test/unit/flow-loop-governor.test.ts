import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GROW_BELOW, LoopGovernor, SHRINK_ABOVE } from '../../engine/flow/loop-governor.ts'

const governorOf = (): LoopGovernor => new LoopGovernor({ start: 128, floor: 64, ceiling: 10_000 })

/** A loop that needs `busyMs` of itself for a fetch that takes `latencyMs` in all: utilisation, with so many under way. */
function utilizationOf(inFlight: number, busyMs: number, latencyMs: number): number {
  return Math.min(1, inFlight * busyMs / latencyMs)
}

function play(governor: LoopGovernor, windows: number, fetch: { busyMs: number; latencyMs: number }): number[] {
  const limits: number[] = []
  for (let window = 0; window < windows; window += 1) {
    governor.observe(governor.limit)
    governor.adapt(utilizationOf(governor.limit, fetch.busyMs, fetch.latencyMs))
    limits.push(governor.limit)
  }
  return limits
}

describe('the governor of requests under way', () => {
  it('grows to what slow servers need, and no further than the loop can serve', () => {
    const limits = play(governorOf(), 60, { busyMs: 1, latencyMs: 3_000 })
    for (const limit of limits.slice(20)) {
      expect(limit).toBeGreaterThanOrEqual(3_000 * GROW_BELOW)
      expect(limit).toBeLessThanOrEqual(3_000 * GROW_BELOW * 1.25 + 1)
    }
  })

  it('reaches 7,000 slow fetches within ten looks when the loop has time', () => {
    expect(play(governorOf(), 10, { busyMs: 0.1, latencyMs: 60_000 }).some((limit) => limit >= 7_000)).toBe(true)
  })

  it('comes down when the loop is busy, from what was under way and not from what might have been, to its floor', () => {
    const governor = governorOf()
    play(governor, 20, { busyMs: 0.1, latencyMs: 60_000 })
    expect(governor.limit).toBe(10_000)
    governor.observe(400)
    for (let at = 0; at < 4; at += 1) governor.adapt(1)
    expect(governor.limit).toBe(350)
    for (let at = 0; at < 100; at += 1) {
      governor.observe(governor.limit)
      governor.adapt(1)
    }
    expect(governor.limit).toBe(64)
  })

  it('takes a burst of less than a second for no busy loop', () => {
    const governor = governorOf()
    for (let at = 0; at < 100; at += 1) {
      governor.observe(100)
      governor.adapt(at % 4 === 3 ? 0.5 : 1)
    }
    expect(governor.limit).toBe(128)
  })

  it('does not grow while something else binds', () => {
    const governor = governorOf()
    for (let at = 0; at < 100; at += 1) {
      governor.observe(127)
      governor.adapt(0.1)
    }
    expect(governor.limit).toBe(128)
  })

  it('names the loop when the loop is what it waits for, and connections when there are no more', () => {
    const governor = governorOf()
    governor.observe(128)
    governor.adapt(0.1)
    expect(governor.reason).toBe('connections')
    governor.adapt(SHRINK_ABOVE - 0.01)
    expect(governor.reason).toBe('loop')
    governor.setCeiling(100)
    expect([governor.limit, governor.reason]).toEqual([100, 'connections'])
  })

  it('stays between its floor and its ceiling, also when that is lower', () => {
    const window = fc.record({ peak: fc.nat(20_000), utilization: fc.double({ min: 0, max: 1, noNaN: true }), ceiling: fc.integer({ min: 1, max: 10_000 }) })
    fc.assert(fc.property(fc.array(window), (windows) => {
      const governor = governorOf()
      for (const { peak, utilization, ceiling } of windows) {
        governor.setCeiling(ceiling)
        governor.observe(peak)
        governor.adapt(utilization)
        expect(governor.limit).toBeGreaterThanOrEqual(Math.min(1, ceiling))
        expect(governor.limit).toBeLessThanOrEqual(ceiling)
      }
    }), { seed: 5 })
  })
})

/** What the meters say, against models that keep everything and look through all of it. */
import { describe, expect, it } from 'vitest'
import { Blocked } from '../../engine/flow/blocked.ts'
import { Histogram, histogramBoundsMs } from '../../engine/flow/histogram.ts'
import { LoopShares } from '../../engine/flow/loop-shares.ts'
import { placeNames, Places, type PlaceName } from '../../engine/flow/places.ts'
import type { BlockedOn } from '../../engine/core/api-types.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

describe('places', () => {
  it('tell depth and oldest age of each place as a list of all URLs does, after every move', async () => {
    await withSeeds(10, (random) => {
      const clock = new TestClock()
      const places = new Places(clock)
      const model = new Map<number, { place: PlaceName; sinceMs: number }>()
      let next = 0
      for (let step = 0; step < 500; step += 1) {
        if (random() < 0.3) clock.advance(integer(random, 50))
        // Also one that was never claimed, or has left.
        const sequence = integer(random, next + 2)
        const choice = random()
        if (choice < 0.3) {
          places.enter(next)
          model.set(next, { place: 'claimed', sinceMs: clock.nowMs() })
          next += 1
        } else if (choice < 0.8) {
          const place = pick(random, placeNames)
          places.move(sequence, place)
          if (model.has(sequence)) model.set(sequence, { place, sinceMs: clock.nowMs() })
        } else {
          places.leave(sequence)
          model.delete(sequence)
        }
        const told = placeNames.map((place) => [places.depthOf(place), places.oldestMsOf(place)])
        expect([places.size, ...told]).toEqual([model.size, ...placeNames.map((place) => {
          const since = [...model.values()].filter((one) => one.place === place).map(({ sinceMs }) => sinceMs)
          return [since.length, since.length === 0 ? 0 : clock.nowMs() - Math.min(...since)]
        })])
      }
    })
  })

  it('count how long each URL stood in a place when it goes on, and keep nothing of it when it leaves', () => {
    const clock = new TestClock()
    const places = new Places(clock)
    for (let sequence = 0; sequence < 100; sequence += 1) {
      places.enter(sequence)
      clock.advance(3)
      places.move(sequence, 'fetch')
      clock.advance(70)
      places.leave(sequence)
    }
    expect([places.size, places.staysIn('claimed').count, places.staysIn('fetch').sumMs, places.staysIn('slots').count]).toEqual([0, 100, 7_000, 0])
    expect([places.staysIn('claimed').quantileMs(0.5), places.staysIn('fetch').quantileMs(0.99)]).toEqual([5, 100])
  })
})

describe('blocked', () => {
  const causes: readonly BlockedOn[] = ['nothing', 'idle', 'commit', 'page_ring', 'politeness']

  it('gives each cause the time that it held, and all of them together the whole time', async () => {
    await withSeeds(20, (random) => {
      let nowMs = 1_000
      const blocked = new Blocked(nowMs)
      const model = new Map<BlockedOn, { ms: number; times: number; refused: number }>(causes.map((on) => [on, { ms: 0, times: 0, refused: 0 }]))
      let [on, changes]: [BlockedOn, number] = ['idle', 0]
      for (let step = 0; step < 300; step += 1) {
        const passedMs = integer(random, 20)
        nowMs += passedMs
        model.get(on)!.ms += passedMs
        const found = pick(random, causes)
        if (blocked.found(found, nowMs) !== (found !== on)) expect.unreachable('it says what is new')
        if (found !== on) {
          changes += 1
          model.get(found)!.times += 1
        }
        model.get(found)!.refused += 1
        on = found
        const laterMs = nowMs + integer(random, 5)
        expect(causes.map((cause) => blocked.of(cause, laterMs))).toEqual(causes.map((cause) => ({ ...model.get(cause)!, ms: model.get(cause)!.ms + (cause === on ? laterMs - nowMs : 0) })))
      }
      expect([blocked.on, blocked.changes]).toEqual([on, changes])
      expect(Object.values(blocked.times(nowMs)).reduce((sum, ms) => sum + ms, 0)).toBe(nowMs - 1_000)
    })
  })
})

describe('a histogram', () => {
  it('answers for each quantile the least bound that so many observations do not exceed', async () => {
    await withSeeds(20, (random) => {
      const histogram = new Histogram()
      const seen = Array.from({ length: 1 + integer(random, 500) }, () => 10 ** (random() * 7 - 1.5))
      for (const ms of seen) histogram.observe(ms)
      for (const share of [0.01, 0.5, 0.95, 0.99, 1]) {
        const exact = seen.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * seen.length) - 1)]!
        expect(histogram.quantileMs(share)).toBe(histogramBoundsMs.find((bound) => exact <= bound) ?? histogramBoundsMs.at(-1))
      }
      expect(histogram.count).toBe(seen.length)
      expect(Array.from(histogram.counts).reduce((sum, count) => sum + count, 0)).toBe(seen.length)
    })
  })

  it('takes what a clock that went back would give as nothing, and answers 0 while it is empty', () => {
    const histogram = new Histogram()
    expect(histogram.quantileMs(0.5)).toBe(0)
    histogram.observe(-5)
    histogram.observe(Number.NaN)
    expect([histogram.count, histogram.sumMs, histogram.counts[0]]).toEqual([2, 0, 2])
  })
})

describe('shares of loops', () => {
  it('are of the time since the last look, and of its whole life for a worker that took the place of another', () => {
    const shares = new LoopShares()
    expect(shares.read([{ busyMs: 50, idleMs: 50 }])).toEqual([0.5])
    expect(shares.read([{ busyMs: 60, idleMs: 140 }, { busyMs: 0, idleMs: 0 }])).toEqual([0.1, 0])
    expect(shares.read([{ busyMs: 9, idleMs: 1 }, { busyMs: 3, idleMs: 1 }])).toEqual([0.9, 0.75])
    expect(shares.read([])).toEqual([])
  })
})

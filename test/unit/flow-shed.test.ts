import { expect, it } from 'vitest'
import type { BlockedOn } from '../../engine/core/api-types.ts'
import { ownStages, Shed } from '../../engine/flow/shed.ts'
import { integer, pick, withSeeds } from '../support/random.ts'

/** Notes each for one second, and answers whether it sheds behind each. */
function play(shed: Shed, seconds: readonly BlockedOn[], fromMs = 0): readonly boolean[] {
  return seconds.map((blockedOn, at) => {
    shed.note(blockedOn, fromMs + at * 1_000)
    shed.note(blockedOn, fromMs + (at + 1) * 1_000)
    return shed.isShedding
  })
}

it('sheds when our own stages have held the claims for as long as was asked, and ends when they were free for as long again', () => {
  for (const stage of ownStages) {
    const shed = new Shed(3_000)
    expect(play(shed, [stage, stage, stage, stage]), stage).toEqual([false, false, true, true])
    expect(play(shed, ['politeness', 'nothing', 'idle', 'politeness'], 4_000), stage).toEqual([true, true, false, false])
  }
})

it('what was held for long does not count for more: the way back is no longer than the way in', () => {
  const shed = new Shed(2_000)
  play(shed, Array<BlockedOn>(60).fill('page_ring'))
  expect(play(shed, ['politeness', 'politeness', 'politeness'], 60_000)).toEqual([true, false, false])
})

it('does not begin when claims are held as often as they are free', () => {
  const shed = new Shed(3_000)
  expect(play(shed, Array.from({ length: 100 }, (_, at) => (at % 2 === 0 ? 'commit' : 'politeness'))).includes(true)).toBe(false)
})

it('time in which somebody or something outside has stopped the crawl counts neither way', () => {
  for (const other of ['paused', 'suspects', 'disk', 'store_full', 'network_down', 'limit'] as const) {
    const shed = new Shed(2_000)
    expect(play(shed, ['consumer', other, other, other, 'consumer']), other).toEqual([false, false, false, false, true])
    expect(play(shed, [other, other, other], 5_000), other).toEqual([true, true, true])
  }
})

it('hosts that wait, and requests at their ceiling, hold nothing: that is the crawl at full speed', () => {
  const shed = new Shed(1_000)
  expect(play(shed, ['politeness', 'connections', 'gateway', 'idle', 'nothing']).includes(true)).toBe(false)
})

it('none: never', () => {
  expect(play(new Shed(Number.POSITIVE_INFINITY), Array<BlockedOn>(1_000).fill('page_ring')).includes(true)).toBe(false)
})

it('says what holds the claims now, and nothing once they are free though it sheds on', () => {
  const shed = new Shed(1_000)
  play(shed, ['page_ring', 'page_ring'])
  expect(shed.heldBy).toBe('page_ring')
  shed.note('consumer', 2_000)
  expect(shed.heldBy).toBe('consumer')
  shed.note('politeness', 2_001)
  expect([shed.heldBy, shed.isShedding]).toEqual([undefined, true])
})

it('the worst are those in the worst quarter of what had its turn lately, and worse than the best of it', () => {
  const shed = new Shed(0)
  const worst = (): readonly number[] => Array.from({ length: 256 }, (_, priority) => priority).filter((priority) => shed.isWorst(priority))
  expect(worst()).toEqual([])
  for (let at = 0; at < 100; at += 1) shed.claimed(2)
  // Nothing but one priority: none is worse than the best.
  expect(worst().at(0)).toBe(3)
  for (let at = 0; at < 300; at += 1) shed.claimed([2, 2, 2, 3, 3, 9][at % 6]!)
  expect([2, 3, 4, 8, 9, 255].map((priority) => shed.isWorst(priority))).toEqual([false, true, true, true, true, true])
})

it('what had its turn long ago is forgotten', () => withSeeds(3, (random) => {
  const shed = new Shed(0)
  for (let at = 0; at < 500; at += 1) shed.claimed(pick(random, [0, 1, 2]))
  expect(shed.isWorst(10)).toBe(true)
  for (let at = 0; at < 20_000; at += 1) shed.claimed(10)
  expect(shed.isWorst(10)).toBe(false)
  for (let at = 0; at < 20_000; at += 1) shed.claimed(10 + integer(random, 10))
  expect([shed.isWorst(10), shed.isWorst(14), shed.isWorst(19)]).toEqual([false, false, true])
}))

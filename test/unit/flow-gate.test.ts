import { describe, expect, it } from 'vitest'
import type { BlockedOn } from '../../engine/core/api-types.ts'
import { limits } from '../../engine/core/limits.ts'
import { ConnectionCeiling } from '../../engine/flow/connection-ceiling.ts'
import { FlowBounds } from '../../engine/flow/flow-bounds.ts'
import { Gate, type GateFacts } from '../../engine/flow/gate.ts'
import { memoryBudgetOf } from '../../engine/flow/memory-budget.ts'
import { MemoryGuard } from '../../engine/flow/memory-guard.ts'
import { RateLimit } from '../../engine/flow/rate-limit.ts'
import { TestClock } from '../support/test-clock.ts'

const MB = 1_048_576

function setUp(given: { connections?: number; requestsPerSecond?: number; bytesPerSecond?: number } = {}) {
  const clock = new TestClock()
  const memory = memoryBudgetOf({ maxBodyBytes: 256_000, memoryBytes: 256 * MB, threads: 2 })
  const world = { heldBytes: 0, utilization: 0.1, rooms: 0, commits: { isFull: false, queued: 0 }, pool: { slotsFree: memory.slots, oldestFilledMs: 0 }, fetcher: { isShortOfBytes: false } }
  const rates = new RateLimit({ requestsPerSecond: Infinity, bytesPerSecond: Infinity, maxBodyBytes: 256_000, ...given }, () => clock.nowMs())
  const ceiling = new ConnectionCeiling(given.connections ?? 1_000)
  const gate = new Gate({
    clock, memory, bounds: new FlowBounds(memory, 2), ceiling, rates,
    guard: new MemoryGuard(memory.bytes, () => world.heldBytes), utilization: () => world.utilization,
    commits: world.commits, pool: world.pool, fetcher: world.fetcher, onRoom: () => { world.rooms += 1 },
  })
  gate.start()
  const facts: { -readonly [K in keyof GateFacts]: GateFacts[K] } = { run: { window: undefined, hasRoom: true }, shortOf: undefined, inFlight: 10, received: 0 }
  return { clock, gate, world, facts, rates, ceiling, ask: (): BlockedOn => gate.blockedOn(facts), look: () => clock.advance(limits.gateLookMs) }
}

describe('the gate', () => {
  it('is open when nothing is short', () => {
    expect(setUp().ask()).toBe('nothing')
  })

  it('names the last stage that has no room, and the one before it when that has', () => {
    const { ask, facts, world } = setUp({ connections: 10 })
    facts.run = { window: { size: 256, isFull: true }, hasRoom: false }
    facts.shortOf = 'disk'
    world.commits.isFull = true
    facts.received = 1
    world.fetcher.isShortOfBytes = true
    const named: BlockedOn[] = [ask()]
    for (const repair of [
      () => { facts.run = { window: undefined, hasRoom: false } }, () => { facts.shortOf = undefined }, () => { world.commits.isFull = false },
      () => { facts.received = 0 }, () => { world.fetcher.isShortOfBytes = false }, () => { facts.inFlight = 9 }, () => { facts.run = { window: undefined, hasRoom: true } },
    ]) {
      repair()
      named.push(ask())
    }
    expect(named).toEqual(['consumer', 'disk', 'commit', 'page_ring', 'body_bytes', 'connections', 'limit', 'nothing'])
  })

  it('shuts on memory by the real figure, looked at by itself, and tells the loop of each look', () => {
    const { ask, facts, look, world } = setUp()
    world.heldBytes = 240 * MB
    expect(ask()).toBe('nothing')
    look()
    expect([ask(), world.rooms]).toEqual(['memory', 1])
    world.heldBytes = 225 * MB
    look()
    expect(ask()).toBe('memory')
    world.heldBytes = 210 * MB
    look()
    expect([ask(), world.rooms, facts.inFlight]).toEqual(['nothing', 3, 10])
  })

  it('lets one page at a time go on when memory stays short with nothing under way: slow, and never dead', () => {
    const { ask, facts, look, world } = setUp()
    world.heldBytes = 1_000 * MB
    look()
    facts.inFlight = 0
    expect(ask()).toBe('nothing')
    facts.inFlight = 1
    expect(ask()).toBe('memory')
    facts.inFlight = 0
    world.pool.slotsFree -= 1
    expect(ask()).toBe('memory')
  })

  it('stops fetching while pages wait too long for a worker, and not for the last few of them', () => {
    const { ask, look, world } = setUp()
    world.pool.slotsFree -= 5
    world.pool.oldestFilledMs = 2_500
    look()
    expect(ask()).toBe('page_ring')
    world.pool.slotsFree += 1
    expect(ask()).toBe('nothing')
    world.pool.slotsFree -= 1
    world.pool.oldestFilledMs = 100
    look()
    expect(ask()).toBe('nothing')
  })

  it('fills fewer slots when the parse stage slows down, and all of them again soon after it is well', () => {
    const { ask, gate, look, world } = setUp()
    const { slots } = gate.bounds
    const fill = (): void => {
      while (world.pool.slotsFree > 0 && ask() === 'nothing') world.pool.slotsFree -= 1
    }
    for (let at = 0; at < 60; at += 1) {
      fill()
      // Four pages a second.
      world.pool.slotsFree += 1
      slots.left()
      look()
    }
    fill()
    expect(slots.limit).toBeLessThan(16)
    expect(slots.limit).toBeGreaterThanOrEqual(4)
    expect(ask()).toBe('page_ring')
    for (let at = 0; at < 8; at += 1) {
      fill()
      slots.left(slots.is.max - world.pool.slotsFree)
      world.pool.slotsFree = slots.is.max
      ask()
      look()
    }
    expect(slots.limit).toBe(slots.is.max)
  })

  it('gives a busy loop fewer requests, and says so', () => {
    const { ask, facts, look, world } = setUp()
    facts.inFlight = 128
    world.utilization = 1
    expect(ask()).toBe('connections')
    for (let at = 0; at < 4; at += 1) look()
    expect(ask()).toBe('loop')
    facts.inFlight = 112
    expect(ask()).toBe('loop')
    facts.inFlight = 111
    expect(ask()).toBe('nothing')
  })

  it('waits a moment after files ran out, then goes on below what there was', () => {
    const { ask, ceiling, clock, facts, gate, look } = setUp()
    ceiling.refused(80, clock.nowMs())
    expect(ask()).toBe('connections')
    expect(gate.opensAtMs('connections')).toBe(clock.nowMs() + 250)
    look()
    expect([ask(), gate.opensAtMs('connections')]).toEqual(['nothing', undefined])
    facts.inFlight = 70
    expect(ask()).toBe('connections')
  })

  it('knows when a rate opens it', () => {
    const { ask, clock, gate, rates } = setUp({ requestsPerSecond: 4 })
    expect(ask()).toBe('nothing')
    rates.began()
    expect([ask(), gate.opensAtMs('rate')]).toEqual(['rate', clock.nowMs() + 250])
    clock.advance(250)
    expect(ask()).toBe('nothing')
  })

  it('calls a wait its own fault when the loop was blocked or busy since it began, and only then', () => {
    const { clock, gate, look, world } = setUp()
    const atMs = clock.nowMs()
    look()
    expect(gate.isOwnFault(atMs)).toBe(false)
    world.utilization = 1
    look()
    world.utilization = 0.2
    look()
    expect(gate.isOwnFault(atMs)).toBe(true)
    expect(gate.isOwnFault(clock.nowMs())).toBe(false)
  })

  it('looks no more when it is stopped', () => {
    const { clock, gate } = setUp()
    gate.stop()
    expect(clock.timersCount).toBe(0)
  })
})

import { describe, expect, test } from 'vitest'
import { parseGateways, type GatewayGiven } from '../../engine/core/gateway-config.ts'
import { gatewayLines } from '../../engine/cli/status-tables.ts'
import { limits } from '../../engine/core/limits.ts'
import { Gateway, resetMsOf, type Span } from '../../engine/fetch/gateway.ts'

const half = (): number => 0.5
const spanOf = (startedAtMs: number, nowMs: number): Span => ({ startedAtMs, nowMs, inFlight: 8 })
const gatewayOf = (changes: Partial<GatewayGiven> = {}): Gateway =>
  new Gateway(parseGateways({ gateways: [{ name: 'a', proxy: 'http://a.test', hosts: ['*'], ...changes } as GatewayGiven] }).list[0]!)

describe('a gateway', () => {
  test('that answers 429 to many at once is slowed down once, and does not rest while it can go slower', () => {
    const gateway = gatewayOf({ concurrency: '8:1:8' })
    const before = gateway.limiter.limit
    for (let at = 0; at < 8; at += 1) gateway.throttled(spanOf(1_000, 1_100 + at), 0, half)
    expect(gateway.limiter.limit).toBeLessThan(before)
    expect(gateway.limiter.limit).toBeGreaterThanOrEqual(before / 2 - 1)
    expect(gateway.pausedUntilMs).toBe(0)
    expect(gateway.stats(2_000, 0)).toMatchObject({ throttled: 8, failed: 0, quotaHits: 0 })
  })

  test('that answers 429 at its floor rests, longer each time, until something gets through', () => {
    const gateway = gatewayOf({ concurrency: '1:1:8' })
    const rests: number[] = []
    let nowMs = 1_000
    for (let at = 0; at < 5; at += 1) {
      gateway.throttled(spanOf(nowMs, nowMs + 1), 0, half)
      rests.push(gateway.pausedUntilMs - nowMs)
      nowMs = gateway.pausedUntilMs + 1
    }
    expect(rests).toEqual([...rests].sort((a, b) => a - b))
    expect(rests[4]).toBeGreaterThan(4 * rests[0]!)
    gateway.worked(spanOf(nowMs, nowMs + 1))
    gateway.throttled(spanOf(nowMs, nowMs + 1), 0, half)
    expect(gateway.pausedUntilMs - nowMs).toBe(rests[0])
  })

  test('is taken at its word when it says how long to wait', () => {
    const gateway = gatewayOf()
    gateway.throttled(spanOf(1_000, 1_001), 30_000, half)
    expect(gateway.pausedUntilMs).toBe(31_001)
    // A shorter word that comes later does not cut the longer one.
    gateway.throttled(spanOf(1_000, 1_002), 1_000, half)
    expect(gateway.pausedUntilMs).toBe(31_001)
  })

  test.each<[string, number | undefined, number]>([
    ['in an hour', 3_600_000, 3_600_000],
    ['never said', undefined, Number.POSITIVE_INFINITY],
    ['in a year', 365 * 24 * 3_600_000, limits.gatewayQuotaMsMax],
    ['in the past', -5_000, limits.gatewayQuotaMsMin],
  ])('whose quota is filled again %s rests until then, within bounds, and resume() ends it', (_, resetMs, waitMs) => {
    const gateway = gatewayOf()
    gateway.quotaSpent(1_000, resetMs)
    expect(gateway.pausedUntilMs).toBe(1_000 + waitMs)
    expect(gateway.stats(1_000, Date.UTC(2026, 0, 1)).pausedUntil).toBe(waitMs === Number.POSITIVE_INFINITY ? 'resume' : new Date(Date.UTC(2026, 0, 1) + waitMs).toISOString())
    expect(gateway.caps[0].room(1_001)).toBe(0)
    expect(gateway.caps[0].roomAtMs(1_001)).toBe(1_000 + waitMs)
    gateway.resume()
    expect(gateway.caps[0].room(1_001)).toBe(gateway.limiter.limit)
    expect(gateway.stats(1_001, 0)).not.toHaveProperty('pausedUntil')
  })

  test('has room for its limit less what is under way', () => {
    const [{ caps: [cap] }] = [gatewayOf({ concurrency: '3:1:8' })]
    cap.inFlight = 2
    expect(cap.room(1_000)).toBe(1)
    expect(cap.roomAtMs(1_000)).toBe(Number.POSITIVE_INFINITY)
  })

  test('remembers no more hosts than it takes to blame it, and forgets them when one is reached', () => {
    const gateway = gatewayOf()
    const blames = Array.from({ length: 1_000 }, (_, at) => gateway.blames(`h${at}.test`))
    expect(blames.indexOf(true)).toBe(limits.gatewayHostsFailedMax - 1)
    expect(blames.slice(limits.gatewayHostsFailedMax)).not.toContain(false)
    gateway.reached()
    expect(gateway.blames('h1.test')).toBe(false)
  })
})

test('sluice status says of a gateway what it is given, what it said, and until when it rests', () => {
  const stats = { name: 'eu', limit: 3, inFlight: 2, throttled: 1_234, quotaHits: 1, failed: 0 }
  expect(gatewayLines()).toEqual([])
  expect(gatewayLines([stats, { ...stats, name: 'us', pausedUntil: 'resume' }, { ...stats, pausedUntil: '2026-01-01T00:00:00.000Z' }])).toEqual([
    'gateway eu: 2 of 3 in flight, 429: 1,234, out of quota: 1, failures: 0',
    'gateway us: 2 of 3 in flight, 429: 1,234, out of quota: 1, failures: 0, paused until it is resumed',
    'gateway eu: 2 of 3 in flight, 429: 1,234, out of quota: 1, failures: 0, paused until 2026-01-01T00:00:00.000Z',
  ])
})

test.each<[string | undefined, number | undefined]>([
  ['0', 0], ['60', 60_000], ['12.5', 12_500], [' 7 ', 7_000],
  [String(Date.UTC(2026, 0, 1, 1) / 1_000), 3_600_000], [String(Date.UTC(2026, 0, 1, 1)), 3_600_000], ['1000000000', 1_000_000_000_000 - Date.UTC(2026, 0, 1)],
  ['Thu, 01 Jan 2026 00:10:00 GMT', 600_000], ['Wed, 31 Dec 2025 23:59:59 GMT', -1_000],
  [undefined, undefined], ['', undefined], ['soon', undefined], ['-5', undefined], ['1e9', undefined], ['9'.repeat(40), undefined], ['2026-01-01', undefined],
])('a reset header of %j is read as so many milliseconds from now: %j', (value, expected) => {
  expect(resetMsOf(value, Date.UTC(2026, 0, 1))).toBe(expected)
})

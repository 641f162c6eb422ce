import { describe, expect, it } from 'vitest'
import { RateLimit } from '../../engine/flow/rate-limit.ts'
import { seededRandom } from '../support/random.ts'

interface Fetch { readonly endsAtMs: number; readonly expected: number; readonly bytes: number }

const none = { requestsPerSecond: Infinity, bytesPerSecond: Infinity, maxBodyBytes: 1_000_000 }

/** Starts as many as it may, each of which takes a while; answers the moments of the starts and of the bytes. */
function play(limits: { requestsPerSecond?: number; bytesPerSecond?: number }, seconds: number, fetch: { latencyMs: number; bytes: () => number }) {
  let nowMs = 1_000
  const rates = new RateLimit({ ...none, ...limits }, () => nowMs)
  const starts: number[] = []
  const blockedOn = new Set<string>()
  // In the order in which they end.
  const flying: Fetch[] = []
  let bytes = 0
  for (const endMs = nowMs + seconds * 1_000; nowMs < endMs; nowMs += 5) {
    while ((flying[0]?.endsAtMs ?? Infinity) <= nowMs) {
      const ended = flying.shift()!
      bytes += ended.bytes
      rates.ended(ended.expected, ended.bytes)
    }
    while (rates.blocked === undefined && flying.length < 10_000) {
      starts.push(nowMs)
      flying.push({ endsAtMs: nowMs + fetch.latencyMs, expected: rates.began(), bytes: fetch.bytes() })
    }
    if (rates.blocked !== undefined) blockedOn.add(rates.blocked.on)
    if ((rates.blocked?.untilMs ?? Infinity) <= nowMs) throw new Error('blocked until a moment that has passed')
  }
  return { starts, bytes, blockedOn: [...blockedOn] }
}

describe('--rate', () => {
  it('is kept in every second, and used up', () => {
    const { starts, blockedOn } = play({ requestsPerSecond: 40 }, 20, { latencyMs: 500, bytes: () => 1_000 })
    for (const [at, startMs] of starts.entries()) {
      const inSecond = starts.slice(at).filter((other) => other < startMs + 1_000).length
      expect(inSecond).toBeLessThanOrEqual(40 + 4)
    }
    expect(starts.length).toBeGreaterThan(40 * 20 - 10)
    expect(blockedOn).toEqual(['rate'])
  })

  it('may be less than one a second', () => {
    expect(play({ requestsPerSecond: 0.5 }, 20, { latencyMs: 1, bytes: () => 1 }).starts).toHaveLength(10)
  })

  it('saves nothing up while the crawl rests', () => {
    let nowMs = 0
    const rates = new RateLimit({ ...none, requestsPerSecond: 10 }, () => nowMs)
    nowMs = 3_600_000
    rates.began()
    expect(rates.blocked).toEqual({ on: 'rate', untilMs: nowMs + 100 })
  })

  it('counts what had to be sent besides against later starts', () => {
    const nowMs = 0
    const rates = new RateLimit({ ...none, requestsPerSecond: 10 }, () => nowMs)
    rates.began()
    for (let times = 0; times < 3; times += 1) rates.resent()
    expect(rates.blocked).toEqual({ on: 'rate', untilMs: 400 })
  })
})

describe('--bandwidth', () => {
  const MB = 1_048_576

  it.each([10_000, 100_000, 1_000_000])('is kept on average for pages of %d bytes, and used up though each takes two seconds', (size) => {
    const { bytes, blockedOn } = play({ bytesPerSecond: MB }, 60, { latencyMs: 2_000, bytes: () => size })
    expect(bytes).toBeLessThan(60 * MB * 1.1)
    expect(bytes).toBeGreaterThan(58 * MB * 0.7)
    expect(blockedOn).toEqual(['bandwidth'])
  })

  it('is kept when sizes are very uneven', () => {
    const [seed, random] = [7, seededRandom(7)]
    const { bytes } = play({ bytesPerSecond: MB }, 60, { latencyMs: 300, bytes: () => Math.floor(100 * 10_000 ** random()) })
    expect(bytes, `seed ${seed}`).toBeLessThan(60 * MB * 1.15)
    expect(bytes, `seed ${seed}`).toBeGreaterThan(58 * MB * 0.7)
  })
})

it('without either, nothing is ever blocked', () => {
  const rates = new RateLimit(none, () => 0)
  for (let times = 0; times < 1_000; times += 1) rates.ended(rates.began(), 1e9)
  expect(rates.blocked).toBeUndefined()
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import type { RecrawlFacts, RecrawlPolicy } from '../../engine/core/recrawl-policy.ts'
import { noLinks, type PreviousFetch, type QueuedUrl } from '../../engine/core/types.ts'
import { factsOf, intervalOf, Recrawl } from '../../engine/schedule/recrawl.ts'
import type { EndedUrl } from '../../storage/store.ts'

const HOUR = 3_600_000
const adaptive = { kind: 'adaptive', floorMs: HOUR, ceilingMs: 100 * HOUR } as const
const fixed = { kind: 'fixed', intervalMs: 24 * HOUR } as const

function facts(parts: Partial<RecrawlFacts> = {}): RecrawlFacts {
  return { url: 'http://a.test/', outcome: 'ok', status: 200, fetchedAtMs: 1_000_000, goneTimes: 0, ...parts }
}

function before(intervalMs: number, status = 200): NonNullable<RecrawlFacts['previous']> {
  return { fetchedAtMs: 1, status, intervalMs }
}

function ended(parts: Partial<EndedUrl> = {}, previous?: PreviousFetch): EndedUrl {
  const url: QueuedUrl = {
    row: new Uint8Array(30), host: 'a.test', sequence: 1, fingerprint: new Uint8Array(16).fill(1), url: 'http://a.test/', depth: 0, priority: 0, attempts: 0,
    ...(previous && { previous }),
  }
  return { url, outcome: 'ok', atMs: 1_000_000, page: { status: 200 }, links: noLinks, line: new Uint8Array(0), wireBytes: 0, bodyBytes: 0, ...parts }
}

const anyFacts = fc.record({
  url: fc.constant('http://a.test/'), status: fc.constantFrom(0, 200, 301, 304, 403, 404, 410, 500), fetchedAtMs: fc.nat(),
  outcome: fc.constantFrom('ok', 'redirect', 'not_modified', 'http_error', 'failed', 'robots_denied', 'excluded', 'dropped'),
  code: fc.constantFrom(undefined, 'timeout', 'unsupported_type', 'dns_not_found'),
  isChanged: fc.constantFrom(undefined, true, false), goneTimes: fc.nat(8),
  previous: fc.option(fc.record({ fetchedAtMs: fc.nat(), status: fc.constantFrom(0, 200, 301, 404, 500), intervalMs: fc.integer({ min: 1, max: 1_000 * HOUR }) }), { nil: undefined }),
}) as fc.Arbitrary<RecrawlFacts>

describe('an interval', () => {
  test('lies between floor and ceiling, whatever happened, but for pages that are gone or have moved', () => {
    fc.assert(fc.property(anyFacts, fc.constantFrom<RecrawlPolicy>(adaptive, fixed), (given, policy) => {
      const interval = intervalOf(policy, given)
      if (given.outcome === 'excluded' || given.outcome === 'dropped') {
        expect(interval).toBeUndefined()
        return
      }
      fc.pre(given.goneTimes === 0 && !(given.outcome === 'redirect' && given.status === 301))
      const [floorMs, ceilingMs] = policy.kind === 'fixed' ? [policy.intervalMs, policy.intervalMs] : [adaptive.floorMs, adaptive.ceilingMs]
      expect(interval).toBeGreaterThanOrEqual(floorMs)
      expect(interval).toBeLessThanOrEqual(ceilingMs)
    }))
  })

  test('is never one under never and lastmod', () => {
    fc.assert(fc.property(anyFacts, fc.constantFrom<RecrawlPolicy>({ kind: 'never' }, { kind: 'lastmod' }), (given, policy) => {
      expect(intervalOf(policy, given)).toBeUndefined()
    }))
  })

  test('grows while a page stays the same and shrinks while it changes, monotonically', () => {
    fc.assert(fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), (changes) => {
      let last = intervalOf(adaptive, facts())!
      expect(last).toBe(HOUR)
      for (const isChanged of changes) {
        const next = intervalOf(adaptive, facts({ isChanged, previous: before(last) }))!
        if (isChanged) expect(next).toBeLessThanOrEqual(last)
        else expect(next).toBeGreaterThanOrEqual(last)
        last = next
      }
    }))
  })

  test('reaches the ceiling of a page that never changes, and the floor again of one that always does', () => {
    let last = HOUR
    for (let visit = 0; visit < 14; visit += 1) last = intervalOf(adaptive, facts({ isChanged: false, previous: before(last) }))!
    expect(last).toBe(adaptive.ceilingMs)
    for (let visit = 0; visit < 21; visit += 1) last = intervalOf(adaptive, facts({ isChanged: true, previous: before(last) }))!
    expect(last).toBe(adaptive.floorMs)
  })

  test('doubles with each gone answer, also beyond the ceiling, and ends at the last', () => {
    const gone = (goneTimes: number, lastMs: number): number | undefined => intervalOf(fixed, facts({ outcome: 'http_error', status: 410, goneTimes, previous: before(lastMs) }))
    let last = fixed.intervalMs
    for (let times = 1; times < limits.recrawlGoneTimesMax; times += 1) {
      expect(gone(times, last)).toBe(2 * last)
      last *= 2
    }
    expect(gone(limits.recrawlGoneTimesMax, last)).toBeUndefined()
  })

  test.each([301, 308])('of an address that moved for good (%i) is the ceiling, then doubles, and is never more than 16 ceilings', (status) => {
    const moved = (previous: RecrawlFacts['previous'], policy: RecrawlPolicy = adaptive): number => intervalOf(policy, facts({ outcome: 'redirect', status, ...(previous && { previous }) }))!
    expect(moved(undefined)).toBe(adaptive.ceilingMs)
    let last = moved(before(HOUR))
    const intervals = Array.from({ length: 8 }, () => { last = moved(before(last, status)); return last / adaptive.ceilingMs })
    expect(intervals).toEqual([2, 4, 8, 16, 16, 16, 16, 16])
    // A fixed interval grows too: such an address is not asked at each visit.
    expect(moved(before(fixed.intervalMs), fixed)).toBe(2 * fixed.intervalMs)
    expect(intervalOf(adaptive, facts({ outcome: 'redirect', status: 302, previous: before(2 * HOUR) }))).toBe(2 * HOUR)
  })

  test('comes back within its bounds when an address that had moved answers again', () => {
    expect(intervalOf(adaptive, facts({ isChanged: true, previous: before(16 * adaptive.ceilingMs, 301) }))).toBe(adaptive.ceilingMs)
    expect(intervalOf(fixed, facts({ previous: before(16 * fixed.intervalMs, 301) }))).toBe(fixed.intervalMs)
  })

  test('comes back within its bounds when a page that was gone is there again', () => {
    expect(intervalOf(fixed, facts({ previous: before(8 * fixed.intervalMs, 404) }))).toBe(fixed.intervalMs)
  })

  test('is the floor after a first failure that may pass, and grows with further ones', () => {
    const failed = { outcome: 'failed', status: 0, code: 'timeout' } as const
    expect(intervalOf(adaptive, facts({ ...failed, previous: before(50 * HOUR) }))).toBe(HOUR)
    expect(intervalOf(adaptive, facts({ ...failed, previous: before(HOUR, 0) }))).toBe(1.4 * HOUR)
  })

  test('is the ceiling of what robots.txt forbids and of failures that do not pass', () => {
    expect(intervalOf(adaptive, facts({ outcome: 'robots_denied', status: 0 }))).toBe(adaptive.ceilingMs)
    expect(intervalOf(adaptive, facts({ outcome: 'failed', status: 200, code: 'unsupported_type' }))).toBe(adaptive.ceilingMs)
  })
})

describe('a due time', () => {
  test('is never sooner than the interval and at most a tenth later', () => {
    fc.assert(fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (chance) => {
      const { due } = new Recrawl('fixed:24h', () => chance).scheduled(ended())
      expect(due!.intervalMs).toBe(24 * HOUR)
      expect(due!.atMs).toBeGreaterThanOrEqual(1_000_000 + 24 * HOUR)
      expect(due!.atMs).toBeLessThanOrEqual(1_000_001 + 26.4 * HOUR)
    }))
  })

  test('of a page that is gone comes with how often it was found so', () => {
    const gone = new Recrawl('fixed:1h', () => 0).scheduled(ended({ outcome: 'http_error', page: { status: 404 } }, { fetchedAtMs: 1, status: 404, goneTimes: 2, intervalMs: 4 * HOUR }))
    expect(gone).toMatchObject({ page: { status: 404, goneTimes: 3 }, due: { intervalMs: 8 * HOUR } })
  })
})

test('a page is changed only when both were read and differ', () => {
  const contentHash = new Uint8Array(16).fill(3)
  const known = { fetchedAtMs: 1, status: 200, contentHash }
  const changeOf = (parts: Partial<EndedUrl>, previous?: PreviousFetch): boolean | undefined => factsOf(ended(parts, previous)).isChanged
  expect([changeOf({}), changeOf({}, known), changeOf({ isUnchanged: true }, known), changeOf({ outcome: 'not_modified', page: { status: 304 } }, known)]).toEqual([undefined, true, false, false])
  expect(changeOf({ outcome: 'redirect', page: { status: 302 } }, { fetchedAtMs: 1, status: 301 })).toBe(false)
  expect(changeOf({ outcome: 'redirect', page: { status: 302 } }, known)).toBeUndefined()
  expect(changeOf({ outcome: 'failed' }, known)).toBeUndefined()
})

describe('a function of the user', () => {
  test('is told the facts and decides alone', () => {
    const asked: RecrawlFacts[] = []
    const recrawl = new Recrawl((given) => (asked.push(given), 5_000), () => 0.5)
    expect(recrawl.scheduled(ended({}, { fetchedAtMs: 7, status: 200, intervalMs: 9 })).due).toEqual({ atMs: 1_005_000, intervalMs: 5_000 })
    expect(asked).toEqual([{ url: 'http://a.test/', outcome: 'ok', status: 200, fetchedAtMs: 1_000_000, goneTimes: 0, previous: { fetchedAtMs: 7, status: 200, intervalMs: 9 } }])
    expect(new Recrawl(() => undefined, () => 0).scheduled(ended()).due).toBeUndefined()
  })

  test.each([[-1], [Number.NaN], [Number.POSITIVE_INFINITY], ['1h'], [null]])('that answers %j is told so', (answer) => {
    const recrawl = new Recrawl((() => answer) as never, () => 0)
    expect(() => recrawl.scheduled(ended())).toThrow(expect.objectContaining({ code: 'bad_option', message: expect.stringContaining('http://a.test/') }))
  })

  test('that throws ends as a bad option that names the URL', () => {
    const recrawl = new Recrawl(() => { throw new Error('no idea') }, () => 0)
    expect(() => recrawl.scheduled(ended())).toThrow(expect.objectContaining({ code: 'bad_option', message: expect.stringMatching(/http:\/\/a\.test\/.*no idea/) }))
  })
})

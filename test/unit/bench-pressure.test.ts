import { describe, expect, it } from 'vitest'
import { chartOf } from '../../bench/pressure/chart.ts'
import type { Claims, Evidence, Sample, Scenario } from '../../bench/pressure/scenario.ts'
import { judge } from '../../bench/pressure/verdicts.ts'

/** 10 s before, 20 s of fault, 20 s after, at 4 samples a second: the pages of each group come at these rates. */
type Rates = (atMs: number) => { readonly concerned: number; readonly others: number }

function samplesWith(rates: Rates, more: (atMs: number) => Partial<Sample> = () => ({})): Sample[] {
  let [pagesConcerned, pagesOthers] = [0, 0]
  return Array.from({ length: 201 }, (_, at) => {
    const [atMs, tally] = [at * 250, { requests: at * 100, refused: 0, inFlight: 3, inFlightPeak: 3 }]
    const { concerned, others } = rates(atMs)
    pagesConcerned += concerned / 4
    pagesOthers += others / 4
    return {
      atMs, pagesConcerned, pagesOthers, tally, blockedOn: 'politeness', inFlight: 10, limit: 3, fetches: at * 10, retries: at, ownBytes: 100 * 1_048_576,
      bounds: { slots: { used: 4, max: 4 } }, ages: { commit: 20 }, ...more(atMs),
    }
  })
}

const even: Rates = () => ({ concerned: 20, others: 80 })

function evidenceWith(changes: Partial<Evidence> = {}): Evidence {
  return {
    pace: { of: 'others', pagesPerSecond: 85 },
    steps: [
      { name: 'before', kind: 'before', fromMs: 0, toMs: 10_000 }, { name: 'bad', kind: 'fault', fromMs: 10_000, toMs: 30_000 }, { name: 'after', kind: 'after', fromMs: 30_000, toMs: 50_000 },
    ],
    samples: samplesWith(even), counters: { discovered: 100, pending: 40, done: 50, failed: 0, dropped: 0, excluded: 10 },
    records: 60, recordUrls: 60, pagesNotOk: {}, pagesWithoutRecord: 40, othersWithoutRecord: 10, answeredWithoutRecord: 5, recordsWithoutAnswer: 0, underWayMax: 20, workersLost: 0,
    ...changes,
  }
}

const claims: Claims = {
  ownMbMax: 200, othersShareMin: 0.95, recovery: { of: 'concerned', withinS: 10 }, blockedOn: ['politeness'], retryShareMax: 0.12, ceilings: { bad: 3 }, limitMax: 5,
}

/** Names of the verdicts that are not kept. */
function broken(changes: Partial<Evidence>, of: Claims = claims): string[] {
  return judge(of, evidenceWith(changes)).filter(({ isKept }) => !isKept).map(({ name }) => name)
}

const isFault = (atMs: number): boolean => atMs > 10_000 && atMs <= 30_000

describe('a verdict on a bad afternoon', () => {
  it('keeps every claim of a run that was well', () => {
    expect(broken({})).toEqual([])
  })

  it('finds that the machine was too busy to tell', () => {
    expect(broken({ pace: { of: 'others', pagesPerSecond: 95 } })).toEqual(['steady'])
    expect(broken({ pace: { of: 'all', pagesPerSecond: 115 } })).toEqual([])
  })

  it('finds a URL that the counters have lost, and one with two records', () => {
    expect(broken({ counters: { discovered: 101, pending: 40, done: 50, failed: 0, dropped: 0, excluded: 10 } })).toEqual(['counters'])
    expect(broken({ records: 61 })).toEqual(['counters'])
  })

  it('finds a page without a record that is not pending, answers that came to nothing, and a record that no answer stands behind', () => {
    expect(broken({ pagesWithoutRecord: 41 })).toEqual(['server log'])
    expect(broken({ answeredWithoutRecord: 21 })).toEqual(['server log'])
    expect(broken({ recordsWithoutAnswer: 1 })).toEqual(['server log'])
  })

  it('finds pages that did not end well, unless as many may', () => {
    const bad = { pagesNotOk: { timeout: 1, http_error: 1 } }
    expect(broken(bad)).toEqual(['outcomes'])
    expect(broken(bad, { ...claims, notOkMax: 2 })).toEqual([])
  })

  it('finds one sample above a bound, and one above the memory that is allowed', () => {
    expect(broken({ samples: samplesWith(even, (atMs) => (atMs === 20_000 ? { bounds: { slots: { used: 5, max: 4 } } } : {})) })).toEqual(['bounds'])
    expect(broken({ samples: samplesWith(even, (atMs) => (atMs === 20_000 ? { ownBytes: 201 * 1_048_576 } : {})) })).toEqual(['memory'])
  })

  it('finds hosts not concerned that lose more than a twentieth of their throughput', () => {
    expect(broken({ samples: samplesWith((atMs) => ({ concerned: 20, others: isFault(atMs) ? 77 : 80 })) })).toEqual([])
    expect(broken({ samples: samplesWith((atMs) => ({ concerned: 20, others: isFault(atMs) ? 75 : 80 })) })).toEqual(['others'])
  })

  it('finds a recovery that is late, or does not come', () => {
    const backAfter = (ms: number): Sample[] => samplesWith((atMs) => ({ concerned: atMs > 10_000 && atMs <= 30_000 + ms ? 0 : 20, others: 80 }))
    expect(broken({ samples: backAfter(9_000) })).toEqual([])
    expect(broken({ samples: backAfter(12_000) })).toEqual(['recovery'])
    expect(broken({ samples: backAfter(100_000) })).toEqual(['recovery'])
    const backFor6S = samplesWith((atMs) => ({ concerned: isFault(atMs) || atMs > 36_000 ? 0 : 20, others: 80 }))
    expect(broken({ samples: backFor6S })).toEqual(['recovery'])
  })

  it('finds another cause than the true one in most samples of the second half', () => {
    expect(broken({ samples: samplesWith(even, (atMs) => ({ blockedOn: atMs < 24_000 ? 'politeness' : 'commit' })) })).toEqual(['blocked on'])
    expect(broken({ samples: samplesWith(even, (atMs) => ({ blockedOn: atMs < 19_000 ? 'commit' : 'politeness' })) })).toEqual([])
  })

  it('finds retries beyond their share', () => {
    expect(broken({ samples: samplesWith(even, (atMs) => ({ retries: atMs / 100 })) })).toEqual(['retries'])
  })

  it('finds a limit that settles too high or too low, and too many refusals', () => {
    const limit = (value: number): Sample[] => samplesWith(even, () => ({ limit: value }))
    expect(broken({ samples: limit(4) })).toEqual(['limit, bad'])
    expect(broken({ samples: limit(2) })).toEqual(['limit, bad'])
    expect(broken({ samples: limit(6) })).toEqual(['limit, bad', 'limit'])
    const refusing = (share: number): Sample[] => samplesWith(even, (atMs) => ({ tally: { requests: atMs, refused: share * atMs, inFlight: 3, inFlightPeak: 4 } }))
    expect(broken({ samples: refusing(0.019) })).toEqual([])
    expect(broken({ samples: refusing(0.021) })).toEqual(['refused, bad'])
  })
})

it('a run becomes a picture with its faults, and numbers alone in its lines', () => {
  const scenario: Scenario = { name: 'bad', story: 'a <b> & "c"', concerned: 1, faults: [], afterS: 20, claims }
  const svg = chartOf(scenario, false, evidenceWith())
  expect(svg.includes('bad: a &lt;b&gt; &amp; &quot;c&quot;')).toBe(true)
  expect(svg.match(/class="fault"/g)).toHaveLength(3)
  const points = [...svg.matchAll(/points="([^"]*)"/g)].flatMap(([, text]) => text!.split(/[ ,]/))
  expect(points.length).toBeGreaterThan(800)
  expect(points.every((text) => Number.isFinite(Number(text)))).toBe(true)
})

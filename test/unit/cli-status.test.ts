/** The tables of `sluice status`. */
import { describe, expect, it } from 'vitest'
import { boundLines, hostPressureLines, stageLines, timeLine } from '../../engine/cli/status-tables.ts'
import { summaryLines } from '../../engine/cli/summary.ts'
import { troubleLines } from '../../engine/cli/troubles.ts'
import { noPressure, statsWith, summaryWith } from '../support/cli.ts'

describe('the line of what went wrong', () => {
  it('names hosts, walls, the network and what was shed, and is not there while nothing is wrong', () => {
    const { shed } = statsWith()
    const trouble = { hostsGivenUp: 2, hostsUnhealthy: 1, hostsParked: 1, challenged: 12, blocked: 1, networkDowns: 1, networkDownMs: 62_000, shed: { ...shed, isShedding: true, deferred: { commit: 3_000, loop: 1 } } }
    expect(troubleLines(statsWith())).toEqual([])
    expect(troubleLines(trouble)).toEqual(['trouble: 2 hosts given up, 1 host unhealthy, 1 host parked for asking to be paid, 12 challenge pages, 1 block page, the network away 1 time, for 1m 02s, shedding now, URLs shed: 3,001 put off'])
    expect(summaryLines({ dir: 'd', summary: summaryWith({ flow: trouble }), failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true })[0]).toMatch(/^trouble: 2 hosts given up.*1m 02s, URLs shed: 3,001 put off$/)
  })
})

describe('the summary of a crawl through gateways', () => {
  it('names those that refused, failed or are out of quota: nothing else would explain why so little was fetched', () => {
    const gateway = { limit: 4, inFlight: 0, throttled: 0, quotaHits: 0, failed: 0 }
    const flow = { ...statsWith(), gateways: [{ ...gateway, name: 'well' }, { ...gateway, name: 'spent', quotaHits: 1, pausedUntil: 'resume' }] }
    const lines = summaryLines({ dir: 'd', summary: summaryWith({ flow }), failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true })
    expect(lines).toEqual(['gateway spent: 0 of 4 in flight, 429: 0, out of quota: 1, failures: 0, paused until it is resumed', expect.stringMatching(/^complete/)])
  })
})

describe('the tables of a running crawl', () => {
  it('show each stage with its depth and age, and what the crawl waited for it', () => {
    expect(stageLines([
      { name: 'claimed', depth: 1_234, oldestMs: 72_400, refused: 0, blocked: 0, blockedMs: 0 },
      { name: 'window', depth: 0, oldestMs: 0, refused: 9, blocked: 2, blockedMs: 1_250 },
    ])).toEqual([
      'stage      URLs  oldest  blocked   for',
      'claimed   1,234  1m 12s',
      'consumer      0                2  1.2s',
    ])
  })

  it('show every bound with its fill, in its unit, how far one that moves may go, and where it comes from', () => {
    expect(boundLines([
      { name: 'slots', unit: 'items', used: 40, limit: 80, max: 159, derivedFrom: 'a speed' },
      { name: 'bodyBytes', unit: 'bytes', used: 0, limit: 67_108_864, max: 67_108_864, derivedFrom: 'memory' },
      { name: 'none', unit: 'items', used: 0, limit: 0, max: 0, derivedFrom: 'nothing' },
    ])).toEqual([
      'bound      used     of  at most  full  from',
      'slots        40     80      159   50%  a speed',
      'bodyBytes   0 B  64 MB    64 MB    0%  memory',
      'none          0      0        0        nothing',
    ])
  })

  it('are left out when there is nothing in them', () => {
    expect([stageLines([]), boundLines([]), hostPressureLines([]), timeLine(noPressure)]).toEqual([[], [], [], 'time blocked on: nothing'])
  })

  it('tell what the time went into, the most first', () => {
    expect(timeLine({ ...noPressure, blockedMs: { nothing: 250, politeness: 700, idle: 50, commit: 0 } })).toBe('time blocked on: politeness 70%, nothing 25%, no work 5.0%')
  })

  it('name the worst hosts that are not well, five at most, with what is wrong', () => {
    const host = { name: 'a.test', health: 0.4, idleMs: 5, inFlight: 0, limit: 1, waitMs: 0, failures: 3 }
    const shares = { retryShare: 0.125, throttleShare: 0.5, timeoutShare: 0, blockShare: 0, challengeShare: 0, failureShare: 0, decreaseShare: 0.1 }
    expect(hostPressureLines([{ ...host, waitMs: 7_400, failureCode: 'http_503', shares }, { ...host, name: 'b.test', parked: 'http_402' }, { ...host, name: 'well.test', health: 0.99 }])).toEqual([
      'host a.test: health 0.4, 0 in flight of 1, rests 7.4s, http_503, retries 13%, throttled 50%',
      'host b.test: health 0.4, 0 in flight of 1, parked: http_402',
    ])
    expect(hostPressureLines(Array.from({ length: 20 }, () => host))).toHaveLength(5)
  })
})

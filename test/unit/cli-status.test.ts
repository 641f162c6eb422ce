/** The tables of `sluice status`. */
import { describe, expect, it } from 'vitest'
import { boundLines, hostPressureLines, stageLines, timeLine } from '../../engine/cli/status-tables.ts'
import { noPressure } from '../support/cli.ts'

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
    expect(hostPressureLines([{ ...host, waitMs: 7_400, failureCode: 'http_503', shares }, { ...host, name: 'b.test' }, { ...host, name: 'well.test', health: 0.99 }])).toEqual([
      'host a.test: health 0.4, 0 in flight of 1, rests 7.4s, http_503, retries 13%, throttled 50%',
      'host b.test: health 0.4, 0 in flight of 1',
    ])
    expect(hostPressureLines(Array.from({ length: 20 }, () => host))).toHaveLength(5)
  })
})

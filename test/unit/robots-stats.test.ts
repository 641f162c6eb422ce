import { describe, expect, it } from 'vitest'
import { robotsLines } from '../../engine/cli/status-tables.ts'
import { limits } from '../../engine/core/limits.ts'
import { robotsStatsOf } from '../../engine/web/robots-stats.ts'

const expiresAtMs = Date.UTC(2030, 0, 1)
const until = '2030-01-01T00:00:00.000Z'

describe('what is shown of a robots.txt verdict', () => {
  it('is its kind, its rules counted, what it asks for, the answer that it came with, its sitemaps and its end', () => {
    const stats = robotsStatsOf({
      'https://a.test': { rule: 'rules', lines: '+/a/b\n-/a\n', crawlDelayMs: 5_000, status: 200, sitemaps: ['https://a.test/s.xml'], expiresAtMs },
      'http://a.test': { rule: 'allow', status: 404, expiresAtMs },
      'http://a.test:81': { rule: 'disallow', code: 'timeout', expiresAtMs },
    })
    expect(stats).toEqual({
      'https://a.test': { rule: 'rules', rules: 2, crawlDelayMs: 5_000, status: 200, sitemaps: ['https://a.test/s.xml'], until },
      'http://a.test': { rule: 'allow', status: 404, until }, 'http://a.test:81': { rule: 'disallow', code: 'timeout', until },
    })
    expect(Object.entries(stats).flatMap(([origin, each]) => robotsLines(origin, each))).toEqual([
      `robots.txt of https://a.test: 2 rules, crawl delay 5s, status 200, until ${until}`, '  sitemap https://a.test/s.xml',
      `robots.txt of http://a.test: allow, status 404, until ${until}`, `robots.txt of http://a.test:81: disallow, timeout, until ${until}`,
    ])
  })

  it('fits into a message, whatever the sitemaps are', () => {
    const sitemaps = Array.from({ length: limits.robotsSitemapsMax }, (_, at) => `https://a.test/${at}/${'x'.repeat(7_000 * (at % 2))}`)
    const verdicts = Object.fromEntries(Array.from({ length: limits.robotsOriginsMax }, (_, at) => [`https://a.test:${at}`, { rule: 'allow' as const, sitemaps, expiresAtMs }]))
    const stats = robotsStatsOf(verdicts)
    expect(JSON.stringify(stats).length).toBeLessThan(limits.controlMessageBytesMax * 0.75)
    expect(stats['https://a.test:1']).toMatchObject({ sitemaps: ['https://a.test/0/'], sitemapsMore: sitemaps.length - 1 })
    expect(robotsLines('o', stats['https://a.test:1']!).at(-1)).toBe('  and 499 sitemaps more')
  })

  it('is nothing of a host without one', () => {
    expect(robotsStatsOf(undefined)).toEqual({})
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { count, percent, rate, shortDuration, shortSize } from '../../engine/cli/human.ts'
import type { BlockedOn } from '../../engine/core/api-types.ts'
import { errorLine, safeText } from '../../engine/cli/lines.ts'
import { blockedOn, blockedOnText, blockLines, jsonLine, PageRate, plainLine, type ProgressView } from '../../engine/cli/progress.ts'
import { Screen } from '../../engine/cli/screen.ts'
import { summaryJson, summaryLines } from '../../engine/cli/summary.ts'
import { FakeTerminal, statsWith, summaryWith } from '../support/cli.ts'

const view: ProgressView = {
  dir: './crawl', elapsedMs: 72_400, pagesPerSecond: 171.4, memoryBytes: 220_200_960,
  stats: statsWith({
    pages: 12_345, pending: 1_234_567, failed: 12, hosts: 24, inFlight: 96, retryShare: 0.003, blockedOn: 'page_ring', wireBytes: 1_288_490_189,
    bounds: [{ name: 'connections', unit: 'items', used: 96, limit: 128, max: 1_000, derivedFrom: '' }],
  }),
}

describe('the live block', () => {
  it('tells pages, rate, queue, failures, hosts, requests, retries, what is blocked on what, bytes, memory, time and place', () => {
    expect(blockLines(view, 100).map((line) => line.split(/\s{2,}/))).toEqual([
      ['pages 12,345', '171/s', 'queue 1,234,567', 'failed 12'],
      ['hosts 24', 'in flight 96/128', 'retries 0.3%', '1m 12s'],
      ['received 1.2 GB', 'memory 210 MB', 'blocked on the parse workers', './crawl'],
    ])
  })

  it('shows whole on 80 columns what the crawl is blocked on, whatever that is', () => {
    const words = [...Object.keys(blockedOnText).map((blockedOn) => ({ blockedOn: blockedOn as BlockedOn })), { blockedOn: 'idle' as const, pending: 0, nextDueAtMs: 1 }]
    for (const given of words) {
      const stats = statsWith({ ...view.stats, ...given })
      expect(blockLines({ ...view, stats }, 80).join('\n')).toContain(`blocked on ${blockedOn(stats)}  `)
    }
  })

  it('is narrower than the terminal, however narrow that is', () => {
    fc.assert(fc.property(fc.integer({ min: 2, max: 200 }), (columns) => {
      for (const line of blockLines(view, columns)) expect(line.length).toBeLessThan(columns)
    }))
  })
})

describe('the line every ten seconds', () => {
  it('tells the same in one line', () => {
    expect(plainLine(view)).toBe('1m 12s: 12,345 pages, 171/s, 1,234,567 queued, 12 failed, 24 hosts, 96 in flight, retries 0.3%, blocked on the parse workers, 1.2 GB received, memory 210 MB')
  })

  it('is an object with the whole snapshot for programs', () => {
    expect(JSON.parse(jsonLine(view))).toMatchObject({ event: 'progress', pages: 12_345, queued: 1_234_567, blockedOn: 'page_ring', pagesPerSecond: 171.4, elapsedMs: 72_400 })
  })
})

describe('a crawl that waits for pages to fall due', () => {
  const waiting = { ...view, stats: statsWith({ blockedOn: 'idle', pending: 0, nextDueAtMs: 1_800_000_000_000 }) }

  it('says so, and not that it has no work', () => {
    expect(plainLine(waiting)).toMatch(/, blocked on pages not due yet, /)
    expect(plainLine({ ...view, stats: statsWith({ blockedOn: 'idle' }) })).toMatch(/, blocked on no work, /)
  })

  it('says at its end when the next is due, and how to go on then', () => {
    const summary = summaryWith({ state: 'complete', nextDueAtMs: 1_800_000_000_000 })
    const lines = (canContinue: boolean): readonly string[] => summaryLines({ dir: 'd', summary, failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue })
    expect(lines(true)).toContain('the next page is due 2027-01-15T08:00:00.000Z; from then on: sluice crawl --dir d')
    expect(lines(false)).toHaveLength(1)
  })
})

describe('the rate', () => {
  it('is that of the last five seconds', () => {
    const pages = new PageRate()
    const rates = Array.from({ length: 81 }, (_, step) => pages.add(step * 250, step <= 40 ? step * 25 : 1_000))
    expect(rates[0]).toBe(0)
    expect(rates[40]).toBe(100)
    // Two and a half seconds at 100 a second, and two and a half without a page.
    expect(rates[50]).toBe(50)
    expect(rates[80]).toBe(0)
  })

  it('is that since the snapshot before when they come every ten seconds, and never negative', () => {
    const pages = new PageRate()
    expect([pages.add(0, 0), pages.add(10_000, 500), pages.add(20_000, 2_000), pages.add(30_000, 1_000)]).toEqual([0, 50, 150, 0])
  })
})

describe('the screen', () => {
  it('shows every line once in its order and the last block below them, whatever was drawn between', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('line' as const), text: fc.stringMatching(/^[a-z ]{1,30}$/) }),
      fc.record({ kind: fc.constant('error' as const), text: fc.stringMatching(/^[A-Z ]{1,30}$/) }),
      fc.record({ kind: fc.constant('draw' as const), lines: fc.array(fc.stringMatching(/^[a-z ]{0,30}$/), { minLength: 1, maxLength: 5 }) }),
    )
    fc.assert(fc.property(fc.array(step), (steps) => {
      const terminal = new FakeTerminal()
      const screen = new Screen(terminal, terminal)
      const lines: string[] = []
      let block: readonly string[] = []
      for (const each of steps) {
        if (each.kind === 'draw') screen.draw(block = each.lines)
        else {
          lines.push(each.text)
          if (each.kind === 'line') screen.line(each.text)
          else screen.errorLine(each.text)
        }
      }
      expect(terminal.lines).toEqual([...lines, ...block])
      expect(terminal.isCursorShown).toBe(block.length === 0)
      screen.clear()
      expect(terminal.lines).toEqual(lines)
      expect(terminal.isCursorShown).toBe(true)
    }))
  })

  it('draws a block in one write, so that nothing flickers', () => {
    const terminal = new FakeTerminal()
    const screen = new Screen(terminal, terminal)
    for (let drawing = 1; drawing <= 10; drawing++) {
      screen.draw(['one', 'two'])
      expect(terminal.writes).toBe(drawing)
    }
  })

  it('cuts a block that is higher than the terminal', () => {
    const terminal = new FakeTerminal(80, 3)
    new Screen(terminal, terminal).draw(['a', 'b', 'c', 'd'])
    expect(terminal.lines).toEqual(['a', 'b'])
  })
})

describe('the summary', () => {
  const failures = { byCode: { timeout: 8, dns_not_found: 40, parse_failed: 2, http_503: 1, tls_failed: 1 }, seeds: 0 }
  const summary = summaryWith({ state: 'stopped', pages: 2_400, pagesThisRun: 400, failed: 52, pending: 1_000, wireBytes: 3_221_225_472 })

  it('ends with the sums, and says before where the pages are, why some failed, and how to go on', () => {
    expect(summaryLines({ dir: '/tmp/my crawl', summary, failures, elapsedMs: 40_000, canContinue: true })).toEqual([
      "page records: '/tmp/my crawl'/pages-*.jsonl, as CSV: sluice export --format csv --dir '/tmp/my crawl'",
      'failures: 40 dns_not_found (the host name does not exist), 8 timeout (the answer was not complete at the deadline), 2 parse_failed (the page could not be parsed), 2 for other reasons',
      "to go on: sluice crawl --dir '/tmp/my crawl'",
      'stopped: 2,400 pages, 400 of them now, 52 failed, 1,000 queued, 3.0 GB received, in 40s (10/s)',
    ])
  })

  it('of a demonstration does not say how to go on, since its web is gone', () => {
    const lines = summaryLines({ dir: 'd', summary: { ...summary, parked: 3 }, failures, elapsedMs: 40_000, canContinue: false })
    expect(lines.filter((line) => /go on/.test(line))).toEqual([])
  })

  it('of a crawl with nothing to tell is one line', () => {
    expect(summaryLines({ dir: 'd', summary: summaryWith(), failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true })).toEqual(['complete: 0 pages, 0 failed, 0 queued, 0 B received, in 0.0s'])
    const near = summaryWith({ pages: 3, pagesThisRun: 3, nearDuplicates: 2 })
    expect(summaryLines({ dir: 'd', summary: near, failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true }).at(-1)).toMatch(/^complete: 3 pages, 2 near-duplicates, 0 failed/)
  })

  it('of a complete crawl says that links led out of its scope, which may be why it has so few pages', () => {
    const { refused } = summaryWith()
    const complete = summaryWith({ state: 'complete', pages: 1, refused: { ...refused, scope: 1 } })
    expect(summaryLines({ dir: 'd', summary: complete, failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true })).toContain('not followed: 1 link out of scope; see --scope')
  })

  it('of a complete crawl says that links look generated: a seed below a deep path is a crawl of one page', () => {
    const { refused } = summaryWith()
    const complete = summaryWith({ state: 'complete', pages: 1, refused: { ...refused, url_length: 1, path_depth: 2, path_repeat: 3, query_growth: 1_000 } })
    expect(summaryLines({ dir: 'd', summary: complete, failures: { byCode: {}, seeds: 0 }, elapsedMs: 0, canContinue: true }))
      .toContain('not followed: 1,006 links whose address looks generated; see --traps, and sluice status for the reasons')
  })

  it('for programs is one object that begins with its event and state', () => {
    const json = summaryJson({ dir: 'd', summary, failures, elapsedMs: 40_000, canContinue: true })
    expect(json).toMatch(/^\{"event":"summary","state":"stopped","pages":2400,"failed":52,"queued":1000,/)
    expect(JSON.parse(json)).toMatchObject({ pagesThisRun: 400, dir: 'd', elapsedMs: 40_000, failures: failures.byCode })
  })
})

describe('numbers for people', () => {
  it('have at most three digits before their unit', () => {
    fc.assert(fc.property(fc.oneof(fc.nat({ max: Number.MAX_SAFE_INTEGER }), fc.nat({ max: 2_000 }), fc.nat({ max: 2_000_000 })), (bytes) => {
      expect(shortSize(bytes)).toMatch(/^(\d{1,3}|\d\.\d) (B|KB|MB|GB|TB|PB)$/)
    }))
  })

  it('are short', () => {
    expect([0, 999, 61_000, 3_900_000, 183_600_000].map(shortDuration)).toEqual(['0.0s', '0.9s', '1m 01s', '1h 05m', '2d 03h'])
    expect([0, 0.003, 0.0995, 0.5, 1].map(percent)).toEqual(['0%', '0.3%', '10%', '50%', '100%'])
    expect([0, 0.44, 9.96, 1_234.5].map(rate)).toEqual(['0.0/s', '0.4/s', '10/s', '1,235/s'])
    expect(count(1_234_567)).toBe('1,234,567')
  })
})

describe('a line of standard error', () => {
  it('is one line without control characters, whatever a page or a server put into it', () => {
    fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.array(fc.nat({ max: 0xA5 }), { minLength: 1 }).map((codes) => String.fromCharCode(...codes))), (text) => {
      // oxlint-disable-next-line no-control-regex -- these are what must not come through
      expect(errorLine('timeout', text)).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u2028\u2029]/)
    }))
  })

  it('has no user name and no password of a URL', () => {
    expect(safeText('http://user:secret@a.test/x?y=a@b and https://me@b.test')).toBe('http://a.test/x?y=a@b and https://b.test')
  })
})

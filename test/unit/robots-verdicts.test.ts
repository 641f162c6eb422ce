/** The table of engine/web/robots.ts, a row for each of its cells, with the reader of the parse workers in its place. */
import { existsSync, readFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { FailureCode } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { FetchRequest, FetchResult } from '../../engine/fetch/fetcher.ts'
import { RobotsGate, type ReadRobots, type RobotsCheck } from '../../engine/web/robots.ts'
import { Inflater } from '../../threads/inflate.ts'
import { readRobotsText } from '../../threads/robots-text.ts'
import { corpusPath } from '../support/corpus.ts'
import { TestClock } from '../support/test-clock.ts'

interface Answer { readonly status?: number; readonly code?: FailureCode; readonly headers?: readonly string[]; readonly body?: string | Uint8Array }

const robots = 'https://a.test/robots.txt'
const page = 'https://a.test/private/page'
const text = 'User-agent: *\nDisallow: /private/\n'
const [minuteMs, dayMs] = [60_000, 24 * 60 * 60_000]

/** As threads/worker-entry.ts does it. */
const readRobots: ReadRobots = async ({ body, contentEncoding, isCut }, token) => {
  const inflated = await new Inflater(limits.robotsBytesMax).inflate(body, contentEncoding, isCut)
  return inflated.ok ? readRobotsText(inflated.bytes, token, inflated.truncated) : undefined
}

/** A gate over a web in which robots.txt is the first answer, and each redirect leads to the next. */
function gateOf(answers: readonly Answer[]): { readonly gate: RobotsGate; readonly clock: TestClock; readonly requests: string[]; readonly held: () => number } {
  const clock = new TestClock({ wallMs: 1_700_000_000_000 })
  const requests: string[] = []
  let held = 0
  async function fetch({ url, bodyBytesMax }: FetchRequest): Promise<FetchResult> {
    const { status = 0, code, headers = [], body = '' } = answers[Math.min(requests.push(url), answers.length) - 1]!
    const common = { timings: {}, fetchedAtMs: 0, ip: '192.0.2.1' }
    if (code !== undefined) return { ok: false, code, detail: 'as told', ...common }
    held += 1
    const bytes = Buffer.from(body as string).subarray(0, bodyBytesMax)
    return {
      ok: true, status, statusText: '', headers, headerBlock: new Uint8Array(0), body: [bytes], bodyBytes: bytes.length, truncated: bytes.length < body.length,
      release: () => { held -= 1 }, ...common,
    }
  }
  const gate = new RobotsGate({ fetcher: { fetch }, readRobots, userAgent: 'MyBot/1.0', clock, deadlineMs: 1_000, stored: () => undefined })
  return { gate, clock, requests, held: () => held }
}

const hop = (target?: string): Answer => ({ status: 301, headers: target === undefined ? [] : ['location', target] })
const hops = (count: number): readonly Answer[] => Array.from({ length: count }, (_, at) => hop(`https://b${at}.test/r`))
const rules: Answer = { status: 200, body: text }
const filler = `#${'x'.repeat(998)}\n`.repeat(600)

type Kind = RobotsCheck['kind']
/** What it is; what is answered; what the page is then, and the page outside the rules; and for how long. */
type Row = readonly [name: string, answers: readonly Answer[], page: Kind, other: Kind, lifeMs: number]

const table: readonly Row[] = [
  ['200', [rules], 'denied', 'allowed', dayMs],
  ['200 without rules', [{ status: 200 }], 'allowed', 'allowed', dayMs],
  ['200 for an hour', [{ ...rules, headers: ['cache-control', 'max-age=3600'] }], 'denied', 'allowed', 60 * minuteMs],
  ['200 for a second', [{ ...rules, headers: ['cache-control', 'max-age=1'] }], 'denied', 'allowed', 5 * minuteMs],
  ['200 for ever', [{ ...rules, headers: ['cache-control', 'max-age=31536000'] }], 'denied', 'allowed', dayMs],
  ['206', [{ ...rules, status: 206 }], 'denied', 'allowed', dayMs],
  ['a page of HTML', [{ status: 200, body: `<!doctype html>\n<title>404</title>\n${text}` }], 'allowed', 'allowed', dayMs],
  ['over 500 KiB, the rules first', [{ status: 200, body: `${text}${filler}` }], 'denied', 'allowed', dayMs],
  ['over 500 KiB, the rules beyond them', [{ status: 200, body: `${filler}${text}` }], 'allowed', 'allowed', dayMs],
  ['over 500 KiB, inflated', [{ status: 200, body: gzipSync(`${text}${filler}User-agent: *\nDisallow: /`), headers: ['content-encoding', 'gzip'] }], 'denied', 'allowed', dayMs],
  ['a bomb of 50 MB', [{ status: 200, body: gzipSync(`${text}${'\n'.repeat(50_000_000)}`, { level: 1 }), headers: ['content-encoding', 'gzip'] }], 'denied', 'allowed', dayMs],
  ['two codings', [{ status: 200, body: brotliCompressSync(gzipSync(text)), headers: ['content-encoding', 'gzip, br'] }], 'denied', 'allowed', dayMs],
  ['a BOM', [{ status: 200, body: `\uFEFF${text}` }], 'denied', 'allowed', dayMs],
  ['UTF-16, little end first', [{ status: 200, body: Buffer.from(`\uFEFF${text}`, 'utf16le') }], 'denied', 'allowed', dayMs],
  ['UTF-16, big end first', [{ status: 200, body: Buffer.from(`\uFEFF${text}`, 'utf16le').swap16() }], 'denied', 'allowed', dayMs],
  ['a coding that is broken', [{ status: 200, body: text, headers: ['content-encoding', 'gzip'] }], 'unknown', 'unknown', 0],
  ['five hops over five hosts', [...hops(5), rules], 'denied', 'allowed', dayMs],
  ['a sixth hop', [...hops(6), rules], 'allowed', 'allowed', dayMs],
  ['a hop to itself', [hop(robots)], 'allowed', 'allowed', dayMs],
  ['a hop without a target', [hop()], 'allowed', 'allowed', dayMs],
  ['a hop to another scheme', [hop('ftp://a.test/robots.txt')], 'allowed', 'allowed', dayMs],
  ['a hop to an address that is refused', [hop('http://169.254.169.254/'), { code: 'address_refused' }], 'unknown', 'unknown', 0],
  ['a hop to 404', [hop('https://b.test/'), { status: 404 }], 'allowed', 'allowed', dayMs],
  ['a hop to 503', [hop('https://b.test/'), { status: 503 }], 'unknown', 'unknown', 0],
  ['304, which was not asked for', [{ status: 304 }], 'allowed', 'allowed', dayMs],
  ...[400, 401, 403, 404, 410, 418, 451].map((status): Row => [String(status), [{ status, body: text }], 'allowed', 'allowed', dayMs]),
  ['404 for an hour', [{ status: 404, headers: ['cache-control', 'max-age=3600'] }], 'allowed', 'allowed', 60 * minuteMs],
  ...[429, 500, 502, 503, 504, 599, 999].map((status): Row => [String(status), [{ status, body: text }], 'unknown', 'unknown', 0]),
  ...(['dns_not_found', 'connect_refused', 'connect_timeout', 'timeout', 'connection_closed', 'bad_http', 'headers_too_large', 'tls_failed', 'tls_untrusted', 'address_refused'] as const)
    .map((code): Row => [code, [{ code }], 'unknown', 'unknown', 0]),
]

describe('the verdict of', () => {
  test.each(table)('%s', async (...row) => {
    const [, answers, pageKind, otherKind, lifeMs] = row
    const { gate, clock, held } = gateOf(answers)
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
    const answer = await gate.ask(page)
    const verdict = gate.verdictsOf('a.test')['https://a.test']!
    const checks = (): readonly Kind[] => [gate.check(page).kind, gate.check('https://a.test/public').kind]
    expect(checks()).toEqual([pageKind, otherKind])
    expect([answer.kind, verdict.rule === 'disallow']).toEqual(pageKind === 'unknown' ? ['failed', true] : ['known', false])
    expect(held()).toBe(0)
    if (lifeMs === 0) {
      // Nothing is in force, and what is stored says why.
      expect(verdict.code).toMatch(/^[a-z_]+$/)
      expect(verdict.expiresAtMs - clock.wallMs()).toBe(limits.robotsRetryMsMin)
      return
    }
    expect(verdict.expiresAtMs - clock.wallMs()).toBe(lifeMs)
    clock.advance(lifeMs - 1)
    expect(checks()).toEqual([pageKind, otherKind])
    clock.advance(1)
    expect(checks()).toEqual(['unknown', 'unknown'])
  })

  test.each([429, 503])('%s lasts as long as its Retry-After says, within an hour', async (status) => {
    for (const [seconds, waitMs] of [['90', 90_000], ['999999', limits.retryAfterMsMax], ['0', limits.robotsRetryMsMin], ['soon', limits.robotsRetryMsMin]] as const) {
      const { gate } = gateOf([{ status, headers: ['retry-after', seconds] }])
      expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable', status, retryAfterMs: waitMs })
    }
  })
})

interface FetchCase {
  readonly name: string; readonly status?: number | null; readonly status_range?: readonly [number, number]; readonly redirects?: number; readonly expect: string
  readonly min_bytes_parsed?: number; readonly max_cache_seconds?: number
}

/** Those that are answered in another way, and why. */
const deviations: Readonly<Record<string, string>> = {
  'fetch-429': 'who asks for fewer requests has not allowed all of them: as a server error, as Google documents it too',
  'crawler-commons-301-unfollowed': 'redirects are followed; one that leads nowhere is a file that is unavailable',
}

const casesFile = corpusPath('robots/fetch-cases.json')

test.skipIf(!existsSync(casesFile) && (console.log(`skipped: no corpus at ${casesFile}`), true))('of the cases of fetching in the corpus all hold but those listed', async () => {
  const cases = JSON.parse(readFileSync(casesFile, 'utf8')) as readonly FetchCase[]
  const wrong: string[] = []
  for (const { name, status, status_range: range, redirects = 0, expect: expected, min_bytes_parsed: bytesMin, max_cache_seconds: cacheSecondsMax } of cases) {
    if (bytesMin !== undefined) expect(limits.robotsBytesMax).toBeGreaterThanOrEqual(bytesMin)
    if (cacheSecondsMax !== undefined) expect(limits.robotsAgeMsMax).toBeLessThanOrEqual(cacheSecondsMax * 1_000)
    if (bytesMin !== undefined || cacheSecondsMax !== undefined) continue
    const [first = 0, last = 0] = range ?? [status ?? 0, status ?? 0]
    for (let each = first; each <= last; each += 1) {
      const { gate } = gateOf(each === 0 ? [{ code: 'dns_failed' }] : redirects > 0 ? [...hops(redirects), rules] : [{ status: each, body: text }])
      await gate.ask(page)
      const kind = gate.check(page).kind
      const expectedKind = { 'parse': 'denied', 'follow': 'denied', 'may treat as unavailable': 'allowed', 'allow all': 'allowed', 'disallow all': 'unknown' }[expected]
      if (kind !== expectedKind) wrong.push(name)
    }
  }
  console.log(`robots fetch cases: ${cases.length}, ${wrong.length} deviate`)
  expect(wrong).toEqual(Object.keys(deviations))
})

test('a host whose owner asked for something else is allowed without a verdict, and others are not', () => {
  const { gate, requests } = gateOf([{ status: 503 }])
  const exempting = new RobotsGate({ fetcher: { fetch: () => { throw new Error('nobody is asked') } }, readRobots, userAgent: 'x', clock: new TestClock(), deadlineMs: 1, stored: () => undefined, isExempt: (host) => host === 'a.test' })
  expect([exempting.check(page).kind, exempting.check('https://b.test/').kind, gate.check(page).kind]).toEqual(['allowed', 'unknown', 'unknown'])
  expect(requests).toEqual([])
})

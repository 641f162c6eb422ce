import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RobotsVerdict } from '../../storage/store.ts'
import { failureRule, type FailureCode } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { productTokenOf } from '../../engine/core/product-token.ts'
import type { FetchRequest, FetchResult } from '../../engine/fetch/fetcher.ts'
import { RobotsGate, type ReadRobots, type RobotsGateOptions } from '../../engine/web/robots.ts'
import { readRobotsText } from '../../threads/robots-text.ts'
import { startFaultServer, type FaultServer } from '../support/fault-server.ts'
import { makeRig } from '../support/fetch-rig.ts'
import { TestClock } from '../support/test-clock.ts'

type Answer = { status: number, headers?: string[], body?: string } | { code: FailureCode | 'aborted' } | Promise<unknown>

interface Web {
  readonly gate: RobotsGate
  readonly clock: TestClock
  readonly requests: string[]
  /** Answers still held by the gate. */
  readonly held: () => number
  readonly web: Map<string, Answer>
}

/** A gate over a web that is a map from URL to answer; what is not in it answers 404. Bodies are the rules for all agents. */
function rig(pages: Record<string, Answer> = {}, options: Partial<RobotsGateOptions> = {}): Web {
  const clock = new TestClock({ wallMs: 1_700_000_000_000 })
  const requests: string[] = []
  const web = new Map(Object.entries(pages))
  let held = 0
  async function fetch({ url }: FetchRequest): Promise<FetchResult> {
    requests.push(url)
    const answer = (await web.get(url) ?? { status: 404 }) as Exclude<Answer, Promise<unknown>>
    const common = { timings: {}, fetchedAtMs: 0, ip: '192.0.2.1' }
    if ('code' in answer) return { ok: false, code: answer.code, detail: 'as told', ...common }
    held++
    const body = Buffer.from(answer.body ?? '')
    return {
      ok: true, status: answer.status, statusText: '', headers: answer.headers ?? [], headerBlock: new Uint8Array(0), body: [body], bodyBytes: body.length,
      truncated: false, release: () => { held-- }, ...common,
    }
  }
  const gate = new RobotsGate({ fetcher: { fetch }, readRobots: readAsIs, userAgent: 'MyBot/1.0', clock, deadlineMs: 1_000, stored: () => undefined, ...options })
  return { gate, clock, requests, web, held: () => held }
}

const readAsIs: ReadRobots = async ({ body }, token) => {
  const text = Buffer.from(body).toString()
  if (text === 'deadly') throw new Error('it cost two workers their life')
  if (text === 'broken') return undefined
  return readRobotsText(Buffer.from(`User-agent: *\n${text}`), token)
}

const robots = 'https://a.test/robots.txt'
const page = 'https://a.test/private/page'
const rules = { status: 200, body: 'Disallow: /private/\n' }
const dayMs = 24 * 60 * 60_000

describe('each answer has its verdict', () => {
  test.each([200, 206])('%s: its rules', async (status) => {
    const { gate, held } = rig({ [robots]: { ...rules, status } })
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
    expect(await gate.ask(page)).toEqual({ kind: 'known' })
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    expect(gate.check('https://a.test/public')).toEqual({ kind: 'allowed' })
    expect(held()).toBe(0)
  })

  test.each([400, 401, 403, 404, 410, 418, 451, 304, 399])('%s: everything is allowed', async (status) => {
    const { gate, held } = rig({ [robots]: { status, body: 'Disallow: /' } })
    expect(await gate.ask(page)).toEqual({ kind: 'known' })
    expect(gate.check(page)).toEqual({ kind: 'allowed' })
    expect(held()).toBe(0)
  })

  test.each([429, 500, 502, 503, 504, 599])('%s: nothing is allowed for now, and the host has failed', async (status) => {
    const { gate, held } = rig({ [robots]: { status, headers: ['Retry-After', '90'] } })
    expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable', retryAfterMs: 90_000 })
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
    expect(held()).toBe(0)
  })

  test.each(['dns_not_found', 'dns_failed', 'connect_refused', 'connect_failed', 'connect_timeout', 'tls_failed', 'address_refused', 'tls_name_mismatch', 'tls_untrusted'] as const)(
    '%s is the failure of the host under its own code', async (code) => {
      const { gate } = rig({ [robots]: { code } })
      expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code })
    })

  test.each(['timeout', 'connection_closed', 'bad_http', 'headers_too_large'] as const)('%s belongs to one URL, so the host is charged with robots_unreachable', async (code) => {
    const { gate } = rig({ [robots]: { code } })
    const answer = await gate.ask(page)
    expect(answer).toMatchObject({ kind: 'failed', code: 'robots_unreachable', detail: expect.stringContaining(code) })
    expect(failureRule('robots_unreachable').retry).toBe('host')
  })

  test('an aborted fetch is no verdict', async () => {
    const { gate } = rig({ [robots]: { code: 'aborted' } })
    expect(await gate.ask(page)).toEqual({ kind: 'aborted' })
    expect(gate.verdictsOf('a.test')).toEqual({})
  })

  test.each([['broken', 'coding is broken'], ['deadly', 'their life']])('a file that cannot be read (%s) is not the permission to fetch everything', async (body, why) => {
    const { gate, held } = rig({ [robots]: { status: 200, body } })
    expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable', detail: expect.stringContaining(why) })
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
    expect(held()).toBe(0)
  })

  test('a file without rules allows everything, and may ask for a delay', async () => {
    const { gate } = rig({ [robots]: { status: 200, body: 'crawl-delay: 5\n' } })
    await gate.ask(page)
    expect(gate.check(page)).toEqual({ kind: 'allowed', crawlDelayMs: 5_000 })
    expect(gate.verdictsOf('a.test')).toMatchObject({ 'https://a.test': { rule: 'allow', crawlDelayMs: 5_000 } })
  })

  test('a delay beyond the bound is taken as the bound', async () => {
    const { gate } = rig({ [robots]: { status: 200, body: 'crawl-delay: 86400\nDisallow: /x\n' } })
    await gate.ask(page)
    expect(gate.check(page)).toEqual({ kind: 'allowed', crawlDelayMs: limits.crawlDelayMsMax })
  })
})

test('robots.txt itself is always allowed, before any verdict and against any', async () => {
  const { gate } = rig({ [robots]: { status: 200, body: 'Disallow: /\n' } })
  expect(gate.check(robots)).toEqual({ kind: 'allowed' })
  await gate.ask(page)
  expect(gate.check(robots)).toEqual({ kind: 'allowed' })
  expect(gate.check('https://a.test/robots.txt.bak')).toEqual({ kind: 'denied' })
})

test('sitemaps are those of the file, resolved where it was read, http(s) alone, each once, and outlive its restart', async () => {
  const body = 'sitemap:/a.xml\nsitemap:https://cdn.test/b.xml\nsitemap:ftp://a.test/c\nsitemap:https://other.test/a.xml\nsitemap:http://\n'
  const { gate } = rig({ ...chain(1), 'https://other.test/1': { status: 200, body } })
  expect(gate.sitemapsOf(page)).toEqual([])
  await gate.ask(page)
  const sitemaps = ['https://other.test/a.xml', 'https://cdn.test/b.xml']
  expect(gate.sitemapsOf(page)).toEqual(sitemaps)
  expect(gate.stats().textBytes).toBe(sitemaps.join('').length)
  expect(gate.sitemapsOf('http://a.test/')).toEqual([])
  const stored = gate.verdictsOf('a.test')
  expect(rig({}, { stored: () => stored }).gate.sitemapsOf('https://a.test/x')).toEqual(sitemaps)
})

const chain = (hops: number): Record<string, Answer> => Object.fromEntries(Array.from({ length: hops }, (_, at) => [
  at === 0 ? robots : `https://other.test/${at}`, { status: 301, headers: ['location', `https://other.test/${at + 1}`] },
]))

describe('redirects', () => {
  test('are followed five times, also to another origin, and the rules are those of the first', async () => {
    const { gate, requests } = rig({ ...chain(5), 'https://other.test/5': rules })
    await gate.ask(page)
    expect(requests).toHaveLength(6)
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    expect(gate.check('https://other.test/private/page')).toEqual({ kind: 'unknown' })
  })

  test('beyond five are as if there were no file', async () => {
    const { gate, requests, held } = rig({ ...chain(6), 'https://other.test/6': rules })
    await gate.ask(page)
    expect(requests).toHaveLength(6)
    expect(gate.check(page)).toEqual({ kind: 'allowed' })
    expect(held()).toBe(0)
  })

  test.each([[[]], [['location', 'file:///etc/passwd']], [['location', 'http://']]])('with a target that is none (%s) are as if there were no file', async (headers) => {
    const { gate } = rig({ [robots]: { status: 302, headers } })
    await gate.ask(page)
    expect(gate.check(page)).toEqual({ kind: 'allowed' })
  })

  test('to a host that fails do not charge this one with its code', async () => {
    const { gate } = rig({ ...chain(1), 'https://other.test/1': { code: 'dns_not_found' } })
    expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable' })
  })
})

describe('the life of a verdict', () => {
  test.each<[string[], number]>([
    [[], dayMs], [['cache-control', 'max-age=3600'], 3_600_000], [['Cache-Control', 'public, MAX-AGE="7200"'], 7_200_000],
    [['cache-control', 'max-age=0'], limits.robotsAgeMsMin], [['cache-control', 'no-store'], limits.robotsAgeMsMin], [['cache-control', 'private, no-cache'], limits.robotsAgeMsMin],
    [['cache-control', 'max-age=99999999'], dayMs], [['cache-control', 's-maxage=60'], dayMs], [['cache-control', 'x-max-age=60'], dayMs], [['cache-control', 'max-age=x'], dayMs],
  ])('with %j is %d ms', async (headers, lifeMs) => {
    const { gate, clock } = rig({ [robots]: { ...rules, headers } })
    await gate.ask(page)
    clock.advance(lifeMs - 1)
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    clock.advance(1)
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
  })

  test('goes on for a week while the file cannot be had, asked for again every five minutes', async () => {
    const { gate, clock, requests, web } = rig({ [robots]: rules })
    await gate.ask(page)
    web.set(robots, { status: 503 })
    clock.advance(dayMs)
    expect(await gate.ask(page)).toEqual({ kind: 'known' })
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    clock.advance(limits.robotsAgeMsMin)
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
    expect(requests).toHaveLength(2)
    // What is stored keeps its own expiry.
    expect(gate.verdictsOf('a.test')).toMatchObject({ 'https://a.test': { expiresAtMs: clock.wallMs() - limits.robotsAgeMsMin } })
    clock.advance(limits.robotsStaleMsMax - limits.robotsAgeMsMin)
    expect(await gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable' })
    web.set(robots, { status: 404 })
    await gate.ask(page)
    expect(gate.check(page)).toEqual({ kind: 'allowed' })
  })

  test('and says so when the network, and not the host, may be why: an older verdict is no sign that there was an answer', async () => {
    const { gate, clock, web } = rig({ [robots]: rules })
    await gate.ask(page)
    web.set(robots, { code: 'timeout' })
    clock.advance(dayMs)
    expect(await gate.ask(page)).toEqual({ kind: 'known', fetch: { code: 'timeout', timings: {} } })
    expect(await rig({ [robots]: { code: 'timeout' } }).gate.ask(page)).toMatchObject({ kind: 'failed', code: 'robots_unreachable', fetch: { code: 'timeout' } })
  })
})

describe('asking', () => {
  test('is done once for all who wait, and for each origin apart', async () => {
    let answer!: (value: unknown) => void
    const { gate, requests } = rig({ [robots]: new Promise((resolve) => { answer = resolve }), 'http://a.test/robots.txt': { status: 200, body: 'Disallow: /http/\n' } })
    const all = Array.from({ length: 10 }, () => gate.ask(page))
    await gate.ask('http://a.test/x')
    expect(gate.stats().inFlight).toBe(1)
    answer(rules)
    expect(new Set((await Promise.all(all)).map(({ kind }) => kind))).toEqual(new Set(['known']))
    expect(requests).toEqual([robots, 'http://a.test/robots.txt'])
    expect(gate.check('http://a.test/private/page')).toEqual({ kind: 'allowed' })
    expect(gate.check('http://a.test/http/')).toEqual({ kind: 'denied' })
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    expect(Object.keys(gate.verdictsOf('a.test'))).toEqual(['http://a.test', 'https://a.test'])
  })

  test('hands the reader the body, all its codings and our name', async () => {
    const seen: unknown[] = []
    const readRobots: ReadRobots = async ({ body, contentEncoding, isCut }, token) => { seen.push(Buffer.from(body).toString(), contentEncoding, isCut, token); return { lines: '' } }
    const { gate } = rig({ [robots]: { status: 200, body: 'bytes', headers: ['Content-Encoding', 'identity', 'Content-Encoding', 'br'] } }, { readRobots, userAgent: 'MyBot/2.1 (+https://a.test)' })
    await gate.ask(page)
    expect(seen).toEqual(['bytes', 'identity, br', false, 'MyBot'])
  })
})

describe('what is stored', () => {
  const storedRules: RobotsVerdict = { 'https://a.test': { rule: 'rules', lines: '-/private/\n', status: 200, expiresAtMs: 1_700_000_000_000 + 1_000 } }

  test('is in force again after a restart, for as long as it was to live', async () => {
    const { gate, clock, requests } = rig({}, { stored: (host) => (host === 'a.test' ? storedRules : undefined) })
    expect(gate.check(page)).toEqual({ kind: 'denied' })
    expect(gate.check('https://b.test/')).toEqual({ kind: 'unknown' })
    expect(requests).toEqual([])
    clock.advance(1_000)
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
  })

  test('of rules in the form of an older version is asked for again', () => {
    const old = { 'https://a.test': { ...storedRules['https://a.test']!, lines: undefined, text: 'User-agent: *\nDisallow: /private/\n' } } as unknown as RobotsVerdict
    expect(rig({}, { stored: () => old }).gate.check(page)).toEqual({ kind: 'unknown' })
  })

  test('of a clock that was wrong lives a day at most', async () => {
    const far = { 'https://a.test': { rule: 'allow' as const, expiresAtMs: 9e15 } }
    const { gate, clock } = rig({}, { stored: () => far })
    expect(gate.check(page)).toEqual({ kind: 'allowed' })
    clock.advance(dayMs)
    expect(gate.check(page)).toEqual({ kind: 'unknown' })
  })

  test('is what a gate gives to the next one', async () => {
    const first = rig({ [robots]: { ...rules, body: 'crawl-delay: 3\nDisallow: /private/\n' } })
    await first.gate.ask(page)
    const text = JSON.stringify(first.gate.verdictsOf('a.test'))
    const second = rig({}, { stored: () => JSON.parse(text) as RobotsVerdict })
    for (const url of [page, 'https://a.test/']) expect(second.gate.check(url)).toEqual(first.gate.check(url))
  })

  test('a failure is stored as "nothing" and never in force', async () => {
    const { gate } = rig({ [robots]: { status: 500 } })
    await gate.ask(page)
    expect(gate.verdictsOf('a.test')).toMatchObject({ 'https://a.test': { rule: 'disallow' } })
    expect(gate.check('https://a.test/')).toEqual({ kind: 'unknown' })
  })
})

describe('memory', () => {
  test('is bounded in verdicts: the least recently used host is asked again', async () => {
    const { gate, requests } = rig({}, { verdictsMax: 3 })
    for (let at = 0; at < 1_000; at++) await gate.ask(`https://h${at}.test/`)
    expect(gate.stats()).toMatchObject({ verdicts: 3, inFlight: 0 })
    expect(gate.check('https://h999.test/')).toEqual({ kind: 'allowed' })
    expect(gate.check('https://h997.test/')).toEqual({ kind: 'allowed' })
    await gate.ask('https://h1000.test/')
    expect(gate.check('https://h998.test/')).toEqual({ kind: 'unknown' })
    expect(gate.check('https://h997.test/')).toEqual({ kind: 'allowed' })
    expect(requests).toHaveLength(1_001)
  })

  test('is bounded in bytes of text', async () => {
    const body = Array.from({ length: 100 }, (_, at) => `Disallow: /${1_000 + at}/0123456789\n`).join('')
    const pages = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`https://h${at}.test/robots.txt`, { status: 200, body }]))
    const { gate } = rig(pages, { textBytesMax: 5_000 })
    for (let at = 0; at < 100; at++) await gate.ask(`https://h${at}.test/`)
    expect(gate.stats().textBytes).toBeLessThanOrEqual(5_000)
    expect(gate.stats().verdicts).toBe(2)
  })

  test('is bounded in the origins of a host: the oldest verdict is asked for again', async () => {
    const { gate } = rig()
    for (let port = 1; port <= 1_000; port++) await gate.ask(`https://a.test:${port}/`)
    expect(gate.stats()).toMatchObject({ hosts: 1, verdicts: limits.robotsOriginsMax })
    expect(Object.keys(gate.verdictsOf('a.test'))).toHaveLength(limits.robotsOriginsMax)
    expect([gate.check('https://a.test:1000/').kind, gate.check(`https://a.test:${1_000 - limits.robotsOriginsMax}/`).kind]).toEqual(['allowed', 'unknown'])
  })

  test('holds nothing for hosts that were only looked at', () => {
    const { gate } = rig()
    for (let at = 0; at < 1_000; at++) gate.check(`https://h${at}.test/`)
    expect(gate.stats()).toEqual({ hosts: 0, verdicts: 0, textBytes: 0, inFlight: 0 })
  })
})

test('our name for robots.txt is the user agent up to its first slash or space, or what a compatible Mozilla names', () => {
  expect(productTokenOf('MyBot/1.0 (+https://example.com)')).toBe('MyBot')
  expect(productTokenOf('My-Bot (x)')).toBe('My-Bot')
  expect(productTokenOf('MyBot')).toBe('MyBot')
  expect(productTokenOf('Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)')).toBe('ExampleBot')
  expect(productTokenOf('Mozilla/5.0 (X11; Linux x86_64)')).toBe('Mozilla')
})

describe('over the network', () => {
  let server: FaultServer
  beforeAll(async () => { server = await startFaultServer() })
  afterAll(() => server.close())

  test('a robots.txt that redirects to the metadata service is not followed there, and the host is not open', async () => {
    const names = ['metadata.test', 'loop.test', 'unavailable.test', 'missing.test', 'plain.test']
    const { fetcher } = makeRig({ allowAddress: ['127.0.0.0/8'], pins: Object.fromEntries(names.map((name) => [name, '127.0.0.1'])) })
    const gate = new RobotsGate({ fetcher, readRobots: readAsIs, userAgent: 'MyBot/1.0', clock: new TestClock({ wallMs: 1_700_000_000_000 }), deadlineMs: 10_000, stored: () => undefined })
    const ask = (name: string): ReturnType<RobotsGate['ask']> => gate.ask(server.urlOf('http', '/', name))
    expect(await ask('metadata.test')).toMatchObject({ kind: 'failed', code: 'robots_unreachable', detail: expect.stringContaining('address_refused') })
    expect(await ask('unavailable.test')).toMatchObject({ kind: 'failed', code: 'robots_unreachable', retryAfterMs: 120_000 })
    for (const name of ['loop.test', 'missing.test', 'plain.test']) expect(await ask(name)).toEqual({ kind: 'known' })
    expect(gate.check(server.urlOf('http', '/private/x', 'loop.test'))).toEqual({ kind: 'allowed' })
    expect(gate.check(server.urlOf('http', '/private/x', 'plain.test'))).toEqual({ kind: 'denied' })
    expect(fetcher.stats().bodyBytesReserved).toBe(0)
    await fetcher.close()
  })
})

describe('an origin that cannot be asked, of a host whose other origin answers', () => {
  test('is not charged to its host: its URLs are put off with its code, and it is asked again a minute later', async () => {
    const { gate, clock, requests } = rig({ 'http://a.test:1/robots.txt': { code: 'connect_refused' } })
    expect(await gate.ask('http://a.test/')).toEqual({ kind: 'known' })
    expect(await gate.ask('http://a.test:1/x')).toMatchObject({ kind: 'failed', code: 'connect_refused', isOfOrigin: true })
    expect(gate.check('http://a.test:1/x')).toEqual({ kind: 'put_off', code: 'connect_refused', waitMs: limits.robotsOriginRetryMs })
    expect(gate.check('http://a.test/y')).toMatchObject({ kind: 'allowed' })
    clock.advance(limits.robotsOriginRetryMs)
    expect(gate.check('http://a.test:1/x')).toEqual({ kind: 'unknown' })
    expect(requests).toEqual(['http://a.test/robots.txt', 'http://a.test:1/robots.txt'])
  })

  test('is charged to its host when no other answers', async () => {
    const { gate } = rig({ 'http://a.test:1/robots.txt': { code: 'connect_refused' }, 'http://a.test:2/robots.txt': { code: 'connect_refused' } })
    for (const port of [1, 2]) {
      const answer = await gate.ask(`http://a.test:${port}/`)
      expect(answer).toMatchObject({ kind: 'failed', code: 'connect_refused' })
      expect(answer).not.toHaveProperty('isOfOrigin')
      expect(gate.check(`http://a.test:${port}/`)).toEqual({ kind: 'unknown' })
    }
  })
})

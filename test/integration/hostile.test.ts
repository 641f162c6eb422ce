import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failureRule } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { ParsedResult, QueuedUrl } from '../../engine/core/types.ts'
import type { FetchedResponse, FetchResult } from '../../engine/fetch/fetcher.ts'
import { pageMetaOf } from '../../engine/page-meta.ts'
import { LinkCollector } from '../../threads/html/links.ts'
import { Inflater } from '../../threads/inflate.ts'
import { parsePage, type ParseTools } from '../../threads/parse-worker.ts'
import { makeRig, until, type Rig } from '../support/fetch-rig.ts'
import { hostileRows, type HostileRow } from '../support/hostile-rows.ts'
import { startHostileServer, type HostileServer } from '../support/hostile-server.ts'
import { TestClock } from '../support/test-clock.ts'

/** As by default. */
const bodyBytesMax = 250 * 1_024
const deadlineMs = 30_000

interface Ended {
  readonly result: FetchResult
  /** By the clock of the fetcher, which only the test moves. */
  readonly tookMs: number
  /** Absent when there was no answer to parse. */
  parsed?: ParsedResult
}

const clock = new TestClock()
const ended = new Map<string, Ended>()
const rejections: unknown[] = []
let server: HostileServer
let rig: Rig

const rowsThatEndBy = (...by: readonly HostileRow['endsBy'][]): HostileRow[] => hostileRows.filter((row) => by.includes(row.endsBy))
const outcomeOf = ({ result, parsed }: Ended): string => (result.ok ? `${parsed!.outcome} ${parsed!.code ?? ''}` : `failed ${result.code}`).trim()

/** What a crawl does with a page: robots.txt first, and then the page, on the same connection if it stays open. */
async function fetchRow(row: HostileRow, onBody: () => void): Promise<void> {
  const url = server.url(row)
  if (row.listener === 'http') {
    const robots = await rig.get(new URL('/robots.txt', url).href)
    expect(robots).toMatchObject({ ok: true, status: 404 })
    if (robots.ok) robots.release()
  }
  const startMs = clock.nowMs()
  const result = await rig.get(url, { bodyBytesMax, deadlineMs, onBody })
  ended.set(row.name, { result, tookMs: clock.nowMs() - startMs })
}

/** What a worker does with an answer. */
async function parseAnswer(row: HostileRow, response: FetchedResponse, inflater: Inflater): Promise<ParsedResult> {
  const tools: ParseTools = { inflater, collector: new LinkCollector({ include: [], exclude: [] }), agent: 'sluice', extractor: undefined, sink: undefined, nowMs: () => 0 }
  const url: QueuedUrl = { row: new Uint8Array(0), host: new URL(server.url(row)).hostname, sequence: 1, fingerprint: new Uint8Array(16), url: server.url(row), depth: 0, priority: 0, attempts: 0 }
  const page = { meta: pageMetaOf(url, response, true), redirects: 0, headerBlock: response.headerBlock, body: Buffer.concat(response.body) }
  response.release()
  return await parsePage(page, tools)
}

beforeAll(async () => {
  process.on('unhandledRejection', (reason) => rejections.push(reason))
  server = await startHostileServer()
  rig = makeRig({ clock, budgetBytes: hostileRows.length * bodyBytesMax, pins: server.resolve, ca: server.caFile })
  const bodies = new Set<HostileRow>()
  const fetches = new Map(hostileRows.map((row) => [row, fetchRow(row, () => bodies.add(row))]))
  const all = (rows: readonly HostileRow[]): Promise<unknown> => Promise.all(rows.map((row) => fetches.get(row)))
  // The clock stands still: whatever ends now is ended by what came.
  await all(rowsThatEndBy('itself'))
  await until(() => rowsThatEndBy('silence').every((row) => bodies.has(row)))
  await until(() => rowsThatEndBy('connect').every((row) => server.traffic(row).connections === 1))
  await until(() => rowsThatEndBy('deadline').every((row) => server.traffic(row).requests === 1))
  clock.advance(limits.bodyStallMsMax)
  await all(rowsThatEndBy('silence', 'connect'))
  clock.advance(deadlineMs - limits.bodyStallMsMax)
  await all(hostileRows)
  const inflater = new Inflater(bodyBytesMax)
  for (const row of hostileRows) {
    const of = ended.get(row.name)!
    if (of.result.ok) of.parsed = await parseAnswer(row, of.result, inflater)
  }
})
afterAll(() => server.close())

describe.each(rowsThatEndBy('itself', 'silence', 'connect', 'deadline'))('the host $name', (row) => {
  test(`ends as ${row.outcome} ${row.code ?? ''} by ${row.endsBy}, and takes no more bytes than it may`, () => {
    const of = ended.get(row.name)!
    expect(outcomeOf(of), of.result.ok ? '' : of.result.detail).toBe(`${row.outcome} ${row.code ?? ''}`.trim())
    expect(of.tookMs).toBe({ itself: 0, silence: limits.bodyStallMsMax, connect: limits.connectTimeoutMs, deadline: deadlineMs }[row.endsBy])
    // Also after its end, over a connection that was kept.
    expect(server.traffic(row).bytesSent).toBeLessThanOrEqual(row.bytesMax)
    if (!of.result.ok) expect(of.result.detail).not.toMatch(/[\r\n]/)
  })
})

test('what a row says of its host is what the failure table says of its code', () => {
  for (const { name, code, hostNext, listener } of hostileRows) {
    const retry = code === undefined ? 'never' : failureRule(code).retry
    // The host is given up at once when its robots.txt meets what no second try can change.
    const expected = retry === 'host' ? 'rests' : retry === 'never' && listener !== 'http' ? 'given_up' : 'goes_on'
    expect([name, hostNext]).toEqual([name, expected])
  }
})

test('no connection is left, nothing is reserved, and nothing was thrown that nobody caught', async () => {
  await rig.fetcher.close()
  await server.drained()
  expect(rig.fetcher.stats()).toMatchObject({ inFlight: 0, socketsOpen: 0, originsKept: 0, bodiesWaiting: 0, bodyBytesReserved: 0 })
  expect(clock.timersCount).toBe(0)
  expect(rejections).toEqual([])
})

test('of a page of a million links 10,000 are taken and the others counted', () => {
  const { links, refused } = ended.get('links-1m')!.parsed!
  expect(links.count).toBe(limits.linksPerPageMax)
  expect(refused.too_many).toBeGreaterThan(0)
})

test('links with control characters become addresses of visible ASCII, or none', () => {
  const { links, refused } = ended.get('links-control')!.parsed!
  const urls = Array.from({ length: links.count }, (_, at) => links.url(at))
  expect(urls.filter((url) => !/^http:\/\/[\x21-\x7e]+$/.test(url))).toEqual([])
  // The Fetch and URL standards drop tabs and line ends, and no host may hold a control character.
  expect(urls.filter((url) => /%0[9AD]/i.test(url))).toEqual([])
  expect(urls.filter((url) => /\/\/a[^b]*%0/.test(url))).toEqual([])
  expect(refused.invalid).toBeGreaterThan(30)
})

test('a redirect to an address that is too long is recorded and not followed, one that is no text is followed byte by byte', () => {
  expect(ended.get('location-10kb')!.parsed!.links.count).toBe(0)
  const { links } = ended.get('location-no-text')!.parsed!
  expect(new URL(links.url(0)).pathname).toBe('/%FF%FE%80%9F')
})

test('an encoding that does not exist, or is not to be used, is read as another and said to be unknown', () => {
  const recordOf = (name: string): Record<string, unknown> => JSON.parse(`${Buffer.from(ended.get(name)!.parsed!.line).toString()}}`) as Record<string, unknown>
  expect(recordOf('charset-utf-7')).toMatchObject({ charset: 'utf-8', unknownCharset: 'utf-7' })
  expect(recordOf('charset-utf-32')).toMatchObject({ charset: 'utf-16le' })
  expect(recordOf('charset-iso-2022')).toMatchObject({ charset: 'iso-2022-jp' })
  expect(String(recordOf('charset-10kb')['unknownCharset']).length).toBeLessThan(100)
})

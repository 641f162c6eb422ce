import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import type { FetchedResponse, FetchResult } from '../../engine/fetch/fetcher.ts'
import { startFaultServer, type FaultServer, type Peer } from '../support/fault-server.ts'
import { makeRig, until, type Rig } from '../support/fetch-rig.ts'
import { TestClock } from '../support/test-clock.ts'

let server: FaultServer
let rig: Rig

beforeAll(async () => { server = await startFaultServer() })
afterAll(() => server.close())
afterEach(async () => {
  await rig.fetcher.close()
  expect(rig.budget.reservedBytes).toBe(0)
  await server.drained()
})

function answered(result: FetchResult): FetchedResponse {
  if (!result.ok) throw new Error(`failed with ${result.code}: ${result.detail}`)
  result.release()
  return result
}

/** Fetches a page whose server is the test. The clock stands still, so that nothing but what comes can end the fetch. */
async function fetchFrom(play: (peer: Peer) => void, listener: 'http' | 'https' = 'http'): Promise<FetchResult> {
  const path = '/manual/framing'
  const result = rig.get(server.urlOf(listener, path), { bodyBytesMax: 100_000 })
  play(await server.taken(path))
  return await result
}

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunkOf = (bytes: number): string => `${bytes.toString(16)}\r\n${'b'.repeat(bytes)}\r\n`

describe.each(['http', 'https'] as const)('over %s, what comes besides a body', (listener) => {
  test('may be as much as chunks of one byte need', async () => {
    rig = makeRig({ clock: new TestClock(), ca: server.caFile })
    const result = answered(await fetchFrom((peer) => peer.write(`${head}${chunkOf(1).repeat(50_000)}0\r\n\r\n`), listener))
    expect(result).toMatchObject({ bodyBytes: 50_000, truncated: false })
  })

  test('is bounded for each response by itself, and not for the connection', async () => {
    rig = makeRig({ clock: new TestClock(), ca: server.caFile })
    const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
    const fitting = interim.repeat(Math.floor(0.7 * limits.framingBytesMax / interim.length))
    for (let at = 0; at < 3; at++) answered(await fetchFrom((peer) => { peer.write(fitting); peer.answer(200, [], 'x') }, listener))
    expect(rig.fetcher.stats()).toMatchObject({ connects: 1, reuses: 2 })
    expect(await fetchFrom((peer) => { peer.write(fitting.repeat(6)); peer.answer(200, [], 'x') }, listener)).toMatchObject({ code: 'headers_too_large' })
  })

  test('is not the body of a response that waits for room', async () => {
    rig = makeRig({ clock: new TestClock(), ca: server.caFile, budgetBytes: 150_000 })
    const first = await fetchFrom((peer) => peer.write(`${head}${chunkOf(1)}0\r\n\r\n`), listener)
    let waiting!: Peer
    const second = fetchFrom((peer) => { waiting = peer; peer.write(head) }, listener)
    await until(() => rig.budget.waiting === 1)
    waiting.write(`${chunkOf(99_000)}0\r\n\r\n`)
    // Turns of the loop in which the socket reads what it has room for.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    answered(first)
    expect(answered(await second)).toMatchObject({ bodyBytes: 99_000 })
  })
})

test.each(['http', 'https'] as const)('over %s, every byte of a response counts for the ceilings of the crawl, whatever it is for', async (listener) => {
  const counted: number[] = []
  rig = makeRig({ clock: new TestClock(), ca: server.caFile, rates: { began: () => 0, ended: (_, bytes) => counted.push(bytes), resent: () => {} } })
  const sent = [
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${head}1;extension=${'e'.repeat(1_000)}\r\nb\r\n0\r\nTrailer: t\r\n\r\n`,
    `HTTP/1.1 404 ${'reason '.repeat(100)}\r\nContent-Length: 5\r\n\r\nhello`,
  ]
  for (const bytes of sent) answered(await fetchFrom((peer) => peer.write(bytes), listener))
  const cut = 'HTTP/1.1 200 OK\r\nContent-Ty'
  expect(await fetchFrom((peer) => { peer.write(cut); peer.socket.end() }, listener)).toMatchObject({ code: 'connection_closed' })
  expect(counted).toEqual([...sent, cut].map(({ length }) => length))
})

test('a byte now and then holds a fetch until its deadline, and no longer', async () => {
  const clock = new TestClock()
  rig = makeRig({ clock })
  let isReading = false
  const result = rig.get(server.url('/manual/framing'), { deadlineMs: 60_000, onBody: () => { isReading = true } })
  const peer = await server.taken('/manual/framing')
  peer.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n')
  await until(() => isReading)
  for (let atMs = 6_000; atMs < 60_000; atMs += 6_000) {
    clock.advance(6_000)
    peer.write('b')
    // Turns of the loop in which the byte arrives.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(rig.fetcher.stats().inFlight).toBe(1)
  clock.advance(6_000)
  expect(await result).toMatchObject({ code: 'timeout', detail: 'no complete answer within 60000 ms', timings: { totalMs: 60_000 } })
})

test.each(['\r\n', ' ', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'])('a kept connection over which %j comes unasked is closed, and not used again', async (unasked) => {
  rig = makeRig({ clock: new TestClock() })
  let kept!: Peer
  answered(await fetchFrom((peer) => { kept = peer; peer.answer(200, [], 'x') }))
  expect(rig.fetcher.stats()).toMatchObject({ socketsIdle: 1 })
  const closed = new Promise((resolve) => kept.socket.once('close', resolve))
  kept.write(unasked)
  await closed
  expect(rig.fetcher.stats()).toMatchObject({ socketsIdle: 0, socketsOpen: 0 })
  answered(await fetchFrom((peer) => peer.answer(200, [], 'x')))
  expect(rig.fetcher.stats()).toMatchObject({ connects: 2, reuses: 0, staleRetries: 0 })
})

describe('a head', () => {
  test('of many short fields counts as long as it is, blanks and line ends too', async () => {
    rig = makeRig({ clock: new TestClock() })
    const fields = Math.ceil(limits.headerBytesMax / 'a: \r\n'.length)
    answered(await fetchFrom((peer) => peer.answer(200, Array.from({ length: fields - 10 }, () => 'a:'))))
    expect(await fetchFrom((peer) => peer.answer(200, Array.from({ length: fields + 1 }, () => 'a:')))).toMatchObject({ code: 'headers_too_large' })
  })

  test('with a long reason phrase keeps the beginning of it', async () => {
    rig = makeRig({ clock: new TestClock() })
    const result = answered(await fetchFrom((peer) => peer.write(`HTTP/1.1 404 ${'reason '.repeat(2_000)}\r\nContent-Length: 0\r\n\r\n`)))
    expect(result.statusText).toBe('reason '.repeat(2_000).slice(0, limits.reasonCharsMax))
  })

  test.each([204, 304])('of status %s is a whole answer, whatever length it names', async (status) => {
    rig = makeRig({ clock: new TestClock() })
    const result = answered(await fetchFrom((peer) => peer.write(`HTTP/1.1 ${status} Status\r\nETag: "1"\r\nContent-Length: 500\r\n\r\n`)))
    expect(result).toMatchObject({ status, bodyBytes: 0, truncated: false })
    expect(rig.fetcher.stats()).toMatchObject({ inFlight: 0, socketsIdle: 0 })
  })
})

/**
 * Whatever bytes a server writes, in whatever parts, and however it ends: the fetch ends, with a code of the table or an
 * answer within its bounds, nothing is thrown that nobody can catch, and nothing is left. undici's assertions in events
 * of a socket are what this looks for. Seeds are printed, though the order of events is the system's; FETCH_FUZZ=5000
 * plays so many rounds.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Random } from '../../engine/core/clock.ts'
import { failureTable } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import { startFaultServer, type FaultServer, type Peer } from '../support/fault-server.ts'
import { makeRig, until, type Rig } from '../support/fetch-rig.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { TestClock } from '../support/test-clock.ts'

const pieces = [
  'HTTP/1.1 200 OK\r\n', 'HTTP/1.0 200 OK\r\n', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 204 No Content\r\n', 'HTTP/1.1 304 Not Modified\r\n',
  'HTTP/1.1 000 None\r\n', 'HTTP/1.1 099 Low\r\n', 'HTTP/1.1 999 High\r\n', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n', 'HTTP/1.1 302 Found\r\nLocation: /\xff\r\n',
  'Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Content-Length: 100000\r\n', 'Content-Length: -1\r\n', 'Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip\r\n', 'Connection: close\r\n',
  'Connection: keep-alive\r\n', 'Keep-Alive: timeout=0\r\n', 'Keep-Alive: timeout=99999999999\r\n', 'Content-Type: text/html\r\n', 'Content-Type: image/png\r\n', 'Trailer: x\r\n', 'X: \0\r\n', 'X\r\n', ' folded\r\n',
  '\r\n', '\r\n', '\r\n', '\n', '\r', '5\r\nhello\r\n', '0\r\n\r\n', '0\r\n', 'ffffffffffffffffff\r\n', '1;x=y\r\nb\r\n', 'hello', '<a href=/>', '\x16\x03\x01', '\0', 'x'.repeat(20_000), 'a:\r\n'.repeat(5_000),
].map((text) => Buffer.from(text, 'latin1'))
/** Beginnings after which much of the rest makes sense. */
const starts = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n', 'HTTP/1.0 200 OK\r\n\r\n', 'HTTP/1.1 200 OK\r\n', '',
].map((text) => Buffer.from(text, 'latin1'))

const fetchesAtOnce = 20
const bodyBytesMax = 30_000

let server: FaultServer
/** Of the round that is played. */
let random: Random

async function playAll(): Promise<void> {
  for (;;) void play(await server.taken('/manual/fuzz'), random)
}

beforeAll(async () => {
  server = await startFaultServer()
  void playAll()
})
afterAll(() => server.close())

function answerOf(random: Random): readonly Buffer[] {
  const bytes = Buffer.concat([pick(random, starts), ...Array.from({ length: integer(random, 8) }, () => pick(random, pieces))])
  if (random() < 0.2 && bytes.length > 0) bytes[integer(random, bytes.length)] = integer(random, 256)
  const at = integer(random, bytes.length + 1)
  return random() < 0.5 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)]
}

async function play(peer: Peer, random: Random): Promise<void> {
  for (const part of answerOf(random)) {
    peer.write(part)
    for (let turns = integer(random, 4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
  }
  const end = pick(random, ['end', 'resetAndDestroy', 'destroy', 'stay'] as const)
  if (end !== 'stay') peer.socket[end]()
}

async function fetchMany(clock: TestClock, rig: Rig): Promise<void> {
  const all = Array.from({ length: fetchesAtOnce }, async () => {
    const result = await rig.get(server.url('/manual/fuzz'), { bodyBytesMax, deadlineMs: 60_000 })
    if (!result.ok) return expect(Object.keys(failureTable)).toContain(result.code)
    expect(result.bodyBytes).toBeLessThanOrEqual(bodyBytesMax)
    expect(result.headerBlock.length).toBeLessThanOrEqual(limits.headerBytesMax)
    // Given back a little later, so that others wait for theirs and their responses are paused.
    setImmediate(result.release)
  })
  while (rig.fetcher.stats().inFlight > 0) {
    for (let turn = 0; turn < 50 && rig.fetcher.stats().inFlight > 0; turn++) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(limits.bodyStallMsMax)
  }
  await Promise.all(all)
}

test('whatever comes, a fetch ends as an answer or as a failure of the table, and leaves nothing', { timeout: 600_000 }, async () => {
  await withSeeds(Number(process.env['FETCH_FUZZ'] ?? 12), async (seeded) => {
    random = seeded
    const clock = new TestClock()
    // Room for a few bodies only.
    const rig = makeRig({ clock, budgetBytes: 4 * bodyBytesMax })
    // The second time over what connections are left of the first.
    for (let time = 0; time < 2; time++) await fetchMany(clock, rig)
    await until(() => rig.budget.reservedBytes === 0)
    await rig.fetcher.close()
    expect(rig.fetcher.stats()).toMatchObject({ inFlight: 0, socketsOpen: 0, bodiesWaiting: 0, bodyBytesReserved: 0 })
    expect(clock.timersCount).toBe(0)
    await server.drained()
  })
})

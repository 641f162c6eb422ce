/** A body that is handed over as it comes: a server on 127.0.0.1 sends it, a sink takes it at its own pace. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import type { FetchRequest, FetchResult } from '../../engine/fetch/fetcher.ts'
import { makeRig, until, type Rig } from '../support/fetch-rig.ts'
import { TestClock } from '../support/test-clock.ts'

const CHUNK = limits.sitemapChunkBytesMax

let server: Server
let answer: (response: ServerResponse) => void

beforeEach(async () => {
  server = createServer((_, response) => answer(response))
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
})

afterEach(() => {
  server.close()
  server.closeAllConnections()
})

function fetchInto(rig: Rig, write: (chunk: Uint8Array) => Promise<boolean>, options: Partial<FetchRequest> = {}): Promise<FetchResult> {
  const { port } = server.address() as AddressInfo
  return rig.get(`http://127.0.0.1:${port}/`, { bodyBytesMax: 50 * 1_048_576, sink: { deadlineMs: 60_000, write }, ...options })
}

test('a body comes whole and in order, in chunks of one size however it was sent, and no more than a chunk of it is reserved', async () => {
  const body = Buffer.alloc(2 * CHUNK + 12_345, 'abcdefghijk')
  answer = (response) => {
    // A thousand small writes, and the rest in one.
    for (let at = 0; at < 1_000; at += 1) response.write(body.subarray(at, at + 1))
    response.end(body.subarray(1_000))
  }
  const rig = makeRig({ budgetBytes: CHUNK })
  const chunks: Uint8Array[] = []
  const reserved: number[] = []
  const result = await fetchInto(rig, async (chunk) => {
    chunks.push(chunk)
    reserved.push(rig.budget.reservedBytes)
    return true
  })
  expect(result).toMatchObject({ ok: true, truncated: false, bodyBytes: body.length, body: [] })
  expect(chunks.map(({ length }) => length)).toEqual([CHUNK, CHUNK, 12_345])
  expect(Buffer.compare(Buffer.concat(chunks), body)).toBe(0)
  expect(reserved).toEqual([CHUNK, CHUNK, CHUNK])
  if (result.ok) result.release()
  expect(rig.budget.reservedBytes).toBe(0)
  await rig.fetcher.close()
})

test('while a chunk is written the server is not read from, and that time does not count', async () => {
  const clock = new TestClock()
  const bodyBytes = 40 * 1_048_576
  let response: ServerResponse | undefined
  let sentBytes = 0
  answer = (given) => {
    response = given
    response.writeHead(200, { 'content-length': bodyBytes })
    const piece = Buffer.alloc(64 * 1_024)
    const send = (): void => {
      while (sentBytes < bodyBytes) {
        sentBytes += piece.length
        if (!given.write(piece)) return void given.once('drain', send)
      }
      given.end()
    }
    send()
  }
  const rig = makeRig({ clock })
  let goOn: (() => void) | undefined
  let writes = 0
  const fetched = fetchInto(rig, async () => {
    writes += 1
    if (writes === 1) await new Promise<void>((resolve) => { goOn = resolve })
    return true
  })
  await until(() => goOn !== undefined)
  // Longer than every deadline of the fetch, and than the bound on silence.
  clock.advance(3_600_000)
  // What the sockets' buffers of both sides hold is all that was taken from the server.
  let [before, turns] = [-1, 0]
  await until(() => {
    turns = sentBytes === before ? turns + 1 : 0
    before = sentBytes
    return turns > 200
  })
  expect(writes).toBe(1)
  expect(sentBytes).toBeLessThan(bodyBytes / 2)
  goOn!()
  expect(await fetched).toMatchObject({ ok: true, bodyBytes, truncated: false })
  expect(writes).toBe(bodyBytes / CHUNK)
  await rig.fetcher.close()
})

test('a body of which no more is wanted is cut there, and its connection is closed', async () => {
  answer = (response) => response.end(Buffer.alloc(10 * CHUNK))
  const rig = makeRig()
  let writes = 0
  expect(await fetchInto(rig, async () => (writes += 1) < 3)).toMatchObject({ ok: true, truncated: true })
  expect(writes).toBe(3)
  expect(rig.fetcher.stats().socketsIdle).toBe(0)
  await rig.fetcher.close()
})

test('a body is cut at its bound, and what came before it is written', async () => {
  answer = (response) => response.end(Buffer.alloc(10 * CHUNK))
  const rig = makeRig()
  let bytes = 0
  const result = await fetchInto(rig, async ({ length }) => {
    bytes += length
    return true
  }, { bodyBytesMax: CHUNK + 7 })
  expect(result).toMatchObject({ ok: true, truncated: true, bodyBytes: CHUNK + 7 })
  expect(bytes).toBe(CHUNK + 7)
  await rig.fetcher.close()
})

test('once a body has begun its own deadline holds, and silence ends it all the same', async () => {
  const clock = new TestClock()
  answer = (response) => response.write('x')
  const rig = makeRig({ clock })
  let hasBegun = false
  const fetched = fetchInto(rig, async () => true, { deadlineMs: 1_000, onBody: () => { hasBegun = true } })
  await until(() => hasBegun)
  clock.advance(limits.bodyStallMsMax - 1)
  expect(rig.fetcher.stats().inFlight).toBe(1)
  clock.advance(limits.bodyStallMsMax)
  expect(await fetched).toMatchObject({ ok: false, code: 'timeout', detail: 'no byte of the body for 10000 ms' })
  await rig.fetcher.close()
})

test('an abort while a chunk is written ends the fetch at once', async () => {
  answer = (response) => response.end(Buffer.alloc(10 * CHUNK))
  const rig = makeRig()
  const aborter = new AbortController()
  const fetched = fetchInto(rig, () => {
    aborter.abort()
    return new Promise(() => {})
  }, { signal: aborter.signal })
  expect(await fetched).toMatchObject({ ok: false, code: 'aborted' })
  expect(rig.budget.reservedBytes).toBe(0)
  await rig.fetcher.close()
})

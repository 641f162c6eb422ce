import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { stateOfOutcome, type Outcome, type UrlState } from '../../engine/core/types.ts'
import {
  Arena, decodeJson, decodePageRow, decodeState, encodeCount, encodeHostRow, encodeJson, encodePageRow, encodeState, decodeCount, factsOfHostRow,
  nameOfHostRow,
} from '../../storage/lmdb/codec.ts'
import { readyRow } from '../../storage/lmdb/layout.ts'
import { decodeQueueRow, encodeQueueRow, RowUrls } from '../../storage/lmdb/queue-row.ts'

const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => text.isWellFormed())
const bytes16 = fc.uint8Array({ minLength: 16, maxLength: 16 })
const outcomes = Object.keys(stateOfOutcome) as Outcome[]

function withoutAbsent<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T
}

const address = fc.tuple(
  fc.constantFrom('http://a.test', 'https://a.test', 'https://a.test:8443', 'http://b.test', 'https://A.test', 'x:'),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
).map(([start, rest]) => start + rest)
const rowUrls = fc.array(fc.record({ url: address, fingerprint: bytes16 }), { minLength: 1, maxLength: 20 })
const rowHead = fc.record({
  depth: fc.nat(65_535), priority: fc.nat(255), attempts: fc.nat(255), isAgain: fc.boolean(),
  referrer: fc.option(text, { nil: undefined }), redirectedFrom: fc.option(fc.array(text, { minLength: 1, maxLength: 20 }), { nil: undefined }),
  hasCookie: fc.option(fc.constant(true), { nil: undefined }),
}).map((head) => withoutAbsent(head) as Parameters<typeof encodeQueueRow>[2])

test('a row of the queue is read back as it was written, whatever its texts hold', () => {
  const arena = new Arena()
  fc.assert(fc.property(rowHead, rowUrls, (head, urls) => {
    const row = readyRow(new Uint8Array(8), 'ready', head.priority, 77)
    const { isAgain, ...shared } = head
    const value = encodeQueueRow(arena, 'a.test', head, urls)
    expect(decodeQueueRow(row, value, 'a.test')).toEqual(urls.map((url, index) => ({ url: { row, host: 'a.test', sequence: 77 + index, ...shared, ...url }, isAgain })))
  }))
})

test('a row without some of its URLs holds the others with their sequences', () => {
  const arena = new Arena()
  fc.assert(fc.property(rowHead, rowUrls, fc.uniqueArray(fc.nat(19)), (head, urls, given) => {
    const row = readyRow(new Uint8Array(8), 'later', head.priority, 77)
    const gone = new Set(given)
    const value = encodeQueueRow(arena, 'a.test', head, urls)
    const left = new RowUrls(value).without(arena, gone)
    const kept = urls.map(({ url }, index) => ({ url, sequence: 77 + index })).filter((_, index) => !gone.has(index))
    const found = left === undefined ? [] : decodeQueueRow(row, left, 'a.test').map(({ url: { url, sequence, isLater } }) => ({ url, sequence, isLater }))
    expect(found).toEqual(kept.map((each) => ({ ...each, isLater: true })))
  }))
})

test('a page row is read back as it was written', () => {
  const arena = new Arena()
  fc.assert(fc.property(fc.record({
    url: text, status: fc.nat(999), outcome: fc.constantFrom(...outcomes), fetchedAtMs: fc.nat({ max: 2 ** 48 - 1 }), depth: fc.nat(65_535), priority: fc.nat(255),
    code: fc.option(text, { nil: undefined }), contentHash: fc.option(bytes16, { nil: undefined }),
    etag: fc.option(text, { nil: undefined }), lastModified: fc.option(text, { nil: undefined }),
    payload: fc.option(fc.record({ payloadDigest: fc.uint8Array({ minLength: 20, maxLength: 20 }), payloadAtMs: fc.nat({ max: 2 ** 48 - 1 }) }), { nil: undefined }), goneTimes: fc.option(fc.integer({ min: 1, max: 255 }), { nil: undefined }),
    due: fc.option(fc.record({ atMs: fc.nat({ max: 2 ** 48 - 1 }), intervalMs: fc.nat({ max: 2 ** 48 - 1 }) }), { nil: undefined }),
  }), ({ payload, ...page }) => {
    const row = withoutAbsent({ ...page, ...payload }) as Parameters<typeof encodePageRow>[1]
    expect(decodePageRow(encodePageRow(arena, row))).toEqual(row)
  }))
})

function decodeUrl(value: Uint8Array): unknown {
  return decodeQueueRow(readyRow(new Uint8Array(8), 'ready', 0, 1), value, 'a.test')
}

test('every row that lost its end, or has bytes behind it, is called corrupt', () => {
  const arena = new Arena()
  const page = encodePageRow(arena, { url: 'http://a.test/', status: 200, outcome: 'ok', fetchedAtMs: 1, depth: 1, priority: 1, code: 'c', contentHash: new Uint8Array(16), etag: 'e', lastModified: 'l' })
  const url = encodeQueueRow(arena, 'a.test', { depth: 1, priority: 1, attempts: 1, isAgain: false, referrer: 'r', redirectedFrom: ['x'] }, [{ url: 'http://a.test/', fingerprint: new Uint8Array(16) }])
  // A row of the queue without URLs is whole; it is never written.
  const bare = new RowUrls(url).headBytes
  for (const [whole, decode] of [[page, decodePageRow], [url, decodeUrl]] as const) {
    for (let length = 0; length < whole.length; length += 1) if (decode === decodePageRow || length !== bare) expect(() => decode(whole.subarray(0, length))).toThrow(expect.objectContaining({ code: 'store_corrupt' }))
    expect(() => decode(Buffer.concat([whole, Buffer.alloc(1)]))).toThrow(expect.objectContaining({ code: 'store_corrupt' }))
  }
  for (const decode of [() => decodeState(Uint8Array.of(9)), () => decodeState(new Uint8Array(0)), () => decodeJson(Buffer.from('{'))]) {
    expect(decode).toThrow(expect.objectContaining({ code: 'store_corrupt' }))
  }
})

test('states, counts, host rows and JSON are read back as they were written', () => {
  const arena = new Arena()
  for (const state of ['pending', 'done', 'failed', 'dropped', 'excluded'] satisfies UrlState[]) expect(decodeState(encodeState(arena, state))).toBe(state)
  for (const outcome of outcomes) expect(decodeState(encodeState(arena, stateOfOutcome[outcome], outcome))).toBe(stateOfOutcome[outcome])
  for (const count of [0, 1, 2 ** 32 - 1]) expect(decodeCount(encodeCount(arena, count))).toBe(count)
  const host = encodeHostRow(arena, 'bücher.test', { failureCode: 'ü', limit: 2 })
  expect([nameOfHostRow(host), factsOfHostRow(host)]).toEqual(['bücher.test', { failureCode: 'ü', limit: 2 }])
  expect(factsOfHostRow(encodeHostRow(arena, 'a.test', {}))).toEqual({})
  expect(decodeJson(encodeJson(arena, { text: '€'.repeat(200_000) }))).toEqual({ text: '€'.repeat(200_000) })
})

test('a row that was cut from the arena is never written again', () => {
  const arena = new Arena()
  const rows = Array.from({ length: 20_000 }, (_, index) => encodeCount(arena, index))
  encodeJson(arena, { text: 'x'.repeat(1_000_000) })
  expect(rows.every((row, index) => decodeCount(row) === index)).toBe(true)
})

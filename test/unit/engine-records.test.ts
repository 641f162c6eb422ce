import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { resolveRunLimits } from '../../engine/core/options.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import type { PageMeta, QueuedUrl } from '../../engine/core/types.ts'
import { pageMetaOf, redirectWaitMs, retryAfterMs, type Answer } from '../../engine/page-meta.ts'
import { endRecord, recordLine, recordOfLine, unreadRecord } from '../../engine/record-line.ts'
import { Run } from '../../engine/run.ts'

// A zone that is not GMT, in which a date without a zone would be read.
process.env['TZ'] = 'America/New_York'

const wallMs = Date.UTC(2026, 0, 1)
const url: QueuedUrl = {
  row: Uint8Array.of(1, 255), fingerprint: new Uint8Array(16), host: 'a.test', sequence: 1, url: 'https://a.test/é"', depth: 2, priority: 2, attempts: 1,
  referrer: 'https://a.test/', redirectedFrom: ['http://a.test/'],
}
const answer: Answer = { status: 200, statusText: 'OK', headers: [], truncated: false, ip: '127.0.0.1', timings: { totalMs: 5 }, fetchedAtMs: wallMs }

test.each([
  ['absent', undefined, 0],
  ['empty', '', 0],
  ['seconds', '120', 120_000],
  ['seconds with white space', ' 120 ', 120_000],
  ['zero', '0', 0],
  ['more than is waited for', '999999', limits.retryAfterMsMax],
  ['more digits than a number holds', '9'.repeat(400), limits.retryAfterMsMax],
  ['a negative number', '-5', 0],
  ['a fraction', '1.5', 0],
  ['a date', 'Thu, 01 Jan 2026 00:02:00 GMT', 120_000],
  ['a date of RFC 850', 'Thursday, 01-Jan-26 00:02:00 GMT', 120_000],
  ['a date of asctime, which is in GMT though it does not say so', 'Thu Jan  1 00:02:00 2026', 120_000],
  ['a date far away', 'Fri, 01 Jan 2027 00:00:00 GMT', limits.retryAfterMsMax],
  ['a date that has passed', 'Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ['a word', 'soon', 0],
  ['a word with a year, which Date.parse takes', 'soon 2099', 0],
  ['a day and nothing more', 'Friday', 0],
  ['a date that is none', 'Thu, 99 Foo 2026 00:02:00 GMT', 0],
  ['a number and a word', '120 seconds', 0],
])('Retry-After is %s', (_, value, waitMs) => {
  expect(retryAfterMs(value, wallMs)).toBe(waitMs)
})

test.each([
  ['a redirect on its own host', 302, '/next', 7_000],
  ['a redirect to its own host under another scheme and port', 307, 'http://A.test:8080/next', 7_000],
  ['a redirect to another host', 302, 'https://b.test/', 0],
  ['a redirect to no address', 302, 'mailto:a@a.test', 0],
  ['a redirect without a target', 302, undefined, 0],
  ['a page', 200, '/next', 0],
])('Retry-After of %s', (_, status, location, waitMs) => {
  const headers = ['Retry-After', '7', ...(location === undefined ? [] : ['Location', location])]
  expect(redirectWaitMs(url, { status, headers }, wallMs)).toBe(waitMs)
})

test('the facts of a page are those of its headers, and what is absent or empty is absent', () => {
  expect(pageMetaOf(url, answer, true)).toEqual({
    url: url.url, depth: 2, attempts: 2, referrer: 'https://a.test/', redirectedFrom: ['http://a.test/'], status: 200, statusText: 'OK',
    fetchedAtMs: wallMs, ip: '127.0.0.1', timings: { totalMs: 5 }, truncated: false, followLinks: true,
    queued: { row: '01ff', sequence: 1 },
  })
  const headers = ['Content-Type', ' text/html ', 'ETAG', '"x"', 'Location', '', 'last-modified', 'then', 'X-Content-Type', 'no', 'etag', '"second"']
  const meta = pageMetaOf(url, { ...answer, headers, tls: { version: 'TLSv1.3', cipher: 'x', resumed: false } }, false)
  expect(meta).toMatchObject({ contentType: 'text/html', etag: '"x"', lastModified: 'then', followLinks: false, tls: { version: 'TLSv1.3' } })
  expect(meta).not.toHaveProperty('location')
})

test('a header that is a list is read whole, though it was sent in parts', () => {
  const headers = ['Content-Encoding', 'gzip', 'ETag', 'a', 'content-encoding', 'br']
  expect(pageMetaOf(url, { ...answer, headers }, true)).toMatchObject({ contentEncoding: 'gzip, br' })
})

test('the record of a URL that ended without a page has its facts, in one line, and no empty ones', () => {
  const record = endRecord(url, { outcome: 'failed', code: 'dns_not_found', atMs: wallMs, attempts: 2 })
  expect(record).toEqual({
    url: url.url, redirectedFrom: ['http://a.test/'], outcome: 'failed', code: 'dns_not_found', fetchedAt: '2026-01-01T00:00:00.000Z', depth: 2,
    referrer: 'https://a.test/', attempts: 2,
  })
  const { referrer: _, redirectedFrom: __, ...plain } = url
  expect(Object.keys(endRecord(plain, { outcome: 'excluded', atMs: 0, attempts: 0 }))).toEqual(['url', 'outcome', 'fetchedAt', 'depth', 'attempts'])
})

test('the record of a page that no worker could read says what was received', () => {
  const meta: PageMeta = pageMetaOf(url, { ...answer, headers: ['content-type', 'text/html'] }, true)
  expect(unreadRecord(url, meta, 'parse_crashed', 77)).toMatchObject({
    outcome: 'failed', code: 'parse_crashed', status: 200, attempts: 2, contentType: 'text/html', wireBytes: 77, ip: '127.0.0.1', timings: { totalMs: 5 },
  })
})

test('a line is the record as JSON without its closing brace, and comes back as the record', () => {
  const record = endRecord({ ...url, url: 'https://a.test/\u2028\n"é😀' }, { outcome: 'failed', code: 'timeout', atMs: wallMs, attempts: 1, timings: { dnsMs: 1 } })
  const line = recordLine(record)
  expect(JSON.parse(`${Buffer.from(line).toString()},"newLinks":3}`)).toEqual({ ...record, newLinks: 3 })
  expect(Buffer.from(line)).not.toContain('\n')
  // Also when it lies in the midst of shared memory, as the worker's lines do.
  const shared = new Uint8Array(new SharedArrayBuffer(line.byteLength + 10), 7, line.byteLength)
  shared.set(line)
  expect(recordOfLine(shared)).toEqual(record)
})

function runOf(given: Parameters<typeof resolveRunLimits>[0]): Run<never> {
  return new Run({ limits: resolveRunLimits(given), startedAtMs: 0, window: undefined })
}

test('pages stored and URLs under way together fill the limit of pages, and what became no page makes room', () => {
  const run = runOf({ maxPages: 2 })
  run.reserve({})
  run.reserve({})
  expect(run.hasRoom).toBe(false)
  run.giveBack({})
  expect([run.hasRoom, run.fetches]).toEqual([true, 2])
})

test('received bytes fill the limit of bytes', () => {
  const run = runOf({ maxBytes: 100 })
  run.wireBytes = 99
  expect(run.hasRoom).toBe(true)
  run.wireBytes = 100
  expect(run.hasRoom).toBe(false)
})

test('the first reason of an end stays, and only a stop or a failure aborts what is under way', () => {
  const limited = runOf({})
  limited.end('limit')
  expect([limited.reason, limited.aborter.signal.aborted]).toEqual(['limit', false])
  limited.end('failed', new Error('late'))
  expect([limited.reason, limited.error]).toEqual(['limit', undefined])
  for (const reason of ['stopped', 'failed'] as const) {
    const run = runOf({})
    run.end(reason)
    expect(run.aborter.signal.aborted).toBe(true)
  }
})

test('what ended a run is a SluiceError: its own, or one of code internal with the cause', () => {
  const [own, foreign] = [runOf({}), runOf({})]
  const error = new SluiceError('disk_failed', 'no space left')
  own.end('failed', error)
  expect(own.error).toBe(error)
  const cause = new TypeError('x is undefined')
  foreign.end('failed', cause)
  expect(foreign.error).toMatchObject({ code: 'internal', cause, message: 'TypeError: x is undefined' })
})

test('a run is drained when it is told so', async () => {
  const run = runOf({})
  run.drain()
  await run.drained
  expect(run.reason).toBeUndefined()
})

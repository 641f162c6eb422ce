import { spawnSync } from 'node:child_process'
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import * as zlib from 'node:zlib'
import { WARCParser, type WARCRecord } from 'warcio'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { warcFileName, type PageMeta, type WarcPlace } from '../../engine/core/types.ts'
import { base32, WarcWriter } from '../../storage/sinks/warc.ts'

let dir: string
let files: number

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-warc-'))
  files = 0
})

afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

function nextFile(): number {
  files += 1
  return files
}

function writer(fileBytesMax?: number): WarcWriter {
  return new WarcWriter({ dir, nextFile, info: { software: 'sluice/test' }, ...(fileBytesMax === undefined ? {} : { fileBytesMax }) })
}

function metaOf(url: string, parts: Partial<PageMeta> = {}): PageMeta {
  return {
    url, depth: 0, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: Date.UTC(2026, 6, 29, 12, 0, 0, 5), timings: {},
    truncated: false, followLinks: true, ...parts,
  }
}

function block(...lines: string[]): Uint8Array {
  return Buffer.from(lines.map((line) => `${line}\r\n`).join(''), 'latin1')
}

function bytesOf(file: number): Buffer {
  return fs.readFileSync(path.join(dir, warcFileName(file)))
}

interface Read {
  readonly record: WARCRecord
  /** As stored: the content coding is left alone. */
  readonly payload: Uint8Array
}

async function recordsOf(file: number): Promise<Read[]> {
  const read: Read[] = []
  for await (const record of new WARCParser(fs.createReadStream(path.join(dir, warcFileName(file))))) {
    read.push({ record, payload: await record.readFully(false) })
  }
  return read
}

function memberAt({ file, offset, length }: WarcPlace): string {
  return zlib.gunzipSync(bytesOf(file).subarray(offset, offset + length)).toString('latin1')
}

test('an independent reader gets back the payload of every page as the server sent it', async () => {
  const html = Buffer.from('<p>é</p>\r\n\r\n'.repeat(5_000))
  const shared = new Uint8Array(new SharedArrayBuffer(html.length))
  shared.set(html)
  const pages = [
    { url: 'http://a.test/plain', body: shared, headers: ['Content-Type: text/html', `Content-Length: ${html.length}`] },
    { url: 'http://a.test/gzip', body: zlib.gzipSync(html), headers: ['Content-Encoding: gzip', 'transfer-encoding: chunked'], contentEncoding: 'gzip' },
    { url: 'http://a.test/br', body: zlib.brotliCompressSync(html), headers: ['Content-Encoding: br'], contentEncoding: 'br' },
    { url: 'http://a.test/cut', body: html.subarray(0, 1_000), headers: [`CONTENT-LENGTH: ${html.length}`, 'X-Note: content-length: 5'], truncated: true },
    { url: 'http://a.test/empty', body: new Uint8Array(0), headers: ['Location: http://a.test/'], status: 302, statusText: 'Found' },
  ]
  const warc = writer()
  for (const { url, body, headers, ...meta } of pages) warc.append({ meta: metaOf(url, { ip: '127.0.0.1', ...meta }), headerBlock: block(...headers), body })
  warc.close()

  const [info, ...responses] = await recordsOf(1)
  expect(info!.record.warcType).toBe('warcinfo')
  expect(Buffer.from(info!.payload).toString()).toContain('software: sluice/test\r\n')
  expect(responses.map(({ record }) => record.warcTargetURI)).toEqual(pages.map(({ url }) => url))
  for (const [index, { record, payload }] of responses.entries()) {
    const page = pages[index]!
    expect(Buffer.compare(payload, Buffer.from(page.body))).toBe(0)
    expect(record.warcType).toBe('response')
    expect(record.warcHeader('WARC-Date')).toBe('2026-07-29T12:00:00.005Z')
    expect(record.warcHeader('WARC-IP-Address')).toBe('127.0.0.1')
    expect(record.warcHeader('WARC-Truncated')).toBe(page.truncated === true ? 'length' : null)
    expect(record.warcHeader('WARC-Payload-Digest')).toBe(`sha1:${base32(crypto.createHash('sha1').update(page.body).digest())}`)
    expect(record.httpHeaders!.statusline).toBe(`HTTP/1.1 ${page.status ?? 200} ${page.statusText ?? 'OK'}`)
  }
  expect(new Set(responses.map(({ record }) => record.warcHeader('WARC-Record-ID'))).size).toBe(pages.length)
})

test('fields that are not true of the stored payload are renamed, and only those', () => {
  const warc = writer()
  const headers = block('Transfer-Encoding: chunked', 'Content-Length: 9', 'X-A: transfer-encoding: x', 'x-content-length: 4')
  const whole = warc.append({ meta: metaOf('http://a.test/'), headerBlock: headers, body: Buffer.from('body') })
  const cut = warc.append({ meta: metaOf('http://a.test/', { truncated: true }), headerBlock: headers, body: Buffer.from('body') })
  warc.close()
  expect(memberAt(whole)).toContain('OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 9\r\nX-A: transfer-encoding: x\r\nx-content-length: 4\r\n\r\nbody\r\n\r\n')
  expect(memberAt(cut)).toContain('OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nX-Crawler-Content-Length: 9\r\nX-A: transfer-encoding: x\r\nx-content-length: 4\r\n\r\nbody\r\n\r\n')
})

test('a place names exactly one gzip member, and the members make up the file', () => {
  const warc = writer()
  const urls = ['http://a.test/1', 'http://a.test/2', 'http://a.test/3']
  const places = urls.map((url) => warc.append({ meta: metaOf(url), headerBlock: block(), body: Buffer.from(url) }))
  warc.close()
  expect(places.map((place) => /WARC-Target-URI: (.*)\r/.exec(memberAt(place))![1])).toEqual(urls)
  let end = places[0]!.offset
  expect(memberAt({ file: 1, offset: 0, length: end })).toContain('WARC-Type: warcinfo')
  for (const { offset, length } of places) {
    expect(offset).toBe(end)
    end += length
  }
  expect(end).toBe(bytesOf(1).length)
})

test('a payload that is coded already is stored, any other is compressed', () => {
  const warc = writer()
  const body = Buffer.alloc(50_000, 'a')
  const plain = warc.append({ meta: metaOf('http://a.test/'), headerBlock: block(), body })
  const coded = warc.append({ meta: metaOf('http://a.test/', { contentEncoding: 'gzip' }), headerBlock: block(), body })
  warc.close()
  expect(plain.length).toBeLessThan(5_000)
  expect(coded.length).toBeGreaterThan(50_000)
})

test('a file is ended at its size, and each begins with a warcinfo record of its own', async () => {
  const warc = writer(10_000)
  const body = crypto.randomBytes(6_000)
  const places = [1, 2, 3, 4, 5].map((page) => warc.append({ meta: metaOf(`http://a.test/${page}`), headerBlock: block(), body }))
  warc.close()
  expect(places.map(({ file }) => file)).toEqual([1, 1, 2, 2, 3])
  for (const [file, count] of [[1, 3], [2, 3], [3, 2]] as const) {
    const records = await recordsOf(file)
    expect(records).toHaveLength(count)
    expect(records[0]!.record.warcHeader('WARC-Filename')).toBe(path.basename(warcFileName(file)))
  }
})

test('after reopen the next page begins a new file, and without a page there is none', () => {
  const warc = writer()
  warc.reopen()
  expect(fs.readdirSync(dir)).toEqual([])
  const append = (): WarcPlace => warc.append({ meta: metaOf('http://a.test/'), headerBlock: block(), body: Buffer.from('x') })
  const first = append()
  warc.reopen()
  const second = append()
  warc.close()
  expect([first.file, second.file]).toEqual([1, 2])
  expect(memberAt({ file: 2, offset: 0, length: second.offset })).toContain('WARC-Type: warcinfo')
})

test('half a record that found no room is cut, and the next one follows the last whole one', async () => {
  const child = new URL('../fault/warc-limit-child.mjs', import.meta.url).pathname
  const { stdout, stderr } = spawnSync('bash', ['-c', 'ulimit -f 100; exec "$0" "$@"', process.execPath, child, dir], { encoding: 'utf8', timeout: 50_000 })
  expect(stderr).toBe('')
  const { codes, length } = JSON.parse(stdout) as { codes: string[]; length: number }
  expect(codes).toEqual(['ok', 'disk_full', 'ok'])
  expect(bytesOf(1).length).toBe(length)
  const records = await recordsOf(1)
  expect(records.map(({ record }) => record.warcTargetURI)).toEqual([null, 'http://a.test/1', 'http://a.test/3'])
})

test('base 32 is that of RFC 4648', () => {
  expect(base32(Buffer.from('fooba'))).toBe('MZXW6YTB')
  expect(base32(Buffer.alloc(20, 0xff))).toBe('7'.repeat(32))
  expect(base32(Buffer.from('da39a3ee5e6b4b0d3255bfef95601890afd80709', 'hex'))).toBe('3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ')
})

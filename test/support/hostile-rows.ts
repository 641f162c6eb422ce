/**
 * The table of hostile servers: what each does, and what a crawl must make of it. The outcome is that of the page's
 * record; beside it stand what ends the fetch, the most bytes that the server gets rid of before we hang up, and what
 * becomes of its host. hostile-server.ts runs it.
 */
import * as zlib from 'node:zlib'
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib'
import type { FailureCode } from '../../engine/core/errors.ts'
import type { Outcome } from '../../engine/core/types.ts'
import type * as net from 'node:net'

/** Whom a row connects to: every listener but `http` has one row. */
export type HostileListener = 'http' | 'wrong_name' | 'unknown_authority' | 'expired' | 'tls_garbage' | 'tls_flood' | 'tls_silent' | 'tls_reset' | 'tls_plain'

/** One request (of listeners that speak no HTTP, one connection). */
export interface HostilePeer {
  readonly socket: net.Socket
  readonly path: string
  /** 1 for the first request on its connection. */
  readonly requestOnConnection: number
  /** A string is written a byte a character. */
  write(bytes: string | Buffer): void
  /** Writes it in pieces, a turn of the event loop for each, as fast as the other side takes them. */
  send(bytes: string | Buffer): void
  /** The same, again and again. */
  pour(bytes: string | Buffer): void
  /** Writes it every few milliseconds. */
  drip(everyMs: number, part: string): void
}

export interface HostileRow {
  /** The first label of its host too. */
  readonly name: string
  readonly path: string
  readonly listener: HostileListener
  readonly outcome: Outcome
  /** Present when the outcome is `failed`. */
  readonly code?: FailureCode
  /** `itself`: what came, or the bound on it, without any time passing. Else the bound on time that ends it: `silence` in a body, `connect`, or the whole `deadline`. */
  readonly endsBy: 'itself' | 'silence' | 'connect' | 'deadline'
  /** The server is rid of no more when we hang up; of all its connections in one fetch. */
  readonly bytesMax: number
  /** `goes_on`: its other URLs are none the worse. `rests`: it is tried again after a rest, and given up in the end. `given_up`: at once. */
  readonly hostNext: 'goes_on' | 'rests' | 'given_up'
  readonly fault: (peer: HostilePeer) => void
}

type Facts = Partial<Pick<HostileRow, 'path' | 'listener' | 'outcome' | 'code' | 'endsBy' | 'bytesMax' | 'hostNext'>>

const KB = 1_024
/** The default of --max-body, the bound on what is no body, and what the kernel takes from the server before the client reads it. */
const BYTES_MAX = (250 + 64 + 128) * KB
/** Without a body worth the name, the bound on the rest and what the kernel takes. */
const HEAD_BYTES_MAX = (64 + 128) * KB

function row(name: string, facts: Facts & { fault: HostileRow['fault'] }): HostileRow {
  return { name, path: '/', listener: 'http', outcome: facts.code === undefined ? 'ok' : 'failed', endsBy: 'itself', bytesMax: BYTES_MAX, hostNext: 'goes_on', ...facts }
}

const type = 'Content-Type: text/html\r\n'
const ok = `HTTP/1.1 200 OK\r\n${type}`
const html = '<!doctype html><title>hostile</title><a href="/next">next</a>'
const block = Buffer.alloc(16 * KB, 'pour ')

function chunk(data: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), Buffer.from(data), Buffer.from('\r\n')])
}

/** A complete answer. */
const page = (body: string | Buffer, headers = type, status = '200 OK') => ({ send }: HostilePeer): void =>
  send(Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${headers}Content-Length: ${body.length}\r\n\r\n`, 'latin1'), Buffer.from(body)]))

/** What is sent once, and then no more: the connection stays. */
const says = (text: string) => ({ send }: HostilePeer): void => send(text)
/** The same, and the connection ends. */
const ends = (text: string) => ({ write, socket }: HostilePeer): void => { write(text); socket.end() }
/** A beginning, and what follows for ever. */
const pours = (start: string, part: string | Buffer) => ({ write, pour }: HostilePeer): void => { write(start); pour(part) }
const times = (count: number, part: (at: number) => string): string => Array.from({ length: count }, (_, at) => part(at)).join('')

const makers: (() => void)[] = []

/** Makes what takes its maker long, the bombs above all: a server that did so when it is asked would hold up all others. */
export function makeBombs(): void {
  for (const make of makers.splice(0)) make()
}

function bomb(make: () => HostileRow['fault']): HostileRow['fault'] {
  let made: HostileRow['fault'] | undefined
  makers.push(() => { made = make() })
  return (peer) => made?.(peer)
}
const coded = (coding: string, body: () => Buffer): HostileRow['fault'] => bomb(() => page(body(), `${type}Content-Encoding: ${coding}\r\n`))
const long = (body: () => string | Buffer): HostileRow['fault'] => bomb(() => page(body()))
/** A beginning, and so many bytes of the same. */
const filled = (start: string, bytes: number, part: string): Buffer => Buffer.concat([Buffer.from(start), Buffer.alloc(bytes, part)])
const HOLLOW_MB = 240

/** So many megabytes of zeros as a bare deflate stream of 1 KB for each: its blocks know nothing of each other, so one serves for all. */
let hollowed: Buffer | undefined
function hollow(): Buffer {
  if (hollowed !== undefined) return hollowed
  const megabyte = deflateRawSync(Buffer.alloc(KB * KB), { finishFlush: zlib.constants.Z_FULL_FLUSH })
  return hollowed = Buffer.concat([...Array.from({ length: HOLLOW_MB }, () => megabyte), deflateRawSync('')])
}
/** In a frame of RFC 1952, without the trailer. */
const gzipBomb = (): Buffer => Buffer.concat([Buffer.from('1f8b0800000000000003', 'hex'), hollow()])
const brotliQuick = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }

/** A frame that repeats one byte: 4 bytes for each 128 KB (RFC 8878 section 3.1.1.2.2). */
function zstdBomb(blocks: number): Buffer {
  const repeat = (isLast: boolean): Buffer => { const head = Buffer.alloc(4); head.writeUIntLE((isLast ? 1 : 0) | (1 << 1) | ((128 * KB) << 3), 0, 3); return head }
  return Buffer.concat([Buffer.from('28b52ffd0038', 'hex'), ...Array.from({ length: blocks }, (_, at) => repeat(at === blocks - 1))])
}

const head = (name: string, facts: Parameters<typeof row>[1]): HostileRow => row(name, { bytesMax: HEAD_BYTES_MAX, ...facts })

/** The head never ends, is too large, or is no head. */
const headRows = [
  head('endless-headers', { code: 'headers_too_large', fault: pours(ok, times(100, (at) => `X-Header-${at}: ${'v'.repeat(100)}\r\n`)) }),
  head('million-headers', { code: 'headers_too_large', fault: pours(ok, 'a:\r\n'.repeat(4_000)) }),
  head('header-1mb', { code: 'headers_too_large', fault: says(`${ok}X: ${'v'.repeat(1_024 * KB)}\r\n\r\n`) }),
  head('header-name-endless', { code: 'headers_too_large', fault: pours(ok, 'n'.repeat(16 * KB)) }),
  head('header-of-blanks', { code: 'headers_too_large', fault: pours(`${ok}X:`, ' '.repeat(16 * KB)) }),
  head('header-names-alone', { code: 'headers_too_large', fault: page(html, `${type}${'a:\r\n'.repeat(10_000)}`) }),
  head('blank-lines-endless', { code: 'headers_too_large', fault: pours('', '\r\n'.repeat(8 * KB)) }),
  head('reason-endless', { code: 'headers_too_large', fault: pours('HTTP/1.1 200 ', 'r'.repeat(16 * KB)) }),
  head('reason-10kb', { fault: page(html, type, `200 ${'r"'.repeat(5 * KB)}`) }),
  head('reason-60kb', { fault: page(html, type, `200 ${'"'.repeat(60_000)}`) }),
  head('cookie-1mb', { code: 'headers_too_large', fault: says(`${ok}Set-Cookie: a=${'c'.repeat(1_024 * KB)}\r\n\r\n`) }),
  head('no-bytes', { code: 'timeout', endsBy: 'deadline', fault: () => {} }),
  head('head-byte-a-minute', { code: 'timeout', endsBy: 'deadline', fault: ({ write, drip }) => { write('H'); drip(60_000, 'T') } }),
  head('flood-100', { code: 'bad_http', fault: pours('', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)) }),
  head('flood-103', { code: 'headers_too_large', fault: pours('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(100)) }),
  head('switches-protocol', { code: 'bad_http', fault: says('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n') }),
  head('http-0-9', { code: 'bad_http', fault: ends(html) }),
  head('http2-preface', { code: 'bad_http', fault: says('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') }),
  head('http2-frames', { code: 'bad_http', fault: says('\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04\0\0\xff\xff\0\x05\0\0\x40\0') }),
  head('ssh-banner', { code: 'bad_http', fault: says('SSH-2.0-OpenSSH_9.6\r\n') }),
  head('blanks-before-status', { code: 'bad_http', fault: says(`  ${ok}Content-Length: 0\r\n\r\n`) }),
  head('status-0', { code: 'bad_http', fault: page(html, type, '0 None') }),
  head('status-000', { code: 'bad_http', fault: page(html, type, '000 None') }),
  head('status-99', { code: 'bad_http', fault: page(html, type, '99 Low') }),
  head('status-099', { code: 'bad_http', fault: page(html, type, '099 Low') }),
  head('status-999', { outcome: 'http_error', fault: page(html, type, '999 Request denied') }),
  head('status-1000', { code: 'bad_http', fault: page(html, type, '1000 High') }),
  head('header-nul', { code: 'bad_http', fault: page(html, `${type}X: a\0b\r\n`) }),
  head('header-name-nul', { code: 'bad_http', fault: page(html, `${type}X\0Y: a\r\n`) }),
  head('header-control', { code: 'bad_http', fault: page(html, `${type}X: a\x01\x1b[2Jb\r\n`) }),
  head('header-no-colon', { code: 'bad_http', fault: page(html, `${type}no colon here\r\n`) }),
  head('header-no-name', { code: 'bad_http', fault: page(html, `${type}: value\r\n`) }),
  head('header-blank-colon', { code: 'bad_http', fault: page(html, `${type}X : value\r\n`) }),
  head('header-folded', { code: 'bad_http', fault: page(html, `${type}X: one\r\n two\r\n`) }),
  head('bare-lf', { code: 'bad_http', fault: says(`HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 1\n\nx`) }),
  head('bare-cr', { code: 'bad_http', fault: says(`HTTP/1.1 200 OK\rContent-Type: text/html\rContent-Length: 1\r\rx`) }),
]

/** The head lies about the body, or the body never ends. */
const bodyRows = [
  row('endless-body', { fault: pours(`${ok}\r\n`, block) }),
  row('endless-chunked', { fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n`, chunk(block)) }),
  row('endless-chunk', { fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n`, block) }),
  row('endless-chunk-extension', { bytesMax: HEAD_BYTES_MAX, code: 'bad_http', fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n1;a=`, 'x'.repeat(16 * KB)) }),
  row('chunk-extensions', { code: 'bad_http', fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n`, `1;${'x'.repeat(4 * KB)}\r\nb\r\n`) }),
  row('chunk-size-zeros', { bytesMax: HEAD_BYTES_MAX, code: 'bad_http', fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n`, '0'.repeat(16 * KB)) }),
  row('chunk-size-overflow', { code: 'bad_http', fault: says(`${ok}Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(17)}\r\nx`) }),
  row('chunk-size-negative', { code: 'bad_http', fault: says(`${ok}Transfer-Encoding: chunked\r\n\r\n-5\r\nhello`) }),
  row('chunk-not-ended', { code: 'bad_http', fault: says(`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello, and more\r\n`) }),
  row('endless-trailers', { bytesMax: HEAD_BYTES_MAX, code: 'headers_too_large', fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n`, times(100, (at) => `X-Trailer-${at}: v\r\n`)) }),
  row('trailer-of-blanks', { bytesMax: HEAD_BYTES_MAX, code: 'bad_http', fault: pours(`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX:`, ' '.repeat(16 * KB)) }),
  row('body-byte-a-minute', { code: 'timeout', endsBy: 'silence', fault: ({ write, drip }) => { write(`${ok}Content-Length: 1000\r\n\r\n<`); drip(60_000, 'x') } }),
  row('body-stalls', { code: 'timeout', endsBy: 'silence', fault: says(`${ok}Content-Length: 1000\r\n\r\n${html}`) }),
  row('chunk-stalls', { code: 'timeout', endsBy: 'silence', fault: says(`${ok}Transfer-Encoding: chunked\r\n\r\n1000\r\n${html}`) }),
  row('length-short', { fault: says(`${ok}Content-Length: 5\r\n\r\nhello, and much more than was said`) }),
  row('length-long', { code: 'connection_closed', fault: ends(`${ok}Content-Length: 1000\r\n\r\nless than was said`) }),
  row('length-10gb', { fault: pours(`${ok}Content-Length: ${10 * KB ** 3}\r\n\r\n`, block) }),
  row('length-overflow', { code: 'bad_http', fault: says(`${ok}Content-Length: ${'9'.repeat(30)}\r\n\r\nx`) }),
  row('length-negative', { code: 'bad_http', fault: says(`${ok}Content-Length: -5\r\n\r\nhello`) }),
  row('length-no-number', { code: 'bad_http', fault: says(`${ok}Content-Length: five\r\n\r\nhello`) }),
  row('length-twice', { code: 'bad_http', fault: says(`${ok}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`) }),
  row('length-list', { code: 'bad_http', fault: says(`${ok}Content-Length: 5, 5\r\n\r\nhello`) }),
  row('lengths-differ', { code: 'bad_http', fault: says(`${ok}Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello`) }),
  row('length-and-chunked', { code: 'bad_http', fault: says(`${ok}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`) }),
  row('chunked-twice', { fault: says(`${ok}Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`) }),
  row('chunked-not-last', { code: 'timeout', endsBy: 'silence', fault: says(`${ok}Transfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n`) }),
  row('no-content-with-body', { fault: says(`HTTP/1.1 204 No Content\r\n${type}Content-Length: 5\r\n\r\nhello`) }),
  row('not-modified-unasked', { outcome: 'http_error', fault: says(`HTTP/1.1 304 Not Modified\r\n${type}Content-Length: 5\r\n\r\nhello`) }),
  row('two-answers', { fault: (peer) => { page(html)(peer); page('<title>not asked for</title>')(peer) } }),
  row('kept-then-closed', { fault: (peer) => (peer.requestOnConnection > 1 ? peer.socket.destroy() : page(html)(peer)) }),
  row('kept-then-floods', { fault: (peer) => { page(html)(peer); peer.pour('\r\n'.repeat(KB)) } }),
  row('tiny-windows', { fault: (peer) => { for (const byte of `${ok}Content-Length: ${html.length}\r\n\r\n${html}`) peer.write(byte) } }),
]

/** The body is a bomb, or not what its coding says. */
const codingRows = [
  row('gzip-bomb', { fault: coded('gzip', gzipBomb) }),
  row('deflate-bomb', { fault: coded('deflate', () => Buffer.concat([Buffer.from('789c', 'hex'), hollow()])) }),
  row('br-bomb', { fault: coded('br', () => brotliCompressSync(Buffer.alloc(32 * KB * KB), brotliQuick)) }),
  row('zstd-bomb', { ...('createZstdDecompress' in zlib ? {} : { code: 'bad_content_encoding' }), fault: coded('zstd', () => zstdBomb(2_000)) }),
  row('gzip-in-gzip-bomb', { fault: coded('gzip, gzip', () => gzipSync(gzipBomb())) }),
  row('gzip-in-br-bomb', { fault: coded('gzip, br', () => brotliCompressSync(gzipBomb(), brotliQuick)) }),
  row('gzip-three-deep', { code: 'bad_content_encoding', fault: coded('gzip, gzip, gzip', () => gzipSync(gzipSync(gzipSync(html)))) }),
  row('gzip-thousand-deep', { code: 'bad_content_encoding', fault: coded('gzip,'.repeat(1_000), () => gzipSync(html)) }),
  row('gzip-members', { code: 'bad_content_encoding', fault: coded('gzip', () => Buffer.alloc(12_000 * 20, gzipSync(''))) }),
  row('gzip-name-endless', { code: 'bad_content_encoding', fault: coded('gzip', () => Buffer.concat([Buffer.from('1f8b0808000000000003', 'hex'), Buffer.alloc(100 * KB, 'n')])) }),
  row('gzip-broken', { code: 'bad_content_encoding', fault: coded('gzip', () => gzipSync(html.repeat(9)).fill(0xff, 12, 30)) }),
  row('gzip-cut', { code: 'bad_content_encoding', fault: coded('gzip', () => gzipSync(html.repeat(9)).subarray(0, 40)) }),
  row('gzip-not-at-all', { code: 'bad_content_encoding', fault: coded('gzip', () => Buffer.from(html)) }),
  row('br-broken', { code: 'bad_content_encoding', fault: coded('br', () => Buffer.alloc(5_000, 0xff)) }),
  row('br-cut', { code: 'bad_content_encoding', fault: coded('br', () => brotliCompressSync(html.repeat(9)).subarray(0, 30)) }),
  row('deflate-broken', { code: 'bad_content_encoding', fault: coded('deflate', () => Buffer.alloc(5_000, 0xff)) }),
  row('zstd-broken', { code: 'bad_content_encoding', fault: coded('zstd', () => Buffer.alloc(5_000, 0xff)) }),
  row('compress', { code: 'bad_content_encoding', fault: coded('compress', () => Buffer.from('1f9d900a', 'hex')) }),
]

/** The document is what does the harm. */
const pageRows = [
  row('redirect-self', { outcome: 'redirect', fault: (peer) => page('', `Location: ${peer.path}\r\n`, '302 Found')(peer) }),
  row('location-no-text', { outcome: 'redirect', fault: page('', 'Location: /\xff\xfe\x80\x9f\r\n', '302 Found') }),
  row('location-10kb', { outcome: 'redirect', fault: page('', `Location: /${'a'.repeat(10 * KB)}\r\n`, '302 Found') }),
  row('charset-utf-7', { fault: page('+ADw-a href=/a+AD4-', 'Content-Type: text/html; charset=utf-7\r\n') }),
  row('charset-utf-32', { fault: page(Buffer.from(`\xff\xfe\0\0${[...html].join('\0\0\0')}\0\0\0`, 'latin1'), 'Content-Type: text/html; charset=utf-32\r\n') }),
  row('charset-iso-2022', { fault: page('\x1b$B!!\x1b(B'.repeat(30_000), 'Content-Type: text/html; charset=iso-2022-jp\r\n') }),
  row('charset-10kb', { fault: page(html, `Content-Type: text/html; charset=${'x'.repeat(10 * KB)}\r\n`) }),
  row('charset-meta-1mb', { fault: long(() => filled('<meta charset="', KB * KB, 'x')) }),
  row('charset-metas', { fault: long(() => '<meta charset=x>'.repeat(15_000)) }),
  row('links-1m', { fault: long(() => filled(times(50_000, (at) => `<a href=${at}>`), 950_000 * '<a href=/z>'.length, '<a href=/z>')) }),
  row('link-1mb', { fault: long(() => filled('<a href="/', KB * KB, 'p')) }),
  row('links-control', { fault: long(() => times(256, (at) => `<a href="/${String.fromCharCode(at)}/${at}">x</a><a href="http://a${String.fromCharCode(at)}b.test/">x</a>`)) }),
  row('nesting-1m', { fault: long(() => filled('', 5_000_000, '<div>')) }),
  row('attribute-10mb', { fault: long(() => filled('<a title="', 10 * KB * KB, 't')) }),
  row('attributes-100k', { fault: long(() => filled(`<a ${times(50_000, (at) => `a${at} `)}`, 50_000 * 'a '.length, 'a ')) }),
  row('comment-endless', { fault: long(() => `<!--${'-'.repeat(200 * KB)}`) }),
  row('refresh-endless', { fault: long(() => '<meta http-equiv=refresh content="0;url=/">'.repeat(5_000)) }),
]

/** Whoever is there does not speak TLS, or is not who was asked for. What robots.txt meets is what ends the host. */
const tlsRows = [
  row('tls-garbage', { listener: 'tls_garbage', code: 'tls_failed', hostNext: 'rests', fault: ({ socket }) => void socket.once('data', () => socket.write(Buffer.alloc(4 * KB, 0x7f))) }),
  row('tls-flood', { listener: 'tls_flood', code: 'tls_failed', hostNext: 'rests', fault: pours('', Buffer.from('1503030002015a', 'hex')) }),
  row('tls-silent', { listener: 'tls_silent', code: 'connect_timeout', endsBy: 'connect', hostNext: 'rests', fault: ({ socket }) => void socket.resume() }),
  row('tls-reset', { listener: 'tls_reset', code: 'tls_failed', hostNext: 'rests', fault: ({ socket }) => void socket.once('data', () => socket.resetAndDestroy()) }),
  row('tls-plain', { listener: 'tls_plain', code: 'tls_failed', hostNext: 'rests', fault: ({ socket }) => void socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')) }),
  row('tls-expired', { listener: 'expired', code: 'tls_untrusted', hostNext: 'given_up', fault: page(html) }),
  row('tls-wrong-name', { listener: 'wrong_name', code: 'tls_name_mismatch', hostNext: 'given_up', fault: page(html) }),
  row('tls-unknown-authority', { listener: 'unknown_authority', code: 'tls_untrusted', hostNext: 'given_up', fault: page(html) }),
]

/** Every row, and each a host. */
export const hostileRows: readonly HostileRow[] = [...headRows, ...bodyRows, ...codingRows, ...pageRows, ...tlsRows]

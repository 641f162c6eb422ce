/**
 * Responses as received, in WARC 1.1 (ISO 28500:2017), one gzip member for each record. A `WarcWriter` lives in one
 * parse worker and appends to a file of its own with synchronous writes; its files are cut to their committed lengths
 * by the main thread (`files.ts`). Never touches the store.
 *
 *   warc/sluice-000007.warc.gz:  [warcinfo][response][revisit]...     each [ ] a gzip member of its own
 *
 * Invariant: a record's place is answered after its last byte was written, and a write always begins at the end of the
 * last whole record: half a record that an error left behind is cut.
 *
 * The payload is what the server sent with the transfer coding removed and the content coding kept. So Transfer-Encoding
 * is renamed to X-Crawler-Transfer-Encoding, as Common Crawl does, or readers would look for chunks; and the
 * Content-Length of a cut payload likewise, since it is not the length of what follows. There are no request records:
 * the request is the same for every page but for its address, cookies and passwords, which do not belong into an archive,
 * and costs readers as much as the response does. A Set-Cookie stays in the response as the server sent it. A page that
 * is fetched again and is the same becomes a revisit record, which names the record that holds the payload.
 *
 * Members of already coded payloads are stored (level 0), the others compressed at level 1. Measured on the 360 corpus
 * pages, milliseconds of CPU a page: coded (mean 32 KB) 0.07 stored, 0.65 at level 1 for 3 % less; not coded (mean
 * 234 KB) 0.12 stored, 1.5 at level 1 for a fifth of the size, 3.3 at level 6 for 14 % less again. SHA-1 of a coded
 * payload is 0.02, of one that is not 0.15.
 */
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import * as zlib from 'node:zlib'
import { limits } from '../../engine/core/limits.ts'
import { isNotModified, warcFileName, type PageSink, type WarcPlace } from '../../engine/core/types.ts'
import { sinkError } from './files.ts'

export interface WarcOptions {
  /** The crawl directory. */
  readonly dir: string
  /** Answers the number of a file that nobody else has; numbers of all workers come from one place. */
  readonly nextFile: () => number
  /** Name and version of the software, and whatever else describes the crawl, for the warcinfo record. */
  readonly info: Readonly<Record<string, string>>
  readonly fileBytesMax?: number
}

type WarcPage = Parameters<PageSink['append']>[0]

interface OpenFile {
  readonly file: number
  readonly fd: number
  length: number
}

export class WarcWriter implements PageSink {
  readonly #options: WarcOptions
  #open: OpenFile | undefined

  constructor(options: WarcOptions) {
    this.#options = options
  }

  /** Throws `disk_full` or `disk_failed`; the next call tries again at the same place. */
  append(page: WarcPage): WarcPlace {
    if (this.#open !== undefined && this.#open.length >= (this.#options.fileBytesMax ?? limits.warcFileBytesMax)) this.reopen()
    try {
      this.#open ??= this.#begin(page.meta.fetchedAtMs)
      const offset = this.#open.length
      const payloadDigest = digestOf(page)
      this.#write(this.#open, memberOf(page, payloadDigest))
      const place = { file: this.#open.file, offset, length: this.#open.length - offset }
      return payloadDigest === undefined ? place : { ...place, payloadDigest }
    } catch (error) {
      throw sinkError('a WARC file', error)
    }
  }

  /** Ends the file; the next page begins a new one. */
  reopen(): void {
    if (this.#open !== undefined) fs.closeSync(this.#open.fd)
    this.#open = undefined
  }

  close(): void {
    this.reopen()
  }

  #begin(atMs: number): OpenFile {
    const file = this.#options.nextFile()
    const name = path.join(this.#options.dir, warcFileName(file))
    fs.mkdirSync(path.dirname(name), { recursive: true })
    const open: OpenFile = { file, fd: fs.openSync(name, 'wx'), length: 0 }
    try {
      this.#write(open, infoMember(path.basename(name), atMs, this.#options.info))
    } catch (error) {
      fs.closeSync(open.fd)
      fs.rmSync(name)
      throw error
    }
    return open
  }

  #write(open: OpenFile, member: Uint8Array): void {
    try {
      for (let written = 0; written < member.length;) {
        written += fs.writeSync(open.fd, member, written, member.length - written, open.length + written)
      }
    } catch (error) {
      // Half a record takes room that somebody needs, and a shorter one would not cover it.
      fs.ftruncateSync(open.fd, open.length)
      throw error
    }
    open.length += member.length
  }
}

const CRLF = '\r\n'
const RECORD_END = Buffer.from('\r\n\r\n')
/** WARC 1.1 sections 6.7.2 and 6.7.3. */
const PROFILES = 'http://netpreserve.org/warc/1.1/revisit'

function recordHead(type: string, fields: Fields): string {
  const lines = fields.filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}${CRLF}`)
  return `WARC/1.1${CRLF}WARC-Type: ${type}${CRLF}WARC-Record-ID: <urn:uuid:${crypto.randomUUID()}>${CRLF}${lines.join('')}${CRLF}`
}

function infoMember(file: string, atMs: number, info: Readonly<Record<string, string>>): Uint8Array {
  const fields = { format: 'WARC File Format 1.1', conformsTo: 'http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/', ...info }
  const block = Buffer.from(Object.entries(fields).map(([name, value]) => `${name}: ${value}${CRLF}`).join(''))
  const head = recordHead('warcinfo', [
    ['WARC-Date', new Date(atMs).toISOString()],
    ['WARC-Filename', file],
    ['Content-Type', 'application/warc-fields'],
    ['Content-Length', String(block.length)],
  ])
  return gzipMember([Buffer.from(head), block, RECORD_END], 1)
}

type Fields = readonly (readonly [string, string | undefined])[]

/** SHA-1 of the payload; a 304 has none. */
function digestOf({ meta, body }: WarcPage): Uint8Array | undefined {
  return isNotModified(meta) ? undefined : crypto.hash('sha1', body, 'buffer')
}

/** A response; or a revisit, without the payload, when the server or the digest says that the archive has it already. */
function memberOf(page: WarcPage, payloadDigest: Uint8Array | undefined): Uint8Array {
  const { meta, body } = page
  const digest = payloadDigest === undefined ? undefined : `sha1:${base32(payloadDigest)}`
  if (isNotModified(meta)) return revisitMember(page, [['WARC-Profile', `${PROFILES}/server-not-modified`]])
  const isSame = body.length > 0 && Buffer.from(payloadDigest!).toString('hex') === meta.previous?.payloadDigest
  if (isSame) return revisitMember(page, [['WARC-Profile', `${PROFILES}/identical-payload-digest`], ['WARC-Payload-Digest', digest], ['WARC-Truncated', 'length']])
  return httpMember('response', page, [['WARC-Payload-Digest', digest], ['WARC-Truncated', meta.truncated ? 'length' : undefined]])
}

/** WARC 1.1 section 6.7: the headers as received, and which record holds the payload. */
function revisitMember(page: WarcPage, fields: Fields): Uint8Array {
  const atMs = page.meta.previous?.payloadAtMs
  const refersTo: Fields = atMs === undefined ? [] : [['WARC-Refers-To-Target-URI', page.meta.url], ['WARC-Refers-To-Date', new Date(atMs).toISOString()]]
  return httpMember('revisit', { ...page, body: Buffer.alloc(0) }, [...fields, ...refersTo])
}

function httpMember(type: 'response' | 'revisit', { meta, headerBlock, body }: WarcPage, fields: Fields): Uint8Array {
  const http = Buffer.from(`HTTP/1.1 ${meta.status} ${meta.statusText}${CRLF}${storedHeaders(headerBlock, meta.truncated)}${CRLF}`, 'latin1')
  const head = recordHead(type, [
    ['WARC-Date', new Date(meta.fetchedAtMs).toISOString()],
    ['WARC-Target-URI', meta.url],
    ['WARC-IP-Address', meta.ip],
    ...fields,
    ['Content-Type', 'application/http; msgtype=response'],
    ['Content-Length', String(http.length + body.length)],
  ])
  return gzipMember([Buffer.from(head), http, body, RECORD_END], body.length > 0 && meta.contentEncoding !== undefined ? 0 : 1)
}

/** The header block with the fields renamed that are not true of the payload as stored. */
function storedHeaders(headerBlock: Uint8Array, truncated: boolean): string {
  const text = Buffer.from(headerBlock).toString('latin1')
  const untrue = truncated ? /^(transfer-encoding|content-length)(?=[ \t]*:)/gim : /^transfer-encoding(?=[ \t]*:)/gim
  return text.replace(untrue, (name: string) => `X-Crawler-${name}`)
}

function gzipMember(parts: readonly Uint8Array[], level: number): Uint8Array {
  // One chunk for the whole output, or zlib would grow it 16 KB at a time.
  const record = Buffer.concat(parts)
  return zlib.gzipSync(record, { level, chunkSize: Math.max(64 * 1024, record.length + 1024) })
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 base 32, as WARC digests are written; a SHA-1 of 20 bytes needs no padding. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(held >>> (bits - 5)) & 31]
  }
  return text
}

/**
 * The HTML pages of a WARC file (ISO 28500:2017), compressed by gzip or not, as they were received. Reads as a stream
 * and keeps of a record no more than a crawl would, whatever its length; the content coding stays, chunks are joined.
 * A reader of our own: a general one undoes the coding, which is what a profile wants to time, holds whole records,
 * and brings thirty packages into the install.
 */
import fs from 'node:fs'
import { pipeline } from 'node:stream'
import zlib from 'node:zlib'
import { limits } from '../core/limits.ts'

/** A response of status 2xx with HTML. */
export interface WarcPage {
  readonly url: string
  readonly contentType: string
  readonly contentEncoding: string | undefined
  /** `Name: value` lines, each ended by CRLF. */
  readonly headerBlock: Uint8Array
  readonly body: Uint8Array
  readonly isCut: boolean
}

/** Longer heads of a record are none. */
const HEAD_BYTES_MAX = 64 * 1_024
/** Chunked bodies are longer than what they carry; beyond this factor they are cut early. */
const CHUNKED_FACTOR = 2
const HTML_TYPE = /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i

/** Throws where the file is none, is damaged, or ends within a record; what came before was good. */
export function warcPages(file: string, bodyBytesMax: number): AsyncGenerator<WarcPage, void, undefined> {
  return warcPagesOf(openStream(file), bodyBytesMax)
}

/** The same of a stream that is not compressed. */
export async function* warcPagesOf(stream: AsyncIterable<Uint8Array>, bodyBytesMax: number): AsyncGenerator<WarcPage, void, undefined> {
  const source = new ByteSource(stream)
  try {
    for (let head = await source.head(); head !== undefined; head = await source.head()) {
      if (!head.startsWith('WARC/')) throw new Error('a record does not begin with WARC/')
      const fields = fieldsOf(head)
      const length = Number(fields.get('content-length') ?? Number.NaN)
      if (!Number.isSafeInteger(length) || length < 0) throw new Error('a record has no Content-Length')
      const isResponse = fields.get('warc-type')?.toLowerCase() === 'response'
      const kept = isResponse ? HEAD_BYTES_MAX + CHUNKED_FACTOR * bodyBytesMax : 0
      const page = pageOf(await source.take(length, kept), bodyBytesMax, length > kept)
      if (page !== undefined) yield { ...page, url: (fields.get('warc-target-uri') ?? '').replace(/^<(.*)>$/, '$1') }
    }
  } finally {
    await source.close()
  }
}

/** The extension does not tell whether a WARC file is compressed; its first bytes do. */
function openStream(file: string): AsyncIterable<Uint8Array> {
  const raw = fs.createReadStream(file, { highWaterMark: 256 * 1_024 })
  const magic = Buffer.alloc(2)
  const fd = fs.openSync(file, 'r')
  fs.readSync(fd, magic, 0, 2, 0)
  fs.closeSync(fd)
  // An error of the file destroys the last stream with it, which throws where that is read.
  return magic[0] === 0x1f && magic[1] === 0x8b ? pipeline(raw, zlib.createGunzip({ chunkSize: 256 * 1_024 }), () => {}) : raw
}

function fieldsOf(head: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (const line of head.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  return fields
}

function pageOf(block: Uint8Array, bodyBytesMax: number, isShort: boolean): Omit<WarcPage, 'url'> | undefined {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = bytes.toString('latin1', 0, headEnd + 2)
  const fields = fieldsOf(head)
  const contentType = fields.get('content-type') ?? ''
  if (!/^HTTP\/\S+ 2\d\d\b/.test(head) || !HTML_TYPE.test(contentType)) return undefined
  const headerBlock = Buffer.from(head.slice(head.indexOf('\n') + 1), 'latin1')
  const stored = bytes.subarray(headEnd + 4)
  const whole = /\bchunked\b/i.test(fields.get('transfer-encoding') ?? '') ? joinChunks(stored) : stored
  return {
    contentType, contentEncoding: fields.get('content-encoding'),
    headerBlock: headerBlock.byteLength > limits.headerBytesMax ? Buffer.alloc(0) : headerBlock,
    // A copy: a view would keep the whole record in memory.
    body: Uint8Array.prototype.slice.call(whole, 0, bodyBytesMax), isCut: isShort || whole.byteLength > bodyBytesMax,
  }
}

/** RFC 9112 section 7.1. Some writers join the chunks and leave the header: what does not begin with a size stays. */
function joinChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = /^([0-9a-f]{1,8})\s*(?:;|$)/i.exec(bytes.toString('latin1', at, lineEnd === -1 ? at : Math.min(lineEnd, at + 64)))
    if (size === null) return parts.length === 0 ? bytes : Buffer.concat(parts)
    const length = Number.parseInt(size[1]!, 16)
    if (length === 0) break
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length))
    at = lineEnd + 2 + length + 2
  }
  return Buffer.concat(parts)
}

/** Bytes of a stream, taken in pieces of any length. */
class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }

  /** The lines up to the next empty one, those before them aside; undefined at the end. */
  async head(): Promise<string | undefined> {
    let text = ''
    for (;;) {
      if (this.#chunk.byteLength === 0 && !await this.#more()) {
        if (text.trim() === '') return undefined
        throw new Error('the file ends within the head of a record')
      }
      const before = text.length
      text = (text + Buffer.from(this.#chunk.buffer, this.#chunk.byteOffset, Math.min(this.#chunk.byteLength, HEAD_BYTES_MAX)).toString('latin1'))
      const start = /[^\r\n]/.exec(text)?.index ?? text.length
      const end = text.indexOf('\r\n\r\n', start)
      if (end !== -1) {
        this.#chunk = this.#chunk.subarray(end + 4 - before)
        return text.slice(start, end)
      }
      if (text.length - start >= HEAD_BYTES_MAX) throw new Error('a record has no head')
      this.#chunk = this.#chunk.subarray(text.length - before)
    }
  }

  /** The next `length` bytes, of which the first `kept` are answered. */
  async take(length: number, kept: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let [left, room] = [length, kept]
    while (left > 0) {
      if (this.#chunk.byteLength === 0 && !await this.#more()) throw new Error('the file ends within a record')
      const part = this.#chunk.subarray(0, left)
      if (room > 0) parts.push(part.subarray(0, room))
      room -= Math.min(room, part.byteLength)
      left -= part.byteLength
      this.#chunk = this.#chunk.subarray(part.byteLength)
    }
    return Buffer.concat(parts)
  }

  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    this.#chunk = done === true ? new Uint8Array(0) : value
    return done !== true && (value.byteLength > 0 || this.#more())
  }
}

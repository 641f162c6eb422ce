/**
 * Places of a document as strings: decoded, line ends as the HTML standard has them, character references replaced. Runs
 * in a parse worker. The only importer of entities. Most values are plain ASCII and cost one string.
 */
import { decodeHTML, decodeHTMLAttribute } from 'entities/decode'
import { decode } from './encodings.ts'

/** Bytes that are not themselves in a value: not ASCII, `&`, NUL and the carriage return. */
const isOdd = new Uint8Array(256).map((_, byte) => (byte >= 0x80 || byte === 0x26 || byte === 0 || byte === 0x0d ? 1 : 0))

export class Values {
  readonly bytes: Uint8Array
  readonly #buffer: Buffer
  readonly #encoding: string

  /** `bytes`: the document as it was scanned, in `encoding`. */
  constructor(bytes: Uint8Array, encoding: string) {
    this.bytes = bytes
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#encoding = encoding
  }

  /** The value of an attribute. */
  attribute(start: number, end: number): string {
    if (this.#isPlain(start, end)) return this.#buffer.toString('latin1', start, end)
    const text = this.#decoded(start, end)
    return text.includes('&') ? decodeHTMLAttribute(text) : text
  }

  /** Text whose character references count, as in a title. */
  text(start: number, end: number): string {
    if (this.#isPlain(start, end)) return this.#buffer.toString('latin1', start, end)
    const text = this.#decoded(start, end)
    return text.includes('&') ? decodeHTML(text) : text
  }

  #isPlain(start: number, end: number): boolean {
    const { bytes } = this
    for (let at = start; at < end; at += 1) if (isOdd[bytes[at]!] !== 0) return false
    return true
  }

  /**
   * A broken character of GB18030 may be a byte and a digit, and what follows tells that the digit stands for itself: there
   * the quote, white space or sign behind the value is decoded with it.
   */
  #decoded(start: number, end: number): string {
    const isTold = (this.#encoding === 'gbk' || this.#encoding === 'gb18030') && end < this.bytes.byteLength
    const text = isTold ? decode(this.#buffer, this.#encoding, start, end + 1).slice(0, -1) : decode(this.#buffer, this.#encoding, start, end)
    return text.includes('\r') || text.includes('\0') ? text.replace(/\r\n?/g, '\n').replaceAll('\0', '\uFFFD') : text
  }
}

/**
 * The text of a sitemap from its bytes, in pieces cut anywhere. Its encoding, in the order of RFC 7303 section 3: byte
 * order mark, charset of the Content-Type, XML declaration; without any, UTF-16 if it looks so (XML, appendix F), and else
 * UTF-8. A label that names no encoding is passed over. What is broken becomes U+FFFD; nothing throws. Invariant: at most
 * `HEAD_BYTES_MAX` bytes wait for an answer. Runs in the sitemap thread.
 */
import { charsetParameter } from '../html/charset.ts'
import { encodingOfLabel, streamDecoder, type StreamDecoder } from '../html/encodings.ts'

/** A declaration stands at the beginning; a list in which no `>` comes waits so long. */
const HEAD_BYTES_MAX = 1_024
const GREATER = 0x3e

function encodingOfMark([first, second, third]: Uint8Array): { readonly encoding: string; readonly bytes: number } | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return { encoding: 'utf-8', bytes: 3 }
  if (first === 0xfe && second === 0xff) return { encoding: 'utf-16be', bytes: 2 }
  if (first === 0xff && second === 0xfe) return { encoding: 'utf-16le', bytes: 2 }
  return undefined
}

function declaredEncoding(head: Uint8Array): string | undefined {
  if (head[0] === 0x3c && head[1] === 0) return 'utf-16le'
  if (head[0] === 0 && head[1] === 0x3c) return 'utf-16be'
  const label = /^\s*<\?xml\s[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})["']/.exec(Buffer.from(head).toString('latin1'))?.[1]
  const encoding = label === undefined ? undefined : encodingOfLabel(label)
  // What says so in ASCII is not UTF-16.
  return encoding?.startsWith('utf-16') === true ? 'utf-8' : encoding
}

export class TextReader {
  readonly #contentType: string | undefined
  #head: Uint8Array | undefined = new Uint8Array(0)
  #decode: StreamDecoder | undefined

  constructor(contentType: string | undefined) {
    this.#contentType = contentType
  }

  /** The text of these bytes, but for what is held back. `isLast`: nothing is held back any more. */
  read(bytes: Uint8Array, isLast: boolean): string {
    if (this.#decode !== undefined) return this.#decode(bytes, isLast)
    const head = Buffer.concat([this.#head!, bytes])
    if (head.byteLength < HEAD_BYTES_MAX && !head.includes(GREATER) && !isLast) {
      this.#head = head
      return ''
    }
    this.#head = undefined
    const mark = encodingOfMark(head)
    this.#decode = streamDecoder(mark?.encoding ?? this.#encodingOf(head.subarray(0, HEAD_BYTES_MAX)))
    return this.#decode(head.subarray(mark?.bytes ?? 0), isLast)
  }

  #encodingOf(head: Uint8Array): string {
    const label = this.#contentType === undefined ? undefined : charsetParameter(this.#contentType)
    return (label === undefined ? undefined : encodingOfLabel(label)) ?? declaredEncoding(head) ?? 'utf-8'
  }
}

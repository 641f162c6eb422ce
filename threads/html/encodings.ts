/**
 * Encodings by the Encoding Standard: names of labels, text of bytes, and the query of a link in the encoding of its
 * document. The only importer of @exodus/bytes, because the TextDecoder of Node is not the standard's: its windows-1252
 * leaves 0x80 to 0x9F as control characters, its Big5 and EUC-KR lack characters, and it has no ISO-8859-16. Pure; runs
 * in a parse worker; holds one decoder for each encoding that was met.
 *
 * The package needed no correction: it decodes every mapped pair of the standard's East Asian indexes, all 228 labels and
 * all byte strings of the corpus as expected (test/unit/corpus-charset.test.ts). UTF-8 goes to Buffer instead, which
 * agrees with the standard on broken sequences. An href of 60 bytes costs 110 ns from a range of a Buffer and 280 ns from a
 * view made for it; 150 ns in another encoding while it is ASCII, and a microsecond or two when it is not.
 */
import { normalizeEncoding, TextDecoder } from '@exodus/bytes/encoding.js'
import { percentEncodeAfterEncoding } from '@exodus/bytes/whatwg.js'

/** The longest label of the standard has 19 characters; white space around it may count as well. */
const LABEL_CHARS_MAX = 64
/** Special-query percent-encode set of the URL Standard; controls and what is not ASCII are in it always. */
const SPECIAL_QUERY = ' "#\'<>'
const REPLACEMENT = '\uFFFD'

const incompatible = new Set(['utf-16le', 'utf-16be', 'iso-2022-jp', 'replacement'])
/** Their output encoding is UTF-8 (Encoding Standard, "get an output encoding"), which is what a URL parser does anyway. */
const writtenAsUtf8 = new Set(['utf-8', 'utf-16le', 'utf-16be', 'replacement'])
const decoders = new Map<string, InstanceType<typeof TextDecoder>>()

/**
 * The encoding that a label names, in lower case ("windows-1252" for "Latin1"), or undefined. White space of ASCII around
 * the label and its case do not matter.
 */
export function encodingOfLabel(label: string): string | undefined {
  return label.length > LABEL_CHARS_MAX ? undefined : (normalizeEncoding(label) ?? undefined)
}

/**
 * Whether bytes below 0x80 stand for ASCII wherever markup can begin or end, so that a document can be scanned as it is.
 * In the East Asian encodings the second byte of a pair may be a letter, `[`, `\` or `|`, but never `<`, `>`, `&`, `=`, a
 * quote or white space.
 */
export function isAsciiCompatible(encoding: string): boolean {
  return !incompatible.has(encoding)
}

function isAsciiBytes(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at]! >= 0x80) return false
  return true
}

function decoderOf(encoding: string): InstanceType<typeof TextDecoder> {
  let decoder = decoders.get(encoding)
  if (decoder === undefined) decoders.set(encoding, decoder = new TextDecoder(encoding, { ignoreBOM: true }))
  return decoder
}

/**
 * The text of bytes `start` to `end` (all of them by default). What is broken becomes U+FFFD as the standard says; a byte
 * order mark stays. No bytes make it throw; `encoding` must be a name that `encodingOfLabel` gave (RangeError). A Buffer
 * with a range is the cheapest way to a short value: nothing but the string is made.
 */
export function decode(bytes: Uint8Array, encoding: string, start = 0, end = bytes.byteLength): string {
  const isUtf8 = encoding === 'utf-8'
  if (isUtf8 || (isAsciiCompatible(encoding) && isAsciiBytes(bytes, start, end))) {
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return buffer.toString(isUtf8 ? 'utf8' : 'latin1', start, end)
  }
  if (encoding === 'replacement') return end > start ? REPLACEMENT : ''
  return decoderOf(encoding).decode(bytes.subarray(start, end))
}

/** Text of the next bytes. `isLast`: there are no more, and half a character at the end is broken. */
export type StreamDecoder = (bytes: Uint8Array, isLast: boolean) => string

/** Decodes a document that comes in pieces, cut anywhere. The names and the rules are those of `decode`. */
export function streamDecoder(encoding: string): StreamDecoder {
  if (encoding === 'replacement') {
    let hadBytes = false
    return (bytes) => {
      const text = !hadBytes && bytes.byteLength > 0 ? REPLACEMENT : ''
      hadBytes ||= bytes.byteLength > 0
      return text
    }
  }
  // Node's own UTF-8 agrees with the standard.
  const decoder = encoding === 'utf-8' ? new globalThis.TextDecoder(encoding, { ignoreBOM: true }) : new TextDecoder(encoding, { ignoreBOM: true })
  return (bytes, isLast) => decoder.decode(bytes, { stream: !isLast })
}

function isAsciiText(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (text.charCodeAt(at) >= 0x80) return false
  return true
}

/**
 * A link as written in a document of that encoding, with its query percent-encoded in that encoding where it holds more
 * than ASCII (URL Standard, "percent-encode after encoding"; a character that the encoding lacks becomes `%26%23NNNN%3B`).
 * A URL parser then gives the standard's address, which it cannot when it is given text alone: it would take UTF-8. Only
 * links that resolve to http(s) may come here; the query of any other scheme is in UTF-8.
 */
export function encodeQuery(href: string, encoding: string): string {
  if (writtenAsUtf8.has(encoding)) return href
  const mark = href.indexOf('?')
  if (mark === -1) return href
  const hash = href.indexOf('#')
  // A mark behind the hash leaves nothing between them.
  let end = hash === -1 ? href.length : hash
  if (isAsciiText(href, mark + 1, end)) return href
  // What a URL parser would drop is dropped before it could be escaped: controls and spaces at the end, tabs and line ends.
  if (hash === -1) while (href.charCodeAt(end - 1) <= 0x20) end -= 1
  // Half a surrogate pair is no character, and must not meet its other half when a line end between them goes.
  const query = href.slice(mark + 1, end).replaceAll(/\p{Surrogate}/gu, REPLACEMENT).replaceAll(/[\t\n\r]/g, '')
  return href.slice(0, mark + 1) + percentEncodeAfterEncoding(encoding, query, SPECIAL_QUERY) + href.slice(hash === -1 ? href.length : hash)
}

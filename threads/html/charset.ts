/**
 * Which encoding a document is in, its text, and its bytes as UTF-8 where a scanner could not read them. Byte order mark,
 * then Content-Type, then what the document declares (`prescan.ts`), then UTF-8 if the bytes are valid UTF-8, then what a
 * legacy text looks like (`legacy-guess.ts`). An unknown label is passed over and kept for the record; nothing here fails a
 * page. Pure; runs in a parse worker.
 *
 * Measured on the 360 pages of the corpus, of 239 KB on average: 2 us a page that declares itself in its first 1,024 bytes
 * (284), 0.3 us where the header says it. Of the others 45 declare themselves later and 31 not at all: there `sniff` leaves
 * the answer to the scan of the document, since `lateMeta` alone took up to 135 us.
 */
import { isUtf8 } from 'node:buffer'
import { decode, encodingOfLabel, isAsciiCompatible } from './encodings.ts'
import { isIso2022Jp, legacyGuess } from './legacy-guess.ts'
import { isSpace, lateMeta, prescan, shownLabel, type Declaration } from './prescan.ts'

export interface Charset {
  /** Name in the Encoding Standard, in lower case. */
  readonly name: string
  readonly from: 'bom' | 'header' | 'meta' | 'guess'
  /** Bytes of the byte order mark, which is no part of the text. */
  readonly bomBytes: number
  /** The first label that names no encoding (in the header, then in the document), at most 64 characters of it. */
  readonly unknownLabel?: string
}

export interface CharsetOptions {
  readonly contentType?: string | undefined
  /** Only HTML declares its encoding in its bytes. */
  readonly isHtml: boolean
  /** The bytes are the prefix of a longer document, and may end inside a character. */
  readonly isCut: boolean
}

const UTF8_TAIL_BYTES_MAX = 3

/** A quoted string that begins at `at`, and where it ends: behind its quote, or at the end of all. */
function quotedString(text: string, at: number): { readonly value: string; readonly end: number } {
  let value = ''
  let index = at + 1
  for (; index < text.length && text[index] !== '"'; index += 1) {
    if (text[index] === '\\' && index + 1 < text.length) index += 1
    value += text[index]
  }
  return { value, end: index + 1 }
}

function endOf(text: string, at: number, first: string, second: string): number {
  let end = at
  while (end < text.length && text[end] !== first && text[end] !== second) end += 1
  return end
}

/**
 * The charset parameter of a Content-Type as the MIME Sniffing Standard parses it: a quoted string ends at its quote or at
 * the end of all, what follows it is skipped, a name with white space before its `=` is another name, the first of several
 * counts. Where that standard finds nothing, two things are read all the same: a parameter whatever the type before it looks
 * like, and the next where one is empty. A comma ends a value, as where a header came twice.
 */
export function charsetParameter(contentType: string): string | undefined {
  for (let at = contentType.indexOf(';'); at !== -1; at = contentType.indexOf(';', at)) {
    at += 1
    while (isSpace(contentType.charCodeAt(at))) at += 1
    const nameEnd = endOf(contentType, at, ';', '=')
    const isCharset = contentType.slice(at, nameEnd).toLowerCase() === 'charset'
    at = nameEnd
    if (contentType[at] !== '=') continue
    at += 1
    const quoted = contentType[at] === '"' ? quotedString(contentType, at) : undefined
    const end = quoted?.end ?? endOf(contentType, at, ';', ',')
    const value = quoted?.value ?? contentType.slice(at, end)
    if (isCharset && value.trim() !== '') return value
    at = end
  }
  return undefined
}

/** Bytes of a character that a cut took the end of: a lead byte among the last three that asks for more than is there. */
function cutBytes(bytes: Uint8Array): number {
  for (let count = 1; count <= Math.min(UTF8_TAIL_BYTES_MAX, bytes.byteLength); count += 1) {
    const byte = bytes[bytes.byteLength - count]!
    if (byte >= 0xc2) return count < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? count : 0
    if (byte < 0x80) return 0
  }
  return 0
}

/** Whether bytes are UTF-8, but for a character that a cut may have left without its end. */
export function isUtf8Text(bytes: Uint8Array, isCut: boolean): boolean {
  return isUtf8(isCut ? bytes.subarray(0, bytes.byteLength - cutBytes(bytes)) : bytes)
}

function guess(bytes: Uint8Array, isCut: boolean): string {
  if (!isUtf8Text(bytes, isCut)) return legacyGuess(bytes)
  return isIso2022Jp(bytes) ? 'iso-2022-jp' : 'utf-8'
}

function bomOf([first, second, third]: Uint8Array): Charset | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return { name: 'utf-8', from: 'bom', bomBytes: 3 }
  if (first === 0xfe && second === 0xff) return { name: 'utf-16be', from: 'bom', bomBytes: 2 }
  if (first === 0xff && second === 0xfe) return { name: 'utf-16le', from: 'bom', bomBytes: 2 }
  return undefined
}

/** What is known of an encoding before the document is scanned. */
export interface Sniffed {
  /** Absent: only the rest of the document can say. */
  readonly settled?: Charset
  /** What the first 1,024 bytes declare. */
  readonly early?: Declaration
  /** The label of the header, which named no encoding. */
  readonly headerLabel?: string
}

const nothing: Declaration = { encoding: undefined, unknownLabel: undefined }

function settledAs(name: string, from: Charset['from'], unknownLabel: string | undefined): Charset {
  return { name, from, bomBytes: 0, ...(unknownLabel !== undefined && { unknownLabel }) }
}

/** Byte order mark, header, and the document's first 1,024 bytes. */
export function sniff(bytes: Uint8Array, { contentType, isHtml }: Omit<CharsetOptions, 'isCut'>): Sniffed {
  const bom = bomOf(bytes)
  if (bom !== undefined) return { settled: bom }
  const label = contentType === undefined ? undefined : charsetParameter(contentType)
  const header = label === undefined ? undefined : encodingOfLabel(label)
  if (header !== undefined) return { settled: settledAs(header, 'header', undefined) }
  const headerLabel = label === undefined ? {} : { headerLabel: shownLabel(label) }
  const early = isHtml ? prescan(bytes) : nothing
  // An XML declaration gives way to a later meta element, but for UTF-16.
  const isSettled = early.encoding !== undefined && ('by' in early && early.by === 'meta' || early.encoding.startsWith('utf-16'))
  if (isSettled) return { settled: settledAs(early.encoding!, 'meta', headerLabel.headerLabel ?? early.unknownLabel) }
  return { early, ...headerLabel }
}

/**
 * The encoding, once it is known what meta elements beyond the first 1,024 bytes declare: they count too, and even before
 * an XML declaration, since a tree builder that finds one begins anew. Without any, a guess.
 */
export function settle(bytes: Uint8Array, { settled, early = nothing, headerLabel }: Sniffed, late: Declaration, isCut: boolean): Charset {
  if (settled !== undefined) return settled
  const name = late.encoding ?? early.encoding
  const unknownLabel = headerLabel ?? early.unknownLabel ?? late.unknownLabel
  return name === undefined ? settledAs(guess(bytes, isCut), 'guess', unknownLabel) : settledAs(name, 'meta', unknownLabel)
}

/** The same for those who do not scan the document: a late meta element is looked for, which takes 135 us where none is. */
export function charsetOf(bytes: Uint8Array, { contentType, isHtml, isCut }: CharsetOptions): Charset {
  const sniffed = sniff(bytes, { contentType, isHtml })
  return settle(bytes, sniffed, sniffed.settled === undefined && isHtml ? lateMeta(bytes) : nothing, isCut)
}

/** The text of a document, without its byte order mark. */
export function decodeText(bytes: Uint8Array, charset: Charset): string {
  return decode(bytes, charset.name, charset.bomBytes)
}

/**
 * A document as bytes that a scanner of ASCII markup can read, without its byte order mark: as it stands where its encoding
 * allows that (a view, not a copy), else turned into UTF-8, which `charset` is for the result from then on.
 */
export function transcode(bytes: Uint8Array, charset: Charset): Uint8Array {
  return isAsciiCompatible(charset.name) ? bytes.subarray(charset.bomBytes) : Buffer.from(decodeText(bytes, charset))
}

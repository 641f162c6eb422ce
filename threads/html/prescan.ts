/**
 * The encoding that a document declares in its own bytes: "prescan a byte stream to determine its encoding" of the HTML
 * Standard over the first 1,024 bytes, its rule for an XML declaration, and the second chance that a meta element beyond
 * them has (the standard's tree builder finds it and decodes anew). Pure; runs in a parse worker; each byte is looked at a
 * bounded number of times, and none behind the bounds.
 */
import { encodingOfLabel } from './encodings.ts'

/** HTML Standard, 13.2.3.2: the bytes that a prescan waits for. */
export const PRESCAN_BYTES = 1_024
/** How far a late declaration is looked for. */
export const LATE_BYTES = 65_536

export interface Declaration {
  readonly encoding: string | undefined
  /** The first label that names no encoding. */
  readonly unknownLabel: string | undefined
}

/** What holds no markup between its tags; a meta element in it is text. */
const rawTextNames = ['script', 'style', 'title', 'textarea', 'iframe', 'xmp', 'noembed', 'noframes'] as const

const LABEL_SHOWN_CHARS_MAX = 64
const HTTP_EQUIV = 1
const CONTENT = 2
const CHARSET = 4

const LESS = 0x3c
const GREATER = 0x3e
const SLASH = 0x2f
const DASH = 0x2d
const EQUALS = 0x3d

/** White space of ASCII: tab, line feed, form feed, carriage return, space. */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d && byte !== 0x0b)
}

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
}

/** A label as it may be kept and shown. */
export function shownLabel(label: string): string {
  return label.trim().slice(0, LABEL_SHOWN_CHARS_MAX)
}

/** HTML Standard, "algorithm for extracting a character encoding from a meta element", up to the label. */
export function charsetInContent(content: string): string | undefined {
  const lower = content.toLowerCase()
  for (let found = lower.indexOf('charset'); found !== -1; found = lower.indexOf('charset', found + 7)) {
    let at = found + 7
    while (isSpace(content.charCodeAt(at))) at += 1
    if (content.charCodeAt(at) !== EQUALS) continue
    at += 1
    while (isSpace(content.charCodeAt(at))) at += 1
    const quote = content[at]
    if (quote === '"' || quote === '\'') {
      const end = content.indexOf(quote, at + 1)
      return end === -1 ? undefined : content.slice(at + 1, end)
    }
    let end = at
    while (end < content.length && content[end] !== ';' && !isSpace(content.charCodeAt(end))) end += 1
    return end === at ? undefined : content.slice(at, end)
  }
  return undefined
}

/** HTML Standard, "get an XML encoding", up to the label. It must stand before the first `>`, as in browsers. */
function xmlLabel(text: string): string | undefined {
  if (!text.startsWith('<?xml')) return undefined
  const end = text.indexOf('>')
  const found = text.indexOf('encoding')
  if (found === -1 || found > end) return undefined
  let at = found + 8
  while (text.charCodeAt(at) <= 0x20) at += 1
  if (text.charCodeAt(at) !== EQUALS) return undefined
  at += 1
  while (text.charCodeAt(at) <= 0x20) at += 1
  const quote = text[at]
  if (quote !== '"' && quote !== '\'') return undefined
  const close = text.indexOf(quote, at + 1)
  const label = text.slice(at + 1, close)
  // oxlint-disable-next-line no-control-regex
  return close === -1 || /[\0-\x20]/.test(label) ? undefined : label
}

/** A document whose declaration can be read as ASCII is not in UTF-16. */
function asDeclared(encoding: string): string {
  if (encoding === 'utf-16le' || encoding === 'utf-16be') return 'utf-8'
  return encoding === 'x-user-defined' ? 'windows-1252' : encoding
}

/** Walks the tags of a prefix. `#at` beyond the bytes is the end of everything, in whatever it was. */
class MetaScan {
  readonly #bytes: Buffer
  readonly #passesRawText: boolean
  #at = 0
  #nameStart = 0
  #nameEnd = 0
  #valueStart = 0
  #valueEnd = 0
  unknownLabel: string | undefined

  /** `passesRawText`: pass over the content of script, style and the like, as a tree builder does and the prescan does not. */
  constructor(bytes: Buffer, passesRawText: boolean) {
    this.#bytes = bytes
    this.#passesRawText = passesRawText
  }

  /** The encoding of the first meta element that names one. */
  run(): string | undefined {
    const bytes = this.#bytes
    const last = bytes.length - 1
    for (let at = 0; at < last; at = this.#at + 1) {
      while (at < last && bytes[at] !== LESS) at += 1
      if (at >= last) return undefined
      this.#at = at
      const next = bytes[at + 1]!
      if (isLetter(next) || (next === SLASH && isLetter(bytes[at + 2]))) {
        const encoding = this.#isMeta() ? this.#meta() : this.#otherTag()
        if (encoding !== undefined) return encoding
      } else if (next === 0x21 || next === SLASH || next === 0x3f) {
        this.#markup()
      }
    }
    return undefined
  }

  #isMeta(): boolean {
    const after = this.#bytes[this.#at + 5]
    return after !== undefined && (after === SLASH || isSpace(after)) && this.#isName(this.#at + 1, this.#at + 5, 'meta')
  }

  #isName(start: number, end: number, name: string): boolean {
    if (end - start !== name.length) return false
    for (let index = 0; index < name.length; index += 1) {
      const byte = this.#bytes[start + index]!
      if ((byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte) !== name.charCodeAt(index)) return false
    }
    return true
  }

  /** Comments end at the first `-->`, whose dashes may be those of `<!--`; all else at the first `>`. */
  #markup(): void {
    const bytes = this.#bytes
    const start = this.#at
    const isComment = bytes[start + 1] === 0x21 && bytes[start + 2] === DASH && bytes[start + 3] === DASH
    const end = isComment ? bytes.indexOf('-->', start + 2, 'latin1') : bytes.indexOf(GREATER, start + 1)
    this.#at = end === -1 ? bytes.length : end
  }

  #otherTag(): undefined {
    const bytes = this.#bytes
    const start = this.#at + 1
    let at = start
    while (at < bytes.length && bytes[at] !== GREATER && !isSpace(bytes[at]!)) at += 1
    this.#at = at
    while (this.#attribute()) { /* Passed over. */ }
    if (this.#passesRawText) this.#rawText(start, at)
  }

  #rawText(start: number, end: number): void {
    const bytes = this.#bytes
    const name = this.#rawTextName(start, end)
    if (name === undefined) return
    for (let at = bytes.indexOf('</', this.#at, 'latin1'); at !== -1; at = bytes.indexOf('</', at + 2, 'latin1')) {
      if (!this.#isName(at + 2, at + 2 + name.length, name) || isLetter(bytes[at + 2 + name.length])) continue
      this.#at = at - 1
      return
    }
    this.#at = bytes.length
  }

  #rawTextName(start: number, end: number): string | undefined {
    const length = end - start
    if (length < 3 || length > 8) return undefined
    for (const name of rawTextNames) if (name.length === length && this.#isName(start, end, name)) return name
    return undefined
  }

  #meta(): string | undefined {
    this.#at += 5
    let seen = 0
    let isContentType = false
    let contentLabel: string | undefined
    let charsetLabel: string | undefined
    while (this.#attribute()) {
      const kind = this.#attributeKind()
      if ((seen & kind) !== 0) continue
      seen |= kind
      if (kind === HTTP_EQUIV) isContentType = this.#isName(this.#valueStart, this.#valueEnd, 'content-type')
      else if (kind === CONTENT) contentLabel = charsetInContent(this.#value())
      else if (kind === CHARSET) charsetLabel = this.#value()
    }
    // Cut within: nothing of it counts.
    if (this.#at >= this.#bytes.length) return undefined
    const label = charsetLabel ?? (isContentType ? contentLabel : undefined)
    if (label === undefined) return undefined
    const encoding = encodingOfLabel(label)
    if (encoding === undefined) this.unknownLabel ??= shownLabel(label)
    return encoding && asDeclared(encoding)
  }

  #value(): string {
    return this.#bytes.toString('latin1', this.#valueStart, this.#valueEnd)
  }

  #attributeKind(): number {
    switch (this.#nameEnd - this.#nameStart) {
      case 7: return this.#isName(this.#nameStart, this.#nameEnd, 'content') ? CONTENT : this.#isName(this.#nameStart, this.#nameEnd, 'charset') ? CHARSET : 0
      case 10: return this.#isName(this.#nameStart, this.#nameEnd, 'http-equiv') ? HTTP_EQUIV : 0
      default: return 0
    }
  }

  /** HTML Standard, "get an attribute". False at `>` and at the end of the bytes. */
  #attribute(): boolean {
    const bytes = this.#bytes
    const end = bytes.length
    let at = this.#at
    while (at < end && (bytes[at] === SLASH || isSpace(bytes[at]!))) at += 1
    this.#at = at
    if (at >= end || bytes[at] === GREATER) return false
    this.#nameStart = at
    // An equals sign in the first place belongs to the name.
    at += 1
    while (at < end && bytes[at] !== EQUALS && bytes[at] !== SLASH && bytes[at] !== GREATER && !isSpace(bytes[at]!)) at += 1
    this.#nameEnd = at
    while (at < end && isSpace(bytes[at]!)) at += 1
    this.#valueStart = this.#valueEnd = this.#at = at
    if (at < end && bytes[at] === EQUALS) this.#attributeValue(at + 1)
    return this.#at < end
  }

  #attributeValue(from: number): void {
    const bytes = this.#bytes
    const end = bytes.length
    let at = from
    while (at < end && isSpace(bytes[at]!)) at += 1
    const quote = bytes[at]
    if (quote === 0x22 || quote === 0x27) {
      at += 1
      this.#valueStart = at
      while (at < end && bytes[at] !== quote) at += 1
      this.#valueEnd = at
      this.#at = at + 1
      return
    }
    this.#valueStart = at
    while (at < end && bytes[at] !== GREATER && !isSpace(bytes[at]!)) at += 1
    this.#valueEnd = this.#at = at
  }
}

function prefixOf(bytes: Uint8Array, length: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(length, bytes.byteLength))
}

/** What the first 1,024 bytes declare: a meta element, or else an XML declaration at the very start. */
export function prescan(bytes: Uint8Array): Declaration & { readonly by?: 'meta' | 'xml' } {
  const prefix = prefixOf(bytes, PRESCAN_BYTES)
  const start = prefix.toString('latin1', 0, 6)
  if (start === '<\0?\0x\0') return { encoding: 'utf-16le', by: 'xml', unknownLabel: undefined }
  if (start === '\0<\0?\0x') return { encoding: 'utf-16be', by: 'xml', unknownLabel: undefined }
  const scan = new MetaScan(prefix, false)
  const encoding = scan.run()
  if (encoding !== undefined) return { encoding, by: 'meta', unknownLabel: scan.unknownLabel }
  const label = start.startsWith('<?xml') ? xmlLabel(prefix.toString('latin1')) : undefined
  const declared = label === undefined ? undefined : encodingOfLabel(label)
  if (declared !== undefined) return { encoding: asDeclared(declared), by: 'xml', unknownLabel: scan.unknownLabel }
  return { encoding: undefined, unknownLabel: scan.unknownLabel ?? (label === undefined ? undefined : shownLabel(label)) }
}

/** What labels that meta elements gave, in their order, declare. */
export function declarationOf(labels: readonly string[]): Declaration {
  let unknownLabel: string | undefined
  for (const label of labels) {
    const encoding = encodingOfLabel(label)
    if (encoding !== undefined) return { encoding: asDeclared(encoding), unknownLabel }
    unknownLabel ??= shownLabel(label)
  }
  return { encoding: undefined, unknownLabel }
}

/** The first meta element that names an encoding, in as much of a document as is looked at. */
export function lateMeta(bytes: Uint8Array): Declaration {
  const scan = new MetaScan(prefixOf(bytes, LATE_BYTES), true)
  const encoding = scan.run()
  return { encoding, unknownLabel: scan.unknownLabel }
}

/**
 * Reads an HTML document where its bytes lie, and notes what a crawler needs of it as places in those bytes. Tokenizer of
 * the HTML standard (section 13.2.5) over any ASCII-compatible encoding; which tags make elements is tree.ts's to say,
 * what is kept is in notes.ts. Runs in a parse worker, one document at a time. Makes no string and no object for what it
 * reads.
 *
 * Invariants: it never throws, whatever the bytes; nothing outside of them is read; and the work is linear in them
 * (`steps`, test/property/scanner-linear.test.ts), since `at` only moves on and the stack of open elements is bounded.
 *
 * Measured: 0.25 to 0.28 ms for a page of 148 KB, 20 times as fast as parse5 (bench/RESULTS.md). To find each `<` alone
 * takes half of it; the rules of the tree take 0.04 ms, attributes 0.04.
 *
 * Bytes will do for characters, because every byte below 0x40 that these encodings have inside a character does not
 * matter here: trail bytes lie at 0x40 or above, or are digits (gb18030). Other encodings are transcoded before.
 */
import type { LinkElement } from '../../engine/core/types.ts'
import { Attributes } from './attributes.ts'
import { DocumentBytes } from './bytes.ts'
import * as bytes from './bytes.ts'
import * as names from './names.ts'
import { facts, kindsOf, Notes } from './notes.ts'
import * as kinds from './tree-kinds.ts'
import { Tree } from './tree.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { BANG, BRACKET, byteKinds, DASH, GREATER, HIGH_BITS, LESS, LETTER, NAME_END, nameLetters, ONES, QUESTION, SLASH, SPACE, WHITE } = bytes
const { attribute, bitsOf, elementAt, elementTable, is, lowerCase, nextHash, tag, unknownNumber } = names
const { came, TEXT_CONTENT } = kinds

export interface ScanOptions {
  /** Which elements' addresses are noted as links; default: those of pages. */
  readonly linkElements?: readonly LinkElement[] | undefined
  /** Name of one more meta element with robots directives, in lower case. */
  readonly agent?: string | undefined
  /** A document of XML: an element that ends in `/>` has no content. */
  readonly isXml?: boolean
  /** Note where text lies that is shown, for a fingerprint of it. */
  readonly wantsText?: boolean
  /** The document is in a legacy encoding: each of its bytes counts as a character of text. */
  readonly isLegacy?: boolean
}

/** Kinds whose elements have attributes that nothing else needs. */
const ASKED_KINDS = kindsOf(['img', 'form'])
/** Whether a byte of text is counted: white space is not, and of a character in UTF-8 its first byte is. */
const isCounted = new Uint8Array(256).map((_, byte) => (byte <= SPACE || (byte >= 0x80 && byte < 0xc0) ? 0 : 1))
/** The same where the bytes 0x80 to 0xbf are letters as well, as in IBM866, windows-874 and all of East Asia. */
const isCountedLegacy = isCounted.map((counted, byte) => (byte >= 0x80 ? 1 : counted))
// The same for the four bytes of a word: a byte above 0x20 gets its high bit by adding, one above 0x7f has it.
const LOW_BITS = 0x7f7f7f7f
const BLANK_GAP = 0x5f5f5f5f
const LESS_WORD = LESS * ONES
const [CDATA, DOCTYPE, HTML] = ['[CDATA[', 'doctype', 'html'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer]

export class HtmlScanner {
  readonly #document = new DocumentBytes()
  readonly #attributes = new Attributes(this.#document)
  readonly #tree = new Tree()
  #wantsText = false
  #isXml = false
  /** All bits where bytes 0x80 to 0xbf are counted. */
  #countsAll = 0
  /** Bits of elements whose attributes are read. */
  #readBits: number = is.read
  /** Where the tag or text in hand begins; -1: none did yet. */
  #tokenAt = -1
  /** How an escaped script ended, see `#escapedScript`. */
  #isScriptOver = false

  /** Of the last document. */
  readonly notes = new Notes(this.#attributes)

  constructor() {
    this.#tree.onBody = () => this.notes.beginBody(this.#tokenAt)
    this.#tree.onBodyLost = () => this.notes.forgetBody()
  }

  /** Bytes of the last document, those that searches looked at and those that were looked at again, and stack entries visited. */
  get steps(): number {
    return this.#document.end + this.#document.searched + this.#attributes.lookedAtAgain + this.#tree.open.visits
  }

  /** Reads a document in an ASCII-compatible encoding, its byte order mark left out. */
  scan(bytes: Uint8Array, options: ScanOptions = {}): Notes {
    this.#document.open(bytes)
    this.#wantsText = options.wantsText === true
    this.#isXml = options.isXml === true
    this.#countsAll = options.isLegacy === true ? -1 : 0
    const kinds = kindsOf(options.linkElements)
    this.#readBits = (kinds & ASKED_KINDS) === 0 ? is.read : is.read | is.readIfAsked
    this.#tree.reset()
    this.#attributes.lookedAtAgain = 0
    this.#tokenAt = -1
    this.notes.begin(kinds, options.agent)
    const end = bytes.byteLength
    let at = 0
    while (at < end) at = bytes[at] === LESS ? this.#markup(at) : this.#text(at)
    return this.notes
  }

  /** What begins with `<`. */
  #markup(at: number): number {
    const next = this.#document.bytes[at + 1]!
    if ((byteKinds[next]! & LETTER) !== 0) return this.#startTag(at)
    switch (next) {
      case SLASH: return this.#endTag(at)
      case BANG: return this.#declaration(at)
      case QUESTION: return this.#bogusComment(at + 1)
      default: return this.#lessSign(at)
    }
  }

  // Text

  /**
   * Text from `start` to the next `<`, counted, four bytes at a time: most of what lies between tags is white space.
   * The sums of a word cannot run into each other, since of each byte seven bits are added.
   */
  #text(start: number): number {
    const { words, shift } = this.#document
    const all = this.#countsAll
    const last = words.length - 1
    let index = (start + shift) >> 2
    if (index > last) return this.#lastText(start, start, 0)
    // Bytes before the start are left out of the first word.
    const mask = -1 << (((start + shift) & 3) << 3)
    let word = words[index]!
    let less = (word ^ LESS_WORD) | ~mask
    let found = (less - ONES) & ~less & HIGH_BITS
    let counted = (((word & LOW_BITS) + BLANK_GAP) | word) & (~word | (word << 1) | all) & HIGH_BITS & mask
    let count = 0
    while (found === 0 && index < last) {
      if (counted !== 0) count += Math.imul(counted >>> 7, ONES) >>> 24
      index += 1
      word = words[index]!
      less = word ^ LESS_WORD
      found = (less - ONES) & ~less & HIGH_BITS
      counted = (((word & LOW_BITS) + BLANK_GAP) | word) & (~word | (word << 1) | all) & HIGH_BITS
    }
    if (found === 0) return this.#lastText(start, ((index + 1) << 2) - shift, count + (Math.imul(counted >>> 7, ONES) >>> 24))
    const first = found & -found
    count += Math.imul((counted & (first - 1)) >>> 7, ONES) >>> 24
    return this.#textEnd(start, (index << 2) - shift + ((31 - Math.clz32(first)) >> 3), count)
  }

  /** What is left of the document behind its last whole word. */
  #lastText(start: number, from: number, before: number): number {
    const { bytes, end } = this.#document
    const counted = this.#countsAll === 0 ? isCounted : isCountedLegacy
    let count = before
    let at = from
    for (; at < end && bytes[at] !== LESS; at += 1) count += counted[bytes[at]!]!
    return this.#textEnd(start, at, count)
  }

  #textEnd(start: number, at: number, count: number): number {
    if (count > 0) this.#shown(start, at, count)
    else if (this.#tree.watchesText) this.#controls(start, at)
    return at
  }

  /** Text without a letter in it, in a head for the most part: white space, unless a control character makes it text. */
  #controls(start: number, end: number): void {
    const { bytes } = this.#document
    let hasNul = false
    for (let at = start; at < end; at += 1) {
      if (bytes[at] === 0) hasNul = true
      else if ((byteKinds[bytes[at]!]! & WHITE) === 0) return this.#textMatters(start)
    }
    if (!hasNul) return
    this.#tokenAt = start
    this.#tree.nul()
  }

  /** Text that is not white space alone. */
  #shown(start: number, end: number, count: number): void {
    if (this.#tree.watchesText) this.#textMatters(start)
    if (!this.#tree.isTextShown) return
    this.notes.textLength += count
    if (this.#wantsText) this.#noteText(start, end)
  }

  /** Without the white space around it, which is more than half of it. */
  #noteText(from: number, to: number): void {
    const { bytes } = this.#document
    let start = from
    let end = to
    while (bytes[start]! <= SPACE) start += 1
    while (bytes[end - 1]! <= SPACE) end -= 1
    this.notes.text(start, end)
  }

  #textMatters(at: number): void {
    this.#tokenAt = at
    this.#tree.text()
  }

  /** A `<` that begins nothing. */
  #lessSign(at: number): number {
    if (this.#tree.watchesText) this.#textMatters(at)
    return at + 1
  }

  // Markup declarations and comments

  #declaration(at: number): number {
    const { bytes } = this.#document
    if (bytes[at + 2] === DASH && bytes[at + 3] === DASH) return this.#comment(at)
    if (this.#tree.isForeign && CDATA.every((byte, index) => bytes[at + 2 + index] === byte)) return this.#cdata(at + 9)
    if (this.#tokenAt < 0 && this.#isDoctype(at + 2)) this.#tree.isQuirky = false
    return this.#bogusComment(at + 2)
  }

  /** `doctype html`. Those of before HTML 4.01, which call for quirks too, are taken for later ones. */
  #isDoctype(at: number): boolean {
    const { bytes } = this.#document
    const from = at + DOCTYPE.length
    if (!DOCTYPE.every((byte, index) => lowerCase[bytes[at + index]!] === byte)) return false
    let p = from
    while ((byteKinds[bytes[p]!]! & WHITE) !== 0) p += 1
    return HTML.every((byte, index) => lowerCase[bytes[p + index]!] === byte)
  }

  /** Bogus comments and doctypes end at the first `>`, quoted or not. */
  #bogusComment(from: number): number {
    return Math.min(this.#document.find(GREATER, from) + 1, this.#document.end)
  }

  /** Ends at `-->` or `--!>`; `<!-->` and `<!--->` are whole comments. */
  #comment(at: number): number {
    const document = this.#document
    const { bytes, end } = document
    // The dashes of the start may be those of the end, but not of an end with a bang.
    for (let p = document.find(GREATER, at + 4); p < end; p = document.find(GREATER, p + 1)) {
      if (bytes[p - 1] === DASH && bytes[p - 2] === DASH) return p + 1
      if (bytes[p - 1] === BANG && bytes[p - 2] === DASH && bytes[p - 3] === DASH && p >= at + 7) return p + 1
    }
    return end
  }

  #cdata(from: number): number {
    const document = this.#document
    const { bytes, end } = document
    let p = document.find(GREATER, from)
    while (p < end && !(bytes[p - 1] === BRACKET && bytes[p - 2] === BRACKET && p >= from + 2)) p = document.find(GREATER, p + 1)
    if (p > from + 2 && this.#tree.watchesText) this.#textMatters(from)
    return Math.min(p + 1, end)
  }

  // Tags

  #startTag(at: number): number {
    const { bytes, end } = this.#document
    const attributes = this.#attributes
    this.#tokenAt = at
    let hash = 0
    let p = at + 1
    for (; p < end; p += 1) {
      const letter = nameLetters[bytes[p]!]!
      if (letter === 0) break
      hash = nextHash(hash, letter)
    }
    const nameEnd = p
    const name = elementTable.find(bytes, at + 1, nameEnd, hash)
    const bits = bitsOf[name]!
    const isRead = (bits & this.#readBits) !== 0
    if (bytes[p] === GREATER) {
      attributes.none()
      p += 1
    } else {
      // In XML and in foreign content a slash at the end of a tag counts.
      p = isRead || this.#isXml || this.#tree.isForeign ? attributes.read(p, isRead) : attributes.skip(p)
    }
    // A tag that the end of the document cuts off is none.
    if (p > end) return end
    const answer = this.#tree.start(name === 0 ? unknownNumber(bytes, at + 1, nameEnd) : name, attributes.isSelfClosing, isRead && this.#hintOf(name))
    if ((answer & came.exists) !== 0) {
      if (isRead) this.notes.element(name, (answer & came.foreign) !== 0)
      else if ((bits & is.heading) !== 0) this.notes.headings += 1
    }
    const isEmpty = this.#isXml && attributes.isSelfClosing
    return (answer & TEXT_CONTENT) !== 0 && !isEmpty ? this.#textContent(name, answer, p) : p
  }

  /** What the tree must know of a tag's attributes. */
  #hintOf(name: number): boolean {
    const attributes = this.#attributes
    switch (name) {
      case tag.input: return attributes.is(attribute.type, 'hidden')
      case tag.font: return attributes.has(attribute.color) || attributes.has(attribute.face) || attributes.has(attribute.size)
      case tag['annotation-xml']: return attributes.is(attribute.encoding, 'text/html') || attributes.is(attribute.encoding, 'application/xhtml+xml')
      default: return false
    }
  }

  #endTag(at: number): number {
    const { bytes, end } = this.#document
    const first = bytes[at + 2]
    if (first === undefined) return this.#lessSign(at)
    if ((byteKinds[first]! & LETTER) === 0) return first === GREATER ? at + 3 : this.#bogusComment(at + 2)
    this.#tokenAt = at
    let hash = 0
    let p = at + 2
    for (; p < end; p += 1) {
      const letter = nameLetters[bytes[p]!]!
      if (letter === 0) break
      hash = nextHash(hash, letter)
    }
    const nameEnd = p
    const name = elementTable.find(bytes, at + 2, nameEnd, hash)
    p = bytes[p] === GREATER ? p + 1 : this.#attributes.skip(p)
    if (p > end) return end
    this.#tree.end(name === 0 ? unknownNumber(bytes, at + 2, nameEnd) : name)
    return p
  }

  // Content that is text

  #textContent(name: number, answer: number, from: number): number {
    const { bytes, end } = this.#document
    if ((answer & came.plaintext) !== 0) return end
    const close = (answer & came.script) !== 0 ? this.#scriptEnd(from) : this.#closingTag(from, name)
    if ((answer & came.exists) !== 0) {
      if (name === tag.script) this.notes.scriptContent(close - from)
      else if (name === tag.title) this.notes.fact(facts.title, from, close)
    }
    if (close === end) return end
    let p = close + 2
    while ((byteKinds[bytes[p]!]! & NAME_END) === 0) p += 1
    return Math.min(this.#attributes.skip(p), end)
  }

  /** Place of the next `</name` that is an end tag; the document's end without one. */
  #closingTag(from: number, name: number): number {
    const document = this.#document
    let at = document.findFar(LESS, from)
    while (at < document.end && !(document.bytes[at + 1] === SLASH && this.#isTagName(at + 2, name))) at = document.findFar(LESS, at + 1)
    return at
  }

  /** Whether the name of an element stands at `at`, ended as a tag's name is. */
  #isTagName(at: number, name: number): boolean {
    const { bytes, end } = this.#document
    // No element whose content is text has a name of more than nine letters.
    const limit = Math.min(end, at + 10)
    let p = at
    while (p < limit && (byteKinds[bytes[p]!]! & NAME_END) === 0) p += 1
    this.#attributes.lookedAtAgain += p - at
    return p < limit && elementAt(bytes, at, p) === name
  }

  /** Place of the end tag of a script ("script data" and its escaped states, sections 13.2.5.4 and 15 to 31). */
  #scriptEnd(from: number): number {
    const document = this.#document
    const { bytes, end } = document
    for (let at = document.findFar(LESS, from); at < end; at = document.findFar(LESS, at + 1)) {
      const next = bytes[at + 1]
      if (next === SLASH) {
        if (this.#isTagName(at + 2, tag.script)) return at
      } else if (next === BANG && bytes[at + 2] === DASH && bytes[at + 3] === DASH) {
        at = this.#escapedScript(at + 4)
        if (this.#isScriptOver) return at
      }
    }
    return end
  }

  /**
   * Script that began with `<!--`: an end tag ends it, but not after a start tag of a script. Answers the place of that
   * end tag, or of the `>` of `-->`, behind which it is a common script again.
   */
  #escapedScript(from: number): number {
    const { bytes, end } = this.#document
    let isDouble = false
    let at = from
    for (; at < end; at += 1) {
      const byte = bytes[at]!
      if (byte === GREATER && bytes[at - 1] === DASH && bytes[at - 2] === DASH) break
      if (byte !== LESS) continue
      const isEnd = bytes[at + 1] === SLASH
      if (!this.#isTagName(at + (isEnd ? 2 : 1), tag.script)) continue
      if (isEnd && !isDouble) break
      isDouble = !isEnd
    }
    this.#isScriptOver = bytes[at] !== GREATER
    this.#document.searched += at - from
    return at
  }
}

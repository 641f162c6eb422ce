/**
 * Reads an HTML document where its bytes lie, and notes what a crawler needs of it as places in those bytes. Tokenizer of
 * the HTML standard (section 13.2.5) over any ASCII-compatible encoding; which tags make elements is tree.ts's to say.
 * Runs in a parse worker, one document at a time. Makes no string and no object for what it reads: places go into
 * arrays that are kept for the next document and grow with its tags only.
 *
 * Invariants: it never throws, whatever the bytes; nothing outside of them is read; and the work is linear in them
 * (`steps`, test/property/scanner-linear): `at` only moves on, and what is searched ahead is remembered until `at`
 * gets there.
 *
 * Reads bytes and not characters because every byte below 0x40 that these encodings have inside a character does not
 * matter here: trail bytes lie at 0x40 or above, or are digits (gb18030). The other encodings are transcoded before.
 */
import { attribute, attributesKnown, attributeTable, bitsOf, elementAt, elementTable, is, lowerCase, nextHash, tag, unknownNumber } from './names.ts'
import { hasTextContent, Tree } from './tree.ts'
import { came } from './tree-body.ts'

export interface ScanOptions {
  /** Also `img` with src, as links. */
  readonly images?: boolean
  /** Also `script` with src. */
  readonly scripts?: boolean
  /** Also `form` with method get and its action. */
  readonly forms?: boolean
  /** Note where text lies that is shown, for a fingerprint of it. */
  readonly wantsText?: boolean
}

/** Kinds of a link, by number. The first six are the elements of html-facts.ts, in its order. */
export const linkKinds = ['a', 'area', 'iframe', 'frame', 'link', 'meta', 'img', 'script', 'form'] as const
const kind = { a: 0, area: 1, iframe: 2, frame: 3, link: 4, meta: 5, img: 6, script: 7, form: 8 } as const

/** Facts that a document has once: the place of their text, by number. */
export const facts = { title: 0, lang: 1, base: 2, canonical: 3, description: 4, generator: 5 } as const
const factsCount = 6

/** Words of a link: kind, start, end, start and end of rel (-1: none). */
export const LINK_WORDS = 5
/** Meta elements with robots directives that are read; further ones could only repeat them. */
const ROBOTS_METAS_MAX = 16

const [TAB, LINE_FEED, FORM_FEED, RETURN, SPACE] = [0x09, 0x0a, 0x0c, 0x0d, 0x20]
const [BANG, QUOTE, APOSTROPHE, DASH, SLASH, LESS, EQUALS, GREATER, QUESTION, BRACKET] = [0x21, 0x22, 0x27, 0x2d, 0x2f, 0x3c, 0x3d, 0x3e, 0x3f, 0x5d]

// What a byte is, as bits.
const WHITE = 1
const NAME_END = 2
const ATTRIBUTE_END = 4
const LETTER = 8
const VALUE_END = 16
const byteKinds = new Uint8Array(256)
for (const byte of [TAB, LINE_FEED, FORM_FEED, RETURN, SPACE]) byteKinds[byte] = WHITE | NAME_END | ATTRIBUTE_END | VALUE_END
for (const byte of [SLASH, GREATER]) byteKinds[byte] = NAME_END | ATTRIBUTE_END
byteKinds[GREATER]! |= VALUE_END
byteKinds[EQUALS] = ATTRIBUTE_END
for (let letter = 0x61; letter <= 0x7a; letter += 1) byteKinds[letter] = byteKinds[letter - 0x20] = LETTER

/** Whether a byte of text is counted: white space is not, and of a character in UTF-8 its first byte is. */
const isCounted = new Uint8Array(256).map((_, byte) => (byte <= SPACE || (byte >= 0x80 && byte < 0xc0) ? 0 : 1))
// The same for the four bytes of a word: a byte above 0x20 gets its high bit by adding, one above 0x7f has it.
const ONES = 0x01010101
const HIGH_BITS = 0x80808080 | 0
const LOW_BITS = 0x7f7f7f7f
const BLANK_GAP = 0x5f5f5f5f
const LESS_WORD = LESS * ONES
/** Elsewhere the first byte is not the lowest of a word: there bytes are looked at one by one. */
const isLittleEndian = new Uint8Array(Int32Array.of(1).buffer)[0] === 1

/** What a byte adds to the hash of a tag's name; 0 where the name ends. */
const nameLetters = lowerCase.map((byte, index) => ((byteKinds[index]! & NAME_END) !== 0 ? 0 : byte === 0 ? 1 : byte))

const attributeLetters = lowerCase.map((byte, index) => ((byteKinds[index]! & ATTRIBUTE_END) !== 0 ? 0 : byte === 0 ? 1 : byte))

const CDATA = Buffer.from('[CDATA[')

export class HtmlScanner {
  readonly #tree = new Tree()
  #bytes: Uint8Array = new Uint8Array(0)
  /** The same bytes as words of four: byte `at` lies in word (at + shift) / 4. */
  #words: Int32Array = new Int32Array(0)
  #shift = 0
  #end = 0
  #buffer: Buffer = Buffer.alloc(0)
  #options: ScanOptions = {}

  // Attributes of the tag in hand: where each known one has its value, when its stamp is that of this tag.
  readonly #valueStart = new Int32Array(attributesKnown + 1)
  readonly #valueEnd = new Int32Array(attributesKnown + 1)
  readonly #stamps = new Int32Array(attributesKnown + 1)
  #stamp = 0
  #isSelfClosing = false
  #readBits: number = is.read

  #isEscapedOver = false

  #links: Int32Array = new Int32Array(LINK_WORDS * 512)
  #texts: Int32Array = new Int32Array(2 * 512)
  readonly #facts = new Int32Array(2 * factsCount)
  readonly #robots = new Int32Array(2 * ROBOTS_METAS_MAX)
  #bodyAt = 0
  #bodyLinks = 0

  linkCount = 0
  textCount = 0
  robotsCount = 0
  headings = 0
  textLength = 0
  scriptLength = 0
  scriptsLoaded = 0

  constructor() {
    this.#tree.onBody = () => { this.#bodyLinks = this.linkCount; this.#bodyAt = this.#tagAt }
    this.#tree.onBodyLost = () => this.#forgetBody()
  }

  #tagAt = 0

  /** Bytes looked at and stack entries visited in the last document. */
  get steps(): number {
    return this.#end + this.#tree.open.visits
  }

  /** `linkCount` links of LINK_WORDS words each; valid until the next scan. */
  get links(): Int32Array {
    return this.#links
  }

  /** `textCount` pairs of start and end. */
  get texts(): Int32Array {
    return this.#texts
  }

  /** Start of a fact's text; -1: the document has none. */
  factStart(fact: number): number {
    return this.#facts[2 * fact]!
  }

  factEnd(fact: number): number {
    return this.#facts[2 * fact + 1]!
  }

  /** Place of the content of a robots meta element. */
  robotsStart(index: number): number {
    return this.#robots[2 * index]!
  }

  robotsEnd(index: number): number {
    return this.#robots[2 * index + 1]!
  }

  /** Reads a document in an ASCII-compatible encoding, its byte order mark left out. */
  scan(bytes: Uint8Array, options: ScanOptions = {}): this {
    this.#begin(bytes, options)
    const end = this.#end
    let at = 0
    while (at < end) {
      if (bytes[at] !== LESS) {
        at = this.#text(at)
        continue
      }
      const next = bytes[at + 1]!
      if ((byteKinds[next]! & LETTER) !== 0) at = this.#startTag(at)
      else if (next === SLASH) at = this.#endTag(at)
      else if (next === BANG) at = this.#declaration(at)
      else if (next === QUESTION) at = this.#bogusComment(at + 1)
      else at = this.#lessSign(at)
    }
    return this
  }

  #begin(bytes: Uint8Array, options: ScanOptions): void {
    this.#bytes = bytes
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#end = bytes.byteLength
    this.#shift = bytes.byteOffset & 3
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset - this.#shift, isLittleEndian ? (bytes.byteLength + this.#shift) >> 2 : 0)
    this.#options = options
    this.#readBits = options.images === true || options.forms === true ? is.read | is.readIfAsked : is.read
    this.#tree.reset()
    this.#facts.fill(-1)
    this.#tagAt = this.#bodyAt = this.#bodyLinks = 0
    this.linkCount = this.textCount = this.robotsCount = 0
    this.headings = this.textLength = this.scriptLength = this.scriptsLoaded = 0
  }

  // Text

  /**
   * Text from `start` to the next `<`, counted, four bytes at a time: most of what lies between tags is white space.
   * The sums of a word cannot run into each other, since of each byte seven bits are added.
   */
  #text(start: number): number {
    const words = this.#words
    let index = (start + this.#shift) >> 2
    // Bytes before the start are left out of the first word.
    let mask = -1 << (((start + this.#shift) & 3) << 3)
    let count = 0
    for (const wordsEnd = words.length; index < wordsEnd; index += 1) {
      const word = words[index]!
      const less = (word ^ LESS_WORD) | ~mask
      const counted = (((word & LOW_BITS) + BLANK_GAP) | word) & (~word | (word << 1)) & HIGH_BITS & mask
      const found = (less - ONES) & ~less & HIGH_BITS
      if (found !== 0) {
        // The lowest is right; those above it may be no `<`.
        const first = found & -found
        count += Math.imul((counted & (first - 1)) >>> 7, ONES) >>> 24
        return this.#textEnd(start, (index << 2) - this.#shift + ((31 - Math.clz32(first)) >> 3), count)
      }
      if (counted !== 0) count += Math.imul(counted >>> 7, ONES) >>> 24
      mask = -1
    }
    return this.#lastText(start, Math.max(start, (index << 2) - this.#shift), count)
  }

  /** What is left of the document behind its last whole word. */
  #lastText(start: number, from: number, before: number): number {
    const bytes = this.#bytes
    let count = before
    let at = from
    for (; at < this.#end; at += 1) {
      const byte = bytes[at]!
      if (byte === LESS) break
      count += isCounted[byte]!
    }
    return this.#textEnd(start, at, count)
  }

  #textEnd(start: number, at: number, count: number): number {
    if (count > 0) this.#shown(start, at, count)
    return at
  }

  /** Text that is not white space alone. */
  #shown(start: number, end: number, count: number): void {
    const tree = this.#tree
    if (tree.watchesText) this.#textMatters(start)
    if (!tree.isTextShown) return
    this.textLength += count
    if (this.#options.wantsText === true) this.#noteText(start, end)
  }

  #textMatters(at: number): void {
    this.#tagAt = at
    this.#tree.text()
  }

  #noteText(start: number, end: number): void {
    if (2 * this.textCount === this.#texts.length) this.#texts = grown(this.#texts)
    this.#texts[2 * this.textCount] = start
    this.#texts[2 * this.textCount + 1] = end
    this.textCount += 1
  }

  /** A `<` that begins nothing. */
  #lessSign(at: number): number {
    if (this.#tree.watchesText) this.#textMatters(at)
    return at + 1
  }

  // Markup declarations and comments

  #declaration(at: number): number {
    const bytes = this.#bytes
    if (bytes[at + 2] === DASH && bytes[at + 3] === DASH) return this.#comment(at)
    if (bytes[at + 2] === CDATA[0] && this.#tree.isForeign && this.#startsWith(CDATA, at + 2)) return this.#cdata(at + 9)
    return this.#bogusComment(at + 2)
  }

  #startsWith(text: Uint8Array, at: number): boolean {
    for (let index = 0; index < text.length; index += 1) if (this.#bytes[at + index] !== text[index]) return false
    return true
  }

  /** Bogus comments and doctypes end at the first `>`, quoted or not. */
  #bogusComment(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    let at = from
    while (at < end && bytes[at] !== GREATER) at += 1
    return at < end ? at + 1 : end
  }

  /** Ends at `-->` or `--!>`; `<!-->` and `<!--->` are whole comments. */
  #comment(at: number): number {
    const bytes = this.#bytes
    const end = this.#end
    // The dashes of the start may be those of the end, but not of an end with a bang.
    for (let p = at + 4; p < end; p += 1) {
      if (bytes[p] !== GREATER) continue
      if (bytes[p - 1] === DASH && bytes[p - 2] === DASH) return p + 1
      if (bytes[p - 1] === BANG && bytes[p - 2] === DASH && bytes[p - 3] === DASH && p >= at + 7) return p + 1
    }
    return end
  }

  #cdata(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    let p = from
    while (p < end && !(bytes[p] === GREATER && bytes[p - 1] === BRACKET && bytes[p - 2] === BRACKET && p >= from + 2)) p += 1
    if (p > from + 2 && this.#tree.watchesText) this.#textMatters(from)
    return p < end ? p + 1 : end
  }

  // Tags

  #startTag(at: number): number {
    const bytes = this.#bytes
    const end = this.#end
    this.#tagAt = at
    let hash = 0
    let p = at + 1
    for (; p < end; p += 1) {
      const letter = nameLetters[bytes[p]!]!
      if (letter === 0) break
      hash = nextHash(hash, letter)
    }
    const known = elementTable.find(bytes, at + 1, p, hash)
    const bits = bitsOf[known]!
    const isRead = (bits & this.#readBits) !== 0
    if (bytes[p] === GREATER) {
      this.#isSelfClosing = false
      if (isRead) this.#stamp += 1
      p += 1
    } else {
      p = isRead ? this.#readAttributes(p) : this.#skipAttributes(p)
    }
    // A tag that the end of the document cuts off is none.
    if (p > end) return end
    const answer = this.#tree.start(known === 0 ? unknownNumber(hash) : known, this.#isSelfClosing, isRead && this.#hintOf(known))
    if ((answer & came.exists) !== 0) {
      if (isRead) this.#element(known, answer)
      else if ((bits & is.heading) !== 0) this.headings += 1
    }
    return hasTextContent(answer) ? this.#textContent(known, answer, p) : p
  }

  /** What the tree must know of a tag's attributes. */
  #hintOf(name: number): boolean {
    switch (name) {
      case tag.input: return this.#valueIs(attribute.type, 'hidden')
      case tag.font: return this.#has(attribute.color) || this.#has(attribute.face) || this.#has(attribute.size)
      case tag['annotation-xml']: return this.#valueIs(attribute.encoding, 'text/html') || this.#valueIs(attribute.encoding, 'application/xhtml+xml')
      default: return false
    }
  }

  #has(name: number): boolean {
    return this.#stamps[name] === this.#stamp
  }

  /** Whether an attribute has this value, ASCII case ignored, white space around it too. */
  #valueIs(name: number, text: string): boolean {
    return this.#has(name) && this.#isWord(this.#valueStart[name]!, this.#valueEnd[name]!, text)
  }

  #isWord(start: number, end: number, text: string): boolean {
    const bytes = this.#bytes
    if (end - start !== text.length) return false
    for (let index = 0; index < text.length; index += 1) if (lowerCase[bytes[start + index]!] !== text.charCodeAt(index)) return false
    return true
  }

  /** Goes over attributes from the end of a tag's name; answers the place after `>`, or beyond the end without one. */
  #skipAttributes(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    let p = from
    for (;;) {
      // Before a name.
      let byte = bytes[p]!
      while (p < end && ((byteKinds[byte]! & WHITE) !== 0 || byte === SLASH)) byte = bytes[++p]!
      if (p >= end) return end + 1
      if (byte === GREATER) {
        this.#isSelfClosing = bytes[p - 1] === SLASH
        return p + 1
      }
      // A name: its first byte may be anything else, `=` too.
      p += 1
      while (p < end && (byteKinds[bytes[p]!]! & ATTRIBUTE_END) === 0) p += 1
      while (p < end && (byteKinds[bytes[p]!]! & WHITE) !== 0) p += 1
      if (bytes[p] !== EQUALS) continue
      p += 1
      while (p < end && (byteKinds[bytes[p]!]! & WHITE) !== 0) p += 1
      byte = bytes[p]!
      if (byte === QUOTE || byte === APOSTROPHE) {
        const quote = byte
        p = this.#find(quote, p + 1)
        if (p >= end) return end + 1
        p += 1
        // Right after a quoted value nothing has begun, so `/>` there closes.
      } else {
        while (p < end && (byteKinds[bytes[p]!]! & VALUE_END) === 0) p += 1
        if (bytes[p] === GREATER) {
          this.#isSelfClosing = false
          return p + 1
        }
      }
    }
  }

  /** The same, and notes where the known attributes have their values; the first of a name counts. */
  #readAttributes(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    this.#stamp += 1
    let p = from
    for (;;) {
      let byte = bytes[p]!
      while (p < end && ((byteKinds[byte]! & WHITE) !== 0 || byte === SLASH)) byte = bytes[++p]!
      if (p >= end) return end + 1
      if (byte === GREATER) {
        this.#isSelfClosing = bytes[p - 1] === SLASH
        return p + 1
      }
      const nameStart = p
      let hash = lowerCase[byte]!
      for (p += 1; p < end; p += 1) {
        const letter = attributeLetters[bytes[p]!]!
        if (letter === 0) break
        hash = nextHash(hash, letter)
      }
      const name = attributeTable.find(bytes, nameStart, p, hash)
      while (p < end && (byteKinds[bytes[p]!]! & WHITE) !== 0) p += 1
      let valueStart = p
      let valueEnd = p
      let isOver = false
      if (bytes[p] === EQUALS) {
        p += 1
        while (p < end && (byteKinds[bytes[p]!]! & WHITE) !== 0) p += 1
        byte = bytes[p]!
        if (byte === QUOTE || byte === APOSTROPHE) {
          valueStart = p + 1
          p = this.#find(byte, valueStart)
          if (p >= end) return end + 1
          valueEnd = p
          p += 1
        } else {
          valueStart = p
          while (p < end && (byteKinds[bytes[p]!]! & VALUE_END) === 0) p += 1
          valueEnd = p
          isOver = bytes[p] === GREATER
        }
      }
      if (name !== 0 && this.#stamps[name] !== this.#stamp) {
        this.#stamps[name] = this.#stamp
        this.#valueStart[name] = valueStart
        this.#valueEnd[name] = valueEnd
      }
      if (isOver) {
        this.#isSelfClosing = false
        return p + 1
      }
    }
  }

  /** Place of the next such byte at or after `from`; the document's end without one. Four at a time, as in `#text`. */
  #find(byte: number, from: number): number {
    const words = this.#words
    const pattern = Math.imul(byte, ONES)
    let index = (from + this.#shift) >> 2
    let mask = -1 << (((from + this.#shift) & 3) << 3)
    for (const wordsEnd = words.length; index < wordsEnd; index += 1) {
      const differs = (words[index]! ^ pattern) | ~mask
      const found = (differs - ONES) & ~differs & HIGH_BITS
      if (found !== 0) return (index << 2) - this.#shift + ((31 - Math.clz32(found & -found)) >> 3)
      mask = -1
    }
    let at = Math.max(from, (index << 2) - this.#shift)
    while (at < this.#end && this.#bytes[at] !== byte) at += 1
    return at
  }

  #endTag(at: number): number {
    const bytes = this.#bytes
    const end = this.#end
    const first = bytes[at + 2]
    if (first === undefined) return this.#lessSign(at)
    if ((byteKinds[first]! & LETTER) === 0) return first === GREATER ? at + 3 : this.#bogusComment(at + 2)
    this.#tagAt = at
    let hash = 0
    let p = at + 2
    for (; p < end; p += 1) {
      const letter = nameLetters[bytes[p]!]!
      if (letter === 0) break
      hash = nextHash(hash, letter)
    }
    const known = elementTable.find(bytes, at + 2, p, hash)
    p = bytes[p] === GREATER ? p + 1 : this.#skipAttributes(p)
    if (p > end) return end
    this.#tree.end(known === 0 ? unknownNumber(hash) : known)
    return p
  }

  // Content that is text

  #textContent(name: number, answer: number, from: number): number {
    if ((answer & came.plaintext) !== 0) return this.#end
    const close = (answer & came.script) !== 0 ? this.#scriptEnd(from) : this.#closingTag(from, name)
    const isRead = (answer & came.exists) !== 0
    if (isRead && name === tag.script) this.scriptLength += close - from
    if (isRead && name === tag.title) this.#fact(facts.title, from, close)
    if (close >= this.#end) return this.#end
    // The end tag may have attributes.
    const p = this.#skipAttributes(close + 2 + this.#nameLength(close + 2))
    return p > this.#end ? this.#end : p
  }

  #nameLength(at: number): number {
    const bytes = this.#bytes
    let p = at
    while (p < this.#end && (byteKinds[bytes[p]!]! & NAME_END) === 0) p += 1
    return p - at
  }

  /** Place of the next `</name` that is an end tag; the document's end without one. */
  #closingTag(from: number, name: number): number {
    for (let at = this.#nextLess(from); ; at = this.#nextLess(at + 1)) {
      if (at === this.#end || (this.#bytes[at + 1] === SLASH && this.#isTagName(at + 2, name))) return at
    }
  }

  /** Place of the next `<`; the document's end without one. By memchr: scripts and styles are a quarter of a page. */
  #nextLess(from: number): number {
    const at = this.#buffer.indexOf(LESS, from)
    return at === -1 ? this.#end : at
  }

  /** Whether the name of an element stands at `at`, ended as a tag's name is. */
  #isTagName(at: number, name: number): boolean {
    const bytes = this.#bytes
    // No name of an element whose content is text is longer than nine letters.
    const limit = Math.min(this.#end, at + 10)
    let p = at
    while (p < limit && (byteKinds[bytes[p]!]! & NAME_END) === 0) p += 1
    return p < limit && p > at && elementAt(bytes, at, p) === name
  }

  /** Place of the end tag of a script ("script data" and its escaped states, sections 13.2.5.4 and 15 to 31). */
  #scriptEnd(from: number): number {
    const bytes = this.#bytes
    for (let at = this.#nextLess(from); at < this.#end; at = this.#nextLess(at + 1)) {
      const next = bytes[at + 1]
      if (next === SLASH) {
        if (this.#isTagName(at + 2, tag.script)) return at
      } else if (next === BANG && bytes[at + 2] === DASH && bytes[at + 3] === DASH) {
        at = this.#escapedScript(at + 4)
        if (this.#isEscapedOver) return at
      }
    }
    return this.#end
  }

  /**
   * Script that began with `<!--`: an end tag ends it, but not after a start tag of a script. Answers the place of that
   * end tag, or of the `>` of `-->` behind which it is a common script again (`#isEscapedOver` tells which).
   */
  #escapedScript(from: number): number {
    const bytes = this.#bytes
    const end = this.#end
    let isDouble = false
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at]!
      if (byte === GREATER && bytes[at - 1] === DASH && bytes[at - 2] === DASH) {
        this.#isEscapedOver = false
        return at
      }
      if (byte !== LESS) continue
      const isEnd = bytes[at + 1] === SLASH
      if (!this.#isTagName(at + (isEnd ? 2 : 1), tag.script)) continue
      if (isEnd && !isDouble) {
        this.#isEscapedOver = true
        return at
      }
      isDouble = !isEnd
    }
    this.#isEscapedOver = true
    return end
  }

  // Elements

  #element(name: number, answer: number): void {
    if ((answer & came.foreign) !== 0) {
      if (name === tag.a) this.#link(kind.a, this.#has(attribute.href) ? attribute.href : attribute['xlink:href'])
      return
    }
    switch (name) {
      case tag.a: this.#link(kind.a, attribute.href); return
      case tag.area: this.#link(kind.area, attribute.href); return
      case tag.iframe: this.#link(kind.iframe, attribute.src); return
      case tag.frame: this.#link(kind.frame, attribute.src); return
      case tag.link: this.#linkElement(); return
      case tag.meta: this.#meta(); return
      case tag.base: this.#factOf(facts.base, attribute.href); return
      case tag.html: this.#factOf(facts.lang, attribute.lang); return
      case tag.script:
        if (!this.#has(attribute.src)) return
        this.scriptsLoaded += 1
        if (this.#options.scripts === true) this.#link(kind.script, attribute.src)
        return
      case tag.img: case tag.image: if (this.#options.images === true) this.#link(kind.img, attribute.src); return
      case tag.form: if (this.#options.forms === true && (!this.#has(attribute.method) || this.#valueIs(attribute.method, 'get'))) this.#link(kind.form, attribute.action); return
      default:
    }
  }

  #link(linkKind: number, from: number): void {
    if (!this.#has(from)) return
    const at = LINK_WORDS * this.linkCount
    if (at === this.#links.length) this.#links = grown(this.#links)
    const links = this.#links
    const hasRel = this.#has(attribute.rel)
    links[at] = linkKind
    links[at + 1] = this.#valueStart[from]!
    links[at + 2] = this.#valueEnd[from]!
    links[at + 3] = hasRel ? this.#valueStart[attribute.rel]! : -1
    links[at + 4] = hasRel ? this.#valueEnd[attribute.rel]! : -1
    this.linkCount += 1
  }

  #linkElement(): void {
    if (!this.#has(attribute.rel)) return
    if (this.#relHas('canonical')) this.#factOf(facts.canonical, attribute.href)
    if ((this.#relHas('alternate') || this.#relHas('next') || this.#relHas('prev')) && !this.#relHas('stylesheet')) this.#link(kind.link, attribute.href)
  }

  /** Whether the rel attribute has a word. */
  #relHas(word: string): boolean {
    const bytes = this.#bytes
    const end = this.#valueEnd[attribute.rel]!
    let at = this.#valueStart[attribute.rel]!
    while (at < end) {
      while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
      const start = at
      while (at < end && (byteKinds[bytes[at]!]! & WHITE) === 0) at += 1
      if (this.#isWord(start, at, word)) return true
    }
    return false
  }

  #meta(): void {
    if (!this.#has(attribute.content)) return
    if (this.#has(attribute['http-equiv']) && this.#trimmedIs(attribute['http-equiv'], 'refresh')) this.#link(kind.meta, attribute.content)
    if (!this.#has(attribute.name)) return
    if (this.#trimmedIs(attribute.name, 'robots')) this.#noteRobots()
    else if (this.#trimmedIs(attribute.name, 'description')) this.#factOf(facts.description, attribute.content)
    else if (this.#trimmedIs(attribute.name, 'generator')) this.#factOf(facts.generator, attribute.content)
  }

  #trimmedIs(name: number, text: string): boolean {
    const bytes = this.#bytes
    let start = this.#valueStart[name]!
    let end = this.#valueEnd[name]!
    while (start < end && (byteKinds[bytes[start]!]! & WHITE) !== 0) start += 1
    while (end > start && (byteKinds[bytes[end - 1]!]! & WHITE) !== 0) end -= 1
    return this.#isWord(start, end, text)
  }

  #noteRobots(): void {
    if (this.robotsCount === ROBOTS_METAS_MAX) return
    this.#robots[2 * this.robotsCount] = this.#valueStart[attribute.content]!
    this.#robots[2 * this.robotsCount + 1] = this.#valueEnd[attribute.content]!
    this.robotsCount += 1
  }

  #factOf(fact: number, from: number): void {
    if (this.#has(from)) this.#fact(fact, this.#valueStart[from]!, this.#valueEnd[from]!)
  }

  /** The first of a kind counts. */
  #fact(fact: number, start: number, end: number): void {
    if (this.#facts[2 * fact]! >= 0) return
    this.#facts[2 * fact] = start
    this.#facts[2 * fact + 1] = end
  }

  /** A frameset has taken the place of the body: what stood in it is gone. */
  #forgetBody(): void {
    this.linkCount = this.#bodyLinks
    for (let fact = 0; fact < factsCount; fact += 1) if (this.#facts[2 * fact]! >= this.#bodyAt) this.#facts[2 * fact] = -1
    this.textLength = this.headings = this.textCount = 0
  }
}

function grown(words: Int32Array): Int32Array {
  const larger = new Int32Array(2 * words.length)
  larger.set(words)
  return larger
}

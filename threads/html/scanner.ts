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
import { attribute, attributesKnown, attributeTable, bitsOf, elementTable, is, lowerCase, tag, unknownNumber } from './names.ts'
import { came, hasTextContent, Tree } from './tree.ts'

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
const [BANG, QUOTE, APOSTROPHE, DASH, SLASH, LESS, EQUALS, GREATER, QUESTION] = [0x21, 0x22, 0x27, 0x2d, 0x2f, 0x3c, 0x3d, 0x3e, 0x3f]

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

/** What a byte of text adds to its length: trail bytes of UTF-8 nothing. Of other encodings each byte counts one. */
const isCharacter = new Uint8Array(256).map((_, byte) => (byte >= 0x80 && byte < 0xc0 ? 0 : 1))

const COMMENT_END = Buffer.from('-->')
const COMMENT_END_BANG = Buffer.from('--!>')
const COMMENT_START = Buffer.from('<!--')
const CDATA_END = Buffer.from(']]>')
const END_TAG = Buffer.from('</')
const CDATA = Buffer.from('[CDATA[')
const NONE = 0x7fffffff

export class HtmlScanner {
  readonly #tree = new Tree()
  #bytes: Uint8Array = new Uint8Array(0)
  #buffer: Buffer = Buffer.alloc(0)
  #options: ScanOptions = {}
  #inSpace = false

  // Attributes of the tag in hand: where each known one has its value, when its stamp is that of this tag.
  readonly #valueStart = new Int32Array(attributesKnown + 1)
  readonly #valueEnd = new Int32Array(attributesKnown + 1)
  readonly #stamps = new Int32Array(attributesKnown + 1)
  #stamp = 0
  #isSelfClosing = false

  // Places found by searching ahead, until `at` has passed them.
  #nextBang = 0
  #nextCommentStart = 0
  #searched = 0

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
    return this.#bytes.byteLength + this.#searched + this.#tree.open.visits
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
    const end = bytes.byteLength
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
    this.#options = options
    this.#tree.reset()
    this.#facts.fill(-1)
    this.#inSpace = false
    this.#nextBang = this.#nextCommentStart = -1
    this.#searched = this.#tagAt = this.#bodyAt = this.#bodyLinks = 0
    this.linkCount = this.textCount = this.robotsCount = 0
    this.headings = this.textLength = this.scriptLength = this.scriptsLoaded = 0
  }

  // Text

  /** Text from `at` to the next `<`. */
  #text(start: number): number {
    const bytes = this.#bytes
    const end = bytes.byteLength
    let at = start
    let count = 0
    let inSpace = this.#inSpace
    for (; at < end; at += 1) {
      const byte = bytes[at]!
      if (byte === LESS) break
      if ((byteKinds[byte]! & WHITE) !== 0) {
        inSpace = true
      } else {
        if (inSpace) {
          count += 1
          inSpace = false
        }
        count += isCharacter[byte]!
      }
    }
    if (count > 0) this.#shown(start, at, count)
    else if (inSpace) this.#inSpace = true
    return at
  }

  /** Text that is not white space alone; each word after a space counted one too many, which pays for the space. */
  #shown(start: number, end: number, count: number): void {
    const tree = this.#tree
    if (tree.watchesText) this.#textMatters(start)
    if (!tree.isTextShown) return
    this.textLength += count
    this.#inSpace = (byteKinds[this.#bytes[end - 1]!]! & WHITE) !== 0
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
    const end = bytes.byteLength
    let at = from
    while (at < end && bytes[at] !== GREATER) at += 1
    return at < end ? at + 1 : end
  }

  #comment(at: number): number {
    const bytes = this.#bytes
    const from = at + 4
    if (bytes[from] === GREATER) return from + 1
    if (bytes[from] === DASH && bytes[from + 1] === GREATER) return from + 2
    // From the second dash on, so that `<!-->` and `<!--->` would be found too; a bang needs two dashes of its own.
    const end = this.#search(COMMENT_END, from)
    if (this.#nextBang < from) this.#nextBang = this.#search(COMMENT_END_BANG, from)
    if (end < this.#nextBang) return end + 3
    return this.#nextBang === NONE ? bytes.byteLength : this.#nextBang + 4
  }

  #cdata(from: number): number {
    const found = this.#search(CDATA_END, from)
    const end = found === NONE ? this.#bytes.byteLength : found
    if (end > from && this.#tree.watchesText) this.#textMatters(from)
    return found === NONE ? end : found + 3
  }

  /** Place of `text` at or after `from`; NONE when there is none. */
  #search(text: Buffer, from: number): number {
    const found = this.#buffer.indexOf(text, from)
    this.#searched += (found === -1 ? this.#bytes.byteLength : found) - from
    return found === -1 ? NONE : found
  }

  // Tags

  #startTag(at: number): number {
    const bytes = this.#bytes
    const end = bytes.byteLength
    this.#tagAt = at
    let hash = 0
    let p = at + 1
    for (; p < end; p += 1) {
      const byte = bytes[p]!
      if ((byteKinds[byte]! & NAME_END) !== 0) break
      hash = (Math.imul(hash, 33) + lowerCase[byte]!) | 0
    }
    const known = elementTable.find(bytes, at + 1, p, hash)
    const bits = bitsOf[known]!
    p = (bits & is.read) !== 0 ? this.#readAttributes(p) : this.#skipAttributes(p)
    // A tag that the end of the document cuts off is none.
    if (p > end) return end
    const answer = this.#tree.start(known === 0 ? unknownNumber(hash) : known, this.#isSelfClosing, (bits & is.read) !== 0 && this.#hintOf(known))
    if ((answer & came.exists) !== 0) {
      if ((bits & is.read) !== 0) this.#element(known, answer)
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
    const end = bytes.byteLength
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
        p += 1
        while (p < end && bytes[p] !== quote) p += 1
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
    const end = bytes.byteLength
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
      p += 1
      while (p < end && (byteKinds[byte = bytes[p]!]! & ATTRIBUTE_END) === 0) {
        hash = (Math.imul(hash, 33) + lowerCase[byte]!) | 0
        p += 1
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
          p += 1
          while (p < end && bytes[p] !== byte) p += 1
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

  #endTag(at: number): number {
    const bytes = this.#bytes
    const end = bytes.byteLength
    const first = bytes[at + 2]
    if (first === undefined) return this.#lessSign(at)
    if ((byteKinds[first]! & LETTER) === 0) return first === GREATER ? at + 3 : this.#bogusComment(at + 2)
    this.#tagAt = at
    let hash = 0
    let p = at + 2
    for (; p < end; p += 1) {
      const byte = bytes[p]!
      if ((byteKinds[byte]! & NAME_END) !== 0) break
      hash = (Math.imul(hash, 33) + lowerCase[byte]!) | 0
    }
    const known = elementTable.find(bytes, at + 2, p, hash)
    p = bytes[p] === GREATER ? p + 1 : this.#skipAttributes(p)
    if (p > end) return end
    this.#tree.end(known === 0 ? unknownNumber(hash) : known)
    return p
  }

  // Content that is text

  #textContent(name: number, answer: number, from: number): number {
    if ((answer & came.plaintext) !== 0) return this.#bytes.byteLength
    const close = (answer & came.script) !== 0 ? this.#scriptEnd(from) : this.#closingTag(from, name)
    const isRead = (answer & came.exists) !== 0
    if (isRead && name === tag.script) this.scriptLength += close - from
    if (isRead && name === tag.title) this.#fact(facts.title, from, close)
    if (close >= this.#bytes.byteLength) return this.#bytes.byteLength
    // The end tag may have attributes.
    const p = this.#skipAttributes(close + 2 + this.#nameLength(close + 2))
    return p > this.#bytes.byteLength ? this.#bytes.byteLength : p
  }

  #nameLength(at: number): number {
    const bytes = this.#bytes
    let p = at
    while (p < bytes.byteLength && (byteKinds[bytes[p]!]! & NAME_END) === 0) p += 1
    return p - at
  }

  /** Place of the next `</name` that is an end tag; the document's end without one. */
  #closingTag(from: number, name: number): number {
    for (let at = this.#search(END_TAG, from); at !== NONE; at = this.#search(END_TAG, at + 2)) {
      if (this.#isTagName(at + 2, name)) return at
    }
    return this.#bytes.byteLength
  }

  /** Whether the name of an element stands at `at`, ended as a tag's name is. */
  #isTagName(at: number, name: number): boolean {
    const bytes = this.#bytes
    const first = lowerCase[bytes[at] ?? 0]!
    if (first < 0x61 || first > 0x7a) return false
    let hash = 0
    let p = at
    // No known name with text content is longer than nine letters.
    for (const limit = Math.min(bytes.byteLength, at + 10); p < limit && (byteKinds[bytes[p]!]! & NAME_END) === 0; p += 1) {
      hash = (Math.imul(hash, 33) + lowerCase[bytes[p]!]!) | 0
    }
    return p < bytes.byteLength && (byteKinds[bytes[p]!]! & NAME_END) !== 0 && elementTable.find(bytes, at, p, hash) === name
  }

  /** Place of the end tag of a script ("script data" and its escaped states, sections 13.2.5.4 and 15 to 31). */
  #scriptEnd(from: number): number {
    let at = from
    for (;;) {
      const close = this.#closingTag(at, tag.script)
      if (this.#nextCommentStart < at) this.#nextCommentStart = this.#search(COMMENT_START, at)
      if (this.#nextCommentStart > close) return close
      const escaped = this.#escapedScript(this.#nextCommentStart + 4)
      if (escaped >= 0) return escaped
      at = -escaped
    }
  }

  /**
   * Script that began with `<!--`: an end tag ends it, but not after a start tag of a script. Answers the place of the
   * end tag (or the document's end), or less than 0: minus the place after `-->`.
   */
  #escapedScript(from: number): number {
    const bytes = this.#bytes
    const end = bytes.byteLength
    let isDouble = false
    // `<!-->` has its dashes in the start.
    for (let at = from - 2; at < end; at += 1) {
      const byte = bytes[at]!
      if (byte === GREATER) {
        if (at >= from && bytes[at - 1] === DASH && bytes[at - 2] === DASH) return this.#leaveEscaped(from, at + 1)
      } else if (byte === LESS) {
        const isEnd = bytes[at + 1] === SLASH
        if (!this.#isTagName(at + (isEnd ? 2 : 1), tag.script)) continue
        if (isEnd && !isDouble) return this.#countEscaped(from, at)
        isDouble = !isEnd
      }
    }
    return this.#countEscaped(from, end)
  }

  #leaveEscaped(from: number, at: number): number {
    return -this.#countEscaped(from, at)
  }

  #countEscaped(from: number, at: number): number {
    this.#searched += at - from
    return at
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

/**
 * The attributes of the tag in hand: gone over to find where the tag ends, and if asked, where the known ones have their
 * values (HTML standard, sections 13.2.5.32 to 40). Runs in a parse worker. Fixed memory, whatever a tag holds: one
 * place for each known name, and a stamp that says whether it is of this tag.
 */
import { APOSTROPHE, ATTRIBUTE_END, attributeLetters, byteKinds, EQUALS, GREATER, QUOTE, SLASH, VALUE_END, WHITE, type DocumentBytes } from './bytes.ts'
import { attributesKnown, attributeTable, lowerCase, nextHash } from './names.ts'

export class Attributes {
  /** The tag ended in `/>`. */
  isSelfClosing = false
  readonly #document: DocumentBytes
  readonly #starts = new Int32Array(attributesKnown + 1)
  readonly #ends = new Int32Array(attributesKnown + 1)
  readonly #stamps = new Int32Array(attributesKnown + 1)
  #stamp = 0
  #valueStart = 0
  #valueEnd = 0

  constructor(document: DocumentBytes) {
    this.#document = document
  }

  /** A tag without attributes. */
  none(): void {
    this.isSelfClosing = false
    this.#stamp += 1
  }

  /** From the end of a tag's name to the place after its `>`; a place beyond the end when the document ends before. */
  skip(from: number): number {
    const { bytes, end } = this.#document
    let at = from
    for (;;) {
      while (at < end && ((byteKinds[bytes[at]!]! & WHITE) !== 0 || bytes[at] === SLASH)) at += 1
      if (at >= end) return end + 1
      if (bytes[at] === GREATER) return this.#over(at, bytes[at - 1] === SLASH)
      // The first byte of a name may be anything else, `=` too.
      at += 1
      while (at < end && (byteKinds[bytes[at]!]! & ATTRIBUTE_END) === 0) at += 1
      at = this.#value(at)
      if (at < 0) return this.#over(-at, false)
    }
  }

  /** The same; the values of known attributes can be asked for afterwards. Of two with one name the first counts. */
  read(from: number): number {
    const { bytes, end } = this.#document
    this.#stamp += 1
    let at = from
    for (;;) {
      while (at < end && ((byteKinds[bytes[at]!]! & WHITE) !== 0 || bytes[at] === SLASH)) at += 1
      if (at >= end) return end + 1
      if (bytes[at] === GREATER) return this.#over(at, bytes[at - 1] === SLASH)
      const nameStart = at
      let hash: number = lowerCase[bytes[at]!]!
      for (at += 1; at < end; at += 1) {
        const letter = attributeLetters[bytes[at]!]!
        if (letter === 0) break
        hash = nextHash(hash, letter)
      }
      const name = attributeTable.find(bytes, nameStart, at, hash)
      at = this.#value(at)
      // A value that the document's end cuts off belongs to a tag that is none.
      if (name !== 0 && this.#stamps[name] !== this.#stamp) {
        this.#stamps[name] = this.#stamp
        this.#starts[name] = this.#valueStart
        this.#ends[name] = this.#valueEnd
      }
      if (at < 0) return this.#over(-at, false)
    }
  }

  #over(at: number, isSelfClosing: boolean): number {
    this.isSelfClosing = isSelfClosing
    return at + 1
  }

  /** From the end of an attribute's name to behind its value; minus the place of a `>` that ends an unquoted one. */
  #value(from: number): number {
    const document = this.#document
    const { bytes, end } = document
    let at = from
    while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
    if (bytes[at] !== EQUALS) {
      this.#valueStart = this.#valueEnd = at
      return at
    }
    at += 1
    while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
    const quote = bytes[at]
    if (quote === QUOTE || quote === APOSTROPHE) {
      this.#valueStart = at + 1
      this.#valueEnd = document.find(quote, at + 1)
      return this.#valueEnd + 1
    }
    this.#valueStart = at
    while (at < end && (byteKinds[bytes[at]!]! & VALUE_END) === 0) at += 1
    this.#valueEnd = at
    return bytes[at] === GREATER ? -at : at
  }

  has(name: number): boolean {
    return this.#stamps[name] === this.#stamp
  }

  /** Where the value of an attribute that the tag has lies. */
  start(name: number): number {
    return this.#starts[name]!
  }

  end(name: number): number {
    return this.#ends[name]!
  }

  /** Whether an attribute has this value (in lower case), its case ignored. */
  is(name: number, text: string): boolean {
    return this.has(name) && this.#isWord(this.start(name), this.end(name), text)
  }

  /** The same, white space around it ignored. */
  isTrimmed(name: number, text: string): boolean {
    if (!this.has(name)) return false
    const { bytes } = this.#document
    let start = this.start(name)
    let end = this.end(name)
    while (start < end && (byteKinds[bytes[start]!]! & WHITE) !== 0) start += 1
    while (end > start && (byteKinds[bytes[end - 1]!]! & WHITE) !== 0) end -= 1
    return this.#isWord(start, end, text)
  }

  /** Whether an attribute that is a list of words, as rel is, has this one. */
  hasWord(name: number, word: string): boolean {
    if (!this.has(name)) return false
    const { bytes } = this.#document
    const end = this.end(name)
    let at = this.start(name)
    while (at < end) {
      while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
      const start = at
      while (at < end && (byteKinds[bytes[at]!]! & WHITE) === 0) at += 1
      if (this.#isWord(start, at, word)) return true
    }
    return false
  }

  #isWord(start: number, end: number, text: string): boolean {
    const { bytes } = this.#document
    if (end - start !== text.length) return false
    for (let index = 0; index < text.length; index += 1) if (lowerCase[bytes[start + index]!] !== text.charCodeAt(index)) return false
    return true
  }
}

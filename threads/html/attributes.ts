/**
 * The attributes of the tag in hand: gone over to find where the tag ends, and if asked, where the known ones have their
 * values (HTML standard, sections 13.2.5.32 to 40). Runs in a parse worker. Fixed memory, whatever a tag holds: one
 * place for each known name, and a stamp that says whether it is of this tag.
 */
import type { DocumentBytes } from './bytes.ts'
import * as bytes from './bytes.ts'
import * as names from './names.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { APOSTROPHE, ATTRIBUTE_END, byteKinds, EQUALS, GREATER, HIGH_BITS, ONES, QUOTE, SLASH, SPACE, VALUE_END, WHITE } = bytes
const { attributeAt, attributesKnown, lowerCase, mayBeKnown } = names

const GREATER_WORD = GREATER * ONES
const APOSTROPHE_WORD = APOSTROPHE * ONES

export class Attributes {
  /** The tag ended in `/>`; of a tag that was passed over it is not known. */
  isSelfClosing = false
  /** Bytes that were looked at twice in this document. */
  lookedAtAgain = 0
  readonly #document: DocumentBytes
  readonly #starts = new Int32Array(attributesKnown + 1)
  readonly #ends = new Int32Array(attributesKnown + 1)
  readonly #stamps = new Int32Array(attributesKnown + 1)
  #stamp = 0

  constructor(document: DocumentBytes) {
    this.#document = document
  }

  /** A tag without attributes. */
  none(): void {
    this.isSelfClosing = false
    this.#stamp += 1
  }

  /**
   * From the end of a tag's name to the place after its `>`; a place beyond the end when the document ends before.
   *
   * The first `>` ends the tag when the last thing before it is a double quote that begins no value, and no single quote
   * is there: were it inside a value, that quote would be the value's first, behind `=` or white space. So most tags
   * take one search. The others are read. Whether a slash before the `>` closes the tag or belongs to a value without
   * quotes (`a=b"/>`) is not seen.
   */
  skip(from: number): number {
    const { words, shift } = this.#document
    let index = (from + shift) >> 2
    let before = ~(-1 << (((from + shift) & 3) << 3))
    let quotes = 0
    for (const wordsEnd = words.length; index < wordsEnd; index += 1) {
      const word = words[index]!
      const greater = (word ^ GREATER_WORD) | before
      const apostrophe = (word ^ APOSTROPHE_WORD) | before
      quotes |= (apostrophe - ONES) & ~apostrophe
      const found = (greater - ONES) & ~greater & HIGH_BITS
      before = 0
      if (found === 0) continue
      const end = (index << 2) - shift + ((31 - Math.clz32(found & -found)) >> 3)
      // A single quote behind the `>`, in its word, only sends the tag to be read.
      if ((quotes & HIGH_BITS) !== 0 || !this.#isPlainEnd(end)) break
      return end + 1
    }
    // With the word in hand: never less than nothing.
    this.lookedAtAgain += ((index + 1) << 2) - shift - from
    return this.read(from, false)
  }

  #isPlainEnd(end: number): boolean {
    const { bytes } = this.#document
    let at = end - 1
    if (bytes[at] === SLASH) at -= 1
    if (bytes[at] === SPACE) at -= 1
    return bytes[at] === QUOTE && bytes[at - 1] !== EQUALS && (byteKinds[bytes[at - 1]!]! & WHITE) === 0
  }

  /** The same, one by one. `isNoted`: known attributes can be asked for afterwards. Of two with one name the first counts. */
  read(from: number, isNoted: boolean): number {
    const document = this.#document
    const { bytes, end } = document
    this.#stamp += 1
    let at = from
    while (at < end) {
      let byte = bytes[at]!
      if ((byteKinds[byte]! & WHITE) !== 0 || byte === SLASH) {
        at += 1
        continue
      }
      if (byte === GREATER) {
        this.isSelfClosing = bytes[at - 1] === SLASH
        return at + 1
      }
      // A name; its first byte may be anything else, `=` too.
      const nameStart = at
      at += 1
      while (at < end && (byteKinds[bytes[at]!]! & ATTRIBUTE_END) === 0) at += 1
      const nameEnd = at
      while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
      let valueStart = at
      let valueEnd = at
      if (bytes[at] === EQUALS) {
        at += 1
        while (at < end && (byteKinds[bytes[at]!]! & WHITE) !== 0) at += 1
        byte = bytes[at]!
        if (byte === QUOTE || byte === APOSTROPHE) {
          valueStart = at + 1
          valueEnd = document.find(byte, valueStart)
          at = valueEnd + 1
        } else {
          valueStart = at
          while (at < end && (byteKinds[bytes[at]!]! & VALUE_END) === 0) at += 1
          valueEnd = at
        }
      }
      if (isNoted && mayBeKnown(nameEnd - nameStart, bytes[nameStart]!)) this.#note(attributeAt(bytes, nameStart, nameEnd), valueStart, valueEnd)
      // The slash in `<a href=x/>` belongs to the value.
      if (valueEnd === at && valueEnd > valueStart && bytes[at] === GREATER) {
        this.isSelfClosing = false
        return at + 1
      }
    }
    return end + 1
  }

  #note(name: number, start: number, end: number): void {
    if (name === 0 || this.#stamps[name] === this.#stamp) return
    this.#stamps[name] = this.#stamp
    this.#starts[name] = start
    this.#ends[name] = end
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

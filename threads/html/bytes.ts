/**
 * What single bytes mean to a tokenizer of HTML, and the document's bytes with two ways of looking for one of them. Runs
 * in a parse worker; nothing outside of the document is read.
 */
import { lowerCase } from './names.ts'

export const [TAB, LINE_FEED, FORM_FEED, RETURN, SPACE] = [0x09, 0x0a, 0x0c, 0x0d, 0x20]
export const [BANG, QUOTE, APOSTROPHE, DASH, SLASH, LESS, EQUALS, GREATER, QUESTION, BRACKET] = [0x21, 0x22, 0x27, 0x2d, 0x2f, 0x3c, 0x3d, 0x3e, 0x3f, 0x5d]

/** Bits of a byte: white space; what ends a tag's name, an attribute's name, an unquoted value; a letter of ASCII. */
export const [WHITE, NAME_END, ATTRIBUTE_END, VALUE_END, LETTER] = [1, 2, 4, 8, 16]
export const byteKinds = new Uint8Array(256)
for (const byte of [TAB, LINE_FEED, FORM_FEED, RETURN, SPACE]) byteKinds[byte] = WHITE | NAME_END | ATTRIBUTE_END | VALUE_END
byteKinds[SLASH] = NAME_END | ATTRIBUTE_END
byteKinds[GREATER] = NAME_END | ATTRIBUTE_END | VALUE_END
byteKinds[EQUALS] = ATTRIBUTE_END
for (let letter = 0x61; letter <= 0x7a; letter += 1) byteKinds[letter] = byteKinds[letter - 0x20] = LETTER

/** What a byte adds to the hash of a tag's name, 0 where the name ends; a NUL in a name is another character there. */
export const nameLetters = lowerCase.map((byte, index) => ((byteKinds[index]! & NAME_END) !== 0 ? 0 : byte || 1))

// Four bytes as one number: x has a zero byte where (x - ONES) & ~x & HIGH_BITS has a bit; the lowest such bit is right,
// and those above it may be one too many.
export const ONES = 0x01010101
export const HIGH_BITS = 0x80808080 | 0

/** Elsewhere the first byte is not the lowest of a word: there bytes are looked at one by one. */
const isLittleEndian = new Uint8Array(Int32Array.of(1).buffer)[0] === 1

/** A document: its bytes, and the same as words of four. Byte `at` lies in word (at + shift) / 4. */
export class DocumentBytes {
  bytes: Uint8Array = new Uint8Array(0)
  words: Int32Array = new Int32Array(0)
  shift = 0
  end = 0
  /** Bytes that searches of this document looked at, for `HtmlScanner.steps`. */
  searched = 0
  #buffer: Buffer = Buffer.alloc(0)

  open(bytes: Uint8Array): void {
    const { buffer, byteOffset, byteLength } = bytes
    this.bytes = bytes
    this.end = byteLength
    this.searched = 0
    this.shift = byteOffset & 3
    this.words = new Int32Array(buffer, byteOffset - this.shift, isLittleEndian ? (byteLength + this.shift) >> 2 : 0)
    this.#buffer = Buffer.from(buffer, byteOffset, byteLength)
  }

  /** Place of the next such byte at or after `from`; the document's end without one. For a byte that is near. */
  find(byte: number, from: number): number {
    const { words, shift } = this
    const pattern = Math.imul(byte, ONES)
    const last = words.length - 1
    let index = (from + shift) >> 2
    if (index <= last) {
      // Bytes before the start are left out of the first word.
      let differs = (words[index]! ^ pattern) | ~(-1 << (((from + shift) & 3) << 3))
      let found = (differs - ONES) & ~differs & HIGH_BITS
      while (found === 0 && index < last) {
        index += 1
        differs = words[index]! ^ pattern
        found = (differs - ONES) & ~differs & HIGH_BITS
      }
      if (found !== 0) {
        const place = (index << 2) - shift + ((31 - Math.clz32(found & -found)) >> 3)
        this.searched += place - from
        return place
      }
      index += 1
    }
    let at = Math.max(from, (index << 2) - shift)
    while (at < this.end && this.bytes[at] !== byte) at += 1
    this.searched += at - from
    return at
  }

  /** The same, for a byte that is far: memchr. */
  findFar(byte: number, from: number): number {
    const found = this.#buffer.indexOf(byte, from)
    const at = found === -1 ? this.end : found
    this.searched += at - from
    return at
  }
}

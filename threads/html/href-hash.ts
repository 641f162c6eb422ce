/**
 * A keyed 128-bit hash of an href's bytes, so that a link which was met before is known before a string is made of it.
 * Runs in a parse worker; reads the document where it lies, allocates nothing.
 *
 * Construction: four lanes of 32 bits. Every word of four bytes goes into every lane: xor, multiply by the lane's own
 * secret odd number, xor with a shift of itself. Lanes start from SHA-256 of (secret, origin, encoding) and the length.
 * The shifts differ, since with one shift a difference in a word's top bits could be taken back in all lanes at once by
 * the next word.
 *
 * Why a collision would do little. Secret numbers are drawn anew by each process, so nobody can compute a collision
 * outside; one that was found by trial would let an href pass for another that the crawl knows, and so hide it. As the
 * origin is in the starting state, both must stand on pages of one origin: a site can hide its own links, which it could
 * as well leave out.
 */
import { createHash, randomBytes } from 'node:crypto'
import { wordAt } from '../../engine/core/word.ts'

export class HrefHash {
  /** The words of the last hash. */
  a = 0
  b = 0
  c = 0
  d = 0
  /** Whether the last href was ASCII throughout. */
  isAscii = true

  readonly #secret: Uint8Array
  readonly #multipliers: Int32Array
  #seedA = 0
  #seedB = 0
  #seedC = 0
  #seedD = 0

  /** `secret`: 32 bytes. */
  constructor(secret: Uint8Array = randomBytes(32)) {
    this.#secret = secret
    this.#multipliers = wordsOf(secret.subarray(0, 16)).map((word) => word | 1)
  }

  /** What follows are hrefs of a document of this origin and in this encoding. */
  begin(origin: string, encoding: string): void {
    const seed = wordsOf(createHash('sha256').update(this.#secret).update(`${origin} ${encoding}`).digest())
    this.#seedA = seed[0]!
    this.#seedB = seed[1]!
    this.#seedC = seed[2]!
    this.#seedD = seed[3]!
  }

  hash(bytes: Uint8Array, start: number, end: number): void {
    const timesA = this.#multipliers[0]!
    const timesB = this.#multipliers[1]!
    const timesC = this.#multipliers[2]!
    const timesD = this.#multipliers[3]!
    const length = end - start
    let a = this.#seedA ^ length
    let b = this.#seedB ^ length
    let c = this.#seedC ^ length
    let d = this.#seedD ^ length
    let all = 0
    for (let at = start; at < end; at += 4) {
      // The last word is filled with zeros; the length tells them from bytes.
      const word = at + 4 <= end ? wordAt(bytes, at) : restOf(bytes, at, end)
      all |= word
      a = Math.imul(a ^ word, timesA)
      a ^= a >>> 15
      b = Math.imul(b ^ word, timesB)
      b ^= b >>> 13
      c = Math.imul(c ^ word, timesC)
      c ^= c >>> 17
      d = Math.imul(d ^ word, timesD)
      d ^= d >>> 16
    }
    this.a = a
    this.b = b
    this.c = c
    this.d = d
    this.isAscii = (all & 0x8080_8080) === 0
  }
}

function restOf(bytes: Uint8Array, at: number, end: number): number {
  let word = bytes[at]!
  if (at + 1 < end) word |= bytes[at + 1]! << 8
  if (at + 2 < end) word |= bytes[at + 2]! << 16
  return word
}

function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(new Uint8Array(bytes).buffer)
}

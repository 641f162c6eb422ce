/**
 * The SimHash of a page's text: 64 bits that differ in few places when the texts differ in little. Runs in a parse
 * worker; makes no strings and touches nothing but its own memory and the bytes that it reads.
 *
 * Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002): each feature has a hash of 64 bits
 * and a weight; bit j of the result says whether the features whose bit j is set weigh more than the others. Manku, Jain
 * and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007): 64 bits, near is a distance of at most 3.
 *
 *   feature  a word: a run of ASCII letters (lowered), digits and bytes from 0x80 on. A byte 0xe3 to 0xe9 begins a word of
 *            its own, so that a character of Chinese or Japanese in UTF-8, which is written without spaces, is a word.
 *            What begins with a digit is none (dates, counters), nor is what follows `&` (names of characters: `nbsp`
 *            made pages equal that have nothing in common).
 *   weight   1 + floor(log2(occurrences))
 *
 * Invariant: the result is a function of the words alone, and the same in every process: it is stored.
 *
 * Why these features, measured over the 360 corpus pages cut at 250 KB, two changes of each kind a page; how many are
 * within a distance of 3 of the page as it was (first three: more is better) or of the other page (last two: less is):
 *                                    words, each     words, by      words, once   pairs of words,
 *                                    as it comes     logarithm                    by logarithm
 *   1 in 200 words replaced               99 %           91 %           74 %           77 %
 *   1 in 100 words replaced               96 %           80 %           53 %           51 %
 *   20 entries of a menu reordered       100 %          100 %          100 %           51 %
 *   same template, other 50 words         51 %           20 %            9 %           14 %
 *   same template, other 200 words        20 %            3 %            1 %            2 %    (templates of about 700)
 * All numbers of a page changed: distance 0; as features, a fifth of them changed put 27 % of the pages beyond 3. No two of
 * the corpus pages are nearer to each other than 11.
 *
 * Cost, mean over the same pages (26 KB of text, 10 KB without white space), warm: 57 microseconds when the spans leave out
 * the white space around texts, 95 when not. The counters are 7 of them. In the plain way, 64 counters that are touched for
 * each word, they are 94. Here they stand on their side: bit k of 32 counters is one word, and a full adder adds three
 * such words at once. A level is reached by every second carry of the one below, so that a feature costs about one
 * adder for each half of its 64 bits, whatever it counts to.
 */
import type { Random } from '../../engine/core/clock.ts'

/** Fewer different words say too little: two shells of one application would be near-duplicates of each other. */
export const FEATURES_MIN = 64
/** Different words that are read; the text after them counts no more. A page of 250 KB seldom has 4,000. */
export const FEATURES_MAX = 16_384

const SLOT_BITS = 15
const SLOT_MASK = 2 ** SLOT_BITS - 1
/** Counters go to 2^19: 16,384 features of a weight of at most 25 (occurrences in a body of 32 MB). */
const LEVELS = 19
const LEVEL_WORDS = 4
/** First bytes of the characters U+3000 to U+9FFF in UTF-8. */
const CJK_FIRST = 0xe3
const CJK_LAST = 0xe9
const AMPERSAND = 0x26
const HASH_SIGN = 0x23
/** FNV-1a, 32 bits. */
const FNV_BASIS = 0x811c9dc5 | 0
const FNV_PRIME = 0x01000193
/** What tells the upper half of a feature's hash from the lower. */
const UPPER_SALT = 0x5bd1e995

/** What a byte counts as within a word; 0 ends it. */
const wordBytes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x41 && byte <= 0x5a) return byte + 0x20
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || byte >= 0x80 ? byte : 0
})

/** The finalizer of MurmurHash3: each bit of the input changes each bit of the output half the time. */
function mixed(hash: number): number {
  const first = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return second ^ (second >>> 16)
}

/** Letters, digits and `#`: what may stand between `&` and `;`. */
function isNameByte(byte: number): boolean {
  return byte === HASH_SIGN || (byte < 0x80 && wordBytes[byte] !== 0)
}

/** Adds 1 to the counters whose bits are set, as addition number `added`, counted from 0. */
function addFeature(levels: Int32Array, added: number, lower: number, upper: number): void {
  let at = 0
  let carryLower = lower
  let carryUpper = upper
  // Bit k of the number of additions tells whether one is pending at level k: then there are three to add.
  for (let rest = added; (rest & 1) !== 0; rest >>>= 1) {
    const differLower = levels[at]! ^ levels[at + 1]!
    const bothLower = levels[at]! & levels[at + 1]!
    levels[at] = differLower ^ carryLower
    carryLower = bothLower | (differLower & carryLower)
    const differUpper = levels[at + 2]! ^ levels[at + 3]!
    const bothUpper = levels[at + 2]! & levels[at + 3]!
    levels[at + 2] = differUpper ^ carryUpper
    carryUpper = bothUpper | (differUpper & carryUpper)
    at += LEVEL_WORDS
  }
  levels[at + 1] = carryLower
  levels[at + 3] = carryUpper
}

export class SimHasher {
  /** Words by the hash of their bytes, open addressing; a slot is empty when its count is 0. */
  readonly #hashes = new Int32Array(SLOT_MASK + 1)
  readonly #counts = new Int32Array(SLOT_MASK + 1)
  /** Slots in use, so that no more than these are looked at and emptied. */
  readonly #used = new Int32Array(FEATURES_MAX)
  /** Chosen anew in each process: a page cannot be written so that all of its words meet in one slot. */
  readonly #slotFactor: number
  /**
   * Level k: sum and pending of the lower 32 counters, sum and pending of the upper. Both weigh 2^k; pending counts when
   * bit k of `#added` is set.
   */
  readonly #levels = new Int32Array(LEVELS * LEVEL_WORDS)
  #added = 0

  /** `random` spreads the slots of a table and never changes a result. */
  constructor(random: Random = Math.random) {
    this.#slotFactor = Math.floor(random() * 2 ** 32) | 1
  }

  /**
   * The SimHash of a text as 8 bytes, highest bit first, or undefined when it has fewer than `FEATURES_MIN` different
   * words. `spans` holds `count` pairs [start, end) of indexes into `bytes`; a word never goes beyond its span.
   */
  hash(bytes: Uint8Array, spans: Int32Array, count: number): Uint8Array | undefined {
    const features = this.#countWords(bytes, spans, count)
    // Also for a text that is too short: that empties table and counters.
    this.#takeWords(features)
    const hash = this.#decide()
    return features < FEATURES_MIN ? undefined : hash
  }

  /** Fills the table; answers how many slots are used. Fields are read once: in the loop they cost half as much again. */
  #countWords(bytes: Uint8Array, spans: Int32Array, count: number): number {
    const [hashes, counts, used] = [this.#hashes, this.#counts, this.#used]
    const slotFactor = this.#slotFactor
    let usedCount = 0
    for (let index = 0; index < 2 * count; index += 2) {
      const end = spans[index + 1]!
      let at = spans[index]!
      while (at < end) {
        const first = bytes[at]!
        let byte = wordBytes[first]!
        at += 1
        if (byte === 0) {
          if (first === AMPERSAND) while (at < end && isNameByte(bytes[at]!)) at += 1
          continue
        }
        let hash = FNV_BASIS
        for (;;) {
          hash = Math.imul(hash ^ byte, FNV_PRIME)
          byte = at < end ? wordBytes[bytes[at]!]! : 0
          if (byte === 0 || (byte >= CJK_FIRST && byte <= CJK_LAST)) break
          at += 1
        }
        if (first >= 0x30 && first <= 0x39) continue
        let slot = Math.imul(hash, slotFactor) >>> (32 - SLOT_BITS)
        while (counts[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & SLOT_MASK
        if (counts[slot] === 0) {
          if (usedCount === FEATURES_MAX) continue
          hashes[slot] = hash
          used[usedCount] = slot
          usedCount += 1
        }
        counts[slot]! += 1
      }
    }
    return usedCount
  }

  /** Adds every word with its weight to the counters, and empties the table. */
  #takeWords(features: number): void {
    const [hashes, counts, used, levels] = [this.#hashes, this.#counts, this.#used, this.#levels]
    let added = 0
    for (let index = 0; index < features; index += 1) {
      const slot = used[index]!
      const lower = mixed(hashes[slot]!)
      const upper = mixed(hashes[slot]! ^ UPPER_SALT)
      for (let count = counts[slot]!; count > 0; count >>>= 1) {
        addFeature(levels, added, lower, upper)
        added += 1
      }
      counts[slot] = 0
    }
    this.#added = added
  }

  /** A bit is set when the words that have it weigh more than half of all. Empties the counters. */
  #decide(): Uint8Array {
    const [levels, added] = [this.#levels, this.#added]
    const hash = new Uint8Array(8)
    for (let bit = 0; bit < 64; bit += 1) {
      let weight = 0
      for (let level = 0, at = bit < 32 ? 0 : 2; added >>> level !== 0; level += 1, at += LEVEL_WORDS) {
        const pending = ((added >>> level) & 1) === 0 ? 0 : levels[at + 1]! >>> (bit & 31)
        weight += (((levels[at]! >>> (bit & 31)) & 1) + (pending & 1)) << level
      }
      if (2 * weight > added) hash[7 - (bit >>> 3)]! |= 1 << (bit & 7)
    }
    levels.fill(0)
    return hash
  }
}

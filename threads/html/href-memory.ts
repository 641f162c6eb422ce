/**
 * Raw hrefs that this worker met before and whose links were proven to be queued or done: pages of one site repeat its
 * navigation, and a hit spares decoding, resolving, the key and its SHA-256. Runs in a parse worker; private to it.
 *
 *   a set, 128 bytes (two cache lines)                sets: a power of two, chosen by the hash's first word
 *   +---------------------------+-- --+----------------------------+
 *   | hash 4 words, fingerprint |     | hash 4 words, fingerprint  |      4 entries, each with a mark: empty, held or hit
 *   +---------------------------+-- --+----------------------------+
 *
 * Invariant: the fingerprint that `find` answers is the one that `put` was given for this very hash (HrefHash: the bytes,
 * the origin and the encoding, keyed). Whoever puts has seen the fingerprint in the shared known table, so the main
 * thread had committed it. The known table may forget it later; the link stays queued or done all the same, and the hit
 * stays true. (When a crawl lets an ended URL come again, that is decided where it ends, not by the links to it.)
 *
 * The hash stands for the href only where the href alone decides which URL it is, whatever page of the origin it is on:
 * `isRooted` says which, in every encoding, since documents in one that is no superset of ASCII are transcoded before they
 * are scanned. What depends on depth, caps, scope or time is a refusal and never put here.
 *
 * Replacement: a hit marks its entry, a put takes the next entry without the mark and takes it from those it passed, so
 * what every page has stays when links that are met once stream through. 2 MiB hold 65,536 hrefs.
 */
export const HREF_MEMORY_BYTES = 2 * 1024 * 1024

const EMPTY = 0
const HELD = 1
const HIT = 2

const WAYS = 4
const ENTRY_WORDS = 8
const SET_WORDS = WAYS * ENTRY_WORDS

export class HrefMemory {
  readonly #words: Int32Array
  readonly #setMask: number
  readonly #marks: Uint8Array
  /** Entry of each set at which the next search for a place begins. */
  readonly #hands: Uint8Array

  /** At most `bytes`, at least one set. */
  constructor(bytes = HREF_MEMORY_BYTES) {
    const sets = 2 ** Math.floor(Math.log2(Math.max(1, bytes / (SET_WORDS * 4))))
    this.#words = new Int32Array(sets * SET_WORDS)
    this.#setMask = sets - 1
    this.#marks = new Uint8Array(sets * WAYS)
    this.#hands = new Uint8Array(sets)
  }

  /** Copies the fingerprint of the href with this hash to `into[at]`, four words. False: not remembered. */
  find(hash: { readonly a: number; readonly b: number; readonly c: number; readonly d: number }, into: Int32Array, at: number): boolean {
    const words = this.#words
    const set = hash.a & this.#setMask
    for (let way = 0; way < WAYS; way += 1) {
      const entry = set * SET_WORDS + way * ENTRY_WORDS
      if (words[entry] !== hash.a || words[entry + 1] !== hash.b || words[entry + 2] !== hash.c || words[entry + 3] !== hash.d) continue
      if (this.#marks[set * WAYS + way] === EMPTY) continue
      this.#marks[set * WAYS + way] = HIT
      for (let word = 0; word < 4; word += 1) into[at + word] = words[entry + 4 + word]!
      return true
    }
    return false
  }

  /** `hash[at]`: the four words of an href's hash; `fingerprint`: those of its link, proven known. */
  put(hash: Int32Array, at: number, fingerprint: Int32Array): void {
    const set = hash[at]! & this.#setMask
    const way = this.#place(set)
    const entry = set * SET_WORDS + way * ENTRY_WORDS
    this.#marks[set * WAYS + way] = HELD
    for (let word = 0; word < 4; word += 1) {
      this.#words[entry + word] = hash[at + word]!
      this.#words[entry + 4 + word] = fingerprint[word]!
    }
  }

  #place(set: number): number {
    const marks = this.#marks
    let way = this.#hands[set]!
    while (marks[set * WAYS + way] === HIT) {
      marks[set * WAYS + way] = HELD
      way = (way + 1) % WAYS
    }
    this.#hands[set] = (way + 1) % WAYS
    return way
  }
}

/**
 * Whether an href means the same on every page of an origin: it begins with `/`, or with `http://` or `https://`. A
 * scheme alone is not enough (`http:x` is relative to an http page), and what starts with white space is left out.
 */
export function isRooted(bytes: Uint8Array, start: number, end: number): boolean {
  if (start >= end) return false
  if (bytes[start] === 0x2f) return true
  // 0x20 makes letters small. What is read beyond a short href is judged by the last line.
  if ((bytes[start]! | 0x20) !== 0x68 || (bytes[start + 1]! | 0x20) !== 0x74
    || (bytes[start + 2]! | 0x20) !== 0x74 || (bytes[start + 3]! | 0x20) !== 0x70) return false
  const at = (bytes[start + 4]! | 0x20) === 0x73 ? start + 5 : start + 4
  return bytes[at] === 0x3a && bytes[at + 1] === 0x2f && bytes[at + 2] === 0x2f && at + 2 < end
}

/**
 * Fingerprints that are proven to be in the store, in shared memory: a set-associative table of whole 128-bit
 * fingerprints. The main thread adds after a commit; workers ask, and drop the links that are known. A miss means
 * nothing, a hit is a proof. Never touches the store.
 *
 *   a set, 128 bytes (two cache lines)                     sets: a power of two, chosen by the fingerprint's first word
 *   +---------+-----------+--------+--------+-- --+--------+
 *   | changes |  (spare)  | entry 0| entry 1| ... | entry 6|
 *   | 1 word  |  3 words  | 4 words| 4 words|     | 4 words|
 *   +---------+-----------+--------+--------+-- --+--------+
 *
 * Invariant: `has` answers true only for a fingerprint that was added. The danger is a reader that sees half of an old
 * entry and half of a new one, a mix that nobody added. `changes` excludes it: the only writer makes it odd before it
 * touches an entry and even again after, and a reader accepts what it saw only if `changes` was even before and the
 * same after. Atomics are sequentially consistent, so if any of the reader's loads saw a word of a later write, the
 * odd value of that write lies before the reader's second look at `changes`, and the two looks differ. They could
 * agree by chance only when exactly 2^31 entries of one set were replaced while one reader stood between two loads.
 *
 * Entries are replaced in turn: entry (changes / 2) mod 7 is next, so no further state is needed, and an entry that
 * was never written is not compared. 4 MiB hold 229,376 fingerprints.
 */
import type { Known } from '../engine/core/types.ts'
import { wordAt } from '../engine/core/word.ts'

const SET_BYTES = 128
const SET_WORDS = SET_BYTES / 4
const WAYS = 7
const ENTRIES_AT = 4

export const KNOWN_BYTES = 4 * 1024 * 1024

export class KnownTable implements Known {
  /** What a worker is handed. */
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #setMask: number

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#setMask = memory.byteLength / SET_BYTES - 1
  }

  /** An empty table of at most `bytes`, at least one set. */
  static create(bytes = KNOWN_BYTES): KnownTable {
    const sets = 2 ** Math.floor(Math.log2(Math.max(1, bytes / SET_BYTES)))
    return new KnownTable(new SharedArrayBuffer(sets * SET_BYTES))
  }

  /** The table that another thread created. */
  static over(memory: SharedArrayBuffer): KnownTable {
    return new KnownTable(memory)
  }

  has(fingerprint: Uint8Array): boolean {
    const words = this.#words
    const first = wordAt(fingerprint, 0)
    const set = (first & this.#setMask) * SET_WORDS
    // Pairs with the two stores of `add`: even says that no entry of the set was half written at this moment.
    const before = Atomics.load(words, set)
    if ((before & 1) !== 0) return false
    for (let way = entriesOf(before) - 1; way >= 0; way -= 1) {
      const entry = set + ENTRIES_AT + way * 4
      // Loads of an entry that the main thread may be replacing; the last line tells whether it was.
      if (Atomics.load(words, entry) !== first) continue
      if (Atomics.load(words, entry + 1) !== wordAt(fingerprint, 4)) continue
      if (Atomics.load(words, entry + 2) !== wordAt(fingerprint, 8)) continue
      if (Atomics.load(words, entry + 3) !== wordAt(fingerprint, 12)) continue
      // The same value again: the main thread began no change of this set while the four words were read.
      return Atomics.load(words, set) === before
    }
    return false
  }

  /** Main thread only: one writer. The fingerprint has a committed `seen` row. */
  add(fingerprint: Uint8Array): void {
    if (this.has(fingerprint)) return
    const words = this.#words
    const set = (wordAt(fingerprint, 0) & this.#setMask) * SET_WORDS
    // The only writer reads its own last store.
    const changes = Atomics.load(words, set)
    const entry = set + ENTRIES_AT + ((changes >>> 1) % WAYS) * 4
    // Odd tells every reader that an entry of this set is being replaced.
    Atomics.store(words, set, changes + 1)
    // The entry's words become visible between the two stores of `changes`.
    for (let at = 0; at < 4; at += 1) Atomics.store(words, entry + at, wordAt(fingerprint, at * 4))
    // Even again publishes the whole entry to the readers.
    Atomics.store(words, set, nextChanges(changes))
  }
}

/** Entries that were ever written in a set with this many changes. */
function entriesOf(changes: number): number {
  return Math.min(changes >>> 1, WAYS)
}

/** After 2^32 the count would say again that the set is empty: it starts at a full one instead. */
function nextChanges(changes: number): number {
  const next = (changes + 2) | 0
  return next === 0 ? WAYS * 2 : next
}

/**
 * How many URLs with a query each path got from links, in shared memory: a set-associative table of counts under 64-bit
 * hashes of host and path. The main thread adds after a commit; workers ask, and refuse links to a path that is over
 * the operator's number. What a worker sees is a filter: the commit asks again, with its own batch counted. Never
 * touches the store, so a crawl that is opened again counts from 0.
 *
 *   a set, 64 bytes (one cache line)                  sets: a power of two, chosen by the hash's first word
 *   +---------+-------------------+-- --+-------------------+
 *   | changes | hash 2, count 1   |     | hash 2, count 1   |      5 entries; zeros: empty, and right for the hash 0
 *   +---------+-------------------+-- --+-------------------+
 *
 * Invariant: the count of a path is never more than what was added for it (but for two paths that share a hash), so no
 * link is refused too early. It may be less: a full set gives the place of its least count to a path that is new there,
 * and that one begins at its own number. So paths that are met once push out each other, and one that grows stays.
 *
 * The danger is a reader that sees the hash of a new entry with the count of an old one. `changes` excludes it as in
 * known.ts: odd while an entry is replaced, another number after; a reader that saw it move answers 0. A count that
 * grows in place needs no such care. 1 MiB holds 81,920 paths.
 */
import type { QueryCounts } from '../engine/core/types.ts'
import { wordAt } from '../engine/core/word.ts'

const SET_WORDS = 16
const WAYS = 5
const ENTRY_WORDS = 3
const COUNT_AT = 2

export const QUERY_GROWTH_BYTES = 1024 * 1024

export class QueryGrowth implements QueryCounts {
  /** What a worker is handed. */
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #setMask: number

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#setMask = this.#words.length / SET_WORDS - 1
  }

  /** An empty table of at most `bytes`, at least one set. */
  static create(bytes = QUERY_GROWTH_BYTES): QueryGrowth {
    const sets = 2 ** Math.floor(Math.log2(Math.max(1, bytes / (SET_WORDS * 4))))
    return new QueryGrowth(new SharedArrayBuffer(sets * SET_WORDS * 4))
  }

  /** The table that another thread created. */
  static over(memory: SharedArrayBuffer): QueryGrowth {
    return new QueryGrowth(memory)
  }

  countOf(pathHash: Uint8Array): number {
    const words = this.#words
    const low = wordAt(pathHash, 0)
    const set = (low & this.#setMask) * SET_WORDS
    // Pairs with the two stores of `#replace`: even says that no entry of the set was half written at this moment.
    const before = Atomics.load(words, set)
    if ((before & 1) !== 0) return 0
    const entry = this.#find(set, low, wordAt(pathHash, 4))
    if (entry === undefined) return 0
    // Reads what `add` published; the same `changes` again says that hash and count are of one entry.
    const count = Atomics.load(words, entry + COUNT_AT)
    return Atomics.load(words, set) === before ? count : 0
  }

  /** Main thread only: one writer. So many URLs with a query were committed for this path. */
  add(pathHash: Uint8Array, urls: number): void {
    const low = wordAt(pathHash, 0)
    const high = wordAt(pathHash, 4)
    const set = (low & this.#setMask) * SET_WORDS
    const entry = this.#find(set, low, high)
    if (entry === undefined) this.#replace(set, low, high, urls)
    // Publishes the count to the workers.
    else Atomics.add(this.#words, entry + COUNT_AT, urls)
  }

  #find(set: number, low: number, high: number): number | undefined {
    for (let entry = set + 1; entry < set + SET_WORDS; entry += ENTRY_WORDS) {
      // Loads of an entry that the main thread may be replacing; `countOf` finds out.
      if (Atomics.load(this.#words, entry) === low && Atomics.load(this.#words, entry + 1) === high) return entry
    }
    return undefined
  }

  #replace(set: number, low: number, high: number, urls: number): void {
    const words = this.#words
    let least = set + 1
    for (let entry = least + ENTRY_WORDS; entry < set + 1 + WAYS * ENTRY_WORDS; entry += ENTRY_WORDS) {
      if (words[entry + COUNT_AT]! < words[least + COUNT_AT]!) least = entry
    }
    // Odd tells every reader that an entry of this set is being replaced.
    Atomics.add(words, set, 1)
    // The entry's words become visible between the two changes.
    Atomics.store(words, least, low)
    Atomics.store(words, least + 1, high)
    Atomics.store(words, least + COUNT_AT, urls)
    // Even again publishes the whole entry to the readers.
    Atomics.add(words, set, 1)
  }
}

/**
 * The names of the crawl's scope (hosts or registrable domains) as a set of 64-bit hashes in shared memory: the main
 * thread adds, the workers ask. Invariant: a name that was added is found from then on. A hit is a filter only, since
 * two names may share a hash: the commit compares the name. A full table says yes to everything, which costs look-ups
 * and no correctness.
 *
 *   word 0        1         2 + 2i      3 + 2i
 *   +-----------+---------+-----------+-----------+----
 *   | capacity  | count   | low half  | high half |  ...    open addressing from (low mod capacity); high 0: empty
 *   +-----------+---------+-----------+-----------+----
 */
import { invariant } from '../engine/core/errors.ts'
import { hostHashOf } from '../engine/core/url-key.ts'
import { wordAt } from '../engine/core/word.ts'

const CAPACITY = 0
const COUNT = 1
const ENTRIES = 2

/** The high half marks an entry as used, so it is never 0. */
function highOf(hash: Uint8Array): number {
  return wordAt(hash, 4) || 1
}

export class ScopeTable {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #mask: number

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#mask = this.#words[CAPACITY]! - 1
  }

  /** `namesMax` names fit; the table is at most three quarters full. */
  static create(namesMax: number): ScopeTable {
    invariant(namesMax >= 1, 'a scope has room for a name')
    const capacity = 2 ** Math.ceil(Math.log2(Math.ceil(namesMax / 0.75) + 1))
    const memory = new SharedArrayBuffer(4 * (ENTRIES + 2 * capacity))
    new Int32Array(memory)[CAPACITY] = capacity
    return new ScopeTable(memory)
  }

  static over(memory: SharedArrayBuffer): ScopeTable {
    return new ScopeTable(memory)
  }

  get #full(): boolean {
    // Reads the count that add published; a worker that sees it late asks the entries, which is right too.
    return Atomics.load(this.#words, COUNT) > 0.75 * (this.#mask + 1)
  }

  /** Index of the hash's entry, or of the empty one where it would go. */
  #find(low: number, high: number): number {
    let entry = low & this.#mask
    for (;;) {
      const at = ENTRIES + 2 * entry
      // Reads the entry that add published: the low half was stored before the high one.
      const there = Atomics.load(this.#words, at + 1)
      if (there === 0 || (there === high && this.#words[at] === low)) return at
      entry = (entry + 1) & this.#mask
    }
  }

  /** Main thread. */
  add(name: string): void {
    const hash = hostHashOf(name)
    const low = wordAt(hash, 0)
    const high = highOf(hash)
    if (this.#full) return
    const at = this.#find(low, high)
    if (this.#words[at + 1] === high) return
    this.#words[at] = low
    // Publishes the entry to the workers, its low half with it.
    Atomics.store(this.#words, at + 1, high)
    // Publishes the count to the workers, which say yes to everything once it is over three quarters.
    Atomics.add(this.#words, COUNT, 1)
  }

  /** Whether a name of this hash (`hostHashOf`) may be in scope; false is certain. */
  has(hash: Uint8Array): boolean {
    if (this.#full) return true
    const high = highOf(hash)
    return this.#words[this.#find(wordAt(hash, 0), high) + 1] === high
  }
}

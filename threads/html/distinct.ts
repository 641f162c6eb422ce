/**
 * Which 128-bit keys were met in this page: an open-addressing table of typed arrays that is emptied by counting up its
 * epoch, so a page costs no allocation and no clearing. Runs in a parse worker; nothing is shared.
 *
 *   epochs  +-------+-------+----     a slot counts when its epoch is the page's
 *   keys    | 4 words | 4 words |     linear probing; at most three quarters of the slots are taken
 *           +---------+---------+--
 *
 * Invariant: `add` answers false only for a key that was added since `begin`. A set that is full answers true to what it
 * has no room for: whoever asks does work twice, and nothing is lost.
 *
 * The slot is chosen by a secret multiply of two words: fingerprints are hashes that anyone can compute, and 10,000 of
 * them with equal low bits (15 are found in 2^15 tries each) would make 50 million probes of one page.
 */
import { randomInt } from 'node:crypto'

const FILLED_MAX = 0.75
const EPOCH_MAX = 0x7fff_ffff

export class DistinctKeys {
  readonly #keys: Int32Array
  readonly #epochs: Int32Array
  readonly #shift: number
  readonly #room: number
  readonly #secretA = randomInt(2 ** 32) | 1
  readonly #secretB = randomInt(2 ** 32) | 1
  #epoch = 0
  #count = 0

  /** Room for at least `keysMax` keys. */
  constructor(keysMax: number) {
    const bits = Math.max(4, Math.ceil(Math.log2(keysMax / FILLED_MAX)))
    this.#keys = new Int32Array(4 * 2 ** bits)
    this.#epochs = new Int32Array(2 ** bits)
    this.#shift = 32 - bits
    this.#room = Math.floor(FILLED_MAX * 2 ** bits)
  }

  /** A new page: nothing was met. */
  begin(): void {
    this.#count = 0
    if (this.#epoch === EPOCH_MAX) this.restart()
    else this.#epoch += 1
  }

  /** A new page in the first epoch, which slots of pages long ago may bear. */
  restart(): void {
    this.#count = 0
    this.#epochs.fill(0)
    this.#epoch = 1
  }

  /** Whether the four words are met for the first time. */
  add(a: number, b: number, c: number, d: number): boolean {
    const keys = this.#keys
    const last = this.#epochs.length - 1
    let slot = (Math.imul(a, this.#secretA) + Math.imul(b ^ (a >>> 16), this.#secretB)) >>> this.#shift
    for (; this.#epochs[slot] === this.#epoch; slot = (slot + 1) & last) {
      const at = slot * 4
      if (keys[at] === a && keys[at + 1] === b && keys[at + 2] === c && keys[at + 3] === d) return false
    }
    if (this.#count >= this.#room) return true
    this.#count += 1
    this.#epochs[slot] = this.#epoch
    const at = slot * 4
    keys[at] = a
    keys[at + 1] = b
    keys[at + 2] = c
    keys[at + 3] = d
    return true
  }
}

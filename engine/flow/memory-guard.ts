/**
 * Holds what the process really has against its budget: above nine tenths nothing more is started, until it is below
 * 85 %. Budgets of the stages bound what they are asked for; what the heap, the workers and the system make of it only
 * the figure itself can tell. Pure state; somebody calls `look`. Main thread.
 *
 *     open -- look: held > 90 % --> shut -- look: held < 85 % --> open
 *
 * Memory that was needed once stays with the heap until it is collected, and a crawl that waits makes no garbage that would
 * have it collected: so when it shuts, and now and then while it is shut, it asks for that.
 *
 * Invariant: shut means that nothing is added, and not that nothing goes on: while nothing at all is under way one page
 * at a time may start (the gate's rule), so a budget that is too small makes a slow crawl and never a dead one.
 */

export const MEMORY_SHUT_SHARE = 0.9
export const MEMORY_OPEN_SHARE = 0.85
/** While shut, memory is collected at each such look: every five seconds. */
const COLLECT_LOOKS = 20

export class MemoryGuard {
  readonly bytesMax: number
  readonly #heldBytes: () => number
  readonly #collect: () => void
  #lastBytes = 0
  #isShut = false
  #looksShut = 0

  /** `heldBytes`: anonymous and shared memory of the process (machine.ts). `collect`: makes the heap give back what it can. */
  constructor(bytesMax: number, heldBytes: () => number, collect: () => void = () => {}) {
    this.bytesMax = bytesMax
    this.#heldBytes = heldBytes
    this.#collect = collect
  }

  get isShut(): boolean {
    return this.#isShut
  }

  /** As of the last look. */
  get heldBytes(): number {
    return this.#lastBytes
  }

  look(): void {
    this.#lastBytes = this.#heldBytes()
    const share = this.#lastBytes / this.bytesMax
    if (share > MEMORY_SHUT_SHARE) this.#isShut = true
    else if (share < MEMORY_OPEN_SHARE) this.#isShut = false
    if (this.#isShut && this.#looksShut % COLLECT_LOOKS === 0) this.#collect()
    this.#looksShut = this.#isShut ? this.#looksShut + 1 : 0
  }
}

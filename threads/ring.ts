/**
 * Who owns a slot: one 32-bit word says it all, and one compare-exchange hands the slot over. Runs in the main thread
 * (class PageRing) and in the workers (take, finish); touches nothing but the state words.
 *
 *    31                12 11   9 8        0
 *   +--------------------+------+----------+
 *   | position (20 bits) | state| owner    |      owner: number of the turn that took the slot, 0 for none
 *   +--------------------+------+----------+
 *
 *              acquire            publish              take                finish
 *      FREE -----------> FILLING -----------> FILLED ----------> TAKEN ------------> DONE
 *       ^  main thread      ^   main thread     ^     a worker     |     the same      |
 *       |                   |                   |                  |     worker        |
 *       +----- cancel ------+---- takeBack -----|------------------+                   |
 *       |            main thread: of a taken one after the worker's exit               |
 *       |            (of a filled one at any time: no worker has it)                   |
 *       +------------------------------ release, main thread --------------------------+
 *
 * There are no heads and no tails, not even as hints (this replaces DESIGN's "heads and tails are hints"): a taker reads
 * all words, at most 512, and takes the FILLED one with the least position. Each hand-over is one atomic step on one
 * word, so a worker that dies between any two instructions leaves every slot in a state that names its owner, and
 * nothing waits for it. A worker that was declared dead and still runs fails in `finish`, harmlessly, because the word
 * no longer says TAKEN(it, that position).
 *
 * Positions. `publish` gives the next position, ascending in time; a slot that comes back from a dead worker gets a new
 * one. They wrap after 2^20; `acquire` refuses while the oldest outstanding is 2^19 behind, so that `isBefore` is sound.
 *
 * Claim 1: a worker takes in ascending position. One scan is not enough: while it runs, the main thread can publish
 * 100 in a word already passed and 101 in a word still ahead, and the scan would answer 101. So `take` scans until two
 * scans agree on c. All positions below c were published before c, hence before the second scan began; it saw none of
 * them FILLED; and none can become FILLED again, since takeBack gives new positions. So nothing below c is left.
 *
 * Claim 2: `done` misses no earlier page of a worker. A worker finishes a page before it takes the next, so, by claim 1,
 * it finishes in ascending position. `done` reads the outstanding words in DESCENDING position: if it sees 11 of a
 * worker DONE, then 10 of that worker was DONE before, and is read later, so it is seen DONE too. Handling what was
 * seen in ascending order therefore handles each worker's pages as a gapless prefix, in the order in which the worker
 * appended them to its WARC file: the committed length of that file only grows and covers committed pages alone.
 */
import { invariant } from '../engine/core/errors.ts'

export const slotState = { free: 0, filling: 1, filled: 2, taken: 3, done: 4 } as const
export type SlotState = (typeof slotState)[keyof typeof slotState]

const POSITION_BITS = 20
const POSITION_MASK = 2 ** POSITION_BITS - 1
const POSITION_HALF = 2 ** (POSITION_BITS - 1)
const STATE_SHIFT = 9
const OWNER_MASK = 2 ** STATE_SHIFT - 1

export function packWord(position: number, state: SlotState, owner = 0): number {
  return (position << (32 - POSITION_BITS)) | (state << STATE_SHIFT) | owner
}

export function positionOf(word: number): number {
  return word >>> (32 - POSITION_BITS)
}

export function stateOf(word: number): SlotState {
  return ((word >>> STATE_SHIFT) & 7) as SlotState
}

export function ownerOf(word: number): number {
  return word & OWNER_MASK
}

/** Whether position `a` was given out before position `b`; both are outstanding, so they are less than 2^19 apart. */
export function isBefore(a: number, b: number): boolean {
  return a !== b && ((b - a) & POSITION_MASK) < POSITION_HALF
}

export interface Taken {
  readonly slot: number
  readonly position: number
}

function leastFilled(words: Int32Array): Taken | undefined {
  let least: Taken | undefined
  for (let slot = 0; slot < words.length; slot += 1) {
    // Reads what publish released to this worker: a FILLED word promises that the slot's bytes are complete.
    const word = Atomics.load(words, slot)
    if (stateOf(word) !== slotState.filled) continue
    const position = positionOf(word)
    if (least === undefined || isBefore(position, least.position)) least = { slot, position }
  }
  return least
}

/** Worker: takes the filled slot of the least position, or answers undefined when none is filled. */
export function take(words: Int32Array, owner: number): Taken | undefined {
  let seen = leastFilled(words)
  while (seen !== undefined) {
    const again = leastFilled(words)
    if (again?.position === seen.position) {
      const filled = packWord(seen.position, slotState.filled)
      const mine = packWord(seen.position, slotState.taken, owner)
      // Tells every other worker and the main thread that the slot is this turn's; fails when another was faster.
      if (Atomics.compareExchange(words, seen.slot, filled, mine) === filled) return seen
    }
    seen = again
  }
  return undefined
}

/** Worker: hands the slot with its result to the main thread. False: the slot was taken away, the result is void. */
export function finish(words: Int32Array, taken: Taken, owner: number): boolean {
  const mine = packWord(taken.position, slotState.taken, owner)
  // Publishes the result bytes and the head, written before, to the main thread.
  return Atomics.compareExchange(words, taken.slot, mine, packWord(taken.position, slotState.done, owner)) === mine
}

export interface RingCounts {
  readonly free: number
  readonly filled: number
  readonly taken: number
  readonly done: number
}

export interface Outstanding extends Taken {
  readonly state: SlotState
  readonly owner: number
}

/** The main thread's end of the ring: the only one that fills, takes back and frees. */
export class PageRing {
  readonly #words: Int32Array
  readonly #free: number[]
  /** Position to slot of what was published and not released; insertion order is ascending position. */
  readonly #outstanding = new Map<number, number>()
  #positionNext: number

  /** `positionFirst` lets a test start near the wrap. */
  constructor(words: Int32Array, positionFirst = 0) {
    this.#words = words
    this.#free = Array.from(words, (_word, slot) => words.length - 1 - slot)
    this.#positionNext = positionFirst
  }

  get free(): number {
    return this.#free.length
  }

  get outstanding(): number {
    return this.#outstanding.size
  }

  /** A slot to fill, or undefined when there is none. */
  acquire(): number | undefined {
    const oldest = this.#outstanding.keys().next().value
    if (oldest !== undefined && ((this.#positionNext - oldest) & POSITION_MASK) >= POSITION_HALF - this.#words.length) return undefined
    const slot = this.#free.pop()
    // Nobody reads a word that is neither filled nor taken; the store is atomic so that scans see whole words.
    if (slot !== undefined) Atomics.store(this.#words, slot, packWord(0, slotState.filling))
    return slot
  }

  /** The slot's bytes are complete: offers it to the workers, behind all others. */
  publish(slot: number): number {
    invariant(stateOf(this.#words[slot]!) === slotState.filling, 'only a slot that is being filled is published')
    const position = this.#positionNext
    this.#positionNext = (position + 1) & POSITION_MASK
    this.#outstanding.set(position, slot)
    // Publishes the bytes that the main thread wrote into the slot, to the worker that takes it.
    Atomics.store(this.#words, slot, packWord(position, slotState.filled))
    return position
  }

  /** What is outstanding (and in the one state), in ascending position; the words are read in descending position (claim 2). */
  scan(only?: SlotState): readonly Outstanding[] {
    const found: Outstanding[] = []
    for (const position of [...this.#outstanding.keys()].toReversed()) {
      const slot = this.#outstanding.get(position)!
      // Reads what finish released to the main thread: a DONE word promises that head and result are complete.
      const word = Atomics.load(this.#words, slot)
      const state = stateOf(word)
      if (only === undefined || state === only) found.push({ slot, position, state, owner: ownerOf(word) })
    }
    return found.toReversed()
  }

  /** Of what is outstanding, the slots that are done, in ascending position. */
  done(): readonly Outstanding[] {
    return this.scan(slotState.done)
  }

  /** Takes a slot from its dead owner, or a filled one from nobody; afterwards it is published again or failed. */
  takeBack(entry: Outstanding): boolean {
    const word = packWord(entry.position, entry.state, entry.owner)
    // Withdraws the slot from all workers; fails when a worker took it in the meantime.
    if (Atomics.compareExchange(this.#words, entry.slot, word, packWord(0, slotState.filling)) !== word) return false
    this.#outstanding.delete(entry.position)
    return true
  }

  /** A slot that was taken back gets no further try: done, by nobody. */
  fail(slot: number): void {
    const position = this.#positionNext
    this.#positionNext = (position + 1) & POSITION_MASK
    this.#outstanding.set(position, slot)
    // No worker reads a done word; it lets the slot go the usual way through done and release.
    Atomics.store(this.#words, slot, packWord(position, slotState.done))
  }

  /** A slot that was taken back will not be offered again: it is free. */
  cancel(slot: number): void {
    invariant(stateOf(this.#words[slot]!) === slotState.filling, 'only a slot that was taken back is cancelled')
    // No worker reads a free word.
    Atomics.store(this.#words, slot, packWord(0, slotState.free))
    this.#free.push(slot)
  }

  /** A done slot was read: it is free again. */
  release(entry: Taken): void {
    invariant(stateOf(this.#words[entry.slot]!) === slotState.done, 'only a done slot is released')
    this.#outstanding.delete(entry.position)
    // No worker reads a free word.
    Atomics.store(this.#words, entry.slot, packWord(0, slotState.free))
    this.#free.push(entry.slot)
  }

  counts(): RingCounts {
    const counts = [0, 0, 0, 0, 0]
    // A snapshot for decisions that are made again at every turn's end; a worker may be one step further.
    for (let slot = 0; slot < this.#words.length; slot += 1) counts[stateOf(Atomics.load(this.#words, slot))]! += 1
    return { free: counts[slotState.free]!, filled: counts[slotState.filled]!, taken: counts[slotState.taken]!, done: counts[slotState.done]! }
  }
}

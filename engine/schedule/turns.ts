/**
 * Whose turn it is: two heaps of lanes (host.ts) by the next moment at which each may start, one for each class of URLs.
 * A lane of the later class has its turn only when no lane of the first may start now, and then at once: the later class
 * waits for the first, and never lets the crawl idle. Pure state; times are given by the caller. Main thread.
 *
 *     first   units' first lanes, soonest first        next: the top of `first` if it is ready, else that of `later`
 *     later   units' later lanes, soonest first
 *
 * Invariant: a lane lies in its heap exactly when it holds a host. The clock of a unit counts for both of its lanes.
 */
import { Heap } from './heap.ts'
import { laneReadyAtMs, type Lane, type Unit } from './host.ts'

export class Turns {
  readonly #first = new Heap(isReadySooner)
  readonly #later = new Heap(isReadySooner)

  /** The lane that may start a URL now. */
  next(nowMs: number): Lane | undefined {
    const first = this.#first.peek()
    if (first !== undefined && laneReadyAtMs(first) <= nowMs) return first
    const later = this.#later.peek()
    return later !== undefined && laneReadyAtMs(later) <= nowMs ? later : undefined
  }

  /** When `next` may have another answer; infinity when that is not a matter of time. */
  get nextAtMs(): number {
    const [first, later] = [this.#first.peek(), this.#later.peek()]
    return Math.min(first === undefined ? Number.POSITIVE_INFINITY : laneReadyAtMs(first), later === undefined ? Number.POSITIVE_INFINITY : laneReadyAtMs(later))
  }

  /** Puts the lanes of a unit where its state says they belong. */
  settle({ first, later }: Unit): void {
    if (first.size > 0) this.#first.set(first)
    else this.#first.delete(first)
    if (later === undefined) return
    if (later.size > 0) this.#later.set(later)
    else this.#later.delete(later)
  }
}

function isReadySooner(one: Lane, other: Lane): boolean {
  return laneReadyAtMs(one) < laneReadyAtMs(other)
}

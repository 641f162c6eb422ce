/**
 * Whose turn it is. Lanes (host.ts) that may not start yet lie by the moment at which they may; those that may, by their
 * rank. There is such a pair of heaps for each class of URLs, and a lane of the later class has its turn only when none of
 * the first may start now, and then at once: the later class waits for the first, and never lets the crawl idle.
 *
 *     waiting   lanes that may start later, soonest first
 *     ready     lanes that may start now, by the moment since when, and a handicap of at most `handicapMsMax` for the
 *               priority of its next URL
 *
 * So between hosts priority is a weight, and inside a host it is strict: a host with worse URLs starts less often while
 * others compete, and whoever has been ready for longer than the handicap goes before all that became ready since. The
 * longest wait of a ready host is one round of the others and the handicap.
 *
 * Invariant: a lane lies in a heap exactly when it holds a host. The clock of a unit counts for both of its lanes. Pure
 * state; times are given by the caller. Main thread.
 */
import { limits } from '../core/limits.ts'
import { Heap } from './heap.ts'
import { laneReadyAtMs, type Lane, type Unit } from './host.ts'

class Line {
  readonly #waiting = new Heap<Lane>((one, other) => laneReadyAtMs(one) < laneReadyAtMs(other))
  readonly #ready = new Heap<Lane>((one, other) => one.rankMs < other.rankMs || (one.rankMs === other.rankMs && one.order < other.order))
  /** Of lanes of one rank, the one that has been ready for longer is first. */
  #order = 0

  next(nowMs: number): Lane | undefined {
    for (let lane = this.#waiting.peek(); lane !== undefined && laneReadyAtMs(lane) <= nowMs; lane = this.#waiting.peek()) {
      this.#waiting.delete(lane)
      lane.rankMs = laneReadyAtMs(lane) + handicapMs(lane)
      lane.order = this.#order++
      lane.isReady = true
      this.#ready.set(lane)
    }
    return this.#ready.peek()
  }

  get nextAtMs(): number {
    const lane = this.#ready.peek() ?? this.#waiting.peek()
    return lane === undefined ? Number.POSITIVE_INFINITY : laneReadyAtMs(lane)
  }

  /** Its state has changed: whether it is ready shows at the next `next`. */
  settle(lane: Lane): void {
    if (lane.isReady) this.#ready.delete(lane)
    lane.isReady = false
    if (lane.size > 0) this.#waiting.set(lane)
    else this.#waiting.delete(lane)
  }
}

/** Hosts that end without a fetch have no better and no worse URLs. */
function handicapMs(lane: Lane): number {
  const host = lane.peek()!
  const priority = host.ended === undefined ? host.claimed[0]?.priority ?? 0 : 0
  return Math.min(limits.handicapMsMax, priority * limits.handicapStepMs)
}

export class Turns {
  readonly #first = new Line()
  readonly #later = new Line()

  /** The lane that may start a URL now. */
  next(nowMs: number): Lane | undefined {
    return this.#first.next(nowMs) ?? this.#later.next(nowMs)
  }

  /** When `next` may have another answer; infinity when that is not a matter of time. */
  get nextAtMs(): number {
    return Math.min(this.#first.nextAtMs, this.#later.nextAtMs)
  }

  /** Puts the lanes of a unit where its state says they belong. */
  settle({ first, later }: Unit): void {
    this.#first.settle(first)
    if (later !== undefined) this.#later.settle(later)
  }
}

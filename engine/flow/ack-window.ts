/**
 * Where pages stand between the parse stage and the commit when somebody consumes them. Pages are handed out one at a
 * time, in order, and acknowledged in that order, so what is not acknowledged is always the newest part: at the end
 * of a run it goes back to the frontier as one piece. The window is bounded by its filler, which asks `isFull`.
 *
 *     push -> [ waiting ... ] -> next() -> in hand -> the next call of next() -> acknowledged
 *
 * An item that is not for the consumer keeps its place in that order and is acknowledged when its turn comes.
 * Main thread.
 */
import { invariant } from '../core/errors.ts'

export interface AckWindowOptions<T> {
  /** May change; what is over it then waits like the rest. */
  readonly sizeMax: () => number
  /** Bytes of an item in memory; with `bytesMax` the window is full when it holds so many. */
  readonly bytesOf?: (item: T) => number
  readonly bytesMax?: number
  readonly isHanded: (item: T) => boolean
  readonly onAck: (item: T) => void
}

export class AckWindow<T> {
  readonly #waiting: T[] = []
  readonly #sizeMax: () => number
  readonly #bytesOf: (item: T) => number
  readonly #bytesMax: number
  #bytes = 0
  readonly #isHanded: (item: T) => boolean
  readonly #onAck: (item: T) => void
  #inHand: T | undefined
  #asker: ((item: T | undefined) => void) | undefined
  #isClosed = false

  constructor(options: AckWindowOptions<T>) {
    this.#sizeMax = options.sizeMax
    this.#bytesOf = options.bytesOf ?? (() => 0)
    this.#bytesMax = options.bytesMax ?? Number.POSITIVE_INFINITY
    this.#isHanded = options.isHanded
    this.#onAck = options.onAck
  }

  /** Pages that wait and the one in hand. */
  get size(): number {
    return this.#waiting.length + (this.#inHand === undefined ? 0 : 1)
  }

  /** Of the pages that wait; the one in hand is the consumer's. */
  get bytes(): number {
    return this.#bytes
  }

  get isFull(): boolean {
    return this.size >= this.#sizeMax() || this.#bytes >= this.#bytesMax
  }

  push(item: T): void {
    this.#waiting.push(item)
    this.#bytes += this.#bytesOf(item)
    this.#hand()
  }

  /** Acknowledges the item in hand and answers the next one; undefined when the window is closed. One asker at a time. */
  next(): Promise<T | undefined> {
    invariant(this.#asker === undefined, 'the consumer asks for one page at a time')
    const acknowledged = this.#inHand
    this.#inHand = undefined
    if (acknowledged !== undefined) this.#onAck(acknowledged)
    return new Promise((resolve) => {
      this.#asker = resolve
      this.#hand()
    })
  }

  /** Nothing is handed out any more. Answers what was not acknowledged, oldest first, except what is in hand. */
  close(): readonly T[] {
    this.#isClosed = true
    const unacknowledged = this.#waiting.splice(0)
    this.#bytes = 0
    this.#hand()
    return unacknowledged
  }

  /** The consumer has left without finishing what it had in hand. */
  takeBack(): T | undefined {
    const item = this.#inHand
    this.#inHand = undefined
    return item
  }

  #hand(): void {
    if (this.#asker === undefined) return
    if (!this.#isClosed) {
      while (this.#waiting.length > 0 && !this.#isHanded(this.#waiting[0]!)) this.#onAck(this.#take())
      if (this.#waiting.length === 0) return
      this.#inHand = this.#take()
    }
    const asker = this.#asker
    this.#asker = undefined
    asker(this.#inHand)
  }

  #take(): T {
    const item = this.#waiting.shift()!
    this.#bytes -= this.#bytesOf(item)
    return item
  }
}

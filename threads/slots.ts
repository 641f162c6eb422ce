/**
 * The slots as a place: filled with pages, emptied of results, and taken back from dead owners. Main thread; knows
 * nothing of workers or of the pool. Invariants: a ticket given by `fill` comes out of `collect` or of `withdraw`, and
 * exactly once; what was done comes out in the order of ring.ts; a page gets limits.parseTriesMax owners at most, then a failure code.
 */
import { limits } from '../engine/core/limits.ts'
import type { FetchedPage, ParsedResult } from '../engine/core/types.ts'
import type { Arena } from './arena.ts'
import { decodeFrame } from './frame.ts'
import { PageRing, slotState, type Outstanding, type RingCounts } from './ring.ts'

/** Why a page has no result, though its server answered. */
export type ParseFailure = 'parse_timeout' | 'parse_out_of_memory' | 'parse_crashed'

export type CollectedPage =
  /** `parseMs`: how long its worker had it in hand; absent where no worker had. */
  | { readonly ticket: number; readonly result: ParsedResult; readonly parseMs?: number }
  | { readonly ticket: number; readonly code: ParseFailure }

/** What the main thread knows of a page in a slot. */
interface Entry {
  readonly ticket: number
  readonly filledAtMs: number
  tries: number
  code?: ParseFailure
  /** The result, when it came with the end of its turn. */
  frame?: Uint8Array
}

/** Moments are infinite where there is no such page. */
export interface SlotsLook extends RingCounts {
  /** When the page came that waits longest for a worker, and the one that has no result for longest, in a worker's hands or not. */
  readonly oldestFilledAtMs: number
  readonly oldestUnreadAtMs: number
  /** When the page was done that waits longest to be collected: since 1970, as the threads of the process count it. */
  readonly oldestDoneAtMs: number
}

export class Slots {
  readonly ring: PageRing
  readonly #arena: Arena
  readonly #entries: (Entry | undefined)[]
  /** By WARC file: where the last record ends that was collected. One entry a file, so it stays small. */
  readonly #warcEnds = new Map<number, number>()
  /** Done slots of the last look, the oldest at the end. */
  #ready: Outstanding[] = []
  #ticketNext = 1

  constructor(arena: Arena) {
    this.#arena = arena
    this.ring = new PageRing(arena.words)
    this.#entries = Array.from({ length: arena.slots })
  }

  /** Copies the page into a free slot. Answers its ticket, or undefined when no slot is free. */
  fill(page: FetchedPage, nowMs: number): number | undefined {
    const slot = this.ring.acquire()
    if (slot === undefined) return undefined
    this.#arena.writePage(slot, page)
    const ticket = this.#ticketNext
    this.#ticketNext += 1
    this.#entries[slot] = { ticket, filledAtMs: nowMs, tries: 0 }
    this.ring.publish(slot)
    return ticket
  }

  /** Takes the oldest page that is done, and releases its slot. */
  collect(): CollectedPage | undefined {
    // Each look is used up before the next: within one look the order is right, see ring.ts.
    if (this.#ready.length === 0) this.#ready = this.ring.done().toReversed()
    const done = this.#ready.at(-1)
    if (done === undefined) return undefined
    const page = this.#read(done.slot)
    // A result that travels with its turn's end holds up those behind it, which may be of the same worker.
    if (page === undefined) return undefined
    this.#ready.pop()
    this.#entries[done.slot] = undefined
    this.ring.release(done)
    return page
  }

  /** The result of a done slot came with its turn's end. */
  arrived(slot: number, frame: Uint8Array): void {
    this.#entries[slot]!.frame = frame
  }

  /**
   * The owner is gone and its thread has exited: what it had in hand is published again, or fails with `code`. Answers
   * whether there was anything. What it had done stays done.
   */
  takeBack(owner: number, code: ParseFailure): boolean {
    const theirs = this.ring.scan().filter((one) => one.owner === owner
      && (one.state === slotState.taken || (one.state === slotState.done && this.#isOnItsWay(one.slot))))
    for (const one of theirs) this.#charge(one, code)
    return theirs.length > 0
  }

  /** The owner has ended its turn without finishing what it had in hand, for no fault of the page: it is published again. */
  putBack(owner: number): void {
    for (const one of this.ring.scan(slotState.taken)) if (one.owner === owner && this.ring.takeBack(one)) this.ring.publish(one.slot)
  }

  /** No worker lives long enough to take anything: the page that waits longest is charged as if one had died of it. */
  chargeOldest(code: ParseFailure): void {
    const oldest = this.#oldestFilled()
    if (oldest !== undefined) this.#charge(oldest, code)
  }

  /** Pages that no worker has taken leave their slots: answers their tickets, which will not come out of `collect`. */
  withdraw(): readonly number[] {
    return this.ring.scan().filter(({ state }) => state === slotState.filled).flatMap((one) => {
      if (!this.ring.takeBack(one)) return []
      this.ring.cancel(one.slot)
      const { ticket } = this.#entries[one.slot]!
      this.#entries[one.slot] = undefined
      return [ticket]
    })
  }

  /** Where the last record of a WARC file ends whose page was collected or is done. */
  warcEnd(file: number): number {
    const ends = this.ring.done()
      .filter(({ slot }) => this.#entries[slot]!.code === undefined)
      .map(({ slot }) => this.#arena.warcEnd(slot))
      .flatMap((end) => (end?.file === file ? [end.end] : []))
    return Math.max(this.#warcEnds.get(file) ?? 0, ...ends)
  }

  /** What lies in slots, all from one look at their words, which workers change meanwhile. */
  look(): SlotsLook {
    const counts = { filled: 0, taken: 0, done: 0 }
    let [oldestFilledAtMs, oldestUnreadAtMs, oldestDoneAtMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (const { slot, state } of this.ring.scan()) {
      const { filledAtMs, code } = this.#entries[slot]!
      if (state === slotState.done) {
        counts.done += 1
        // A page that was given up has no worker's word for it.
        if (code === undefined) oldestDoneAtMs = Math.min(oldestDoneAtMs, this.#arena.times(slot).doneAtMs)
        continue
      }
      counts[state === slotState.filled ? 'filled' : 'taken'] += 1
      oldestUnreadAtMs = Math.min(oldestUnreadAtMs, filledAtMs)
      if (state === slotState.filled) oldestFilledAtMs = Math.min(oldestFilledAtMs, filledAtMs)
    }
    return { free: this.ring.free, ...counts, oldestFilledAtMs, oldestUnreadAtMs, oldestDoneAtMs }
  }

  #oldestFilled(): Outstanding | undefined {
    return this.ring.scan(slotState.filled)[0]
  }

  #isOnItsWay(slot: number): boolean {
    const { code, frame } = this.#entries[slot]!
    return code === undefined && frame === undefined && this.#arena.result(slot) === undefined
  }

  /** What a done slot holds, or undefined when the result is on its way. */
  #read(slot: number): CollectedPage | undefined {
    const { ticket, code, frame } = this.#entries[slot]!
    if (code !== undefined) return { ticket, code }
    const bytes = frame ?? this.#arena.result(slot)
    if (bytes === undefined) return undefined
    const decoded = decodeFrame(bytes)
    if (!decoded.ok) return { ticket, code: 'parse_crashed' }
    const { warc } = decoded.result
    if (warc !== undefined) this.#warcEnds.set(warc.file, warc.offset + warc.length)
    return { ticket, result: decoded.result, parseMs: this.#arena.times(slot).parseMs }
  }

  #charge(one: Outstanding, code: ParseFailure): void {
    if (!this.ring.takeBack(one)) return
    // The last look may have seen this very slot done, waiting for a result that will not come.
    this.#ready = []
    const entry = this.#entries[one.slot]!
    entry.tries += 1
    if (entry.tries < limits.parseTriesMax) {
      this.ring.publish(one.slot)
      return
    }
    entry.code = code
    this.ring.fail(one.slot)
  }
}

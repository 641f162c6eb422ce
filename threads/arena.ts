/**
 * The memory that the main thread and the parse workers share: one SharedArrayBuffer, laid out once and never grown.
 * Runs in both. Invariant: the bytes of a slot belong to whoever its state word names (see ring.ts); this module only
 * says where things lie and never reads or changes a state word.
 *
 *   byte 0        64          64 + 4 x 512     .. + 4 x slots (to 4 KB)
 *   +-------------+-----------+----------------+--------+--------+----
 *   | control     | WARC file | state words    | slot 0 | slot 1 | ...
 *   | 16 words    | by owner  | one a slot     |        |        |
 *   +-------------+-----------+----------------+--------+--------+----
 *
 *   one slot (a multiple of 4 KB; pages of memory that were never touched cost nothing):
 *   +-----------+--------------------------+-------------------+------------------------+
 *   | head      | request: PageMeta as     | body: the payload | result: a frame        |
 *   | 16 words  | JSON, then header block  | as received       | (frame.ts)             |
 *   +-----------+--------------------------+-------------------+------------------------+
 *     64          metaBytesMax +             bodyBytesMax        resultBytesInSlotMax
 *                 2 x headerBytesMax
 *
 *   head: 0 meta bytes | 1 header bytes | 2 body bytes | 3 redirects before this page | 4 result bytes |
 *         5 overflow: the result travels with the end of the turn | 6 WARC file + 1 | 8-9 end of the record in it (f64) |
 *         10-11 how long the worker had it, ms (f64) | 12-13 when it was done, ms since 1970 (f64)
 */
import { invariant } from '../engine/core/errors.ts'
import { limits } from '../engine/core/limits.ts'
import type { FetchedPage, PageMeta, WarcPlace } from '../engine/core/types.ts'

/** Indices of the control words. */
export const control = {
  slots: 0,
  bodyBytesMax: 1,
  /** Grows by one whenever a slot becomes done; the main thread waits on it. */
  doneCount: 2,
  /** Tasks that wait for a worker; a turn ends early when there is one. */
  tasksWaiting: 3,
  /** Grows when every worker must begin a new WARC file. */
  warcEpoch: 4,
  /** The number of the next WARC file. */
  warcFileNext: 5,
} as const

const CONTROL_WORDS = 16
/** Owner numbers have nine bits. */
export const ownersMax = 512
const HEAD_BYTES = 64
const MEMORY_PAGE_BYTES = 4_096
/** A header line may grow by the blank and the line feed that the server left out, so the block may be twice as long. */
const REQUEST_BYTES_MAX = limits.metaBytesMax + 2 * limits.headerBytesMax

const head = { meta: 0, headers: 1, body: 2, redirects: 3, result: 4, overflow: 5, warcFile: 6 } as const
const WARC_END_BYTE = 32
const TIMES_BYTE = 40

/** A page as a worker sees it; header block and body are views of the slot. */
export interface SlotPage {
  readonly meta: PageMeta
  /** Redirects that led to this page; the chain itself may be absent from `meta` when it was too long for the slot. */
  readonly redirects: number
  readonly headerBlock: Uint8Array
  readonly body: Uint8Array
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / MEMORY_PAGE_BYTES) * MEMORY_PAGE_BYTES
}

function strideOf(bodyBytesMax: number): number {
  return roundUp(HEAD_BYTES + REQUEST_BYTES_MAX + bodyBytesMax + limits.resultBytesInSlotMax)
}

function slotsStart(slots: number): number {
  return roundUp(4 * (CONTROL_WORDS + ownersMax + slots))
}

/** Memory of so many slots. */
export function slotsBytes(bodyBytesMax: number, slots: number): number {
  return slots * strideOf(bodyBytesMax)
}

/** How many slots fit into the budget of the arena. */
export function slotCountFor(bodyBytesMax: number, arenaBytes: number = limits.arenaBytesMax): number {
  const fitting = Math.floor(arenaBytes / strideOf(bodyBytesMax))
  return Math.min(limits.slotsMax, Math.max(limits.slotsMin, fitting))
}

const encoder = new TextEncoder()

/**
 * The facts of the request as JSON. A chain of very long addresses may not fit: then referrer and chain stay with the
 * main thread, which has them anyway, and the worker is told the chain's length.
 */
function encodeMeta(meta: PageMeta): Uint8Array {
  const whole = encoder.encode(JSON.stringify(meta))
  if (whole.byteLength <= limits.metaBytesMax) return whole
  const { referrer: _referrer, redirectedFrom: _chain, ...rest } = meta
  return encoder.encode(JSON.stringify(rest))
}

export class Arena {
  readonly memory: SharedArrayBuffer
  readonly control: Int32Array
  /** For each owner: the number of its WARC file plus one, 0 when it has begun none. */
  readonly warcFiles: Int32Array
  /** The state words; ring.ts is the only module that reads or changes them. */
  readonly words: Int32Array
  readonly slots: number
  readonly bodyBytesMax: number
  readonly #bytes: Uint8Array
  readonly #start: number
  readonly #stride: number

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.control = new Int32Array(memory, 0, CONTROL_WORDS)
    this.slots = this.control[control.slots]!
    this.bodyBytesMax = this.control[control.bodyBytesMax]!
    this.warcFiles = new Int32Array(memory, 4 * CONTROL_WORDS, ownersMax)
    this.words = new Int32Array(memory, 4 * (CONTROL_WORDS + ownersMax), this.slots)
    this.#bytes = new Uint8Array(memory)
    this.#start = slotsStart(this.slots)
    this.#stride = strideOf(this.bodyBytesMax)
  }

  static create(bodyBytesMax: number, slots = slotCountFor(bodyBytesMax)): Arena {
    invariant(slots >= 1 && slots <= limits.slotsMax, 'the count of slots is within its limits')
    const memory = new SharedArrayBuffer(slotsStart(slots) + slots * strideOf(bodyBytesMax))
    const words = new Int32Array(memory, 0, CONTROL_WORDS)
    words[control.slots] = slots
    words[control.bodyBytesMax] = bodyBytesMax
    return new Arena(memory)
  }

  /** The same memory, seen from a worker. */
  static over(memory: SharedArrayBuffer): Arena {
    return new Arena(memory)
  }

  #at(slot: number): number {
    return this.#start + slot * this.#stride
  }

  #head(slot: number): Int32Array {
    return new Int32Array(this.memory, this.#at(slot), HEAD_BYTES / 4)
  }

  #warcEnd(slot: number): Float64Array {
    return new Float64Array(this.memory, this.#at(slot) + WARC_END_BYTE, 1)
  }

  #times(slot: number): Float64Array {
    return new Float64Array(this.memory, this.#at(slot) + TIMES_BYTE, 2)
  }

  /** Main thread, on a slot that it is filling. */
  writePage(slot: number, page: FetchedPage): void {
    const meta = encodeMeta(page.meta)
    const requestBytes = meta.byteLength + page.headerBlock.byteLength
    invariant(meta.byteLength <= limits.metaBytesMax && requestBytes <= REQUEST_BYTES_MAX, 'request facts and headers fit into their slot')
    invariant(page.bodyBytes <= this.bodyBytesMax, 'a body fits into its slot')
    const at = this.#at(slot) + HEAD_BYTES
    this.#bytes.set(meta, at)
    this.#bytes.set(page.headerBlock, at + meta.byteLength)
    let bodyAt = at + REQUEST_BYTES_MAX
    for (const chunk of page.body) {
      this.#bytes.set(chunk, bodyAt)
      bodyAt += chunk.byteLength
    }
    invariant(bodyAt === at + REQUEST_BYTES_MAX + page.bodyBytes, 'a body is as long as its chunks')
    const words = this.#head(slot)
    words[head.meta] = meta.byteLength
    words[head.headers] = page.headerBlock.byteLength
    words[head.body] = page.bodyBytes
    words[head.redirects] = page.meta.redirectedFrom?.length ?? 0
  }

  /** Worker, on a slot that it has taken. */
  readPage(slot: number): SlotPage {
    const words = this.#head(slot)
    const at = this.#at(slot) + HEAD_BYTES
    const headersAt = at + words[head.meta]!
    const meta = Buffer.from(this.memory, at, words[head.meta]!).toString('utf8')
    return {
      meta: JSON.parse(meta) as PageMeta,
      redirects: words[head.redirects]!,
      headerBlock: this.#bytes.subarray(headersAt, headersAt + words[head.headers]!),
      body: this.#bytes.subarray(at + REQUEST_BYTES_MAX, at + REQUEST_BYTES_MAX + words[head.body]!),
    }
  }

  /** Worker, on a slot that it has taken: the room for its result. */
  resultRoom(slot: number): Uint8Array {
    const at = this.#at(slot) + HEAD_BYTES + REQUEST_BYTES_MAX + this.bodyBytesMax
    return this.#bytes.subarray(at, at + limits.resultBytesInSlotMax)
  }

  /** Worker, on a slot that it has taken, after the bytes were written. `overflow`: they travel with the turn's end. */
  sealResult(slot: number, bytes: number, options: { overflow: boolean; warc: WarcPlace | undefined }): void {
    const words = this.#head(slot)
    words[head.result] = options.overflow ? 0 : bytes
    words[head.overflow] = options.overflow ? 1 : 0
    words[head.warcFile] = options.warc === undefined ? 0 : options.warc.file + 1
    this.#warcEnd(slot)[0] = options.warc === undefined ? 0 : options.warc.offset + options.warc.length
  }

  /** Worker, on a slot that it has taken and is about to finish. `doneAtMs`: since 1970, as all threads of the process count it. */
  sealTimes(slot: number, parseMs: number, doneAtMs: number): void {
    this.#times(slot).set([parseMs, doneAtMs])
  }

  /** Main thread, on a done slot that a worker finished. */
  times(slot: number): { readonly parseMs: number; readonly doneAtMs: number } {
    const [parseMs, doneAtMs] = this.#times(slot)
    return { parseMs: parseMs!, doneAtMs: doneAtMs! }
  }

  /** Main thread, on a done slot: a view of the result, or undefined when it travels with the turn's end. */
  result(slot: number): Uint8Array | undefined {
    const words = this.#head(slot)
    if (words[head.overflow] === 1) return undefined
    return this.resultRoom(slot).subarray(0, words[head.result])
  }

  /** Main thread, on a done slot: the WARC file that holds the page, and where its record ends. */
  warcEnd(slot: number): { readonly file: number; readonly end: number } | undefined {
    const file = this.#head(slot)[head.warcFile]!
    return file === 0 ? undefined : { file: file - 1, end: this.#warcEnd(slot)[0]! }
  }
}

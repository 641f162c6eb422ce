/**
 * The rows of the queue as one batch changes them: URLs that leave, and URLs that come in and are put into rows together.
 * Main thread; reads the table, and answers writes. Invariants: what leaves was there, with the fingerprint that it should
 * have, and leaves once; URLs of one host and priority lie in the order in which they came.
 */
import { invariant } from '../../engine/core/errors.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { Arena } from './codec.ts'
import type { Table, Write } from './environment.ts'
import { deferredRow, hostKeyOf, isDeferredRow, isLaterRow, keyText, priorityOf, readyRange, readyRow, sequenceOf, type ReadyClass } from './layout.ts'
import { decodeQueueRow, encodeQueueRow, isRowFull, RowUrls, urlBytes, type RowHead, type RowUrl } from './queue-row.ts'

/** A row of which URLs leave. */
interface EditedRow {
  readonly key: Uint8Array
  readonly urls: RowUrls
  readonly gone: Set<number>
}

/** URLs that will be one row. */
interface OpenRow {
  readonly host: QueueHost
  readonly of: ReadyClass
  readonly head: RowHead
  readonly urls: RowUrl[]
  bytes: number
}

export interface QueueHost {
  readonly name: string
  readonly key: Uint8Array
}

export interface QueueEditView {
  readonly queue: Pick<Table, 'get' | 'entries'>
  readonly arena: Arena
  /** The sequence of the next new URL. */
  readonly sequence: number
}

export class QueueEdit {
  /** URLs that left, and rows that came in and may be claimed at once. */
  readonly left: { readonly hostKey: Uint8Array; readonly sequence: number }[] = []
  readonly entered: Uint8Array[] = []
  /** Sequences of those that left to make room, which nobody had claimed. */
  readonly evicted: number[] = []
  sequence: number

  readonly #view: QueueEditView
  readonly #edited = new Map<string, EditedRow>()
  /** At most one for each host, class and priority, so that the order of arrival is kept. */
  readonly #open = new Map<string, OpenRow>()
  readonly #writes: Write[] = []

  constructor(view: QueueEditView) {
    this.#view = view
    this.sequence = view.sequence
  }

  /** Takes a claimed URL out of its row. */
  take(url: QueuedUrl): void {
    const row = this.#edit(url.row)
    const offset = url.sequence - sequenceOf(url.row)
    const index = row?.urls.offsets.indexOf(offset) ?? -1
    invariant(row !== undefined && index >= 0, `a URL that ends has its place in the queue: ${url.url}`)
    invariant(!row.gone.has(offset), `a URL ends once in a batch: ${url.url}`)
    invariant(Buffer.compare(row.urls.fingerprint(index), url.fingerprint) === 0, `the place of a URL is its own: ${url.url}`)
    row.gone.add(offset)
    this.left.push({ hostKey: hostKeyOf(url.row), sequence: url.sequence })
  }

  /** A URL that comes in, in a row with others like it. */
  add(host: QueueHost, of: ReadyClass, head: RowHead, url: RowUrl): void {
    const id = `${keyText(host.key)}${of}${head.priority}`
    let row = this.#open.get(id)
    const bytes = urlBytes(url.url, host.name)
    if (row !== undefined && (!isAlike(row.head, head) || isRowFull(row.bytes + bytes, row.urls.length))) {
      this.#close(row)
      row = undefined
    }
    if (row === undefined) this.#open.set(id, row = { host, of, head, urls: [], bytes: 0 })
    row.urls.push(url)
    row.bytes += bytes
  }

  /** Puts a URL that was taken out under a later moment. */
  defer(url: QueuedUrl, attempts: number, notBeforeMs: number): void {
    const key = deferredRow(hostKeyOf(url.row), notBeforeMs, url.sequence)
    const { depth, priority, referrer, redirectedFrom, hasCookie, previous, kind } = url
    const head = {
      depth, priority, attempts, isAgain: previous !== undefined, ...(referrer !== undefined && { referrer }), ...(redirectedFrom && { redirectedFrom }),
      ...(hasCookie && { hasCookie }), ...(kind && { kind }),
    }
    this.#writes.push({ table: 'queue', key, value: encodeQueueRow(this.#view.arena, url.host, head, [url]) })
  }

  /**
   * The URL of a host that is claimed last, if its priority is lower (a greater number) than `priority` and it is not
   * leased: taken out of its row. A page that is to be fetched again is not given up for a link. Looks at the last `rowsMax` rows that were there before the batch.
   */
  evict(host: QueueHost, priority: number, { isLeased, rowsMax }: { isLeased: (sequence: number) => boolean; rowsMax: number }): QueuedUrl | undefined {
    const { start, end } = readyRange(host.key, undefined)
    let looked = 0
    for (const { key, value } of this.#view.queue.entries({ start: end, end: start, reverse: true })) {
      if (priorityOf(key) <= priority && !isLaterRow(key)) return undefined
      if ((looked += 1) > rowsMax) return undefined
      const gone = this.#edited.get(keyText(key))?.gone
      const worst = decodeQueueRow(key, value, host.name).findLast(({ url: { sequence }, isAgain }) => !isAgain && !isLeased(sequence) && gone?.has(sequence - sequenceOf(key)) !== true)
      if (worst === undefined || worst.url.priority <= priority) continue
      this.take(worst.url)
      this.evicted.push(worst.url.sequence)
      return worst.url
    }
    return undefined
  }

  /** All that was changed. Called once, last. */
  finish(): readonly Write[] {
    for (const row of this.#open.values()) this.#close(row)
    const edits = Array.from(this.#edited.values(), ({ key, urls, gone }): Write => {
      const value = urls.without(this.#view.arena, gone)
      return value === undefined ? { table: 'queue', key } : { table: 'queue', key, value }
    })
    // What comes in is written last: a URL that is deferred to the moment at which it lay has its old key.
    return [...edits, ...this.#writes]
  }

  #edit(key: Uint8Array): EditedRow | undefined {
    const id = keyText(key)
    const known = this.#edited.get(id)
    if (known !== undefined) return known
    const value = this.#view.queue.get(key)
    if (value === undefined) return undefined
    const row = { key, urls: new RowUrls(value), gone: new Set<number>() }
    this.#edited.set(id, row)
    return row
  }

  #close({ host, of, head, urls }: OpenRow): void {
    const key = readyRow(host.key, of, head.priority, this.sequence)
    this.sequence += urls.length
    this.entered.push(key)
    this.#writes.push({ table: 'queue', key, value: encodeQueueRow(this.#view.arena, host.name, head, urls) })
  }
}

function isAlike(a: RowHead, b: RowHead): boolean {
  return a.depth === b.depth && a.referrer === b.referrer && a.isAgain === b.isAgain && a.kind === b.kind && a.attempts === b.attempts
    && a.redirectedFrom === undefined && b.redirectedFrom === undefined
}

/** Whether a queued URL waits in the later class. */
export function isInLaterClass(url: QueuedUrl): boolean {
  return !isDeferredRow(url.row) && isLaterRow(url.row)
}

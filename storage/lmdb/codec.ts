/**
 * The values of the tables as bytes. Main thread. Invariant: what is written is read back equal; a row that does not
 * decode throws `store_corrupt`, so that `check` finds it. Pure apart from the arena's own memory.
 *
 *   queue row   attempts (2) depth (2) priority (1) flags (1) fingerprint (16) url  [referrer]  [count (1), texts]
 *   page row    status (2) outcome (1) flags (1) fetched at, ms (8) url  [code] [content hash (16)] [etag] [modified]
 *   host row    name, then the facts as JSON or nothing
 *
 * A text is its length in two bytes and then UTF-8. Flags say which of the parts in brackets follow, lowest bit first.
 */
import { SluiceError, invariant } from '../../engine/core/errors.ts'
import type { Outcome, QueuedUrl, UrlState } from '../../engine/core/types.ts'
import type { PageRow } from '../store.ts'
import { getNumber, putNumber, sequenceOf } from './layout.ts'

/** Codes of states and outcomes, by position. Part of the layout: append only. */
const states = ['pending', 'done', 'failed', 'dropped', 'excluded'] as const satisfies readonly UrlState[]
const outcomes = ['ok', 'redirect', 'http_error', 'failed', 'robots_denied', 'excluded', 'dropped'] as const satisfies readonly Outcome[]

const CHUNK_BYTES = 256 * 1024
const TEXT_BYTES_MAX = 0xffff

/**
 * Memory for the rows of one batch. lmdb-js asks the native side for the address of every ArrayBuffer that it meets,
 * so the rows of a batch share a few large ones. A chunk is never written again once a row was cut from it.
 */
export class Arena {
  #chunk = Buffer.allocUnsafeSlow(0)
  #at = 0

  /** Room for a row of at most `bytesMax`, written by `write`, which answers where it ended. */
  row(bytesMax: number, write: (chunk: Buffer, at: number) => number): Uint8Array {
    if (this.#chunk.length - this.#at < bytesMax) {
      this.#chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, bytesMax))
      this.#at = 0
    }
    const start = this.#at
    this.#at = write(this.#chunk, start)
    invariant(this.#at - start <= bytesMax, 'a row fits into its room')
    return this.#chunk.subarray(start, this.#at)
  }
}

/** UTF-8 takes at most three bytes for each unit of a JavaScript string. */
function textRoom(text: string | undefined): number {
  return text === undefined ? 0 : 2 + text.length * 3
}

function putText(chunk: Buffer, at: number, text: string): number {
  const bytes = chunk.write(text, at + 2, 'utf8')
  invariant(bytes <= TEXT_BYTES_MAX, 'a text of a row fits into two bytes of length')
  chunk.writeUInt16BE(bytes, at)
  return at + 2 + bytes
}

/** Reads a row front to back; anything that goes past its end is a corrupt row. */
class RowReader {
  readonly #row: Buffer
  #at = 0

  constructor(row: Uint8Array) {
    this.#row = Buffer.from(row.buffer, row.byteOffset, row.byteLength)
  }

  bytes(count: number): Buffer {
    const start = this.#at
    this.#at += count
    if (this.#at > this.#row.length) throw new SluiceError('store_corrupt', 'a row of the store ends too early')
    return this.#row.subarray(start, this.#at)
  }

  u8(): number {
    return this.bytes(1)[0]!
  }

  u16(): number {
    return this.bytes(2).readUInt16BE(0)
  }

  number(): number {
    return getNumber(this.bytes(8), 0)
  }

  text(): string {
    return this.bytes(this.u16()).toString()
  }

  rest(): Buffer {
    return this.bytes(this.#row.length - this.#at)
  }

  end(): void {
    if (this.#at !== this.#row.length) throw new SluiceError('store_corrupt', 'a row of the store is too long')
  }
}

export type QueueRow = Omit<QueuedUrl, 'row' | 'host' | 'sequence'>

const REFERRER = 1
const CHAIN = 2

export function encodeQueueRow(arena: Arena, url: QueueRow): Uint8Array {
  const chain = url.redirectedFrom ?? []
  const room = 23 + textRoom(url.url) + textRoom(url.referrer) + chain.reduce((sum, hop) => sum + textRoom(hop), 0)
  return arena.row(room, (chunk, start) => {
    chunk.writeUInt16BE(Math.min(url.attempts, 0xffff), start)
    chunk.writeUInt16BE(url.depth, start + 2)
    chunk[start + 4] = url.priority
    chunk[start + 5] = (url.referrer === undefined ? 0 : REFERRER) | (chain.length === 0 ? 0 : CHAIN)
    chunk.set(url.fingerprint, start + 6)
    let at = putText(chunk, start + 22, url.url)
    if (url.referrer !== undefined) at = putText(chunk, at, url.referrer)
    if (chain.length > 0) {
      chunk[at] = chain.length
      at += 1
      for (const hop of chain) at = putText(chunk, at, hop)
    }
    return at
  })
}

/** `row` is the key, `value` what lies there. */
export function decodeQueueRow(row: Uint8Array, value: Uint8Array, host: string): QueuedUrl {
  const reader = new RowReader(value)
  const attempts = reader.u16()
  const depth = reader.u16()
  const priority = reader.u8()
  const flags = reader.u8()
  const fingerprint = new Uint8Array(reader.bytes(16))
  const url = reader.text()
  const referrer = (flags & REFERRER) === 0 ? undefined : reader.text()
  const redirectedFrom = (flags & CHAIN) === 0 ? undefined : Array.from({ length: reader.u8() }, () => reader.text())
  reader.end()
  return {
    row, host, sequence: sequenceOf(row), fingerprint, url, depth, priority, attempts,
    ...(referrer === undefined ? {} : { referrer }),
    ...(redirectedFrom === undefined ? {} : { redirectedFrom }),
  }
}

/** The fingerprint of a queue row without decoding the rest. */
export function fingerprintOfQueueRow(value: Uint8Array): Uint8Array {
  return value.subarray(6, 22)
}

const CODE = 1
const HASH = 2
const ETAG = 4
const MODIFIED = 8

export function encodePageRow(arena: Arena, page: PageRow): Uint8Array {
  const { code, contentHash, etag, lastModified } = page
  const room = 12 + 16 + textRoom(page.url) + textRoom(code) + textRoom(etag) + textRoom(lastModified)
  return arena.row(room, (chunk, start) => {
    chunk.writeUInt16BE(page.status, start)
    chunk[start + 2] = outcomes.indexOf(page.outcome)
    chunk[start + 3] = (code === undefined ? 0 : CODE) | (contentHash === undefined ? 0 : HASH)
      | (etag === undefined ? 0 : ETAG) | (lastModified === undefined ? 0 : MODIFIED)
    putNumber(chunk, start + 4, page.fetchedAtMs)
    let at = putText(chunk, start + 12, page.url)
    if (code !== undefined) at = putText(chunk, at, code)
    if (contentHash !== undefined) {
      chunk.set(contentHash, at)
      at += 16
    }
    if (etag !== undefined) at = putText(chunk, at, etag)
    return lastModified === undefined ? at : putText(chunk, at, lastModified)
  })
}

export function decodePageRow(value: Uint8Array): PageRow {
  const reader = new RowReader(value)
  const status = reader.u16()
  const outcome = outcomes[reader.u8()]
  if (outcome === undefined) throw new SluiceError('store_corrupt', 'a page row has an unknown outcome')
  const flags = reader.u8()
  const fetchedAtMs = reader.number()
  const url = reader.text()
  const code = (flags & CODE) === 0 ? undefined : reader.text()
  const contentHash = (flags & HASH) === 0 ? undefined : new Uint8Array(reader.bytes(16))
  const etag = (flags & ETAG) === 0 ? undefined : reader.text()
  const lastModified = (flags & MODIFIED) === 0 ? undefined : reader.text()
  reader.end()
  return {
    url, status, outcome, fetchedAtMs,
    ...(code === undefined ? {} : { code }),
    ...(contentHash === undefined ? {} : { contentHash }),
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
  }
}

/** A `seen` row: the state alone while the URL is pending, then the state and the outcome. */
export function encodeState(arena: Arena, state: UrlState, outcome?: Outcome): Uint8Array {
  return arena.row(2, (chunk, start) => {
    chunk[start] = states.indexOf(state)
    if (outcome === undefined) return start + 1
    chunk[start + 1] = outcomes.indexOf(outcome)
    return start + 2
  })
}

export function decodeState(value: Uint8Array): UrlState {
  const state = states[value[0] ?? states.length]
  if (state === undefined) throw new SluiceError('store_corrupt', 'a seen row has an unknown state')
  return state
}

export function encodeHostRow(arena: Arena, name: string, facts: Readonly<Record<string, unknown>>): Uint8Array {
  const json = Object.keys(facts).length === 0 ? '' : JSON.stringify(facts)
  return arena.row(textRoom(name) + json.length * 3, (chunk, start) => {
    const at = putText(chunk, start, name)
    return at + chunk.write(json, at, 'utf8')
  })
}

export function nameOfHostRow(value: Uint8Array): string {
  return new RowReader(value).text()
}

export function factsOfHostRow(value: Uint8Array): Readonly<Record<string, unknown>> {
  const reader = new RowReader(value)
  reader.text()
  const json = reader.rest()
  return json.length === 0 ? {} : decodeJson(json)
}

export function encodeJson(arena: Arena, value: unknown): Uint8Array {
  const json = JSON.stringify(value)
  return arena.row(json.length * 3, (chunk, start) => start + chunk.write(json, start, 'utf8'))
}

export function decodeJson(value: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()) as Record<string, unknown>
  } catch (error) {
    throw new SluiceError('store_corrupt', 'a row of the store is not the JSON that it should be', { cause: error })
  }
}

/** A count in four bytes: the value of a `ready` row. */
export function encodeCount(arena: Arena, count: number): Uint8Array {
  return arena.row(4, (chunk, start) => chunk.writeUInt32BE(count, start))
}

export function decodeCount(value: Uint8Array | undefined): number {
  return value === undefined ? 0 : new RowReader(value).bytes(4).readUInt32BE(0)
}

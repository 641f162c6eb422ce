/**
 * The values of the tables as bytes. Main thread. Invariant: what is written is read back equal; a row that does not
 * decode throws `store_corrupt`, so that `check` finds it. Pure apart from the arena's own memory.
 *
 *   page row    status (2) kind and outcome (1: four bits each) flags (1) depth (2) priority (1) fetched at, ms (6) url  [code] [content hash (16)]
 *               [etag] [modified] [payload digest (20), its date, ms (6)] [due at, ms (6), interval, ms (6)] [gone times (1)]
 *   host row    name, then the facts as JSON or nothing
 *
 * A text is its length in two bytes and then UTF-8. Flags say which of the parts in brackets follow, lowest bit first.
 */
import { SluiceError, invariant } from '../../engine/core/errors.ts'
import type { Outcome, UrlState } from '../../engine/core/types.ts'
import type { PageRow } from '../store.ts'
import { getShort, getWord, putShort } from './layout.ts'

/** Codes of states and outcomes, by position. Part of the layout: append only. */
const states = ['pending', 'done', 'failed', 'dropped', 'excluded'] as const satisfies readonly UrlState[]
const outcomes = ['ok', 'redirect', 'http_error', 'failed', 'robots_denied', 'excluded', 'dropped', 'not_modified'] as const satisfies readonly Outcome[]

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
export function textRoom(text: string | undefined): number {
  return text === undefined ? 0 : 2 + text.length * 3
}

export function putText(chunk: Buffer, at: number, text: string): number {
  const bytes = chunk.write(text, at + 2, 'utf8')
  invariant(bytes <= TEXT_BYTES_MAX, 'a text of a row fits into two bytes of length')
  chunk.writeUInt16BE(bytes, at)
  return at + 2 + bytes
}

/** The same bytes. Values from a table are Buffers; those of a range are not. */
export function asBuffer(value: Uint8Array): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** Reads a row front to back; anything that goes past its end is a corrupt row. */
export class RowReader {
  readonly #row: Buffer
  #at = 0

  constructor(row: Uint8Array) {
    this.#row = asBuffer(row)
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

  /** A whole number of 6 bytes. */
  short(): number {
    return getShort(this.bytes(6), 0)
  }

  text(): string {
    return this.bytes(this.u16()).toString()
  }

  get left(): number {
    return this.#row.length - this.#at
  }

  rest(): Buffer {
    return this.bytes(this.#row.length - this.#at)
  }

  end(): void {
    if (this.#at !== this.#row.length) throw new SluiceError('store_corrupt', 'a row of the store is too long')
  }
}

/** Codes of what a URL is; 0: a page. */
const SITEMAP = 1
const OUTCOME_BITS = 4
const OUTCOME_MASK = 0x0f

const CODE = 1
const HASH = 2
const ETAG = 4
const MODIFIED = 8
const DIGEST = 16
const DUE = 32
const GONE = 64
const HASH_BYTES = 16
const DIGEST_BYTES = 20

function flagsOfPage({ code, contentHash, etag, lastModified, payloadDigest, due, goneTimes }: PageRow): number {
  return (code === undefined ? 0 : CODE) | (contentHash === undefined ? 0 : HASH) | (etag === undefined ? 0 : ETAG)
    | (lastModified === undefined ? 0 : MODIFIED) | (payloadDigest === undefined ? 0 : DIGEST) | (due === undefined ? 0 : DUE)
    | (goneTimes === undefined || goneTimes === 0 ? 0 : GONE)
}

export function encodePageRow(arena: Arena, page: PageRow): Uint8Array {
  const { code, contentHash, etag, lastModified, payloadDigest, due } = page
  const room = 14 + HASH_BYTES + DIGEST_BYTES + 6 + 13 + textRoom(page.url) + textRoom(code) + textRoom(etag) + textRoom(lastModified)
  return arena.row(room, (chunk, start) => {
    const flags = flagsOfPage(page)
    chunk.writeUInt16BE(page.status, start)
    chunk[start + 2] = outcomes.indexOf(page.outcome) | (page.kind === undefined ? 0 : SITEMAP << OUTCOME_BITS)
    chunk[start + 3] = flags
    chunk.writeUInt16BE(page.depth, start + 4)
    chunk[start + 6] = page.priority
    putShort(chunk, start + 7, page.fetchedAtMs)
    let at = putText(chunk, start + 13, page.url)
    if (code !== undefined) at = putText(chunk, at, code)
    if (contentHash !== undefined) at = putBytes(chunk, at, contentHash)
    if (etag !== undefined) at = putText(chunk, at, etag)
    if (lastModified !== undefined) at = putText(chunk, at, lastModified)
    if (payloadDigest !== undefined) {
      at = putBytes(chunk, at, payloadDigest)
      putShort(chunk, at, page.payloadAtMs ?? page.fetchedAtMs)
      at += 6
    }
    if (due !== undefined) {
      putShort(chunk, at, Math.ceil(due.atMs))
      putShort(chunk, at + 6, Math.ceil(due.intervalMs))
      at += 12
    }
    if ((flags & GONE) !== 0) chunk[at++] = Math.min(page.goneTimes!, 0xff)
    return at
  })
}

function putBytes(chunk: Buffer, at: number, bytes: Uint8Array): number {
  chunk.set(bytes, at)
  return at + bytes.length
}

export function decodePageRow(value: Uint8Array): PageRow {
  const reader = new RowReader(value)
  const status = reader.u16()
  const what = reader.u8()
  const [outcome, kind] = [outcomes[what & OUTCOME_MASK], what >> OUTCOME_BITS]
  if (outcome === undefined || kind > SITEMAP) throw new SluiceError('store_corrupt', 'a page row has an unknown outcome or kind')
  const flags = reader.u8()
  const [depth, priority, fetchedAtMs, url] = [reader.u16(), reader.u8(), reader.short(), reader.text()]
  const has = <T>(flag: number, read: () => T): T | undefined => ((flags & flag) === 0 ? undefined : read())
  const code = has(CODE, () => reader.text())
  const contentHash = has(HASH, () => new Uint8Array(reader.bytes(HASH_BYTES)))
  const etag = has(ETAG, () => reader.text())
  const lastModified = has(MODIFIED, () => reader.text())
  const payload = has(DIGEST, () => ({ payloadDigest: new Uint8Array(reader.bytes(DIGEST_BYTES)), payloadAtMs: reader.short() }))
  const due = has(DUE, () => ({ atMs: reader.short(), intervalMs: reader.short() }))
  const goneTimes = has(GONE, () => reader.u8())
  reader.end()
  return {
    url, status, outcome, fetchedAtMs, depth, priority,
    ...(code !== undefined && { code }), ...(contentHash && { contentHash }), ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { lastModified }), ...payload, ...(due && { due }),
    ...(goneTimes !== undefined && { goneTimes }), ...(kind === SITEMAP && { kind: 'sitemap' }),
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
  const row = asBuffer(value)
  const end = 2 + row.readUInt16BE(0)
  if (end > row.length) throw new SluiceError('store_corrupt', 'a row of the store ends too early')
  return row.toString('utf8', 2, end)
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
    return JSON.parse(asBuffer(value).toString()) as Record<string, unknown>
  } catch (error) {
    throw new SluiceError('store_corrupt', 'a row of the store is not the JSON that it should be', { cause: error })
  }
}

/** Counts of four bytes each. */
export function encodeCounts(arena: Arena, counts: readonly number[]): Uint8Array {
  return arena.row(4 * counts.length, (chunk, start) => counts.reduce((at, count) => chunk.writeUInt32BE(count, at), start))
}

export function decodeCounts(value: Uint8Array): number[] {
  const row = asBuffer(value)
  if (row.length % 4 !== 0) throw new SluiceError('store_corrupt', 'a row of counts ends too early')
  return Array.from({ length: row.length / 4 }, (_, index) => row.readUInt32BE(4 * index))
}

/** A count in four bytes: the value of a `ready` row. */
export function encodeCount(arena: Arena, count: number): Uint8Array {
  return arena.row(4, (chunk, start) => chunk.writeUInt32BE(count, start))
}

export function decodeCount(value: Uint8Array | undefined): number {
  if (value === undefined) return 0
  if (value.length < 4) throw new SluiceError('store_corrupt', 'a row of counts ends too early')
  return getWord(value, 0)
}

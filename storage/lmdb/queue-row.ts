/**
 * A row of the queue: URLs of one host that came in together, as the links of one page do. They share depth, priority,
 * referrer and chain, which are written once; the scheme and the host are left out of their addresses. Main thread.
 * Invariant: a URL keeps its sequence for as long as it is in the queue: that of the key, plus its offset.
 *
 *   key     ... first sequence                                                                          layout.ts
 *   head    depth (2) priority (1) attempts (1) flags (1)  [referrer] [count (1), texts of the chain]
 *   a URL   offset (1) fingerprint (16) form (1) length (2) bytes                   repeated to the end of the row
 *   flags   lowest bit first: referrer, chain, they had their outcome before, they are sitemaps
 *   form    0: the whole address; 1: what follows `http://HOST`; 2: what follows `https://HOST`
 *
 * URLs leave a row one by one: it is written again without them, and removed with its last.
 */
import { SluiceError, invariant } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { RowReader, asBuffer, putText, textRoom, type Arena } from './codec.ts'
import { isLaterRow, sequenceOf } from './layout.ts'

/** What the URLs of a row have in common. */
export interface RowHead {
  readonly depth: number
  readonly priority: number
  readonly attempts: number
  readonly referrer?: string
  readonly redirectedFrom?: readonly string[]
  readonly hasCookie?: true
  /** They had their outcome before: the page row tells which. */
  readonly isAgain: boolean
  readonly kind?: 'sitemap'
}

export interface RowUrl {
  readonly url: string
  readonly fingerprint: Uint8Array
}

/** URLs of a row at most: an offset is one byte. */
export const ROW_URLS_MAX = 256

const HEAD_BYTES = 5
const REFERRER = 1
const CHAIN = 2
const AGAIN = 4
const SITEMAP = 8
const COOKIE = 16
const FINGERPRINT_BYTES = 16
const URL_HEAD_BYTES = 1 + FINGERPRINT_BYTES + 3
const forms = ['', 'http://', 'https://'] as const

/** How an address is written for a host. */
function formOf(url: string, host: string): { readonly form: number; readonly from: number } {
  for (const form of [2, 1]) {
    const scheme = forms[form]!
    if (url.startsWith(scheme) && url.startsWith(host, scheme.length)) return { form, from: scheme.length + host.length }
  }
  return { form: 0, from: 0 }
}

/** Bytes that a URL adds to a row of its host. */
export function urlBytes(url: string, host: string): number {
  return URL_HEAD_BYTES + url.length - formOf(url, host).from
}

export function encodeQueueRow(arena: Arena, host: string, head: RowHead, urls: readonly RowUrl[]): Uint8Array {
  const { referrer, redirectedFrom: chain = [] } = head
  const room = HEAD_BYTES + textRoom(referrer) + 1 + chain.reduce((sum, hop) => sum + textRoom(hop), 0)
    + urls.reduce((sum, { url }) => sum + URL_HEAD_BYTES + url.length, 0)
  invariant(urls.length <= ROW_URLS_MAX, 'an offset fits into a byte')
  return arena.row(room, (chunk, start) => {
    chunk.writeUInt16BE(head.depth, start)
    chunk[start + 2] = head.priority
    chunk[start + 3] = Math.min(head.attempts, 0xff)
    chunk[start + 4] = (referrer === undefined ? 0 : REFERRER) | (chain.length === 0 ? 0 : CHAIN) | (head.isAgain ? AGAIN : 0) | (head.kind === undefined ? 0 : SITEMAP) | (head.hasCookie ? COOKIE : 0)
    let at = start + HEAD_BYTES
    if (referrer !== undefined) at = putText(chunk, at, referrer)
    if (chain.length > 0) chunk[at++] = chain.length
    for (const hop of chain) at = putText(chunk, at, hop)
    for (let offset = 0; offset < urls.length; offset += 1) at = putUrl(chunk, at, { ...urls[offset]!, host, offset })
    return at
  })
}

function putUrl(chunk: Buffer, at: number, { url, fingerprint, host, offset }: RowUrl & { readonly host: string; readonly offset: number }): number {
  const { form, from } = formOf(url, host)
  chunk[at] = offset
  chunk.set(fingerprint, at + 1)
  chunk[at + 17] = form
  chunk.writeUInt16BE(url.length - from, at + 18)
  // Addresses are ASCII (core/fetch-url.ts).
  return at + URL_HEAD_BYTES + chunk.write(url.slice(from), at + URL_HEAD_BYTES, 'latin1')
}

/** Where the URLs of a row begin. */
function urlsAt(value: Buffer): number {
  const flags = value[4]!
  let at = HEAD_BYTES
  if ((flags & REFERRER) !== 0) at += 2 + value.readUInt16BE(at)
  if ((flags & CHAIN) !== 0) {
    let hops = value[at++]!
    for (; hops > 0; hops -= 1) at += 2 + value.readUInt16BE(at)
  }
  return at
}

/** The URLs of a row as they lie in it. Throws `store_corrupt`. */
export class RowUrls {
  readonly #value: Buffer
  readonly headBytes: number
  readonly offsets: number[] = []
  readonly #starts: number[] = []

  constructor(value: Uint8Array) {
    this.#value = asBuffer(value)
    try {
      this.headBytes = urlsAt(this.#value)
      for (let at = this.headBytes; at < value.length;) {
        this.offsets.push(this.#value[at]!)
        this.#starts.push(at)
        at += URL_HEAD_BYTES + this.#value.readUInt16BE(at + 18)
        if (at > value.length) throw new RangeError('the last URL is cut')
      }
    } catch (error) {
      throw new SluiceError('store_corrupt', 'a row of the queue ends too early', { cause: error })
    }
  }

  get count(): number {
    return this.offsets.length
  }

  fingerprint(index: number): Uint8Array {
    const at = this.#starts[index]! + 1
    return this.#value.subarray(at, at + FINGERPRINT_BYTES)
  }

  url(index: number, host: string): string {
    const at = this.#starts[index]!
    const form = forms[this.#value[at + 17]!]
    if (form === undefined) throw new SluiceError('store_corrupt', 'a URL of the queue has an unknown form')
    const rest = this.#value.toString('latin1', at + URL_HEAD_BYTES, at + URL_HEAD_BYTES + this.#value.readUInt16BE(at + 18))
    return form === '' ? rest : form + host + rest
  }

  /** The row without the URLs of these offsets; undefined when none is left. */
  without(arena: Arena, gone: ReadonlySet<number>): Uint8Array | undefined {
    const kept = this.offsets.flatMap((offset, index) => (gone.has(offset) ? [] : [index]))
    if (kept.length === 0) return undefined
    return arena.row(this.#value.length, (chunk, start) => {
      let at = start + this.#value.copy(chunk, start, 0, this.headBytes)
      for (const index of kept) at += this.#value.copy(chunk, at, this.#starts[index], this.#starts[index + 1] ?? this.#value.length)
      return at
    })
  }
}

export function decodeHead(value: Uint8Array): RowHead {
  const reader = new RowReader(value)
  const [depth, priority, attempts, flags] = [reader.u16(), reader.u8(), reader.u8(), reader.u8()]
  const referrer = (flags & REFERRER) === 0 ? undefined : reader.text()
  const redirectedFrom = (flags & CHAIN) === 0 ? undefined : Array.from({ length: reader.u8() }, () => reader.text())
  return {
    depth, priority, attempts, isAgain: (flags & AGAIN) !== 0,
    ...(referrer !== undefined && { referrer }), ...(redirectedFrom && { redirectedFrom }),
    ...((flags & SITEMAP) !== 0 && { kind: 'sitemap' }), ...((flags & COOKIE) !== 0 && { hasCookie: true }),
  }
}

/** A queued URL, and whether its page row holds an earlier fetch. */
export interface DecodedUrl {
  readonly url: QueuedUrl
  readonly isAgain: boolean
}

/** The URLs of a row, at most `limit` of those that `wants` takes. `row` is the key, `value` what lies there. */
export function decodeQueueRow(row: Uint8Array, value: Uint8Array, host: string, { limit, wants }: RowFilter = everyUrl): DecodedUrl[] {
  const { isAgain, attempts, ...shared } = decodeHead(value)
  const urls = new RowUrls(value)
  const first = sequenceOf(row)
  const isLater = isLaterRow(row)
  const decoded: DecodedUrl[] = []
  for (let index = 0; index < urls.count && decoded.length < limit; index += 1) {
    const sequence = first + urls.offsets[index]!
    if (!wants(sequence)) continue
    const fingerprint = new Uint8Array(urls.fingerprint(index))
    decoded.push({ url: { row, host, sequence, fingerprint, url: urls.url(index, host), attempts, ...shared, ...(isLater && { isLater }) }, isAgain })
  }
  return decoded
}

export interface RowFilter {
  readonly limit: number
  readonly wants: (sequence: number) => boolean
}

const everyUrl: RowFilter = { limit: ROW_URLS_MAX, wants: () => true }

/** Whether a URL has no place in a row that holds so many bytes: rows are small, since they are written again for each URL that leaves. */
export function isRowFull(bytes: number, urls: number): boolean {
  return urls >= ROW_URLS_MAX || bytes >= limits.queueRowBytesMax
}

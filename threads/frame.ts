/**
 * ParsedResult as bytes, and back. Encoded in a worker, decoded on the main thread; touches nothing else. The decoder
 * copies the frame once, out of the slot, and makes strings of links only when asked. Invariant: whatever bytes come
 * in, nothing outside them is read; a damaged frame is a value with a reason.
 *
 *   0      4       5     6       8       12      16     20        24        28         36          52        60      64           84
 *   +------+-------+-----+-------+-------+-------+------+---------+---------+----------+-----------+---------+-------+------------+--------------+
 *   | SLF1 |outcome|flags| code  | body  | links | line | WARC    | WARC    | WARC     | content   | SimHash | known | payload    | refused, a   |
 *   |      |       |     | bytes | bytes |       | bytes| file    | length  | offset   | hash (16) | (8)     | links | SHA-1 (20) | u32 a reason |
 *   +------+-------+-----+-------+-------+-------+------+---------+---------+----------+-----------+---------+-------+------------+--------------+
 *   behind the reasons: code | line | links
 *   a link: fingerprint (16) | host hash (8) | flags (1) | URL bytes (2) | URL, which is ASCII (core/fetch-url.ts)
 */
import { refusalReasons, type LinkList, type ParsedResult, type RefusalReason, type WarcPlace } from '../engine/core/types.ts'

const MAGIC = 0x31464c53
const SIMHASH_AT = 52
const KNOWN_AT = 60
const DIGEST_AT = 64
const REFUSED_AT = 84
const HEAD_BYTES = REFUSED_AT + 4 * refusalReasons.length
const LINK_HEAD_BYTES = 27
const outcomes = ['ok', 'redirect', 'http_error', 'failed', 'not_modified'] as const
const FLAG_CODE = 1
const FLAG_HASH = 2
const FLAG_WARC = 4
const FLAG_SIMHASH = 8
const FLAG_DIGEST = 16
const LINK_REDIRECT = 1

export type DecodedFrame =
  | { readonly ok: true; readonly result: ParsedResult }
  | { readonly ok: false; readonly damage: string }

/** Bytes that `encodeFrame` writes. */
export function frameBytes(result: ParsedResult): number {
  let bytes = HEAD_BYTES + Buffer.byteLength(result.code ?? '') + result.line.byteLength
  for (let index = 0; index < result.links.count; index += 1) bytes += LINK_HEAD_BYTES + result.links.url(index).length
  return bytes
}

function flagsOf({ code, contentHash, simhash, warc }: ParsedResult): number {
  return (code === undefined ? 0 : FLAG_CODE) | (contentHash === undefined ? 0 : FLAG_HASH)
    | (warc === undefined ? 0 : FLAG_WARC) | (simhash === undefined ? 0 : FLAG_SIMHASH)
    | (warc?.payloadDigest === undefined ? 0 : FLAG_DIGEST)
}

/** Writes a result into `target`, which has at least `frameBytes(result)` bytes. Answers the bytes written. */
export function encodeFrame(result: ParsedResult, target: Uint8Array): number {
  const out = Buffer.from(target.buffer, target.byteOffset, target.byteLength)
  const { code, contentHash, links, simhash, warc } = result
  out.writeUInt32LE(MAGIC, 0)
  out.writeUInt8(outcomes.indexOf(result.outcome), 4)
  out.writeUInt8(flagsOf(result), 5)
  out.writeUInt32LE(result.bodyBytes, 8)
  out.writeUInt32LE(links.count, 12)
  out.writeUInt32LE(result.line.byteLength, 16)
  out.writeUInt32LE(warc?.file ?? 0, 20)
  out.writeUInt32LE(warc?.length ?? 0, 24)
  out.writeDoubleLE(warc?.offset ?? 0, 28)
  if (contentHash === undefined) out.fill(0, 36, 52)
  else out.set(contentHash, 36)
  if (simhash === undefined) out.fill(0, SIMHASH_AT, KNOWN_AT)
  else out.set(simhash, SIMHASH_AT)
  out.writeUInt32LE(result.linksKnown, KNOWN_AT)
  if (warc?.payloadDigest === undefined) out.fill(0, DIGEST_AT, REFUSED_AT)
  else out.set(warc.payloadDigest, DIGEST_AT)
  refusalReasons.forEach((reason, index) => out.writeUInt32LE(result.refused[reason], REFUSED_AT + 4 * index))
  const codeBytes = out.write(code ?? '', HEAD_BYTES)
  out.writeUInt16LE(codeBytes, 6)
  let at = HEAD_BYTES + codeBytes
  out.set(result.line, at)
  at += result.line.byteLength
  for (let index = 0; index < links.count; index += 1) {
    at = writeLink(links, index, out, at)
  }
  return at
}

/** Answers where the next link begins. The hashes by loops: for so few bytes a call costs more than the copying. */
function writeLink(links: LinkList, index: number, out: Buffer, at: number): number {
  const fingerprint = links.fingerprint(index)
  const hostHash = links.hostHash(index)
  const url = links.url(index)
  for (let byte = 0; byte < 16; byte += 1) out[at + byte] = fingerprint[byte]!
  for (let byte = 0; byte < 8; byte += 1) out[at + 16 + byte] = hostHash[byte]!
  out[at + 24] = links.isRedirect(index) ? LINK_REDIRECT : 0
  out[at + 25] = url.length & 0xff
  out[at + 26] = url.length >>> 8
  const urlAt = at + LINK_HEAD_BYTES
  out.write(url, urlAt, url.length, 'latin1')
  return urlAt + url.length
}

/** Outlinks over the bytes of a frame whose bounds were checked. */
class FrameLinks implements LinkList {
  readonly #bytes: Buffer
  readonly #starts: Uint32Array

  constructor(bytes: Buffer, starts: Uint32Array) {
    this.#bytes = bytes
    this.#starts = starts
  }

  get count(): number {
    return this.#starts.length
  }

  #at(index: number): number {
    const at = this.#starts[index]
    if (at === undefined) throw new RangeError(`link ${index} of ${this.count}`)
    return at
  }

  fingerprint(index: number): Uint8Array {
    const at = this.#at(index)
    return this.#bytes.subarray(at, at + 16)
  }

  hostHash(index: number): Uint8Array {
    const at = this.#at(index)
    return this.#bytes.subarray(at + 16, at + 24)
  }

  url(index: number): string {
    const at = this.#at(index)
    const start = at + LINK_HEAD_BYTES
    return this.#bytes.toString('latin1', start, start + this.#bytes.readUInt16LE(at + 25))
  }

  isRedirect(index: number): boolean {
    return (this.#bytes[this.#at(index) + 24]! & LINK_REDIRECT) !== 0
  }
}

/** Where each link starts, or undefined when they do not end exactly where the frame does. */
function linkStarts(bytes: Buffer, first: number, count: number): Uint32Array | undefined {
  if (count > (bytes.length - first) / LINK_HEAD_BYTES) return undefined
  const starts = new Uint32Array(count)
  let at = first
  for (let index = 0; index < count; index += 1) {
    if (at + LINK_HEAD_BYTES > bytes.length) return undefined
    starts[index] = at
    at += LINK_HEAD_BYTES + bytes.readUInt16LE(at + 25)
  }
  return at === bytes.length ? starts : undefined
}

/** Reads a frame; the bytes are copied, so the slot may be released at once. */
export function decodeFrame(source: Uint8Array): DecodedFrame {
  if (source.byteLength < HEAD_BYTES) return { ok: false, damage: 'shorter than its head' }
  const bytes = Buffer.allocUnsafeSlow(source.byteLength)
  bytes.set(source)
  if (bytes.readUInt32LE(0) !== MAGIC) return { ok: false, damage: 'not a frame' }
  const outcome = outcomes[bytes[4]!]
  if (outcome === undefined) return { ok: false, damage: 'unknown outcome' }
  const flags = bytes[5]!
  const lineAt = HEAD_BYTES + bytes.readUInt16LE(6)
  const linksAt = lineAt + bytes.readUInt32LE(16)
  if (linksAt > bytes.length) return { ok: false, damage: 'record line beyond the end' }
  const starts = linkStarts(bytes, linksAt, bytes.readUInt32LE(12))
  if (starts === undefined) return { ok: false, damage: 'links beyond the end' }
  const refused = Object.fromEntries(refusalReasons.map((reason, index) => [reason, bytes.readUInt32LE(REFUSED_AT + 4 * index)]))
  const result: ParsedResult = {
    outcome,
    bodyBytes: bytes.readUInt32LE(8),
    links: new FrameLinks(bytes, starts),
    linksKnown: bytes.readUInt32LE(KNOWN_AT),
    refused: refused as Record<RefusalReason, number>,
    line: bytes.subarray(lineAt, linksAt),
    ...((flags & FLAG_CODE) === 0 ? {} : { code: bytes.toString('utf8', HEAD_BYTES, lineAt) }),
    ...((flags & FLAG_HASH) === 0 ? {} : { contentHash: bytes.subarray(36, 52) }),
    ...((flags & FLAG_SIMHASH) === 0 ? {} : { simhash: bytes.subarray(SIMHASH_AT, KNOWN_AT) }),
    ...((flags & FLAG_WARC) === 0 ? {} : { warc: placeIn(bytes, (flags & FLAG_DIGEST) !== 0) }),
  }
  return { ok: true, result }
}

function placeIn(bytes: Buffer, hasDigest: boolean): WarcPlace {
  const place = { file: bytes.readUInt32LE(20), length: bytes.readUInt32LE(24), offset: bytes.readDoubleLE(28) }
  return hasDigest ? { ...place, payloadDigest: bytes.subarray(DIGEST_AT, REFUSED_AT) } : place
}

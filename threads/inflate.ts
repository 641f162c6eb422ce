/**
 * Content codings undone, into one buffer that is reused for every page. Runs in a parse worker. Invariant: memory is
 * bounded before a byte is inflated: the target has `bytesMax` + 1 bytes (the last one tells "exactly full" from
 * "more"), zlib keeps a window (32 KB; brotli 16 MB; zstd 8 MB, RFC 9659), and nothing grows.
 *
 * zlib's public synchronous calls either grow or, with maxOutputLength, throw and give nothing; its streams cost 0.5 ms
 * a page. So this module, alone, drives zlib's own synchronous handle, which writes where it is told and says how far
 * it came. Both facts are internal to Node (checked by a trial at start, and by the tests on Node 20 and 24); where the
 * trial fails, public streams do the same at their own pace.
 *
 * gzip is read here down to its members, so that what follows the last member (padding, junk) is ignored as browsers
 * ignore it, and, like Chrome, the checksum is not compared. Nested codings need a second buffer, made when first met.
 */
import * as zlib from 'node:zlib'

export type Inflated =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly truncated: boolean }
  | { readonly ok: false; readonly code: 'bad_content_encoding' }

interface ZlibHandle {
  onerror: (message: string, errno: number, code: string) => void
  reset(): void
  writeSync(flush: number, input: Uint8Array, inputAt: number, inputBytes: number, output: Uint8Array, outputAt: number, outputBytes: number): void
}

/** What one step of a decoder did. */
interface Step {
  readonly read: number
  readonly written: number
  readonly broken: boolean
}

const NODE_HAS_ZSTD = 'createZstdDecompress' in zlib
/** RFC 9659: a zstd window of at most 8 MB on the web. */
const ZSTD_WINDOW_LOG_MAX = 23
const CODINGS_MAX = 2
type Coding = 'gzip' | 'deflate' | 'br' | 'zstd'

/** A zlib object driven by hand: `push` inflates once, `ended` asks whether the stream was complete. */
class Decoder {
  readonly #handle: ZlibHandle
  readonly #state: Uint32Array
  readonly #flush: number
  readonly #finish: number
  #broken = false

  constructor(stream: unknown, flush: number, finish: number) {
    const { _handle: handle, _writeState: state } = stream as { _handle?: ZlibHandle; _writeState?: Uint32Array }
    if (typeof handle?.writeSync !== 'function' || state?.length !== 2) throw new TypeError('zlib has no synchronous handle')
    this.#handle = handle
    this.#state = state
    this.#flush = flush
    this.#finish = finish
    // No event target: zlib's native object calls this property.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    handle.onerror = () => { this.#broken = true }
  }

  reset(): void {
    this.#broken = false
    this.#handle.reset()
  }

  push(input: Uint8Array, output: Uint8Array, outputAt: number): Step {
    const room = output.byteLength - outputAt
    this.#handle.writeSync(this.#flush, input, 0, input.byteLength, output, outputAt, room)
    if (this.#broken) return { read: 0, written: 0, broken: true }
    return { read: input.byteLength - this.#state[1]!, written: room - this.#state[0]!, broken: false }
  }

  /** With no input left and room to write, zlib complains about a stream that has not ended. */
  ended(output: Uint8Array): boolean {
    this.#handle.writeSync(this.#finish, output, 0, 0, output, output.byteLength - 1, 1)
    return !this.#broken
  }
}

function createZstd(): unknown {
  const { createZstdDecompress: create, constants } = zlib as unknown as {
    createZstdDecompress: (options: object) => unknown
    constants: Record<string, number>
  }
  return create({ params: { [constants['ZSTD_d_windowLogMax']!]: ZSTD_WINDOW_LOG_MAX } })
}

function makeDecoder(coding: Coding): Decoder {
  switch (coding) {
    case 'br': return new Decoder(zlib.createBrotliDecompress(), zlib.constants.BROTLI_OPERATION_PROCESS, zlib.constants.BROTLI_OPERATION_FINISH)
    case 'zstd': return new Decoder(createZstd(), 0, 2)
    default: return new Decoder(zlib.createInflateRaw(), zlib.constants.Z_SYNC_FLUSH, zlib.constants.Z_FINISH)
  }
}

function handleWorks(): boolean {
  try {
    const output = new Uint8Array(8)
    return makeDecoder('deflate').push(zlib.deflateRawSync('sluice'), output, 0).written === 6
  } catch {
    return false
  }
}

/** Length of the gzip header (RFC 1952 section 2.3) at the start of `bytes`; 0: none, -1: it goes on beyond the end. */
export function gzipHeaderBytes(bytes: Uint8Array): number {
  if (bytes.byteLength < 10) return bytes[0] === 0x1f && (bytes[1] ?? 0x8b) === 0x8b ? -1 : 0
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b || bytes[2] !== 8) return 0
  const flags = bytes[3]!
  let at = 10
  if ((flags & 4) !== 0) at += 2 + (bytes[at] ?? 0) + 256 * (bytes[at + 1] ?? 0)
  for (const text of [8, 16]) {
    if ((flags & text) === 0) continue
    const end = bytes.indexOf(0, at)
    if (end === -1) return -1
    at = end + 1
  }
  if ((flags & 2) !== 0) at += 2
  return at > bytes.byteLength ? -1 : at
}

/** `deflate` on the web is the zlib format (RFC 1950), but some servers send the bare stream. */
function zlibHeaderBytes(bytes: Uint8Array): number {
  const [cmf = 0, flags = 0] = bytes
  return (cmf & 15) === 8 && (cmf * 256 + flags) % 31 === 0 ? 2 : 0
}

/** The codings to undo, outermost first; undefined when there is one that cannot be undone. */
function codingsOf(header: string | undefined): readonly Coding[] | undefined {
  const codings: Coding[] = []
  for (const token of (header ?? '').toLowerCase().split(',').map((part) => part.trim())) {
    if (token === 'gzip' || token === 'x-gzip') codings.unshift('gzip')
    else if (token === 'deflate' || token === 'br') codings.unshift(token)
    else if (token === 'zstd' && NODE_HAS_ZSTD) codings.unshift('zstd')
    else if (token === 'zstd' || token === 'compress' || token === 'x-compress') return undefined
    // Anything else (identity, none, a charset by mistake) is no coding: the Fetch standard takes the bytes as they are.
  }
  return codings.length > CODINGS_MAX ? undefined : codings
}

export class Inflater {
  readonly #bytesMax: number
  readonly #buffers: [Uint8Array, Uint8Array | undefined]
  readonly #decoders = new Map<Coding, Decoder>()
  readonly #streams: boolean

  /** `streams`: use the public fallback; a test sets it. */
  constructor(bytesMax: number, streams = !handleWorks()) {
    this.#bytesMax = bytesMax
    this.#buffers = [new Uint8Array(bytesMax + 1), undefined]
    this.#streams = streams
  }

  /**
   * The first `bytesMax` decoded bytes, valid until the next call. `cut`: the body was cut on the wire, so that a
   * stream without an end is no fault. A promise only where Node has no synchronous handle.
   */
  inflate(body: Uint8Array, contentEncoding: string | undefined, cut: boolean): Inflated | Promise<Inflated> {
    const codings = codingsOf(contentEncoding)
    if (codings === undefined) return { ok: false, code: 'bad_content_encoding' }
    if (codings.length === 0 || body.byteLength === 0) {
      return { ok: true, bytes: body.subarray(0, this.#bytesMax), truncated: cut || body.byteLength > this.#bytesMax }
    }
    if (this.#streams) return this.#inflateByStreams(body, codings, cut)
    let input = body
    let truncated = cut
    for (const [index, coding] of codings.entries()) {
      const output = this.#buffer(codings.length - 1 - index)
      const written = coding === 'gzip' ? this.#gunzip(input, output, truncated) : this.#undo(coding, input, output, truncated)
      if (written === undefined) return { ok: false, code: 'bad_content_encoding' }
      truncated ||= written > this.#bytesMax
      input = output.subarray(0, Math.min(written, this.#bytesMax))
    }
    return { ok: true, bytes: input, truncated }
  }

  #buffer(index: number): Uint8Array {
    return (this.#buffers[index] ??= new Uint8Array(this.#bytesMax + 1))
  }

  #decoder(coding: Coding): Decoder {
    let decoder = this.#decoders.get(coding)
    if (decoder === undefined) this.#decoders.set(coding, decoder = makeDecoder(coding))
    decoder.reset()
    return decoder
  }

  /** Bytes written, or undefined when the stream is broken, or ends too early and was not cut. */
  #undo(coding: Coding, input: Uint8Array, output: Uint8Array, cut: boolean): number | undefined {
    const decoder = this.#decoder(coding)
    const from = coding === 'deflate' ? zlibHeaderBytes(input) : 0
    const { written, broken } = decoder.push(input.subarray(from), output, 0)
    if (broken) return undefined
    return cut || written === output.byteLength || decoder.ended(output) ? written : undefined
  }

  #gunzip(input: Uint8Array, output: Uint8Array, cut: boolean): number | undefined {
    let at = 0
    let written = 0
    while (written < output.byteLength) {
      const headerBytes = gzipHeaderBytes(input.subarray(at))
      // After the first member, what is no member is padding or junk.
      if (headerBytes <= 0) return at > 0 || (headerBytes === -1 && cut) ? written : undefined
      const decoder = this.#decoder('gzip')
      const step = decoder.push(input.subarray(at + headerBytes), output, written)
      if (step.broken) return undefined
      written += step.written
      if (written === output.byteLength) return written
      if (!decoder.ended(output)) return cut ? written : undefined
      at += headerBytes + step.read + 8
      if (at >= input.byteLength) return written
    }
    return written
  }

  async #inflateByStreams(body: Uint8Array, codings: readonly Coding[], cut: boolean): Promise<Inflated> {
    let input = body
    let truncated = cut
    for (const [index, coding] of codings.entries()) {
      const output = this.#buffer(codings.length - 1 - index)
      const written = await inflateByStream(coding, input, output, truncated)
      if (written === undefined) return { ok: false, code: 'bad_content_encoding' }
      truncated ||= written > this.#bytesMax
      input = output.subarray(0, Math.min(written, this.#bytesMax))
    }
    return { ok: true, bytes: input, truncated }
  }
}

function publicStream(coding: Coding, input: Uint8Array): zlib.Gunzip | zlib.BrotliDecompress {
  if (coding === 'gzip') return zlib.createGunzip()
  if (coding === 'br') return zlib.createBrotliDecompress()
  if (coding === 'zstd') return createZstd() as zlib.Gunzip
  return zlibHeaderBytes(input) === 0 ? zlib.createInflateRaw() : zlib.createInflate()
}

async function inflateByStream(coding: Coding, input: Uint8Array, output: Uint8Array, cut: boolean): Promise<number | undefined> {
  const stream = publicStream(coding, input)
  let written = 0
  try {
    stream.end(input)
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      const part = chunk.subarray(0, output.byteLength - written)
      output.set(part, written)
      written += part.byteLength
      if (written === output.byteLength) break
    }
    return written
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string }
    const junkBehind = coding === 'gzip' && written > 0 && message === 'incorrect header check'
    return junkBehind || (cut && code === 'Z_BUF_ERROR') ? written : undefined
  } finally {
    stream.destroy()
  }
}

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
 * ignore it. The checksum of each member that was inflated whole is compared: most bytes changed in the middle of a
 * stream leave it readable, and a record would call it ok. It costs 0.06 ms for 250 KB, beside 0.3 ms for inflating. A
 * trailer that is missing or cut is no fault, as to browsers. Nested codings need a second buffer, made when first met.
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

/** What a decoder did with an input. `more`: the stream has not ended, for lack of input or of room. */
interface Step {
  readonly read: number
  readonly written: number
  readonly state: 'ended' | 'more' | 'broken'
}

interface Decoder {
  push(input: Uint8Array, output: Uint8Array, outputAt: number): Step | Promise<Step>
}

const NODE_HAS_ZSTD = 'createZstdDecompress' in zlib
/** RFC 9659: a zstd window of at most 8 MB on the web. */
const ZSTD_WINDOW_LOG_MAX = 23
const CODINGS_MAX = 2
/** Each has its cost, however little it holds: 12,000 empty ones in 240 KB took 30 ms, a page of as many bytes 0.2. Block-wise gzip has 16 in a megabyte. */
const GZIP_MEMBERS_MAX = 1_000
/** Checksum and length behind each member. */
const GZIP_TRAILER_BYTES = 8
export type Coding = 'gzip' | 'deflate' | 'br' | 'zstd'
/** More room than any output has. */
const UNTOUCHED = 0xffffffff
type DecoderStream = zlib.InflateRaw | zlib.BrotliDecompress

interface OpenHandle {
  readonly stream: DecoderStream
  readonly handle: ZlibHandle
  readonly state: Uint32Array
}

/** A zlib object driven by hand; used again for every page, up to one that is broken. */
class HandleDecoder implements Decoder {
  readonly #make: () => DecoderStream
  readonly #flush: number
  readonly #finish: number
  #open: OpenHandle

  constructor(make: () => DecoderStream, flush: number, finish: number) {
    this.#make = make
    this.#flush = flush
    this.#finish = finish
    this.#open = this.#renewed()
  }

  push(input: Uint8Array, output: Uint8Array, outputAt: number): Step {
    const room = output.byteLength - outputAt
    const { stream, handle, state } = this.#open
    handle.reset()
    if (!this.#write(() => handle.writeSync(this.#flush, input, 0, input.byteLength, output, outputAt, room))) {
      // Brotli's handle keeps its error through a reset, and would call every later page broken (Node 20).
      stream.destroy()
      this.#open = this.#renewed()
      return { read: 0, written: 0, state: 'broken' }
    }
    const [roomLeft = 0, inputLeft = 0] = state
    const step = { read: input.byteLength - inputLeft, written: room - roomLeft }
    if (roomLeft === 0) return { ...step, state: 'more' }
    // Asked to finish, with no input left and room to write, zlib complains about a stream that has not ended.
    const isWhole = this.#write(() => handle.writeSync(this.#finish, output, 0, 0, output, output.byteLength - 1, 1))
    return { ...step, state: isWhole ? 'ended' : 'more' }
  }

  /**
   * Whether a write found no fault: then zlib says how far it came, and else leaves its state as it was. Its call of
   * `onerror` says so too, but not in a worker that is ending: there a broken page was taken for the page before it.
   */
  #write(write: () => void): boolean {
    const { state } = this.#open
    state[0] = UNTOUCHED
    write()
    return state[0] !== UNTOUCHED
  }

  #renewed(): OpenHandle {
    const stream = this.#make()
    const { _handle: handle, _writeState: state } = stream as unknown as { _handle?: ZlibHandle; _writeState?: Uint32Array }
    if (typeof handle?.writeSync !== 'function' || state?.length !== 2) throw new TypeError('zlib has no synchronous handle')
    // No event target: zlib's native object calls this property.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    handle.onerror = () => {}
    return { stream, handle, state }
  }
}

/** The same by a public stream, made for each use. */
class StreamDecoder implements Decoder {
  readonly #open: () => DecoderStream

  constructor(open: () => DecoderStream) {
    this.#open = open
  }

  async push(input: Uint8Array, output: Uint8Array, outputAt: number): Promise<Step> {
    const stream = this.#open()
    let written = 0
    try {
      stream.end(input)
      for await (const chunk of stream as AsyncIterable<Uint8Array>) {
        const part = chunk.subarray(0, output.byteLength - outputAt - written)
        output.set(part, outputAt + written)
        written += part.byteLength
        if (outputAt + written === output.byteLength) return { read: stream.bytesWritten, written, state: 'more' }
      }
      return { read: stream.bytesWritten, written, state: 'ended' }
    } catch (error) {
      return { read: input.byteLength, written, state: (error as { code?: string }).code === 'Z_BUF_ERROR' ? 'more' : 'broken' }
    } finally {
      stream.destroy()
    }
  }
}

/** Only where Node has it, as `codingsOf` knows. */
export function createZstd(options: zlib.ZlibOptions = {}): zlib.BrotliDecompress {
  const { createZstdDecompress: create, constants } = zlib as unknown as {
    createZstdDecompress: (options: object) => zlib.BrotliDecompress
    constants: Record<string, number>
  }
  return create({ ...options, params: { [constants['ZSTD_d_windowLogMax']!]: ZSTD_WINDOW_LOG_MAX } })
}

function makeDecoder(coding: Coding, byStreams: boolean): Decoder {
  if (byStreams) return new StreamDecoder(coding === 'br' ? zlib.createBrotliDecompress : coding === 'zstd' ? () => createZstd() : zlib.createInflateRaw)
  switch (coding) {
    case 'br': return new HandleDecoder(zlib.createBrotliDecompress, zlib.constants.BROTLI_OPERATION_PROCESS, zlib.constants.BROTLI_OPERATION_FINISH)
    // ZSTD_e_continue and ZSTD_e_end, by their values: the typings of Node 20 have no names for them.
    case 'zstd': return new HandleDecoder(() => createZstd(), 0, 2)
    default: return new HandleDecoder(zlib.createInflateRaw, zlib.constants.Z_SYNC_FLUSH, zlib.constants.Z_FINISH)
  }
}

function handleWorks(): boolean {
  try {
    const output = new Uint8Array(8)
    const { written, state } = makeDecoder('deflate', false).push(zlib.deflateRawSync('sluice'), output, 0) as Step
    return written === 6 && state === 'ended'
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

/** Whether checksum and length behind a gzip member (RFC 1952 section 2.3.1) are those of its bytes. */
function trailerFits(trailer: Uint8Array, bytes: Uint8Array): boolean {
  if (trailer.byteLength < GZIP_TRAILER_BYTES) return true
  const view = new DataView(trailer.buffer, trailer.byteOffset, GZIP_TRAILER_BYTES)
  return view.getUint32(4, true) === bytes.byteLength && view.getUint32(0, true) === zlib.crc32(bytes)
}

/** `deflate` on the web is the zlib format (RFC 1950), but some servers send the bare stream. */
export function zlibHeaderBytes(bytes: Uint8Array): number {
  const [cmf = 0, flags = 0] = bytes
  return (cmf & 15) === 8 && (cmf * 256 + flags) % 31 === 0 ? 2 : 0
}

/** The codings to undo, outermost first; undefined when there is one that cannot be undone. */
export function codingsOf(header: string | undefined): readonly Coding[] | undefined {
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
  /** Found out at the first coded page: a thread that is ended while it makes a zlib object ends its process (Node 20). */
  #byStreams: boolean | undefined

  /** `byStreams`: use the public streams; a test sets it. */
  constructor(bytesMax: number, byStreams?: boolean) {
    this.#bytesMax = bytesMax
    this.#buffers = [new Uint8Array(bytesMax + 1), undefined]
    this.#byStreams = byStreams
  }

  /**
   * The first `bytesMax` decoded bytes, valid until the next call. `cut`: the body was cut on the wire, so that a
   * stream without an end is no fault.
   */
  async inflate(body: Uint8Array, contentEncoding: string | undefined, cut: boolean): Promise<Inflated> {
    const codings = codingsOf(contentEncoding)
    if (codings === undefined) return { ok: false, code: 'bad_content_encoding' }
    if (codings.length === 0 || body.byteLength === 0) {
      return { ok: true, bytes: body.subarray(0, this.#bytesMax), truncated: cut || body.byteLength > this.#bytesMax }
    }
    let bytes = body
    let truncated = cut
    for (const [index, coding] of codings.entries()) {
      const output = (this.#buffers[codings.length - 1 - index] ??= new Uint8Array(this.#bytesMax + 1))
      const written = await (coding === 'gzip' ? this.#gunzip(bytes, output, truncated) : this.#undo(coding, bytes, output, truncated))
      if (written === undefined) return { ok: false, code: 'bad_content_encoding' }
      truncated ||= written > this.#bytesMax
      bytes = output.subarray(0, Math.min(written, this.#bytesMax))
    }
    return { ok: true, bytes, truncated }
  }

  #decoder(coding: Coding): Decoder {
    let decoder = this.#decoders.get(coding)
    if (decoder !== undefined) return decoder
    this.#byStreams ??= !handleWorks()
    decoder = makeDecoder(coding, this.#byStreams)
    this.#decoders.set(coding, decoder)
    return decoder
  }

  /** Bytes written, or undefined when the stream is broken, or ends too early and was not cut. */
  async #undo(coding: Coding, input: Uint8Array, output: Uint8Array, cut: boolean): Promise<number | undefined> {
    const from = coding === 'deflate' ? zlibHeaderBytes(input) : 0
    const { written, state } = await this.#decoder(coding).push(input.subarray(from), output, 0)
    const isWhole = state === 'ended' || (state === 'more' && (cut || written === output.byteLength))
    return isWhole ? written : undefined
  }

  async #gunzip(input: Uint8Array, output: Uint8Array, cut: boolean): Promise<number | undefined> {
    let at = 0
    let written = 0
    for (let members = 0; at < input.byteLength; members++) {
      if (members === GZIP_MEMBERS_MAX) return undefined
      const headerBytes = gzipHeaderBytes(input.subarray(at))
      // After the first member, what is no member is padding or junk.
      if (headerBytes <= 0) return at > 0 || (headerBytes === -1 && cut) ? written : undefined
      const step = await this.#decoder('gzip').push(input.subarray(at + headerBytes), output, written)
      written += step.written
      if (step.state === 'broken') return undefined
      if (step.state === 'more') return cut || written === output.byteLength ? written : undefined
      at += headerBytes + step.read + GZIP_TRAILER_BYTES
      const trailer = input.subarray(at - GZIP_TRAILER_BYTES, at)
      if (!trailerFits(trailer, output.subarray(written - step.written, written))) return undefined
    }
    return written
  }
}

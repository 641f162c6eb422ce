/**
 * A sitemap's content codings undone, in pieces, while it comes. Beside its Content-Encoding a file may be gzip itself
 * (`sitemap.xml.gz`, under whatever content type): its first two bytes tell. Both at once are undone one after the other.
 *
 * Invariant: however much a chunk unpacks to, a coding makes no more of it than `PIECE_BYTES` ahead of whoever reads, and
 * zlib keeps its window (32 KB; brotli 16 MB; zstd 8 MB). Node's public streams do it, with their back-pressure: this runs
 * in a thread of its own, which may wait, and what a stream costs (0.5 ms, see inflate.ts) is paid once a file.
 */
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { codingsOf, createZstd, zlibHeaderBytes, type Coding } from '../inflate.ts'

const PIECE_BYTES = 64 * 1024
/** A gzip member and a zlib stream are told by so many. */
const MAGIC_BYTES = 2

/** `file`: gzip if it begins so, and else nothing. */
type Layer = Coding | 'file'

function isGzip(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b
}

/** Undefined: the bytes are taken as they are. */
function makeStream(layer: Layer, head: Uint8Array): Transform | undefined {
  const options = { chunkSize: PIECE_BYTES, readableHighWaterMark: PIECE_BYTES }
  switch (layer) {
    case 'file': return isGzip(head) ? zlib.createGunzip(options) : undefined
    case 'gzip': return zlib.createGunzip(options)
    case 'deflate': return zlibHeaderBytes(head) > 0 ? zlib.createInflate(options) : zlib.createInflateRaw(options)
    case 'br': return zlib.createBrotliDecompress(options)
    case 'zstd': return createZstd(options)
  }
}

/** One coding. What is written must be read to its end before the next write. */
class Decoder {
  readonly #layer: Layer
  /** The first bytes, until they tell what they are. */
  #head: Uint8Array | undefined = new Uint8Array(0)
  #stream: Transform | undefined
  /** Bytes that pass as they are. */
  #plain: Uint8Array | undefined
  /** The stream has not taken all of the last write. */
  #isBusy = false
  #isOver = false
  #wake: () => void = () => {}
  isEnded = false
  fault: string | undefined

  constructor(layer: Layer) {
    this.#layer = layer
  }

  write(bytes: Uint8Array): void {
    const all = this.#head === undefined || this.#head.byteLength === 0 ? bytes : Buffer.concat([this.#head, bytes])
    if (this.#head !== undefined && all.byteLength < MAGIC_BYTES && !this.isEnded) {
      this.#head = all
      return
    }
    if (this.#head !== undefined) this.#begin(all)
    if (this.#stream === undefined) this.#plain = all
    else if (!this.#isOver) this.#give(this.#stream, all)
  }

  end(): void {
    this.isEnded = true
    if (this.#head !== undefined && this.#head.byteLength > 0) this.write(new Uint8Array(0))
    if (this.#stream === undefined || this.#isOver) return
    this.#isBusy = true
    this.#stream.end()
  }

  /** The next bytes of what was written; undefined when that is all. */
  async read(): Promise<Uint8Array | undefined> {
    const plain = this.#plain
    this.#plain = undefined
    if (this.#stream === undefined) return plain !== undefined && plain.byteLength > 0 ? plain : undefined
    for (;;) {
      const bytes = this.#stream.read() as Uint8Array | null
      if (bytes !== null) return bytes
      if (!this.#isBusy || this.#isOver) return undefined
      await new Promise<void>((resolve) => { this.#wake = resolve })
    }
  }

  destroy(): void {
    this.#isOver = true
    this.#stream?.destroy()
  }

  #begin(head: Uint8Array): void {
    this.#head = undefined
    const stream = makeStream(this.#layer, head)
    if (stream === undefined) return
    this.#stream = stream
    const over = (): void => {
      this.#isOver = true
      this.#wake()
    }
    stream.on('readable', () => this.#wake())
    stream.on('error', (error: Error & { code?: string }) => {
      // A body that ends too early was cut; that is told by what it holds.
      if (error.code !== 'Z_BUF_ERROR') this.fault = `broken ${this.#layer === 'file' ? 'gzip' : this.#layer}: ${error.message}`
      else this.fault = 'the packed data ends too early'
      over()
    })
    // After its last member a gzip stream is over, whatever follows.
    stream.on('end', over)
    stream.on('close', over)
  }

  #give(stream: Transform, bytes: Uint8Array): void {
    this.#isBusy = true
    stream.write(bytes, () => {
      if (!this.isEnded) this.#isBusy = false
      this.#wake()
    })
  }
}

export class Unpacker {
  readonly #decoders: readonly Decoder[]
  readonly #fault: string | undefined
  #left: Uint8Array | undefined
  #isEnding = false

  constructor(contentEncoding: string | undefined) {
    const codings = codingsOf(contentEncoding)
    if (codings === undefined) this.#fault = 'its Content-Encoding cannot be undone'
    this.#decoders = [...codings ?? [], 'file' as const].map((layer) => new Decoder(layer))
  }

  /** Why no more of it can be unpacked. */
  get fault(): string | undefined {
    return this.#fault ?? this.#decoders.find(({ fault }) => fault !== undefined)?.fault
  }

  /** Bytes from the wire. What they unpack to must be read to its end before the next ones. */
  write(bytes: Uint8Array): void {
    if (this.#fault === undefined) this.#decoders[0]!.write(bytes)
  }

  /** There are no more bytes; what is left is to be read. */
  end(): void {
    this.#isEnding = true
  }

  /** At most `bytesMax` unpacked bytes; undefined when all that was written is read, or nothing more can be. */
  async read(bytesMax: number): Promise<Uint8Array | undefined> {
    const bytes = this.#left ?? await this.#pull(this.#decoders.length - 1)
    this.#left = bytes !== undefined && bytes.byteLength > bytesMax ? bytes.subarray(bytesMax) : undefined
    return bytes?.subarray(0, bytesMax)
  }

  destroy(): void {
    for (const decoder of this.#decoders) decoder.destroy()
  }

  async #pull(index: number): Promise<Uint8Array | undefined> {
    const decoder = this.#decoders[index]!
    for (;;) {
      const bytes = await decoder.read()
      if (bytes !== undefined) return bytes
      const input = index === 0 ? undefined : await this.#pull(index - 1)
      if (input !== undefined) decoder.write(input)
      else if (this.#isEnding && !decoder.isEnded) decoder.end()
      else return undefined
    }
  }
}

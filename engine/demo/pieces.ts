/**
 * Pieces of documents that are compressed once and joined many times, so that a server costs next to nothing beside the
 * crawler that it feeds.
 *
 *   gzip:    header | deflated piece ... | empty last block, CRC, length
 *   br:      first piece, with the stream's header | piece ... | empty last block
 *   identity: piece ...
 *
 * Deflate pieces end in a full flush and brotli pieces in a flush, so each begins at a byte and refers to nothing before
 * it. That holds for brotli at qualities 0 and 1 only: higher ones use the static dictionary, whose references depend
 * on the position in the stream. All pieces of a stream share one window size. Main thread of the web's process.
 */
import { once } from 'node:events'
import zlib from 'node:zlib'
import { crcJoin, crcShift } from './crc32.ts'
import type { Coding } from './types.ts'

export interface Piece {
  readonly plain: Buffer
  readonly deflated: Buffer
  readonly crc: number
  readonly crcShift: number
  /** Without the stream's header. */
  readonly brotli: Buffer
}

const { constants } = zlib
const brotliParams = { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_LGWIN]: 18 }
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const brotliLastBlock = Buffer.from([3])

/** For texts of a few KB that are used once: small tables, since setting them up is most of the cost. */
const deflateOnce = { level: 1, memLevel: 6, windowBits: 13, chunkSize: 4_096, finishFlush: constants.Z_FULL_FLUSH }
const deflateForReuse = { level: 6, finishFlush: constants.Z_FULL_FLUSH }

/** Makes pieces for repeated use. The encoder's header goes out with a first empty flush and is left away. */
export async function makePieces(texts: readonly Buffer[]): Promise<Piece[]> {
  const pieces: Piece[] = []
  for (const plain of texts) {
    pieces.push({
      plain, deflated: zlib.deflateRawSync(plain, deflateForReuse), crc: zlib.crc32(plain), crcShift: crcShift(plain.length),
      brotli: await brotliWithoutHeader(plain),
    })
  }
  return pieces
}

async function brotliWithoutHeader(plain: Buffer): Promise<Buffer> {
  const encoder = zlib.createBrotliCompress({ params: brotliParams })
  let parts: Buffer[] = []
  encoder.on('data', (part: Buffer) => parts.push(part))
  const flush = (): Promise<void> => new Promise((resolve) => encoder.flush(constants.BROTLI_OPERATION_FLUSH, resolve))
  await flush()
  parts = []
  encoder.write(plain)
  await flush()
  encoder.destroy()
  await once(encoder, 'close')
  return Buffer.concat(parts)
}

/** A document of a text of its own, then shared pieces, in the coding asked for, as chunks in order. */
export function join(own: Buffer, pieces: readonly Piece[], coding: Coding): Buffer[] {
  if (coding === 'gzip') return joinGzip(own, pieces)
  if (coding === 'identity') return [own, ...pieces.map((piece) => piece.plain)]
  const head = zlib.brotliCompressSync(own, { params: brotliParams, finishFlush: constants.BROTLI_OPERATION_FLUSH })
  return [head, ...pieces.map((piece) => piece.brotli), brotliLastBlock]
}

function joinGzip(own: Buffer, pieces: readonly Piece[]): Buffer[] {
  const chunks: Buffer[] = [gzipHeader, zlib.deflateRawSync(own, deflateOnce)]
  let crc = zlib.crc32(own)
  let bytes = own.length
  for (const piece of pieces) {
    chunks.push(piece.deflated)
    crc = crcJoin(crc, piece.crc, piece.crcShift)
    bytes += piece.plain.length
  }
  const trailer = Buffer.alloc(10)
  trailer[0] = 3 // An empty last block with the fixed code: the bits 1, 01, 0000000.
  trailer.writeUInt32LE(crc, 2)
  trailer.writeUInt32LE(bytes, 6)
  chunks.push(trailer)
  return chunks
}

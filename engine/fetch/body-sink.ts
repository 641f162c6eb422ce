/**
 * A body that is handed over as it comes, in place of being kept: its pieces are gathered to chunks of one size, whatever
 * the size in which the server sends them, and one chunk at a time is written. Main thread.
 *
 *   piece, piece, piece -> [ chunk ] -- full, or the body has ended --> write: the response is paused until it is done
 *
 * Invariant: never more is held than one chunk that is written, one that is filled, and what a socket had in its buffer
 * when the response was paused.
 */
import { limits } from '../core/limits.ts'
import type { ResponseHead } from './response-head.ts'

export interface BodySink {
  /** Takes the place of the fetch's deadline when a body begins to come; the time that `write` takes does not count. */
  readonly deadlineMs: number
  /**
   * Takes a chunk of `limits.sitemapChunkBytesMax` at most, which is the taker's from then on. Answers whether more is
   * wanted: if not, the body is cut here. Never rejects.
   */
  write(chunk: Uint8Array, head: ResponseHead): Promise<boolean>
}

interface SinkEvents {
  /** Nothing more can be taken: told before each write of a body that goes on, and `resume` after it. */
  pause(): void
  resume(): void
  /** All is written, or no more is wanted. */
  done(isWanted: boolean): void
}

export class SinkWriter {
  readonly #write: (chunk: Uint8Array) => Promise<boolean>
  readonly #on: SinkEvents
  #chunk: Buffer | undefined
  #filled = 0
  /** What found no place in the chunk. */
  #rest: Uint8Array[] = []
  #isWriting = false
  #isEnded = false

  constructor(write: (chunk: Uint8Array) => Promise<boolean>, on: SinkEvents) {
    this.#write = write
    this.#on = on
  }

  add(piece: Uint8Array): void {
    this.#rest.push(piece)
    this.#pump()
  }

  /** There is no further piece. */
  end(): void {
    this.#isEnded = true
    this.#pump()
  }

  #pump(): void {
    if (this.#isWriting) return
    this.#fill()
    if (this.#filled === limits.sitemapChunkBytesMax || (this.#isEnded && this.#filled > 0)) void this.#hand()
    else if (this.#isEnded) this.#on.done(true)
  }

  /** Copies: a server that sends single bytes would have us keep an object for each. */
  #fill(): void {
    for (let piece = this.#rest[0]; piece !== undefined; piece = this.#rest[0]) {
      this.#chunk ??= Buffer.allocUnsafeSlow(limits.sitemapChunkBytesMax)
      const room = limits.sitemapChunkBytesMax - this.#filled
      this.#chunk.set(piece.subarray(0, room), this.#filled)
      this.#filled += Math.min(room, piece.length)
      if (piece.length > room) {
        this.#rest[0] = piece.subarray(room)
        return
      }
      this.#rest.shift()
    }
  }

  async #hand(): Promise<void> {
    const chunk = this.#chunk!.subarray(0, this.#filled)
    this.#chunk = undefined
    this.#filled = 0
    this.#isWriting = true
    this.#on.pause()
    const isWanted = await this.#write(chunk)
    this.#isWriting = false
    if (!isWanted) return this.#on.done(false)
    this.#on.resume()
    this.#pump()
  }
}

/**
 * Which WARC file a worker appends to. Runs in a parse worker. Invariants: a file has one writer in its life; a worker
 * that dies leaves its last file's number under its owner, so that the main thread can have the rest of it cut. A new
 * file is begun when there is none, when the file is full, and when the main thread asked all workers for it.
 */
import { limits } from '../engine/core/limits.ts'
import type { PageSink, WarcPlace } from '../engine/core/types.ts'
import { control, type Arena } from './arena.ts'

export interface WarcFile extends PageSink {
  close(): void
}

interface OpenFile {
  readonly writer: WarcFile
  readonly number: number
  readonly epoch: number
  isFull: boolean
}

export class WarcFiles implements PageSink {
  readonly #arena: Arena
  readonly #open: (file: number) => WarcFile
  #file: OpenFile | undefined
  #owner = 0

  constructor(arena: Arena, open: (file: number) => WarcFile) {
    this.#arena = arena
    this.#open = open
  }

  /** A turn begins: what is appended from now on is appended by this owner. */
  begin(owner: number): void {
    this.#owner = owner
    this.#name(this.#file)
  }

  append(page: Parameters<PageSink['append']>[0]): WarcPlace {
    const place = this.#current().writer.append(page)
    if (place.offset + place.length >= limits.warcFileBytesMax) this.#file!.isFull = true
    return place
  }

  #current(): OpenFile {
    // Reads the count that the main thread raised when it wanted new files.
    const epoch = Atomics.load(this.#arena.control, control.warcEpoch)
    if (this.#file !== undefined && !this.#file.isFull && this.#file.epoch === epoch) return this.#file
    this.#file?.writer.close()
    // Takes a number that no other worker has; tells all of them that it is taken.
    const number = Atomics.add(this.#arena.control, control.warcFileNext, 1)
    // The name is given before the file exists, so that a death in between leaves nothing unnamed.
    this.#name({ number })
    this.#file = { writer: this.#open(number), number, epoch, isFull: false }
    return this.#file
  }

  #name(file: { readonly number: number } | undefined): void {
    // Publishes the file's number to the main thread, which reads it when this worker has died.
    Atomics.store(this.#arena.warcFiles, this.#owner, file === undefined ? 0 : file.number + 1)
  }
}

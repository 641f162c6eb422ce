/**
 * Which WARC file a worker appends to, told to the main thread. Runs in a parse worker. Invariant: a worker that dies
 * leaves the number of its last file under its owner, so that what it appended for a page that is not done can be cut.
 * The writer begins files by itself, when it has none or when one is full; here it gets their numbers, and is made to
 * begin a new one when the main thread asked all workers for it.
 */
import type { PageSink, WarcPlace } from '../engine/core/types.ts'
import { control, type Arena } from './arena.ts'

export interface WarcAppender extends PageSink {
  /** Ends the file; the next page begins a new one. */
  reopen(): void
}

export class WarcFiles implements PageSink {
  readonly #arena: Arena
  readonly #writer: WarcAppender
  #owner = 0
  /** Number of the file plus one; 0: none yet. */
  #file = 0
  #epoch = 0

  constructor(arena: Arena, open: (nextFile: () => number) => WarcAppender) {
    this.#arena = arena
    this.#writer = open(() => this.#next())
  }

  /** A turn begins: what is appended from now on is appended by this owner. */
  begin(owner: number): void {
    this.#owner = owner
    this.#tell()
  }

  append(page: Parameters<PageSink['append']>[0]): WarcPlace {
    // Reads the count that the main thread raised when it wanted new files.
    const epoch = Atomics.load(this.#arena.control, control.warcEpoch)
    if (epoch !== this.#epoch) this.#writer.reopen()
    this.#epoch = epoch
    return this.#writer.append(page)
  }

  /** Told before the file exists, so that a death in between leaves no file that the main thread does not know of. */
  #next(): number {
    // Takes a number that no other worker has, and tells all of them that it is taken.
    const file = Atomics.add(this.#arena.control, control.warcFileNext, 1)
    this.#file = file + 1
    this.#tell()
    return file
  }

  #tell(): void {
    // Publishes the file's number to the main thread, which reads it when this worker has died.
    Atomics.store(this.#arena.warcFiles, this.#owner, this.#file)
  }
}

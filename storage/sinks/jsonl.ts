/**
 * Page records as JSON lines: `pages-000001.jsonl` and so on in the crawl directory. Main thread, inside a commit.
 * Invariant: lines are written at the committed length before the transaction that makes them count (and synced, unless
 * the store's durability leaves that to later), so what a dead commit left behind is cut by the next opening, and what a
 * failed one left is cut at once: the same lines may be tried again. A file is begun when the last one has reached its
 * size, between two batches; a batch is never split.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import { limits } from '../../engine/core/limits.ts'
import { jsonlFileName, fileNumbers, sinkError, syncError, type SinkLengths } from './files.ts'

export interface JsonlOptions {
  readonly fileBytesMax?: number | undefined
  /** `append` resolves when the bytes are on the disk; else whoever appends has them synced. */
  readonly syncs?: boolean
}

export class JsonlSink {
  readonly #dir: string
  readonly #fileBytesMax: number
  readonly #syncs: boolean
  #file: number
  /** As committed. */
  #length: number
  #appended = 0
  #handle: fs.promises.FileHandle | undefined

  /** Goes on after the committed lengths; the files were cut to them (`cutSinkFiles`). */
  constructor(dir: string, lengths: SinkLengths, { fileBytesMax = limits.jsonlFileBytesMax, syncs = true }: JsonlOptions = {}) {
    this.#dir = dir
    this.#fileBytesMax = fileBytesMax
    this.#syncs = syncs
    this.#file = Math.max(1, ...fileNumbers(lengths.keys(), 'jsonl'))
    this.#length = lengths.get(jsonlFileName(this.#file)) ?? 0
    if (this.#length > 0 && !isWhole(path.join(dir, jsonlFileName(this.#file)), this.#length)) this.#begin()
  }

  /**
   * Writes the lines of one batch behind the committed ones; answers the file and the length that holds them, which
   * counts from `commit` on. Rejects with `disk_full` or `disk_failed`.
   */
  async append(lines: Buffer): Promise<{ readonly name: string; readonly length: number }> {
    if (this.#length >= this.#fileBytesMax) {
      await this.close()
      this.#begin()
    }
    const name = jsonlFileName(this.#file)
    let isWritten = false
    try {
      this.#handle ??= await fs.promises.open(path.join(this.#dir, name), fs.constants.O_RDWR | fs.constants.O_CREAT)
      for (let written = 0; written < lines.length;) {
        const { bytesWritten } = await this.#handle.write(lines, written, lines.length - written, this.#length + written)
        written += bytesWritten
      }
      isWritten = true
      if (this.#syncs) await this.#handle.datasync()
      // A file that somebody deleted takes bytes as before, and nobody will ever read them.
      if ((await this.#handle.stat()).nlink === 0) throw new Error('it was deleted while the crawl ran')
    } catch (error) {
      // A failed sync is final, see syncFile.
      throw isWritten ? syncError(name, error) : sinkError(name, error)
    }
    this.#appended = lines.length
    return { name, length: this.#length + lines.length }
  }

  /** What was appended since the last time is part of a transaction. */
  commit(): void {
    this.#length += this.#appended
    this.#appended = 0
  }

  /** What was appended since the last time is part of none: gives its room back. */
  async rewind(): Promise<void> {
    this.#appended = 0
    await this.#handle?.truncate(this.#length).catch(() => {
      // It is written over by the next batch, or cut by the next opening.
    })
  }

  async close(): Promise<void> {
    await this.#handle?.close()
    this.#handle = undefined
  }

  #begin(): void {
    this.#file += 1
    this.#length = 0
  }
}

function isWhole(file: string, length: number): boolean {
  return fs.existsSync(file) && fs.statSync(file).size === length
}

const NEW_LINKS = Buffer.from(',"newLinks":')
const END = Buffer.from('}\n')

/** Closes the records of a batch: `newLinks` is added where there were links. An empty line is no record. */
export function joinLines(records: readonly { readonly line: Uint8Array; readonly newLinks?: number }[]): Buffer {
  const parts: Uint8Array[] = []
  for (const { line, newLinks } of records) {
    if (line.length === 0) continue
    parts.push(line)
    if (newLinks !== undefined) parts.push(NEW_LINKS, Buffer.from(String(newLinks)))
    parts.push(END)
  }
  return Buffer.concat(parts)
}

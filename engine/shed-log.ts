/**
 * The file in which every URL that was shed has a line of JSON. Lines are appended, those of one turn of the event loop
 * together; a disk that is slow or full costs lines and never the crawl. Main thread.
 *
 * Invariants: at most `shedLogBytesMax` wait for the disk; each line is whole, or is cut and has nothing behind it; what
 * is not written is counted, and of the first failure in a row somebody is told.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { SluiceError } from './core/errors.ts'
import { limits } from './core/limits.ts'

export interface ShedLine {
  /** ISO 8601. */
  readonly at: string
  readonly url: string
  readonly host: string
  readonly priority: number
  readonly depth: number
  /** Which stage held the claims, or what was full. */
  readonly reason: string
  readonly action: 'deferred' | 'dropped' | 'refused'
}

interface ShedFile {
  write(bytes: Uint8Array, offset: number): Promise<{ readonly bytesWritten: number }>
  close(): Promise<void>
}

export class ShedLog {
  readonly #file: ShedFile
  readonly #onFailure: (error: unknown) => void
  #lines: string[] = []
  #bytes = 0
  #linesLost = 0
  /** The file ends within a line. */
  #isCut: boolean
  #isFailing = false
  #writing: Promise<void> | undefined

  constructor(file: ShedFile, options: { readonly isCut?: boolean; readonly onFailure: (error: unknown) => void }) {
    this.#file = file
    this.#isCut = options.isCut ?? false
    this.#onFailure = options.onFailure
  }

  /** Opens the file, for its owner alone when it is new; goes on behind what it holds. Throws `bad_option`. */
  static async open(given: string, onFailure: (error: unknown) => void): Promise<ShedLog> {
    let file: fs.FileHandle | undefined
    try {
      file = await fs.open(path.resolve(given), 'a+', 0o600)
      const { size } = await file.stat()
      const { buffer } = await file.read(Buffer.alloc(1, '\n'), 0, 1, Math.max(0, size - 1))
      return new ShedLog(file, { isCut: buffer[0] !== 0x0a, onFailure })
    } catch (error) {
      await file?.close()
      throw new SluiceError('bad_option', `--shed-log: expected a file that can be written, given ${given}: ${(error as Error).message}`, { cause: error })
    }
  }

  get linesLost(): number {
    return this.#linesLost
  }

  /** Lines that were lost before they came here. */
  lose(lines: number): void {
    this.#linesLost += lines
  }

  write(line: ShedLine): void {
    const text = `${JSON.stringify(line)}\n`
    if (this.#bytes + text.length > limits.shedLogBytesMax) return this.lose(1)
    this.#lines.push(text)
    this.#bytes += text.length
    this.#writing ??= this.#writeAll()
  }

  async close(): Promise<void> {
    await this.#writing
    await this.#file.close()
  }

  async #writeAll(): Promise<void> {
    // What else comes in this turn goes along.
    await new Promise((resolve) => { setImmediate(resolve) })
    while (this.#lines.length > 0) {
      const lines = this.#lines
      this.#lines = []
      await this.#append(lines)
      this.#bytes = this.#lines.reduce((sum, { length }) => sum + length, 0)
    }
    this.#writing = undefined
  }

  async #append(lines: readonly string[]): Promise<void> {
    const bytes = Buffer.from((this.#isCut ? '\n' : '') + lines.join(''))
    let written = 0
    try {
      while (written < bytes.length) written += (await this.#file.write(bytes, written)).bytesWritten
      this.#isCut = false
      this.#isFailing = false
    } catch (error) {
      const whole = bytes.subarray(0, written).filter((byte) => byte === 0x0a).length - (this.#isCut && written > 0 ? 1 : 0)
      if (written > 0) this.#isCut = bytes[written - 1] !== 0x0a
      this.lose(lines.length - whole)
      if (!this.#isFailing) this.#onFailure(error)
      this.#isFailing = true
    }
  }
}

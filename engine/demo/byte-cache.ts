/**
 * A cache of buffers bounded in bytes; the least recently used goes first. Invariant: the sum of what is kept stays
 * within the bound. Main thread of the web's process.
 */
export class ByteCache {
  readonly #bytesMax: number
  readonly #entries = new Map<string, Buffer>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get(key: string, make: () => Buffer): Buffer {
    const kept = this.#entries.get(key)
    if (kept !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, kept)
      return kept
    }
    const made = make()
    if (made.length > this.#bytesMax) return made
    this.#entries.set(key, made)
    this.#bytes += made.length
    for (const [oldest, bytes] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) break
      this.#entries.delete(oldest)
      this.#bytes -= bytes.length
    }
    return made
  }
}

/**
 * The list of active formatting elements (HTML standard, section 13.2.4.3), as far as it decides where SVG and MathML
 * end: `<a><svg></a>` ends both. Formatting elements are not on the stack of open elements in HTML content; an entry
 * here says how deep that stack was when the element began. Runs in a parse worker. Bounded: further elements are not
 * noted, which only leaves foreign content open where their end tags would have ended it.
 */
const ENTRIES_MAX = 64
const MARKER = 0

export class FormattingElements {
  readonly #names = new Uint8Array(ENTRIES_MAX)
  readonly #depths = new Int32Array(ENTRIES_MAX)
  #count = 0

  reset(): void {
    this.#count = 0
  }

  start(name: number, depth: number): void {
    if (this.#count === ENTRIES_MAX) return
    this.#names[this.#count] = name
    this.#depths[this.#count] = depth
    this.#count += 1
  }

  /** Cells, captions, templates and objects: what was open before them does not end inside them. */
  mark(depth: number): void {
    this.start(MARKER, depth)
  }

  /** The element of the last marker has ended. */
  clearToMark(): void {
    while (this.#count > 0) {
      this.#count -= 1
      if (this.#names[this.#count] === MARKER) return
    }
  }

  /** Takes out the last element of a name behind the last marker; answers its depth, 0 when there is none. */
  end(name: number): number {
    for (let index = this.#count - 1; index >= 0 && this.#names[index] !== MARKER; index -= 1) {
      if (this.#names[index] !== name) continue
      const depth = this.#depths[index]!
      this.#count -= 1
      // Mostly it is the last one; then nothing moves.
      for (let at = index; at < this.#count; at += 1) {
        this.#names[at] = this.#names[at + 1]!
        this.#depths[at] = this.#depths[at + 1]!
      }
      return depth
    }
    return 0
  }

  /** Those whose place on the stack is gone are opened again where the stack ends now. */
  reopen(depth: number): void {
    for (let index = 0; index < this.#count; index += 1) if (this.#depths[index]! > depth) this.#depths[index] = depth
  }
}

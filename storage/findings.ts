/** What a check found, as lines for people: the first of them, and how many more there are. Pure. */
import { limits } from '../engine/core/limits.ts'

export class Findings {
  readonly #lines: string[] = []
  #count = 0

  add(line: string): void {
    this.#count += 1
    if (this.#count <= limits.checkLinesMax) this.#lines.push(line)
  }

  get lines(): readonly string[] {
    const more = this.#count - this.#lines.length
    return more === 0 ? this.#lines : [...this.#lines, `and ${more} more like these`]
  }
}

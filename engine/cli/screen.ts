/**
 * The terminal as this program shares it: lines that stay, and below them a block that is drawn over and over. A line
 * that comes while the block stands is written in its place, and the block again below it. Each change is one write, so
 * nothing flickers. A place; runs in the parent.
 *
 * Progress and summary go to standard output, since they are what `crawl` has to say and what a user would pipe; errors
 * and logs go to standard error.
 */

export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

const hideCursor = '\u001B[?25l'
const showCursor = '\u001B[?25h'
const clearToEnd = '\u001B[0J'
const clearLine = '\u001B[K'

export class Screen {
  readonly out: Terminal
  readonly #err: Terminal
  #block: readonly string[] = []
  #isCursorHidden = false

  constructor(out: Terminal, err: Terminal) {
    this.out = out
    this.#err = err
  }

  /** A line of output. */
  line(text: string): void {
    this.#above(this.out, text)
  }

  /** A line of standard error. */
  errorLine(text: string): void {
    this.#above(this.#err, text)
  }

  /** Replaces the block. Its lines must be narrower than the terminal. */
  draw(lines: readonly string[]): void {
    // A block that is higher than the terminal would scroll at each drawing.
    const shown = lines.slice(0, Math.max(1, (this.out.rows ?? 24) - 1))
    const begin = this.#isCursorHidden ? '' : hideCursor
    // Lines are overwritten and then cleared to their ends: erasing first would show as a flash.
    const text = shown.map((line) => `${line}${clearLine}\n`).join('')
    this.out.write(`${begin}${this.#toTop()}${text}${clearToEnd}`)
    this.#isCursorHidden = true
    this.#block = shown
  }

  /** Takes the block away and gives the cursor back; also before the process stops. */
  clear(): void {
    if (!this.#isCursorHidden) return
    this.out.write(`${this.#toTop()}${clearToEnd}${showCursor}`)
    this.#block = []
    this.#isCursorHidden = false
  }

  #above(terminal: Terminal, text: string): void {
    const block = this.#block
    if (block.length === 0) {
      terminal.write(`${text}\n`)
      return
    }
    this.out.write(`${this.#toTop()}${clearToEnd}`)
    this.#block = []
    terminal.write(`${text}\n`)
    this.draw(block)
  }

  #toTop(): string {
    return this.#block.length === 0 ? '' : `\r\u001B[${this.#block.length}A`
  }
}

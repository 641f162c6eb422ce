/**
 * What the engine's process writes, as whole lines for the parent's terminal: so that it does not tear the live block.
 * A process that V8 aborts writes a dump of many lines before it dies; of that only the reason is kept. What LMDB's own
 * code says of a file that is damaged or cannot be written is left out: the error that comes of it is told. A place.
 */
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** A longer line is passed on in parts. */
const lineCharsMax = 8_192
const dumpBegins = /^(?:<--- Last few GCs|FATAL ERROR: |# Fatal error in)/
/** As seen with lmdb 3.5.6 on overwritten pages and failing writes. */
const lmdbSays = /^(?:\S+mdb\.c:\d+: Assertion |Write error: |do_write error |mdb_\w+ error|internal error, index points to|page \d+ not found error|duplicate value error|overlapping duplicate entry |freelist\b|conflicting freelist to save:|from the original freelist to save:|All the entries that we are saving to the freelist:|entry \d+:)/

export class EngineOutput {
  readonly #onLine: (line: string) => void
  readonly #keepsDump: boolean
  #isDump = false
  /** What V8 gave as the reason of its abort. */
  reason: string | undefined

  constructor(options: { onLine: (line: string) => void; keepsDump: boolean }) {
    this.#onLine = options.onLine
    this.#keepsDump = options.keepsDump
  }

  read(stream: Readable): void {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    stream.on('data', (chunk: Buffer) => {
      const lines = (rest + decoder.write(chunk)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#take(line)
      if (rest.length > lineCharsMax) {
        this.#take(rest)
        rest = ''
      }
    })
    stream.on('end', () => {
      if (rest !== '') this.#take(rest)
    })
    stream.on('error', () => undefined)
  }

  #take(line: string): void {
    this.#isDump ||= dumpBegins.test(line)
    const fatal = /^FATAL ERROR: (.*)$/.exec(line)
    if (fatal !== null) this.reason = fatal[1]!.replace(/^.* - (?=\S)/, '')
    if (this.#keepsDump || (!this.#isDump && line !== '' && !lmdbSays.test(line))) this.#onLine(line)
  }
}

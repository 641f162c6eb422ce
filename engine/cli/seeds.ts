/**
 * Seeds as a stream: the URLs of the command line, then a file or standard input, one URL a line, `#` comments and
 * blank lines left out, gzip recognised by its first two bytes. Memory is bounded whatever comes: one chunk and one
 * line, and of a line no more than tells that it is too long. Runs in the engine's process, which is handed the file as
 * its standard input: so a pipe such as `<(zcat seeds.gz)`, which only the first process can open, works too.
 */
import fs from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import zlib from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'

export interface SeedInput {
  readonly stream: Readable
  /** What messages call it. */
  readonly name: string
}

/** One character more than a URL may have, so that a cut line is still refused as too long. */
const lineCharsMax = limits.urlBytesMax + 1

/** A seed file in the hands of the parent. */
export interface OpenedSeeds {
  readonly fd: number
  /** False for pipes: what was read of them is gone. */
  readonly canReread: boolean
}

/** Opens the file of `--seeds`; `-` is standard input. Throws `seeds_unreadable`. */
export function openSeeds(file: string): OpenedSeeds {
  if (file === '-') return { fd: 0, canReread: false }
  try {
    const fd = fs.openSync(file, 'r')
    const stat = fs.fstatSync(fd)
    if (!stat.isDirectory()) return { fd, canReread: stat.isFile() }
    fs.closeSync(fd)
  } catch (error) {
    throw unreadable(file, error as Error)
  }
  throw unreadable(file, new Error('it is a directory'))
}

function unreadable(name: string, cause: Error): SluiceError {
  return new SluiceError('seeds_unreadable', `--seeds: expected a text file of URLs, plain or gzip, given ${name}: ${cause.message}`, { cause })
}

/** Yields each seed as it stands in its line. Ends early, without an error, when the signal aborts. */
export async function* readSeeds(urls: readonly string[], input: SeedInput | undefined, signal: AbortSignal): AsyncGenerator<string, void> {
  for (const url of urls) {
    if (signal.aborted) return
    yield url
  }
  if (input === undefined || signal.aborted) return
  const abort = (): void => void input.stream.destroy()
  signal.addEventListener('abort', abort, { once: true })
  try {
    for await (const line of linesOf(plainBytes(input.stream))) {
      if (signal.aborted) return
      const seed = line.trim()
      if (seed !== '' && !seed.startsWith('#')) yield seed
    }
  } catch (error) {
    if (!signal.aborted) throw unreadable(input.name, error as Error)
  } finally {
    signal.removeEventListener('abort', abort)
    input.stream.destroy()
  }
}

async function* plainBytes(stream: Readable): AsyncGenerator<Uint8Array, void> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  let head: Uint8Array = new Uint8Array(0)
  while (head.length < 2) {
    const next = await chunks.next()
    if (next.done === true) break
    head = Buffer.concat([head, next.value])
  }
  const all = withHead(head, chunks)
  if (head[0] !== 0x1F || head[1] !== 0x8B) return yield* all
  // Errors of either side arrive at the reader of the last stream.
  yield* pipeline(Readable.from(all), zlib.createGunzip(), () => undefined)
}

async function* withHead(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  if (head.length > 0) yield head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let line = ''
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true })
    let from = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      yield grown(line, text, from, end)
      line = ''
      from = end + 1
    }
    line = grown(line, text, from, text.length)
  }
  yield line + decoder.decode()
}

/** The line and its next part, cut where it is too long for a URL in any case. */
function grown(line: string, text: string, from: number, to: number): string {
  // White space before a URL is none of its length: a line that was cut must stay too long when it is trimmed.
  const start = line === '' ? skipSpace(text, from, to) : from
  return line + text.slice(start, Math.min(to, start + lineCharsMax - line.length))
}

function skipSpace(text: string, from: number, to: number): number {
  let at = from
  while (at < to && text.charCodeAt(at) <= 0x20) at += 1
  return at
}

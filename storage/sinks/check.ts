/**
 * Whether the sink files hold what the store says of them: each as long as its committed length, each line of the page
 * records JSON, and at the place that a record names in a WARC file a gzip member that begins a record of that URL. All
 * of them are looked at, as a stream, in bounded memory; records of one file lie in the order of their lines or nearly
 * so. A payload behind its head is not read. Reads only; nobody may be appending.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import * as zlib from 'node:zlib'
import { limits } from '../../engine/core/limits.ts'
import { Findings } from '../findings.ts'
import { jsonlFilesOf, type SinkLengths } from './files.ts'

export interface SinksReport {
  readonly problems: readonly string[]
  /** Files that were moved away: what they held cannot be looked at. */
  readonly missing: readonly string[]
  readonly records: number
  readonly warcRecords: number
}

/** Enough for the head of a record with the longest URL, coded or not. */
const HEAD_BYTES = 2 * limits.urlBytesMax + 4_096

export async function checkSinks(dir: string, lengths: SinkLengths): Promise<SinksReport> {
  const check = new SinkCheck(dir, lengths)
  try {
    for (const name of lengths.keys()) check.length(name)
    for (const name of jsonlFilesOf(lengths)) await check.lines(name)
  } finally {
    check.close()
  }
  return { problems: check.problems.lines, missing: check.missing, records: check.records, warcRecords: check.warcRecords }
}

class SinkCheck {
  readonly problems = new Findings()
  readonly missing: string[] = []
  records = 0
  warcRecords = 0
  readonly #dir: string
  readonly #lengths: SinkLengths
  /** Descriptors of WARC files, the one that was used last at the end. */
  readonly #open = new Map<string, number>()
  readonly #head = Buffer.allocUnsafeSlow(HEAD_BYTES)

  constructor(dir: string, lengths: SinkLengths) {
    this.#dir = dir
    this.#lengths = lengths
  }

  length(name: string): void {
    const size = fs.statSync(path.join(this.#dir, name), { throwIfNoEntry: false })?.size
    const length = this.#lengths.get(name)!
    if (size === undefined && length > 0) this.missing.push(name)
    else if (size !== undefined && size < length) this.problems.add(`${name} was cut: it has ${size} bytes, and ${length} were stored`)
  }

  async lines(name: string): Promise<void> {
    const length = this.#lengths.get(name)!
    if (length === 0 || this.missing.includes(name)) return
    let at = 0
    for await (const { line, isWhole } of linesOf(path.join(this.#dir, name), length)) {
      const where = `${name} at byte ${at}`
      at += line.length + 1
      if (isWhole) this.#record(line, where)
      else this.problems.add(`${where}: the last line has no end`)
    }
  }

  #record(line: Buffer, where: string): void {
    const record = recordOf(line)
    if (record === undefined) return this.problems.add(`${where}: no page record`)
    this.records += 1
    if (record.warc === undefined) return
    const { file, offset } = record.warc
    if (this.missing.includes(file)) return
    this.warcRecords += 1
    const problem = this.#warcRecord(record.url, file, offset)
    if (problem !== undefined) this.problems.add(`${where}: ${record.url} should lie in ${file} at ${offset}, ${problem}`)
  }

  #warcRecord(url: string, file: string, offset: number): string | undefined {
    const length = this.#lengths.get(file)
    if (length === undefined) return 'which the store does not know'
    if (!(offset >= 0 && offset < length)) return `behind its end (${length})`
    try {
      const bytes = fs.readSync(this.#descriptor(file), this.#head, 0, Math.min(HEAD_BYTES, length - offset), offset)
      // A part of a member is read as far as it goes.
      const head = zlib.gunzipSync(this.#head.subarray(0, bytes), { finishFlush: zlib.constants.Z_SYNC_FLUSH }).toString('latin1', 0, HEAD_BYTES)
      const found = /^WARC\/1\.[01]\r\n(?:(?!\r\n).*\r\n)*?WARC-Target-URI: (.*)\r\n/.exec(head)?.[1]
      return found === url ? undefined : `where ${found === undefined ? 'no record of a URL is' : `${found} is`}`
    } catch (error) {
      return `which cannot be read: ${(error as Error).message}`
    }
  }

  #descriptor(file: string): number {
    const fd = this.#open.get(file) ?? fs.openSync(path.join(this.#dir, file), 'r')
    this.#open.delete(file)
    this.#open.set(file, fd)
    if (this.#open.size > limits.checkFilesOpenMax) {
      const [oldest, oldestFd] = this.#open.entries().next().value!
      this.#open.delete(oldest)
      fs.closeSync(oldestFd)
    }
    return fd
  }

  close(): void {
    for (const fd of this.#open.values()) fs.closeSync(fd)
    this.#open.clear()
  }
}

function recordOf(line: Buffer): { readonly url: string; readonly warc?: { readonly file: string; readonly offset: number } } | undefined {
  try {
    const record = JSON.parse(line.toString()) as { url?: unknown } | null
    return typeof record?.url === 'string' ? record as ReturnType<typeof recordOf> : undefined
  } catch {
    return undefined
  }
}

/** Lines of the first `length` bytes, without their ends; only the last one may not be whole. */
async function* linesOf(file: string, length: number): AsyncGenerator<{ readonly line: Buffer; readonly isWhole: boolean }, void> {
  let rest: Buffer[] = []
  for await (const chunk of fs.createReadStream(file, { end: length - 1, highWaterMark: 256 * 1_024 }) as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf(0x0A); end >= 0; end = chunk.indexOf(0x0A, from)) {
      yield { line: Buffer.concat([...rest, chunk.subarray(from, end)]), isWhole: true }
      rest = []
      from = end + 1
    }
    if (from < chunk.length) rest.push(chunk.subarray(from))
  }
  if (rest.length > 0) yield { line: Buffer.concat(rest), isWhole: false }
}

/**
 * `sluice export`: the page records of a crawl directory as one stream, in bounded memory, also while the crawl runs.
 * Each file is read up to the length that the last commit gave it: what lies behind is not stored yet, or never will be.
 */
import fs from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SluiceError } from '../core/errors.ts'
import type { PageRecord } from '../core/types.ts'
import { csvHeader, csvRow } from './csv.ts'
import { checkCrawl, readStore } from './owner.ts'

export const exportFormats = ['jsonl', 'csv'] as const
export type ExportFormat = (typeof exportFormats)[number]

export interface ExportCommand {
  readonly dir: string
  readonly format: ExportFormat
  /** Standard output when absent. */
  readonly output?: string
}

const newline = 0x0A

/** Writes the records; resolves to the exit code. Throws `no_crawl`, `bad_option`, `file_unreadable`, `store_corrupt`. */
export async function runExport({ dir, format, output }: ExportCommand): Promise<number> {
  checkCrawl(dir)
  const lines = pageLines(dir, await readStore(dir, (store) => store.committedLengths()))
  const source = Readable.from(format === 'csv' ? csvOf(lines) : lines, { objectMode: true, highWaterMark: 1 })
  try {
    if (output === undefined) await pipeline(source, process.stdout, { end: false })
    else await pipeline(source, fs.createWriteStream(output))
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // The reader (`head`, say) has what it wanted.
    if (output === undefined && code === 'EPIPE') return 0
    if (output !== undefined && (error as NodeJS.ErrnoException).path === output) {
      throw new SluiceError('bad_option', `--output: expected a file that can be written, given ${output}: ${(error as Error).message}`, { cause: error })
    }
    // Opening a crawl takes a page file that is gone for moved away by its owner; here it is what was asked for.
    if ((error as NodeJS.ErrnoException).syscall === 'open') throw new SluiceError('file_unreadable', `the page records of ${dir} cannot be read: ${(error as Error).message}`, { cause: error })
    throw error
  }
  return 0
}

/** Buffers of whole lines, in the order in which the pages were stored. */
export async function* pageLines(dir: string, lengths: ReadonlyMap<string, number>): AsyncGenerator<Buffer, void> {
  const files = [...lengths].filter(([name, length]) => /^pages-\d+\.jsonl$/.test(name) && length > 0).toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, length] of files) yield* wholeLines(path.join(dir, name), length)
}

async function* wholeLines(file: string, size: number): AsyncGenerator<Buffer, void> {
  let rest: Buffer[] = []
  for await (const chunk of fs.createReadStream(file, { end: size - 1, highWaterMark: 256 * 1_024 }) as AsyncIterable<Buffer>) {
    const end = chunk.lastIndexOf(newline) + 1
    if (end === 0) {
      rest.push(chunk)
      continue
    }
    yield rest.length === 0 ? chunk.subarray(0, end) : Buffer.concat([...rest, chunk.subarray(0, end)])
    rest = end < chunk.length ? [chunk.subarray(end)] : []
  }
}

async function* csvOf(blocks: AsyncIterable<Buffer>): AsyncGenerator<string, void> {
  yield csvHeader
  for await (const block of blocks) {
    yield block.toString('utf8').split('\n').filter((line) => line !== '').map((line) => csvRow(recordOf(line))).join('')
  }
}

function recordOf(line: string): PageRecord {
  try {
    return JSON.parse(line) as PageRecord
  } catch (error) {
    throw new SluiceError('store_corrupt', `a line of the page records is no JSON: ${line.slice(0, 100)}`, { cause: error })
  }
}

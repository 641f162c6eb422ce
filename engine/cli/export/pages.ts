/**
 * Page records out of the files of a crawl directory, in the order in which they were stored. Each file is read up to
 * the length that the last commit gave it: what lies behind is not stored yet, or never will be. Invariant: one block of
 * whole lines is held at a time.
 */
import fs from 'node:fs'
import path from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import type { PageRecord } from '../../core/types.ts'
import { jsonlFilesOf } from '../../../storage/sinks/files.ts'

const newline = 0x0A

/** Buffers of whole lines. Throws `file_unreadable`. */
export async function* pageLines(dir: string, lengths: ReadonlyMap<string, number>): AsyncGenerator<Buffer, void> {
  for (const name of jsonlFilesOf(lengths)) {
    const length = lengths.get(name)!
    if (length === 0) continue
    try {
      yield* wholeLines(path.join(dir, name), length)
    } catch (error) {
      // Opening a crawl takes a page file that is gone for moved away by its owner; here it is what was asked for.
      throw new SluiceError('file_unreadable', `the page records of ${dir} cannot be read: ${(error as Error).message}`, { cause: error })
    }
  }
}

async function* wholeLines(file: string, size: number): AsyncGenerator<Buffer, void> {
  let rest: Buffer[] = []
  let bytes = 0
  for await (const chunk of fs.createReadStream(file, { end: size - 1, highWaterMark: 256 * 1_024 }) as AsyncIterable<Buffer>) {
    bytes += chunk.length
    const end = chunk.lastIndexOf(newline) + 1
    if (end === 0) {
      rest.push(chunk)
      continue
    }
    yield rest.length === 0 ? chunk.subarray(0, end) : Buffer.concat([...rest, chunk.subarray(0, end)])
    rest = end < chunk.length ? [chunk.subarray(end)] : []
  }
  if (bytes < size) throw new Error(`${file} was cut: it has ${bytes} of its ${size} bytes`)
}

/** The same, read. Throws `store_corrupt` too. */
export async function* pageRecords(dir: string, lengths: ReadonlyMap<string, number>): AsyncGenerator<readonly PageRecord[], void> {
  for await (const block of pageLines(dir, lengths)) {
    yield block.toString('utf8').split('\n').filter((line) => line !== '').map(recordOf)
  }
}

function recordOf(line: string): PageRecord {
  try {
    return JSON.parse(line) as PageRecord
  } catch (error) {
    throw new SluiceError('store_corrupt', `a line of the page records is no JSON: ${line.slice(0, 100)}`, { cause: error })
  }
}

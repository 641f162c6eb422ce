/**
 * `sluice export`: what a crawl directory holds as one stream, in bounded memory, also while the crawl runs: up to the
 * state at its start, in turns of at most half a second that hold nothing of the store between them.
 */
import { SluiceError } from '../../core/errors.ts'
import type { Store } from '../../../storage/store.ts'
import { checkCrawl, readStore } from '../owner.ts'
import { failureColumns, hostColumns, pageColumns, queueColumns } from './columns.ts'
import { chunksOf, type Chunks, type ExportFormat } from './formats.ts'
import { writeToFile, writeToStandardOutput } from './output.ts'
import { pageLines, pageRecords } from './pages.ts'
import { failureRecords, hostRecords, queueRecords } from './records.ts'

export const exportKinds = ['pages', 'queue', 'hosts', 'failures'] as const
export type ExportKind = (typeof exportKinds)[number]

export interface ExportCommand {
  readonly what: ExportKind
  readonly dir: string
  readonly format: ExportFormat
  /** Standard output when absent. */
  readonly output?: string
}

/** Exit code of an export that a signal ended. */
const exitStopped = 3

/** Writes the records; resolves to the exit code. Throws `no_crawl`, `bad_option`, `file_unreadable`, `store_corrupt`, `disk_failed`. */
export async function runExport({ what, dir, format, output }: ExportCommand): Promise<number> {
  checkCrawl(dir)
  if (format === 'parquet' && output === undefined && process.stdout.isTTY) {
    throw new SluiceError('bad_option', '--output: expected a file, since Parquet is not for a terminal, given none')
  }
  if (what !== 'pages') return readStore(dir, (store) => write(rowChunks(what, store, format), output))
  const lengths = await readStore(dir, (store) => store.committedLengths())
  return write(format === 'jsonl' ? pageLines(dir, lengths) : chunksOf(pageColumns, pageRecords(dir, lengths), format), output)
}

function rowChunks(what: Exclude<ExportKind, 'pages'>, store: Store, format: ExportFormat): Chunks {
  switch (what) {
    case 'queue': return chunksOf(queueColumns, queueRecords(store), format)
    case 'hosts': return chunksOf(hostColumns, hostRecords(store), format)
    case 'failures': return chunksOf(failureColumns, failureRecords(store, Date.now()), format)
  }
}

async function write(chunks: Chunks, output: string | undefined): Promise<number> {
  if (output !== undefined) return (await writeToFile(chunks, output)) ? 0 : exitStopped
  await writeToStandardOutput(chunks)
  return 0
}

/**
 * Records as the bytes of a file, a part at a time. Invariant: the first piece comes with the first part of records, so
 * that nothing is open of the store while somebody is waited for who does not read.
 */
import { ParquetRows } from '../../../storage/sinks/parquet.ts'
import type { Column } from './columns.ts'
import { csvHeader, csvRow } from './csv.ts'

export const exportFormats = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

export type Chunks = AsyncIterable<string | Uint8Array>
export type Parts<T> = Iterable<readonly T[]> | AsyncIterable<readonly T[]>

export function chunksOf<T>(columns: readonly Column<T>[], parts: Parts<T>, format: ExportFormat): Chunks {
  if (format === 'parquet') return parquetOf(columns, parts)
  return format === 'csv' ? textOf(parts, (record) => csvRow(columns, record), csvHeader(columns)) : textOf(parts, (record) => `${JSON.stringify(record)}\n`, '')
}

async function* textOf<T>(parts: Parts<T>, lineOf: (record: T) => string, header: string): AsyncGenerator<string, void> {
  let head = header
  for await (const records of parts) {
    const text = head + records.map(lineOf).join('')
    head = ''
    if (text !== '') yield text
  }
  if (head !== '') yield head
}

async function* parquetOf<T>(columns: readonly Column<T>[], parts: Parts<T>): AsyncGenerator<Uint8Array, void> {
  const rows = new ParquetRows(columns)
  for await (const records of parts) {
    for (const record of records) rows.add(columns.map(({ read }) => read(record)))
    const bytes = rows.take()
    if (bytes.length > 0) yield bytes
  }
  yield rows.finish()
}

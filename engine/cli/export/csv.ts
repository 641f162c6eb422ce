/**
 * Records as CSV (RFC 4180: CRLF, quotes doubled, a header). A cell holds the value as it is: no sign is put before
 * `=`, `+` or `@` to keep spreadsheet programs from reading a formula, since a reader of data would have to take it off
 * again. Pure functions.
 */
import type { Column } from './columns.ts'

/** A value as one cell; an absent one is an empty cell. */
export function cell(value: unknown): string {
  const text = value === undefined ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The names of the columns, with the line end. */
export function csvHeader(columns: readonly { readonly name: string }[]): string {
  return `${columns.map(({ name }) => cell(name)).join(',')}\r\n`
}

/** One record as one row, with its line end. */
export function csvRow<T>(columns: readonly Column<T>[], record: T): string {
  const cells = columns.map(({ kind, read }) => {
    const value = read(record)
    return cell(kind === 'json' && value !== undefined ? JSON.stringify(value) : value)
  })
  return `${cells.join(',')}\r\n`
}

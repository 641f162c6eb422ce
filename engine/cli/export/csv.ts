/**
 * Page records as CSV (RFC 4180: CRLF, quotes doubled, a header). A cell holds the value as it is: no sign is put before
 * `=`, `+` or `@` to keep spreadsheet programs from reading a formula, since a reader of data would have to take it off
 * again. Pure functions.
 */
import type { PageRecord } from '../core/types.ts'

interface Column {
  readonly name: string
  readonly read: (record: PageRecord) => unknown
}

/** Columns in their fixed order; the compiler asks for those of a new field of the record. */
const columnsOf: Readonly<Record<keyof PageRecord, readonly Column[]>> = {
  url: same('url'),
  redirectTo: same('redirectTo'),
  // A URL has no spaces, so they separate.
  redirectedFrom: [{ name: 'redirectedFrom', read: (record) => record.redirectedFrom?.join(' ') }],
  status: same('status'),
  outcome: same('outcome'),
  code: same('code'),
  fetchedAt: same('fetchedAt'),
  depth: same('depth'),
  referrer: same('referrer'),
  attempts: same('attempts'),
  contentType: same('contentType'),
  charset: same('charset'),
  unknownCharset: same('unknownCharset'),
  bytes: same('bytes'),
  wireBytes: same('wireBytes'),
  truncated: same('truncated'),
  title: same('title'),
  lang: same('lang'),
  canonical: same('canonical'),
  robots: [{ name: 'noindex', read: (record) => record.robots?.noindex }, { name: 'nofollow', read: (record) => record.robots?.nofollow }],
  links: same('links'),
  newLinks: same('newLinks'),
  hash: same('hash'),
  unchanged: same('unchanged'),
  simhash: same('simhash'),
  nearDuplicate: same('nearDuplicate'),
  needsJs: same('needsJs'),
  etag: same('etag'),
  lastModified: same('lastModified'),
  ip: same('ip'),
  tls: [
    { name: 'tlsVersion', read: (record) => record.tls?.version },
    { name: 'tlsCipher', read: (record) => record.tls?.cipher },
    { name: 'tlsResumed', read: (record) => record.tls?.resumed },
  ],
  timings: (['dnsMs', 'connectMs', 'tlsMs', 'ttfbMs', 'totalMs', 'parseMs'] as const).map((name) => ({ name, read: (record) => record.timings?.[name] })),
  warc: [{ name: 'warcFile', read: (record) => record.warc?.file }, { name: 'warcOffset', read: (record) => record.warc?.offset }],
  record: [{ name: 'record', read: (record) => (record.record === undefined ? undefined : JSON.stringify(record.record)) }],
}

function same(name: keyof PageRecord): readonly Column[] {
  return [{ name, read: (record) => record[name] }]
}

const columns = Object.values(columnsOf).flat()

/** A value as one cell; an absent one is an empty cell. */
export function cell(value: unknown): string {
  const text = value === undefined ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvHeader = `${columns.map((column) => cell(column.name)).join(',')}\r\n`

/** One record as one row, with its line end. */
export function csvRow(record: PageRecord): string {
  return `${columns.map((column) => cell(column.read(record))).join(',')}\r\n`
}

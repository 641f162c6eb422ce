/**
 * The columns of each export in their fixed order, as CSV and Parquet have them; the compiler asks for those of a new
 * field. JSON lines have the records as they are. Pure functions.
 */
import type { PageRecord } from '../../core/types.ts'
import type { CellKind, ParquetColumn } from '../../../storage/sinks/parquet.ts'
import type { FailureRecord, HostLine, QueueRecord } from './records.ts'

export interface Column<T> extends ParquetColumn {
  readonly read: (record: T) => unknown
}

/** A field is one column of its name and kind, or those that it names. */
type Fields<T> = Readonly<Record<keyof T & string, CellKind | readonly Column<T>[]>>

const timings = ['dnsMs', 'connectMs', 'tlsMs', 'ttfbMs', 'totalMs', 'parseMs'] as const

/** The redirects that led to a URL. A URL has no spaces, so they separate. */
const chain: readonly Column<{ readonly redirectedFrom?: readonly string[] }>[] = [
  { name: 'redirectedFrom', kind: 'text', read: ({ redirectedFrom }) => redirectedFrom?.join(' ') },
]

export const pageColumns = columnsOf<PageRecord>({
  url: 'text', redirectTo: 'text', redirectedFrom: chain, status: 'integer', outcome: 'text', code: 'text', fetchedAt: 'time',
  depth: 'integer', referrer: 'text', attempts: 'integer', contentType: 'text', charset: 'text', unknownCharset: 'text',
  bytes: 'integer', wireBytes: 'integer', truncated: 'flag', title: 'text', lang: 'text', canonical: 'text',
  refresh: [
    { name: 'refreshSeconds', kind: 'integer', read: ({ refresh }) => refresh?.delaySeconds },
    { name: 'refreshTo', kind: 'text', read: ({ refresh }) => refresh?.url },
  ],
  robots: [
    { name: 'noindex', kind: 'flag', read: ({ robots }) => robots?.noindex },
    { name: 'nofollow', kind: 'flag', read: ({ robots }) => robots?.nofollow },
    { name: 'noarchive', kind: 'flag', read: ({ robots }) => robots?.noarchive },
  ],
  links: 'integer', newLinks: 'integer', nofollowLinks: 'integer', userinfo: 'integer', hash: 'text', unchanged: 'flag', simhash: 'text', nearDuplicate: 'flag', needsJs: 'flag', etag: 'text',
  lastModified: 'text', ip: 'text', gateway: 'text',
  tls: [
    { name: 'tlsVersion', kind: 'text', read: ({ tls }) => tls?.version },
    { name: 'tlsCipher', kind: 'text', read: ({ tls }) => tls?.cipher },
    { name: 'tlsResumed', kind: 'flag', read: ({ tls }) => tls?.resumed },
  ],
  timings: timings.map((name) => ({ name, kind: 'real', read: (record) => record.timings?.[name] })),
  warc: [
    { name: 'warcFile', kind: 'text', read: ({ warc }) => warc?.file },
    { name: 'warcOffset', kind: 'integer', read: ({ warc }) => warc?.offset },
  ],
  record: 'json', sitemap: 'json',
})

export const queueColumns = columnsOf<QueueRecord>({
  url: 'text', host: 'text', kind: 'text', depth: 'integer', priority: 'integer', attempts: 'integer', referrer: 'text', redirectedFrom: chain,
  later: 'flag', notBefore: 'time', sequence: 'integer',
})

export const hostColumns = columnsOf<HostLine>({
  host: 'text', pending: 'integer', excluded: 'flag', limit: 'real', crawlDelayMs: 'real', backoffUntil: 'time', retryAfterUntil: 'time',
  failures: 'integer', failureCode: 'text', health: 'real', givenUpCode: 'text', givenUpAt: 'time', parkedCode: 'text', parkedPrice: 'text', parkedAt: 'time', robots: 'json',
})

export const failureColumns = columnsOf<FailureRecord>({
  url: 'text', host: 'text', kind: 'text', code: 'text', status: 'integer', fetchedAt: 'time', depth: 'integer', priority: 'integer', dueAt: 'time',
})

function columnsOf<T>(fields: Fields<T>): readonly Column<T>[] {
  return Object.entries<CellKind | readonly Column<T>[]>(fields)
    .flatMap(([name, given]) => (typeof given === 'string' ? { name, kind: given, read: (record: T) => record[name as keyof T] } : given))
}

/**
 * Page records of URLs that no worker read: no answer came, or none was asked for. Main thread.
 */
import type { FailureCode } from './core/errors.ts'
import type { Outcome, PageMeta, PageRecord, QueuedUrl, Timings } from './core/types.ts'

export interface EndFacts {
  readonly outcome: Outcome
  readonly code?: FailureCode
  readonly atMs: number
  /** Fetches that were made for the URL. */
  readonly attempts: number
  readonly status?: number
  readonly ip?: string
  readonly gateway?: string
  readonly timings?: Timings
}

/** The record of a URL that ended without a page. */
export function endRecord(url: QueuedUrl, facts: EndFacts): PageRecord {
  return {
    url: url.url,
    ...(url.redirectedFrom && { redirectedFrom: url.redirectedFrom }),
    ...(facts.status !== undefined && { status: facts.status }),
    outcome: facts.outcome,
    ...(facts.code && { code: facts.code }),
    fetchedAt: new Date(facts.atMs).toISOString(),
    depth: url.depth,
    ...(url.referrer && { referrer: url.referrer }),
    attempts: facts.attempts,
    ...(facts.ip && { ip: facts.ip }),
    ...(facts.gateway && { gateway: facts.gateway }),
    ...(facts.timings && { timings: facts.timings }),
    ...(url.kind && { sitemap: {} }),
  }
}

/** The same for a page that was received and that no worker could read. */
export function unreadRecord(url: QueuedUrl, meta: PageMeta, code: FailureCode, wireBytes: number): PageRecord {
  return {
    ...endRecord(url, {
      outcome: 'failed', code, atMs: meta.fetchedAtMs, attempts: meta.attempts, status: meta.status,
      timings: meta.timings, ...(meta.ip !== undefined && { ip: meta.ip }), ...(meta.gateway !== undefined && { gateway: meta.gateway }),
    }),
    ...(meta.contentType && { contentType: meta.contentType }),
    wireBytes,
    ...(meta.tls && { tls: meta.tls }),
  }
}

/** The record as the commit wants it: UTF-8 JSON without its closing brace. */
export function recordLine(record: PageRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record).slice(0, -1))
}

/** The record of a line, as handed to consumers: without `newLinks` and `nearDuplicate`, which only the commit knows. */
export function recordOfLine(line: Uint8Array): PageRecord {
  return JSON.parse(`${Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString()}}`) as PageRecord
}

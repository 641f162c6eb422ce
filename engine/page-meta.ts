/**
 * From a response to what travels with it into the slot. Pure; main thread.
 */
import { limits } from './core/limits.ts'
import type { PageMeta, QueuedUrl, Timings, TlsFacts } from './core/types.ts'
import { headerOf } from './fetch/response-head.ts'

/** A complete answer of a server, as the fetcher gives it. */
export interface Answer {
  readonly status: number
  readonly statusText: string
  /** Name, value, name, value, in the order received. */
  readonly headers: readonly string[]
  readonly truncated: boolean
  readonly ip: string
  readonly tls?: TlsFacts
  readonly timings: Timings
  readonly fetchedAtMs: number
}

/** Milliseconds that a Retry-After asks for (RFC 9110 section 10.2.3: seconds or a date); 0 when absent or nonsense. */
export function retryAfterMs(value: string | undefined, wallMs: number): number {
  if (value === undefined) return 0
  const waitMs = /^\d{1,10}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - wallMs
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(0, waitMs), limits.retryAfterMsMax)
}

/** The facts of a page that its worker needs, and those that only the record needs. */
export function pageMetaOf(url: QueuedUrl, answer: Answer, followLinks: boolean): PageMeta {
  const fact = <K extends string>(key: K, name: string): Partial<Record<K, string>> => {
    const value = headerOf(answer.headers, name)?.trim()
    return value === undefined || value === '' ? {} : ({ [key]: value } as Record<K, string>)
  }
  return {
    url: url.url,
    depth: url.depth,
    attempts: url.attempts + 1,
    ...(url.referrer !== undefined && { referrer: url.referrer }),
    ...(url.redirectedFrom && { redirectedFrom: url.redirectedFrom }),
    status: answer.status,
    statusText: answer.statusText,
    fetchedAtMs: answer.fetchedAtMs,
    ...fact('contentType', 'content-type'),
    ...fact('contentEncoding', 'content-encoding'),
    ...fact('location', 'location'),
    ...fact('etag', 'etag'),
    ...fact('lastModified', 'last-modified'),
    ...fact('robotsTag', 'x-robots-tag'),
    ip: answer.ip,
    ...(answer.tls && { tls: answer.tls }),
    timings: answer.timings,
    truncated: answer.truncated,
    followLinks,
  }
}

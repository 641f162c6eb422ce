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

/** The three forms of a date that RFC 9110 section 5.6.7 names. What else Date.parse takes (`soon 2099`) is a guess of its own. */
const HTTP_DATE = /^(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? .*\d\d:\d\d:\d\d/

/** Milliseconds that a Retry-After asks for (RFC 9110 section 10.2.3: seconds or a date); 0 when absent or nonsense. */
export function retryAfterMs(value: string | undefined, wallMs: number): number {
  const text = value?.trim() ?? ''
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMs(text) - wallMs
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(0, waitMs), limits.retryAfterMsMax)
}

/** Every HTTP date is in GMT, whether it says so (the asctime form does not) or not. */
function httpDateMs(text: string): number {
  return HTTP_DATE.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : Number.NaN
}

/** All values of a header that is a list, as one (RFC 9110 section 5.3); empty without any. */
export function listOf(headers: readonly string[], name: string): string {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]!.toLowerCase() === name).join(', ')
}

/** The facts of a page that its worker needs, and those that only the record needs. */
export function pageMetaOf(url: QueuedUrl, answer: Answer, followLinks: boolean): PageMeta {
  const fact = <K extends string>(key: K, name: string, valueOf = headerOf): Partial<Record<K, string>> => {
    const value = valueOf(answer.headers, name)?.trim()
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
    ...fact('contentEncoding', 'content-encoding', listOf),
    ...fact('location', 'location'),
    ...fact('etag', 'etag'),
    ...fact('lastModified', 'last-modified'),
    ...fact('robotsTag', 'x-robots-tag', listOf),
    ip: answer.ip,
    ...(answer.tls && { tls: answer.tls }),
    timings: answer.timings,
    truncated: answer.truncated,
    followLinks,
    queued: { row: Buffer.from(url.row).toString('hex'), sequence: url.sequence },
  }
}

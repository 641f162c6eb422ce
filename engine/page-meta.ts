/**
 * From a URL to what its request asks for, from a response to what travels with it into the slot, and from there to what
 * is remembered for the next time. Pure; main thread.
 */
import type { PageAnswer } from '../storage/store.ts'
import { fetchUrl, hostOfUrl, makeBase } from './core/fetch-url.ts'
import { limits } from './core/limits.ts'
import type { Format } from './core/options.ts'
import { isRedirectStatus } from './core/redirects.ts'
import type { PageMeta, ParsedResult, PreviousFetch, PreviousPage, QueuedUrl, Timings, TlsFacts } from './core/types.ts'
import { headerOf } from './fetch/response-head.ts'

/** A complete answer of a server, as the fetcher gives it. */
export interface Answer {
  readonly status: number
  readonly statusText: string
  /** Name, value, name, value, in the order received. */
  readonly headers: readonly string[]
  readonly truncated: boolean
  readonly setsCookie?: true
  readonly ip?: string
  readonly gateway?: string
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

/**
 * Milliseconds for which a redirect asks to wait before its target is fetched (RFC 9110 section 10.2.3); 0 when it does not
 * ask, or leads elsewhere: no host can make another one wait.
 */
export function redirectWaitMs(url: Pick<QueuedUrl, 'url' | 'host'>, { status, headers }: Pick<Answer, 'status' | 'headers'>, wallMs: number): number {
  const location = isRedirectStatus(status) ? headerOf(headers, 'location') : undefined
  const target = location === undefined ? undefined : fetchUrl(location, makeBase(url.url))
  return target !== undefined && hostOfUrl(target) === url.host ? retryAfterMs(headerOf(headers, 'retry-after'), wallMs) : 0
}

/** Every HTTP date is in GMT, whether it says so (the asctime form does not) or not. NaN: it is none. */
export function httpDateMs(text: string): number {
  return HTTP_DATE.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : Number.NaN
}

/** All values of a header that is a list, as one (RFC 9110 section 5.3); empty without any. */
export function listOf(headers: readonly string[], name: string): string {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]!.toLowerCase() === name).join(', ')
}

/**
 * Header fields with which the server may answer 304 (RFC 9110 section 13.1); undefined when it must send the page.
 * Validators are kept of pages that were read and of no others, so what they vouch for is known. An archive that does not
 * hold the payload yet needs it whole.
 */
export function conditionsOf({ previous }: QueuedUrl, formats: readonly Format[]): Readonly<Record<string, string>> | undefined {
  const { etag, lastModified, payloadDigest } = previous ?? {}
  if (etag === undefined && lastModified === undefined) return undefined
  if (formats.includes('warc') && payloadDigest === undefined) return undefined
  return { ...(etag !== undefined && { 'if-none-match': etag }), ...(lastModified !== undefined && { 'if-modified-since': lastModified }) }
}

function previousPage(previous: PreviousFetch, isConditional: boolean): PreviousPage {
  const { contentHash, payloadDigest, payloadAtMs } = previous
  return {
    isConditional, ...(contentHash && { contentHash: hexOf(contentHash) }), ...(payloadDigest && { payloadDigest: hexOf(payloadDigest) }),
    ...(payloadAtMs !== undefined && { payloadAtMs }),
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** What is remembered of an answer for the next fetch. Of a page that was not read now, what was read before stands, unless it has moved or is gone. */
export function pageAnswerOf({ previous }: QueuedUrl, meta: PageMeta, { outcome, contentHash, warc }: Pick<ParsedResult, 'outcome' | 'contentHash' | 'warc'>): PageAnswer {
  const { status } = meta
  if (outcome === 'ok') return { status, ...(contentHash && { contentHash }), ...validatorsOf(meta), ...payloadOf(warc?.payloadDigest, meta) }
  if (outcome === 'redirect' || status === 404 || status === 410) return { status, ...payloadOf(warc?.payloadDigest, meta) }
  return { ...readBefore(previous), ...(outcome === 'not_modified' && validatorsOf(meta)), status }
}

function readBefore(previous: PreviousFetch | undefined): Partial<PageAnswer> {
  if (previous === undefined) return {}
  const { fetchedAtMs: _fetchedAtMs, intervalMs: _intervalMs, goneTimes: _goneTimes, ...read } = previous
  return read
}

function validatorsOf({ etag, lastModified }: PageMeta): Partial<PageAnswer> {
  return { ...(isShort(etag) && { etag }), ...(isShort(lastModified) && { lastModified }) }
}

function isShort(text: string | undefined): text is string {
  return text !== undefined && text.length <= limits.validatorCharsMax
}

/** A payload that is the same as before was not stored again: its record is the earlier one. */
function payloadOf(payloadDigest: Uint8Array | undefined, { fetchedAtMs, previous }: PageMeta): Partial<PageAnswer> {
  if (payloadDigest === undefined) return {}
  const isSame = previous?.payloadAtMs !== undefined && previous.payloadDigest === hexOf(payloadDigest)
  return { payloadDigest, payloadAtMs: isSame ? previous.payloadAtMs : fetchedAtMs }
}

/** The facts of a page that its worker needs, and those that only the record needs. `isConditional`: it was asked for with `conditionsOf`. */
export function pageMetaOf(url: QueuedUrl, answer: Answer, followLinks: boolean, isConditional = false): PageMeta {
  const { previous } = url
  // A 304 need not repeat its validators.
  const known = isConditional && answer.status === 304 ? previous : undefined
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
    ...fact('refresh', 'refresh'),
    ...(known?.etag !== undefined && { etag: known.etag }),
    ...fact('etag', 'etag'),
    ...(known?.lastModified !== undefined && { lastModified: known.lastModified }),
    ...fact('lastModified', 'last-modified'),
    ...(answer.setsCookie && { setsCookie: true }),
    ...(answer.ip !== undefined && { ip: answer.ip }),
    ...(answer.gateway !== undefined && { gateway: answer.gateway }),
    ...(answer.tls && { tls: answer.tls }),
    timings: answer.timings,
    truncated: answer.truncated,
    followLinks,
    queued: { row: Buffer.from(url.row).toString('hex'), sequence: url.sequence },
    ...(previous && { previous: previousPage(previous, isConditional) }),
  }
}

/**
 * The dedupe key of a URL and the hashes made from it. The key tells whether two URLs are one and is never requested:
 * what is fetched is the URL as resolved, what is compared is its key. Leaf module; runs in workers and on the main
 * thread, which must agree, so this is the only place that makes keys.
 *
 * The key is the WHATWG serialisation without fragment, and with
 *   - percent-escapes of unreserved characters decoded, other escapes in upper case (RFC 3986 section 6.2.2);
 *   - an empty query (`/a?`) dropped, a trailing dot of the host name dropped.
 * The order of query parameters is kept, and nothing is removed from the query: to some servers each of these matters.
 */
import * as crypto from 'node:crypto'
import { limits } from './limits.ts'

/** Names that no resolver knows, and that a trailing dot would make ambiguous: `.`, `.a`, `a..b`. */
const EMPTY_LABEL = /^\.|\.\./

/**
 * Parses and bounds a URL, without fragment and without user information: credentials in a link are seldom meant and
 * never ours, and what is fetched, stored, logged and exported must not carry them. Undefined when it is not http(s),
 * too long or no URL.
 */
export function parseFetchUrl(text: string, base?: string): URL | undefined {
  if (text.length > limits.urlBytesMax) return undefined
  const url = URL.parse === undefined ? parseOrUndefined(text, base) : (URL.parse(text, base) ?? undefined)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  if (url.hash !== '' || url.href.endsWith('#')) url.hash = ''
  if (url.username !== '') url.username = ''
  if (url.password !== '') url.password = ''
  return EMPTY_LABEL.test(url.hostname) || url.href.length > limits.urlBytesMax ? undefined : url
}

// URL.parse is documented from Node 22.1; later releases of 20 have it too. An exception costs more, but is rare.
function parseOrUndefined(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

const ESCAPE = /%[0-9a-fA-F]{2}/g
const STRAY_PERCENT = /%(?![0-9a-fA-F]{2})/
const UNRESERVED = /[A-Za-z0-9\-._~]/

function normalEscape(escape: string): string {
  const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
  return UNRESERVED.test(character) ? character : escape.toUpperCase()
}

/** Path or query with normal escapes. Beside a stray `%` nothing is decoded: `%%32F` would become `%2F`, another resource. */
function normalEscapes(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(ESCAPE, STRAY_PERCENT.test(text) ? (escape) => escape.toUpperCase() : normalEscape)
}

/** The key of a URL that `parseFetchUrl` gave. */
export function urlKey(url: URL): string {
  const port = url.port === '' ? '' : `:${url.port}`
  return `${url.protocol}//${hostOf(url)}${port}${normalEscapes(url.pathname)}${normalEscapes(url.search)}`
}

/** 16 bytes: the first 128 bits of SHA-256 of the key. */
export function fingerprintOf(key: string): Uint8Array {
  return sha256(key).subarray(0, 16)
}

/** 8 bytes: the first 64 bits of SHA-256 of the host name; two names may share it, so the store checks the name. */
export function hostHashOf(host: string): Uint8Array {
  return sha256(host).subarray(0, 8)
}

/** The host name that keys queue, limiter and counts: as in the URL, without a trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.endsWith('.') ? url.hostname.slice(0, -1) : url.hostname
}

// crypto.hash is ten times cheaper than createHash for short inputs (measured: 0.3 against 3.2 microseconds).
function sha256(data: string | Uint8Array): Uint8Array {
  return crypto.hash('sha256', data, 'buffer')
}

/** The first 128 bits of SHA-256 of a body. */
export function contentHashOf(body: Uint8Array): Uint8Array {
  return sha256(body).subarray(0, 16)
}

/**
 * The dedupe key of a URL and the hashes made from it. The key tells whether two URLs are one and is never requested:
 * what is fetched is the URL as resolved (fetch-url.ts), what is compared is its key. Leaf module; runs in workers and
 * on the main thread, which must agree, so this is the only place that makes keys.
 *
 * The policy. Always, since no server can mean two things by them (RFC 3986 section 6.2.2): to what the URL standard
 * has made equal already (letter case of scheme and host, default port, dot segments, fragment) is added
 *   - escapes of unreserved characters decoded, other escapes in upper case; an escape right behind a stray `%` is not
 *     decoded, because `%%32F` would become `%2F`, another resource;
 *   - an empty query (`/a?`) dropped, a trailing dot of the host name dropped.
 * The order of query parameters is kept, and nothing is removed. By choice (the option `dedupe`), since to some servers
 * each of these matters:
 *   tracking  parameters that name the advertisement or mail that led to the page are dropped (`isTracking`)
 *   session   session identifiers are dropped from path and query (`isSession`, `withoutPathSessions`)
 *   order     parameters are sorted by name; those of one name keep their order
 *   slash     one slash at the end of a path is dropped: `/a/` and `/a` are one, `/a//` is another
 *   www       one leading label `www` is dropped where a name with a dot is left: `www.a.test` and `a.test` are one
 *
 * Invariant: the key of a key is the key, and a key is a URL that `fetchUrl` leaves as it is.
 * Measured on the 101,591 fetch URLs of the corpus pages, Node 20: 120 ns a key with no rule chosen (99.6 % are their own
 * keys), 230 with `tracking`, 440 with all.
 */
import * as crypto from 'node:crypto'
import { hostOfUrl } from './fetch-url.ts'

export const dedupeRules = ['tracking', 'session', 'order', 'slash', 'www'] as const
export type DedupeRule = (typeof dedupeRules)[number]

/** Which rules make keys besides those that always do. */
export type KeyPolicy = Readonly<Record<DedupeRule, boolean>> & { readonly isPlain: boolean }

export function keyPolicyOf(rules: readonly DedupeRule[]): KeyPolicy {
  const chosen = Object.fromEntries(dedupeRules.map((rule) => [rule, rules.includes(rule)])) as Record<DedupeRule, boolean>
  return Object.freeze({ ...chosen, isPlain: rules.length === 0 })
}

/** No rule but those that always hold. */
export const plainKeys = keyPolicyOf([])

const ESCAPE = /%[0-9a-fA-F]{2}/g

/** What escapes of unreserved characters stand for, by the escape in upper case. */
const unreservedOf: ReadonlyMap<string, string> = new Map(
  Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~', (character) =>
    [`%${character.charCodeAt(0).toString(16).toUpperCase()}`, character]),
)

/** An escape in lower case, or of an unreserved character. Most texts with escapes have neither, and are left as they are. */
const IRREGULAR = /%(?:[0-9A-Fa-f]?[a-f]|2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)/

/** `%` and perhaps one digit, right before an escape: such a sign belongs to none, or the escape would begin elsewhere. */
const STRAY_BEFORE = /%[0-9A-Fa-f]?$/

function normalEscapes(text: string): string {
  if (!IRREGULAR.test(text)) return text
  return text.replace(ESCAPE, (escape, at: number) => {
    const upper = escape.toUpperCase()
    return STRAY_BEFORE.test(text.slice(Math.max(0, at - 2), at)) ? upper : unreservedOf.get(upper) ?? upper
  })
}

/** The key of a URL that `fetchUrl` gave; the same string where nothing is to change. */
export function keyOf(url: string, policy: KeyPolicy): string {
  const pathAt = url.indexOf('/', 8)
  const queryAt = url.indexOf('?', pathAt)
  const hasDot = url[pathAt - 1] === '.' || url.lastIndexOf('.:', pathAt) > 0
  const hasEscape = url.includes('%', pathAt)
  const isRegular = !hasDot && !hasEscape && queryAt !== url.length - 1
  if (isRegular && (policy.isPlain || !isTouched(url, queryAt, policy))) return url
  const origin = hasDot || policy.www ? keyOrigin(url, pathAt, policy) : url.slice(0, pathAt)
  const pathEnd = queryAt < 0 ? url.length : queryAt
  const [path, query] = [url.slice(pathAt, pathEnd), url.slice(pathEnd + 1)]
  return origin + keyPath(hasEscape ? normalEscapes(path) : path, policy) + keyQuery(hasEscape ? normalEscapes(query) : query, policy)
}

/** Whether a rule that was chosen may find something; most URLs have no query, and need not be taken apart. */
function isTouched(url: string, queryAt: number, { tracking, session, order, slash, www }: KeyPolicy): boolean {
  if (queryAt >= 0 && (tracking || session || order)) return true
  if (session && url.includes(';')) return true
  return (slash && url[queryAt < 0 ? url.length - 1 : queryAt - 1] === '/') || (www && url.includes('//www.'))
}

function keyOrigin(url: string, pathAt: number, policy: KeyPolicy): string {
  const host = hostOfUrl(url)
  const hostAt = url.indexOf('//') + 2
  const port = url.slice(hostAt + host.length, pathAt).replace('.', '')
  return url.slice(0, hostAt) + (policy.www ? withoutWww(host) : host) + port
}

/** Only one `www.`, and only where the rest has a dot and no further one: so a name has one twin at most, and the rest is a name of a site. */
function withoutWww(host: string): string {
  if (!host.startsWith('www.') || host.startsWith('www.', 4)) return host
  return host.includes('.', 4) ? host.slice(4) : host
}

/** The other host whose URLs may have the keys of this one's, by the rule `www`; undefined: there is none. */
export function twinHostOf(host: string): string | undefined {
  const bare = withoutWww(host)
  if (bare !== host) return bare
  return withoutWww(`www.${host}`) === host ? `www.${host}` : undefined
}

function keyPath(path: string, policy: KeyPolicy): string {
  const kept = policy.session && path.includes(';') ? withoutPathSessions(path) : path
  return policy.slash && kept.length > 1 && kept.endsWith('/') && !kept.endsWith('//') ? kept.slice(0, -1) : kept
}

/** `;jsessionid=...` up to the next `;` or `/` (Jakarta Servlet section 7.1.3); the `/.` and `/..` that it may follow would be dot segments. */
const PATH_SESSION = /(?<!\/\.\.?);jsessionid=[^;/]*/gi

function withoutPathSessions(path: string): string {
  return path.replace(PATH_SESSION, '')
}

function keyQuery(query: string, policy: KeyPolicy): string {
  if (query === '') return ''
  if (!policy.tracking && !policy.session && !policy.order) return `?${query}`
  let parameters = query.split('&')
  if (policy.tracking || policy.session) parameters = parameters.filter((parameter) => !isDropped(parameter, policy))
  if (policy.order) parameters.sort(byName)
  const kept = parameters.join('&')
  return kept === '' ? '' : `?${kept}`
}

function nameOf(parameter: string): string {
  const end = parameter.indexOf('=')
  return end < 0 ? parameter : parameter.slice(0, end)
}

/** In the order of code units, which no locale changes; Array.sort keeps the order of equals. */
function byName(one: string, other: string): number {
  const [a, b] = [nameOf(one), nameOf(other)]
  if (a === b) return 0
  return a < b ? -1 : 1
}

function isDropped(parameter: string, policy: KeyPolicy): boolean {
  const name = nameOf(parameter).toLowerCase()
  return (policy.tracking && isTracking(name)) || (policy.session && isSession(name, parameter.slice(name.length + 1)))
}

/**
 * What click and mail services append to the address of whoever uses them; none of them names a resource. From the query
 * filter of the Brave browser (brave_query_filter.cc) and uBlock's list LegitimateURLShortener, without the names that
 * sites use for things of their own too (`s_cid`, `ref_src`, `spm`); those after the empty line are in neither, but in
 * lists of click identifiers and in what caches strip (`_ga` in Magento's Varnish configuration).
 */
const trackingNames: ReadonlySet<string> = new Set([
  // Google
  'gclid', 'gclsrc', 'dclid', 'gbraid', 'wbraid', 'srsltid',
  // Meta, Microsoft, Yandex, Openstat, X
  'fbclid', 'igshid', 'msclkid', 'yclid', 'ysclid', '_openstat', 'twclid',
  // Mailchimp, HubSpot, Marketo, Vero, Omeda, Drip, MailerLite
  'mc_cid', 'mc_eid', '_hsenc', '__hssc', '__hstc', '__hsfp', 'hsctatracking', 'mkt_tok', 'vero_id', 'vero_conv', 'oly_anon_id', 'oly_enc_id', '__s',
  'ml_subscriber', 'ml_subscriber_hash',

  '_ga', '_gl', 'igsh', 'ttclid', 'li_fat_id', '_hsmi',
])

/** `utm_*` are Google Analytics' own parameters, of which there are more with the years; `name` in lower case. */
function isTracking(name: string): boolean {
  return name.startsWith('utm_') || trackingNames.has(name)
}

const sessionNames: ReadonlySet<string> = new Set(['jsessionid', 'phpsessid', 'cfid', 'cftoken'])
const maybeSessionNames: ReadonlySet<string> = new Set(['sid', 'sessionid', 'session_id'])
const LONG_HEX = /^[0-9a-f]{16,}$/i

/**
 * The names of Java's, PHP's, ColdFusion's and ASP's own sessions (`ASPSESSIONIDQABCDEFG`), which Heritrix's rules
 * StripSessionIDs and StripSessionCFIDs drop; and `sid` and the like with a long hexadecimal value only (Heritrix asks for
 * 32 characters), since sites, stations and sections have a `sid` too. `name` in lower case.
 */
function isSession(name: string, value: string): boolean {
  return sessionNames.has(name) || name.startsWith('aspsessionid') || (maybeSessionNames.has(name) && LONG_HEX.test(value))
}

/**
 * Of a sitemap, by the key of its address: the page of the same address, which some page may link to, is another URL of the
 * crawl. No key begins like this one.
 */
export function sitemapFingerprintOf(key: string): Uint8Array {
  return fingerprintOf(`sitemap ${key}`)
}

/** 16 bytes: the first 128 bits of SHA-256 of the key. */
export function fingerprintOf(key: string): Uint8Array {
  const bytes = new Uint8Array(16)
  // A text (binary: a character a byte) costs 0.44 microseconds with this loop; a Buffer and a view of it 1.0 to 1.5 (measured on Node 20.20).
  const digest = crypto.hash('sha256', key, 'binary')
  for (let at = 0; at < 16; at += 1) bytes[at] = digest.charCodeAt(at)
  return bytes
}

/** 8 bytes: the first 64 bits of SHA-256 of the host name; two names may share it, so the store checks the name. */
export function hostHashOf(host: string): Uint8Array {
  return sha256(host).subarray(0, 8)
}

// crypto.hash is ten times cheaper than createHash for short inputs (measured: 0.3 against 3.2 microseconds).
function sha256(data: string | Uint8Array): Uint8Array {
  return crypto.hash('sha256', data, 'buffer')
}

/** The first 128 bits of SHA-256 of a body. */
export function contentHashOf(body: Uint8Array): Uint8Array {
  return sha256(body).subarray(0, 16)
}

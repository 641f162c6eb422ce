/**
 * The URL that is fetched: a text and what it is relative to, to the URL standard's serialisation without fragment and
 * without user information (credentials in a link are seldom meant and never ours: what is fetched, stored, logged and
 * exported must not carry them). Strings in, strings out. Leaf module; runs in workers and on the main thread.
 *
 * Invariant: `fetchUrl` answers what Node's `URL` answers, or nothing: for hosts that can be none and ports of other
 * protocols. The quick path is taken only by texts that the standard leaves as they are, so that its answer is a prefix
 * and a piece of the text; each other text goes to `URL.parse`:
 *   - forms: `http(s)://host...`, `//host...`, `/path`, `path`, `?query`, `#fragment` and nothing;
 *   - host: letters in lower case, digits, `-` and `_`, no empty label and none too long; none is `xn--...` (punycode is checked by the
 *     standard), the last one does not begin with a digit (it may be an IPv4 address); no port, no user;
 *   - path: characters that are in no percent-encode set, no segment that begins with a dot, no `%2e`;
 *   - query: characters that are in no percent-encode set; a fragment may hold anything, since it is dropped.
 * A test holds this equal to `URL` on generated texts, the standard's own cases, and every href of the corpus.
 *
 * Measured on the 103,416 hrefs of the corpus pages (51 characters in the mean), Node 20, nanoseconds an href in one run:
 * `fetchUrl` 265, `URL.parse(text, base).href` 665, that with the setters of a URL object for fragment and user 800. 93.4 %
 * take the quick path, 1.8 % name another scheme, 4.9 % go to `URL.parse`. In another run those that need no URL object took
 * 205, the rest 1,450.
 */
import { isBlockedPort } from './blocked-ports.ts'
import { limits } from './limits.ts'
import type { RefusalReason } from './types.ts'

/** A base URL, taken apart once for a document. Made by `makeBase`. */
export interface Base {
  /** The whole of it, as `fetchUrl` gives it. */
  readonly href: string
  /** `https:` */
  readonly scheme: string
  /** `https://a.test:81` */
  readonly origin: string
  /** Without its query. */
  readonly page: string
  /** Up to the last slash of its path. */
  readonly directory: string
}

const [TAB, LINE_FEED, RETURN, SPACE, HASH, PERCENT] = [0x09, 0x0a, 0x0d, 0x20, 0x23, 0x25]
const [DOT, SLASH, ZERO, TWO, NINE, COLON, QUESTION] = [0x2e, 0x2f, 0x30, 0x32, 0x39, 0x3a, 0x3f]
const [UPPER_E, LOWER_E, LOWER_H, LOWER_X] = [0x45, 0x65, 0x68, 0x78]

const IN_HOST = 1
const IN_PATH = 2
const IN_QUERY = 4
const IN_SCHEME = 8
const LETTER = 16

/** What each ASCII character may be part of on the quick path. */
const classOf = new Uint8Array(128)

function classify(characters: string, kinds: number): void {
  for (let at = 0; at < characters.length; at += 1) classOf[characters.charCodeAt(at)]! |= kinds
}

classify('abcdefghijklmnopqrstuvwxyz', IN_HOST | IN_PATH | IN_QUERY | IN_SCHEME | LETTER)
classify('ABCDEFGHIJKLMNOPQRSTUVWXYZ', IN_PATH | IN_QUERY | IN_SCHEME | LETTER)
classify('0123456789', IN_HOST | IN_PATH | IN_QUERY | IN_SCHEME)
classify('-', IN_HOST | IN_PATH | IN_QUERY | IN_SCHEME)
classify('_', IN_HOST | IN_PATH | IN_QUERY)
classify('+.', IN_PATH | IN_QUERY | IN_SCHEME)
classify('!$&()*,/:;=@~%', IN_PATH | IN_QUERY)
// The query of an http URL has its apostrophes escaped, and the path has not; brackets and the question mark are the other way round.
classify("'", IN_PATH)
classify('?[]', IN_QUERY)

/** Where the host ends that begins at `from`; -1: not for the quick path. */
function endOfHost(text: string, from: number): number {
  let label = from
  let at = from
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (!isQuickLabel(text, label, at)) return -1
      label = at + 1
      continue
    }
    if (code === SLASH || code === QUESTION || code === HASH) break
    if (code > 127 || (classOf[code]! & IN_HOST) === 0) return -1
  }
  if (!isQuickLabel(text, label, at) || at - from > limits.hostBytesMax) return -1
  const first = text.charCodeAt(label)
  return first >= ZERO && first <= NINE ? -1 : at
}

function isQuickLabel(text: string, from: number, end: number): boolean {
  const isPunycode = text.charCodeAt(from) === LOWER_X && text.startsWith('xn--', from)
  return end > from && end - from <= limits.hostLabelBytesMax && !isPunycode
}

/** Where the path and query end of which a segment begins at `from`; -1: not for the quick path. */
function endOfPath(text: string, from: number): number {
  let before = SLASH
  let at = from
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUESTION) return endOfQuery(text, at + 1)
    if (code === HASH) return at
    if (code > 127 || (classOf[code]! & IN_PATH) === 0) return -1
    if (code === DOT && before === SLASH) return -1
    if (code === PERCENT && isEscapedDot(text, at)) return -1
    before = code
  }
  return at
}

function isEscapedDot(text: string, percent: number): boolean {
  if (text.charCodeAt(percent + 1) !== TWO) return false
  const code = text.charCodeAt(percent + 2)
  return code === LOWER_E || code === UPPER_E
}

function endOfQuery(text: string, from: number): number {
  let at = from
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === HASH) return at
    if (code > 127 || (classOf[code]! & IN_QUERY) === 0) return -1
  }
  return at
}

/** A prefix and the text up to `end`; undefined where the end is -1. */
function joined(prefix: string, text: string, end: number): string | undefined {
  if (end < 0) return undefined
  return prefix + (end === text.length ? text : text.slice(0, end))
}

/** `//host...` with the host at `from`, and what must stand before it. */
function quickAbsolute(scheme: string, text: string, from: number): string | undefined {
  const hostEnd = endOfHost(text, from)
  if (hostEnd < 0) return undefined
  const code = text.charCodeAt(hostEnd)
  if (code === SLASH) return joined(scheme, text, endOfPath(text, hostEnd + 1))
  // Here the path is empty, which is written as a slash.
  const end = code === QUESTION ? endOfQuery(text, hostEnd + 1) : hostEnd
  return end < 0 ? undefined : `${scheme}${text.slice(0, hostEnd)}/${text.slice(hostEnd, end)}`
}

/** Undefined: not for the quick path. */
function quickUrl(text: string, base: Base | undefined): string | undefined {
  const first = text.charCodeAt(0)
  if (first === LOWER_H) {
    if (text.startsWith('https://')) return quickAbsolute('', text, 8)
    if (text.startsWith('http://')) return quickAbsolute('', text, 7)
  }
  if (base === undefined) return undefined
  if (first === SLASH) {
    return text.charCodeAt(1) === SLASH ? quickAbsolute(base.scheme, text, 2) : joined(base.origin, text, endOfPath(text, 1))
  }
  // Of a base with an empty query Node keeps `?` or not, depending on the form.
  if (first === HASH || text.length === 0) return base.href.endsWith('?') ? undefined : base.href
  if (first === QUESTION) return joined(base.page, text, endOfQuery(text, 1))
  return mayHaveScheme(text) ? undefined : joined(base.directory, text, endOfPath(text, 0))
}

function mayHaveScheme(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === COLON) return true
    if (code === SLASH || code === QUESTION || code === HASH) return false
  }
  return false
}

/**
 * Whether a text names a scheme other than http and https, by the standard's "scheme start state" and "scheme state":
 * controls and spaces before it do not count, nor do tabs and line ends within.
 */
function hasForeignScheme(text: string): boolean {
  let at = 0
  while (at < text.length && text.charCodeAt(at) <= SPACE) at += 1
  let name = ''
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === COLON) return name !== '' && !isHttp(name)
    if (code === TAB || code === LINE_FEED || code === RETURN) continue
    if (code > 127 || (classOf[code]! & (name === '' ? LETTER : IN_SCHEME)) === 0) return false
    // One letter more than `https` tells that it is another.
    if (name.length <= 5) name += text[at]!
  }
  return false
}

function isHttp(scheme: string): boolean {
  const name = scheme.toLowerCase()
  return name === 'http' || name === 'https'
}

/** The whole serialisation of an http(s) URL, however long it becomes, without fragment and user information. */
function slowUrl(text: string, base: Base | undefined): string | undefined {
  const href = (URL.parse === undefined ? parseOrUndefined(text, base?.href) : URL.parse(text, base?.href))?.href
  if (href === undefined || !(href.startsWith('http://') || href.startsWith('https://'))) return undefined
  const hash = href.indexOf('#')
  const end = hash < 0 ? href.length : hash
  const at = href.lastIndexOf('@', pathStart(href))
  return at < 0 ? href.slice(0, end) : `${href.slice(0, authorityStart(href))}${href.slice(at + 1, end)}`
}

// URL.parse is documented from Node 22.1; later releases of 20 have it too. An exception costs more, but is rare. Asking
// URL.canParse first would be wrong: in Node 20.20 it refuses `//é.test` once V8 has compiled its caller.
function parseOrUndefined(text: string, base: string | undefined): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

function authorityStart(href: string): number {
  return href.charCodeAt(4) === COLON ? 7 : 8
}

/** A host has a letter at least, so the first slash from the eighth character on begins the path, with http and with https. */
function pathStart(href: string): number {
  return href.indexOf('/', 8)
}

/**
 * Whether a name server could know the host: no empty label (`.`, `.a`, `a..b`, which a trailing dot would make
 * ambiguous too), and no longer than a name may be (RFC 1035 section 2.3.4). An IPv6 address has no dot.
 */
function isName(host: string): boolean {
  if (host.length > limits.hostBytesMax) return false
  return host.split('.').every(({ length }) => length > 0 && length <= limits.hostLabelBytesMax)
}

/** The port that a serialised URL names, which is never its scheme's own. */
function portOf(href: string): number | undefined {
  const at = href.lastIndexOf(':', pathStart(href))
  const port = at < 8 ? Number.NaN : Number(href.slice(at + 1, pathStart(href)))
  // In `http://[::1]/` the last colon is in the address.
  return Number.isNaN(port) ? undefined : port
}

function faultOf(href: string): Exclude<UrlFault, 'scheme'> | undefined {
  if (href.length > limits.urlBytesMax) return 'too_long'
  if (!isName(hostOfUrl(href))) return 'invalid'
  const port = portOf(href)
  return port !== undefined && isBlockedPort(port) ? 'port' : undefined
}

/** Why there is nothing to fetch. */
export type UrlFault = Extract<RefusalReason, 'invalid' | 'scheme' | 'too_long' | 'port'>

/**
 * The URL to fetch, as the standard writes it. Undefined when it is not http(s), no URL, has a host that can be none, a
 * port of another protocol, or when the text or the URL is longer than `limits.urlBytesMax`. None but what `URL.parse`
 * read can have a port: the quick path leaves it out, and a base that has one was looked at when it was made.
 */
export function fetchUrl(text: string, base?: Base): string | undefined {
  if (text.length > limits.urlBytesMax) return undefined
  const quick = quickUrl(text, base)
  if (quick !== undefined) return quick.length > limits.urlBytesMax ? undefined : quick
  if (hasForeignScheme(text)) return undefined
  const href = slowUrl(text, base)
  return href === undefined || faultOf(href) !== undefined ? undefined : href
}

/** Why `fetchUrl` gave nothing for a text. */
export function refusalOf(text: string, base?: Base): UrlFault {
  if (hasForeignScheme(text)) return 'scheme'
  if (text.length > limits.urlBytesMax) return 'too_long'
  const href = slowUrl(text, base)
  return href === undefined ? 'invalid' : faultOf(href) ?? 'invalid'
}

/** The base that a text names, by the rules of `fetchUrl`; what is relative to a URL does not depend on its fragment and user. */
export function makeBase(text: string, against?: Base): Base | undefined {
  const href = fetchUrl(text, against)
  if (href === undefined) return undefined
  const pathAt = pathStart(href)
  const queryAt = href.indexOf('?', pathAt)
  const page = queryAt < 0 ? href : href.slice(0, queryAt)
  return Object.freeze({
    href, page,
    scheme: href.slice(0, authorityStart(href) - 2),
    origin: href.slice(0, pathAt),
    directory: page.slice(0, page.lastIndexOf('/') + 1),
  })
}

/** The host name that keys queue, limiter and counts, of a URL that `fetchUrl` gave: without port and trailing dot, an IPv6 address in its brackets. */
export function hostOfUrl(href: string): string {
  const start = authorityStart(href)
  const pathAt = pathStart(href)
  const portAt = href.indexOf(':', href[start] === '[' ? href.indexOf(']', start) : start)
  const end = portAt < 0 || portAt > pathAt ? pathAt : portAt
  return href.slice(start, href.charCodeAt(end - 1) === DOT ? end - 1 : end)
}

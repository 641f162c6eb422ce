/**
 * Which answers are redirects, and where they lead: pages, robots.txt and sitemaps alike. Leaf module; pure.
 *
 * A status that is not known counts as 300 (RFC 9110 section 15), whose Location a client may follow. Not so 304, which
 * has no content of its own, 305, whose Location names a proxy, and 306, which has no meaning any more.
 */
import { fetchUrl, makeBase, refusalOf } from './fetch-url.ts'
import { limits } from './limits.ts'
import type { PageMeta, RefusalReason } from './types.ts'
import { withoutUser } from './url-text.ts'

/** A 3xx status whose Location, if it has one, is the next address. */
export function isRedirectStatus(status: number): boolean {
  return status >= 300 && status < 400 && (status < 304 || status > 306)
}

/** The server says that the address is another one from now on (RFC 9110 sections 15.4.2 and 15.4.9). */
export function isMovedForGood(status: number): boolean {
  return status === 301 || status === 308
}

/** An address that may be followed; or what was written in its place, and why it is none. */
export type Target = { readonly url: string } | { readonly refused: RefusalReason; readonly text: string }

/** Where an answer says that its page is, without a page of its own. Undefined: it is no redirect. */
export function locationOf({ url, status, location }: Pick<PageMeta, 'url' | 'status' | 'location'>): Target | undefined {
  return location === undefined || !isRedirectStatus(status) ? undefined : targetOf(escapedBytes(location), url)
}

/** The address that a text means; `base`: that of what it stands in. */
export function targetOf(text: string, base: string): Target {
  const against = makeBase(base)
  const url = fetchUrl(text, against)
  return url === undefined ? { refused: refusalOf(text, against), text: withoutUser(text).slice(0, limits.urlBytesMax) } : { url }
}

/**
 * A header is bytes, here one a character. Those beyond ASCII are kept as they are, so that a server gets back what it
 * sent, in whatever encoding: as Chrome does it, and the test redirect-location-escape of web-platform-tests asks.
 */
export function escapedBytes(text: string): string {
  return text.replaceAll(/[\u0080-\u00FF]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}

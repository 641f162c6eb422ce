/**
 * Which answers are redirects. Leaf module; pure.
 *
 * A status that is not known counts as 300 (RFC 9110 section 15), whose Location a client may follow. Not so 304, which
 * has no content of its own, 305, whose Location names a proxy, and 306, which has no meaning any more.
 */

/** A 3xx status whose Location, if it has one, is the next address. */
export function isRedirectStatus(status: number): boolean {
  return status >= 300 && status < 400 && (status < 304 || status > 306)
}

/** The server says that the address is another one from now on (RFC 9110 sections 15.4.2 and 15.4.9). */
export function isMovedForGood(status: number): boolean {
  return status === 301 || status === 308
}

/**
 * Paths of URLs and patterns of robots.txt in the one form in which they are compared (RFC 9309 section 2.2.2), so that
 * comparing is comparing characters. Pure; patterns are brought into it in a parse worker, paths on the main thread.
 *
 *   - escapes of unreserved characters are decoded, the others have upper-case digits: `%7ejoe` is `~joe`, `%2f` is `%2F`;
 *   - what may not stand in a URI is escaped as UTF-8, and so is the apostrophe, which URLs have escaped in queries only;
 *   - reserved characters stay as they are: `/` and `%2F` are two things, and so are `:` and `%3A`;
 *   - in a path, `*` and `$` are escaped, as they are in a pattern that means the characters themselves (section 2.2.3).
 *
 * The answer is ASCII. It is a text of its own length at most six times: a byte that is no UTF-8 was read as Latin-1.
 */

// RFC 3986 section 2.3: letters, digits, hyphen, period, underscore, tilde.
const UNRESERVED = /[\w\-.~]/
const ESCAPE = /%[\da-f]{2}/gi
/** All but unreserved, reserved (section 2.2) and the percent sign; and the apostrophe. */
const UNSAFE = /[^\w\-.~:/?#[\]@!$&()*+,;=%]+/gu

function comparable(text: string): string {
  return text
    .replace(ESCAPE, (escape) => {
      const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
      return UNRESERVED.test(character) ? character : escape.toUpperCase()
    })
    .replace(UNSAFE, (run) => encodeURIComponent(run).replaceAll("'", '%27'))
}

/** The path and query of a parsed URL. */
export function comparablePath({ pathname, search }: URL): string {
  return comparable(pathname + search).replaceAll('*', '%2A').replaceAll('$', '%24')
}

/** A pattern: `*` in it is a wildcard, one at a time, and `$` at its end the end of the path. */
export function comparablePattern(text: string): string {
  return comparable(text).replaceAll(/\*{2,}/g, '*').replaceAll(/\$(?=.)/g, '%24')
}

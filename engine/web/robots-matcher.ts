/**
 * Whether the rules of one robots.txt allow a URL. The only file that imports robots-parser, which gets the lines of
 * our group alone, under `User-agent: *`: which group is ours is decided where the file is read (robots-parser loses
 * groups that a Sitemap line interrupts, and does not know a full user agent). Main thread.
 *
 * Two things are done for it. Escapes of unreserved characters are decoded in patterns and in URLs, since RFC 9309
 * section 2.2.2 has both compared so and robots-parser compares as written. And it is asked about the path under an
 * origin of our own, since it answers nothing for a URL of another origin than that of the file.
 *
 * Its work grows with rules x pattern x path; the reader bounds the first two (limits.robotsRulesMax and
 * robotsPatternCharsMax), the third is a URL.
 */
import robotsParserModule from 'robots-parser'

// Its types speak of an ES module with a default export; it is a CommonJS module that is the function.
const robotsParser = robotsParserModule as unknown as typeof robotsParserModule.default

export interface RobotsMatcher {
  isAllowed(url: URL): boolean
}

const ORIGIN = 'http://robots.invalid'

/** `lines` are `Allow: PATTERN` and `Disallow: PATTERN`. */
export function createRobotsMatcher(lines: string): RobotsMatcher {
  const robots = robotsParser(`${ORIGIN}/robots.txt`, `User-agent: *\n${unescapeUnreserved(lines)}`)
  return {
    isAllowed: ({ pathname, search }) => robots.isAllowed(`${ORIGIN}${unescapeUnreserved(pathname + search)}`) ?? true,
  }
}

// RFC 3986 section 2.3: letters, digits, hyphen, period, underscore, tilde.
const UNRESERVED_ESCAPE = /%(?:4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae]|3[0-9]|2[de])/gi

function unescapeUnreserved(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(UNRESERVED_ESCAPE, (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16)))
}

/** The name by which robots.txt, and what else a site says to crawlers, knows us. Leaf module; pure. */

/**
 * Of a user agent: up to its first slash or space. `Mozilla/5.0 (compatible; MyBot/1.0; +https://a.example)` names what
 * stands after `compatible;`, which is the form of the example in RFC 9309 section 2.2.1.
 */
export function productTokenOf(userAgent: string): string {
  return /^Mozilla\/[\d.]+ \(compatible; ?([a-z_][\w-]*)/i.exec(userAgent)?.[1] ?? userAgent.split(/[/\s]/, 1)[0]!
}

/**
 * Which hosts are meant by a pattern, for rules and for sets of patterns alike. Leaf module; pure.
 *
 *     *               every host
 *     *.example.com   every name below example.com, and not itself; an address has none below it
 *     example.com     this one
 */
import { domainToASCII } from 'node:url'

/** The pattern of a text in any case and script, as names of hosts are in a parsed URL; undefined when it is none. */
export function hostPatternOf(text: string): string | undefined {
  if (text === '*') return text
  const isParent = text.startsWith('*.')
  const given = isParent ? text.slice(2) : text
  // What follows a name, such as a path, would be left out silently, and so would a tab between two names.
  if (/[\s/\\?#]/.test(given)) return undefined
  // In lower case, punycode, without a trailing dot.
  const name = domainToASCII(given).replace(/\.$/, '')
  // No host is called `.example.com`: of a list of hosts to spare it would spare none.
  if (name.includes('*') || name.split('.').includes('') || (isParent && isAddress(name))) return undefined
  return isParent ? `*.${name}` : name
}

function isAddress(host: string): boolean {
  return host.startsWith('[') || /^[\d.]+$/.test(host)
}

/** The patterns that match a host, the most general first: one for each of its labels. */
export function patternsOf(host: string): readonly string[] {
  const suffixes: string[] = []
  if (!isAddress(host)) for (let at = host.indexOf('.'); at >= 0; at = host.indexOf('.', at + 1)) suffixes.push(`*${host.slice(at)}`)
  return ['*', ...suffixes.toReversed(), host]
}

/** Whether the pattern is one of `patternsOf(host)`. */
export function matchesHost(pattern: string, host: string): boolean {
  return pattern === '*' || pattern === host || (pattern.startsWith('*.') && host.endsWith(pattern.slice(1)) && !isAddress(host))
}

/** A set of patterns that is asked for each host, at the cost of its labels and not of the patterns. */
export class HostPatterns {
  readonly #patterns = new Set<string>()

  /** Takes one more pattern; answers false when it is none. */
  add(text: string): boolean {
    const pattern = hostPatternOf(text)
    if (pattern !== undefined) this.#patterns.add(pattern)
    return pattern !== undefined
  }

  /** `host` as a queued URL has it: lower case, without a trailing dot. */
  has(host: string): boolean {
    return patternsOf(host).some((pattern) => this.#patterns.has(pattern))
  }
}

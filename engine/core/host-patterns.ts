/**
 * Which hosts are meant: a set of patterns that is asked for each host, at the cost of its labels and not of the patterns.
 *
 *     *               every host
 *     *.example.com   every name below example.com, and not itself
 *     example.com     this one
 *
 * Leaf module; pure state.
 */
import { domainToASCII } from 'node:url'

export class HostPatterns {
  #isAll = false
  readonly #names = new Set<string>()
  /** Names whose names below are meant. */
  readonly #parents = new Set<string>()

  /** Takes one more pattern, in any case and script; answers false when it is none. */
  add(pattern: string): boolean {
    if (pattern === '*') {
      this.#isAll = true
      return true
    }
    const isParent = pattern.startsWith('*.')
    // As in a parsed URL: in lower case, punycode, without a trailing dot.
    const name = domainToASCII(isParent ? pattern.slice(2) : pattern).replace(/\.$/, '')
    if (name === '' || name.includes('*')) return false
    ;(isParent ? this.#parents : this.#names).add(name)
    return true
  }

  /** `host` as a queued URL has it: lower case, without a trailing dot. */
  has(host: string): boolean {
    if (this.#isAll || this.#names.has(host)) return true
    if (this.#parents.size === 0) return false
    for (let at = host.indexOf('.'); at >= 0; at = host.indexOf('.', at + 1)) if (this.#parents.has(host.slice(at + 1))) return true
    return false
  }
}

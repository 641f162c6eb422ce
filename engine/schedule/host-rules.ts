/**
 * What the operator says of hosts by pattern (core/host-patterns.ts): a pace, a number of requests at once, a weight.
 * Main thread; pure state.
 *
 * Of the rules that match a host the most specific one holds, fact by fact: its name before the longest suffix, and what
 * was said later before what was said earlier of the same pattern. A look-up costs one step for each label of the name.
 */
import { SluiceError } from '../core/errors.ts'
import { patternsOf } from '../core/host-patterns.ts'
import { limits } from '../core/limits.ts'
import type { HostLimit, HostRule } from '../core/options.ts'

export class HostRules {
  readonly #rules = new Map<string, HostLimit>()

  constructor(rules: readonly HostRule[] = []) {
    for (const { hosts, ...limit } of rules) this.set(hosts, limit)
  }

  /** Adds to what is said of a pattern. @throws SluiceError `bad_option` beyond `limits.hostRulesMax` patterns */
  set(pattern: string, limit: HostLimit): void {
    if (!this.#rules.has(pattern) && this.#rules.size >= limits.hostRulesMax) {
      throw new SluiceError('bad_option', `--host-limit: expected at most ${limits.hostRulesMax} patterns, given one more`)
    }
    this.#rules.set(pattern, { ...this.#rules.get(pattern), ...limit })
  }

  /** What is said of a host; what is not said is absent. */
  of(name: string): HostLimit {
    if (this.#rules.size === 0) return {}
    return Object.assign({}, ...patternsOf(name).map((pattern) => this.#rules.get(pattern))) as HostLimit
  }
}

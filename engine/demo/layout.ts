/**
 * Which hosts there are, how many pages each has, and the tree that makes every page reachable.
 *
 *   front page of host 0 -> front pages of hosts 1..8 -> ...      (tree of hosts)
 *   front page of a host -> pages 1..8 -> pages 9..72 -> ...      (tree of a host's pages)
 *
 * Invariant: sizes sum to `pages` exactly, no host is empty, and a page with children in either tree is never faulty.
 * Holds one number per host and none per page. Pure after construction, any thread.
 */
import { mix } from './random.ts'

/** Registrable domains, so that politeness by domain has something to tell apart. */
export const domains = ['alpha.test', 'beta.test', 'gamma.test'] as const

const fanOut = 8

export class Layout {
  readonly hosts: number
  readonly pages: number
  readonly #sizes: Uint32Array

  /** `firstHostPages` 0: sizes are uneven. */
  constructor({ hosts, pages, seed, firstHostPages }: { hosts: number, pages: number, seed: number, firstHostPages: number }) {
    this.hosts = hosts
    this.pages = pages
    this.#sizes = firstHostPages === 0 ? unevenSizes(hosts, pages, seed) : evenSizes(hosts, pages, firstHostPages)
  }

  hostName(index: number): string {
    return `h${String(index).padStart(3, '0')}.${domains[index % domains.length]!}`
  }

  /** -1 for a name that is not of this web. */
  hostIndex(name: string): number {
    const digits = /^h(\d{3,9})\./.exec(name)
    if (digits === null) return -1
    const index = Number(digits[1])
    return index < this.hosts && this.hostName(index) === name ? index : -1
  }

  size(host: number): number {
    return this.#sizes[host] ?? 0
  }

  /** First and last child of a page, or of a host among hosts; empty when first > last. */
  children(index: number, count: number): { readonly first: number, readonly last: number } {
    return { first: index * fanOut + 1, last: Math.min(index * fanOut + fanOut, count - 1) }
  }

  parent(index: number): number {
    return Math.max(0, Math.floor((index - 1) / fanOut))
  }

  /** Whether no page needs this one to be reached. Front pages carry the tree of hosts and never count as leaves. */
  isLeaf(host: number, index: number): boolean {
    return index > 0 && index * fanOut + 1 >= this.size(host)
  }

  leaves(host: number): number {
    const size = this.size(host)
    return size - Math.max(1, Math.ceil((size - 1) / fanOut))
  }
}

/** The first host has so many pages, the others share what is left evenly. */
function evenSizes(hosts: number, pages: number, firstHostPages: number): Uint32Array {
  const sizes = new Uint32Array(hosts)
  sizes[0] = firstHostPages
  const [others, rest] = [hosts - 1, pages - firstHostPages]
  for (let host = 1; host < hosts; host++) sizes[host] = Math.floor(rest / others) + (host <= rest % others ? 1 : 0)
  return sizes
}

/** Sizes by Zipf's law over hosts in a shuffled order: a few big, most small; whole numbers with an exact sum. */
function unevenSizes(hosts: number, pages: number, seed: number): Uint32Array {
  const order = Array.from({ length: hosts }, (_, host) => host)
  order.sort((a, b) => mix(seed, a, 11) - mix(seed, b, 11) || a - b)
  let weightSum = 0
  for (let rank = 1; rank <= hosts; rank++) weightSum += 1 / rank
  const sizes = new Uint32Array(hosts)
  let spread = pages - hosts
  for (const [rank, host] of order.entries()) {
    const extra = Math.min(spread, Math.floor((pages - hosts) / (rank + 1) / weightSum))
    sizes[host] = 1 + extra
    spread -= extra
  }
  // What rounding left over: fewer than one page per host.
  for (let rank = 0; spread > 0; rank++, spread--) sizes[order[rank % hosts]!]! += 1
  return sizes
}

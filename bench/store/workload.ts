/**
 * The work of the store benchmark, the same for every store that is measured: URLs of 80 characters on hosts whose
 * sizes follow Zipf's law, first filled in as the links of pages, then claimed, ended and discovered host by host.
 * A pure function of the seed, except for which hosts have a URL left, which the store tells.
 */
import { hash } from 'node:crypto'
import { dice, type Dice } from '../../engine/demo/random.ts'
import { hostHashOf } from '../../engine/core/url-key.ts'

export interface Size {
  readonly urls: number
  readonly hosts: number
  readonly seed: number
}

/** A URL as every store gets it. */
export interface BenchUrl {
  readonly host: string
  readonly hostHash: Uint8Array
  readonly fingerprint: Uint8Array
  readonly url: string
}

/** Links of one page, with the page that they stand in; new ones get this depth. */
export interface BenchLinks {
  readonly referrer: string
  readonly depth: number
  readonly urls: readonly BenchUrl[]
}

/** Of a page: links that were seen before and were not found in any cache, and links that are new. */
export const LINKS_SEEN = 9
export const LINKS_NEW = 1
/** One link of five leads to another host. */
const ABROAD_SHARE = 0.2
const FILL_LINKS = 10
const URL_CHARS = 80

export class Workload {
  readonly size: Size
  readonly #random: Dice
  /** URLs of each host so far. */
  readonly #counts: Uint32Array
  /** The share of all URLs that the hosts up to each one have together. */
  readonly #cumulative: Float64Array
  readonly #hashes = new Map<number, Uint8Array>()
  #order: Uint32Array | undefined
  #turn = 0

  constructor(size: Size) {
    this.size = size
    this.#random = dice(size.seed)
    this.#counts = new Uint32Array(size.hosts)
    this.#cumulative = new Float64Array(size.hosts)
    let sum = 0
    for (let host = 0; host < size.hosts; host += 1) this.#cumulative[host] = sum += 1 / (host + 1)
    for (let host = 0; host < size.hosts; host += 1) this.#cumulative[host]! /= sum
  }

  /** All URLs of the fill, as the links of one page after another. */
  * fill(): Generator<BenchLinks> {
    for (const { host, count, depth } of this.#fillPages()) {
      yield this.#page(host, depth, Array.from({ length: count }, () => this.#next(host)))
    }
  }

  /** Goes on where the store is: behind the fill, and so many turns. */
  skip(turns: number): void {
    for (const { host, count } of this.#fillPages()) this.#counts[host]! += count
    for (let at = 0; at < turns; at += 1) this.turn()
  }

  /** The host whose turn it is, and what its next page links to. Hosts take turns in an order drawn once. */
  turn(): { readonly host: number; readonly links: BenchLinks } {
    this.#order ??= shuffled(this.size.hosts, this.#random)
    const host = this.#order[this.#turn % this.#order.length]!
    this.#turn += 1
    return { host, links: this.#links(host) }
  }

  /** Each host is met once, as a seed, so that every one of them has work; then pages of ten links. */
  * #fillPages(): Generator<{ readonly host: number; readonly count: number; readonly depth: number }> {
    const { urls, hosts } = this.size
    for (let host = 0; host < hosts; host += 1) yield { host, count: 1, depth: 0 }
    for (let left = urls - hosts; left > 0; left -= FILL_LINKS) {
      yield { host: this.#anyHost(), count: Math.min(FILL_LINKS, left), depth: this.#anyDepth() }
    }
  }

  #links(host: number): BenchLinks {
    const urls: BenchUrl[] = []
    for (let at = 0; at < LINKS_SEEN; at += 1) {
      const to = this.#target(host)
      urls.push(this.#url(to, Math.floor(this.#random() * this.#counts[to]!)))
    }
    for (let at = 0; at < LINKS_NEW; at += 1) urls.push(this.#next(this.#target(host)))
    return this.#page(host, this.#anyDepth(), urls)
  }

  hostName(host: number): string {
    return `www.site-${String(host).padStart(8, '0')}.example`
  }

  #page(host: number, depth: number, urls: readonly BenchUrl[]): BenchLinks {
    return { referrer: this.#url(host, 0).url, depth, urls }
  }

  #anyDepth(): number {
    return 1 + Math.floor(this.#random() * 4)
  }

  #target(host: number): number {
    return this.#random() < ABROAD_SHARE ? this.#anyHost() : host
  }

  #next(host: number): BenchUrl {
    const index = this.#counts[host]!
    this.#counts[host] = index + 1
    return this.#url(host, index)
  }

  /** By Zipf's law: the host of rank r has a share of 1 / r. */
  #anyHost(): number {
    const share = this.#random()
    let [low, high] = [0, this.#cumulative.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#cumulative[middle]! < share) low = middle + 1
      else high = middle
    }
    return low
  }

  #url(host: number, index: number): BenchUrl {
    const name = this.hostName(host)
    const digest = hash('sha256', `${this.size.seed} ${host} ${index}`, 'buffer')
    const start = `https://${name}/${index.toString(36)}-`
    const url = start + digest.toString('hex', 0, 32).slice(0, URL_CHARS - start.length)
    let hostHash = this.#hashes.get(host)
    if (hostHash === undefined) this.#hashes.set(host, hostHash = hostHashOf(name))
    return { host: name, hostHash, fingerprint: new Uint8Array(digest.subarray(0, 16)), url }
  }
}

function shuffled(count: number, random: Dice): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, at) => at)
  for (let at = count - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1))
    const moved = order[at]!
    order[at] = order[other]!
    order[other] = moved
  }
  return order
}

/**
 * Which pages have nearly the text of one that was stored before: their SimHashes differ in at most 3 of 64 bits. Holds the
 * hashes of the last pages in typed arrays, and no object for each page. Main thread; a memory of the process, which is
 * not stored: after a start the pages of earlier runs are unknown.
 *
 * Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007), section 3: two hashes of four
 * blocks of 16 bits that differ in at most 3 bits have one block equal. So a hash is kept in four chains, one for each of
 * its blocks, and a look-up walks four chains.
 *
 *   heads   4 x 65,536   number of the last hash with this block, counted from 1; 0: there is none
 *   entries N x 6        ring, number n lies at n mod N: the hash in two words, and for each chain how many numbers back the
 *                        one before was (0: there is none); together, since each step of a walk is a miss of the cache
 *
 * Invariant: a chain goes from new to old, so it ends for a look-up where a number lies N or more behind the last, whose
 * place another hash has taken. Nothing is unlinked.
 *
 * Bounds: 2 MB and 24 bytes a hash, so 26 MB for a million, touched as it fills. A look-up compares at most `candidatesMax`
 * hashes of each chain, the newest; by chance a chain of a million hashes has 15. A page that resembles more than that
 * many others in one block and only an older one in all may so be missed. Measured with a
 * million hashes made at random: `add` 0.13 microseconds, `find` 9.5; with four full chains of pages that share a block, 27.
 */
import type { EndedUrl } from '../storage/store.ts'
import { limits } from './core/limits.ts'
import type { NearDuplicatePolicy } from './core/options.ts'
import type { LinkList } from './core/types.ts'

const BLOCKS = 4
const ENTRY_WORDS = 2 + BLOCKS
const BLOCK_VALUES = 65_536
/** Manku et al.: for 64 bits and billions of pages of the web, 3 is a fitting distance. */
const DISTANCE_MAX = 3

export interface NearDuplicatesOptions {
  /** Hashes that are remembered; default limits.nearDuplicatesMax. */
  readonly capacity?: number
  /** Hashes that are compared in each chain; default limits.nearDuplicateCandidatesMax. */
  readonly candidatesMax?: number
}

/** A hash as two halves of 32 bits; 8 bytes, highest bit first. */
function halfOf(hash: Uint8Array, at: 0 | 4): number {
  return (hash[at]! << 24) | (hash[at + 1]! << 16) | (hash[at + 2]! << 8) | hash[at + 3]!
}

function bitsOf(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555)
  const fours = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24
}

export class NearDuplicates {
  readonly #capacity: number
  readonly #candidatesMax: number
  /** Numbers go on for ever; a double holds them exactly. */
  readonly #heads = new Float64Array(BLOCKS * BLOCK_VALUES)
  readonly #entries: Int32Array
  #last = 0

  constructor(options: NearDuplicatesOptions = {}) {
    this.#capacity = options.capacity ?? limits.nearDuplicatesMax
    this.#candidatesMax = options.candidatesMax ?? limits.nearDuplicateCandidatesMax
    this.#entries = new Int32Array(ENTRY_WORDS * this.#capacity)
  }

  /** Hashes that are remembered. */
  get size(): number {
    return Math.min(this.#last, this.#capacity)
  }

  /** Whether one of the remembered hashes differs from this one (8 bytes) in at most 3 bits. */
  find(hash: Uint8Array): boolean {
    const upper = halfOf(hash, 0)
    const lower = halfOf(hash, 4)
    for (let block = 0; block < BLOCKS; block += 1) {
      if (this.#isInChain(block, upper, lower)) return true
    }
    return false
  }

  /** Remembers a hash (8 bytes); the oldest is forgotten when there are too many. */
  add(hash: Uint8Array): void {
    const upper = halfOf(hash, 0)
    const lower = halfOf(hash, 4)
    this.#last += 1
    const at = ENTRY_WORDS * (this.#last % this.#capacity)
    this.#entries[at] = upper
    this.#entries[at + 1] = lower
    for (let block = 0; block < BLOCKS; block += 1) {
      const head = block * BLOCK_VALUES + blockOf(block, upper, lower)
      const back = this.#last - this.#heads[head]!
      this.#entries[at + 2 + block] = back === this.#last || back >= this.#capacity ? 0 : back
      this.#heads[head] = this.#last
    }
  }

  #isInChain(block: number, upper: number, lower: number): boolean {
    let number = this.#heads[block * BLOCK_VALUES + blockOf(block, upper, lower)]!
    const entries = this.#entries
    const oldest = Math.max(1, this.#last - this.#capacity + 1)
    for (let candidates = 0; number >= oldest && candidates < this.#candidatesMax; candidates += 1) {
      const at = ENTRY_WORDS * (number % this.#capacity)
      if (bitsOf(entries[at]! ^ upper) + bitsOf(entries[at + 1]! ^ lower) <= DISTANCE_MAX) return true
      const back = entries[at + 2 + block]!
      if (back === 0) return false
      number -= back
    }
    return false
  }
}

function blockOf(block: number, upper: number, lower: number): number {
  const half = block < 2 ? upper : lower
  return (block & 1) === 0 ? half >>> 16 : half & 0xffff
}

const MARK = Buffer.from(',"nearDuplicate":true')

export interface ComparingParts {
  readonly nearDuplicates: NearDuplicates | undefined
  readonly options: { readonly nearDuplicates: NearDuplicatePolicy }
}

export interface ComparedPage {
  readonly ended: EndedUrl
  /** Absent: the page is compared with none, and none with it. */
  readonly simhash?: Uint8Array
  /** Its links are not too deep to be followed. */
  readonly followsLinks: boolean
}

/**
 * A page as it is handed to the commit: marked when it has nearly the text of one that was handed over before, and with
 * `skip` without its links, which count as refused; but a refresh is followed, since nothing else may lead to its target.
 * It is remembered unless it is marked: what it resembles is there; and with `skip` unless its links were too deep, since
 * then they are still to be followed from a page that is like it and less deep. To be called for each page once, and only
 * when it will be stored: a page that comes again would resemble itself.
 */
export function comparedWithStored({ nearDuplicates: table, options }: ComparingParts, { ended, simhash, followsLinks }: ComparedPage): EndedUrl {
  // A page that was fetched before would resemble its own earlier text.
  if (table === undefined || simhash === undefined || ended.url.previous !== undefined) return ended
  if (!table.find(simhash)) {
    if (followsLinks || options.nearDuplicates === 'count') table.add(simhash)
    return ended
  }
  const marked: EndedUrl = { ...ended, isNearDuplicate: true, line: Buffer.concat([ended.line, MARK]) }
  if (options.nearDuplicates === 'count') return marked
  const links = redirectsOf(ended.links)
  return { ...marked, links, refused: { ...ended.refused, near_duplicate: ended.links.count - links.count } }
}

/** Those that are followed as redirects are. */
function redirectsOf(links: LinkList): LinkList {
  const kept = Array.from({ length: links.count }, (_, index) => index).filter((index) => links.isRedirect(index))
  return {
    count: kept.length, isRedirect: () => true,
    fingerprint: (index) => links.fingerprint(kept[index]!), hostHash: (index) => links.hostHash(kept[index]!), url: (index) => links.url(kept[index]!),
  }
}

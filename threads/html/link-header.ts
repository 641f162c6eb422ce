/**
 * The Link header field (RFC 8288): the canonical address of a page, and its neighbours. Read as appendix B.2 and B.3 of
 * the RFC read it, which take what is broken up to the place where it breaks. Pure; runs in a parse worker. Its input is
 * bounded by `headerBytesMax`, and each of its characters is gone over once.
 */
import { followedRels } from './rel.ts'

export interface HeaderLinks {
  /** The first with rel canonical, as it stands. */
  readonly canonical?: string
  /** Those with rel alternate, next or prev, as they stand: what a `link` element with it links to. */
  readonly followed: readonly string[]
}

interface LinkValue {
  readonly target: string
  /** In lower case. */
  readonly rels: readonly string[]
}

const WHITE = /[\t ]*/y
/** White space, and the commas of empty elements (RFC 9110 section 5.6.1). */
const BETWEEN = /[\t ,]*/y
const NAME = /[^\t =;,]*/y
const BARE = /[^;,]*/y
const QUOTED = /"((?:[^"\\]|\\.)*)(?:"|\\?$)/y

/** Most fields have none of these: of a page by WordPress they name its API, which cost 1 % of the page's time to read. */
const WANTED = /canonical|alternate|next|prev/i

/** Reads one field. */
class FieldReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** The next link; undefined at the end, and at what is none. */
  next(): LinkValue | undefined {
    this.#take(BETWEEN)
    const end = this.#text.indexOf('>', this.#at)
    if (this.#text[this.#at] !== '<' || end < 0) return undefined
    const target = this.#text.slice(this.#at + 1, end).trim()
    this.#at = end + 1
    const parameters = this.#parameters()
    // With an anchor it is a link of something else than the page.
    if (parameters.has('anchor')) return { target, rels: [] }
    return { target, rels: (parameters.get('rel') ?? '').toLowerCase().split(/[\t ]+/) }
  }

  #parameters(): ReadonlyMap<string, string> {
    const parameters = new Map<string, string>()
    for (this.#take(WHITE); this.#text[this.#at] === ';'; this.#take(WHITE)) {
      this.#at += 1
      this.#take(WHITE)
      const name = this.#take(NAME).toLowerCase()
      this.#take(WHITE)
      const value = this.#text[this.#at] === '=' ? this.#value() : ''
      // Of two with one name the first counts (RFC 8288 section 3.3).
      if (!parameters.has(name)) parameters.set(name, value)
    }
    return parameters
  }

  #value(): string {
    this.#at += 1
    this.#take(WHITE)
    if (this.#text[this.#at] !== '"') return this.#take(BARE).trim()
    return this.#take(QUOTED, 1).replaceAll(/\\(.)/g, '$1')
  }

  #take(pattern: RegExp, group = 0): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    this.#at += found?.[0].length ?? 0
    return found?.[group] ?? ''
  }
}

export function readLinkFields(fields: readonly string[]): HeaderLinks {
  let canonical: string | undefined
  const followed: string[] = []
  for (const field of fields) {
    if (!WANTED.test(field)) continue
    const reader = new FieldReader(field)
    for (let link = reader.next(); link !== undefined; link = reader.next()) {
      const { target, rels } = link
      if (rels.includes('canonical')) canonical ??= target
      if (followedRels.some((rel) => rels.includes(rel)) && !rels.includes('stylesheet')) followed.push(target)
    }
  }
  return { ...(canonical !== undefined && { canonical }), followed }
}

/**
 * Where the entries of a sitemap go, whatever its format: resolved, checked, counted, and held until they are taken.
 * Invariant: no more than `entriesMax` entries are handed over in all; the rest are counted. Errors are one line each, a
 * few at most. Runs in the sitemap thread.
 */
import { fetchUrl, type Base } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { dateMs } from './dates.ts'
import type { SitemapEntry } from './types.ts'

const COMPLAINTS_MAX = 10
const SHOWN_CHARS_MAX = 100

/** An entry as the file has it. */
export interface FoundEntry {
  readonly loc: string
  /** What `loc` is relative to. */
  readonly base: Base
  readonly date?: string | undefined
  readonly priority?: string | undefined
  readonly isSitemap: boolean
}

export interface CollectorOptions {
  readonly home: Base
  readonly entriesMax: number
  readonly strictLocation: boolean
}

/** A piece of an untrusted text, fit for a line. */
export function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}...` : text)
}

export function isAbsoluteHttp(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

/** sitemaps.org: from 0 to 1, anything else says nothing. */
function priorityOf(text: string): number | undefined {
  if (!/^\s*(?:\d{1,3}(?:\.\d{0,9})?|\.\d{1,9})\s*$/.test(text)) return undefined
  const priority = Number(text)
  return priority <= 1 ? priority : undefined
}

export class Collector {
  readonly #options: CollectorOptions
  #entries: SitemapEntry[] = []
  #count = 0
  #complaints = 0
  readonly #errors: string[] = []

  constructor(options: CollectorOptions) {
    this.#options = options
  }

  get entriesMax(): number {
    return this.#options.entriesMax
  }

  get count(): number {
    return this.#count
  }

  get errors(): readonly string[] {
    return this.#errors
  }

  /** Something is wrong with the file as a whole. */
  error(line: string): void {
    this.#errors.push(line)
  }

  /** Something is wrong in a place of it; of these a few are kept. */
  complain(line: string): void {
    if (this.#complaints < COMPLAINTS_MAX) this.#errors.push(line)
    else if (this.#complaints === COMPLAINTS_MAX) this.#errors.push('and more like these')
    this.#complaints += 1
  }

  /** Whether it is an entry. */
  add({ loc, base, date, priority, isSitemap }: FoundEntry): boolean {
    if (loc.length > limits.sitemapLocCharsMax) return this.#refuse('an address is longer than the limit', loc)
    const url = fetchUrl(loc, base)
    if (url === undefined) return this.#refuse('not an http or https address', loc)
    const { home, strictLocation, entriesMax } = this.#options
    if (strictLocation && !(isAbsoluteHttp(loc) && url.startsWith(home.directory))) return this.#refuse('an address outside the folder of its sitemap', loc)
    this.#count += 1
    if (this.#count > entriesMax) return true
    const lastModifiedMs = date === undefined ? undefined : dateMs(date)
    const priorityValue = priority === undefined ? undefined : priorityOf(priority)
    this.#entries.push({
      url,
      ...(lastModifiedMs !== undefined && { lastModifiedMs, lastModified: date!.trim() }),
      ...(priorityValue !== undefined && { priority: priorityValue }),
      ...(isSitemap && { isSitemap }),
    })
    return true
  }

  /** The entries since the last call. */
  take(): readonly SitemapEntry[] {
    const entries = this.#entries
    this.#entries = []
    return entries
  }

  #refuse(reason: string, loc: string): false {
    this.complain(`${reason}: ${shown(loc)}`)
    return false
  }
}

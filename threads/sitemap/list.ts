/**
 * A sitemap that is a text: one absolute address a line (sitemaps.org, "Text file"). Its first line that is not blank
 * decides whether it is one, so that fifty megabytes of something else are not searched for addresses. Invariant: between
 * two writes at most `LINE_CHARS_MAX` characters are kept. Runs in the sitemap thread.
 */
import type { Base } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { isAbsoluteHttp, shown, type Collector } from './collector.ts'
import type { EntrySource } from './entry-source.ts'

/** White space around an address counts here. */
const LINE_CHARS_MAX = 8 * limits.sitemapLocCharsMax

export class ListEntries implements EntrySource {
  readonly #collector: Collector
  readonly #base: Base
  #type: 'txt' | undefined
  #fault: string | undefined
  #rest = ''
  /** The line is too long; its end is awaited. */
  #isSkipping = false

  constructor(collector: Collector, base: Base) {
    this.#collector = collector
    this.#base = base
  }

  get type(): 'txt' | undefined {
    return this.#type
  }

  get fault(): string | undefined {
    return this.#fault
  }

  write(text: string): void {
    const lines = (this.#rest + text).split(/\r\n|\r|\n/)
    this.#rest = lines.pop()!
    for (const line of lines) this.#line(line)
    if (this.#rest.length > LINE_CHARS_MAX) {
      if (!this.#isSkipping) this.#line(this.#rest)
      this.#isSkipping = true
      this.#rest = ''
    }
  }

  end(isCut: boolean): boolean {
    // Half an address is another address.
    if (!isCut) this.#line(this.#rest)
    return !isCut || this.#rest === ''
  }

  #line(line: string): void {
    if (this.#fault !== undefined) return
    const wasSkipped = this.#isSkipping
    this.#isSkipping = false
    if (wasSkipped) return
    const loc = line.trim()
    const isLong = line.length > LINE_CHARS_MAX
    if (loc === '' && !isLong) return
    if (isLong) this.#collector.complain('a line is longer than the limit')
    else if (!isAbsoluteHttp(loc)) this.#collector.complain(`a line is not an http or https address: ${shown(loc)}`)
    else if (this.#collector.add({ loc, base: this.#base, isSitemap: false })) this.#type = 'txt'
    if (this.#type === undefined) this.#fault = 'neither XML nor a list of addresses'
  }
}

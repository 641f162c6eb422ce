/**
 * Parse workers without threads: slots, workers that take the oldest page because they are free, a service time for each
 * page, and deaths. It keeps the contract of the parse pool as the engine sees it: a ticket given by `fill` comes out of
 * `collect` or of `withdraw`, exactly once.
 */
import type { Clock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { noCounters, noLinks, type FetchedPage, type LinkList, type ParsedResult } from '../../engine/core/types.ts'
import type { CrawlParts } from '../../engine/crawl-parts.ts'
import type { CollectedPage } from '../../threads/slots.ts'

export interface VirtualPoolOptions {
  readonly clock: Clock
  readonly slots: number
  readonly workers: number
  /** How long a worker has a page in hand. */
  readonly serviceMs: (page: FetchedPage, nowMs: number) => number
  /** URLs that a page links to; default none. */
  readonly linksOf?: (url: string) => readonly string[]
  /** Workers that may die of a page before it fails; default as in the engine. */
  readonly triesMax?: number
}

interface Slot {
  readonly ticket: number
  readonly page: FetchedPage
  readonly filledAtMs: number
  tries: number
  cancel?: () => void
}

export class VirtualPool {
  onProgress: () => void = () => {}
  readonly #is: VirtualPoolOptions
  readonly #filled: Slot[] = []
  readonly #taken = new Set<Slot>()
  readonly #done: CollectedPage[] = []
  #ticket = 0
  #workers: number
  #workersLost = 0
  /** Bytes of the pages in slots, and the most that there were. */
  bytes = 0
  bytesMost = 0
  readonly isStuck = false

  constructor(options: VirtualPoolOptions) {
    this.#is = options
    this.#workers = options.workers
  }

  get slotsFree(): number {
    return this.#is.slots - this.#filled.length - this.#taken.size - this.#done.length
  }

  fill(page: FetchedPage): number | undefined {
    if (this.slotsFree <= 0) return undefined
    const ticket = this.#ticket++
    this.#filled.push({ ticket, page, filledAtMs: this.#is.clock.nowMs(), tries: 0 })
    this.bytes += page.bodyBytes
    this.bytesMost = Math.max(this.bytesMost, this.bytes)
    this.#take()
    return ticket
  }

  collect(max: number): CollectedPage[] {
    return this.#done.splice(0, max)
  }

  withdraw(): readonly number[] {
    return this.#filled.splice(0).map(({ ticket, page }) => {
      this.bytes -= page.bodyBytes
      return ticket
    })
  }

  /** The worker that has had its page for longest dies; another one comes. */
  killWorker(startMs = 100): void {
    const [slot] = this.#taken
    if (slot === undefined) return
    slot.cancel?.()
    this.#taken.delete(slot)
    slot.tries += 1
    this.#workersLost += 1
    this.#workers -= 1
    if (slot.tries >= (this.#is.triesMax ?? limits.parseTriesMax)) this.#finish(slot, { ticket: slot.ticket, code: 'parse_crashed' })
    else this.#filled.unshift(slot)
    this.#is.clock.after(startMs, () => {
      this.#workers += 1
      this.#take()
    })
    this.onProgress()
  }

  rotateWarc(): void {}

  get oldestFilledMs(): number {
    const oldest = this.#filled[0]
    return oldest === undefined ? 0 : this.#is.clock.nowMs() - oldest.filledAtMs
  }

  stats(): ReturnType<CrawlParts['pool']['stats']> {
    return {
      slots: this.#is.slots, free: this.slotsFree, filled: this.#filled.length, taken: this.#taken.size, done: this.#done.length, turns: 0,
      workersLost: this.#workersLost, oldestFilledMs: this.oldestFilledMs, utilization: this.#taken.size / Math.max(1, this.#workers),
    }
  }

  #take(): void {
    while (this.#taken.size < this.#workers && this.#filled.length > 0) {
      const slot = this.#filled.shift()!
      this.#taken.add(slot)
      slot.cancel = this.#is.clock.after(this.#is.serviceMs(slot.page, this.#is.clock.nowMs()), () => {
        this.#taken.delete(slot)
        this.#finish(slot, { ticket: slot.ticket, result: this.#read(slot.page) })
        this.#take()
      })
    }
  }

  #finish(slot: Slot, page: CollectedPage): void {
    this.bytes -= slot.page.bodyBytes
    this.#done.push(page)
    this.onProgress()
  }

  #read({ meta: { url, status, depth, followLinks }, body: [text], bodyBytes }: FetchedPage): ParsedResult {
    // The virtual web writes into a body only what a wall says.
    const wall = text === undefined ? undefined : String(text)
    const outcome = wall !== undefined ? 'failed' : status < 300 ? 'ok' : status < 400 ? 'redirect' : 'http_error'
    const links = outcome === 'ok' && followLinks ? this.#is.linksOf?.(url) ?? [] : []
    const line = Buffer.from(`{"url":${JSON.stringify(url)},"status":${status},"outcome":"${outcome}","depth":${depth}`)
    return { outcome, ...(wall !== undefined && { code: wall }), bodyBytes, links: linkListOf(links), linksKnown: 0, refused: noCounters.refused, line }
  }
}

const nobody = new Uint8Array(16)

function linkListOf(urls: readonly string[]): LinkList {
  if (urls.length === 0) return noLinks
  return { count: urls.length, fingerprint: () => nobody, hostHash: () => nobody.subarray(8), url: (index) => urls[index]!, isRedirect: () => false }
}

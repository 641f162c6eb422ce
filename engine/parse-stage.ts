/**
 * From a complete body to a page with its outcome: into a slot, through a worker, out again. Also keeps account of how
 * far each WARC file is filled and stored, because a file must end where the last stored page ends. Main thread.
 *
 * Invariant: results of one worker are collected in the order in which it finished them, and are stored in that order,
 * so a WARC file's stored length only grows, and what lies beyond it belongs to pages that are not stored.
 */
import type { EndedUrl } from '../storage/store.ts'
import { invariant, type FailureCode } from './core/errors.ts'
import { noLinks, type PageMeta, type PageRecord, type ParsedResult, type QueuedUrl, type WarcPlace } from './core/types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import type { PressureMeter } from './flow/pressure.ts'
import type { Received } from './fetch-stage.ts'
import { pageAnswerOf } from './page-meta.ts'
import { recordLine, recordOfLine, unreadRecord } from './record-line.ts'

/** What is remembered of a page while it lies in a slot. */
interface Parsing {
  readonly url: QueuedUrl
  readonly startedAtMs: number
  readonly meta: PageMeta
  readonly wireBytes: number
}

/** A page with its outcome, on its way to the consumer and to the commit. */
export interface Settled {
  readonly ended: EndedUrl
  /** When its fetch was started (monotonic). */
  readonly startedAtMs: number
  readonly warc: WarcPlace | undefined
  readonly record: PageRecord | undefined
  /** Of a page with enough text, when it was asked for. */
  readonly simhash?: Uint8Array
  /** Its links are not too deep to be followed. */
  readonly followsLinks: boolean
}

export class ParseStage {
  readonly #parts: CrawlParts
  readonly #meter: PressureMeter
  readonly #parsing = new Map<number, Parsing>()
  readonly #warcCollected = new Map<number, number>()
  readonly #warcStored = new Map<number, number>()

  #linksKnown = 0

  constructor(parts: CrawlParts, meter: PressureMeter) {
    this.#parts = parts
    this.#meter = meter
  }

  /** Links that workers dropped because they are known. */
  get linksKnown(): number {
    return this.#linksKnown
  }

  /** Pages in slots. */
  get size(): number {
    return this.#parsing.size
  }

  /** Moves bodies into free slots, oldest first, and gives their bytes back to the fetcher's budget. */
  fill(received: Received[]): void {
    for (let next = received[0]; next !== undefined; next = received[0]) {
      const ticket = this.#parts.pool.fill(next.page)
      if (ticket === undefined) return
      received.shift()
      next.release()
      this.#parts.scheduler.places.move(next.url.sequence, 'slots')
      this.#parsing.set(ticket, { url: next.url, startedAtMs: next.startedAtMs, meta: next.page.meta, wireBytes: next.page.bodyBytes })
    }
  }

  /** The next finished page, its slot released; undefined when there is none. `needsRecord`: somebody will look at it. */
  collect(needsRecord: boolean): Settled | undefined {
    const [page] = this.#parts.pool.collect(1)
    if (page === undefined) return undefined
    const parsing = this.#parsing.get(page.ticket)
    invariant(parsing !== undefined, 'a result belongs to a page that was filled')
    this.#parsing.delete(page.ticket)
    if (!('result' in page)) return this.#scheduled(settleUnread(parsing, page.code))
    if (page.parseMs !== undefined) this.#meter.parse.observe(page.parseMs)
    const { warc } = page.result
    this.#linksKnown += page.result.linksKnown
    if (warc !== undefined) this.#warcCollected.set(warc.file, warc.offset + warc.length)
    return this.#scheduled(settle(parsing, page.result, needsRecord))
  }

  #scheduled(settled: Settled): Settled {
    return { ...settled, ended: this.#parts.recrawl.scheduled(settled.ended) }
  }

  /** URLs of the pages that no worker has taken; they leave their slots. */
  withdraw(): readonly QueuedUrl[] {
    return this.#parts.pool.withdraw().map((ticket) => {
      const { url } = this.#parsing.get(ticket)!
      this.#parsing.delete(ticket)
      return url
    })
  }

  /** A batch with these WARC lengths is stored. */
  stored(lengths: ReadonlyMap<number, number>): void {
    for (const [file, length] of lengths) this.#warcStored.set(file, length)
  }

  /** All slots are free: workers begin new WARC files, and the present ones are cut to what is stored. */
  async cutWarc(): Promise<void> {
    this.#parts.pool.rotateWarc()
    for (const [file, length] of this.#warcCollected) {
      const stored = this.#warcStored.get(file) ?? 0
      if (stored < length) await this.#parts.store.cutWarc(file, stored)
    }
    this.#warcCollected.clear()
    this.#warcStored.clear()
  }
}

function settle(parsing: Parsing, result: ParsedResult, needsRecord: boolean): Settled {
  const { meta, startedAtMs, url, wireBytes } = parsing
  const { outcome, code, links, refused, line, warc, bodyBytes, contentHash, simhash } = result
  const ended: EndedUrl = {
    url, outcome, links, refused, line, wireBytes, bodyBytes, atMs: meta.fetchedAtMs,
    ...(code !== undefined && { code }),
    ...(isSame(contentHash, url.previous?.contentHash) && outcome === 'ok' && { isUnchanged: true }),
    ...(meta.setsCookie && { setsCookie: true }),
    page: pageAnswerOf(url, meta, result),
  }
  return { ended, startedAtMs, warc, record: needsRecord ? recordOfLine(line) : undefined, followsLinks: meta.followLinks, ...(simhash && { simhash }) }
}

function isSame(hash: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return hash !== undefined && other !== undefined && Buffer.compare(hash, other) === 0
}

function settleUnread(parsing: Parsing, code: FailureCode): Settled {
  const record = unreadRecord(parsing.url, parsing.meta, code, parsing.wireBytes)
  const ended: EndedUrl = {
    url: parsing.url, outcome: 'failed', code, atMs: parsing.meta.fetchedAtMs, page: pageAnswerOf(parsing.url, parsing.meta, { outcome: 'failed' }), links: noLinks, line: recordLine(record), wireBytes: parsing.wireBytes, bodyBytes: 0,
  }
  return { ended, startedAtMs: parsing.startedAtMs, warc: undefined, record, followsLinks: parsing.meta.followLinks }
}

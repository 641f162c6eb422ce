/**
 * One sitemap while it is fetched: its body goes chunk by chunk to the sitemap thread, and what it lists into the frontier.
 * Main thread; it holds one chunk, and never looks into one.
 *
 *   server -> [ chunk ] -> sitemap thread -> entries -> commits, a few hundred at a time -> the next chunk is read
 *
 * Invariant: nothing more is read from the server before what came is stored, so that a sitemap of any size takes the
 * memory of one part of it. What is stored stays, whatever becomes of the rest: read again, a sitemap brings what is new.
 */
import { limits } from './core/limits.ts'
import type { NewUrl, RefusalReason } from './core/types.ts'
import type { BodySink } from './fetch/body-sink.ts'
import { onAbort } from './fetch/shared-abort.ts'
import type { ResponseHead } from './fetch/response-head.ts'
import { listOf } from './page-meta.ts'
import { newUrlOf, type EntryRules, type ListedBy } from './sitemap-urls.ts'
import type { SitemapEnd, SitemapEntry, SitemapHead, SitemapPart, SitemapStream } from '../threads/sitemap/types.ts'

export interface ReadingOptions {
  readonly sitemap: ListedBy
  readonly rules: EntryRules
  readonly signal: AbortSignal
  readonly open: (head: SitemapHead) => SitemapStream
  /** Stores URLs, and answers which of them were new. */
  readonly add: (urls: readonly NewUrl[]) => Promise<readonly boolean[]>
}

/** What a sitemap came to, when all of it is stored. */
export type ReadingEnd =
  | { readonly kind: 'read'; readonly end: SitemapEnd; readonly newUrls: number; readonly refused: Partial<Record<RefusalReason, number>> }
  /** Its thread died, or did not answer. */
  | { readonly kind: 'died'; readonly detail: string }
  /** The run is over. */
  | { readonly kind: 'aborted' }

const empty: SitemapEnd = { entriesCount: 0, bytes: 0, isCut: false, errors: ['the body is empty'] }

/** The store took nothing more, which the run was told. */
class NotStored extends Error {}

export class SitemapReading implements BodySink {
  readonly deadlineMs = limits.sitemapMsMax
  readonly #is: ReadingOptions
  #stream: SitemapStream | undefined
  /** Nothing that follows would be read. */
  #isDone = false
  #isClosed = false
  #failure: unknown
  #newUrls = 0
  readonly #refused: Partial<Record<RefusalReason, number>> = {}

  constructor(options: ReadingOptions) {
    this.#is = options
  }

  /** The body of another answer is of no use. */
  async write(chunk: Uint8Array, head: ResponseHead): Promise<boolean> {
    if (head.status < 200 || head.status > 299) return false
    try {
      await this.#take(await this.#open(head).push(chunk))
    } catch (error) {
      this.#failure = error
    }
    return this.#failure === undefined && !this.#isDone && !this.#isClosed
  }

  /** The body is over; `isCut`: too early. Answers when all that it lists is stored. */
  async end(isCut: boolean): Promise<ReadingEnd> {
    const { signal } = this.#is
    if (this.#failure === undefined) {
      try {
        return await unlessAborted(this.#finish(isCut), signal)
      } catch (error) {
        this.#failure = error
      }
    }
    if (signal.aborted || this.#failure instanceof NotStored) return { kind: 'aborted' }
    return { kind: 'died', detail: (this.#failure as Error).message }
  }

  /** Nothing more is asked of the thread. Idempotent. */
  close(): void {
    this.#isClosed = true
    this.#stream?.close()
  }

  #open({ headers, contentType }: ResponseHead): SitemapStream {
    const contentEncoding = listOf(headers, 'content-encoding')
    return this.#stream ??= this.#is.open({
      url: this.#is.sitemap.url, ...(contentType !== undefined && { contentType }), ...(contentEncoding !== '' && { contentEncoding }),
    })
  }

  /** What a chunk brought, to the last of it. */
  async #take(part: SitemapPart): Promise<void> {
    for (let next = part; ; next = await this.#stream!.more()) {
      await this.#store(next.entries)
      this.#isDone = next.isDone === true
      if (!next.hasMore || this.#isDone || this.#isClosed) return
    }
  }

  async #store(entries: readonly SitemapEntry[]): Promise<void> {
    const urls: NewUrl[] = []
    for (const entry of entries) {
      const url = newUrlOf(entry, this.#is.sitemap, this.#is.rules)
      if (typeof url === 'string') this.#refused[url] = (this.#refused[url] ?? 0) + 1
      else urls.push(url)
    }
    for (let at = 0; at < urls.length && !this.#isClosed; at += limits.sitemapUrlsPerCommitMax) {
      const areNew = await this.#is.add(urls.slice(at, at + limits.sitemapUrlsPerCommitMax)).catch((cause: unknown) => { throw new NotStored('not stored', { cause }) })
      this.#newUrls += areNew.filter(Boolean).length
    }
  }

  async #finish(isCut: boolean): Promise<ReadingEnd> {
    // A body that was not wanted to its end was not cut too early.
    const end = await this.#stream?.end(isCut && !this.#isDone)
    if (end !== undefined) await this.#store(end.entries)
    return { kind: 'read', end: end ?? empty, newUrls: this.#newUrls, refused: this.#refused }
  }
}

/** The run does not wait for the store, which may have no room. */
function unlessAborted(ending: Promise<ReadingEnd>, signal: AbortSignal): Promise<ReadingEnd> {
  if (signal.aborted) return Promise.resolve({ kind: 'aborted' })
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => resolve({ kind: 'aborted' }))
    void ending.then(resolve, reject).finally(forget)
  })
}

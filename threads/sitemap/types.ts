/**
 * What is read of a sitemap, and how it is handed over. Types only.
 *
 *     main thread: chunks as they come from the wire, one at a time  ->  sitemap thread: undo the coding, scan  ->  entries
 */

/** Kinds of file in which sites list their pages. */
export type SitemapType = 'urlset' | 'index' | 'txt' | 'rss' | 'atom' | 'rdf'

export interface SitemapEntry {
  /** Resolved against the sitemap's own address; http or https. */
  readonly url: string
  /** Wall clock; absent when none is given or it is no W3C or RFC 822 date. */
  readonly lastModifiedMs?: number
  /** The same as the file has it. */
  readonly lastModified?: string
  /** 0 to 1, as in the file. */
  readonly priority?: number
  /** Of an index: another sitemap. */
  readonly isSitemap?: true
}

/** What a sitemap is, before its first byte. */
export interface SitemapHead {
  /** Its address. */
  readonly url: string
  readonly contentType?: string
  /** All content codings, the last applied last. A file that is gzip by its first bytes is unpacked besides. */
  readonly contentEncoding?: string
}

/** What a chunk brought. */
export interface SitemapPart {
  readonly entries: readonly SitemapEntry[]
  /** There is more decoded text of this chunk: ask for it before the next chunk is given. */
  readonly hasMore: boolean
  /** Nothing that follows will be read: it is broken, no sitemap, or at its limit. The body need not be fetched further. */
  readonly isDone?: true
}

/** What a whole sitemap was. */
export interface SitemapEnd {
  /** Absent: it is none. */
  readonly type?: SitemapType
  /** Entries in all; those beyond `limits.sitemapEntriesMax` are counted and not handed over. */
  readonly entriesCount: number
  /** Decoded bytes that were read. */
  readonly bytes: number
  /** It was cut: on the wire, at a limit, or in the middle of an element. */
  readonly isCut: boolean
  /** What is wrong with it, one line each, a few at most. */
  readonly errors: readonly string[]
}

/** A sitemap that is being read in a thread of its own. Each call waits for the thread. Rejects when the thread dies or misses its deadline. */
export interface SitemapStream {
  push(chunk: Uint8Array): Promise<SitemapPart>
  /** The rest of the chunk before. */
  more(): Promise<SitemapPart>
  /** `isCut`: the body ended too early. Its last entries come with it. */
  end(isCut: boolean): Promise<SitemapEnd & SitemapPart>
  /** Nothing more is asked of it. Idempotent. */
  close(): void
}

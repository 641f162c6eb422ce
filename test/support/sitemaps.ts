/** A whole sitemap through a reader or a stream, as whoever fetches one uses it. */
import type { SitemapEnd, SitemapEntry, SitemapPart } from '../../threads/sitemap/types.ts'

interface Reading {
  push(chunk: Uint8Array): Promise<SitemapPart>
  more(): Promise<SitemapPart>
  end(isCut: boolean): Promise<SitemapEnd & SitemapPart>
}

export interface WholeSitemap {
  readonly entries: readonly SitemapEntry[]
  readonly end: SitemapEnd
  /** Calls that brought entries or more. */
  readonly parts: number
}

export async function readSitemap(reader: Reading, chunks: Iterable<Uint8Array>, isCut = false): Promise<WholeSitemap> {
  const entries: SitemapEntry[] = []
  let parts = 0
  for (const chunk of chunks) {
    for (let part = await reader.push(chunk); ; part = await reader.more()) {
      parts += 1
      entries.push(...part.entries)
      if (!part.hasMore) break
    }
  }
  const { entries: last, hasMore: _, ...end } = await reader.end(isCut)
  entries.push(...last)
  return { entries, end, parts }
}

/** Bytes in pieces of so many. */
export function piecesOf(bytes: Uint8Array, length: number): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.byteLength; at += length) pieces.push(bytes.subarray(at, at + length))
  return pieces
}

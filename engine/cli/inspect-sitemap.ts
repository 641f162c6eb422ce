/**
 * `sluice inspect sitemap`: what the engine reads in a sitemap or a feed, by the code of the sitemap thread. It shows all
 * entries of a file that has more than a crawl takes, and says so.
 */
import { SluiceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { SitemapReader } from '../../threads/sitemap/reader.ts'
import type { SitemapEntry, SitemapHead } from '../../threads/sitemap/types.ts'
import type { Answer } from './batch.ts'
import { documentOf } from './inspect-page.ts'
import { safeText } from './lines.ts'

/** A sitemap and what is known of it from outside. */
export interface InspectedSitemap {
  readonly bytes: Uint8Array
  readonly head: SitemapHead
  /** The bytes are the beginning of a longer file. */
  readonly isCut: boolean
}

const ENTRIES_SHOWN_MAX = 20 * limits.sitemapEntriesMax

/** `{file | base64, base?, contentType?}` as a sitemap. Throws `usage`, `bad_option` and `file_unreadable`. */
export function sitemapOf({ file, base64, base, contentType }: Answer): InspectedSitemap {
  if ((file === undefined) === (base64 === undefined)) throw new SluiceError('usage', 'expected one of file and base64, as a text')
  const { bytes, base: url } = documentOf({ file, base64, base, contentType })
  return { bytes, head: { url, ...(typeof contentType === 'string' && { contentType }) }, isCut: false }
}

/** The shape of the command's answer; `type` is absent where it is no sitemap. Of an index the URLs are sitemaps. */
export async function inspectSitemap({ bytes, head, isCut }: InspectedSitemap): Promise<Answer> {
  const reader = new SitemapReader(head, { entriesMax: ENTRIES_SHOWN_MAX })
  const entries: SitemapEntry[] = []
  for (let part = await reader.push(bytes); ; part = await reader.more()) {
    for (const entry of part.entries) entries.push(entry)
    if (!part.hasMore) break
  }
  const { entries: last, type, entriesCount, errors } = await reader.end(isCut)
  entries.push(...last)
  const isLong = entriesCount > limits.sitemapEntriesMax
  return {
    ...(type !== undefined && { type }),
    urls: entries.map(({ url, lastModified, priority }) => ({ url, ...(lastModified !== undefined && { lastmod: lastModified }), ...(priority !== undefined && { priority }) })),
    errors: [...errors, ...isLong ? [`it has ${entriesCount} entries, of which a crawl takes the first ${limits.sitemapEntriesMax}`] : []].map(safeText),
  }
}

/** Type, one entry a line, and what is wrong. */
export function sitemapText({ type, urls, errors, ...facts }: Answer): string {
  const entries = urls as readonly { readonly url: string; readonly lastmod?: string; readonly priority?: number }[]
  const lines = [
    ...Object.entries(facts).map(([name, value]) => `${name}: ${String(value)}`),
    `type: ${String(type ?? 'none')}`, `urls: ${entries.length}`,
    ...entries.map(({ url, lastmod, priority }) => `  ${[url, lastmod, priority].filter((fact) => fact !== undefined).join('  ')}`),
    ...(errors as readonly string[]).map((error) => `error: ${error}`),
  ]
  return `${lines.join('\n')}\n`
}

/** What reads the text of a sitemap in one of its forms, XML or a list of lines. Types only. */
import type { SitemapType } from './types.ts'

export interface EntrySource {
  /** Absent: it is not known, or it is none. */
  readonly type: SitemapType | undefined
  /** Why nothing more is read of it. */
  readonly fault: string | undefined
  write(text: string): void
  /** There is no more text. Answers whether it ended where it should. */
  end(isCut: boolean): boolean
}

/**
 * What a parse worker is told when it starts: structured-cloneable, the shared memories by reference. Types only.
 */
import type { Directive, LinkElement } from '../engine/core/types.ts'
import type { DedupeRule } from '../engine/core/url-key.ts'

export interface WorkerOptions {
  readonly arena: SharedArrayBuffer
  /** Table of links that are proven to be queued or done. */
  readonly known?: SharedArrayBuffer
  /** Which links are followed; absent: any. */
  readonly scope?: { readonly table: SharedArrayBuffer; readonly mode: 'host' | 'domain' }
  /** The rules against generated addresses, with the counts of queries by path; absent: they are off. */
  readonly traps?: { readonly queries: SharedArrayBuffer; readonly queriesPerPathMax: number }
  /** Elements whose addresses are links; absent: those of pages. */
  readonly linkElements?: readonly LinkElement[]
  /** What pages and headers ask for that is followed; absent: nothing is. */
  readonly obey?: readonly Directive[]
  /** Which more URLs are one; absent: none. */
  readonly dedupe?: readonly DedupeRule[]
  /** Regular expressions, with the flag `u`. */
  readonly include: readonly string[]
  readonly exclude: readonly string[]
  /** Decoded bytes read of a page. */
  readonly maxBodyBytes: number
  /** The crawl's directory, in which WARC files are written; absent: none are. */
  readonly warcDir?: string
  /** Number of the first WARC file that is free. */
  readonly warcFileFirst?: number
  /** File of the notes of pages in hand, see in-hand.ts; absent: none are made. */
  readonly inHandFile?: string
  /** Pages get a SimHash. */
  readonly simhash?: boolean
  readonly crawlId: string
  readonly userAgent: string
  /** Module with an extractor: an absolute path or a file: URL. */
  readonly extractor?: string
  /** Memory of StageTimes; absent: no times are taken. */
  readonly profile?: SharedArrayBuffer
}

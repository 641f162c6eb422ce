/**
 * What the engine reads in a document. Types only: what the scanner writes and everybody else reads.
 */
import type { LinkElement } from '../../engine/core/types.ts'
import type { Charset } from './charset.ts'
import type { RobotsDirectives } from './robots-directives.ts'

/**
 * The links of a document by index, in document order, as they stand in its bytes. Strings are made only for those that
 * are asked for. Valid until the next document is read.
 */
export interface RawLinks {
  readonly count: number
  /** The document as it was scanned: `start` and `end` point into it. */
  readonly bytes: Uint8Array
  element(index: number): LinkElement
  /** Where the address lies in `bytes`, its quotes left out. */
  start(index: number): number
  end(index: number): number
  /** The address: decoded, character references replaced, white space as it stands, not resolved. */
  href(index: number): string
  rel(index: number): string | undefined
  /** Its rel has nofollow, ugc or sponsored. */
  isNofollow(index: number): boolean
}

export interface HtmlFacts {
  readonly charset: Charset
  readonly title?: string
  readonly lang?: string
  /** The first <base href>, as it stands. */
  readonly base?: string
  /** The first <link rel=canonical href>, as it stands. */
  readonly canonical?: string
  readonly description?: string
  readonly generator?: string
  readonly robots: RobotsDirectives
  /** The first <meta http-equiv=refresh> with an address; it is among the links too, as `meta`, unless it is a hop. */
  readonly refresh?: { readonly delaySeconds: number; readonly url: string }
  readonly links: RawLinks
  /** Start tags h1 to h6. */
  readonly headings: number
  /**
   * Characters of text outside script, style and title (those of SVG too), textarea, noscript, template, and elements that
   * hold text without markup (iframe, xmp), white space left out. A character of two bytes in a legacy encoding of East
   * Asia counts as two.
   */
  readonly textLength: number
  /** Bytes of scripts in the document that run; data in a script element is none. */
  readonly scriptLength: number
  /** Scripts that are loaded from elsewhere. */
  readonly scriptsLoaded: number
  /** If asked for: where shown text lies in `links.bytes`, `textCount` pairs of start and end. Valid as `links` is. */
  readonly texts?: Int32Array
  readonly textCount?: number
}

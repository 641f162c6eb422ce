/**
 * What the engine reads in a document: charset, links, base, directives, and how much of it is text. The scanner finds
 * where things stand, this module makes strings of the few that are kept. Runs in a parse worker and in `inspect page`.
 * Holds the thread's one scanner: what `readHtml` answers is valid until its next call.
 */
import { linkElements, pageLinkElements, type LinkElement } from '../../engine/core/types.ts'
import { isUtf8Text, settle, sniff, transcode, type Charset, type Sniffed } from './charset.ts'
import { isAsciiCompatible } from './encodings.ts'
import type { HtmlFacts, RawLinks } from './html-facts.ts'
import { charsetInContent, declarationOf, type Declaration } from './prescan.ts'
import { parseRefresh, type Refresh } from './refresh.ts'
import { isNofollow } from './rel.ts'
import { readDirectives } from './robots-directives.ts'
import { facts, LINK_WORDS, type Notes } from './notes.ts'
import { HtmlScanner } from './scanner.ts'
import { Values } from './values.ts'

export interface ReadHtmlOptions {
  /** Its Content-Type header: for the charset, unless that is known, and because XHTML has empty elements. */
  readonly contentType?: string | undefined
  /** The bytes are the prefix of a longer document. */
  readonly isCut?: boolean
  /** Known already. */
  readonly charset?: Charset
  /** What `sniff` found; default: it is called. */
  readonly sniffed?: Sniffed
  /** Which elements' addresses are links; default: those of pages. A refresh is a fact in any case. */
  readonly linkElements?: readonly LinkElement[] | undefined
  /** Our product token in lower case: a meta element of that name is read as one named robots. */
  readonly agent?: string | undefined
  /** A refresh within so many seconds is a hop and none of the links; default: it is a link. */
  readonly hopSecondsMax?: number | undefined
  /** Note where shown text lies, see `HtmlFacts.texts`. */
  readonly wantsText?: boolean
}

/** All else is read by the rules of HTML, whatever it is called. */
const XHTML = /^\s*application\/xhtml\+xml\s*(?:;|$)/i
/** More of a title or an address is not made a string of: the record keeps 1,024 characters of one, and 8,000 are no URL. */
const FACT_BYTES_MAX = 64 * 1_024
const META = linkElements.indexOf('meta')
const scanner = new HtmlScanner()

/** Links over the scanner's words. */
class ScannedLinks implements RawLinks {
  readonly #words: Int32Array
  readonly #values: Values
  readonly count: number

  constructor(words: Int32Array, count: number, values: Values) {
    this.#words = words
    this.#values = values
    this.count = count
  }

  get bytes(): Uint8Array {
    return this.#values.bytes
  }

  element(index: number): LinkElement {
    return linkElements[this.#words[LINK_WORDS * index]!]!
  }

  start(index: number): number {
    return this.#words[LINK_WORDS * index + 1]!
  }

  end(index: number): number {
    return this.#words[LINK_WORDS * index + 2]!
  }

  href(index: number): string {
    const value = this.#values.attribute(this.start(index), this.end(index))
    return this.#words[LINK_WORDS * index] === META ? parseRefresh(value)!.url : value
  }

  rel(index: number): string | undefined {
    const start = this.#words[LINK_WORDS * index + 3]!
    const rel = start < 0 ? '' : this.#values.attribute(start, this.#words[LINK_WORDS * index + 4]!)
    return rel === '' ? undefined : rel
  }

  isNofollow(index: number): boolean {
    const start = this.#words[LINK_WORDS * index + 3]!
    return start >= 0 && isNofollow(this.bytes, start, this.#words[LINK_WORDS * index + 4]!)
  }
}

/** The first refresh that has an address; no other meta element stays among the links, nor that one unless it is one. */
function keepRefresh(notes: Notes, values: Values, isLink: (refresh: Refresh) => boolean): Refresh | undefined {
  const { links } = notes
  let first: Refresh | undefined
  let kept = 0
  for (let index = 0; index < notes.linkCount; index += 1) {
    const at = LINK_WORDS * index
    if (links[at] === META) {
      const refresh = parseRefresh(values.attribute(links[at + 1]!, links[at + 2]!))
      // The first one counts: a page goes to one address only.
      if (refresh === undefined || first !== undefined) continue
      first = refresh
      if (!isLink(refresh)) continue
    }
    if (kept !== index) links.copyWithin(LINK_WORDS * kept, at, at + LINK_WORDS)
    kept += 1
  }
  notes.linkCount = kept
  return first
}

/** White space as HTML has it: a no-break or an ideographic space is a character. */
function trimmed(text: string): string {
  return text.replace(/^[\t\n\f\r ]+/, '').replace(/[\t\n\f\r ]+$/, '')
}

function collapsed(text: string): string {
  return trimmed(text.replaceAll(/[\t\n\f\r ]+/g, ' '))
}

function optional<Key extends string>(key: Key, value: string): { readonly [K in Key]?: string } {
  return value === '' ? {} : { [key]: value } as { readonly [K in Key]?: string }
}

/** A document that was scanned: valid until the next one is. */
export interface ScannedDocument {
  readonly charset: Charset
  readonly notes: Notes
  /** As text and values. */
  readonly values: Values
}

function declaredIn(notes: Notes, values: Values): Declaration {
  const labels = Array.from({ length: notes.charsetCount }, (_, index) => {
    const { start, end, isLabel } = notes.charsetAt(index)
    const value = values.attribute(start, end)
    return isLabel ? value : charsetInContent(value)
  })
  return declarationOf(labels.filter((label) => label !== undefined))
}

/**
 * Scans a document. Where its encoding is not known before, it is scanned first, which needs no more than that ASCII is
 * ASCII, and its own meta elements tell: looking for them apart took as long as half the scan.
 */
export function scanDocument(bytes: Uint8Array, options: ReadHtmlOptions = {}): ScannedDocument {
  const { contentType, isCut = false, linkElements: wanted = pageLinkElements } = options
  const sniffed = options.charset === undefined ? (options.sniffed ?? sniff(bytes, { contentType, isHtml: true })) : { settled: options.charset }
  const scan = (body: Uint8Array, isLegacy: boolean): Notes => scanner.scan(body, {
    linkElements: wanted.includes('meta') ? wanted : [...wanted, 'meta'], agent: options.agent, wantsText: options.wantsText === true, isLegacy,
    isXml: XHTML.test(contentType ?? ''),
  })
  if (sniffed.settled === undefined) {
    const notes = scan(bytes, !isUtf8Text(bytes, isCut))
    const charset = settle(bytes, sniffed, declaredIn(notes, new Values(bytes, 'windows-1252')), isCut)
    if (isAsciiCompatible(charset.name)) return { charset, notes, values: new Values(bytes, charset.name) }
    return scanDocument(bytes, { ...options, charset })
  }
  const charset = sniffed.settled
  const body = transcode(bytes, charset)
  const encoding = isAsciiCompatible(charset.name) ? charset.name : 'utf-8'
  return { charset, notes: scan(body, encoding !== 'utf-8'), values: new Values(body, encoding) }
}

export function readHtml(bytes: Uint8Array, options: ReadHtmlOptions = {}): HtmlFacts {
  const { charset, notes, values } = scanDocument(bytes, options)
  const { linkElements: wanted = pageLinkElements, hopSecondsMax = -1 } = options
  const refresh = keepRefresh(notes, values, ({ delaySeconds }) => wanted.includes('meta') && delaySeconds > hopSecondsMax)
  const text = (fact: number, of: 'attribute' | 'text' = 'attribute'): string => {
    const start = notes.factStart(fact)
    return start < 0 ? '' : values[of](start, Math.min(notes.factEnd(fact), start + FACT_BYTES_MAX))
  }
  const robots = Array.from({ length: notes.robotsCount }, (_, index) => {
    const start = notes.robotsStart(index)
    return values.attribute(start, Math.min(notes.robotsEnd(index), start + FACT_BYTES_MAX))
  })
  return {
    charset,
    ...optional('title', collapsed(text(facts.title, 'text'))), ...optional('lang', trimmed(text(facts.lang))),
    ...(notes.factStart(facts.base) >= 0 && { base: text(facts.base) }), ...optional('canonical', text(facts.canonical)),
    ...optional('description', trimmed(text(facts.description))), ...optional('generator', trimmed(text(facts.generator))),
    robots: readDirectives(robots), ...(refresh && { refresh }),
    links: new ScannedLinks(notes.links, notes.linkCount, values),
    headings: notes.headings, textLength: notes.textLength, scriptLength: notes.scriptLength, scriptsLoaded: notes.scriptsLoaded,
    ...(options.wantsText === true && { texts: notes.texts, textCount: notes.textCount }),
  }
}

/**
 * What the engine reads in a document: links, base, charset, directives, and how much of it is text. This is the seam
 * at which a byte scanner takes the place of node-html-parser: nothing here or above knows of a tree. Pure; runs in a
 * parse worker, and in `inspect page`.
 */
import { charsetOf, decodeText, type Charset } from './charset.ts'
import { parseDocument, textOfTitle, walkDocument } from './document.ts'
import { readDirectives, type RobotsDirectives } from './robots-directives.ts'

/** The elements that link. A `link` element counts with rel alternate, next or prev. */
export const linkElements = ['a', 'area', 'iframe', 'frame', 'link', 'meta'] as const
export type LinkElement = (typeof linkElements)[number]

/** A link as it stands in the document, character references replaced, not resolved. */
export interface RawLink {
  readonly href: string
  readonly element: LinkElement
  readonly rel?: string
}

export interface HtmlFacts {
  readonly charset: string
  readonly charsetFrom: Charset['from']
  readonly title?: string
  readonly lang?: string
  /** The first <base href>, as it stands. */
  readonly base?: string
  /** The first <link rel=canonical href>, as it stands. */
  readonly canonical?: string
  readonly robots: RobotsDirectives
  /** The first <meta http-equiv=refresh> with an address; it is among the links too, as `meta`. */
  readonly refresh?: { readonly delaySeconds: number; readonly url: string }
  readonly links: readonly RawLink[]
  /** Characters of text outside script, style, noscript and title, without surrounding white space. */
  readonly textLength: number
  /** Characters of scripts in the document. */
  readonly scriptLength: number
  /** Scripts that are loaded from elsewhere. */
  readonly scriptsLoaded: number
}

export interface ReadHtmlOptions {
  readonly contentType?: string | undefined
  /** The bytes are the prefix of a longer document. */
  readonly isCut?: boolean
}

const hrefAttribute: Readonly<Record<string, string>> = { a: 'href', area: 'href', iframe: 'src', frame: 'src' }
const unreadText = new Set(['style', 'noscript', 'title'])
const followedRels = /(?:^|\s)(?:alternate|next|prev)(?:\s|$)/i
const canonicalRel = /(?:^|\s)canonical(?:\s|$)/i

/** `5; url=/next` (HTML standard, "shared declarative refresh steps"). */
function parseRefresh(content: string): HtmlFacts['refresh'] {
  const match = /^\s*(\d*)(?:\.[\d.]*)?\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))/is.exec(content)
  const url = (match?.[2] ?? match?.[3] ?? match?.[4])?.trim()
  return url === undefined || url === '' ? undefined : { delaySeconds: Number(match![1]), url }
}

type Attribute = (name: string) => string | undefined
type Mutable<T> = { -readonly [K in keyof T]: T[K] }

class FactReader {
  readonly links: RawLink[] = []
  readonly facts: Mutable<Pick<HtmlFacts, 'title' | 'lang' | 'base' | 'canonical' | 'refresh'>> = {}
  readonly directives: string[] = []
  textLength = 0
  scriptLength = 0
  scriptsLoaded = 0

  element(name: string, attribute: Attribute): void {
    const from = hrefAttribute[name]
    if (from !== undefined) return this.#link(name as LinkElement, attribute(from), attribute('rel'))
    switch (name) {
      case 'html': this.#first('lang', attribute('lang')?.trim()); return
      case 'base': this.#first('base', attribute('href')); return
      case 'script': if (attribute('src') !== undefined) this.scriptsLoaded += 1; return
      case 'link': this.#linkElement(attribute('href'), attribute('rel') ?? ''); return
      case 'meta': this.#meta(attribute); return
      default:
    }
  }

  text(parent: string, raw: () => string): void {
    if (parent === 'script') this.scriptLength += raw().length
    else if (!unreadText.has(parent)) this.textLength += raw().trim().length
    else if (parent === 'title' && this.facts.title === undefined) this.#first('title', textOfTitle(raw()).replaceAll(/\s+/g, ' ').trim())
  }

  #first(name: 'title' | 'lang' | 'base' | 'canonical', value: string | undefined): void {
    if (value !== undefined && (value !== '' || name === 'base')) this.facts[name] ??= value
  }

  #link(element: LinkElement, href: string | undefined, rel: string | undefined): void {
    if (href === undefined) return
    this.links.push({ href, element, ...(rel !== undefined && rel !== '' && { rel }) })
  }

  #linkElement(href: string | undefined, rel: string): void {
    if (canonicalRel.test(rel)) this.#first('canonical', href)
    if (followedRels.test(rel) && !/(?:^|\s)stylesheet(?:\s|$)/i.test(rel)) this.#link('link', href, rel)
  }

  #meta(attribute: Attribute): void {
    const content = attribute('content')
    if (content === undefined) return
    if (attribute('name')?.trim().toLowerCase() === 'robots') this.directives.push(content)
    if (attribute('http-equiv')?.trim().toLowerCase() !== 'refresh' || this.facts.refresh !== undefined) return
    const refresh = parseRefresh(content)
    if (refresh === undefined) return
    this.facts.refresh = refresh
    this.#link('meta', refresh.url, undefined)
  }
}

export function readHtml(bytes: Uint8Array, options: ReadHtmlOptions = {}): HtmlFacts {
  const charset = charsetOf(bytes, { contentType: options.contentType, isHtml: true, isCut: options.isCut ?? false })
  const reader = new FactReader()
  walkDocument(parseDocument(decodeText(bytes, charset)), reader)
  const { directives, facts, links, textLength, scriptLength, scriptsLoaded } = reader
  return { charset: charset.name, charsetFrom: charset.from, ...facts, robots: readDirectives(directives), links, textLength, scriptLength, scriptsLoaded }
}

/**
 * The page as an extractor sees it. Runs in a parse worker. Everything costly is made on first use; what was not asked
 * for while the page was in hand cannot be had later, because the worker's buffer holds the next page by then.
 *
 *     export default (page: ParsedPage) => unknown        // may be async; what it returns becomes `record`
 */
import { pathToFileURL } from 'node:url'
import { isAbsolute } from 'node:path'
import { SluiceError } from '../engine/core/errors.ts'
import { makeBase } from '../engine/core/fetch-url.ts'
import { decodeText, type Charset } from './html/charset.ts'
import { parseDocument, type HtmlDocument } from './html/document.ts'
import type { LinkElement } from '../engine/core/types.ts'
import type { HtmlFacts, RawLinks } from './html/html-facts.ts'
import { linkUrl } from './html/links.ts'
import type { StageClock } from './stage-times.ts'

export type { HtmlDocument }

/** A link of the page, resolved, in document order. */
export interface PageLink {
  readonly url: string
  readonly element: LinkElement
  readonly rel?: string
}

export interface ParsedPage {
  readonly url: string
  readonly status: number
  /** By lower-case name; repeated headers are joined with a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly charset: string
  /** The decoded document. */
  readonly text: string
  /** Those with an http or https address. */
  readonly links: readonly PageLink[]
  readonly meta: Pick<HtmlFacts, 'title' | 'lang' | 'canonical' | 'robots' | 'refresh'>
  /** node-html-parser's root, built on first use. */
  readonly document: HtmlDocument
  /** A copy of the decoded bytes. */
  readonly body: Uint8Array
}

export type Extractor = (page: ParsedPage) => unknown

export interface PageParts {
  readonly url: string
  readonly status: number
  readonly headerBlock: Uint8Array
  readonly body: Uint8Array
  readonly charset: Charset
  /** Of the document and of its header. */
  readonly robots: HtmlFacts['robots']
  /** Absent when the page is not HTML. */
  readonly facts: HtmlFacts | undefined
  readonly base: string
  readonly stages?: StageClock | undefined
}

function parseHeaders(block: Uint8Array): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const line of Buffer.from(block.buffer, block.byteOffset, block.byteLength).toString('latin1').split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value
  }
  return headers
}

/** Links with an http or https address, in document order. */
export function resolveLinks(links: RawLinks, base: string, encoding: string): readonly PageLink[] {
  const against = makeBase(base)
  const resolved: PageLink[] = []
  for (let index = 0; index < links.count; index += 1) {
    const url = linkUrl(links, index, { base: against, encoding })
    const rel = links.rel(index)
    if (url !== undefined) resolved.push({ url, element: links.element(index), ...(rel !== undefined && { rel }) })
  }
  return resolved
}

/** The object given to the extractor, with a switch that ends its life. */
export class LazyPage implements ParsedPage {
  readonly #parts: PageParts
  #isOver = false
  #headers: Readonly<Record<string, string>> | undefined
  #text: string | undefined
  #links: readonly PageLink[] | undefined
  #document: HtmlDocument | undefined
  #body: Uint8Array | undefined

  constructor(parts: PageParts) {
    this.#parts = parts
  }

  get url(): string { return this.#parts.url }
  get status(): number { return this.#parts.status }
  get charset(): string { return this.#parts.charset.name }
  get headers(): Readonly<Record<string, string>> { return (this.#headers ??= parseHeaders(this.#live().headerBlock)) }
  get text(): string { return (this.#text ??= decodeText(this.#live().body, this.#parts.charset)) }
  get links(): readonly PageLink[] { return (this.#links ??= this.#resolveLinks()) }
  get document(): HtmlDocument { return (this.#document ??= this.#makeDocument()) }
  get body(): Uint8Array { return (this.#body ??= this.#live().body.slice()) }

  get meta(): ParsedPage['meta'] {
    const { title, lang, canonical, refresh } = this.#parts.facts ?? {}
    return {
      ...(title !== undefined && { title }), ...(lang !== undefined && { lang }), ...(canonical !== undefined && { canonical }),
      robots: this.#parts.robots, ...(refresh !== undefined && { refresh }),
    }
  }

  /** The worker goes on to another page. */
  end(): void {
    this.#isOver = true
  }

  #resolveLinks(): readonly PageLink[] {
    const { facts, base, charset } = this.#live()
    return facts === undefined ? [] : resolveLinks(facts.links, base, charset.name)
  }

  #makeDocument(): HtmlDocument {
    const { stages } = this.#parts
    stages?.mark('extractor')
    const document = parseDocument(this.text)
    stages?.mark('document')
    return document
  }

  #live(): PageParts {
    if (this.#isOver) throw new Error('the page is no longer in hand: read what is needed before the extractor returns')
    return this.#parts
  }
}

/** Loads the default export of an extractor's module, an absolute path or a file: URL. Throws `extractor_unloadable`. */
export async function loadExtractor(module: string): Promise<Extractor> {
  try {
    const { default: extractor } = await import(isAbsolute(module) ? pathToFileURL(module).href : module) as { default?: unknown }
    if (typeof extractor === 'function') return extractor as Extractor
  } catch (error) {
    throw new SluiceError('extractor_unloadable', `${module}: ${String(error).split('\n')[0]}`, { cause: error })
  }
  throw new SluiceError('extractor_unloadable', `${module}: its default export is not a function`)
}

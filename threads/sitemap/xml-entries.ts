/**
 * The formats of XML in which sites list their pages, told apart by their root element and never by their content type:
 * sitemap and sitemap index (sitemaps.org), RSS 0.9x and 2.0, Atom (RFC 4287), RSS 0.90 and 1.0 in RDF.
 *
 * Namespaces are not resolved. Names are compared without their prefix; the facts of an entry are those children that have
 * the prefix of the entry itself, so that `image:loc` in `url` is not its address. Real files name wrong namespaces, or none.
 *
 * An entry stands where it ends; several `loc` in one, as some sites write, are an entry each, with the `lastmod` that
 * follows. Where a file ends too early, an entry with a whole `loc` counts; where it is not well formed, what is not
 * finished does not. Runs in the sitemap thread.
 */
import { makeBase, type Base } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { isAbsoluteHttp, shown, type Collector } from './collector.ts'
import type { EntrySource } from './entry-source.ts'
import type { SitemapType } from './types.ts'
import { attributeOf, unescaped, XmlScanner, type XmlHandler } from './xml-scanner.ts'

export interface XmlRules {
  /** Refuse a sitemap whose namespace is not that of sitemaps.org. */
  readonly strictNamespace: boolean
  /** Refuse a document type, which no sitemap needs. Else it is skipped. */
  readonly refuseDoctype: boolean
}

type Field = 'loc' | 'href' | 'guid' | 'date' | 'created' | 'priority'

interface Shape {
  readonly entry: string
  readonly fields: Readonly<Record<string, Field>>
}

const feedFields: Shape['fields'] = { link: 'loc', guid: 'guid', pubdate: 'date', date: 'date' }
const shapes: Readonly<Record<Exclude<SitemapType, 'txt'>, Shape>> = {
  urlset: { entry: 'url', fields: { loc: 'loc', lastmod: 'date', priority: 'priority' } },
  index: { entry: 'sitemap', fields: { loc: 'loc', lastmod: 'date' } },
  rss: { entry: 'item', fields: feedFields },
  rdf: { entry: 'item', fields: feedFields },
  atom: { entry: 'entry', fields: { link: 'href', updated: 'date', published: 'created' } },
}
/** `url` alone: some sites leave out the root. */
const typesByRoot: Readonly<Record<string, Exclude<SitemapType, 'txt'>>> = { urlset: 'urlset', url: 'urlset', sitemapindex: 'index', rss: 'rss', rdf: 'rdf', feed: 'atom' }
const SITEMAP_NAMESPACE = /^https?:\/\/www\.sitemaps\.org\/schemas\/sitemap\/0\.9\/?$/
/** Of a text as written: white space and references make it longer than the address. */
const TEXT_CHARS_MAX = 8 * limits.sitemapLocCharsMax

/** Text of an element. */
interface Gathered {
  text: string
  /** As written; beyond `TEXT_CHARS_MAX` nothing is gathered, and the text counts as too long. */
  chars: number
}

interface OpenEntry {
  readonly depth: number
  readonly prefix: string
  /** Its own text: some sites leave out `loc`. */
  readonly own: Gathered
  loc: string | undefined
  /** What `loc` is relative to. */
  locBase: Base
  guid: string | undefined
  date: string | undefined
  created: string | undefined
  priority: string | undefined
}

/** A child of an entry whose text is being read. */
interface OpenField {
  readonly depth: number
  readonly field: Field
  readonly value: Gathered
}

function gather(into: Gathered, raw: string, isPlain: boolean): void {
  into.chars += raw.length
  if (into.chars <= TEXT_CHARS_MAX) into.text += isPlain ? raw : unescaped(raw)
}

function isWhole({ chars }: Gathered): boolean {
  return chars <= TEXT_CHARS_MAX
}

/** An item without a link may have its page's address for an id. One with a fragment is a place in a page of many items. */
function guidPage({ guid = '' }: OpenEntry): string {
  return guid.includes('#') ? '' : guid
}

export class XmlEntries implements EntrySource, XmlHandler {
  readonly #collector: Collector
  readonly #rules: XmlRules
  readonly #scanner = new XmlScanner(this)
  /** Of the open elements that have an `xml:base`, and of the file itself. */
  readonly #bases: { readonly depth: number; readonly base: Base }[]
  #type: Exclude<SitemapType, 'txt'> | undefined
  #shape: Shape | undefined
  #depth = 0
  #entry: OpenEntry | undefined
  #field: OpenField | undefined

  constructor(collector: Collector, base: Base, rules: XmlRules) {
    this.#collector = collector
    this.#bases = [{ depth: 0, base }]
    this.#rules = rules
  }

  get type(): SitemapType | undefined {
    return this.#type
  }

  get fault(): string | undefined {
    return this.#scanner.fault
  }

  write(text: string): void {
    this.#scanner.write(text)
  }

  end(): boolean {
    if (this.fault === undefined && this.#entry?.loc !== undefined) this.#add(this.#entry, this.#entry.loc)
    return this.#scanner.isComplete
  }

  open(name: string, attributes: string): void {
    this.#depth += 1
    const colon = name.indexOf(':')
    const prefix = name.slice(0, Math.max(0, colon))
    const local = name.slice(colon + 1).toLowerCase()
    const xmlBase = attributeOf(attributes, 'xml:base')
    const base = xmlBase === undefined ? undefined : makeBase(xmlBase.trim(), this.#base)
    if (base !== undefined) this.#bases.push({ depth: this.#depth, base })
    if (this.#depth === 1) this.#root(name, local, attributes)
    if (this.#shape === undefined || this.#field !== undefined) return
    if (this.#entry !== undefined) this.#child(this.#entry, { prefix, local, attributes })
    else if (local === this.#shape.entry) this.#entry = this.#newEntry(prefix)
  }

  text(raw: string, isPlain: boolean): void {
    if (this.#field !== undefined) gather(this.#field.value, raw, isPlain)
    else if (this.#entry?.depth === this.#depth) gather(this.#entry.own, raw, isPlain)
  }

  close(): void {
    if (this.#field?.depth === this.#depth) {
      this.#read(this.#entry!, this.#field)
      this.#field = undefined
    }
    if (this.#entry?.depth === this.#depth) {
      this.#finish(this.#entry)
      this.#entry = undefined
    }
    if (this.#bases.at(-1)!.depth === this.#depth) this.#bases.pop()
    this.#depth -= 1
  }

  doctype(): void {
    if (this.#rules.refuseDoctype) this.#scanner.fail('it has a document type, which is refused')
  }

  get #base(): Base {
    return this.#bases.at(-1)!.base
  }

  #root(name: string, local: string, attributes: string): void {
    const type = typesByRoot[local]
    if (type === undefined) return this.#scanner.fail(`no sitemap: its root element is ${shown(name)}`)
    const colon = name.indexOf(':')
    const namespace = attributeOf(attributes, colon === -1 ? 'xmlns' : `xmlns:${name.slice(0, colon)}`) ?? ''
    const isSitemap = type === 'urlset' || type === 'index'
    if (isSitemap && this.#rules.strictNamespace && !SITEMAP_NAMESPACE.test(namespace)) {
      return this.#scanner.fail(`its namespace is not that of sitemaps.org: ${shown(namespace)}`)
    }
    this.#type = type
    this.#shape = shapes[type]
  }

  #newEntry(prefix: string): OpenEntry {
    return {
      depth: this.#depth, prefix, own: { text: '', chars: 0 }, loc: undefined, locBase: this.#base, guid: undefined, date: undefined, created: undefined,
      priority: undefined,
    }
  }

  #child(entry: OpenEntry, { prefix, local, attributes }: { prefix: string; local: string; attributes: string }): void {
    if (this.#depth !== entry.depth + 1) return
    const field = Object.hasOwn(this.#shape!.fields, local) ? this.#shape!.fields[local] : undefined
    // `dc:date` is the date of RDF, and of many an RSS.
    if (field === undefined || (prefix !== entry.prefix && local !== 'date')) return
    if (field !== 'href') {
      this.#field = { depth: this.#depth, field, value: { text: '', chars: 0 } }
      return
    }
    const rel = attributeOf(attributes, 'rel')
    const href = attributeOf(attributes, 'href')
    // RFC 4287 section 4.2.7.2: without a rel it is "alternate". The first one counts.
    if (href !== undefined && (rel === undefined || rel === 'alternate')) this.#setLoc(entry, href)
  }

  #read(entry: OpenEntry, { field, value }: OpenField): void {
    if (!isWhole(value)) this.#collector.complain('the text of an element is longer than the limit')
    else if (field === 'loc') this.#setLoc(entry, value.text)
    else if (field !== 'href') entry[field] ??= value.text.trim()
  }

  #setLoc(entry: OpenEntry, text: string): void {
    const loc = text.trim()
    if (loc === '') return
    if (entry.loc !== undefined) {
      // A feed has one page in an entry, whatever else it links.
      if (this.#type !== 'urlset' && this.#type !== 'index') return
      this.#add(entry, entry.loc)
      entry.date = undefined
      entry.priority = undefined
    }
    entry.loc = loc
    entry.locBase = this.#base
  }

  #finish(entry: OpenEntry): void {
    const loc = entry.loc ?? [guidPage(entry), isWhole(entry.own) ? entry.own.text.trim() : ''].find(isAbsoluteHttp)
    if (loc !== undefined) this.#add(entry, loc)
  }

  #add({ locBase, date, created, priority }: OpenEntry, loc: string): void {
    this.#collector.add({ loc, base: locBase, date: date ?? created, priority, isSitemap: this.#type === 'index' })
  }
}

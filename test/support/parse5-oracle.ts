/**
 * What parse5 8.1.1 finds in a document, in the shape of our own facts: the reference that the scanner is held against.
 * Invariant: it never looks at the bytes itself; every fact is read off parse5's tree, with scripting disabled and the
 * content of template elements left out.
 *
 * A tree holds some elements more than once: the adoption agency and the reconstruction of formatting elements copy
 * anchors. Copies share the array of attributes with their original, which is made first; so the originals, sorted by
 * their place in the text, are the start tags in document order. A copy alone does not count: the standard may bring an
 * anchor of a template, or of a body that a frameset has replaced, into the document again (`<template><a href=x><object>
 * </template>y`), where no reader looks for it.
 */
import { TextDecoder } from '@exodus/bytes/encoding.js'
import { defaultTreeAdapter, html, Parser, Tokenizer, type DefaultTreeAdapterMap, type Token } from 'parse5'
import type { LinkElement } from '../../engine/core/types.ts'
import type { HtmlFacts } from '../../threads/html/html-facts.ts'
import { readDirectives, type RobotsDirectives } from '../../threads/html/robots-directives.ts'

type Element = DefaultTreeAdapterMap['element']
type Node = DefaultTreeAdapterMap['node']

export interface PlainLink {
  readonly element: LinkElement
  readonly href: string
  readonly rel?: string
}

/** Facts that outlive the document, in a shape that two readers can be compared in. What is absent or empty is left out. */
export interface PlainFacts {
  readonly links: readonly PlainLink[]
  readonly title?: string
  readonly lang?: string
  readonly base?: string
  readonly canonical?: string
  readonly description?: string
  readonly generator?: string
  readonly robots: RobotsDirectives
  readonly refresh?: { readonly delaySeconds: number; readonly url: string }
  readonly headings: number
  readonly scriptsLoaded: number
}

export interface ReadOptions {
  readonly contentType?: string
  readonly isCut?: boolean
}

/** What is tested: bytes in, facts out. The suites take it as a value, so that a broken one can stand in for it. */
export type Reader = (bytes: Uint8Array, options?: ReadOptions) => PlainFacts

/** A contract says that white space in an address stands as in the bytes, while parse5 has made each line end one LF. */
function withLf(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n')
}

/** White space of HTML: no-break spaces and their like are characters. */
const trimmed = (text: string): string => text.replaceAll(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, '')
const collapsed = (text: string): string => text.replaceAll(/[\t\n\f\r ]+/g, ' ').replaceAll(/^ | $/g, '')

function filled<T extends object>(facts: T): T {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as T
}

/** Facts of one document copied out before the next one is read. */
export function plainFacts(facts: HtmlFacts): PlainFacts {
  const links = Array.from({ length: facts.links.count }, (_, index): PlainLink => {
    const rel = facts.links.rel(index)
    const href = withLf(facts.links.href(index))
    return { element: facts.links.element(index), href, ...(rel !== undefined && rel !== '' && { rel: withLf(rel) }) }
  })
  const lf = (text: string | undefined): string | undefined => text === undefined ? undefined : withLf(text)
  const { title, robots, refresh, headings, scriptsLoaded } = facts
  return filled({
    links, title: title || undefined, lang: lf(facts.lang) || undefined, base: lf(facts.base), canonical: lf(facts.canonical) || undefined,
    description: collapsed(facts.description ?? '') || undefined, generator: collapsed(facts.generator ?? '') || undefined, robots,
    refresh: refresh && { delaySeconds: refresh.delaySeconds, url: withLf(refresh.url) }, headings, scriptsLoaded,
  } as PlainFacts)
}

/** The text of a document, its byte order mark left out. `encoding` is a label of the Encoding standard. */
export function decode(bytes: Uint8Array, encoding = 'utf-8'): string {
  return new TextDecoder(encoding).decode(bytes)
}

function attributeOf(element: Element, name: string, prefix?: string): string | undefined {
  return element.attrs.find((attribute) => attribute.name === name && (attribute.prefix || undefined) === prefix)?.value
}

/** All elements of the tree in tree order, copies included, without the content of template elements. */
export function elementsOf(root: Node): Element[] {
  const found: Element[] = []
  const stack: Node[] = [root]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (defaultTreeAdapter.isElementNode(node)) found.push(node)
    if (!('childNodes' in node)) continue
    for (let index = node.childNodes.length - 1; index >= 0; index -= 1) stack.push(node.childNodes[index]!)
  }
  return found
}

/** Elements made by a start tag, and not as copies of such an element. */
const originals = new WeakSet<Element>()
const seenAttributes = new WeakSet<object>()
const treeAdapter: typeof defaultTreeAdapter = {
  ...defaultTreeAdapter,
  createElement(name, namespace, attributes) {
    const element = defaultTreeAdapter.createElement(name, namespace, attributes)
    if (!seenAttributes.has(attributes)) originals.add(element)
    seenAttributes.add(attributes)
    return element
  },
}

/** The start tags that made the elements of a tree, in document order. */
function startTagsOf(elements: readonly Element[]): Element[] {
  const placed = elements.filter((element) => originals.has(element) && element.sourceCodeLocation)
  return placed.sort((one, other) => one.sourceCodeLocation!.startOffset - other.sourceCodeLocation!.startOffset)
}

/** HTML standard, "shared declarative refresh steps", as far as the address. */
export function refreshOf(content: string): PlainFacts['refresh'] {
  const time = /^[\t\n\f\r ]*(\d+|(?=\.))[\d.]*/.exec(content)
  if (time === null) return undefined
  const rest = content.slice(time[0].length)
  if (!/^[;,\t\n\f\r ]/.test(rest)) return undefined
  const after = rest.replace(/^[\t\n\f\r ]*[;,]?[\t\n\f\r ]*/, '')
  const named = /^url[\t\n\f\r ]*=[\t\n\f\r ]*/i.exec(after)
  const address = named === null ? after : after.slice(named[0].length)
  const quote = address[0] === '"' || address[0] === '\'' ? address[0] : undefined
  const end = quote === undefined ? -1 : address.indexOf(quote, 1)
  const url = (quote === undefined ? address : address.slice(1, end === -1 ? undefined : end)).trim()
  return url === '' ? undefined : { delaySeconds: Number(time[1]), url }
}

function hasToken(list: string, token: string): boolean {
  return list.toLowerCase().split(/[\t\n\f\r ]+/).includes(token)
}

/**
 * The address of an element that links, or undefined. An `a` links in any namespace, as a selector `a[href]` finds it: of
 * SVG and MathML by href or, where that is missing, by xlink:href. No page of the corpus has one of those.
 */
function linkOf(element: Element): PlainLink | undefined {
  const name = element.tagName as LinkElement
  const rel = attributeOf(element, 'rel') || undefined
  const link = (href: string | undefined): PlainLink | undefined =>
    href === undefined ? undefined : { element: name, href: withLf(href), ...(rel !== undefined && { rel: withLf(rel) }) }
  if (element.namespaceURI !== html.NS.HTML) return name === 'a' ? link(attributeOf(element, 'href') ?? attributeOf(element, 'href', 'xlink')) : undefined
  if (name === 'a' || name === 'area') return link(attributeOf(element, 'href'))
  if (name === 'iframe' || name === 'frame') return link(attributeOf(element, 'src'))
  if (name !== 'link' || hasToken(rel ?? '', 'stylesheet')) return undefined
  return ['alternate', 'next', 'prev'].some((token) => hasToken(rel ?? '', token)) ? link(attributeOf(element, 'href')) : undefined
}

function metaContents(tags: readonly Element[], attribute: 'name' | 'http-equiv', value: string): { element: Element; content: string }[] {
  return tags.flatMap((element) => {
    const content = attributeOf(element, 'content')
    const isOne = element.tagName === 'meta' && trimmed(attributeOf(element, attribute) ?? '').toLowerCase() === value
    return isOne && content !== undefined ? [{ element, content }] : []
  })
}

function titleOf(tags: readonly Element[]): string | undefined {
  const title = tags.find(({ tagName }) => tagName === 'title')
  if (title === undefined) return undefined
  return collapsed(title.childNodes.map((node) => defaultTreeAdapter.isTextNode(node) ? node.value : '').join('')) || undefined
}

interface OpenElements {
  readonly tagIDs: readonly html.TAG_ID[]
  readonly items: readonly Element[]
  readonly stackTop: number
  slotBelow(slot: number): number
}

/** "Has an element in table scope" (HTML standard, section 13.2.4.2). */
function isInTableScope(open: OpenElements, tags: readonly html.TAG_ID[]): boolean {
  const { TABLE, TEMPLATE, HTML } = html.TAG_ID
  for (let slot = open.stackTop; slot >= 0; slot = open.slotBelow(slot)) {
    if (open.items[slot]!.namespaceURI !== html.NS.HTML) continue
    const tag = open.tagIDs[slot]!
    if (tags.includes(tag)) return true
    if (tag === TABLE || tag === TEMPLATE || tag === HTML) return false
  }
  return true
}

interface ParserParts {
  readonly openElements: OpenElements & { hasInTableScope(tag: html.TAG_ID): boolean }
  readonly insertionMode: number
}

interface TokenizerParts {
  readonly handler: { readonly currentNotInHTML: boolean }
  inForeignNode: boolean
}

/** parse5's number of the insertion mode "in row", which it does not export. */
const IN_ROW = 13

/**
 * Three rules of parse5 8.1.1 are not the standard's; those are put in their place, since html5lib has no case for them:
 * - a template element ends no search in table scope, so that in `<table><template><caption></table>` the end tag closes
 *   the table outside of the template;
 * - `</thead>` in a row closes the row where no thead is open (`<table><tr><svg></thead>` leaves the svg);
 * - a CDATA section is none right inside of an integration point (`<math><mi><![CDATA[><a href=x>`).
 */
function followStandard(): void {
  const { TBODY, THEAD, TFOOT } = html.TAG_ID
  const stack = Object.getPrototypeOf(new Parser().openElements) as Record<string, unknown>
  stack['hasInTableScope'] = function (this: OpenElements, tag: html.TAG_ID) { return isInTableScope(this, [tag]) }
  stack['hasTableBodyContextInTableScope'] = function (this: OpenElements) { return isInTableScope(this, [TBODY, THEAD, TFOOT]) }
  const parser = Parser.prototype as unknown as Record<string, (this: ParserParts, token: Token.TagToken) => void>
  const endTag = parser['_endTagOutsideForeignContent']!
  parser['_endTagOutsideForeignContent'] = function (token) {
    const isSection = token.tagID === TBODY || token.tagID === THEAD || token.tagID === TFOOT
    if (this.insertionMode === IN_ROW && isSection && !this.openElements.hasInTableScope(token.tagID)) return
    endTag.call(this, token)
  }
  const tokenizer = Tokenizer.prototype as unknown as Record<string, (this: TokenizerParts, codePoint: number) => void>
  const declaration = tokenizer['_stateMarkupDeclarationOpen']!
  tokenizer['_stateMarkupDeclarationOpen'] = function (codePoint) {
    const { inForeignNode } = this
    this.inForeignNode = this.handler.currentNotInHTML
    declaration.call(this, codePoint)
    this.inForeignNode = inForeignNode
  }
}
followStandard()

/** What parse5 finds in a text. `elements` are all of the tree, for counts that include copies. */
export function factsByParse5(text: string): { readonly facts: PlainFacts; readonly elements: readonly Element[] } {
  const elements = elementsOf(Parser.parse(text, { scriptingEnabled: false, sourceCodeLocationInfo: true, treeAdapter }))
  const all = startTagsOf(elements)
  const tags = all.filter(({ namespaceURI }) => namespaceURI === html.NS.HTML)
  const first = (name: string): string | undefined => collapsed(metaContents(tags, 'name', name)[0]?.content ?? '') || undefined
  const refreshing = metaContents(tags, 'http-equiv', 'refresh').map(({ element, content }) => ({ element, refresh: refreshOf(content) }))
    .find(({ refresh }) => refresh !== undefined)
  const links = all.flatMap((element): PlainLink[] => {
    if (element === refreshing?.element) return [{ element: 'meta', href: withLf(refreshing.refresh!.url) }]
    const link = linkOf(element)
    return link === undefined ? [] : [link]
  })
  const canonical = tags.find((element) => element.tagName === 'link' && hasToken(attributeOf(element, 'rel') ?? '', 'canonical') && attributeOf(element, 'href') !== undefined)
  // The html element may have been made without a tag; attributes of later html tags come to it.
  const root = elements.find(({ tagName, namespaceURI }) => tagName === 'html' && namespaceURI === html.NS.HTML)
  const base = tags.map((element) => element.tagName === 'base' ? attributeOf(element, 'href') : undefined).find((href) => href !== undefined)
  const facts = filled({
    links, title: titleOf(tags), lang: trimmed((root && attributeOf(root, 'lang')) ?? '') || undefined, base: base === undefined ? undefined : withLf(base),
    canonical: (canonical && withLf(attributeOf(canonical, 'href')!)) || undefined, description: first('description'), generator: first('generator'),
    robots: readDirectives(metaContents(tags, 'name', 'robots').map(({ content }) => content)),
    refresh: refreshing?.refresh, headings: tags.filter(({ tagName }) => /^h[1-6]$/.test(tagName)).length,
    scriptsLoaded: tags.filter((element) => element.tagName === 'script' && attributeOf(element, 'src') !== undefined).length,
  } as PlainFacts)
  return { facts, elements }
}

/** A reader that is parse5 itself: it passes every comparison, and shows that a suite can pass. */
export const readByParse5: Reader = (bytes, { contentType } = {}) => {
  const encoding = /charset=([\w-]+)/.exec(contentType ?? '')?.[1] ?? 'utf-8'
  return factsByParse5(decode(bytes, encoding)).facts
}

/** A reader without states or a tree, right on most pages: a suite that it passes would prove nothing. */
export const readByPattern: Reader = (bytes) => {
  const text = decode(bytes)
  const links = [...text.matchAll(/<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/gi)]
    .map((match): PlainLink => ({ element: 'a', href: match[1] ?? match[2] ?? match[3]! }))
  return { links, robots: {}, headings: (text.match(/<h[1-6]/gi) ?? []).length, scriptsLoaded: 0 }
}

/** UTF-8 in the header: the bytes are read as UTF-8, whatever a document says of itself. */
export const asUtf8: ReadOptions = { contentType: 'text/html; charset=utf-8' }

/** What two readers disagree on, in words, or undefined: the first link that differs, and each other fact. Quick: it is asked 100,000 times. */
export function disagreement(found: PlainFacts, expected: PlainFacts): string | undefined {
  if (JSON.stringify(inOrder(found)) === JSON.stringify(inOrder(expected))) return undefined
  const [one, other] = [inOrder(found), inOrder(expected)].map((parts) => parts.map((part) => JSON.stringify(part)))
  const at = found.links.findIndex((link, index) => JSON.stringify(linkInOrder(link)) !== JSON.stringify(expected.links[index] && linkInOrder(expected.links[index])))
  const index = at === -1 ? found.links.length : at
  const links = one![0] === other![0] ? [] : [`link ${index} is ${JSON.stringify(found.links[index])}, not ${JSON.stringify(expected.links[index])}`]
  const others = factNames.flatMap((name, position) => one![position + 1] === other![position + 1] ? [] : [`${name} is ${one![position + 1]}, not ${other![position + 1]}`])
  return [...links, ...others].join('; ')
}

const factNames = ['title', 'lang', 'base', 'canonical', 'description', 'generator', 'headings', 'scriptsLoaded', 'noindex', 'nofollow', 'noarchive', 'delaySeconds', 'refresh'] as const

const linkInOrder = ({ element, href, rel }: PlainLink): unknown[] => [element, href, rel]

function inOrder({ links, title, lang, base, canonical, description, generator, headings, scriptsLoaded, robots, refresh }: PlainFacts): unknown[] {
  return [
    links.map(linkInOrder), title, lang, base, canonical, description, generator, headings, scriptsLoaded, robots.noindex, robots.nofollow, robots.noarchive,
    refresh?.delaySeconds, refresh?.url,
  ]
}

/** What a reader and parse5 disagree on in a text, or undefined. What the reader throws is a disagreement too. */
export function differenceOf(read: Reader, text: string): string | undefined {
  return differenceOfBytes(read, Buffer.from(text))
}

export function differenceOfBytes(read: Reader, bytes: Uint8Array): string | undefined {
  const { facts: expected } = factsByParse5(decode(bytes))
  try {
    return disagreement(read(bytes, asUtf8), expected)
  } catch (error) {
    return String(error instanceof Error ? error.stack : error)
  }
}

/**
 * The differences that are known and left. To be asked of a shortened text, where nothing else is wrong.
 * - The scanner keeps no list of active formatting elements, so it does not see what text in an integration point opens
 *   again: an end tag or a CDATA section behind it means something else to parse5 then
 *   (`<svg><desc><b><nobr></b></desc><desc>a</desc><area href=x>`).
 * - Nor does it see that the end of a formatting element, or the next <a> or <nobr>, closes the elements within it that are
 *   not special. Where SVG or MathML follows, the late end tag of such an element ends it for the scanner and not for parse5
 *   (`<b><span></b><svg></span><iframe src=x>`).
 */
export function isKnownDifference(text: string): boolean {
  return formattingInForeign.test(text) || closedByFormatting.test(text)
}

const formattingNames = 'a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u'
const formattingInForeign = new RegExp(String.raw`<(?:svg|math)(?=[\s/>])[^]*<(?:${formattingNames})(?=[\s/>])`, 'i')
const closedByFormatting = new RegExp(String.raw`<(${formattingNames})(?=[\s/>])[^]*<([a-z][^\s/>]*)[^]*</?\1(?=[\s/>])[^]*<(?:svg|math)(?=[\s/>])[^]*</\2(?=[\s/>])`, 'i')

/** The shortest text found by leaving out pieces for which a test still fails: what is shown of a failure. Tries at most 3,000. */
export function shrink(text: string, fails: (text: string) => boolean): string {
  let shortest = text
  let tries = 3_000
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < shortest.length && tries > 0;) {
      const without = shortest.slice(0, at) + shortest.slice(at + size)
      tries -= 1
      if (fails(without)) shortest = without
      else at += size
    }
  }
  return shortest
}

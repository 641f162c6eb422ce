/**
 * What the scanner notes of a document: links and facts, as places in its bytes. Runs in a parse worker. The arrays grow
 * with the tags of a page and never with its text; they are kept for the next document unless they are unusually large (32
 * MB of `<a href>` make them 160 MB).
 */
import { linkElements, pageLinkElements, type LinkElement } from '../../engine/core/types.ts'
import { attribute, tag } from './names.ts'
import { followedRels } from './rel.ts'
import type { Attributes } from './attributes.ts'

/** Kinds of a link, by number: the places of `linkElements`. */
const kind = Object.fromEntries(linkElements.map((element, index) => [element, index])) as Readonly<Record<LinkElement, number>>

/** A set of elements as bits of their kinds. */
export function kindsOf(elements: readonly LinkElement[] = pageLinkElements): number {
  return elements.reduce((bits, element) => bits | (1 << kind[element]), 0)
}

/** Facts that a document has once: the place of their text, by number. */
export const facts = { title: 0, lang: 1, base: 2, canonical: 3, description: 4, generator: 5 } as const
const factsCount = 6

/** Words of a link: kind, start, end, start and end of rel (-1: none). */
export const LINK_WORDS = 5
/** What the arrays hold at first, and how many words of one are kept for the next document. */
const LINKS_FIRST = 512
const TEXTS_FIRST = 512
const WORDS_KEPT_MAX = 1 << 18
/** Meta elements with robots directives that are read. A page has one or two. */
const ROBOTS_METAS_MAX = 16
/** Declarations of an encoding that are looked at; the first that names one counts. */
const CHARSETS_MAX = 4

/** Types of a script that runs: "JavaScript MIME type" of the MIME Sniffing Standard, without numbered ones, and modules. */
const runningTypes = [
  '', 'module', 'text/javascript', 'application/javascript', 'application/x-javascript', 'text/ecmascript', 'application/ecmascript', 'text/x-javascript', 'text/jscript',
  'text/livescript', 'text/x-ecmascript', 'application/x-ecmascript',
]

export class Notes {
  linkCount = 0
  textCount = 0
  robotsCount = 0
  charsetCount = 0
  headings = 0
  textLength = 0
  scriptLength = 0
  scriptsLoaded = 0

  readonly #attributes: Attributes
  #kinds = 0
  #agent = ''
  #links: Int32Array = new Int32Array(LINK_WORDS * LINKS_FIRST)
  #texts: Int32Array = new Int32Array(2 * TEXTS_FIRST)
  readonly #facts = new Int32Array(2 * factsCount)
  readonly #robots = new Int32Array(2 * ROBOTS_METAS_MAX)
  readonly #charsets = new Int32Array(3 * CHARSETS_MAX)
  #bodyAt = 0
  #bodyLinks = 0
  #bodyScriptLength = 0
  #bodyScriptsLoaded = 0

  constructor(attributes: Attributes) {
    this.#attributes = attributes
  }

  /** A new document; of links only those of these kinds are noted, and robots directives of a meta element with this name too. */
  begin(kinds: number, agent = ''): void {
    this.#kinds = kinds
    this.#agent = agent
    if (this.#links.length > WORDS_KEPT_MAX) this.#links = new Int32Array(LINK_WORDS * LINKS_FIRST)
    if (this.#texts.length > WORDS_KEPT_MAX) this.#texts = new Int32Array(2 * TEXTS_FIRST)
    this.#facts.fill(-1)
    this.#bodyAt = this.#bodyLinks = 0
    this.linkCount = this.textCount = this.robotsCount = this.charsetCount = 0
    this.headings = this.textLength = this.scriptLength = this.scriptsLoaded = 0
  }

  /** `linkCount` links of LINK_WORDS words each; valid until the next document. */
  get links(): Int32Array {
    return this.#links
  }

  /** `textCount` pairs of start and end. */
  get texts(): Int32Array {
    return this.#texts
  }

  /** Where the text of a fact begins; -1: the document has none. */
  factStart(fact: number): number {
    return this.#facts[2 * fact]!
  }

  factEnd(fact: number): number {
    return this.#facts[2 * fact + 1]!
  }

  /** Where the content of a robots meta element lies. */
  robotsStart(index: number): number {
    return this.#robots[2 * index]!
  }

  robotsEnd(index: number): number {
    return this.#robots[2 * index + 1]!
  }

  /** A declared encoding: where it lies, and whether that is a label or a content type. */
  charsetAt(index: number): { readonly start: number; readonly end: number; readonly isLabel: boolean } {
    const at = 3 * index
    return { start: this.#charsets[at + 1]!, end: this.#charsets[at + 2]!, isLabel: this.#charsets[at] === 1 }
  }

  /** An element whose attributes were read. */
  element(name: number, isForeign: boolean): void {
    const attributes = this.#attributes
    if (isForeign) {
      if (name === tag.a) this.#link(kind.a, attributes.has(attribute.href) ? attribute.href : attribute['xlink:href'])
      return
    }
    switch (name) {
      case tag.a: this.#link(kind.a, attribute.href); return
      case tag.area: this.#link(kind.area, attribute.href); return
      case tag.iframe: this.#link(kind.iframe, attribute.src); return
      case tag.frame: this.#link(kind.frame, attribute.src); return
      case tag.link: this.#linkElement(); return
      case tag.meta: this.#meta(); return
      case tag.base: this.#factOf(facts.base, attribute.href); return
      case tag.html: this.#factOf(facts.lang, attribute.lang); return
      case tag.script: this.#script(); return
      case tag.img: case tag.image: this.#link(kind.img, attribute.src); return
      case tag.form: this.#form(); return
      default:
    }
  }

  /** The first of a kind counts. */
  fact(fact: number, start: number, end: number): void {
    if (this.#facts[2 * fact]! >= 0) return
    this.#facts[2 * fact] = start
    this.#facts[2 * fact + 1] = end
  }

  text(start: number, end: number): void {
    if (2 * this.textCount === this.#texts.length) this.#texts = grown(this.#texts)
    this.#texts[2 * this.textCount] = start
    this.#texts[2 * this.textCount + 1] = end
    this.textCount += 1
  }

  /** The body begins at a place. */
  beginBody(at: number): void {
    this.#bodyAt = at
    this.#bodyLinks = this.linkCount
    this.#bodyScriptLength = this.scriptLength
    this.#bodyScriptsLoaded = this.scriptsLoaded
  }

  /** A frameset has taken the place of the body: what stood in it is gone. */
  forgetBody(): void {
    this.linkCount = this.#bodyLinks
    // The language stays: it is the html element's, wherever its tag stands.
    for (let fact = 0; fact < factsCount; fact += 1) if (fact !== facts.lang && this.#facts[2 * fact]! >= this.#bodyAt) this.#facts[2 * fact] = -1
    while (this.robotsCount > 0 && this.robotsStart(this.robotsCount - 1) >= this.#bodyAt) this.robotsCount -= 1
    this.scriptLength = this.#bodyScriptLength
    this.scriptsLoaded = this.#bodyScriptsLoaded
    this.textLength = this.headings = this.textCount = 0
  }

  #link(linkKind: number, from: number): void {
    const attributes = this.#attributes
    if ((this.#kinds & (1 << linkKind)) === 0 || !attributes.has(from)) return
    const at = LINK_WORDS * this.linkCount
    if (at + LINK_WORDS > this.#links.length) this.#links = grown(this.#links)
    const links = this.#links
    const hasRel = attributes.has(attribute.rel)
    links[at] = linkKind
    links[at + 1] = attributes.start(from)
    links[at + 2] = attributes.end(from)
    links[at + 3] = hasRel ? attributes.start(attribute.rel) : -1
    links[at + 4] = hasRel ? attributes.end(attribute.rel) : -1
    this.linkCount += 1
  }

  #linkElement(): void {
    const attributes = this.#attributes
    if (!attributes.has(attribute.rel)) return
    if (attributes.hasWord(attribute.rel, 'canonical')) this.#factOf(facts.canonical, attribute.href)
    const isFollowed = followedRels.some((word) => attributes.hasWord(attribute.rel, word))
    if (isFollowed && !attributes.hasWord(attribute.rel, 'stylesheet')) this.#link(kind.link, attribute.href)
  }

  #meta(): void {
    const attributes = this.#attributes
    if (attributes.has(attribute.charset)) this.#noteCharset(attribute.charset)
    if (!attributes.has(attribute.content)) return
    if (!attributes.has(attribute.charset) && attributes.is(attribute['http-equiv'], 'content-type')) this.#noteCharset(attribute.content)
    if (attributes.isTrimmed(attribute['http-equiv'], 'refresh')) this.#link(kind.meta, attribute.content)
    if (attributes.isTrimmed(attribute.name, 'robots')) this.#noteRobots()
    else if (this.#agent !== '' && attributes.isTrimmed(attribute.name, this.#agent)) this.#noteRobots()
    else if (attributes.isTrimmed(attribute.name, 'description')) this.#factOf(facts.description, attribute.content)
    else if (attributes.isTrimmed(attribute.name, 'generator')) this.#factOf(facts.generator, attribute.content)
  }

  #noteCharset(from: number): void {
    if (this.charsetCount === CHARSETS_MAX) return
    const at = 3 * this.charsetCount
    this.#charsets[at] = from === attribute.charset ? 1 : 0
    this.#charsets[at + 1] = this.#attributes.start(from)
    this.#charsets[at + 2] = this.#attributes.end(from)
    this.charsetCount += 1
  }

  #noteRobots(): void {
    if (this.robotsCount === ROBOTS_METAS_MAX) return
    this.#robots[2 * this.robotsCount] = this.#attributes.start(attribute.content)
    this.#robots[2 * this.robotsCount + 1] = this.#attributes.end(attribute.content)
    this.robotsCount += 1
  }

  #script(): void {
    if (!this.#attributes.has(attribute.src)) return
    this.scriptsLoaded += 1
    this.#link(kind.script, attribute.src)
  }

  /** The content of the script in hand. Data in a script element (JSON-LD, settings, templates) runs nowhere. */
  scriptContent(contentBytes: number): void {
    const attributes = this.#attributes
    const runs = !attributes.has(attribute.type) || runningTypes.some((type) => attributes.isTrimmed(attribute.type, type))
    if (runs) this.scriptLength += contentBytes
  }

  #form(): void {
    if (!this.#attributes.has(attribute.method) || this.#attributes.is(attribute.method, 'get')) this.#link(kind.form, attribute.action)
  }

  #factOf(fact: number, from: number): void {
    if (this.#attributes.has(from)) this.fact(fact, this.#attributes.start(from), this.#attributes.end(from))
  }
}

function grown(words: Int32Array): Int32Array {
  const larger = new Int32Array(2 * words.length)
  larger.set(words)
  return larger
}

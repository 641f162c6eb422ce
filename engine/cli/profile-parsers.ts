/**
 * The same job by four parsers: from the decoded bytes of a page to its links, title, language, base, canonical
 * address, metas and lengths of text and script, which is what the engine reads in a document. The only importer of
 * htmlparser2 and parse5. Main thread, while no worker runs.
 *
 * A round gives all pages to one parser after the other, each round beginning with another one. Before a page is given,
 * its bytes are put where inflating would have left them, so that no parser waits for memory and none warms it for the
 * next. Figures are medians of the rounds, ratios are made within a round.
 */
import { Parser } from 'htmlparser2'
import { parse, type DefaultTreeAdapterTypes } from 'parse5'
import { charsetOf, decodeText } from '../../threads/html/charset.ts'
import { parseDocument, walkDocument, type DocumentVisitor } from '../../threads/html/document.ts'
import { readHtml, scanDocument, type ScannedDocument } from '../../threads/html/read-html.ts'

export const parserNames = ['scanner', 'htmlparser2', 'node-html-parser', 'parse5'] as const
export type ParserName = (typeof parserNames)[number]

/** A page as it is after inflating. */
export interface ParserBody {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly isCut: boolean
}

/** What every parser must have read; by it the job is known to be the same. */
export interface DocumentFacts {
  /** Addresses of links, in document order, character references replaced. */
  readonly hrefs: readonly string[]
  readonly title?: string
  readonly base?: string
}

type Attribute = (name: string) => string | undefined

const hrefAttribute: Readonly<Record<string, string>> = { a: 'href', area: 'href', iframe: 'src', frame: 'src' }
const metaNames = new Set(['robots', 'description', 'generator'])
const followedRels = /(?:^|\s)(?:alternate|next|prev)(?:\s|$)/i
const unreadText = new Set(['style', 'noscript', 'textarea'])

/** Gathers the facts from whatever tells of elements and texts. */
class FactCollector implements DocumentVisitor {
  readonly hrefs: string[] = []
  readonly metas: string[] = []
  title: string | undefined
  base: string | undefined
  lang: string | undefined
  canonical: string | undefined
  textLength = 0
  scriptLength = 0

  element(name: string, attribute: Attribute): void {
    switch (name) {
      case 'a': case 'area': case 'iframe': case 'frame': this.#link(attribute(hrefAttribute[name]!)); return
      case 'html': this.lang ??= attribute('lang'); return
      case 'base': this.base ??= attribute('href'); return
      case 'link': this.#linkElement(attribute); return
      case 'meta': this.#meta(attribute); return
      default:
    }
  }

  text(parent: string, raw: () => string): void {
    if (parent === 'script') this.scriptLength += raw().length
    else if (parent === 'title') this.title ??= raw()
    else if (!unreadText.has(parent)) this.textLength += raw().trim().length
  }

  facts(): DocumentFacts {
    const { hrefs, title, base } = this
    return { hrefs, ...(title !== undefined && { title: title.replaceAll(/\s+/g, ' ').trim() }), ...(base !== undefined && { base }) }
  }

  #link(href: string | undefined): void {
    if (href !== undefined) this.hrefs.push(href)
  }

  #linkElement(attribute: Attribute): void {
    const rel = attribute('rel') ?? ''
    if (/(?:^|\s)canonical(?:\s|$)/i.test(rel)) this.canonical ??= attribute('href')
    if (followedRels.test(rel) && !/stylesheet/i.test(rel)) this.#link(attribute('href'))
  }

  #meta(attribute: Attribute): void {
    const isWanted = metaNames.has(attribute('name')?.toLowerCase() ?? '') || attribute('http-equiv')?.toLowerCase() === 'refresh'
    if (isWanted) this.metas.push(attribute('content') ?? '')
  }
}

/** Decoding the bytes is part of the job: the scanner does without, and that is its point. */
function textOf({ bytes, contentType, isCut }: ParserBody): string {
  return decodeText(bytes, charsetOf(bytes, { contentType, isHtml: true, isCut }))
}

/** The scanner answers places, and has no use for a string that nobody asks for. */
function scan({ bytes, contentType, isCut }: ParserBody): ScannedDocument {
  return scanDocument(bytes, { contentType, isCut })
}

function byScanner({ bytes, contentType, isCut }: ParserBody): DocumentFacts {
  const { links, title, base } = readHtml(bytes, { contentType, isCut })
  const hrefs = Array.from({ length: links.count }, (_, index) => links.href(index))
  return { hrefs, ...(title !== undefined && { title }), ...(base !== undefined && { base }) }
}

function byHtmlparser2(body: ParserBody): DocumentFacts {
  const facts = new FactCollector()
  const open: string[] = []
  let templates = 0
  const parser = new Parser({
    onopentag(name, attributes) {
      open.push(name)
      if (name === 'template') templates += 1
      else if (templates === 0) facts.element(name, (attribute) => attributes[attribute])
    },
    ontext(text) {
      if (templates === 0) facts.text(open.at(-1) ?? '', () => text)
    },
    onclosetag() {
      if (open.pop() === 'template') templates -= 1
    },
  })
  parser.end(textOf(body))
  return facts.facts()
}

function byNodeHtmlParser(body: ParserBody): DocumentFacts {
  const facts = new FactCollector()
  walkDocument(parseDocument(textOf(body)), facts)
  return facts.facts()
}

function byParse5(body: ParserBody): DocumentFacts {
  const facts = new FactCollector()
  walkParse5(parse(textOf(body), { scriptingEnabled: false }), facts)
  return facts.facts()
}

/** Without recursion: a page may nest deep. The content of a template is no child of it, so it is left out. */
function walkParse5(root: DefaultTreeAdapterTypes.Document, visitor: DocumentVisitor): void {
  const stack: DefaultTreeAdapterTypes.Node[] = [root]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if ('value' in node) {
      const { parentNode, value } = node
      visitor.text(parentNode !== null && 'tagName' in parentNode ? parentNode.tagName : '', () => value)
      continue
    }
    if ('tagName' in node) {
      const { attrs, tagName } = node
      visitor.element(tagName, (attribute) => attrs.find(({ name }) => name === attribute)?.value)
    }
    if (!('childNodes' in node)) continue
    for (let index = node.childNodes.length - 1; index >= 0; index -= 1) stack.push(node.childNodes[index]!)
  }
}

/** parse5 alone, from a text to its tree. */
export function parseByParse5(text: string): unknown {
  return parse(text, { scriptingEnabled: false })
}

export interface ParserEntry {
  readonly does: string
  /** What the parser found, as strings: by it the job is known to be the same. */
  read(body: ParserBody): DocumentFacts
  /** What is timed; default: `read`. */
  readonly run?: (body: ParserBody) => unknown
}

export const parsers: Readonly<Record<ParserName, ParserEntry>> = {
  scanner: { does: 'reads the bytes, notes places; its links as strings cost what the second line says', read: byScanner, run: scan },
  htmlparser2: { does: 'decodes, then calls back for each tag and text, no tree', read: byHtmlparser2 },
  'node-html-parser': { does: 'decodes, makes a tree of its own kind, walks it', read: byNodeHtmlParser },
  parse5: { does: 'decodes, makes the tree of the HTML standard, walks it', read: byParse5 },
}

export interface ParserFigures {
  readonly name: ParserName
  readonly pagesPerSecond: number
  readonly mbPerSecond: number
  /** Times as fast as parse5: median, least and greatest of the rounds. */
  readonly ratio: number
  readonly ratioMin: number
  readonly ratioMax: number
}

/** Milliseconds of a round, by parser. */
export type Round = Readonly<Record<ParserName | 'scannerWithStrings', number>>

export interface ParserComparison {
  readonly rounds: number
  readonly figures: readonly ParserFigures[]
  /** The scanner, with a string for each link. */
  readonly withStrings: Omit<ParserFigures, 'name'>
  readonly roundsMs: readonly Round[]
}

/** A shorter round measures chance: a small set is repeated within it, up to so many pages. */
const ROUND_BYTES_MIN = 2 ** 20
const ROUND_PAGES_MAX = 1_000

function repeated(bodies: readonly ParserBody[]): readonly ParserBody[] {
  const bytes = bodies.reduce((sum, body) => sum + body.bytes.byteLength, 0)
  const times = Math.min(Math.ceil(ROUND_BYTES_MIN / Math.max(1, bytes)), Math.ceil(ROUND_PAGES_MAX / bodies.length))
  return Array.from({ length: times }, () => bodies).flat()
}

/** A first round is not counted; then `roundsMin` rounds at least, and more until `ms` have passed, `roundsMax` at most. */
export function compareParsers(given: readonly ParserBody[], options: { ms: number; roundsMin?: number; roundsMax?: number }): ParserComparison {
  const { ms, roundsMin = 3, roundsMax = 15 } = options
  const bodies = repeated(given)
  roundOf(bodies, 0)
  const endMs = performance.now() + ms
  const roundsMs: Round[] = []
  while (roundsMs.length < roundsMin || (roundsMs.length < roundsMax && performance.now() < endMs)) roundsMs.push(roundOf(bodies, roundsMs.length))
  const bytes = bodies.reduce((sum, body) => sum + body.bytes.byteLength, 0)
  const figuresOf = (name: keyof Round): Omit<ParserFigures, 'name'> => {
    const seconds = median(roundsMs.map((round) => round[name])) / 1_000
    const ratios = roundsMs.map((round) => round.parse5 / round[name])
    return {
      pagesPerSecond: bodies.length / seconds, mbPerSecond: bytes / 2 ** 20 / seconds,
      ratio: median(ratios), ratioMin: Math.min(...ratios), ratioMax: Math.max(...ratios),
    }
  }
  const figures = parserNames.map((name): ParserFigures => ({ name, ...figuresOf(name) }))
  return { rounds: roundsMs.length, figures, withStrings: figuresOf('scannerWithStrings'), roundsMs }
}

/** Every page by one parser, in one buffer: milliseconds. */
function timed(bodies: readonly ParserBody[], room: Uint8Array, run: (body: ParserBody) => unknown): number {
  let ms = 0
  for (const body of bodies) {
    room.set(body.bytes)
    const placed = { ...body, bytes: room.subarray(0, body.bytes.byteLength) }
    const startMs = performance.now()
    run(placed)
    ms += performance.now() - startMs
  }
  return ms
}

function roundOf(bodies: readonly ParserBody[], turn: number): Round {
  const room = new Uint8Array(Math.max(1, ...bodies.map(({ bytes }) => bytes.byteLength)))
  const ms: Record<keyof Round, number> = { scanner: 0, htmlparser2: 0, 'node-html-parser': 0, parse5: 0, scannerWithStrings: 0 }
  for (let step = 0; step < parserNames.length; step += 1) {
    const name = parserNames[(turn + step) % parserNames.length]!
    const { run, read } = parsers[name]
    ms[name] = timed(bodies, room, run ?? read)
    if (run !== undefined) ms.scannerWithStrings = timed(bodies, room, read)
  }
  return ms
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

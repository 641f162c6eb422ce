/**
 * The element and attribute names that the scanner knows, as small numbers found from bytes, and what the HTML standard
 * says of each element as bits. Pure; runs in a parse worker. A name that is not here has a number too, made of its
 * hash, so that an end tag finds the start tag of the same name; two names in 33 million share one.
 */
import { invariant } from '../../engine/core/errors.ts'

/** Bits of an element (HTML standard, "parsing"). */
export const is = {
  /** In the category "special". */
  special: 1 << 0,
  /** Ends every scope but the select scope. */
  scope: 1 << 1,
  /** Never has content, so it is not put on the stack. */
  void: 1 << 2,
  formatting: 1 << 3,
  /** Its start tag closes a p element. */
  closesP: 1 << 4,
  /** Its start tag ends foreign content. */
  breakout: 1 << 5,
  heading: 1 << 6,
  /** A start tag that the rules for tables treat on their own. */
  tablePart: 1 << 7,
  /** Its start tag means that a frameset can no longer take the place of the body. */
  content: 1 << 8,
  /** Its end tag closes whatever is open inside it, when it is in scope. */
  block: 1 << 9,
  /** May stand in the head. */
  head: 1 << 10,
  /** Its attributes are read. */
  read: 1 << 11,
  /** `address`, `div`, `p`: special, and yet no end of the search for an open list item. */
  listPassed: 1 << 12,
  /** The same, when images or forms are wanted as links. */
  readIfAsked: 1 << 13,
} as const

const { special, scope, formatting, closesP, breakout, heading, tablePart, content, block, head, read, listPassed, readIfAsked } = is
const container = special | closesP | block
const empty = is.void

/** By name: bits. Compared with parse5's own lists over all html5lib documents (test/unit/corpus-html5lib-tree). */
const elements = {
  html: special | scope | read, head: special | breakout, body: special | breakout, title: special | head, base: special | head | empty | read,
  basefont: special | head | empty, bgsound: special | head | empty, link: special | head | empty | read, meta: special | head | empty | read | breakout,
  style: special | head, script: special | head | read, noscript: special, template: special | scope | head, noframes: special | head,
  a: formatting | read, area: special | empty | content | read, iframe: special | content | read, frame: special | read, frameset: special, form: special | closesP | readIfAsked,
  address: container | listPassed, article: container, aside: container, blockquote: container | breakout, center: container | breakout, details: container,
  dialog: closesP | block, dir: container, div: container | breakout | listPassed, dl: container | breakout, fieldset: container, figcaption: container, figure: container,
  footer: container, header: container, hgroup: container, main: container, menu: container | breakout, nav: container, ol: container | breakout,
  search: closesP | block, section: container, summary: container, ul: container | breakout, listing: container | breakout | content, pre: container | breakout | content,
  p: special | closesP | breakout | listPassed, li: special | breakout | content, dd: special | breakout | content, dt: special | breakout | content,
  h1: special | closesP | breakout | heading, h2: special | closesP | breakout | heading, h3: special | closesP | breakout | heading,
  h4: special | closesP | breakout | heading, h5: special | closesP | breakout | heading, h6: special | closesP | breakout | heading,
  b: formatting | breakout, big: formatting | breakout, code: formatting | breakout, em: formatting | breakout, font: formatting | read, i: formatting | breakout,
  nobr: formatting | breakout, s: formatting | breakout, small: formatting | breakout, strike: formatting | breakout, strong: formatting | breakout,
  tt: formatting | breakout, u: formatting | breakout,
  table: special | scope | breakout | content | closesP, caption: special | scope | tablePart, colgroup: special | tablePart, col: special | empty | tablePart, tbody: special | tablePart,
  thead: special | tablePart, tfoot: special | tablePart, tr: special | tablePart, td: special | scope | tablePart, th: special | scope | tablePart,
  applet: special | scope | content | block, marquee: special | scope | content | block, object: special | scope | content | block, button: special | content | block,
  br: special | empty | breakout | content, embed: special | empty | breakout | content, img: special | empty | breakout | content | readIfAsked, image: empty | content | readIfAsked,
  keygen: special | empty | content, wbr: special | empty | content, input: special | empty | read, hr: special | empty | breakout | content | closesP,
  param: special | empty, source: special | empty, track: special | empty,
  textarea: special | content, xmp: special | content | closesP, noembed: special, plaintext: special | closesP, select: special | content, option: 0, optgroup: 0,
  ruby: breakout, rb: 0, rp: 0, rt: 0, rtc: 0, span: breakout, sub: breakout, sup: breakout, var: breakout,
  math: read, svg: read, foreignobject: 0, desc: 0, mi: 0, mo: 0, mn: 0, ms: 0, mtext: 0, 'annotation-xml': read, mglyph: 0, malignmark: 0,
} as const satisfies Record<string, number>

const attributes = [
  'href', 'src', 'rel', 'name', 'content', 'http-equiv', 'lang', 'type', 'action', 'method', 'color', 'face', 'size', 'encoding', 'xlink:href', 'charset',
] as const

type Numbered<Name extends string> = Readonly<Record<Name, number>>

function numbered<Name extends string>(names: readonly Name[]): Numbered<Name> {
  return Object.fromEntries(names.map((name, index) => [name, index + 1])) as Numbered<Name>
}

const elementNames = Object.keys(elements) as (keyof typeof elements)[]

/** Numbers of the known elements, from 1. */
export const tag = numbered(elementNames)
/** Numbers of the known attributes, from 1. */
export const attribute = numbered(attributes)
export const attributesKnown = attributes.length

/** Element numbers below this are known names; unknown ones lie between it and `NAME_MASK`. */
export const KNOWN_MAX = 256
export const NAME_MASK = (1 << 26) - 1

/** Bits by element number; 0 for unknown ones, which are asked for with their low byte. */
export const bitsOf = new Int32Array(KNOWN_MAX)
elementNames.forEach((name, index) => { bitsOf[index + 1] = elements[name] })
invariant(elementNames.length < KNOWN_MAX, 'element numbers have eight bits')

/** Lower case for ASCII letters, everything else as it is. */
export const lowerCase = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte))

/** One step of the hash of a name; the first is 0. Of four bytes or fewer it is the bytes themselves. */
export function nextHash(hash: number, lowered: number): number {
  return ((hash << 8) | (hash >>> 24)) ^ lowered
}

const SLOT_BITS = 12

function slotOf(hash: number, multiplier: number): number {
  return Math.imul(hash, multiplier) >>> (32 - SLOT_BITS)
}

/** The first odd multiplier by which no two names share a slot: found in a few tries, since one slot in thirty is used. */
function multiplierFor(hashes: readonly number[]): number {
  for (let multiplier = 0x9e3779b1; ; multiplier += 2) {
    if (new Set(hashes.map((hash) => slotOf(hash, multiplier))).size === hashes.length) return multiplier
  }
}

/**
 * Names by hash, without collisions among them: one look, and a comparison byte by byte where the hash is not the bytes
 * themselves. So a hit is the name.
 */
class NameTable {
  readonly #multiplier: number
  readonly #numbers = new Uint8Array(2 ** SLOT_BITS)
  readonly #hashes: Int32Array
  readonly #starts: Uint16Array
  readonly #bytes: Uint8Array

  constructor(names: readonly string[]) {
    const hashes = names.map((name) => [...Buffer.from(name)].reduce(nextHash, 0))
    this.#multiplier = multiplierFor(hashes)
    this.#hashes = Int32Array.of(0, ...hashes)
    this.#starts = new Uint16Array(names.length + 2)
    this.#bytes = new Uint8Array(Buffer.from(names.join('')))
    for (const [index, hash] of hashes.entries()) {
      this.#numbers[slotOf(hash, this.#multiplier)] = index + 1
      this.#starts[index + 2] = this.#starts[index + 1]! + names[index]!.length
    }
  }

  /** The number of the name at `start` to `end`, whose hash is known; 0 when it is none of these. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const number = this.#numbers[slotOf(hash, this.#multiplier)]!
    if (number === 0 || this.#hashes[number] !== hash) return 0
    const from = this.#starts[number]!
    const length = end - start
    if (this.#starts[number + 1]! - from !== length) return 0
    // Four bytes are the hash; of longer names it is a mixture.
    if (length > 4) for (let at = start; at < end; at += 1) if (lowerCase[bytes[at]!] !== this.#bytes[from + at - start]) return 0
    return number
  }
}

/** By the length of a name: bits of the low five bits of the first letters that known attributes of that length have. */
const firstLetters = new Int32Array(32)
for (const name of attributes) firstLetters[name.length]! |= 1 << (name.charCodeAt(0) & 31)

/** False for most attributes that nobody asks for; `first` is the first byte of a name. */
export function mayBeKnown(length: number, first: number): boolean {
  return length < 32 && (firstLetters[length]! & (1 << (first & 31))) !== 0
}

export const elementTable = new NameTable(elementNames)
const attributeTable = new NameTable(attributes)

/** The number of the element whose name lies at `start` to `end`; 0: unknown. */
export function elementAt(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at += 1) hash = nextHash(hash, lowerCase[bytes[at]!]!)
  return elementTable.find(bytes, start, end, hash)
}

/** The number of the attribute whose name lies at `start` to `end`; 0: unknown. */
export function attributeAt(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at += 1) hash = nextHash(hash, lowerCase[bytes[at]!]!)
  return attributeTable.find(bytes, start, end, hash)
}

/** The number of an unknown element, from a better hash than that of the tables, which repeats every four letters. */
export function unknownNumber(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ lowerCase[bytes[at]!]!, 0x01000193)
  return KNOWN_MAX + ((hash ^ (hash >>> 20)) & (NAME_MASK >>> 1))
}

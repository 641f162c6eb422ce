/**
 * The stack of open elements (HTML standard, section 13.2.4.2) as numbers: no nodes, no attributes, no text. Runs in a
 * parse worker; used by tree.ts alone. Formatting elements are left out in HTML content: no rule that decides whether
 * another element exists looks at them.
 *
 *   an element:   bit 29     28    27         26          25 .. 0
 *                 +--------+-----+----------+-----------+------------------+
 *                 | MathML | SVG | HTML     | MathML    | name (names.ts)  |
 *                 |        |     | integration point    |                  |
 *                 +--------+-----+----------+-----------+------------------+
 *
 * Bounds: a stack holds `depthMax` elements; deeper ones are only counted, and end tags there only count down. Looking
 * for a name is begun only when the count of that name says that it is open, so work for a tag is bounded, and a page
 * of a million open elements costs what its bytes cost.
 */
import * as names from './names.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { bitsOf, is, KNOWN_MAX, NAME_MASK, tag } = names

export const SVG = 1 << 28
export const MATHML = 1 << 29
export const FOREIGN_MIN = 1 << 26
export const HTML_POINT = 1 << 27
export const TEXT_POINT = 1 << 26

/** Blink bounds its tree at 512; parse5 does not. Pages of the corpus reach 60. */
const depthMax = 1_024
const BUCKETS = 2 * KNOWN_MAX
const ADOPTION_ROUNDS = 8

/** Kinds of scope: which elements end the search. */
export const scopes = { plain: 0, button: 1, list: 2, table: 3 } as const
export type ScopeKind = (typeof scopes)[keyof typeof scopes]

/** Foreign elements that end a scope and the search for any other end tag. */
function isForeignBoundary(element: number): boolean {
  if ((element & (HTML_POINT | TEXT_POINT)) !== 0) return true
  return (element & MATHML) !== 0 && (element & NAME_MASK) === tag['annotation-xml']
}

export class OpenElements {
  readonly #stack = new Int32Array(depthMax)
  /** How many HTML elements of a name are open; unknown names share counts by their low byte. */
  readonly #counts = new Int32Array(BUCKETS)
  #depth = 0
  /** Elements beyond `depthMax`. */
  #beyond = 0
  #foreign = 0
  /** Entries looked at in searches: what a document costs beyond its bytes. */
  visits = 0

  /** A stack with the html element alone. */
  reset(): void {
    this.#counts.fill(0)
    this.#depth = 0
    this.#beyond = 0
    this.#foreign = 0
    this.visits = 0
    this.push(tag.html)
  }

  get depth(): number {
    return this.#depth
  }

  /** The current node. */
  get top(): number {
    return this.#stack[this.#depth - 1]!
  }

  at(index: number): number {
    return this.#stack[index]!
  }

  get hasForeign(): boolean {
    return this.#foreign > 0
  }

  /** Whether an HTML element of this known name is open. */
  has(name: number): boolean {
    return this.#counts[name]! > 0
  }

  push(element: number): void {
    if (this.#depth === depthMax) {
      this.#beyond += 1
      return
    }
    this.#stack[this.#depth] = element
    this.#depth += 1
    if (element >= FOREIGN_MIN) this.#foreign += 1
    else this.#counts[bucketOf(element)]! += 1
  }

  /** The same for an HTML element of a known name. */
  pushHtml(name: number): void {
    if (this.#depth === depthMax) {
      this.#beyond += 1
      return
    }
    this.#stack[this.#depth] = name
    this.#depth += 1
    this.#counts[name]! += 1
  }

  /** Pops the current node if it is an HTML element of this known name. */
  popIfTop(name: number): boolean {
    if (this.#stack[this.#depth - 1] !== name) return false
    this.#depth -= 1
    this.#counts[name]! -= 1
    return true
  }

  pop(): void {
    this.#depth -= 1
    const element = this.#stack[this.#depth]!
    if (element >= FOREIGN_MIN) this.#foreign -= 1
    else this.#counts[bucketOf(element)]! -= 1
  }

  /** The next element would be beyond the bound of the stack. */
  get isFull(): boolean {
    return this.#depth === depthMax
  }

  /** There are elements beyond the bound of the stack. */
  get isBeyond(): boolean {
    return this.#beyond > 0
  }

  /** The end tag of one of them. */
  endBeyond(): void {
    this.#beyond -= 1
  }

  /** Pops until the stack has `depth` elements. */
  cutTo(depth: number): void {
    this.#beyond = 0
    while (this.#depth > depth) this.pop()
  }

  /** Pops up to and with the topmost HTML element of this name, which is open. */
  popThrough(name: number): void {
    this.#beyond = 0
    while (this.#depth > 1) {
      const found = this.top === name
      this.pop()
      if (found) return
    }
  }

  /** Pops until the current node is one of three names or html: "clear the stack back to a table context". */
  clearTo(one: number, two: number, three: number): void {
    this.#beyond = 0
    while (this.#depth > 1) {
      const { top } = this
      if (top === one || top === two || top === three || top === tag.template) return
      this.pop()
    }
  }

  /** Whether the topmost HTML element of a name is in scope. */
  inScope(name: number, kind: ScopeKind): boolean {
    return this.#counts[name]! > 0 && this.#search(name, name, kind) >= 0
  }

  headingInScope(): boolean {
    return this.#search(tag.h1, tag.h6, scopes.plain) >= 0
  }

  #search(from: number, to: number, kind: ScopeKind): number {
    for (let index = this.#depth - 1; index >= 0; index -= 1) {
      this.visits += 1
      const element = this.#stack[index]!
      if (element >= from && element <= to) return index
      if (isBoundary(element, kind)) return -1
    }
    return -1
  }

  /** "Any other end tag" (section 13.2.6.4.7): pops through an element of the name, unless a special one is above it. */
  endOther(name: number): void {
    if (this.#counts[bucketOf(name)] === 0) return
    for (let index = this.#depth - 1; index > 0; index -= 1) {
      this.visits += 1
      const element = this.#stack[index]!
      if (element === name) {
        this.cutTo(index)
        return
      }
      if (isSpecial(element)) return
    }
  }

  /**
   * What the adoption agency leaves of the stack when a formatting element that began at `depth` ends: what is above the
   * last special element goes with it. Its place climbs over one special element in each of its eight rounds.
   */
  adopt(depth: number): void {
    let cut = depth
    let special = 0
    for (let index = this.#depth - 1; index >= depth; index -= 1) {
      this.visits += 1
      const element = this.#stack[index]!
      if (isBoundary(element, scopes.plain)) return
      if (!isSpecial(element)) continue
      if (special === 0) cut = index + 1
      special += 1
    }
    if (special < ADOPTION_ROUNDS) this.cutTo(cut)
  }

  /** Takes the topmost element of a name out of the stack, from the middle too. */
  remove(name: number): void {
    if (this.#counts[name] === 0) return
    for (let index = this.#depth - 1; index > 0; index -= 1) {
      this.visits += 1
      if (this.#stack[index] !== name) continue
      this.#stack.copyWithin(index, index + 1, this.#depth)
      this.#depth -= 1
      this.#counts[name]! -= 1
      return
    }
  }

  /** A start tag of li, dd or dt closes the one before it in the same list. */
  closeListItem(one: number, two: number): void {
    if (this.#counts[one] === 0 && this.#counts[two] === 0) return
    for (let index = this.#depth - 1; index > 0; index -= 1) {
      this.visits += 1
      const element = this.#stack[index]!
      if (element === one || element === two) {
        this.cutTo(index)
        return
      }
      if (element >= FOREIGN_MIN ? isForeignBoundary(element) : endsListSearch(element)) return
    }
  }

  /** An end tag in foreign content: pops through a foreign element of the name; false when an HTML element is met first. */
  endForeign(name: number): boolean {
    for (let index = this.#depth - 1; index > 0; index -= 1) {
      this.visits += 1
      const element = this.#stack[index]!
      if (element < FOREIGN_MIN) return false
      if ((element & NAME_MASK) === name) {
        this.cutTo(index)
        return true
      }
    }
    return false
  }

  /** Leaves foreign content: pops to an HTML element or an integration point. */
  leaveForeign(): void {
    while (this.top >= FOREIGN_MIN && (this.top & (HTML_POINT | TEXT_POINT)) === 0) this.pop()
  }
}

function bucketOf(element: number): number {
  return element < KNOWN_MAX ? element : KNOWN_MAX + (element & (KNOWN_MAX - 1))
}

function isSpecial(element: number): boolean {
  if (element >= FOREIGN_MIN) return isForeignBoundary(element)
  return element < KNOWN_MAX && (bitsOf[element]! & is.special) !== 0
}

function endsListSearch(element: number): boolean {
  return element < KNOWN_MAX && (bitsOf[element]! & (is.special | is.listPassed)) === is.special
}

function isBoundary(element: number, kind: ScopeKind): boolean {
  if (element >= FOREIGN_MIN) return kind !== scopes.table && isForeignBoundary(element)
  if (kind === scopes.table) return element === tag.table || element === tag.template || element === tag.html
  if (element >= KNOWN_MAX) return false
  if ((bitsOf[element]! & is.scope) !== 0) return true
  return kind === scopes.button ? element === tag.button : kind === scopes.list && (element === tag.ol || element === tag.ul)
}

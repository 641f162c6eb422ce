/**
 * Which elements exist. Tree construction of the HTML standard without a tree: a stack of names and an insertion mode,
 * as far as they decide what a crawler asks: does this start tag make an element, is it inside a template, is its
 * content text. Scripting is off. Runs in a parse worker, fed by the scanner with start tags, end tags and the fact of
 * text. The reference is parse5 (test/unit/corpus-html5lib-tree.test.ts).
 *
 * What is left out, because it changes no answer: the tree itself, foster parenting, the modes before the head and after
 * the body. What is left out and does change some, both about where SVG and MathML end: elements that text inside their
 * HTML opens again are not seen, nor is that the end of a formatting element closes what is open within it, as the span
 * in `<b><span></b><svg></span>` (the tests' `isKnownDifference`).
 */
import * as names from './names.ts'
import * as openElements from './open-elements.ts'
import * as kinds from './tree-kinds.ts'
import { TreeTables } from './tree-tables.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { bitsOf, is, KNOWN_MAX, NAME_MASK, tag } = names
const { FOREIGN_MIN, HTML_POINT, MATHML, SVG, TEXT_POINT } = openElements
const { came, contentOf, isPlain, isTablePart, laneOf, lanes, modes } = kinds

const endsItself = isPlain.slice()
for (const name of [tag.applet, tag.marquee, tag.object]) endsItself[name] = 0
for (const name of [tag.li, tag.dd, tag.dt, tag.button, tag.h1, tag.h2, tag.h3, tag.h4, tag.h5, tag.h6]) endsItself[name] = 1

/** SVG has styles, scripts and titles too, whose content a tokenizer reads as markup and text. */
function isForeignUnshown(name: number): boolean {
  return name === tag.style || name === tag.script || name === tag.title
}

export class Tree extends TreeTables {
  /** CDATA sections are read as such in foreign content only. */
  get isForeign(): boolean {
    return this.open.top >= FOREIGN_MIN
  }

  /** Whether text now is shown to a reader of the page. */
  get isTextShown(): boolean {
    return this.templates === 0 && !this.open.has(tag.noscript) && !(this.isForeign && isForeignUnshown(this.open.top & NAME_MASK))
  }

  /** Text that is not white space. */
  text(): void {
    if (this.isForeign && !this.takesText()) {
      this.noFrameset()
      return
    }
    switch (this.mode) {
      case modes.head: this.startBody(); break
      case modes.columnGroup: this.endColumnGroup(); break
      case modes.frameset: case modes.afterFrameset: case modes.select: case modes.selectInTable: this.watchesText = false; return
      default:
    }
    this.noFrameset()
  }

  /** NUL and white space: it begins a body as text does, and is dropped there. */
  nul(): void {
    if (this.isForeign && !this.takesText()) return
    if (this.mode === modes.head) this.startBody()
    else if (this.mode === modes.columnGroup) this.endColumnGroup()
  }

  protected takesText(): boolean {
    return (this.open.top & (HTML_POINT | TEXT_POINT)) !== 0
  }

  /** A start tag; `hint` is what the scanner's `hintOf` says of its attributes. Answers bits of `came`. */
  start(name: number, isSelfClosing: boolean, hint: boolean): number {
    const { open } = this
    if (name < KNOWN_MAX && laneOf[name] !== lanes.own && (this.mode === modes.body || this.mode === modes.cell) && !open.hasForeign) {
      this.startCommon(name, laneOf[name]!)
      return this.templates === 0 ? came.exists : 0
    }
    if (open.isFull) return this.startBeyond(name, isSelfClosing)
    this.isSelfClosing = isSelfClosing
    this.hint = hint
    if (this.open.top >= FOREIGN_MIN && this.isForeignStart(name)) return this.startForeign(name)
    return this.startHtml(name)
  }

  /** Two of three start tags of real pages: the rules of the body again, for elements that have few. */
  protected startCommon(name: number, lane: number): void {
    const { open } = this
    switch (lane) {
      case lanes.format:
        if (name === tag.a) this.formatting.end(name)
        this.formatting.start(name, open.depth)
        return
      case lanes.empty:
        if (this.isFramesetOk && (bitsOf[name]! & is.content) !== 0) this.noFrameset()
        return
      case lanes.closePAndPush:
        if (open.has(tag.p)) this.closeP()
        open.pushHtml(name)
        return
      default: open.pushHtml(name)
    }
  }

  /**
   * Beyond the bound of the stack elements are counted and make nothing else: the end tag of a template or a select, which
   * only counts down there, could not leave what its start tag had begun, and every later link would be lost.
   */
  protected startBeyond(name: number, isSelfClosing: boolean): number {
    const bits = name < KNOWN_MAX ? bitsOf[name]! : 0
    if (this.isForeign && isSelfClosing) return this.exists() | came.foreign
    if (name < KNOWN_MAX && contentOf[name] !== 0) return this.exists() | contentOf[name]!
    if ((bits & (is.void | is.formatting)) === 0) this.open.push(name)
    return this.exists()
  }

  protected startHtml(name: number): number {
    switch (this.mode) {
      case modes.body: case modes.cell: return this.mode === modes.cell && isTablePart(name) ? this.startInCell(name) : this.startInBody(name)
      case modes.head: return this.startInHead(name)
      case modes.table: return this.startInTable(name)
      case modes.tableBody: return this.startInTableBody(name)
      case modes.row: return this.startInRow(name)
      case modes.caption: return this.startInCaption(name)
      case modes.columnGroup: return this.startInColumnGroup(name)
      case modes.select: case modes.selectInTable: return this.startInSelect(name)
      case modes.template: return this.startInTemplate(name)
      case modes.frameset: return this.startInFrameset(name)
      default: return name === tag.noframes ? came.rawText : name === tag.html ? this.exists() : 0
    }
  }

  /** An end tag. */
  end(name: number): void {
    const { open } = this
    if (open.isBeyond) {
      // Formatting elements are not on the stack.
      if (name >= KNOWN_MAX || laneOf[name] !== lanes.format) open.endBeyond()
      return
    }
    // Most end tags are of the element that was opened last, and every rule that could apply would only pop it.
    if (name < KNOWN_MAX && endsItself[name] === 1 && open.popIfTop(name)) return
    if (name < KNOWN_MAX && laneOf[name] === lanes.format && !open.hasForeign && (this.mode === modes.body || this.mode === modes.cell)) {
      this.formatting.end(name)
      return
    }
    if (open.top >= FOREIGN_MIN) {
      if (name === tag.p || name === tag.br) open.leaveForeign()
      else if (open.endForeign(name)) return
    }
    this.endHtml(name)
  }

  protected endHtml(name: number): void {
    switch (this.mode) {
      case modes.body: this.endInBody(name); return
      case modes.head: this.endInHead(name); return
      case modes.table: this.endInTable(name); return
      case modes.tableBody: this.endInTableBody(name); return
      case modes.row: this.endInRow(name); return
      case modes.cell: this.endInCell(name); return
      case modes.caption: this.endInCaption(name); return
      case modes.columnGroup: this.endInColumnGroup(name); return
      case modes.select: case modes.selectInTable: this.endInSelect(name); return
      case modes.template: if (name === tag.template) this.endTemplate(); return
      case modes.frameset: this.endInFrameset(name); return
      default:
    }
  }

  // Foreign content (section 13.2.6.5)

  protected isForeignStart(name: number): boolean {
    const { top } = this.open
    if ((top & HTML_POINT) !== 0) return false
    if ((top & TEXT_POINT) !== 0) return name === tag.mglyph || name === tag.malignmark
    return !(name === tag.svg && (top & MATHML) !== 0 && (top & NAME_MASK) === tag['annotation-xml'])
  }

  protected startForeign(name: number): number {
    if ((name < KNOWN_MAX && (bitsOf[name]! & is.breakout) !== 0) || (name === tag.font && this.hint)) {
      this.open.leaveForeign()
      return this.startHtml(name)
    }
    if (!this.isSelfClosing) this.pushForeign(name, this.open.top & (SVG | MATHML))
    return this.exists() | came.foreign
  }

  // Framesets

  protected startInFrameset(name: number): number {
    switch (name) {
      case tag.frameset: this.open.push(name); return this.exists()
      case tag.frame: case tag.html: return this.exists()
      case tag.noframes: return came.rawText
      default: return 0
    }
  }

  protected endInFrameset(name: number): void {
    const { open } = this
    if (name !== tag.frameset || open.depth === 1) return
    open.pop()
    if (open.top !== tag.frameset) this.mode = modes.afterFrameset
  }
}

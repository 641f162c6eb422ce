/**
 * Which elements exist. Tree construction of the HTML standard (section 13.2.6) without a tree: a stack of names and an
 * insertion mode, as far as they decide what a crawler asks: does this start tag make an element, is it inside a
 * template, is its content text. Scripting is off. Runs in a parse worker, fed by the scanner with start tags, end tags
 * and the fact of text. The reference is parse5, whose rules for select (from before 2025) are followed.
 *
 * What is left out, because it changes no answer: the tree, the list of active formatting elements (a crawler does not
 * count an anchor again that misnesting clones), foster parenting, quirks mode, the modes before and after the body.
 */
import { bitsOf, is, KNOWN_MAX, NAME_MASK, tag } from './names.ts'
import { FOREIGN_MIN, HTML_POINT, MATHML, OpenElements, scopes, SVG, TEXT_POINT } from './open-elements.ts'

/** What a start tag came to: a set of these bits. */
export const came = {
  /** The element is in the document, outside of templates. */
  exists: 1,
  /** It is SVG or MathML. */
  foreign: 2,
  /** Its content is text: up to an end tag with character references, without them, as a script, or to the end. */
  rcdata: 4, rawText: 8, script: 16, plaintext: 32,
} as const
const CONTENT = came.rcdata | came.rawText | came.script | came.plaintext

const modes = {
  head: 0, body: 1, table: 2, tableBody: 3, row: 4, cell: 5, caption: 6, columnGroup: 7, select: 8, selectInTable: 9, template: 10, frameset: 11, afterFrameset: 12,
} as const
type Mode = (typeof modes)[keyof typeof modes]

const TEMPLATES_MAX = 256

/** How the content of an element is read, by its name. */
const contentOf = new Uint8Array(KNOWN_MAX)
for (const name of [tag.title, tag.textarea]) contentOf[name] = came.rcdata
for (const name of [tag.style, tag.xmp, tag.iframe, tag.noembed, tag.noframes]) contentOf[name] = came.rawText
contentOf[tag.script] = came.script
contentOf[tag.plaintext] = came.plaintext

/** Start tags in the body that need no rule of their own: close a p element if they do that, and go on the stack. */
const isPlain = new Uint8Array(KNOWN_MAX)
for (const name of [
  tag.div, tag.ul, tag.ol, tag.dl, tag.p, tag.section, tag.article, tag.aside, tag.header, tag.footer, tag.nav, tag.main, tag.figure, tag.figcaption,
  tag.address, tag.blockquote, tag.center, tag.details, tag.dialog, tag.dir, tag.fieldset, tag.hgroup, tag.menu, tag.search, tag.summary, tag.pre,
  tag.listing, tag.applet, tag.marquee, tag.object, tag.noscript, tag.ruby, tag.span, tag.sub, tag.sup, tag.var, tag.desc, tag.foreignobject,
  tag.mi, tag.mo, tag.mn, tag.ms, tag.mtext, tag['annotation-xml'], tag.mglyph, tag.malignmark,
]) isPlain[name] = 1

export class Tree {
  readonly open = new OpenElements()
  /** The mode of each open template ("stack of template insertion modes"). */
  readonly #templateModes = new Uint8Array(TEMPLATES_MAX)
  #templates = 0
  #mode: Mode = modes.head
  #hasBody = false
  #isHeadOver = false
  #isFramesetOk = true
  #hasForm = false
  /** True when text that is not white space would change something. */
  watchesText = true
  /** Called when a frameset takes the place of the body: what was found in it is gone. */
  onBodyLost: () => void = () => {}
  /** Called when the body begins. */
  onBody: () => void = () => {}

  reset(): void {
    this.open.reset()
    this.#templates = 0
    this.#mode = modes.head
    this.#hasBody = false
    this.#isHeadOver = false
    this.#isFramesetOk = true
    this.#hasForm = false
    this.watchesText = true
  }

  /** CDATA sections are read as such in foreign content only. */
  get isForeign(): boolean {
    return this.open.top >= FOREIGN_MIN
  }

  /** Whether text now is shown to a reader of the page. */
  get isTextShown(): boolean {
    return this.#templates === 0 && !this.open.has(tag.noscript)
  }

  /** Text that is not white space. */
  text(): void {
    if (this.isForeign && !this.#takesText()) {
      this.#noFrameset()
      return
    }
    switch (this.#mode) {
      case modes.head: this.#startBody(); break
      case modes.columnGroup: this.#endColumnGroup(); break
      case modes.frameset: case modes.afterFrameset: case modes.select: case modes.selectInTable: this.watchesText = false; return
      default:
    }
    this.#noFrameset()
  }

  #takesText(): boolean {
    return (this.open.top & (HTML_POINT | TEXT_POINT)) !== 0
  }

  #noFrameset(): void {
    this.#isFramesetOk = false
    this.watchesText = this.#mode === modes.head || this.#mode === modes.columnGroup
  }

  /** A start tag. `hint`: see the scanner's `hintOf`. Answers bits of `came`. */
  start(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (this.open.top >= FOREIGN_MIN && this.#isForeignStart(name)) return this.#startForeign(name, isSelfClosing, hint)
    return this.#startHtml(name, isSelfClosing, hint)
  }

  #startHtml(name: number, isSelfClosing: boolean, hint: boolean): number {
    switch (this.#mode) {
      case modes.body: case modes.cell: return this.#mode === modes.cell && isTablePart(name) ? this.#startInCell(name) : this.#startInBody(name, isSelfClosing, hint)
      case modes.head: return this.#startInHead(name, isSelfClosing, hint)
      case modes.table: return this.#startInTable(name, isSelfClosing, hint)
      case modes.tableBody: return this.#startInTableBody(name, isSelfClosing, hint)
      case modes.row: return this.#startInRow(name, isSelfClosing, hint)
      case modes.caption: return this.#startInCaption(name, isSelfClosing, hint)
      case modes.columnGroup: return this.#startInColumnGroup(name, isSelfClosing, hint)
      case modes.select: case modes.selectInTable: return this.#startInSelect(name, isSelfClosing, hint)
      case modes.template: return this.#startInTemplate(name, isSelfClosing, hint)
      case modes.frameset: return this.#startInFrameset(name)
      default: return name === tag.noframes ? came.rawText : name === tag.html ? this.#exists() : 0
    }
  }

  /** An end tag. */
  end(name: number): void {
    const { open } = this
    // Most end tags are of the element that was opened last, and have no rule of their own.
    if (open.top === name && name < KNOWN_MAX && isPlain[name] === 1 && !open.endBeyond()) {
      open.pop()
      return
    }
    if (open.endBeyond()) return
    if (open.top >= FOREIGN_MIN) {
      if (name === tag.p || name === tag.br) open.leaveForeign()
      else if (open.endForeign(name)) return
    }
    this.#endHtml(name)
  }

  #endHtml(name: number): void {
    switch (this.#mode) {
      case modes.body: this.#endInBody(name); return
      case modes.head: this.#endInHead(name); return
      case modes.table: this.#endInTable(name); return
      case modes.tableBody: this.#endInTableBody(name); return
      case modes.row: this.#endInRow(name); return
      case modes.cell: this.#endInCell(name); return
      case modes.caption: this.#endInCaption(name); return
      case modes.columnGroup: this.#endInColumnGroup(name); return
      case modes.select: case modes.selectInTable: this.#endInSelect(name); return
      case modes.template: if (name === tag.template) this.#endTemplate(); return
      case modes.frameset: this.#endInFrameset(name); return
      default:
    }
  }

  #exists(): number {
    return this.#templates === 0 ? came.exists : 0
  }

  // Foreign content (section 13.2.6.5)

  #isForeignStart(name: number): boolean {
    const { top } = this.open
    if ((top & HTML_POINT) !== 0) return false
    if ((top & TEXT_POINT) !== 0) return name === tag.mglyph || name === tag.malignmark
    return !(name === tag.svg && (top & MATHML) !== 0 && (top & NAME_MASK) === tag['annotation-xml'])
  }

  #startForeign(name: number, isSelfClosing: boolean, hint: boolean): number {
    if ((name < KNOWN_MAX && (bitsOf[name]! & is.breakout) !== 0) || (name === tag.font && hint)) {
      this.open.leaveForeign()
      return this.#startHtml(name, isSelfClosing, hint)
    }
    if (!isSelfClosing) this.#pushForeign(name, this.open.top & (SVG | MATHML), hint)
    return this.#exists() | came.foreign
  }

  #pushForeign(name: number, space: number, hint: boolean): void {
    const isHtmlPoint = space === SVG
      ? name === tag.foreignobject || name === tag.desc || name === tag.title
      : name === tag['annotation-xml'] && hint
    const isTextPoint = space === MATHML && (name === tag.mi || name === tag.mo || name === tag.mn || name === tag.ms || name === tag.mtext)
    this.open.push(name | space | (isHtmlPoint ? HTML_POINT : 0) | (isTextPoint ? TEXT_POINT : 0))
  }

  // Head and body

  #startBody(): void {
    this.open.cutTo(1)
    this.open.push(tag.body)
    this.#hasBody = true
    this.#mode = modes.body
    this.onBody()
  }

  #startInHead(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (name < KNOWN_MAX && (bitsOf[name]! & is.head) !== 0) return this.#startHeadElement(name)
    switch (name) {
      case tag.html: return this.#exists()
      case tag.head: return 0
      // In a head it is a place for links and styles; what else it holds begins the body.
      case tag.noscript: if (!this.#isHeadOver) return this.#exists(); break
      case tag.frameset: this.open.push(tag.frameset); this.#mode = modes.frameset; return this.#exists()
      case tag.body: this.#startBody(); this.#noFrameset(); return this.#exists()
      default:
    }
    this.#startBody()
    return this.#startInBody(name, isSelfClosing, hint)
  }

  /** Elements that the rules of the head make wherever they stand. */
  #startHeadElement(name: number): number {
    if (name === tag.template) {
      this.#startTemplate()
      return 0
    }
    return this.#exists() | contentOf[name]!
  }

  #endInHead(name: number): void {
    switch (name) {
      case tag.head: this.#isHeadOver = true; return
      case tag.template: this.#endTemplate(); return
      case tag.body: case tag.html: case tag.br: this.#startBody(); this.#endInBody(name); return
      default:
    }
  }

  #closeP(): void {
    if (this.open.inScope(tag.p, scopes.button)) this.open.popThrough(tag.p)
  }

  #startInBody(name: number, isSelfClosing: boolean, hint: boolean): number {
    const { open } = this
    if (name >= KNOWN_MAX) {
      open.push(name)
      return this.#exists()
    }
    const bits = bitsOf[name]!
    if ((bits & is.formatting) !== 0) {
      // Only where an HTML element right above an integration point would be missed.
      if (open.hasForeign) open.push(name)
      return this.#exists()
    }
    if ((bits & is.closesP) !== 0 && open.has(tag.p)) this.#closeP()
    if ((bits & is.content) !== 0 && this.#isFramesetOk) this.#noFrameset()
    if (isPlain[name] === 1) {
      open.push(name)
      return this.#exists()
    }
    if ((bits & is.tablePart) !== 0) return 0
    if ((bits & is.heading) !== 0) {
      if (open.top >= tag.h1 && open.top <= tag.h6) open.pop()
      open.push(name)
      return this.#exists()
    }
    if ((bits & is.head) !== 0) return this.#startHeadElement(name)
    if (contentOf[name] !== 0) return this.#exists() | contentOf[name]!
    if ((bits & is.void) !== 0) {
      if (name === tag.input && !hint && this.#isFramesetOk) this.#noFrameset()
      return this.#exists()
    }
    return this.#startOwnRule(name, isSelfClosing)
  }

  #startOwnRule(name: number, isSelfClosing: boolean): number {
    const { open } = this
    switch (name) {
      case tag.li: open.closeListItem(tag.li, tag.li); this.#closeP(); open.push(name); break
      case tag.dd: case tag.dt: open.closeListItem(tag.dd, tag.dt); this.#closeP(); open.push(name); break
      case tag.button:
        if (open.inScope(tag.button, scopes.plain)) open.popThrough(tag.button)
        open.push(name)
        break
      case tag.form:
        if (this.#templates === 0 && this.#hasForm) return 0
        if (this.#templates === 0) this.#hasForm = true
        open.push(name)
        break
      case tag.table: open.push(name); this.#mode = modes.table; break
      case tag.select:
        open.push(name)
        this.#mode = this.#mode === modes.body || this.#mode === modes.template ? modes.select : modes.selectInTable
        break
      case tag.option: case tag.optgroup:
        if (open.top === tag.option) open.pop()
        open.push(name)
        break
      case tag.rb: case tag.rtc:
        if (open.inScope(tag.ruby, scopes.plain)) this.#endImplied(0)
        open.push(name)
        break
      case tag.rp: case tag.rt:
        if (open.inScope(tag.ruby, scopes.plain)) this.#endImplied(tag.rtc)
        open.push(name)
        break
      case tag.svg: case tag.math:
        if (!isSelfClosing) this.#pushForeign(name, name === tag.svg ? SVG : MATHML, false)
        return this.#exists() | came.foreign
      case tag.body: if (open.at(1) === tag.body && this.#templates === 0) this.#noFrameset(); return this.#exists()
      case tag.html: return this.#exists()
      case tag.frameset: return this.#replaceBody()
      // head and frame are ignored here.
      default: return 0
    }
    return this.#exists()
  }

  #endImplied(but: number): void {
    const { open } = this
    for (;;) {
      const { top } = open
      if (top === but) return
      if (top !== tag.p && top !== tag.li && top !== tag.dd && top !== tag.dt && top !== tag.option && top !== tag.optgroup
        && top !== tag.rb && top !== tag.rp && top !== tag.rt && top !== tag.rtc) return
      open.pop()
    }
  }

  #replaceBody(): number {
    if (!this.#isFramesetOk || this.open.at(1) !== tag.body || this.#templates > 0) return 0
    this.open.cutTo(1)
    this.open.push(tag.frameset)
    this.#mode = modes.frameset
    this.onBodyLost()
    return this.#exists()
  }

  #endInBody(name: number): void {
    const { open } = this
    const bits = name < KNOWN_MAX ? bitsOf[name]! : 0
    if ((bits & is.formatting) !== 0) {
      if (open.hasForeign) open.endOther(name)
      return
    }
    if ((bits & is.block) !== 0) {
      if (open.inScope(name, scopes.plain)) open.popThrough(name)
      return
    }
    if ((bits & is.heading) !== 0) {
      this.#endHeading()
      return
    }
    switch (name) {
      case tag.p: if (open.inScope(name, scopes.button)) open.popThrough(name); return
      case tag.li: if (open.inScope(name, scopes.list)) open.popThrough(name); return
      case tag.dd: case tag.dt: if (open.inScope(name, scopes.plain)) open.popThrough(name); return
      case tag.form: this.#endForm(); return
      case tag.template: this.#endTemplate(); return
      case tag.br: this.#noFrameset(); return
      case tag.body: case tag.html: return
      default: open.endOther(name)
    }
  }

  #endHeading(): void {
    const { open } = this
    if (!open.headingInScope()) return
    while (open.top < tag.h1 || open.top > tag.h6) open.pop()
    open.pop()
  }

  #endForm(): void {
    const { open } = this
    if (this.#templates > 0) {
      if (open.inScope(tag.form, scopes.plain)) open.popThrough(tag.form)
      return
    }
    const had = this.#hasForm
    this.#hasForm = false
    if (had && open.inScope(tag.form, scopes.plain)) open.remove(tag.form)
  }

  // Templates

  #startTemplate(): void {
    this.open.push(tag.template)
    this.#isFramesetOk = false
    if (this.#templates < TEMPLATES_MAX) this.#templateModes[this.#templates] = modes.template
    this.#templates += 1
    this.#mode = modes.template
    this.watchesText = false
  }

  #endTemplate(): void {
    if (!this.open.has(tag.template)) return
    this.open.popThrough(tag.template)
    this.#templates -= 1
    this.#resetMode()
  }

  #startInTemplate(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (name < KNOWN_MAX && (bitsOf[name]! & is.head) !== 0) return this.#startHeadElement(name)
    const mode = name === tag.col ? modes.columnGroup : name === tag.tr ? modes.tableBody : name === tag.td || name === tag.th ? modes.row
      : isTablePart(name) ? modes.table : modes.body
    if (this.#templates <= TEMPLATES_MAX) this.#templateModes[this.#templates - 1] = mode
    this.#mode = mode
    return this.#startHtml(name, isSelfClosing, hint)
  }

  /** "Reset the insertion mode appropriately" (section 13.2.4.1). */
  #resetMode(): void {
    this.#mode = this.#modeOfStack()
    this.watchesText = this.#isFramesetOk || this.#mode === modes.head || this.#mode === modes.columnGroup
  }

  #modeOfStack(): Mode {
    const { open } = this
    for (let index = open.depth - 1; index > 0; index -= 1) {
      open.visits += 1
      switch (open.at(index)) {
        case tag.select: return this.#isInTable(index) ? modes.selectInTable : modes.select
        case tag.td: case tag.th: return modes.cell
        case tag.tr: return modes.row
        case tag.tbody: case tag.thead: case tag.tfoot: return modes.tableBody
        case tag.caption: return modes.caption
        case tag.colgroup: return modes.columnGroup
        case tag.table: return modes.table
        case tag.template: return this.#templates <= TEMPLATES_MAX ? this.#templateModes[this.#templates - 1]! as Mode : modes.body
        case tag.body: return modes.body
        case tag.frameset: return modes.frameset
        default:
      }
    }
    return this.#hasBody ? modes.body : modes.head
  }

  #isInTable(select: number): boolean {
    for (let index = select - 1; index > 0; index -= 1) {
      this.open.visits += 1
      const element = this.open.at(index)
      if (element === tag.template) return false
      if (element === tag.table) return true
    }
    return false
  }

  // Tables (sections 13.2.6.4.9 to 15)

  #startInTable(name: number, isSelfClosing: boolean, hint: boolean): number {
    const { open } = this
    switch (name) {
      case tag.caption: open.clearTo(tag.table, tag.table, tag.table); open.push(name); this.#mode = modes.caption; return this.#exists()
      case tag.colgroup: case tag.col:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(tag.colgroup)
        this.#mode = modes.columnGroup
        this.watchesText = true
        return this.#exists()
      case tag.tbody: case tag.thead: case tag.tfoot:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(name)
        this.#mode = modes.tableBody
        return this.#exists()
      case tag.tr: case tag.td: case tag.th:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(tag.tbody)
        this.#mode = modes.tableBody
        return this.#startInTableBody(name, isSelfClosing, hint)
      case tag.table:
        if (!this.#closeTable()) return 0
        return this.#startHtml(name, isSelfClosing, hint)
      case tag.form:
        if (this.#templates > 0 || this.#hasForm) return 0
        this.#hasForm = true
        return this.#exists()
      case tag.input: return hint ? this.#exists() : this.#startInBody(name, isSelfClosing, hint)
      default: return this.#startInBody(name, isSelfClosing, hint)
    }
  }

  #closeTable(): boolean {
    if (!this.open.inScope(tag.table, scopes.table)) return false
    this.open.popThrough(tag.table)
    this.#resetMode()
    return true
  }

  #endInTable(name: number): void {
    if (name === tag.table) this.#closeTable()
    else if (!isTablePart(name) && name !== tag.body && name !== tag.html) this.#endInBody(name)
  }

  #endColumnGroup(): boolean {
    if (this.open.top !== tag.colgroup) return false
    this.open.pop()
    this.#mode = modes.table
    this.watchesText = this.#isFramesetOk
    return true
  }

  #startInColumnGroup(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (name === tag.col || name === tag.html) return this.#exists()
    if (name === tag.template) return this.#startHeadElement(name)
    return this.#endColumnGroup() ? this.#startInTable(name, isSelfClosing, hint) : 0
  }

  #endInColumnGroup(name: number): void {
    if (name === tag.colgroup) this.#endColumnGroup()
    else if (name === tag.template) this.#endTemplate()
    else if (name !== tag.col && this.#endColumnGroup()) this.#endInTable(name)
  }

  #startInTableBody(name: number, isSelfClosing: boolean, hint: boolean): number {
    const { open } = this
    if (!isTablePart(name)) return this.#startInTable(name, isSelfClosing, hint)
    if (name === tag.tr || name === tag.td || name === tag.th) {
      open.clearTo(tag.tbody, tag.thead, tag.tfoot)
      open.push(tag.tr)
      this.#mode = modes.row
      return name === tag.tr ? this.#exists() : this.#startInRow(name, isSelfClosing, hint)
    }
    return this.#closeTableBody() ? this.#startInTable(name, isSelfClosing, hint) : 0
  }

  #closeTableBody(): boolean {
    const { open } = this
    if (!open.inScope(tag.tbody, scopes.table) && !open.inScope(tag.thead, scopes.table) && !open.inScope(tag.tfoot, scopes.table)) return false
    open.clearTo(tag.tbody, tag.thead, tag.tfoot)
    open.pop()
    this.#mode = modes.table
    return true
  }

  #endInTableBody(name: number): void {
    switch (name) {
      case tag.tbody: case tag.thead: case tag.tfoot: if (this.open.inScope(name, scopes.table)) this.#closeTableBody(); return
      case tag.table: if (this.#closeTableBody()) this.#endInTable(name); return
      default: this.#endInTable(name)
    }
  }

  #startInRow(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (!isTablePart(name)) return this.#startInTable(name, isSelfClosing, hint)
    if (name === tag.td || name === tag.th) {
      this.open.clearTo(tag.tr, tag.tr, tag.tr)
      this.open.push(name)
      this.#mode = modes.cell
      return this.#exists()
    }
    return this.#closeRow() ? this.#startInTableBody(name, isSelfClosing, hint) : 0
  }

  #closeRow(): boolean {
    if (!this.open.inScope(tag.tr, scopes.table)) return false
    this.open.clearTo(tag.tr, tag.tr, tag.tr)
    this.open.pop()
    this.#mode = modes.tableBody
    return true
  }

  #endInRow(name: number): void {
    switch (name) {
      case tag.tr: this.#closeRow(); return
      case tag.table: if (this.#closeRow()) this.#endInTableBody(name); return
      case tag.tbody: case tag.thead: case tag.tfoot: if (this.open.inScope(name, scopes.table) && this.#closeRow()) this.#endInTableBody(name); return
      default: this.#endInTable(name)
    }
  }

  /** A part of the table: the cell is over. */
  #startInCell(name: number): number {
    return this.#closeCell() ? this.#startHtml(name, false, false) : 0
  }

  #closeCell(): boolean {
    const { open } = this
    if (!open.inScope(tag.td, scopes.table) && !open.inScope(tag.th, scopes.table)) return false
    while (open.top !== tag.td && open.top !== tag.th) open.pop()
    open.pop()
    this.#mode = modes.row
    return true
  }

  #endInCell(name: number): void {
    switch (name) {
      case tag.td: case tag.th:
        if (!this.open.inScope(name, scopes.table)) return
        this.open.popThrough(name)
        this.#mode = modes.row
        return
      case tag.body: case tag.html: case tag.caption: case tag.col: case tag.colgroup: return
      case tag.table: case tag.tbody: case tag.thead: case tag.tfoot: case tag.tr:
        if (this.open.inScope(name, scopes.table) && this.#closeCell()) this.#endHtml(name)
        return
      default: this.#endInBody(name)
    }
  }

  #startInCaption(name: number, isSelfClosing: boolean, hint: boolean): number {
    if (!isTablePart(name)) return this.#startInBody(name, isSelfClosing, hint)
    return this.#closeCaption() ? this.#startInTable(name, isSelfClosing, hint) : 0
  }

  #closeCaption(): boolean {
    if (!this.open.inScope(tag.caption, scopes.table)) return false
    this.open.popThrough(tag.caption)
    this.#mode = modes.table
    return true
  }

  #endInCaption(name: number): void {
    if (name === tag.caption || name === tag.table) {
      if (this.#closeCaption() && name === tag.table) this.#endInTable(name)
    } else if (!isTablePart(name) && name !== tag.body && name !== tag.html) this.#endInBody(name)
  }

  // Select, as it was until 2025 (parse5 and most browsers' past)

  #closeSelect(): void {
    this.open.popThrough(tag.select)
    this.#resetMode()
  }

  /** Only option and optgroup do not end the select scope. */
  #isSelectInScope(): boolean {
    const { open } = this
    for (let index = open.depth - 1; index >= 0; index -= 1) {
      open.visits += 1
      const element = open.at(index)
      if (element === tag.select) return true
      if (element < FOREIGN_MIN && element !== tag.option && element !== tag.optgroup) return false
    }
    return false
  }

  #startInSelect(name: number, isSelfClosing: boolean, hint: boolean): number {
    const { open } = this
    if (this.#mode === modes.selectInTable && (isTablePart(name) ? name !== tag.col && name !== tag.colgroup : name === tag.table)) {
      this.#closeSelect()
      return this.start(name, isSelfClosing, hint)
    }
    switch (name) {
      case tag.html: return this.#exists()
      case tag.option: case tag.optgroup: case tag.hr:
        if (open.top === tag.option) open.pop()
        if (name !== tag.option && open.top === tag.optgroup) open.pop()
        if (name !== tag.hr) open.push(name)
        return this.#exists()
      case tag.select: case tag.input: case tag.keygen: case tag.textarea:
        if (!this.#isSelectInScope()) return 0
        this.#closeSelect()
        return name === tag.select ? 0 : this.start(name, isSelfClosing, hint)
      case tag.script: case tag.template: return this.#startHeadElement(name)
      default: return 0
    }
  }

  #endInSelect(name: number): void {
    const { open } = this
    if (this.#mode === modes.selectInTable && (isTablePart(name) ? name !== tag.col && name !== tag.colgroup : name === tag.table)) {
      if (!open.inScope(name, scopes.table)) return
      this.#closeSelect()
      this.end(name)
      return
    }
    switch (name) {
      case tag.optgroup:
        if (open.top === tag.option && open.at(open.depth - 2) === tag.optgroup) open.pop()
        if (open.top === tag.optgroup) open.pop()
        return
      case tag.option: if (open.top === tag.option) open.pop(); return
      case tag.select: if (this.#isSelectInScope()) this.#closeSelect(); return
      case tag.template: this.#endTemplate(); return
      default:
    }
  }

  // Framesets

  #startInFrameset(name: number): number {
    switch (name) {
      case tag.frameset: this.open.push(name); return this.#exists()
      case tag.frame: case tag.html: return this.#exists()
      case tag.noframes: return came.rawText
      default: return 0
    }
  }

  #endInFrameset(name: number): void {
    const { open } = this
    if (name !== tag.frameset || open.depth === 1) return
    open.pop()
    if (open.top !== tag.frameset) this.#mode = modes.afterFrameset
  }
}

function isTablePart(name: number): boolean {
  return name < KNOWN_MAX && (bitsOf[name]! & is.tablePart) !== 0
}

/** Whether a start tag's content is text. */
export function hasTextContent(answer: number): boolean {
  return (answer & CONTENT) !== 0
}

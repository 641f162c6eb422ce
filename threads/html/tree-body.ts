/**
 * Tree construction of the HTML standard (section 13.2.6) without a tree: its state, and the rules of the head, the body
 * and templates. What it is for stands in tree.ts, which completes it.
 */
import * as names from './names.ts'
import { FormattingElements } from './formatting.ts'
import { OpenElements } from './open-elements.ts'
import * as openElements from './open-elements.ts'
import type { Mode } from './tree-kinds.ts'
import * as kinds from './tree-kinds.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { bitsOf, is, KNOWN_MAX, tag } = names
const { HTML_POINT, MATHML, scopes, SVG, TEXT_POINT } = openElements
const { came, contentOf, isPlain, isTablePart, modes, TEMPLATES_MAX } = kinds

export abstract class TreeBody {
  readonly open = new OpenElements()
  /** Text that is not white space would change something now. */
  watchesText = true
  /** No document type that calls for the standard: then a table does not close a paragraph. Set by the scanner. */
  isQuirky = true
  /** Called when the body begins. */
  onBody: () => void = () => {}
  /** Called when a frameset takes the place of the body: what was found in it is gone. */
  onBodyLost: () => void = () => {}

  protected mode: Mode = modes.head
  /** Of the start tag in hand: it ends in `/>`, and what the scanner's `hintOf` says of its attributes. */
  protected isSelfClosing = false
  protected hint = false
  /** The mode of each open template ("stack of template insertion modes"). */
  protected readonly templateModes = new Uint8Array(TEMPLATES_MAX)
  protected templates = 0
  protected hasBody = false
  protected isHeadOver = false
  protected isFramesetOk = true
  protected hasForm = false
  protected readonly formatting = new FormattingElements()

  /** The rules of the mode in force. */
  protected abstract startHtml(name: number): number

  reset(): void {
    this.open.reset()
    this.templates = 0
    this.mode = modes.head
    this.hasBody = false
    this.isHeadOver = false
    this.isFramesetOk = true
    this.hasForm = false
    this.isQuirky = true
    this.formatting.reset()
    this.watchesText = true
  }

  protected exists(): number {
    return this.templates === 0 ? came.exists : 0
  }

  protected noFrameset(): void {
    this.isFramesetOk = false
    this.watchesText = this.mode === modes.head || this.mode === modes.columnGroup
  }

  protected startBody(): void {
    this.open.cutTo(1)
    this.open.push(tag.body)
    this.hasBody = true
    this.mode = modes.body
    this.onBody()
  }

  protected startInHead(name: number): number {
    if (name < KNOWN_MAX && (bitsOf[name]! & is.head) !== 0) return this.startHeadElement(name)
    switch (name) {
      case tag.html: return this.exists()
      case tag.head: return 0
      // In a head it is a place for links and styles; what else it holds begins the body.
      case tag.noscript: if (!this.isHeadOver) return this.exists(); break
      case tag.frameset: this.open.push(tag.frameset); this.mode = modes.frameset; return this.exists()
      case tag.body: this.startBody(); this.noFrameset(); return this.exists()
      default:
    }
    this.startBody()
    return this.startInBody(name)
  }

  /** Elements that the rules of the head make wherever they stand. */
  protected startHeadElement(name: number): number {
    if (name === tag.template) {
      this.startTemplate()
      return 0
    }
    return this.exists() | contentOf[name]!
  }

  protected endInHead(name: number): void {
    switch (name) {
      case tag.head: this.isHeadOver = true; return
      case tag.template: this.endTemplate(); return
      case tag.body: case tag.html: case tag.br: this.startBody(); this.endInBody(name); return
      default:
    }
  }

  protected closeP(): void {
    if (this.open.inScope(tag.p, scopes.button)) this.open.popThrough(tag.p)
  }

  protected startInBody(name: number): number {
    const { open } = this
    if (name >= KNOWN_MAX) {
      open.push(name)
      return this.exists()
    }
    const bits = bitsOf[name]!
    if ((bits & is.formatting) !== 0) {
      // Only where an HTML element right above an integration point would be missed.
      if (name === tag.a) this.endFormatting(name)
      if (open.hasForeign) open.push(name)
      else this.formatting.start(name, open.depth)
      return this.exists()
    }
    if ((bits & is.closesP) !== 0 && open.has(tag.p) && !(name === tag.table && this.isQuirky)) this.closeP()
    if ((bits & is.content) !== 0 && this.isFramesetOk) this.noFrameset()
    if (isPlain[name] === 1) {
      open.push(name)
      if ((bits & is.scope) !== 0) this.formatting.mark(open.depth)
      return this.exists()
    }
    if ((bits & is.tablePart) !== 0) return 0
    if ((bits & is.heading) !== 0) {
      if (open.top >= tag.h1 && open.top <= tag.h6) open.pop()
      open.push(name)
      return this.exists()
    }
    if ((bits & is.head) !== 0) return this.startHeadElement(name)
    if (contentOf[name] !== 0) return this.exists() | contentOf[name]!
    if ((bits & is.void) !== 0) {
      if (name === tag.input && !this.hint && this.isFramesetOk) this.noFrameset()
      return this.exists()
    }
    return this.startOwnRule(name)
  }

  protected startOwnRule(name: number): number {
    const { open } = this
    switch (name) {
      case tag.li: open.closeListItem(tag.li, tag.li); this.closeP(); open.push(name); break
      case tag.dd: case tag.dt: open.closeListItem(tag.dd, tag.dt); this.closeP(); open.push(name); break
      case tag.button:
        if (open.inScope(tag.button, scopes.plain)) open.popThrough(tag.button)
        open.push(name)
        break
      case tag.form:
        if (this.templates === 0 && this.hasForm) return 0
        if (this.templates === 0) this.hasForm = true
        open.push(name)
        break
      case tag.table: open.push(name); this.mode = modes.table; break
      case tag.select:
        open.push(name)
        this.mode = this.mode === modes.body || this.mode === modes.template ? modes.select : modes.selectInTable
        break
      case tag.option: case tag.optgroup:
        if (open.top === tag.option) open.pop()
        open.push(name)
        break
      case tag.rb: case tag.rtc:
        if (open.inScope(tag.ruby, scopes.plain)) this.endImplied(0)
        open.push(name)
        break
      case tag.rp: case tag.rt:
        if (open.inScope(tag.ruby, scopes.plain)) this.endImplied(tag.rtc)
        open.push(name)
        break
      case tag.svg: case tag.math:
        if (!this.isSelfClosing) this.pushForeignRoot(name)
        return this.exists() | came.foreign
      case tag.body: if (open.at(1) === tag.body && this.templates === 0) this.noFrameset(); return this.exists()
      case tag.html: return this.exists()
      case tag.frameset: return this.replaceBody()
      // head and frame are ignored here.
      default: return 0
    }
    return this.exists()
  }

  protected endImplied(but: number): void {
    const { open } = this
    for (;;) {
      const { top } = open
      if (top === but) return
      if (top !== tag.p && top !== tag.li && top !== tag.dd && top !== tag.dt && top !== tag.option && top !== tag.optgroup
        && top !== tag.rb && top !== tag.rp && top !== tag.rt && top !== tag.rtc) return
      open.pop()
    }
  }

  protected replaceBody(): number {
    if (!this.isFramesetOk || this.open.at(1) !== tag.body || this.templates > 0) return 0
    this.open.cutTo(1)
    this.open.push(tag.frameset)
    this.mode = modes.frameset
    this.onBodyLost()
    return this.exists()
  }

  protected endInBody(name: number): void {
    const { open } = this
    const bits = name < KNOWN_MAX ? bitsOf[name]! : 0
    if ((bits & is.formatting) !== 0) {
      this.endFormatting(name)
      return
    }
    if ((bits & is.block) !== 0) {
      if (!open.inScope(name, scopes.plain)) return
      open.popThrough(name)
      if ((bits & is.scope) !== 0) this.formatting.clearToMark()
      return
    }
    if ((bits & is.heading) !== 0) {
      this.endHeading()
      return
    }
    switch (name) {
      case tag.p: if (open.inScope(name, scopes.button)) open.popThrough(name); return
      case tag.li: if (open.inScope(name, scopes.list)) open.popThrough(name); return
      case tag.dd: case tag.dt: if (open.inScope(name, scopes.plain)) open.popThrough(name); return
      case tag.form: this.endForm(); return
      case tag.template: this.endTemplate(); return
      case tag.br: this.noFrameset(); return
      case tag.body: case tag.html: return
      default: open.endOther(name)
    }
  }

  protected endFormatting(name: number): void {
    const { open } = this
    if (open.hasForeign && open.has(name)) {
      open.endOther(name)
      return
    }
    const depth = this.formatting.end(name)
    if (open.hasForeign && depth > 0) open.adopt(depth)
  }

  protected endHeading(): void {
    const { open } = this
    if (!open.headingInScope()) return
    while (open.top < tag.h1 || open.top > tag.h6) open.pop()
    open.pop()
  }

  protected endForm(): void {
    const { open } = this
    if (this.templates > 0) {
      if (open.inScope(tag.form, scopes.plain)) open.popThrough(tag.form)
      return
    }
    const had = this.hasForm
    this.hasForm = false
    if (had && open.inScope(tag.form, scopes.plain)) open.remove(tag.form)
  }

  // Templates

  protected startTemplate(): void {
    this.open.push(tag.template)
    this.formatting.mark(this.open.depth)
    this.isFramesetOk = false
    if (this.templates < TEMPLATES_MAX) this.templateModes[this.templates] = modes.template
    this.templates += 1
    this.mode = modes.template
    this.watchesText = false
  }

  protected endTemplate(): void {
    if (!this.open.has(tag.template)) return
    this.open.popThrough(tag.template)
    this.formatting.clearToMark()
    this.templates -= 1
    this.resetMode()
  }

  protected startInTemplate(name: number): number {
    if (name < KNOWN_MAX && (bitsOf[name]! & is.head) !== 0) return this.startHeadElement(name)
    const mode = name === tag.col ? modes.columnGroup : name === tag.tr ? modes.tableBody : name === tag.td || name === tag.th ? modes.row
      : isTablePart(name) ? modes.table : modes.body
    if (this.templates <= TEMPLATES_MAX) this.templateModes[this.templates - 1] = mode
    this.mode = mode
    return this.startHtml(name)
  }

  /** "Reset the insertion mode appropriately" (section 13.2.4.1). */
  protected resetMode(): void {
    this.mode = this.modeOfStack()
    this.watchesText = this.isFramesetOk || this.mode === modes.head || this.mode === modes.columnGroup
  }

  protected modeOfStack(): Mode {
    const { open } = this
    for (let index = open.depth - 1; index > 0; index -= 1) {
      open.visits += 1
      switch (open.at(index)) {
        case tag.select: return this.isInTable(index) ? modes.selectInTable : modes.select
        case tag.td: case tag.th: return modes.cell
        case tag.tr: return modes.row
        case tag.tbody: case tag.thead: case tag.tfoot: return modes.tableBody
        case tag.caption: return modes.caption
        case tag.colgroup: return modes.columnGroup
        case tag.table: return modes.table
        case tag.template: return this.templates <= TEMPLATES_MAX ? this.templateModes[this.templates - 1]! as Mode : modes.body
        case tag.body: return modes.body
        case tag.frameset: return modes.frameset
        default:
      }
    }
    return this.hasBody ? modes.body : modes.head
  }

  protected isInTable(select: number): boolean {
    for (let index = select - 1; index > 0; index -= 1) {
      this.open.visits += 1
      const element = this.open.at(index)
      if (element === tag.template) return false
      if (element === tag.table) return true
    }
    return false
  }

  /** svg or math. */
  protected pushForeignRoot(name: number): void {
    this.formatting.reopen(this.open.depth)
    this.pushForeign(name, name === tag.svg ? SVG : MATHML)
  }

  /** SVG and MathML have elements inside which HTML is meant. */
  protected pushForeign(name: number, space: number): void {
    const isHtmlPoint = space === SVG
      ? name === tag.foreignobject || name === tag.desc || name === tag.title
      : name === tag['annotation-xml'] && this.hint
    const isTextPoint = space === MATHML && (name === tag.mi || name === tag.mo || name === tag.mn || name === tag.ms || name === tag.mtext)
    this.open.push(name | space | (isHtmlPoint ? HTML_POINT : 0) | (isTextPoint ? TEXT_POINT : 0))
  }
}

/**
 * The rules of tables and of select (HTML standard, sections 13.2.6.4.9 to 17), over the state of tree-body.ts. Select is
 * read as it was until 2025 and as parse5 still does: what is neither option nor optgroup inside it is ignored.
 */
import * as names from './names.ts'
import * as openElements from './open-elements.ts'
import { TreeBody } from './tree-body.ts'
import * as kinds from './tree-kinds.ts'

// Constants of this module, which V8 folds; imported ones it would load at every use (a fifth of the time of a scan).
const { tag } = names
const { FOREIGN_MIN, scopes } = openElements
const { isTablePart, modes } = kinds

export abstract class TreeTables extends TreeBody {
  abstract end(name: number): void
  /** The rules of the mode in force. */
  protected abstract endHtml(name: number): void

  protected startInTable(name: number): number {
    const { open } = this
    switch (name) {
      case tag.caption: open.clearTo(tag.table, tag.table, tag.table); open.push(name); this.formatting.mark(open.depth); this.mode = modes.caption; return this.exists()
      case tag.colgroup: case tag.col:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(tag.colgroup)
        this.mode = modes.columnGroup
        this.watchesText = true
        return this.exists()
      case tag.tbody: case tag.thead: case tag.tfoot:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(name)
        this.mode = modes.tableBody
        return this.exists()
      case tag.tr: case tag.td: case tag.th:
        open.clearTo(tag.table, tag.table, tag.table)
        open.push(tag.tbody)
        this.mode = modes.tableBody
        return this.startInTableBody(name)
      case tag.table:
        if (!this.closeTable()) return 0
        return this.startHtml(name)
      case tag.form:
        if (this.templates > 0 || this.hasForm) return 0
        this.hasForm = true
        return this.exists()
      case tag.input: return this.hint ? this.exists() : this.startInBody(name)
      default: return this.startInBody(name)
    }
  }

  protected closeTable(): boolean {
    if (!this.open.inScope(tag.table, scopes.table)) return false
    this.open.popThrough(tag.table)
    this.resetMode()
    return true
  }

  protected endInTable(name: number): void {
    if (name === tag.table) this.closeTable()
    else if (!isTablePart(name) && name !== tag.body && name !== tag.html) this.endInBody(name)
  }

  protected endColumnGroup(): boolean {
    if (this.open.top !== tag.colgroup) return false
    this.open.pop()
    this.mode = modes.table
    this.watchesText = this.isFramesetOk
    return true
  }

  protected startInColumnGroup(name: number): number {
    if (name === tag.col || name === tag.html) return this.exists()
    if (name === tag.template) return this.startHeadElement(name)
    return this.endColumnGroup() ? this.startInTable(name) : 0
  }

  protected endInColumnGroup(name: number): void {
    if (name === tag.colgroup) this.endColumnGroup()
    else if (name === tag.template) this.endTemplate()
    else if (name !== tag.col && this.endColumnGroup()) this.endInTable(name)
  }

  protected startInTableBody(name: number): number {
    const { open } = this
    if (!isTablePart(name)) return this.startInTable(name)
    if (name === tag.tr || name === tag.td || name === tag.th) {
      open.clearTo(tag.tbody, tag.thead, tag.tfoot)
      open.push(tag.tr)
      this.mode = modes.row
      return name === tag.tr ? this.exists() : this.startInRow(name)
    }
    return this.closeTableBody() ? this.startInTable(name) : 0
  }

  protected closeTableBody(): boolean {
    const { open } = this
    if (!open.inScope(tag.tbody, scopes.table) && !open.inScope(tag.thead, scopes.table) && !open.inScope(tag.tfoot, scopes.table)) return false
    open.clearTo(tag.tbody, tag.thead, tag.tfoot)
    open.pop()
    this.mode = modes.table
    return true
  }

  protected endInTableBody(name: number): void {
    switch (name) {
      case tag.tbody: case tag.thead: case tag.tfoot: if (this.open.inScope(name, scopes.table)) this.closeTableBody(); return
      case tag.table: if (this.closeTableBody()) this.endInTable(name); return
      default: this.endInTable(name)
    }
  }

  protected startInRow(name: number): number {
    if (!isTablePart(name)) return this.startInTable(name)
    if (name === tag.td || name === tag.th) {
      this.open.clearTo(tag.tr, tag.tr, tag.tr)
      this.open.push(name)
      this.formatting.mark(this.open.depth)
      this.mode = modes.cell
      return this.exists()
    }
    return this.closeRow() ? this.startInTableBody(name) : 0
  }

  protected closeRow(): boolean {
    if (!this.open.inScope(tag.tr, scopes.table)) return false
    this.open.clearTo(tag.tr, tag.tr, tag.tr)
    this.open.pop()
    this.mode = modes.tableBody
    return true
  }

  protected endInRow(name: number): void {
    switch (name) {
      case tag.tr: this.closeRow(); return
      case tag.table: if (this.closeRow()) this.endInTableBody(name); return
      case tag.tbody: case tag.thead: case tag.tfoot: if (this.open.inScope(name, scopes.table) && this.closeRow()) this.endInTableBody(name); return
      default: this.endInTable(name)
    }
  }

  /** A part of the table: the cell is over. */
  protected startInCell(name: number): number {
    return this.closeCell() ? this.startHtml(name) : 0
  }

  protected closeCell(): boolean {
    const { open } = this
    if (!open.inScope(tag.td, scopes.table) && !open.inScope(tag.th, scopes.table)) return false
    while (open.top !== tag.td && open.top !== tag.th) open.pop()
    open.pop()
    this.formatting.clearToMark()
    this.mode = modes.row
    return true
  }

  protected endInCell(name: number): void {
    switch (name) {
      case tag.td: case tag.th:
        if (!this.open.inScope(name, scopes.table)) return
        this.open.popThrough(name)
        this.formatting.clearToMark()
        this.mode = modes.row
        return
      case tag.body: case tag.html: case tag.caption: case tag.col: case tag.colgroup: return
      case tag.table: case tag.tbody: case tag.thead: case tag.tfoot: case tag.tr:
        if (this.open.inScope(name, scopes.table) && this.closeCell()) this.endHtml(name)
        return
      default: this.endInBody(name)
    }
  }

  protected startInCaption(name: number): number {
    if (!isTablePart(name)) return this.startInBody(name)
    return this.closeCaption() ? this.startInTable(name) : 0
  }

  protected closeCaption(): boolean {
    if (!this.open.inScope(tag.caption, scopes.table)) return false
    this.open.popThrough(tag.caption)
    this.formatting.clearToMark()
    this.mode = modes.table
    return true
  }

  protected endInCaption(name: number): void {
    if (name === tag.caption || name === tag.table) {
      if (this.closeCaption() && name === tag.table) this.endInTable(name)
    } else if (!isTablePart(name) && name !== tag.body && name !== tag.html) this.endInBody(name)
  }

  // Select, as it was until 2025 (parse5 and most browsers' past)

  protected closeSelect(): void {
    this.open.popThrough(tag.select)
    this.resetMode()
  }

  /** Only option and optgroup do not end the select scope. */
  protected isSelectInScope(): boolean {
    const { open } = this
    for (let index = open.depth - 1; index >= 0; index -= 1) {
      open.visits += 1
      const element = open.at(index)
      if (element === tag.select) return true
      if (element < FOREIGN_MIN && element !== tag.option && element !== tag.optgroup) return false
    }
    return false
  }

  protected startInSelect(name: number): number {
    const { open } = this
    if (this.mode === modes.selectInTable && (isTablePart(name) ? name !== tag.col && name !== tag.colgroup : name === tag.table)) {
      this.closeSelect()
      return this.startHtml(name)
    }
    switch (name) {
      case tag.html: return this.exists()
      case tag.option: case tag.optgroup: case tag.hr:
        if (open.top === tag.option) open.pop()
        if (name !== tag.option && open.top === tag.optgroup) open.pop()
        if (name !== tag.hr) open.push(name)
        return this.exists()
      case tag.select: case tag.input: case tag.keygen: case tag.textarea:
        if (!this.isSelectInScope()) return 0
        this.closeSelect()
        return name === tag.select ? 0 : this.startHtml(name)
      case tag.script: case tag.template: return this.startHeadElement(name)
      default: return 0
    }
  }

  protected endInSelect(name: number): void {
    const { open } = this
    if (this.mode === modes.selectInTable && (isTablePart(name) ? name !== tag.col && name !== tag.colgroup : name === tag.table)) {
      if (!open.inScope(name, scopes.table)) return
      this.closeSelect()
      this.end(name)
      return
    }
    switch (name) {
      case tag.optgroup:
        if (open.top === tag.option && open.at(open.depth - 2) === tag.optgroup) open.pop()
        if (open.top === tag.optgroup) open.pop()
        return
      case tag.option: if (open.top === tag.option) open.pop(); return
      case tag.select: if (this.isSelectInScope()) this.closeSelect(); return
      case tag.template: this.endTemplate(); return
      default:
    }
  }
}

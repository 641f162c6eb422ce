/**
 * The words that tree construction is told in: insertion modes, what a start tag comes to, and kinds of elements. Pure;
 * for tree-body.ts, tree-tables.ts, tree.ts and the scanner.
 */
import { bitsOf, is, KNOWN_MAX, tag } from './names.ts'

/** What a start tag came to: a set of these bits. */
export const came = {
  /** The element is in the document, outside of templates. */
  exists: 1,
  /** It is SVG or MathML. */
  foreign: 2,
  /** Its content is text: up to an end tag with character references, without them, as a script, or to the end. */
  rcdata: 4, rawText: 8, script: 16, plaintext: 32,
} as const

/** Bits of `came` that say that the content is text. */
export const TEXT_CONTENT = came.rcdata | came.rawText | came.script | came.plaintext

/** Insertion modes; those before the head and after the body are one with these. */
export const modes = {
  head: 0, body: 1, table: 2, tableBody: 3, row: 4, cell: 5, caption: 6, columnGroup: 7, select: 8, selectInTable: 9, template: 10, frameset: 11, afterFrameset: 12,
} as const
export type Mode = (typeof modes)[keyof typeof modes]

/** Deeper templates are read by the rules of the body. */
export const TEMPLATES_MAX = 256

/** How the content of an element is read, by its name. */
export const contentOf = new Uint8Array(KNOWN_MAX)
for (const name of [tag.title, tag.textarea]) contentOf[name] = came.rcdata
for (const name of [tag.style, tag.xmp, tag.iframe, tag.noembed, tag.noframes]) contentOf[name] = came.rawText
contentOf[tag.script] = came.script
contentOf[tag.plaintext] = came.plaintext

/** Start tags in the body without a rule of their own: they close a p element if they do that, and go on the stack. */
export const isPlain = new Uint8Array(KNOWN_MAX)
for (const name of [
  tag.div, tag.ul, tag.ol, tag.dl, tag.p, tag.section, tag.article, tag.aside, tag.header, tag.footer, tag.nav, tag.main, tag.figure, tag.figcaption,
  tag.address, tag.blockquote, tag.center, tag.details, tag.dialog, tag.dir, tag.fieldset, tag.hgroup, tag.menu, tag.search, tag.summary, tag.pre,
  tag.listing, tag.applet, tag.marquee, tag.object, tag.noscript, tag.ruby, tag.span, tag.sub, tag.sup, tag.var, tag.desc, tag.foreignobject,
  tag.mi, tag.mo, tag.mn, tag.ms, tag.mtext, tag['annotation-xml'], tag.mglyph, tag.malignmark,
]) isPlain[name] = 1

/** What most start tags do in the body, by name; `own`: what its own rule says. */
export const lanes = { own: 0, push: 1, closePAndPush: 2, format: 3, empty: 4 } as const
export const laneOf = bitsOf.map((bits, name) => {
  if (isPlain[name] === 1 && (bits & (is.content | is.scope)) === 0) return (bits & is.closesP) === 0 ? lanes.push : lanes.closePAndPush
  if ((bits & is.formatting) !== 0) return lanes.format
  return (bits & is.void) !== 0 && (bits & (is.head | is.tablePart | is.closesP)) === 0 && name !== tag.input ? lanes.empty : lanes.own
})

export function isTablePart(name: number): boolean {
  return name < KNOWN_MAX && (bitsOf[name]! & is.tablePart) !== 0
}

/**
 * A document as node-html-parser's tree: what an extractor gets as `page.document`, and what `profile parse` compares the
 * scanner with. The only importer of that package. Runs in a parse worker.
 *
 * Two of its costs are quadratic, and both are avoided here (measured on 200 KB of each):
 *   unclosed elements are moved about after parsing: <div> 10 s, <b>x over 12 s; with parseNoneClosedTags 0.13 s;
 *   each `<!--` without an end searches to the end of the text: 4.2 s; the text is cut at the first of them, as the
 *   HTML standard would read it, once there are many (a few may stand in scripts, where they mean nothing).
 *
 * The package is loaded when a document is first asked for: it takes 50 ms of a worker's start, and most crawls never ask.
 */
import { createRequire } from 'node:module'
import type { HTMLElement } from 'node-html-parser'

type Package = typeof import('node-html-parser')

let loaded: Package | undefined

function load(): Package {
  return (loaded ??= createRequire(import.meta.url)('node-html-parser') as Package)
}

export type HtmlDocument = HTMLElement

const UNENDED_MAX = 64

/** Cuts a text at the first of many `start` marks that are not followed by `end`. */
function cutUnended(text: string, start: string, end: string): string {
  const first = text.indexOf(start, text.lastIndexOf(end) + 1)
  let at = first
  for (let count = 0; at !== -1; count += 1) {
    if (count === UNENDED_MAX) return text.slice(0, first)
    at = text.indexOf(start, at + start.length)
  }
  return text
}

const upperCase = /<\/?S(?:CRIPT|TYLE|cript|tyle)\b/g

/** The package looks for the end of <SCRIPT> in the same case: with `</script>` the rest of the page was lost. */
function lowerRawText(text: string): string {
  return text.replace(upperCase, (tag) => tag.toLowerCase())
}

export function parseDocument(text: string): HtmlDocument {
  const bounded = lowerRawText(cutUnended(cutUnended(text, '<!--', '-->'), '<![CDATA[', ']]>'))
  return load().parse(bounded, { parseNoneClosedTags: true, blockTextElements: { script: true, style: true } })
}

/** What a walk reports, in document order. */
export interface DocumentVisitor {
  element(name: string, attribute: (name: string) => string | undefined): void
  /** Text directly inside an element; `parent` is that element's name. */
  text(parent: string, raw: () => string): void
}

/** Walks a tree without recursion (a page may nest 50,000 deep), leaving out what stands in template elements. */
export function walkDocument(root: HtmlDocument, visitor: DocumentVisitor): void {
  const { NodeType } = load()
  const stack: HtmlDocument['childNodes'] = [root]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.nodeType === NodeType.TEXT_NODE) {
      const text = node
      visitor.text(text.parentNode?.rawTagName?.toLowerCase() ?? '', () => text.rawText)
      continue
    }
    if (node.nodeType !== NodeType.ELEMENT_NODE) continue
    const element = node as HtmlDocument
    const name = element.rawTagName?.toLowerCase() ?? ''
    if (name === 'template') continue
    if (name !== '') visitor.element(name, (attribute) => element.getAttribute(attribute))
    for (let index = element.childNodes.length - 1; index >= 0; index -= 1) stack.push(element.childNodes[index]!)
  }
}

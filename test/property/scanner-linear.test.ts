/**
 * The scanner's work is linear in the bytes, whatever they are: a hostile document of twice the size takes at most twice
 * the steps (`steps`: its bytes, what searches look at, what is looked at again, and stack entries visited), and a bounded
 * number of steps a byte. A search that begins anew at each tag shows in them.
 */
import { describe, expect, it } from 'vitest'
import { HtmlScanner } from '../../threads/html/scanner.ts'

/** Until the stack is full a search goes on to its bottom: what filling its 1,024 entries may cost beyond the doubled steps. */
const SLACK = 600_000
/** Documents are so large that they take about so many steps, so that the slack hides nothing. */
const STEPS_MIN = 2 ** 20
/** A tag may look through the stack once, and each takes at least three bytes. */
const STEPS_PER_BYTE_MAX = 512

const times = (piece: string) => (count: number): string => piece.repeat(count)

/** Name, and the document with so many of its pieces. */
const hostile: readonly (readonly [name: string, document: (count: number) => string])[] = [
  ['less signs', times('<')],
  ['less signs and slashes', times('</')],
  ['tags without an end', times('<a ')],
  ['quotes that never close', times('<a href="')],
  ['quotes of the other kind within', (count) => `<a href="${'\'>'.repeat(count)}`],
  ['comments that never close', times('<!--')],
  ['comments that nearly close', times('<!-- --!')],
  ['comments that close with a bang', times('<!-- --!>')],
  ['many comments', times('<!---->')],
  ['a bang far away', (count) => `${'<!---->'.repeat(count)}--!>`],
  ['bogus comments', times('<!x')],
  ['CDATA sections that never close', (count) => `<svg>${'<![CDATA['.repeat(count)}`],
  ['CDATA sections', (count) => `<svg>${'<![CDATA[]]>'.repeat(count)}`],
  ['processing instructions', times('<?')],
  ['attributes', (count) => `<a ${'x=1 '.repeat(count)}>`],
  ['attributes of one name', (count) => `<a ${'href=1 '.repeat(count)}>`],
  ['attributes of many names', (count) => `<a ${Array.from({ length: count }, (_, index) => `a${index}`).join(' ')}>`],
  ['slashes in a tag', (count) => `<a ${'/'.repeat(count)}>`],
  ['equals signs in a tag', (count) => `<a ${'= '.repeat(count)}>`],
  ['a script that never closes, with comments and parts of end tags', (count) => `<script>${'<!--</scrip'.repeat(count)}`],
  ['a script that begins scripts', (count) => `<script><!--${'<script>'.repeat(count)}`],
  ['a script in and out of its escapes', (count) => `<script>${'<!--<script></script>-->'.repeat(count)}`],
  ['a script with end tags of others', (count) => `<script>${'</style>'.repeat(count)}`],
  ['a script with comments that close', (count) => `<script>${'<!---->'.repeat(count)}`],
  ['scripts that close', times('<script><!----></script>')],
  ['scripts before a comment far away', (count) => `${'<script></script>'.repeat(count)}<script><!--`],
  ['a title with parts of end tags', (count) => `<title>${'</titl'.repeat(count)}`],
  ['titles', times('<title>x</title>')],
  ['text areas that never close', times('<textarea>')],
  ['entities in text', times('&amp;')],
  ['entities in an attribute', (count) => `<a href="${'&amp;'.repeat(count)}">`],
  ['entities in a title', (count) => `<title>${'&NotEqualTilde;'.repeat(count)}</title>`],
  ...['div', 'b', 'a href=x', 'svg', 'math', 'template', 'table', 'select', 'p', 'li', 'ul', 'ul><li', 'button', 'form', 'h1', 'object', 'unknown', 'nobr', 'font size=1', 'option', 'ruby',
    'svg><desc', 'svg><foreignObject', 'math><mi', 'math><annotation-xml', 'table><tr><td', 'table><caption', 'template><table', 'template><tr', 'select><template', 'frameset', 'dd', 'body',
    'colgroup', 'td', 'noscript', 'dl><dt'].map((name) => [`<${name}> within <${name}>`, times(`<${name}>`)] as const),
  ['paragraphs under buttons with many blocks', (count) => `<p><button><span>${'<div>'.repeat(count)}`],
  ['paragraphs far below', (count) => `<p>${'<svg><desc>'.repeat(count)}${'<div></div>'.repeat(count)}`],
  ['blocks closed below many spans', (count) => `<p><button>${'<span>'.repeat(500)}${'<div></div>'.repeat(count)}`],
  ['list items under many spans', (count) => `<ul><li>${'<span>'.repeat(500)}${'<ul><li></ul>'.repeat(count)}`],
  ['list items that do not close below blocks', (count) => `${'<li><div><section>'.repeat(300)}${'<li></li>'.repeat(count)}`],
  ['end tags of unknown names', (count) => `${'<span>'.repeat(1_000)}${'</x>'.repeat(count)}`],
  ['end tags of many unknown names, with a namesake of each far below', (count) => `<y><x>${'<span>'.repeat(1_000)}<div>${'</x></y>'.repeat(count)}`],
  ['end tags of unknown names under many of others', (count) => `${'<x1><x2><x3>'.repeat(300)}${'</x4>'.repeat(count)}`],
  ['end tags of blocks that are not in scope', (count) => `<div><table><tr><td>${'<span>'.repeat(900)}${'</div>'.repeat(count)}`],
  ['end tags of paragraphs', times('</p>')],
  ['end tags of paragraphs that are not in scope', (count) => `<p><object>${'<span>'.repeat(900)}${'</p>'.repeat(count)}`],
  ['end tags in foreign content', (count) => `<svg>${'<g>'.repeat(1_000)}${'</x>'.repeat(count)}`],
  ['end tags of headings', (count) => `${'<span>'.repeat(1_000)}${'</h1>'.repeat(count)}`],
  ['end tags of forms', (count) => `<form>${'<div>'.repeat(900)}${'</form><form>'.repeat(count)}`],
  ['end tags of formatting under foreign content', (count) => `<b><svg><desc>${'<span>'.repeat(900)}${'</b>'.repeat(count)}`],
  ['templates opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<template></template>'.repeat(count)}`],
  ['selects opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<select></select>'.repeat(count)}`],
  ['tables opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<table></table>'.repeat(count)}`],
  ['selects in a table, closed by its parts', (count) => `<table>${'<tr><td><select>'.repeat(count)}`],
  ['cells', times('<table><tr><td></td></tr></table>')],
  ['cells under many spans', (count) => `<table><tr><td>${'<span>'.repeat(900)}${'<div></td>'.repeat(count)}`],
  ['framesets', times('<frameset><frame src=x></frameset>')],
  ['framesets after many links', (count) => `${'<a href=x>'.repeat(count)}<frameset>`],
  ['breakouts from foreign content', times('<svg><g><div></div>')],
  ['addresses in a rel attribute', (count) => `<link rel="${'next '.repeat(count)}" href=x>`],
  ['robots directives', times('<meta name=robots content=noindex>')],
  ['white space', times(' \n')],
  ['NUL', times('\0')],
]

describe('steps', () => {
  const scanner = new HtmlScanner()
  const stepsOf = (bytes: Uint8Array): number => {
    scanner.scan(bytes)
    return scanner.steps
  }

  it.each(hostile)('%s: twice the document, at most twice the steps', (_, document) => {
    // What is quadratic fails at the small size, before the larger ones would take hours.
    const small = Buffer.from(document(2_000))
    const stepsPerByte = stepsOf(small) / small.byteLength
    expect(stepsPerByte).toBeGreaterThanOrEqual(1)
    expect(stepsPerByte).toBeLessThan(STEPS_PER_BYTE_MAX)
    const count = Math.ceil(2_000 * Math.max(1, STEPS_MIN / (stepsPerByte * small.byteLength)))
    const [bytes, larger] = [Buffer.from(document(count)), Buffer.from(document(2 * count))]
    expect(larger.byteLength).toBeGreaterThan(1.5 * bytes.byteLength)
    expect(stepsOf(larger)).toBeLessThanOrEqual(2 * stepsOf(bytes) + SLACK)
  }, 10_000)
})

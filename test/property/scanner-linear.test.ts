/**
 * The scanner's work is linear in the bytes, whatever they are: a hostile document of twice the size takes at most twice
 * the steps (`steps`: bytes looked at and stack entries visited), and a bounded number of steps a byte.
 */
import { describe, expect, it } from 'vitest'
import { HtmlScanner } from '../../threads/html/scanner.ts'

/** Steps that a document may take beyond twice those of its half. */
const SLACK = 20_000
/** No document of these takes more steps than this a byte, whatever its size. A stack is at most some thousand entries deep. */
const STEPS_PER_BYTE_MAX = 1_100

const times = (piece: string) => (count: number): string => piece.repeat(count)

/** Name, document of a size, and its smaller size: most make some MB. */
const hostile: readonly (readonly [name: string, document: (count: number) => string, count: number])[] = [
  ['less signs', times('<'), 500_000],
  ['less signs and slashes', times('</'), 500_000],
  ['tags without an end', times('<a '), 300_000],
  ['quotes that never close', times('<a href="'), 200_000],
  ['quotes of the other kind within', (count) => `<a href="${'\'>'.repeat(count)}`, 500_000],
  ['comments that never close', times('<!--'), 500_000],
  ['comments that nearly close', times('<!-- --!'), 200_000],
  ['comments that close with a bang', times('<!-- --!>'), 100_000],
  ['many comments', times('<!---->'), 200_000],
  ['a bang far away', (count) => `${'<!---->'.repeat(count)}--!>`, 200_000],
  ['bogus comments', times('<!x'), 300_000],
  ['CDATA sections that never close', (count) => `<svg>${'<![CDATA['.repeat(count)}`, 200_000],
  ['CDATA sections', (count) => `<svg>${'<![CDATA[]]>'.repeat(count)}`, 100_000],
  ['processing instructions', times('<?'), 500_000],
  ['attributes', (count) => `<a ${'x=1 '.repeat(count)}>`, 100_000],
  ['attributes of one name', (count) => `<a ${'href=1 '.repeat(count)}>`, 100_000],
  ['attributes of many names', (count) => `<a ${Array.from({ length: count }, (_, index) => `a${index}`).join(' ')}>`, 100_000],
  ['slashes in a tag', (count) => `<a ${'/'.repeat(count)}>`, 1_000_000],
  ['equals signs in a tag', (count) => `<a ${'= '.repeat(count)}>`, 500_000],
  ['a script that never closes, with comments and parts of end tags', (count) => `<script>${'<!--</scrip'.repeat(count)}`, 100_000],
  ['a script that begins scripts', (count) => `<script><!--${'<script>'.repeat(count)}`, 100_000],
  ['a script in and out of its escapes', (count) => `<script>${'<!--<script></script>-->'.repeat(count)}`, 50_000],
  ['a script with end tags of others', (count) => `<script>${'</style>'.repeat(count)}`, 200_000],
  ['a script with comments that close', (count) => `<script>${'<!---->'.repeat(count)}`, 200_000],
  ['scripts that close', times('<script><!----></script>'), 50_000],
  ['scripts before a comment far away', (count) => `${'<script></script>'.repeat(count)}<script><!--`, 50_000],
  ['a title with parts of end tags', (count) => `<title>${'</titl'.repeat(count)}`, 200_000],
  ['titles', times('<title>x</title>'), 100_000],
  ['text areas that never close', times('<textarea>'), 200_000],
  ['entities in text', times('&amp;'), 1_000_000],
  ['entities in an attribute', (count) => `<a href="${'&amp;'.repeat(count)}">`, 1_000_000],
  ['entities in a title', (count) => `<title>${'&NotEqualTilde;'.repeat(count)}</title>`, 300_000],
  ...['div', 'b', 'a href=x', 'svg', 'math', 'template', 'table', 'select', 'p', 'li', 'ul', 'ul><li', 'button', 'form', 'h1', 'object', 'unknown', 'nobr', 'font size=1', 'option', 'ruby',
    'svg><desc', 'svg><foreignObject', 'math><mi', 'math><annotation-xml', 'table><tr><td', 'table><caption', 'template><table', 'template><tr', 'select><template', 'frameset', 'dd', 'body',
    'colgroup', 'td', 'noscript', 'dl><dt'].map((name) => [`<${name}> within <${name}>`, times(`<${name}>`), 50_000] as const),
  ['paragraphs under buttons with many blocks', (count) => `<p><button><span>${'<div>'.repeat(count)}`, 100_000],
  ['paragraphs far below', (count) => `<p>${'<svg><desc>'.repeat(count)}${'<div></div>'.repeat(count)}`, 30_000],
  ['blocks closed below many spans', (count) => `<p><button>${'<span>'.repeat(500)}${'<div></div>'.repeat(count)}`, 50_000],
  ['list items under many spans', (count) => `<ul><li>${'<span>'.repeat(500)}${'<ul><li></ul>'.repeat(count)}`, 50_000],
  ['list items that do not close below blocks', (count) => `${'<li><div><section>'.repeat(300)}${'<li></li>'.repeat(count)}`, 50_000],
  ['end tags of unknown names', (count) => `${'<span>'.repeat(1_000)}${'</x>'.repeat(count)}`, 200_000],
  ['end tags of many unknown names, with a namesake of each far below', (count) => `<y><x>${'<span>'.repeat(1_000)}<div>${'</x></y>'.repeat(count)}`, 100_000],
  ['end tags of unknown names under many of others', (count) => `${'<x1><x2><x3>'.repeat(300)}${'</x4>'.repeat(count)}`, 200_000],
  ['end tags of blocks that are not in scope', (count) => `<div><table><tr><td>${'<span>'.repeat(900)}${'</div>'.repeat(count)}`, 100_000],
  ['end tags of paragraphs', times('</p>'), 200_000],
  ['end tags of paragraphs that are not in scope', (count) => `<p><object>${'<span>'.repeat(900)}${'</p>'.repeat(count)}`, 100_000],
  ['end tags in foreign content', (count) => `<svg>${'<g>'.repeat(1_000)}${'</x>'.repeat(count)}`, 100_000],
  ['end tags of headings', (count) => `${'<span>'.repeat(1_000)}${'</h1>'.repeat(count)}`, 100_000],
  ['end tags of forms', (count) => `<form>${'<div>'.repeat(900)}${'</form><form>'.repeat(count)}`, 50_000],
  ['end tags of formatting under foreign content', (count) => `<b><svg><desc>${'<span>'.repeat(900)}${'</b>'.repeat(count)}`, 100_000],
  ['templates opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<template></template>'.repeat(count)}`, 50_000],
  ['selects opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<select></select>'.repeat(count)}`, 50_000],
  ['tables opened and closed deep down', (count) => `${'<div>'.repeat(900)}${'<table></table>'.repeat(count)}`, 50_000],
  ['selects in a table, closed by its parts', (count) => `<table>${'<tr><td><select>'.repeat(count)}`, 30_000],
  ['cells', times('<table><tr><td></td></tr></table>'), 30_000],
  ['cells under many spans', (count) => `<table><tr><td>${'<span>'.repeat(900)}${'<div></td>'.repeat(count)}`, 50_000],
  ['framesets', times('<frameset><frame src=x></frameset>'), 50_000],
  ['framesets after many links', (count) => `${'<a href=x>'.repeat(count)}<frameset>`, 100_000],
  ['breakouts from foreign content', times('<svg><g><div></div>'), 50_000],
  ['addresses in a rel attribute', (count) => `<link rel="${'next '.repeat(count)}" href=x>`, 200_000],
  ['robots directives', times('<meta name=robots content=noindex>'), 50_000],
  ['white space', times(' \n'), 1_000_000],
  ['NUL', times('\0'), 1_000_000],
]

describe('steps', () => {
  const scanner = new HtmlScanner()
  const stepsOf = (text: string): number => {
    scanner.scan(Buffer.from(text))
    return scanner.steps
  }

  it.each(hostile)('%s: twice the document, at most twice the steps', (_, document, count) => {
    // Small ones first: what is quadratic fails here, before the larger ones would take hours.
    const small = document(Math.ceil(count / 64))
    expect(stepsOf(small) / Buffer.byteLength(small)).toBeLessThan(STEPS_PER_BYTE_MAX)
    const [text, larger] = [document(count), document(2 * count)]
    const [steps, more] = [stepsOf(text), stepsOf(larger)]
    expect(steps).toBeGreaterThanOrEqual(Buffer.byteLength(text))
    expect(more).toBeLessThanOrEqual(2 * steps + SLACK)
    expect(more / Buffer.byteLength(larger)).toBeLessThan(STEPS_PER_BYTE_MAX)
  })
})

/**
 * The scanner makes nothing for what it skips: a page with ten times the text between the same tags leaves no more on the
 * heap. Measured in a process of its own, where the collector can be told to run; it reads the compiled scanner.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const scannerFile = new URL('../../dist/threads/html/scanner.js', import.meta.url).href

/** Bytes by which two pages may differ: a number on the heap is 16, and V8 itself makes some. */
const DIFFERENCE_BYTES_MAX = 1_024

/** Prints the median growth of the heap over scans of a page with little and with much text, in bytes. */
const program = (scan: string): string => `
  import { getHeapStatistics } from 'node:v8'
  import { HtmlScanner } from '${scannerFile}'
  const scanner = new HtmlScanner()
  const scan = ${scan}
  const words = (count) => ' some words of text, an &amp; too'.repeat(count)
  const page = (count) => Buffer.from('<!doctype html><title>t</title>' + Array.from({ length: 500 }, (_, index) =>
    '<div class="x"><p>' + words(count) + '<!-- ' + words(count) + ' --><a href="/page/' + index + '" rel=nofollow>' + words(count) + '</a></p>' +
    '<script>' + words(count) + '</script></div>').join(''))
  const pages = [page(2), page(20)]
  const growthOf = (bytes) => {
    gc()
    const before = getHeapStatistics().used_heap_size
    scan(scanner, bytes)
    return getHeapStatistics().used_heap_size - before
  }
  for (let round = 0; round < 60; round += 1) pages.forEach(growthOf)
  const medianOf = (bytes) => Array.from({ length: 31 }, () => growthOf(bytes)).sort((one, other) => one - other)[15]
  console.log(JSON.stringify({ bytes: pages.map(({ length }) => length), growth: pages.map(medianOf) }))
`

function growth(scan: string): { readonly bytes: [number, number]; readonly growth: [number, number] } {
  const output = execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', program(scan)], { encoding: 'utf8', cwd: fileURLToPath(new URL('../..', import.meta.url)) })
  return JSON.parse(output) as { bytes: [number, number]; growth: [number, number] }
}

it('a page with ten times the text leaves no more on the heap', () => {
  const { bytes, growth: [little, much] } = growth('(scanner, bytes) => scanner.scan(bytes)')
  expect(bytes[1]).toBeGreaterThan(7 * bytes[0])
  expect(Math.abs(much - little)).toBeLessThan(DIFFERENCE_BYTES_MAX)
})

it('a reader that makes a string of the page is seen to do so, so the measurement proves something', () => {
  const { growth: [little, much] } = growth('(scanner, bytes) => { globalThis.kept = bytes.toString("latin1"); return scanner.scan(bytes) }')
  expect(Math.abs(much - little)).toBeGreaterThan(DIFFERENCE_BYTES_MAX)
})

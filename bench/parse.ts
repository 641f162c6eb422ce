/**
 * Reading HTML, in ratios of one run: the scanner against other parsers, the whole path of a page through a worker
 * against parse5 alone, memory for a page with more text, and time for hostile documents of doubled size.
 *
 *     npm run bench:parse -- [DIR] [--rounds 7] [--only parsers,path,heap,hostile] [--hostile-scale 1]
 *
 * DIR: a folder of pages (default: the corpus that SLUICE_CORPUS names or that stands beside the checkout, else made
 * pages). Bodies are cut at 250 KB after inflating.
 */
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import type { ParsedResult } from '../engine/core/types.ts'
import { readInputs, type ProfileInput } from '../engine/cli/profile-inputs.ts'
import { compareParsers, median, parseByParse5, type ParserBody } from '../engine/cli/profile-parsers.ts'
import { KnownTable } from '../storage/known.ts'
import type { SlotPage } from '../threads/arena.ts'
import { encodeFrame, frameBytes } from '../threads/frame.ts'
import { charsetOf, decodeText } from '../threads/html/charset.ts'
import { LinkCollector } from '../threads/html/links.ts'
import { readHtml } from '../threads/html/read-html.ts'
import { HtmlScanner } from '../threads/html/scanner.ts'
import { Inflater } from '../threads/inflate.ts'
import { parsePage } from '../threads/parse-worker.ts'

const BODY_BYTES = 250 * 1_024

function spread(values: readonly number[], digits = 2): string {
  return `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`
}

function line(name: string, text: string, goal?: string): void {
  console.log(`  ${name.padEnd(38)}${text}${goal === undefined ? '' : `   goal ${goal}`}`)
}

function bodiesOf(pages: readonly ProfileInput[]): readonly ParserBody[] {
  return pages.map(({ decoded, contentType, isDecodedCut }) => ({ bytes: decoded, contentType, isCut: isDecodedCut }))
}

function benchParsers(pages: readonly ProfileInput[], rounds: number): void {
  const { figures, withStrings, roundsMs } = compareParsers(bodiesOf(pages), { ms: 0, roundsMin: rounds, roundsMax: rounds })
  console.log('\nthe scanner against others: decoded bytes to links, title, base, metas, lengths; median of rounds (least to most)')
  for (const { name, pagesPerSecond, mbPerSecond } of [...figures, { name: 'scanner, links as strings', ...withStrings }]) {
    line(name, `${pagesPerSecond.toFixed(0).padStart(7)} pages/s ${mbPerSecond.toFixed(1).padStart(8)} MB/s`)
  }
  line('scanner / parse5', spread(roundsMs.map((round) => round.parse5 / round.scanner)), '25')
  line('scanner / node-html-parser', spread(roundsMs.map((round) => round['node-html-parser'] / round.scanner)), '12')
  line('scanner / htmlparser2', spread(roundsMs.map((round) => round.htmlparser2 / round.scanner)))
  line('with strings / parse5', spread(roundsMs.map((round) => round.parse5 / round.scannerWithStrings)))
}

/** A page as it lies in its slot, coded by gzip. */
interface PathPage {
  readonly slot: SlotPage
  readonly text: string
}

function pathPage({ url, contentType, decoded, isDecodedCut }: ProfileInput): PathPage {
  const body = gzipSync(decoded)
  const meta = {
    url, depth: 1, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: Date.now(), contentType, contentEncoding: 'gzip',
    timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, ttfbMs: 4, totalMs: 5 }, truncated: isDecodedCut, followLinks: true, ip: '127.0.0.1',
    tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', resumed: true }, etag: '"0"', lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT',
  }
  const charset = charsetOf(decoded, { contentType, isHtml: true, isCut: isDecodedCut })
  return { slot: { meta, redirects: 0, headerBlock: new Uint8Array(0), body }, text: decodeText(decoded, charset) }
}

/** No link is known; all are known and none was met by this worker; all are known and met, as on the pages of one site. */
type PathName = 'cold' | 'known' | 'warm' | 'parse5'

class PathRig {
  readonly known = KnownTable.create()
  readonly #room = new Uint8Array(8 * 2 ** 20)
  readonly #inflater = new Inflater(BODY_BYTES)
  readonly #warm = this.#collector(this.known)
  readonly #nothingKnown = KnownTable.create()
  #cold = this.#collector(this.#nothingKnown)
  #known = this.#collector(this.known)

  /** Workers that have seen no page yet, but for the warm one, which has seen all. */
  begin(): void {
    this.#cold = this.#collector(this.#nothingKnown)
    this.#known = this.#collector(this.known)
  }

  async run(name: PathName, page: PathPage): Promise<void> {
    if (name === 'parse5') parseByParse5(page.text)
    else encodeFrame(await this.parse(name, page), this.#room)
  }

  async parse(name: Exclude<PathName, 'parse5'>, page: PathPage): Promise<ParsedResult> {
    const result = await parsePage(page.slot, {
      inflater: this.#inflater, collector: { cold: this.#cold, known: this.#known, warm: this.#warm }[name], agent: 'sluice', extractor: undefined, sink: undefined,
      nowMs: () => performance.now(),
    })
    // A worker asks for the size first, which is part of the path.
    if (result.outcome !== 'ok' || frameBytes(result) > this.#room.byteLength) throw new Error(`${page.slot.meta.url}: ${result.outcome} ${result.code ?? ''}`)
    return result
  }

  #collector(known: KnownTable): LinkCollector {
    return new LinkCollector({ include: [], exclude: [], known })
  }
}

const pathNames: readonly PathName[] = ['cold', 'known', 'warm', 'parse5']
const pathLabels: Readonly<Record<PathName, string>> = { cold: 'path, no link known', known: 'path, all known, none met', warm: 'path, all known and met', parse5: 'parse5' }

async function benchPath(inputs: readonly ProfileInput[], rounds: number): Promise<void> {
  const pages = inputs.map((input) => pathPage(input))
  const rig = new PathRig()
  let links = 0
  for (const page of pages) {
    const found = (await rig.parse('cold', page)).links
    links += found.count
    for (let index = 0; index < found.count; index += 1) rig.known.add(found.fingerprint(index))
  }
  const all: Record<PathName, number>[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const ms: Record<PathName, number> = { cold: 0, known: 0, warm: 0, parse5: 0 }
    rig.begin()
    for (let step = 0; step < pathNames.length; step += 1) {
      const name = pathNames[(round + step) % pathNames.length]!
      const startMs = performance.now()
      for (const page of pages) await rig.run(name, page)
      ms[name] = performance.now() - startMs
    }
    // The first round compiles.
    if (round > 0) all.push(ms)
  }
  console.log('\nthe whole path of a page in a worker, from its gzip to its encoded result, against parse5 alone on the text')
  line('links a page', (links / pages.length).toFixed(0))
  for (const name of pathNames) line(`${pathLabels[name]}, us a page`, spread(all.map((round) => round[name] * 1_000 / pages.length), 0))
  for (const name of ['cold', 'known', 'warm'] as const) line(`${pathLabels[name]}, x parse5`, spread(all.map((round) => round.parse5 / round[name])), '6')
}

/** The same tags, and words between them. */
function textPage(wordsInParagraph: number): Uint8Array {
  const text = 'word '.repeat(wordsInParagraph)
  const parts = Array.from({ length: 200 }, (_, index) => `<p class="c">${text}<a href="/page/${index}">${text}</a></p>`)
  return Buffer.from(`<!doctype html><html lang="en"><head><title>A page</title></head><body>${parts.join('\n')}</body></html>`)
}

/**
 * Bytes of heap that one scan of each takes: the least of many, in turns. Code is compiled while they run, which takes ten
 * times as much as a scan and moves a median by as much; what a scan itself takes, every one of them takes.
 */
function heapBytes(pages: readonly Uint8Array[]): readonly number[] {
  const scanner = new HtmlScanner()
  const least = pages.map(() => Number.POSITIVE_INFINITY)
  for (let index = 0; index < 60; index += 1) {
    for (const [at, bytes] of pages.entries()) {
      collect()
      const before = getHeapStatistics()
      scanner.scan(bytes)
      const after = getHeapStatistics()
      least[at] = Math.min(least[at]!, after.used_heap_size + after.external_memory - before.used_heap_size - before.external_memory)
    }
  }
  return least
}

function benchHeap(): void {
  const [short, long] = [textPage(5), textPage(50)]
  const [few = 0, many = 0] = heapBytes([short, long])
  console.log('\nheap taken by one scan, the same tags with ten times the text')
  line(`${short.byteLength} bytes`, `${few} bytes of heap`)
  line(`${long.byteLength} bytes`, `${many} bytes of heap`)
  line('difference, bytes', String(many - few), 'under 1024')
}

const hostile: readonly (readonly [string, number, (count: number) => string])[] = [
  ['a million <', 1_000_000, (count) => '<'.repeat(count)],
  ['unclosed quotes', 200_000, (count) => '<a href="'.repeat(count)],
  ['unclosed comments', 200_000, (count) => '<!--'.repeat(count)],
  ['comments in comments', 100_000, (count) => '<!-- <!-- --!> '.repeat(count)],
  ['100,000 attributes', 100_000, (count) => `<a ${Array.from({ length: count }, (_, index) => `a${index}=1`).join(' ')} href=/x>`],
  ['100,000 equal attributes', 100_000, (count) => `<a ${'href=/x '.repeat(count)}>`],
  ['<script> never closed', 200_000, (count) => `<script>${'</scrip <!--'.repeat(count)}`],
  ['<script> in <!--<script>', 200_000, (count) => `<script>${'<!--<script>'.repeat(count)}`],
  ['10 MB of entities in a title', 1_000_000, (count) => `<title>${'&amp;&#x41;'.repeat(count)}</title>`],
  ['10 MB of entities in an href', 1_000_000, (count) => `<a href="${'&amp;&notit;'.repeat(count)}">`],
  ['a million links', 1_000_000, (count) => '<a href=/x>'.repeat(count)],
]

function benchHostile(scale: number, rounds: number): void {
  console.log(`\nhostile documents, milliseconds${scale === 1 ? '' : `, sizes by ${scale}`}: doubled size should double the time`)
  for (const [name, count, make] of hostile) {
    const [once, twice] = [1, 2].map((factor) => Buffer.from(make(Math.max(1, Math.round(count * scale * factor)))))
    // The first round compiles, and makes room for the notes of so long a page.
    const times = Array.from({ length: rounds + 1 }, () => [once!, twice!].map((bytes) => {
      const startMs = performance.now()
      readHtml(bytes, { contentType: 'text/html; charset=utf-8' })
      return performance.now() - startMs
    })).slice(1)
    const ms = (at: number): string => median(times.map((pair) => pair[at]!)).toFixed(1).padStart(9)
    line(name, `${ms(0)}${ms(1)}   x ${spread(times.map(([a, b]) => b! / a!))}`, 'about 2')
  }
}

function defaultFolder(): readonly string[] {
  const beside = fileURLToPath(new URL('../../../shared/corpus', import.meta.url))
  const corpus = process.env['SLUICE_CORPUS'] ?? beside
  return existsSync(`${corpus}/pages`) ? [`${corpus}/pages`] : []
}

// The flag of the command line cannot be given by a script of package.json that also takes arguments.
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const { values, positionals } = parseArgs({ allowPositionals: true, options: {
  rounds: { type: 'string', default: '7' }, only: { type: 'string', default: 'parsers,path,heap,hostile' }, 'hostile-scale': { type: 'string', default: '1' },
} })
const parts = values.only.split(',')
const rounds = Number(values.rounds)
if (!(rounds >= 1) || parts.some((part) => !['parsers', 'path', 'heap', 'hostile'].includes(part))) throw new Error('expected --rounds of 1 or more and --only of parsers, path, heap, hostile')
const paths = positionals.length > 0 ? positionals : defaultFolder()
const { pages } = await readInputs(paths, { maxBodyBytes: BODY_BYTES, warn: (message) => console.error(`skipped ${message}`) })
const mb = pages.reduce((sum, { decoded }) => sum + decoded.byteLength, 0) / 2 ** 20
console.log(`${pages.length} ${paths.length === 0 ? 'made pages' : 'pages'}, ${mb.toFixed(1)} MB after inflating and cutting at 250 KB; ${rounds} rounds; Node ${process.version}, ${cpus().length} x ${cpus()[0]!.model.trim()}`)
if (parts.includes('parsers')) benchParsers(pages, rounds)
if (parts.includes('path')) await benchPath(pages, rounds)
if (parts.includes('heap')) benchHeap()
if (parts.includes('hostile')) benchHostile(Number(values['hostile-scale']), Math.min(rounds, 3))

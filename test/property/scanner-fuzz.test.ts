/**
 * The scanner on broken documents: pieces of real pages and html5lib's inputs, mutated, must give the facts that parse5
 * finds, and never throw. Seeds are printed (test/support/random.ts); FUZZ_SECONDS=600 goes on for that long with each
 * kind of document instead of the number of seeds that the suite has time for.
 */
import { expect, it } from 'vitest'
import { readHtml } from '../../threads/html/read-html.ts'
import { lacksCorpus, pageBytes, pageIndex, treeCases } from '../support/html-corpus.ts'
import { differenceOf, differenceOfBytes, isKnownDifference, plainFacts, readByPattern, shrink, type Reader } from '../support/parse5-oracle.ts'
import { integer, pick, seededRandom, withSeeds } from '../support/random.ts'
import type { Random } from '../../engine/core/clock.ts'

const read: Reader = (bytes, options) => plainFacts(readHtml(bytes, options))

const nasty = [
  '<svg>', '</svg>', '<math>', '</math>', '<foreignObject>', '<desc>', '<mi>', '<annotation-xml encoding="text/html">', '<template>', '</template>', '<select>',
  '</select>', '<option>', '<table>', '</table>', '<tr>', '<td>', '</td>', '<caption>', '<colgroup>', '<col>', '<tbody>', '</tbody>', '<plaintext>', '<frameset>', '</frameset>', '<frame src=f>',
  '<!--', '-->', '--!>', '<![CDATA[', ']]>', '<script>', '</script', '</script>', '<!--<script>', '<textarea>', '</textarea>', '<title>', '</title>', '<style>', '</style>',
  '<noscript>', '</noscript>', '<xmp>', '<iframe src=i>', '</iframe>', '<noframes>', '"', '\'', '=', '>', '<', '/', '</', '&', '&amp', '&#x41', '\0', '\r', '\f', '<?', '<!', '</p>', '</br>', '<p>', '<b>',
  '</b>', '<a href=n>', '</a>', '<button>', '</button>', '<li>', '</ul>', '<ul>', '<form>', '</form>', '<h1>', '</h2>', '<object>', '</object>', '<ruby><rt>', '<nobr>', '<font color=x>',
  '<body>', '</body>', '<html lang=n>', '</html>', '<head>', '</head>', '<base href=n>', '<area href=n>', '<link rel=next href=n>', '<meta http-equiv=refresh content="1;url=n">',
  '<meta name=robots content=noindex>', '<input type=hidden>', '<div/>', '<svg/>', '<a href=\'n', '<hr>', '<image>', '\u00E9', '\u{1F600}',
].map((text) => Buffer.from(text))
const probe = Buffer.from('<area href=probe>')

type Mutation = (bytes: Uint8Array, random: Random) => Uint8Array

const joined = (...parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts)

/** Start and end of a slice: half of them are a few bytes long, the others anything. */
function slice(bytes: Uint8Array, random: Random): [number, number] {
  const start = integer(random, bytes.length + 1)
  return [start, Math.min(bytes.length, start + integer(random, random() < 0.5 ? 16 : bytes.length + 1))]
}

const mutations: readonly Mutation[] = [
  (bytes, random) => { // a byte becomes another
    const changed = Uint8Array.from(bytes)
    if (changed.length > 0) changed[integer(random, changed.length)] = integer(random, 256)
    return changed
  },
  (bytes, random) => { // a slice is lost
    const [start, end] = slice(bytes, random)
    return joined(bytes.subarray(0, start), bytes.subarray(end))
  },
  (bytes, random) => { // a slice comes twice
    const [start, end] = slice(bytes, random)
    return joined(bytes.subarray(0, end), bytes.subarray(start))
  },
  (bytes, random) => { // two slices change places
    const cuts = Array.from({ length: 3 }, () => integer(random, bytes.length + 1)).sort((one, other) => one - other)
    return joined(bytes.subarray(0, cuts[0]), bytes.subarray(cuts[1], cuts[2]), bytes.subarray(cuts[0], cuts[1]), bytes.subarray(cuts[2]))
  },
  ...Array.from({ length: 4 }, (): Mutation => (bytes, random) => { // something nasty comes in, at a tag more often than not
    const at = random() < 0.7 ? bytes.indexOf(0x3c, integer(random, bytes.length + 1)) : integer(random, bytes.length + 1)
    const from = at === -1 ? bytes.length : at
    return joined(bytes.subarray(0, from), pick(random, nasty), bytes.subarray(from))
  }),
  (bytes, random) => bytes.subarray(0, integer(random, bytes.length + 1)), // the end is cut off
]

function mutated(bytes: Uint8Array, random: Random): Uint8Array {
  let changed = bytes
  for (let left = 1 + integer(random, 6); left > 0; left -= 1) changed = pick(random, mutations)(changed, random)
  return joined(changed, probe)
}

const known = new Map<string, Uint8Array>()

function page(file: string): Uint8Array {
  if (known.size > 40) known.clear()
  if (!known.has(file)) known.set(file, pageBytes(file))
  return known.get(file)!
}

/** A piece of a page of some KB from the start of a tag on; its head in every fourth. */
function pieceOf(bytes: Uint8Array, random: Random): Uint8Array {
  const from = random() < 0.25 ? 0 : Math.max(0, bytes.indexOf(0x3c, integer(random, bytes.length)))
  return bytes.subarray(from, from + 256 + integer(random, 6_000))
}

interface Failure {
  readonly document: string
  readonly difference: string | undefined
}

/** The first mutated document that a reader gets wrong, shortened. */
function firstFailure(reader: Reader, random: Random, documents: Iterable<Uint8Array>): Failure | undefined {
  for (const bytes of documents) {
    const changed = mutated(bytes, random)
    const difference = differenceOfBytes(reader, changed)
    if (difference === undefined) continue
    const text = Buffer.from(changed).toString()
    const short = shrink(text, (shorter) => differenceOf(reader, shorter) !== undefined)
    if (reader === read && isKnownDifference(short)) continue
    return { document: JSON.stringify(short), difference: differenceOf(reader, short) ?? `${difference}, in bytes that are no text: ${Buffer.from(changed).toString('latin1')}` }
  }
  return undefined
}

function* pieces(random: Random, count: number): Iterable<Uint8Array> {
  const bytes = page(pick(random, pageIndex_()).file)
  for (let left = count; left > 0; left -= 1) yield pieceOf(bytes, random)
}

let index: ReturnType<typeof pageIndex> | undefined
const pageIndex_ = (): ReturnType<typeof pageIndex> => index ??= pageIndex()

function* inputs(random: Random, count: number): Iterable<Uint8Array> {
  for (let left = count; left > 0; left -= 1) {
    const one = Buffer.from(pick(random, cases_()).data)
    yield random() < 0.5 ? one : joined(one, Buffer.from(pick(random, cases_()).data))
  }
}

let cases: ReturnType<typeof treeCases> | undefined
const cases_ = (): ReturnType<typeof treeCases> => cases ??= treeCases()

/** Runs so many seeds, or for FUZZ_SECONDS. */
async function fuzz(seeds: number, documents: (random: Random) => Iterable<Uint8Array>): Promise<void> {
  const body = (random: Random): void => expect(firstFailure(read, random, documents(random))).toBeUndefined()
  const endMs = Date.now() + 1_000 * Number(process.env['FUZZ_SECONDS'] ?? 0)
  do await withSeeds(seeds, body)
  while (Date.now() < endMs)
}

it.skipIf(lacksCorpus('html5lib-tests'))('html5lib inputs, mutated, give the facts that parse5 finds', async () => {
  await fuzz(250, (random) => inputs(random, 100))
}, 7_200_000)

it.skipIf(lacksCorpus('pages'))('pieces of pages, mutated, give the facts that parse5 finds', async () => {
  await fuzz(120, (random) => pieces(random, 20))
}, 7_200_000)

it.skipIf(lacksCorpus('pages'))('a reader by pattern fails on most seeds, so the fuzzing proves something', () => {
  const failing = Array.from({ length: 20 }, (_, seed) => seededRandom(seed)).filter((random) => firstFailure(readByPattern, random, pieces(random, 5)) !== undefined)
  expect(failing.length).toBeGreaterThan(15)
})

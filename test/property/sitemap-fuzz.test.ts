/**
 * Sitemaps cut anywhere, mutated and made up: the same bytes give the same entries in any pieces, nothing throws, bounds
 * hold, and the work is linear. Seeds are printed (test/support/random.ts); FUZZ_SEEDS=100000 goes on for as many.
 */
import fs from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { Random } from '../../engine/core/clock.ts'
import { SitemapReader } from '../../threads/sitemap/reader.ts'
import { XmlScanner } from '../../threads/sitemap/xml-scanner.ts'
import { corpusPath } from '../support/corpus.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { readSitemap, type WholeSitemap } from '../support/sitemaps.ts'

const seeds = Number(process.env['FUZZ_SEEDS'] ?? 150)
const BYTES_MAX = 100_000

const made = [
  `<?xml version="1.0" encoding="utf-8"?>\r\n<!DOCTYPE urlset [<!ENTITY a "b">]><urlset xmlns="x"><!-- c --><url><loc>http://a.test/\u00FC?a&amp;b=&#x31;</loc><lastmod>2026-01-02</lastmod></url>
   <url><loc><![CDATA[/2?]]]>]]></loc><priority>.5</priority><image:image><image:loc>http://a.test/i</image:loc></image:image></url></urlset>`,
  '<sitemapindex><sitemap><loc>/1</loc><lastmod>2005</lastmod><loc>/2</loc></sitemap><sitemap>http://a.test/3</sitemap></sitemapindex>',
  '<rss><channel><link>/no</link><item><guid isPermaLink="false">http://a.test/1</guid><pubDate>Sun, 02 Jan 2005 03:04:05 GMT</pubDate></item><item><link>/2</link></item></channel></rss>',
  '<feed xml:base="/b/"><entry><link rel=\'alternate\' href="1>"/><link href="2"/><updated>2005-01-02T03:04:05Z</updated></entry></feed>',
  '<rdf:RDF><item><link>/1</link><dc:date>2005-01-02</dc:date></item></rdf:RDF>',
  '\uFEFFhttp://a.test/1\r\nhttp://a.test/2\r\rhttp://a.test/\u00FC\n\nnone\nhttp://a.test/3',
].map((text) => Buffer.from(text))

const corpusFiles = fs.existsSync(corpusPath('sitemaps'))
  ? fs.readdirSync(corpusPath('sitemaps'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== 'cases.json')
    .map((entry) => fs.readFileSync(`${entry.parentPath}/${entry.name}`)).filter((bytes) => bytes.byteLength < 20_000)
  : []
const documents = [...made, ...corpusFiles]

const nasty = ['<', '</', '>', '&', '&#', '&amp', ';', '<!--', '-->', '<![CDATA[', ']]>', '<!DOCTYPE ', '[', ']', '"', '\'', '<?', '?>', '<loc>', '</loc>', '<url>', '</url>', '</urlset>', '<item>',
  '\n', '\r', '\0', ':', '/', '<url/>', '<a:b xml:base="/x">', '\u00FC', '\u{1F600}', 'http://', '&#x110000;', '&#0;', `<loc>${'x'.repeat(3_000)}</loc>`, ' '.repeat(17_000), `<a b="${'y'.repeat(17_000)}">`].map((text) => Buffer.from(text))

function mutated(bytes: Uint8Array, random: Random): Uint8Array {
  let result = bytes
  for (let left = integer(random, 6); left >= 0; left -= 1) {
    const at = integer(random, result.byteLength + 1)
    const end = Math.min(result.byteLength, at + integer(random, random() < 0.7 ? 8 : 2_000))
    const put = pick(random, [new Uint8Array(0), pick(random, nasty), result.subarray(at, end), Uint8Array.of(integer(random, 256))])
    result = Buffer.concat([result.subarray(0, at), put, result.subarray(random() < 0.5 ? at : end)])
  }
  return result
}

function cut(bytes: Uint8Array, random: Random): Uint8Array[] {
  const pieces: Uint8Array[] = []
  // Each piece is a turn of the loop: large documents are not cut into bytes.
  const most = pick(random, bytes.byteLength < 2_000 ? [1, 3, 20, 500] : [200, 2_000, 20_000])
  for (let at = 0; at < bytes.byteLength;) {
    const end = Math.min(bytes.byteLength, at + 1 + integer(random, most))
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  return pieces
}

async function read(chunks: readonly Uint8Array[], random?: Random, contentEncoding?: string): Promise<WholeSitemap> {
  const head = { url: 'http://a.test/s/m.xml', ...(contentEncoding !== undefined && { contentEncoding }) }
  const chunkBytesMax = random === undefined ? BYTES_MAX : pick(random, [50, 1_000, BYTES_MAX])
  const whole = await readSitemap(new SitemapReader(head, { bytesMax: BYTES_MAX, chunkBytesMax, entriesMax: 20 }), chunks)
  expect(whole.entries.length).toBeLessThanOrEqual(20)
  expect(whole.end.entriesCount).toBeGreaterThanOrEqual(whole.entries.length)
  expect(whole.end.bytes).toBeLessThanOrEqual(BYTES_MAX)
  expect(whole.end.errors.length).toBeLessThanOrEqual(14)
  for (const { url } of whole.entries) expect(url).toMatch(/^https?:\/\/[\u0021-\u007E]+$/)
  for (const error of whole.end.errors) expect(error.length).toBeLessThan(1_000)
  return whole
}

/** What is read of a file does not depend on its pieces, but how much of it is read when it breaks does. */
const shape = ({ entries, end }: WholeSitemap): unknown => ({ entries, end: { ...end, bytes: 0 } })

test(`${documents.length} documents, mutated and cut anywhere, give what they give in one piece`, async () => {
  await withSeeds(seeds, async (random) => {
    const bytes = mutated(pick(random, documents), random)
    // What zlib gives of a broken stream before its fault depends on where it is cut.
    if (bytes[0] === 0x1f) return void await read(cut(bytes, random), random)
    expect(shape(await read(cut(bytes, random), random))).toEqual(shape(await read([bytes])))
  })
}, 600_000)

test('packed documents, cut anywhere, give what they give unpacked', async () => {
  await withSeeds(seeds / 5, async (random) => {
    const bytes = mutated(pick(random, made), random)
    const isPacked = random() < 0.5
    const packed = gzipSync(isPacked ? gzipSync(bytes) : bytes)
    expect(shape(await read(cut(packed, random), random, isPacked ? 'gzip' : undefined))).toEqual(shape(await read([bytes])))
  })
}, 600_000)

test('broken packed documents and bytes of chance never throw, whatever coding they claim', async () => {
  await withSeeds(seeds / 2, async (random) => {
    const noise = Uint8Array.from({ length: integer(random, 3_000) }, () => integer(random, 256))
    const bytes = random() < 0.5 ? noise : mutated(gzipSync(pick(random, documents)), random)
    await read(cut(bytes, random), random, pick(random, [undefined, 'gzip', 'br', 'deflate', 'gzip, br', 'compress']))
  })
}, 600_000)

test.each([
  ['less signs', '<'], ['open tags', '<a>'], ['tags that never end', '<a '], ['quotes that never close', '<a b="'], ['comments that never close', '<!--'], ['comments', '<!-- -->'],
  ['CDATA that nearly closes', '<![CDATA[]]'], ['references that never end', '&a'], ['references', '&amp;'], ['document types', '<!DOCTYPE a [<!-- -->'], ['instructions', '<?a'], ['blanks', ' '],
  ['attributes', 'a="b" '], ['elements', '<url><loc>/x</loc></url>'], ['empty elements', '<a/>'],
])('of %s the work is linear in the text and in the number of its pieces', (_, piece) => {
  const text = `<urlset>${piece.repeat(400_000 / piece.length)}`
  for (const length of [text.length, 10_000, 500]) {
    const scanner = new XmlScanner({ open() {}, close() {}, text() {}, doctype() {} })
    let pieces = 0
    for (let at = 0; at < text.length; at += length, pieces += 1) scanner.write(text.slice(at, at + length))
    expect(scanner.steps).toBeLessThanOrEqual(text.length + pieces * 16 * 1024)
  }
})

/** What is read of a sitemap: formats, dates, encodings, codings, and what is refused of them. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { dateMs } from '../../threads/sitemap/dates.ts'
import { SitemapReader, type ReaderOptions } from '../../threads/sitemap/reader.ts'
import type { SitemapHead } from '../../threads/sitemap/types.ts'
import { Unpacker } from '../../threads/sitemap/unpack.ts'
import { piecesOf, readSitemap, type WholeSitemap } from '../support/sitemaps.ts'
import { turn } from '../support/test-clock.ts'

const home = 'https://a.test/maps/sitemap.xml'

function read(source: string | Uint8Array, { head, isCut, ...options }: ReaderOptions & { head?: Partial<SitemapHead>; isCut?: boolean } = {}): Promise<WholeSitemap> {
  return readSitemap(new SitemapReader({ url: home, ...head }, options), [typeof source === 'string' ? Buffer.from(source) : source], isCut)
}

async function urlsOf(source: string | Uint8Array, options: Parameters<typeof read>[1] = {}): Promise<string[]> {
  return (await read(source, options)).entries.map(({ url }) => url)
}

const one = '<urlset><url><loc>http://a.test/1</loc></url></urlset>'

describe('an address', () => {
  test.each([
    ['of another scheme is refused', 'mailto:x@a.test', []], ['of a file is refused', 'file:///etc/passwd', []],
    ['that is relative is resolved against the sitemap', 'x?y', ['https://a.test/maps/x?y']],
    ['in lines and blanks is trimmed', '\n   http://a.test/1  \n', ['http://a.test/1']],
    ['with references has their characters, and with an & that begins none keeps it', 'http://a.test/?a&amp;b=&#x31;&c=2', ['http://a.test/?a&b=1&c=2']],
    ['with a reference to an entity loses it: nothing is expanded', 'http://a.test/&xxe;1', ['http://a.test/1']],
    ['of CDATA is taken as it is', '<![CDATA[http://a.test/?a&amp;b]]>', ['http://a.test/?a&amp;b']],
    ['around a comment is one', 'http://a.test/<!-- <loc> -->1', ['http://a.test/1']],
    ['of 2,048 characters is read', `http://a.test/${'x'.repeat(2_034)}`, [`http://a.test/${'x'.repeat(2_034)}`]],
    ['that is longer is refused', `http://a.test/${'x'.repeat(2_035)}`, []], ['of a megabyte is refused', 'x'.repeat(1_000_000), []],
    ['that is empty is none', ' ', []], ['with a password loses it', 'http://me:secret@a.test/', ['http://a.test/']],
  ])('%s', async (_, loc, urls) => {
    const { entries, end } = await read(`<urlset><url><loc>${loc}</loc></url><url><loc>http://a.test/last</loc></url></urlset>`)
    expect(entries.map(({ url }) => url)).toEqual([...urls, 'http://a.test/last'])
    expect(end.isCut).toBe(false)
    for (const error of end.errors) expect(error).not.toMatch(/secret|.{300}|\n/)
  })

  test('of an extension is not the address of its entry', async () => {
    expect(await urlsOf('<s:urlset><s:url><image:image><image:loc>http://a.test/i</image:loc></image:image><image:loc>http://a.test/j</image:loc><s:loc>http://a.test/1</s:loc></s:url></s:urlset>')).toEqual(['http://a.test/1'])
  })

  test('is relative to xml:base where a feed names one', async () => {
    expect(await urlsOf('<feed xml:base="/b/"><entry xml:base="c/"><link href="1"/></entry><entry><link href="2"/></entry></feed>')).toEqual(['https://a.test/b/c/1', 'https://a.test/b/2'])
  })

  test('outside the folder of its sitemap is refused where that is asked', async () => {
    const source = '<urlset><url><loc>https://a.test/maps/1</loc></url><url><loc>https://a.test/2</loc></url><url><loc>3</loc></url></urlset>'
    expect(await urlsOf(source, { strictLocation: true })).toEqual(['https://a.test/maps/1'])
  })
})

describe('an entry', () => {
  test('has its date and priority where they stand before its address too', async () => {
    const { entries } = await read('<urlset><url><lastmod> 2026-01-02 </lastmod><priority>0.5</priority><loc>http://a.test/1</loc></url></urlset>')
    expect(entries).toEqual([{ url: 'http://a.test/1', lastModifiedMs: Date.UTC(2026, 0, 2), lastModified: '2026-01-02', priority: 0.5 }])
  })

  test.each([['1.0', 1], ['0', 0], ['.5', 0.5], ['1.1', undefined], ['-0.1', undefined], ['high', undefined], ['', undefined], ['0,8', undefined], ['1e-1', undefined]])('with a priority of %j has %s', async (text, priority) => {
    expect((await read(`<urlset><url><loc>http://a.test/1</loc><priority>${text}</priority></url></urlset>`)).entries[0]!.priority).toBe(priority)
  })

  test('of an index is a sitemap', async () => {
    expect((await read('<sitemapindex><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>')).entries).toEqual([{ url: 'https://a.test/2.xml', isSitemap: true }])
  })

  test('beyond the limit is counted and not handed over', async () => {
    const { entries, end } = await read(`<urlset>${'<url><loc>/x</loc></url>'.repeat(10)}</urlset>`, { entriesMax: 7 })
    expect([entries.length, end.entriesCount, end.errors]).toEqual([7, 10, ['it has 10 entries, of which the first 7 count']])
  })
})

describe('a date', () => {
  const day = Date.UTC(2005, 0, 2)
  test.each([
    ['2005', Date.UTC(2005)], ['2005-02', Date.UTC(2005, 1)], ['2005-01-02', day], [' 2005-01-02T03:04Z ', day + 11_040_000], ['2005-01-02T03:04:05Z', day + 11_045_000],
    ['2005-01-02T03:04:05.25+01:30', day + 5_645_250], ['2005-01-02t00:00:00-08:00', day + 28_800_000], ['2005-01-02T23:59:60Z', day + 86_400_000], ['2005-01-02T03:04:05+0100', day + 7_445_000],
    ['Sun, 02 Jan 2005 03:04:05 GMT', day + 11_045_000], ['2 January 05 03:04 EST', day + 29_040_000], ['Sun, 02 Jan 70 00:00:00 +0000', Date.UTC(1970, 0, 2)], ['0001-01-01', -62_135_596_800_000],
  ])('%s is read', (text, ms) => {
    expect(dateMs(text)).toBe(ms)
  })

  test.each([
    '', 'now', '2005-13', '2005-02-30', '2005-1-2', '2005-01-02T03:04:05', '2005-01-02 03:04:05Z', '2005-01-02T24:00Z', '2005-01-02T03:60Z', '2005-01-02T03:04:05+25:00', '20050102',
    '02 Jan 2005 03:04:05', 'Sun, 32 Jan 2005 03:04:05 GMT', 'Sun, 02 Foo 2005 03:04:05 GMT', '02 Jan 2005 03:04:05 A', `2005${' '.repeat(100_000)}x`,
  ])('%s is none', (text) => {
    expect(dateMs(text)).toBeUndefined()
  })
})

describe('a file', () => {
  test.each([
    ['gzip by its first bytes alone', gzipSync(one), {}], ['gzip in gzip: the coding of the wire and its own', gzipSync(gzipSync(one)), { contentEncoding: 'gzip' }],
    ['brotli', brotliCompressSync(one), { contentEncoding: 'br' }], ['deflate', deflateSync(one), { contentEncoding: 'deflate' }], ['deflate without its header', deflateRawSync(one), { contentEncoding: 'deflate' }],
    ['two codings', brotliCompressSync(gzipSync(one)), { contentEncoding: 'gzip, br' }], ['three layers', gzipSync(brotliCompressSync(gzipSync(one))), { contentEncoding: 'br, gzip' }],
    ['two gzip members', Buffer.concat([gzipSync(one.slice(0, 20)), gzipSync(one.slice(20))]), {}], ['a type that is wrong', Buffer.from(one), { contentType: 'image/png' }],
  ] as const)('as %s is read, in one piece and byte by byte', async (_, bytes, head) => {
    for (const length of [bytes.byteLength, 1]) {
      const { entries, end } = await readSitemap(new SitemapReader({ url: home, ...head }), piecesOf(bytes, length))
      expect([entries.map(({ url }) => url), end.type, end.bytes, end.errors]).toEqual([['http://a.test/1'], 'urlset', one.length, []])
    }
  })

  const umlaut = '<urlset><url><loc>http://a.test/\u00fc</loc></url></urlset>'
  const utf16 = Buffer.from(umlaut, 'utf16le')
  test.each([
    ['a mark of UTF-8', Buffer.from(`\uFEFF${umlaut}`), {}], ['a mark of UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), {}], ['UTF-16 without a mark', utf16, {}],
    ['big-endian UTF-16', Buffer.from(utf16).swap16(), {}], ['a declaration', Buffer.from(`<?xml version="1.0" encoding="ISO-8859-1"?>${umlaut}`, 'latin1'), {}],
    ['a charset in its type, which counts more than a declaration', Buffer.from(`<?xml version="1.0" encoding="utf-8"?>${umlaut}`, 'latin1'), { contentType: 'text/xml; charset=windows-1252' }],
    ['a declaration of UTF-16 in ASCII', Buffer.from(`<?xml version="1.0" encoding="UTF-16"?>${umlaut}`), {}], ['an unknown charset', Buffer.from(umlaut), { contentType: 'text/xml; charset=klingon' }],
  ] as const)('with %s is read in its encoding, cut anywhere', async (_, bytes, head) => {
    for (const length of [bytes.byteLength, 1, 3]) {
      const { entries } = await readSitemap(new SitemapReader({ url: home, ...head }), piecesOf(bytes, length))
      expect(entries.map(({ url }) => url)).toEqual(['http://a.test/%C3%BC'])
    }
  })

  test.each([
    ['that is empty', '', {}, 'it is empty'], ['of blanks', ' \n ', {}, 'it is empty'], ['of HTML', '<!doctype html><html><body>Not here', {}, 'no sitemap: its root element is "html"'],
    ['of JSON', '{"urls": []}', {}, 'a line is not an http or https address: "{\\"urls\\": []}"', 'neither XML nor a list of addresses'], ['of other XML', '<svg/>', {}, 'no sitemap: its root element is "svg"'],
    ['of junk', 'a\u0000b', {}, 'a line is not an http or https address: "a\\u0000b"', 'neither XML nor a list of addresses'],
    ['of a coding that it does not have', one, { head: { contentEncoding: 'gzip' } }, 'broken gzip: incorrect header check'],
    ['of an unknown coding', one, { head: { contentEncoding: 'compress' } }, 'its Content-Encoding cannot be undone'],
    ['nested too deeply', '<a>'.repeat(300).replace('<a>', '<urlset>'), {}, 'elements are nested too deeply'],
    ['with a tag of 20,000 characters', `<urlset><url a="${'x'.repeat(20_000)}">`, {}, 'not well formed: a tag or document type is too long'],
    ['with a < in a tag', '<urlset><url a="<"><loc>http://a.test/</loc></url></urlset>', {}, 'not well formed: there is a < in a tag'],
    ['of lines of which the first is none', 'Addresses:\nhttp://a.test/1\nhttp://a.test/2', {}, 'a line is not an http or https address: "Addresses:"', 'neither XML nor a list of addresses'],
    ['with a second root', '<urlset/><urlset/>', {}, 'not well formed: <urlset> follows the root element'],
    ['with a document type, where that is refused', `<!DOCTYPE urlset [<!ENTITY a "b">]>${one}`, { refuseDoctype: true }, 'it has a document type, which is refused'],
  ] as const)('%s has no entries, and says why', async (_, source, options, ...errors) => {
    const { entries, end } = await read(source, options)
    expect([entries, end.errors]).toEqual([[], errors])
  })

  test('whose body is cut keeps what was whole: entries with an address, and lines with their end', async () => {
    const cutXml = await read('<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://a.test/2</loc><lastm', { isCut: true })
    expect([cutXml.entries.map(({ url }) => url), cutXml.end.isCut, cutXml.end.errors]).toEqual([['http://a.test/1', 'http://a.test/2'], true, ['it ends too early']])
    const cutList = await read('http://a.test/1\nhttp://a.test/2', { isCut: true })
    expect([cutList.entries.map(({ url }) => url), cutList.end.isCut]).toEqual([['http://a.test/1'], true])
    const cutStored = await read(gzipSync('http://a.test/1\nhttp://a.test/2\n', { level: 0 }).subarray(0, -12), { isCut: true })
    expect([cutStored.entries.map(({ url }) => url), cutStored.end.isCut]).toEqual([['http://a.test/1'], true])
    const cutGzip = await read(gzipSync(`<urlset>${'<url><loc>http://a.test/1</loc></url>'.repeat(2_000)}</urlset>`).subarray(0, -30), { isCut: true })
    expect(cutGzip.entries.length).toBeGreaterThan(0)
    expect([cutGzip.end.type, cutGzip.end.isCut]).toEqual(['urlset', true])
  })

  test('whose entries no longer match keeps those before', async () => {
    const { entries, end } = await read('<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://a.test/2</loc></urlset>')
    expect([entries.map(({ url }) => url), end.type, end.errors]).toEqual([['http://a.test/1'], 'urlset', ['not well formed: </urlset> stands where </url> should']])
  })

  test('is read no further when it is known to be none: whoever fetches it is told', async () => {
    const reader = new SitemapReader({ url: home })
    expect(await reader.push(Buffer.from('<html>'))).toEqual({ entries: [], hasMore: false, isDone: true })
    expect(await reader.push(Buffer.from(one))).toEqual({ entries: [], hasMore: false, isDone: true })
    expect((await reader.end(false)).errors).toHaveLength(1)
  })

  test('with a document type of entities that grow a billionfold costs nothing: they stand for nothing', async () => {
    const entities = Array.from({ length: 9 }, (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`).join('')
    expect(await urlsOf(`<!DOCTYPE urlset [<!-- ]> ' --><!ENTITY l0 "lol]>">${entities}]><urlset><url><loc>http://a.test/&l9;1</loc></url></urlset>`)).toEqual(['http://a.test/1'])
  })

  test('has a bounded number of errors, each a line', async () => {
    const { end } = await read(`<urlset>${'<url><loc>mailto:\n\u2028x</loc></url>'.repeat(10_000)}</urlset>`)
    expect(end.errors).toHaveLength(11)
    expect(end.errors.at(-1)).toBe('and more like these')
  })
})

describe('a bomb', () => {
  const bytesMax = 2_000_000
  const xml = Buffer.concat([Buffer.from('<urlset><url><loc>http://a.test/1</loc></url>'), Buffer.alloc(64_000_000, ' ')])
  test.each([
    ['gzip', gzipSync(xml), 'gzip'], ['gzip of a file', gzipSync(xml), ''], ['brotli', brotliCompressSync(xml.subarray(0, 8_000_000)), 'br'],
    ['gzip in gzip in gzip', gzipSync(gzipSync(gzipSync(xml))), 'gzip, gzip'],
  ])('of %s is unpacked in bounded parts, and to the limit', async (_, bytes, contentEncoding) => {
    const reader = new SitemapReader({ url: home, contentEncoding }, { bytesMax, chunkBytesMax: 100_000 })
    const before = process.memoryUsage().arrayBuffers
    let [parts, most] = [0, 0]
    for (let part = await reader.push(bytes); part.hasMore; part = await reader.more()) {
      parts += 1
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    const end = await reader.end(false)
    expect([parts >= bytesMax / 100_000 - 1, end.bytes, end.isCut, end.entriesCount]).toEqual([true, bytesMax, true, 1])
    expect(most).toBeLessThan(16_000_000)
  })
})

test('what nobody reads is not unpacked: a bomb waits in its packed form', async () => {
  const bomb = gzipSync(Buffer.alloc(64_000_000, ' '))
  const before = process.memoryUsage().arrayBuffers
  const unpacker = new Unpacker('gzip')
  unpacker.write(bomb)
  expect((await unpacker.read(1_000))?.byteLength).toBe(1_000)
  let most = 0
  for (let turns = 0; turns < 5_000; turns += 1) {
    await turn()
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  unpacker.destroy()
  expect(most).toBeLessThan(2_000_000)
})

test('the limits of a sitemap are the protocol\'s', () => {
  expect([limits.sitemapEntriesMax, limits.sitemapBytesMax, limits.sitemapLocCharsMax]).toEqual([50_000, 50 * 1024 * 1024, 2_048])
})

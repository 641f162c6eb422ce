/** Encodings against the corpus: every mapped pair, every declared case, labels, headers, and html5lib's own tests. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { charsetOf, charsetParameter, decodeText, transcode, type Charset } from '../../threads/html/charset.ts'
import { decode, encodeQuery, encodingOfLabel } from '../../threads/html/encodings.ts'
import { corpusPath } from '../support/corpus.ts'

const charsetDir = corpusPath('charset')
const html5libDir = corpusPath('html5lib-tests/encoding')
const noCorpus = !existsSync(charsetDir) || !existsSync(html5libDir)
const reason = 'the corpus is not beside the checkout'

const read = (name: string): Buffer => readFileSync(corpusPath(`charset/${name}`))
const json = <T>(name: string): T => JSON.parse(read(name).toString()) as T
const charset = (bytes: Uint8Array, contentType?: string | null): Charset => charsetOf(bytes, { contentType: contentType ?? undefined, isHtml: true, isCut: false })
const isAscii = (bytes: Uint8Array): boolean => bytes.every((byte) => byte < 0x80)

interface Case {
  readonly name: string
  readonly file?: string
  readonly data_base64?: string
  readonly content_type: string | null
  readonly expected_encoding: string | null
  readonly expected_title?: string
  readonly expected_text?: string
  readonly expected_decoded?: string
  readonly expected_contains?: string
  readonly kind?: string
}

describe.skipIf(noCorpus)(`charset corpus${noCorpus ? ` (${reason})` : ''}`, () => {
  const indexes: readonly (readonly [string, string])[] = [
    ['big5', 'big5'], ['euc_kr', 'euc-kr'], ['gb18030', 'gb18030'], ['gb18030', 'gbk'], ['iso_2022_jp', 'iso-2022-jp'],
    ['jis0208', 'euc-jp'], ['jis0212', 'euc-jp'], ['shift_jis', 'shift_jis'],
  ]

  it.each(indexes)('every mapped pair of %s decodes to its character as %s, in shared memory too', (file, encoding) => {
    const bytes = gunzipSync(read(`full-index/${file}_in.txt.gz`))
    const expected = gunzipSync(read(`full-index/${file}_in_ref.txt.gz`)).toString()
    expect(decode(bytes, encoding) === expected).toBe(true)
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length + 1)).subarray(1)
    shared.set(bytes)
    expect(decode(shared, encoding) === expected).toBe(true)
  })

  /** What Shift_JIS reads as private use it does not write. */
  const isPrivate = (character: string): boolean => character >= '\uE000' && character <= '\uF8FF'

  it.each(indexes)('every character of %s that a query can hold in %s comes back from its bytes', (file, encoding) => {
    const text = gunzipSync(read(`full-index/${file}_in_ref.txt.gz`)).toString()
    const characters = [...new Set(text)].filter((character) => character > '\x7f' && !isPrivate(character))
    let held = 0
    for (const character of characters) {
      const written = encodeQuery(`?${character}`, encoding).slice(1)
      if (/^%26%23\d+%3B$/.test(written)) {
        expect(written).toBe(`%26%23${character.codePointAt(0)}%3B`)
        continue
      }
      held += 1
      const bytes = Buffer.from(written.replaceAll(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))), 'latin1')
      expect(decode(bytes, encoding)).toBe(character)
    }
    // JIS X 0212 is read and never written, and neither are Big5's Hong Kong characters.
    expect(held / characters.length).toBeGreaterThan(file === 'jis0212' ? 0 : file === 'big5' ? 0.6 : 0.99)
  })

  it('each of the 228 labels names its encoding', () => {
    const labels = Object.entries(json<Record<string, string>>('labels.json'))
    expect(labels).toHaveLength(228)
    for (const [label, name] of labels) expect([label, encodingOfLabel(`\t${label.toUpperCase()}\f `)]).toEqual([label, name.toLowerCase()])
  })

  /** The MIME Sniffing Standard reads a quoted string that has no end, and skips what follows one that has. */
  const readByMime = new Set(['text/html; charset="utf-8', 'text/html; charset="utf-8"x'])

  it('each header names the charset that it is said to, or the one that the MIME standard finds', () => {
    const cases = json<{ readonly header: string; readonly charset: string | null }[]>('header-cases.json')
    for (const { header, charset: expected } of cases) {
      const label = charsetParameter(header)
      const found = label === undefined ? null : (encodingOfLabel(label) ?? null)
      expect([header, found]).toEqual([header, readByMime.has(header) ? 'utf-8' : expected])
    }
    expect(cases.filter(({ header }) => readByMime.has(header))).toHaveLength(2)
  })

  const cases = noCorpus ? [] : json<Case[]>('cases.json')
  const bodyOf = (given: Case): Buffer => (given.file === undefined ? Buffer.from(given.data_base64!, 'base64') : read(given.file))
  /** An undeclared text of ASCII alone is the same in both; we say UTF-8, and the tests say the locale's windows-1252. */
  const isGuessOfAscii = (bytes: Uint8Array, found: Charset): boolean => found.from === 'guess' && isAscii(bytes)

  it.each(cases.filter(({ kind, expected_encoding }) => kind === undefined && expected_encoding !== null).map((given) => [given.name, given] as const))('%s', (_, given) => {
    const bytes = bodyOf(given)
    const found = charset(bytes, given.content_type)
    if (isGuessOfAscii(bytes, found)) expect(['UTF-8', 'windows-1252']).toContain(given.expected_encoding)
    else expect(found.name).toBe(given.expected_encoding!.toLowerCase())
    const text = decodeText(bytes, found)
    if (given.expected_title !== undefined) expect(/<title>(.*?)<\/title>/s.exec(text)![1]).toBe(given.expected_title)
    if (given.expected_text !== undefined) expect(text).toContain(given.expected_text)
    if (given.expected_contains !== undefined) expect(text).toContain(given.expected_contains)
    if (given.expected_decoded !== undefined) expect(text).toBe(given.expected_decoded)
    const scanned = transcode(bytes, found)
    expect(Buffer.from(scanned).toString('latin1').includes('</title>')).toBe(text.includes('</title>'))
  })

  it('what is not declared is UTF-8 where it can be', () => {
    expect(charset(read('made/no-declaration-utf8.html'))).toEqual({ name: 'utf-8', from: 'guess', bomBytes: 0 })
    expect(charset(read('detect/utf8.txt'))).toEqual({ name: 'utf-8', from: 'guess', bomBytes: 0 })
  })

  it('an undeclared text in an East Asian encoding is recognised, and one in an encoding of one byte is not taken for one', () => {
    const eastAsian = new Set(['Big5', 'EUC-JP', 'EUC-KR', 'GBK', 'gb18030', 'ISO-2022-JP', 'Shift_JIS'])
    const texts = cases.filter(({ kind, expected_encoding }) => kind === 'detection only' && !expected_encoding!.startsWith('UTF'))
    expect(texts).toHaveLength(19)
    for (const given of texts) {
      const expected = given.expected_encoding!
      // GBK is read as its larger sister is.
      const name = eastAsian.has(expected) ? expected.toLowerCase().replace('gb18030', 'gbk') : 'windows-1252'
      expect([given.name, charset(bodyOf(given)).name]).toEqual([given.name, name])
    }
    const found = cases.filter(({ file, expected_encoding }) => file?.startsWith('made/') && expected_encoding !== null).flatMap((given) => {
      const bytes = bodyOf(given)
      const name = charsetOf(bytes, { isHtml: false, isCut: false }).name
      return ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'].includes(name) ? [] : [[given.expected_encoding!.toLowerCase().replace('gb18030', 'gbk'), name] as const]
    })
    for (const [expected, name] of found) expect(name).toBe(expected)
    expect(found.length).toBeGreaterThan(30)
  })

  /** `#data` blocks with `#encoding` answers; the data may hold any bytes. */
  function html5lib(file: string): (readonly [string, Buffer, string])[] {
    const text = readFileSync(`${html5libDir}/${file}`).toString('latin1')
    return text.split(/(?:^|\n)#data\n/).slice(1).map((block, index) => {
      const [data, encoding] = block.split('\n#encoding\n') as [string, string]
      return [`${file} ${index + 1}`, Buffer.from(data, 'latin1'), encoding.trim().toLowerCase()] as const
    })
  }

  it.each((noCorpus ? [] : readdirSync(html5libDir).filter((name) => name.endsWith('.dat'))).flatMap(html5lib))('html5lib %s', (_, bytes, expected) => {
    const found = charset(bytes)
    if (isGuessOfAscii(bytes, found)) expect(['utf-8', 'windows-1252']).toContain(expected)
    else expect(found.name).toBe(encodingOfLabel(expected))
  })
})

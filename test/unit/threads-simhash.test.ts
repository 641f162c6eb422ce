import fc from 'fast-check'
import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { FEATURES_MAX, FEATURES_MIN, SimHasher } from '../../threads/html/simhash.ts'
import { recordOfLine } from '../../engine/record-line.ts'
import { recordLine } from '../../threads/page-record.ts'
import { corpusPath } from '../support/corpus.ts'
import { metaOf } from '../support/pool-rig.ts'
import { integer, seededRandom, withSeeds } from '../support/random.ts'

const hasher = new SimHasher()

function hashOf(text: string | Uint8Array): Uint8Array | undefined {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  return hasher.hash(bytes, Int32Array.of(0, bytes.byteLength), 1)
}

function distance(one: Uint8Array | undefined, other: Uint8Array | undefined): number {
  const bits = (hash: Uint8Array | undefined): bigint => BigInt(`0x${Buffer.from(hash!).toString('hex')}`)
  return (bits(one) ^ bits(other)).toString(2).replaceAll('0', '').length
}

/** MurmurHash3's finalizer on BigInt, apart from the code that is tested. */
function mixed(hash: bigint): bigint {
  const [mask, first] = [0xffff_ffffn, hash ^ (hash >> 16n)]
  const second = (first * 0x85eb_ca6bn) & mask
  const third = ((second ^ (second >> 13n)) * 0xc2b2_ae35n) & mask
  return third ^ (third >> 16n)
}

/** The published way: a counter for each bit, raised or lowered by the weight of each feature. */
function naiveHash(bytes: Uint8Array, spans: readonly number[]): string | undefined {
  const occurrences = new Map<string, number>()
  for (let index = 0; index < spans.length; index += 2) {
    const text = Buffer.from(bytes.subarray(spans[index], spans[index + 1])).toString('latin1').replaceAll(/&[#0-9A-Za-z]*/g, ' ')
    const words = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()).replaceAll(/[\u00e3-\u00e9]/g, ' $&').match(/[a-z0-9\u0080-\u00ff]+/g) ?? []
    for (const word of words) {
      if (/^\d/.test(word) || (!occurrences.has(word) && occurrences.size === FEATURES_MAX)) continue
      occurrences.set(word, (occurrences.get(word) ?? 0) + 1)
    }
  }
  if (occurrences.size < FEATURES_MIN) return undefined
  const counters = Array.from({ length: 64 }, () => 0)
  for (const [word, times] of occurrences) {
    let hash = 0x811c_9dc5n
    for (const byte of Buffer.from(word, 'latin1')) hash = ((hash ^ BigInt(byte)) * 0x0100_0193n) & 0xffff_ffffn
    const bits = (mixed(hash ^ 0x5bd1_e995n) << 32n) | mixed(hash)
    counters.forEach((count, bit) => { counters[bit] = count + ((bits >> BigInt(bit)) & 1n ? 1 : -1) * (1 + Math.floor(Math.log2(times))) })
  }
  return counters.reduce((hash, count, bit) => (count > 0 ? hash | (1n << BigInt(bit)) : hash), 0n).toString(16).padStart(16, '0')
}

function hex(hash: Uint8Array | undefined): string | undefined {
  return hash && Buffer.from(hash).toString('hex')
}

/** So many different words, the same for the same number. */
function words(count: number, seed = 1): string[] {
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, index) => `w${integer(random, 2 ** 30).toString(36)}x${index}`)
}

describe('a SimHash', () => {
  it('equals the published construction with a counter for each bit, over any bytes in any spans', async () => {
    await withSeeds(30, (random) => {
      const vocabulary = 40 + integer(random, 400)
      const bytes = Buffer.alloc(integer(random, 30_000))
      // Words of few letters, so that they come again; now and then any byte, a name of a character, or a number.
      let at = 0
      while (at < bytes.length) {
        const kind = integer(random, 20)
        const others = [String.fromCodePoint(integer(random, 256)), '&amp;', `${integer(random, 999)} `]
        const piece = others[kind] ?? `Wo${(integer(random, vocabulary) ** 2 % vocabulary).toString(36)}${String.fromCodePoint(0xe1 + integer(random, 10))} `
        at += bytes.write(piece, at, 'latin1') || 1
      }
      const cuts = Array.from({ length: 2 * integer(random, 20) }, () => integer(random, bytes.length + 1)).sort((a, b) => a - b)
      const spans = [...cuts, Math.min(bytes.length, cuts.at(-1) ?? 0), bytes.length]
      expect(hex(hasher.hash(bytes, Int32Array.from([...spans, 0, bytes.length]), spans.length / 2))).toBe(naiveHash(bytes, spans))
    })
  })

  it('equals it with more words than are read, and with a word that comes very often', () => {
    const many = Buffer.from(words(FEATURES_MAX + 500).join(' '))
    expect(hex(hashOf(many))).toBe(naiveHash(many, [0, many.length]))
    // What was not read left nothing behind.
    const rest = Buffer.from(words(FEATURES_MAX + 500).slice(FEATURES_MAX).join(' '))
    expect(hex(hashOf(rest))).toBe(naiveHash(rest, [0, rest.length]))
    const often = Buffer.from(`${'again '.repeat(100_000)}${words(100).join(' ')}`)
    expect(hex(hashOf(often))).toBe(naiveHash(often, [0, often.length]))
  })

  it('is what it was when it was first stored', () => {
    expect(hex(hashOf(Array.from({ length: 100 }, (_, index) => `word${index}`).join(' ')))).toMatchInlineSnapshot(`"b4c6c01f65f1a280"`)
  })

  it('is the same wherever its words lie in the table, and whatever was hashed before', () => {
    fc.assert(fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(), (first, seed) => {
      const other = new SimHasher(() => first)
      const text = Buffer.from(words(200, seed).join(' '))
      const span = Int32Array.of(0, text.length)
      other.hash(Buffer.from(words(30, seed + 1).join(' ')), Int32Array.of(0, 200), 1)
      other.hash(Buffer.from(words(300, seed + 2).join(' ')), Int32Array.of(0, 900), 1)
      expect(hex(other.hash(text, span, 1))).toBe(hex(hashOf(text)))
    }), { numRuns: 30 })
  })

  it('is given to a text of 64 different words and to none of 63, however often they come', () => {
    const few = words(FEATURES_MIN - 1)
    expect(hashOf(few.join(' '))).toBeUndefined()
    expect(hashOf([...few, ...few, ...few].join(' '))).toBeUndefined()
    expect(hashOf([...few, 'another'].join(' '))).toHaveLength(8)
    expect(hashOf('')).toBeUndefined()
    expect(hasher.hash(new Uint8Array(0), new Int32Array(0), 0)).toBeUndefined()
  })

  it('does not change with the order of words, their case, punctuation, white space and numbers', () => {
    const list = words(120)
    const hash = hashOf(list.join(' '))
    expect(hashOf(list.toReversed().join(',\n'))).toEqual(hash)
    expect(hashOf(`${list.join(' ').toUpperCase()}!`)).toEqual(hash)
    expect(hashOf(`2024-05-12 17:05 ${list.join('&nbsp;&#160; 99 ')} 1,234`)).toEqual(hash)
  })

  it('takes a text without spaces by its characters: one changed sign of Chinese is one changed word', () => {
    const signs = Array.from({ length: 300 }, (_, index) => String.fromCodePoint(0x4e00 + index * 37))
    const changed = signs.with(150, '\u9fa0')
    expect(hashOf(signs.join(''))).toEqual(hashOf(signs.join(' ')))
    expect(distance(hashOf(signs.join('')), hashOf(changed.join('')))).toBeLessThanOrEqual(6)
    expect(hashOf(changed.join(''))).not.toEqual(hashOf(signs.join('')))
  })

  it('stays near when little of a text changes, and goes far when it is another text', () => {
    const list = words(1_000)
    const near = list.map((word, index) => (index % 500 === 0 ? `other${word}` : word))
    expect(distance(hashOf(list.join(' ')), hashOf(near.join(' ')))).toBeLessThanOrEqual(3)
    expect(distance(hashOf(list.join(' ')), hashOf(words(1_000, 2).join(' ')))).toBeGreaterThan(12)
  })
})

it('stands in the record of its page in 16 hexadecimal digits, the leading zeros too', () => {
  const line = recordLine({
    meta: metaOf('http://a.test/'), result: { outcome: 'ok' }, facts: { truncated: false, simhash: Uint8Array.of(0, 10, 255, 0, 0, 0, 0, 1) },
    wireBytes: 1, parseMs: 0, warc: undefined,
  })
  expect(recordOfLine(line).simhash).toBe('000aff0000000001')
})

const index = corpusPath('pages/index.json')

it.skipIf(!existsSync(index))('no two of the corpus pages are near each other, and one with its numbers changed is near itself (skipped where the corpus is missing)', () => {
  const pages = JSON.parse(readFileSync(index, 'utf8')) as readonly { readonly file: string }[]
  const hashes: Uint8Array[] = []
  for (const { file } of pages) {
    const text = brotliDecompressSync(readFileSync(corpusPath(`pages/${file}`))).toString('latin1')
      .replaceAll(/<!--[^]*?-->|<(script|style|noscript|template|textarea|title)\b[^]*?(?:<\/\1[^>]*>|$)|<[^>]*>/gi, ' ')
    const hash = hashOf(Buffer.from(text, 'latin1'))
    if (hash === undefined) continue
    hashes.push(hash)
    expect(hashOf(Buffer.from(text.replaceAll(/(?<![\w\u0080-\u00ff])\d+/g, (number) => String(Number(number) + 1)), 'latin1'))).toEqual(hash)
  }
  expect(hashes.length).toBeGreaterThan(pages.length * 0.8)
  const near = hashes.flatMap((hash, at) => hashes.slice(at + 1).filter((other) => distance(hash, other) <= 3))
  expect(near).toEqual([])
}, 120_000)

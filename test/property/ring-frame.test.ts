import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { refusalReasons, type LinkList, type ParsedResult, type RefusalReason } from '../../engine/core/types.ts'
import { decodeFrame, encodeFrame, frameBytes } from '../../threads/frame.ts'

interface Link { readonly url: string; readonly fingerprint: Uint8Array; readonly hostHash: Uint8Array; readonly isRedirect: boolean }

function listOf(links: readonly Link[]): LinkList {
  return {
    count: links.length,
    fingerprint: (index) => links[index]!.fingerprint,
    hostHash: (index) => links[index]!.hostHash,
    url: (index) => links[index]!.url,
    isRedirect: (index) => links[index]!.isRedirect,
  }
}

function linksOf(list: LinkList): Link[] {
  return Array.from({ length: list.count }, (_, index) => ({
    url: list.url(index), fingerprint: new Uint8Array(list.fingerprint(index)),
    hostHash: new Uint8Array(list.hostHash(index)), isRedirect: list.isRedirect(index),
  }))
}

const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length })
const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const link: fc.Arbitrary<Link> = fc.record({
  url: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }), fingerprint: bytes(16), hostHash: bytes(8), isRedirect: fc.boolean(),
})
const parts = fc.record({
  outcome: fc.constantFrom('ok' as const, 'redirect' as const, 'http_error' as const, 'failed' as const),
  code: fc.option(fc.string({ maxLength: 30 }), { nil: undefined }),
  bodyBytes: u32,
  linksKnown: u32,
  contentHash: fc.option(bytes(16), { nil: undefined }),
  simhash: fc.option(bytes(8), { nil: undefined }),
  links: fc.array(link, { maxLength: 20 }),
  refused: fc.tuple(...refusalReasons.map(() => u32)),
  line: fc.uint8Array({ maxLength: 300 }),
  warc: fc.option(fc.record({ file: u32, offset: fc.nat(Number.MAX_SAFE_INTEGER), length: u32, payloadDigest: bytes(20).map((digest) => Buffer.from(digest)) }, { requiredKeys: ['file', 'offset', 'length'] }), { nil: undefined }),
})

type Parts = typeof parts extends fc.Arbitrary<infer T> ? T : never

function resultOf(given: Parts): ParsedResult {
  const { code, contentHash, simhash, warc, links, refused, ...rest } = given
  return {
    ...rest, links: listOf(links),
    refused: Object.fromEntries(refusalReasons.map((reason, index) => [reason, refused[index]!])) as Record<RefusalReason, number>,
    ...(code !== undefined && { code }), ...(contentHash !== undefined && { contentHash }),
    ...(simhash !== undefined && { simhash }), ...(warc !== undefined && { warc }),
  }
}

function encode(result: ParsedResult): Uint8Array {
  const target = new Uint8Array(new SharedArrayBuffer(frameBytes(result) + 7)).subarray(7)
  expect(encodeFrame(result, target)).toBe(target.byteLength)
  return target
}

describe('frame', () => {
  it('gives back what was put in, from memory that is written again afterwards', () => {
    fc.assert(fc.property(parts, (given) => {
      const result = resultOf(given)
      const frame = encode(result)
      const decoded = decodeFrame(frame)
      frame.fill(0xaa)
      if (!decoded.ok) throw new Error(decoded.damage)
      const { links, line, contentHash, simhash, ...rest } = decoded.result
      const { links: _links, line: _line, contentHash: _hash, simhash: _simhash, ...expected } = result
      expect(rest).toEqual(expected)
      expect(linksOf(links)).toEqual(given.links)
      expect(new Uint8Array(line)).toEqual(new Uint8Array(given.line))
      expect(contentHash && new Uint8Array(contentHash)).toEqual(given.contentHash)
      expect(simhash && new Uint8Array(simhash)).toEqual(given.simhash)
    }))
  })

  it('is refused when it is cut or longer than it says, wherever that is', () => {
    fc.assert(fc.property(parts, fc.nat(), fc.boolean(), (given, at, isLonger) => {
      const frame = encode(resultOf(given))
      const other = isLonger ? Uint8Array.of(...frame, 0) : frame.slice(0, at % frame.byteLength)
      expect(decodeFrame(other).ok).toBe(false)
    }))
  })

  it('with any bytes changed is refused, or is read without leaving its bounds', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 })
    fc.assert(fc.property(parts, changes, (given, list) => {
      const frame = new Uint8Array(encode(resultOf(given)))
      for (const [at, value] of list) frame[at % frame.byteLength] = value
      const decoded = decodeFrame(frame)
      if (!decoded.ok) return
      const links = linksOf(decoded.result.links)
      expect(links.every((one) => one.fingerprint.byteLength === 16 && one.hostHash.byteLength === 8)).toBe(true)
      const used = decoded.result.line.byteLength + links.length * 27
      expect(used).toBeLessThanOrEqual(frame.byteLength)
    }), { numRuns: 500 })
  })

  it('with another length of a link is refused', () => {
    fc.assert(fc.property(parts, fc.integer({ min: 1, max: 2 ** 16 - 1 }), (given, length) => {
      const last = { url: 'http://a.example/', fingerprint: new Uint8Array(16), hostHash: new Uint8Array(8), isRedirect: false }
      const frame = new Uint8Array(encode(resultOf({ ...given, links: [...given.links, last] })))
      const lengthAt = frame.byteLength - last.url.length - 2
      const changed = (last.url.length + length) % 2 ** 16
      frame.set([changed & 255, changed >> 8], lengthAt)
      expect(decodeFrame(frame).ok).toBe(false)
    }))
  })

  it('of random bytes is refused', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
      expect(decodeFrame(noise).ok).toBe(false)
    }))
  })

  it('makes no link beyond its last', () => {
    const decoded = decodeFrame(encode(resultOf({ outcome: 'ok', code: undefined, linksKnown: 0, bodyBytes: 0, contentHash: undefined, simhash: undefined, links: [], refused: refusalReasons.map(() => 0) as Parts['refused'], line: new Uint8Array(0), warc: undefined })))
    if (!decoded.ok) throw new Error(decoded.damage)
    const { links } = decoded.result
    expect(() => links.url(0)).toThrow(RangeError)
  })
})

import fc from 'fast-check'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import zlib from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { openSeeds, readSeeds } from '../../engine/cli/seeds.ts'
import { limits } from '../../engine/core/limits.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-seeds-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

const never = new AbortController().signal

async function seedsOf(chunks: Iterable<Uint8Array>, urls: readonly string[] = []): Promise<string[]> {
  const seeds: string[] = []
  for await (const seed of readSeeds(urls, { stream: Readable.from(chunks), name: 'seeds.txt' }, never)) seeds.push(seed)
  return seeds
}

/** The bytes in pieces, cut at the given places. */
function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...cuts, bytes.length].map((end, index) => bytes.subarray(cuts[index - 1] ?? 0, end))
}

describe('seeds', () => {
  it('are the lines of the text without blanks and comments, however the bytes are cut, gzip or not', async () => {
    const line = fc.oneof(fc.constant(''), fc.constant('  '), fc.constant('# a comment'), fc.constant(' https://ä.example/ü '), fc.webUrl(), fc.string())
    await fc.assert(fc.asyncProperty(fc.array(line), fc.constantFrom('\n', '\r\n'), fc.array(fc.nat()), fc.boolean(), async (lines, end, places, isGzip) => {
      const text = lines.map((each) => each.replaceAll(/[\r\n]/g, '')).join(end)
      const expected = text.split('\n').map((each) => each.trim()).filter((each) => each !== '' && !each.startsWith('#'))
      // A byte order mark would be swallowed, as it should.
      fc.pre(!text.startsWith('\uFEFF'))
      const bytes = isGzip ? zlib.gzipSync(text) : Buffer.from(text)
      expect(await seedsOf(cutAt(bytes, places))).toEqual(expected)
    }))
  })

  it('of the command line come before those of the file', async () => {
    expect(await seedsOf([Buffer.from('http://c/\n')], ['http://a/', 'http://b/'])).toEqual(['http://a/', 'http://b/', 'http://c/'])
  })

  it('are read from gzip files of several members', async () => {
    expect(await seedsOf([zlib.gzipSync('http://a/\n'), zlib.gzipSync('http://b/\n')])).toEqual(['http://a/', 'http://b/'])
  })

  it('are pulled: a reader that has taken one of 100,000 lines has caused no more than a few chunks to be read', async () => {
    let chunksRead = 0
    function* chunks(): Generator<Uint8Array> {
      for (let chunk = 0; chunk < 1_000; chunk++) {
        chunksRead++
        yield Buffer.from(Array.from({ length: 100 }, (_, index) => `https://host-${chunk}-${index}.example/\n`).join(''))
      }
    }
    let seen = 0
    for await (const seed of readSeeds([], { stream: Readable.from(chunks()), name: 'seeds' }, never)) {
      seen++
      // Readable.from holds up to 16 objects ahead.
      if (seen === 1) expect(chunksRead).toBeLessThan(25)
      if (seen === 100_000) expect(seed).toBe('https://host-999-99.example/')
    }
    expect(seen).toBe(100_000)
  })

  it('of a gzip file that inflates a thousandfold are pulled too', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(50_000_000, 'http://a/\n'))
    const before = process.memoryUsage()
    let seen = 0
    for await (const seed of readSeeds([], { stream: Readable.from([bomb]), name: 'bomb' }, never)) {
      if (seed !== 'http://a/') throw new Error(`a line that was not there: ${seed}`)
      if (++seen === 1_000_000) break
    }
    const after = process.memoryUsage()
    expect(after.arrayBuffers + after.external - before.arrayBuffers - before.external).toBeLessThan(20_000_000)
  })

  it('that are far too long for a URL are cut where that is certain, and the next line is whole', async () => {
    const seeds = await seedsOf([...Array.from({ length: 50 }, () => Buffer.alloc(100_000, 'x')), Buffer.from('\nhttp://b/\n')])
    expect(seeds.map((seed) => seed.length)).toEqual([limits.urlBytesMax + 1, 9])
  })

  it('that are too long behind white space stay too long', async () => {
    const seeds = await seedsOf([Buffer.from(' \t'), Buffer.from(`  http://a/${'x'.repeat(9_000)}\n`)])
    expect(seeds.map((seed) => seed.length)).toEqual([limits.urlBytesMax + 1])
  })

  it.each([
    ['a gzip stream that breaks off', () => [zlib.gzipSync('http://a/\nhttp://b/\n').subarray(0, 20)]],
    ['a gzip header and then noise', () => [Buffer.from([0x1F, 0x8B, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])]],
  ])('from %s end with seeds_unreadable and the name of the file', async (_, chunks) => {
    await expect(seedsOf(chunks())).rejects.toMatchObject({ code: 'seeds_unreadable', message: expect.stringContaining('seeds.txt') })
  })

  it('end without an error when the reading is aborted, also while it waits for input', async () => {
    const stopping = new AbortController()
    const stream = new Readable({ read() {} })
    stream.push('http://a/\nhttp://b/\n')
    const seeds: string[] = []
    for await (const seed of readSeeds([], { stream, name: '-' }, stopping.signal)) {
      seeds.push(seed)
      // The next read would wait for ever: nothing more is pushed.
      if (seeds.length === 2) stopping.abort()
    }
    expect(seeds).toEqual(['http://a/', 'http://b/'])
    expect(stream.destroyed).toBe(true)
  })
})

describe('a seed file', () => {
  it('can be read again, and standard input cannot', () => {
    const file = path.join(dir, 'seeds.txt')
    fs.writeFileSync(file, 'http://a/\n')
    const opened = openSeeds(file)
    fs.closeSync(opened.fd)
    expect(opened.canReread).toBe(true)
    expect(openSeeds('-')).toEqual({ fd: 0, canReread: false })
  })

  it.each([['that is not there', path.join(dir, 'nowhere')], ['that is a directory', dir]])('%s is refused with its name', (_, file) => {
    expect(() => openSeeds(file)).toThrow(expect.objectContaining({ code: 'seeds_unreadable', message: expect.stringContaining(file) }))
  })
})

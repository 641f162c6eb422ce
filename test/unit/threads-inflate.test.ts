import { Worker } from 'node:worker_threads'
import * as zlib from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gzipHeaderBytes, Inflater, type Inflated } from '../../threads/inflate.ts'

const KB = 1024
const text = Buffer.from('<p>A page like another, with some text in it.</p>\n'.repeat(400))
const cap = text.length + 10
const bad = { ok: false, code: 'bad_content_encoding' }
const zstdCompress = (zlib as unknown as { zstdCompressSync?: (bytes: Uint8Array) => Buffer }).zstdCompressSync

const codings = {
  'gzip': zlib.gzipSync(text), 'x-gzip': zlib.gzipSync(text), 'GZIP ': zlib.gzipSync(text),
  'deflate': zlib.deflateSync(text), 'deflate, without its header': zlib.deflateRawSync(text), 'br': zlib.brotliCompressSync(text),
  ...(zstdCompress && { zstd: zstdCompress(text) }),
}

// Both ways must do the same: the synchronous handle, and the streams that stand in for it.
describe.each([['by the synchronous handle', false], ['by streams', true]])('Inflater %s', (_way, streams) => {
  const inflate = async (body: Uint8Array, coding: string | undefined, options: { cut?: boolean; bytesMax?: number } = {}): Promise<Inflated> =>
    new Inflater(options.bytesMax ?? cap, streams).inflate(body, coding, options.cut ?? false)
  const bytesOf = (inflated: Inflated): Buffer => (inflated.ok ? Buffer.from(inflated.bytes) : Buffer.from(inflated.code))

  describe.each(Object.entries(codings))('%s', (name, body) => {
    const coding = name.split(', ')[0]!

    it('is undone', async () => {
      expect(await inflate(body, coding)).toMatchObject({ ok: true, truncated: false })
      expect(bytesOf(await inflate(body, coding)).equals(text)).toBe(true)
    })

    it('is cut at the cap, and marked; at the cap exactly it is not', async () => {
      const cut = await inflate(body, coding, { bytesMax: 1000 })
      expect(cut).toMatchObject({ ok: true, truncated: true })
      expect(bytesOf(cut).equals(text.subarray(0, 1000))).toBe(true)
      expect(await inflate(body, coding, { bytesMax: text.length })).toMatchObject({ ok: true, truncated: false })
      expect(await inflate(body, coding, { bytesMax: text.length - 1 })).toMatchObject({ ok: true, truncated: true })
    })

    it('that ends too early is broken, unless it was cut on the wire', async () => {
      const prefix = body.subarray(0, body.length - 12)
      expect(await inflate(prefix, coding)).toEqual(bad)
      const cut = await inflate(prefix, coding, { cut: true })
      expect(cut).toMatchObject({ ok: true, truncated: true })
      expect(text.subarray(0, bytesOf(cut).length).equals(bytesOf(cut))).toBe(true)
    })

    it('that is broken has its code', async () => {
      expect(await inflate(Buffer.from('this is no such stream at all'), coding)).toEqual(bad)
    })

    it('of no bytes is no bytes', async () => {
      expect(bytesOf(await inflate(new Uint8Array(0), coding)).length).toBe(0)
    })
  })

  it('reads all members of gzip, and ignores what follows them', async () => {
    const members = Buffer.concat([zlib.gzipSync('one '), zlib.gzipSync(''), zlib.gzipSync('two')])
    expect(bytesOf(await inflate(members, 'gzip')).toString()).toBe('one two')
    for (const behind of [Buffer.alloc(20), Buffer.from('junk that is no member')]) {
      expect(bytesOf(await inflate(Buffer.concat([members, behind]), 'gzip')).toString()).toBe('one two')
    }
  })

  it('refuses gzip of more than a thousand members: each has its cost, however little it holds', async () => {
    const empty = zlib.gzipSync('')
    const members = (count: number): Buffer => Buffer.concat([Buffer.alloc((count - 1) * empty.length, empty), zlib.gzipSync('last')])
    expect(bytesOf(await inflate(members(1_000), 'gzip')).toString()).toBe('last')
    expect(await inflate(members(1_001), 'gzip')).toEqual(bad)
  })

  it('compares the checksum and the length of each gzip member that is whole', async () => {
    // Stored, so that a changed byte leaves the stream readable: only the checksum knows.
    const stored = zlib.gzipSync(text, { level: 0 })
    for (const at of [100, stored.length - 8, stored.length - 1]) {
      const changed = Buffer.from(stored)
      changed[at]! ^= 1
      expect(await inflate(changed, 'gzip'), `byte ${at}`).toEqual(bad)
      expect(await inflate(Buffer.concat([zlib.gzipSync('one'), changed]), 'gzip'), `byte ${at} of a second member`).toEqual(bad)
      expect(await inflate(changed, 'gzip', { bytesMax: 1000 }), 'a prefix has no checksum').toMatchObject({ ok: true, truncated: true })
    }
    for (const missing of [1, 8]) expect(await inflate(stored.subarray(0, -missing), 'gzip')).toMatchObject({ ok: true, truncated: false })
  })

  it('undoes two codings, the last applied first, and no more', async () => {
    const twice = zlib.brotliCompressSync(zlib.gzipSync(text))
    expect(bytesOf(await inflate(twice, 'gzip, br')).equals(text)).toBe(true)
    expect(await inflate(twice, 'br, gzip')).toEqual(bad)
    expect(await inflate(zlib.gzipSync(twice), 'gzip, br, gzip')).toEqual(bad)
  })

  it('takes bytes as they are under a name that is no coding, and refuses one that it cannot undo', async () => {
    for (const name of [undefined, '', 'identity', 'none', 'utf-8']) {
      expect(bytesOf(await inflate(text, name)).equals(text)).toBe(true)
    }
    expect(await inflate(text, 'identity', { bytesMax: 100 })).toMatchObject({ ok: true, truncated: true })
    expect(await inflate(text, 'compress')).toEqual(bad)
  })

  it('goes on after a broken stream of each coding as if it had not been', async () => {
    const inflater = new Inflater(cap, streams)
    for (const [name, body] of Object.entries(codings)) {
      const coding = name.split(', ')[0]!
      for (const broken of [Buffer.from('no such stream'), Buffer.concat([body.subarray(0, body.length >> 1), Buffer.alloc(50, 0xff)])]) {
        expect(await inflater.inflate(broken, coding, false), name).toEqual(bad)
        for (const [after, good] of Object.entries(codings)) {
          expect(bytesOf(await inflater.inflate(good, after.split(', ')[0]!, false)).equals(text), `${after} after ${name}`).toBe(true)
        }
      }
    }
  })

  it('never throws and never writes beyond its cap, whatever the bytes', async () => {
    const names = fc.constantFrom('gzip', 'deflate', 'br', 'zstd', 'gzip, br', 'br, deflate')
    const mangled = fc.tuple(fc.constantFrom(...Object.values(codings)), fc.nat(), fc.nat(255))
      .map(([body, at, value]) => Buffer.from(body).fill(value, at % body.length, (at % body.length) + 1))
    const inflater = new Inflater(500, streams)
    await fc.assert(fc.asyncProperty(fc.oneof(mangled, fc.uint8Array({ maxLength: 60 })), names, fc.boolean(), async (body, name, cut) => {
      const inflated = await inflater.inflate(body, name, cut)
      expect(inflated.ok ? inflated.bytes.byteLength <= 500 : inflated.code).toBeTruthy()
    }), { numRuns: 200 })
  })
})

it('knows a broken stream in a worker that is ending, whose microtasks run on although zlib can call nobody back', async () => {
  const seen = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(`
    const { workerData: { seen, url, good, bad } } = require('node:worker_threads')
    import(url).then(async ({ Inflater }) => {
      const inflater = new Inflater(1000)
      seen[0] = Number((await inflater.inflate(good, 'br', false)).ok)
      queueMicrotask(() => { throw new Error('what an extractor left behind') })
      await null
      seen[1] = (await inflater.inflate(bad, 'br', false)).ok ? 1 : 2
    })`, {
    eval: true,
    workerData: {
      seen, url: new URL('../../dist/threads/inflate.js', import.meta.url).href, good: zlib.brotliCompressSync('good'), bad: Buffer.from('no such stream'),
    },
  })
  worker.on('error', () => {})
  await new Promise((resolve) => worker.once('exit', resolve))
  expect([...seen]).toEqual([1, 2])
})

describe('a bomb', () => {
  const zeros = Buffer.alloc(256 * 1024 * KB)
  it.each([
    ['gzip', () => zlib.gzipSync(zeros, { level: 1 })],
    ['br', () => zlib.brotliCompressSync(zeros, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['gzip, gzip', () => zlib.gzipSync(zlib.gzipSync(zeros, { level: 1 }))],
  ])('of 256 MB in %s costs no more memory than the cap', async (name, make) => {
    const bomb = make()
    const inflater = new Inflater(250 * KB)
    await inflater.inflate(bomb, name, false)
    const before = process.memoryUsage()
    for (let round = 0; round < 5; round += 1) expect(await inflater.inflate(bomb, name, false)).toMatchObject({ ok: true, truncated: true })
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(300 * KB)
    expect(after.rss - before.rss).toBeLessThan(32 * 1024 * KB)
  })
})

describe('gzip header', () => {
  it('is measured with all its optional fields', async () => {
    const plain = zlib.gzipSync('x')
    const header = Buffer.from([0x1f, 0x8b, 8, 4 + 8 + 16 + 2, 0, 0, 0, 0, 0, 3, 3, 0, 1, 2, 3, 0x61, 0, 0x62, 0x63, 0, 9, 9])
    expect(gzipHeaderBytes(header)).toBe(header.length)
    expect(gzipHeaderBytes(header.subarray(0, 17))).toBe(-1)
    expect(gzipHeaderBytes(plain)).toBe(10)
    expect(gzipHeaderBytes(Buffer.from('no gzip, but longer than ten'))).toBe(0)
    const inflated = await new Inflater(100).inflate(Buffer.concat([header, plain.subarray(10)]), 'gzip', false)
    expect(inflated.ok && Buffer.from(inflated.bytes).toString()).toBe('x')
  })
})

/** The sitemap thread: a real worker of the compiled code, its deadline, its end, and who hears of them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { SitemapThread, type SitemapThreadOptions } from '../../threads/sitemap/thread.ts'
import { piecesOf, readSitemap } from '../support/sitemaps.ts'
import { TestClock } from '../support/test-clock.ts'

const opened: { thread: SitemapThread; clock: TestClock }[] = []
const scratch = mkdtempSync(path.join(tmpdir(), 'sparse-thread-'))

function threadOf(options: Partial<SitemapThreadOptions> = {}): { thread: SitemapThread; clock: TestClock } {
  const clock = new TestClock()
  const one = { thread: new SitemapThread({ clock, ...options }), clock }
  opened.push(one)
  return one
}

/** A thread that does as it is told in JavaScript. */
function entryOf(name: string, source: string): string {
  const file = path.join(scratch, `${name}.mjs`)
  writeFileSync(file, source)
  return file
}

afterEach(async () => {
  for (const { thread, clock } of opened.splice(0)) {
    const closed = thread.close()
    // Those that do not end by themselves.
    clock.advance(limits.sitemapExitMsMax)
    await closed
  }
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const url = 'http://a.test/sitemap.xml'

function sitemapOf(name: string, count: number): Uint8Array {
  const entries = Array.from({ length: count }, (_, at) => `<url><loc>http://a.test/${name}/${at}</loc><lastmod>2026-01-01</lastmod></url>`)
  return Buffer.from(`<?xml version="1.0"?><urlset>${entries.join('')}</urlset>`)
}

test('two sitemaps that come at once, a piece of each in turn, are read apart', async () => {
  const { thread } = threadOf()
  const [one, two] = [thread.open({ url }), thread.open({ url, contentEncoding: 'gzip' })]
  const found = await Promise.all([
    readSitemap(one, piecesOf(sitemapOf('one', 200), 700)), readSitemap(two, piecesOf(gzipSync(sitemapOf('two', 300)), 50)),
  ])
  expect(found.map(({ entries, end }) => [entries.length, entries[0]?.url, end.type, end.entriesCount, end.errors])).toEqual([
    [200, 'http://a.test/one/0', 'urlset', 200, []], [300, 'http://a.test/two/0', 'urlset', 300, []],
  ])
  one.close()
  two.close()
  expect(thread.streamsOpen).toBe(0)
})

test('a chunk is copied: the caller keeps its buffer, and a piece of it is no more than that piece', async () => {
  const { thread } = threadOf()
  const stream = thread.open({ url })
  const slab = Buffer.concat([Buffer.from('junk'), sitemapOf('slab', 1), Buffer.from('junk')])
  const { entries, end } = await readSitemap(stream, [slab.subarray(4, -4)])
  expect([entries.length, end.errors, slab.toString('latin1', 0, 4)]).toEqual([1, [], 'junk'])
})

test('a bomb comes back in bounded parts, and ends at the limit', async () => {
  const { thread } = threadOf()
  const stream = thread.open({ url })
  const bomb = gzipSync(Buffer.concat([sitemapOf('bomb', 1).subarray(0, -9), Buffer.alloc(limits.sitemapBytesMax + 1_000_000, ' ')]))
  const { entries, end, parts } = await readSitemap(stream, [bomb])
  expect([entries.length, end.bytes, end.isCut]).toEqual([1, limits.sitemapBytesMax, true])
  expect(parts).toBeGreaterThanOrEqual(limits.sitemapBytesMax / limits.sitemapChunkBytesMax)
})

test('a thread that hangs is ended at its deadline with all its streams, and the next sitemap has a new one', async () => {
  const { thread, clock } = threadOf({ entry: entryOf('hang', `
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ kind }) => { if (kind === 'push') for (;;); })
  `) })
  const [hangs, waits] = [thread.open({ url }), thread.open({ url })]
  const answers = [hangs.push(new Uint8Array(10)), waits.more()]
  const settled = Promise.allSettled(answers)
  clock.advance(limits.sitemapChunkMsMax - 1)
  expect(thread.isRunning).toBe(true)
  clock.advance(1)
  expect((await settled).map((one) => one.status === 'rejected' && (one.reason as Error).message)).toEqual(
    Array.from({ length: 2 }, () => `the sitemap thread has not answered for ${limits.sitemapChunkMsMax} ms`),
  )
  expect(thread.isRunning).toBe(false)
  await expect(waits.more()).rejects.toMatchObject({ code: 'internal' })
  thread.open({ url })
  expect(thread.isRunning).toBe(true)
})

test('a thread that dies fails the calls that wait for it, and the next sitemap is read in a new one', async () => {
  const marker = path.join(scratch, 'died')
  const { thread } = threadOf({ entry: entryOf('die', `
    import fs from 'node:fs'
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ kind, call }) => {
      if (kind !== 'push') return
      if (fs.existsSync(${JSON.stringify(marker)})) return parentPort.postMessage({ call, part: { entries: [], hasMore: false } })
      fs.writeFileSync(${JSON.stringify(marker)}, '')
      throw new Error('of a bad sitemap')
    })
  `) })
  const first = thread.open({ url })
  await expect(first.push(new Uint8Array(1))).rejects.toThrow('of a bad sitemap')
  first.close()
  await expect(thread.open({ url }).push(new Uint8Array(1))).resolves.toEqual({ entries: [], hasMore: false })
})

test('closing with streams open rejects what they wait for, and whoever comes later is refused', async () => {
  const { thread, clock } = threadOf()
  const stream = thread.open({ url })
  const waiting = expect(stream.push(sitemapOf('late', 10))).rejects.toThrow('the sitemap thread is closed')
  await thread.close()
  await waiting
  expect(() => thread.open({ url })).toThrow('the sitemap thread is closed')
  expect(clock.timersCount).toBe(0)
})

test('a thread with no sitemap to read ends after a while, and not while one is open', async () => {
  const { thread, clock } = threadOf()
  const [one, two] = [thread.open({ url }), thread.open({ url })]
  one.close()
  clock.advance(limits.sitemapIdleMsMax)
  expect(thread.isRunning).toBe(true)
  two.close()
  two.close()
  clock.advance(limits.sitemapIdleMsMax - 1)
  expect(thread.isRunning).toBe(true)
  clock.advance(1)
  expect(thread.isRunning).toBe(false)
})

test('a stream that is asked for a second thing at once is told so', async () => {
  const { thread } = threadOf()
  const stream = thread.open({ url })
  const first = stream.push(sitemapOf('one', 1))
  await expect(stream.more()).rejects.toThrow('one thing at a time')
  await first
})

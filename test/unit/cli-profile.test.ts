import { execFileSync } from 'node:child_process'
import * as crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import zlib from 'node:zlib'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { readInputs, type ProfileInputs } from '../../engine/cli/profile-inputs.ts'
import { compareParsers, median, parserNames, parsers } from '../../engine/cli/profile-parsers.ts'
import { warcPages, warcPagesOf, type WarcPage } from '../../engine/cli/profile-warc.ts'
import { stageNames } from '../../threads/stage-times.ts'
import { integer, withSeeds } from '../support/random.ts'
import { sluice } from '../support/processes.ts'

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-profile-'))
afterAll(() => fs.rmSync(base, { recursive: true }))

let dir: string
beforeEach(() => { dir = fs.mkdtempSync(path.join(base, 'case-')) })

function put(name: string, bytes: string | Uint8Array): string {
  const file = path.join(dir, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, bytes)
  return file
}

function htmlOf(name: string): string {
  return `<!doctype html><title>${name}</title><a href="/${name}">${name}</a>`
}

async function read(paths: readonly string[], options: { maxBodyBytes?: number; bytesMax?: number } = {}): Promise<ProfileInputs & { warnings: string[] }> {
  const warnings: string[] = []
  return Object.assign(await readInputs(paths, { maxBodyBytes: 10_000, ...options, warn: (message) => warnings.push(message) }), { warnings })
}

function textsOf({ pages }: ProfileInputs): string[] {
  return pages.map(({ decoded }) => Buffer.from(decoded).toString())
}

async function profile(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const running = sluice(['profile', 'parse', ...args])
  const { code } = await running.ended
  return { code, ...running.output }
}

describe('inputs of a profile', () => {
  it('are the pages of a folder and of those in it, by their names, and nothing else that lies there', async () => {
    put('b.html', htmlOf('b'))
    put('a.HTM', htmlOf('a'))
    put('deep/er/d.xhtml', htmlOf('d'))
    put('c.html.gz', zlib.gzipSync(htmlOf('c')))
    put('deep/e.html.br', zlib.brotliCompressSync(htmlOf('e')))
    for (const other of ['x.txt', 'x.html.bak', 'xhtml', 'deep/x.json', 'x.xml.gz']) put(other, htmlOf('x'))
    fs.symlinkSync(dir, path.join(dir, 'deep/loop'))
    const inputs = await read([dir])
    expect(textsOf(inputs)).toEqual(['a', 'b', 'c', 'e', 'd'].map(htmlOf))
    expect(inputs).toMatchObject({ skipped: 0, leftOut: 0, warnings: [] })
  })

  it('go into the ring coded as they are stored, so that workers have to inflate them', async () => {
    const stored = zlib.gzipSync(htmlOf('c'))
    const { pages } = await read([put('c.html.gz', stored), put('d.html', htmlOf('d'))])
    expect(pages.map(({ contentEncoding }) => contentEncoding)).toEqual(['gzip', undefined])
    expect(Buffer.from(pages[0]!.body)).toEqual(stored)
  })

  it('are cut where a crawl cuts, before inflating and after', async () => {
    const noise = crypto.randomBytes(15_000).toString('hex')
    const { pages } = await read([put('plain.html', 'x'.repeat(10_001)), put('fits.html', 'x'.repeat(10_000)), put('bomb.html.gz', zlib.gzipSync('x'.repeat(500_000))),
      put('long.html.gz', zlib.gzipSync(noise))])
    expect(pages.map(({ isCut, isDecodedCut, decoded }) => [isCut, isDecodedCut, decoded.byteLength])).toEqual([
      [true, true, 10_000], [false, false, 10_000], [false, true, 10_000], [true, true, 10_000],
    ])
    expect(pages[3]!.body.byteLength).toBe(10_000)
  })

  it('that are damaged or empty are skipped, with a word on each and a count', async () => {
    put('a.html', htmlOf('a'))
    put('broken.html.gz', zlib.gzipSync(htmlOf('c')).subarray(0, 20))
    put('junk.html.br', 'junk')
    put('empty.html', '')
    const inputs = await read([dir])
    expect(textsOf(inputs)).toEqual([htmlOf('a')])
    expect(inputs.skipped).toBe(3)
    expect(inputs.warnings.map((text) => path.basename(text.split(':')[0]!))).toEqual(['broken.html.gz', 'empty.html', 'junk.html.br'])
  })

  it('that are pipes, devices or links to folders are skipped for what they are, and nobody waits for a writer', async () => {
    put('a.html', htmlOf('a'))
    execFileSync('mkfifo', [path.join(dir, 'pipe.html'), path.join(dir, 'pipe.warc')])
    fs.symlinkSync(dir, path.join(dir, 'folder.html'))
    fs.symlinkSync('/dev/null', path.join(dir, 'null.html'))
    // In a process of its own: opening a pipe stops the thread that does it.
    const { code, stdout, stderr } = await profile(dir, '--seconds', '1', '--no-compare', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ files: 1, skipped: 4 })
    expect(stderr.match(/it is no regular file/g)).toHaveLength(4)
  })

  it('beyond the cap are left out unread, and counted', async () => {
    for (let index = 0; index < 10; index += 1) put(`${index}.html`, 'x'.repeat(1_000))
    const inputs = await read([dir], { bytesMax: 3_500 })
    expect([inputs.pages.length, inputs.leftOut]).toEqual([4, 6])
  })

  it('are held coded and decoded, and the cap counts both', async () => {
    for (let index = 0; index < 10; index += 1) put(`${index}.html.gz`, zlib.gzipSync('x'.repeat(1_000), { level: 0 }))
    expect((await read([dir], { bytesMax: 4_100 })).pages).toHaveLength(3)
  })

  it('when none are named are made pages of real sizes in three codings', async () => {
    const { pages } = await read([], { maxBodyBytes: 250 * 1_024 })
    expect(pages.length).toBe(200)
    expect(new Set(pages.map(({ contentEncoding }) => contentEncoding))).toEqual(new Set(['gzip', 'br', undefined]))
    expect(median(pages.map(({ decoded }) => decoded.byteLength))).toBeGreaterThan(80_000)
  })

  it.each([
    ['a path that is none', () => path.join(dir, 'none'), 'file_unreadable'], ['a folder without pages', () => dir, 'usage'],
    ['a URL', () => 'https://example.com/', 'usage'], ['a broken file alone', () => put('x.html.gz', 'x'), 'file_unreadable'],
    ['a WARC file that is none', () => put('x.warc.gz', 'x'), 'file_unreadable'],
  ])('refuse %s with a stable code', async (_, given, code) => {
    await expect(read([given()])).rejects.toMatchObject({ code })
  })
})

function record(type: string, http: string | Uint8Array, url = 'https://a.test/'): Buffer {
  const block = Buffer.from(http as string)
  return Buffer.concat([Buffer.from(`WARC/1.0\r\nWARC-Type: ${type}\r\nWARC-Target-URI: <${url}>\r\nContent-Length: ${block.length}\r\n\r\n`), block, Buffer.from('\r\n\r\n')])
}

function response(body: string, headers = 'Content-Type: text/html; charset=utf-8\r\n', status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\n${headers}\r\n${body}`
}

async function pagesOf(stream: AsyncIterable<WarcPage>): Promise<WarcPage[]> {
  const pages: WarcPage[] = []
  for await (const page of stream) pages.push(page)
  return pages
}

const warc = Buffer.concat([
  record('warcinfo', 'software: x\r\n'),
  record('request', 'GET / HTTP/1.1\r\n\r\n'),
  record('response', response(htmlOf('one')), 'https://a.test/one'),
  record('response', response('{}', 'Content-Type: application/json\r\n')),
  record('response', response(htmlOf('no'), undefined, '404 Not Found')),
  record('response', response('5;x=y\r\n<!doc\r\n9\r\ntype html\r\n0\r\n\r\n', 'Content-Type: TEXT/HTML\r\nTransfer-Encoding: chunked\r\n')),
  record('response', response('<p>joined before', 'content-type: text/html\r\nTransfer-Encoding: chunked\r\n')),
  record('response', response('y'.repeat(300_000))),
  record('metadata', 'z'.repeat(100_000)),
  record('response', response(htmlOf('last'), 'Content-Type: application/xhtml+xml\r\nContent-Encoding: br\r\n')),
])
const warcBodies = [htmlOf('one'), '<!doctype html', '<p>joined before', 'y'.repeat(1_000), htmlOf('last')].map((text) => text.slice(0, 1_000))

describe('the WARC reader', () => {
  it('gives the bodies of HTML responses with status 2xx, chunks joined, cut, whatever pieces the stream comes in', () => withSeeds(20, async (random) => {
    async function* pieces(): AsyncGenerator<Uint8Array, void, undefined> {
      for (let at = 0; at < warc.length;) {
        const length = random() < 0.5 ? integer(random, 20) : integer(random, 40_000)
        yield warc.subarray(at, at += length)
      }
    }
    const pages = await pagesOf(warcPagesOf(pieces(), 1_000))
    expect(pages.map(({ body }) => Buffer.from(body).toString())).toEqual(warcBodies)
    expect(pages.map(({ isCut }) => isCut)).toEqual([false, false, false, true, false])
    expect(pages.map(({ url, contentEncoding }) => [url, contentEncoding])[0]).toEqual(['https://a.test/one', undefined])
    expect(pages[4]).toMatchObject({ contentEncoding: 'br', contentType: 'application/xhtml+xml' })
    expect(Buffer.from(pages[0]!.headerBlock).toString()).toBe('Content-Type: text/html; charset=utf-8\r\n')
  }))

  it('keeps no more of a record than a page needs: one of 5 GB, more than a buffer holds, is read like any other', async () => {
    const chunk = Buffer.alloc(64 * 1_024, 'z')
    const head = `WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: https://a.test/\r\nContent-Length: ${81_920 * chunk.length}\r\n\r\n`
    const http = Buffer.from(response(''))
    async function* pieces(): AsyncGenerator<Uint8Array, void, undefined> {
      yield Buffer.from(head)
      yield http
      for (let index = 0; index < 81_919; index += 1) yield chunk
      yield chunk.subarray(http.length)
    }
    expect((await pagesOf(warcPagesOf(pieces(), 1_000))).map(({ body, isCut }) => [body.byteLength, isCut])).toEqual([[1_000, true]])
  })

  it('reads one gzip member a record, and one for all', async () => {
    for (const bytes of [zlib.gzipSync(warc), Buffer.concat([zlib.gzipSync(warc.subarray(0, 777)), zlib.gzipSync(warc.subarray(777))])]) {
      expect((await pagesOf(warcPages(put('x.warc.gz', bytes), 1_000))).map(({ body }) => Buffer.from(body).toString())).toEqual(warcBodies)
    }
  })

  it('of a file that ends early gives what came before, and the file counts as skipped', async () => {
    const plain = await read([put('short.warc', warc.subarray(0, warc.length - 10))], { maxBodyBytes: 1_000 })
    expect(textsOf(plain)).toEqual(warcBodies.slice(0, -1))
    expect(plain).toMatchObject({ skipped: 1, warnings: [expect.stringMatching(/short\.warc: the file ends within a record$/)] })
    put('a.html', htmlOf('a'))
    put('short.warc.gz', zlib.gzipSync(warc).subarray(0, -12))
    expect((await read([path.join(dir, 'a.html'), path.join(dir, 'short.warc.gz')])).warnings).toEqual([expect.stringMatching(/short\.warc\.gz: unexpected end of file$/)])
  })

  it('gives a page whose coding is wrong, which is skipped alone', async () => {
    const inputs = await read([put('x.warc', warc)], { maxBodyBytes: 1_000 })
    expect(textsOf(inputs)).toEqual(warcBodies.slice(0, -1))
    expect(inputs.warnings).toEqual([expect.stringMatching(/x\.warc: https:\/\/a\.test\/: it is no br, or damaged$/)])
  })
})

describe('the four parsers', () => {
  const html = `<!doctype html><html lang=de><head><title> One
    title </title><base href="/b/"><link rel="next" href="n?a=1&amp;b=2"><meta name=robots content=noindex></head><body>
    <A HREF='one'>1</A><map><area href=two></map><a name=x>none</a><iframe src="three"></iframe>
    <!-- <a href="no">no</a> --><script>"<a href='no'>"</script><template><a href="no">no</a></template><a href="four&#x21;">4</a></body></html>`
  const body = { bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8', isCut: false }

  it.each(parserNames)('%s does the same job: links, title and base', (name) => {
    expect(parsers[name].read(body)).toEqual({ hrefs: ['n?a=1&b=2', 'one', 'two', 'three', 'four!'], title: 'One title', base: '/b/' })
  })

  it('are compared in as many rounds as asked for, parse5 being the measure', () => {
    const { figures, rounds } = compareParsers([body], { ms: 0, roundsMin: 3 })
    expect(rounds).toBe(3)
    expect(figures.map(({ name }) => name)).toEqual(parserNames)
    for (const { ratio, ratioMin, ratioMax, pagesPerSecond } of figures) expect(ratioMin > 0 && ratioMin <= ratio && ratio <= ratioMax && pagesPerSecond > 0).toBe(true)
    expect(figures.at(-1)).toMatchObject({ name: 'parse5', ratio: 1, ratioMin: 1, ratioMax: 1 })
  })
})

describe('sluice profile parse', () => {
  it('answers one object: what was read, rates, every stage, waits and the comparison', async () => {
    for (let index = 0; index < 5; index += 1) put(`${index}.html.gz`, zlib.gzipSync(htmlOf(String(index)) + '<p>text <a href=x>y</a>'.repeat(100)))
    put('broken.html.gz', 'x')
    const { code, stdout, stderr } = await profile(dir, '--json', '--seconds', '1', '--threads', '2')
    expect(code).toBe(0)
    expect(stderr).toMatch(/^skipped .*broken\.html\.gz: .*\n$/)
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ node: process.version, cpu: expect.any(String), files: 5, skipped: 1, threads: 2, failures: {}, workersLost: 0 })
    expect(report.bytes).toBeGreaterThan(5 * 2_000)
    expect(report.pagesPerSecond > 0 && report.mbPerSecond > 0).toBe(true)
    // Each worker has an entry unless the other was always faster.
    expect(report.perThread.reduce((sum: number, thread: { pagesPerSecond: number }) => sum + thread.pagesPerSecond, 0) / report.pagesPerSecond).toBeCloseTo(1, 2)
    expect(report.stages.map(({ name }: { name: string }) => name)).toEqual(stageNames)
    for (const name of ['inflate', 'sniff', 'scan', 'resolve', 'fingerprint', 'hash']) {
      const stage = report.stages.find((each: { name: string }) => each.name === name)
      expect(stage).toMatchObject({ name, pages: report.measuredPages })
      expect(stage.p50Us > 0 && stage.p50Us <= stage.p95Us && stage.p95Us <= stage.p99Us && stage.share > 0).toBe(true)
    }
    const shares = report.stages.reduce((sum: number, { share }: { share: number }) => sum + share, 0)
    expect(shares).toBeGreaterThan(0.9)
    expect(shares).toBeLessThan(1.01)
    expect(report.comparison.map(({ name }: { name: string }) => name)).toEqual(['scanner', 'htmlparser2', 'node-html-parser', 'parse5'])
  })

  it('times an extractor and the document that it asks for, and says which stages there were', async () => {
    put('a.html', htmlOf('a'))
    const module = put('extract.mjs', 'export default (page) => page.document.querySelectorAll("a").length')
    const { code, stdout } = await profile(dir, '--seconds', '1', '--no-compare', '--extract', module)
    expect(code).toBe(0)
    expect(stdout).toMatch(/\n {2}document {2,}[\d.]+ /)
    expect(stdout).toMatch(/\n {2}extractor {2,}[\d.]+ /)
    expect(stdout).not.toMatch(/parse5/)
  })

  it('fails when no page can be parsed', async () => {
    put('a.html', htmlOf('a'))
    const module = put('extract.mjs', 'export default () => { throw new Error("no") }')
    expect(await profile(dir, '--seconds', '1', '--no-compare', '--extract', module)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/extractor_failed/) })
  })

  it('gives up when more workers are lost than one page may cost, and does not try all pages in the ring', async () => {
    put('a.html', htmlOf('a'))
    const module = put('extract.mjs', 'export default () => process.exit(1)')
    expect(await profile(dir, '--seconds', '1', '--no-compare', '--threads', '1', '--extract', module))
      .toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^sluice: internal: 3 workers were lost, the last one by parse_crashed[^\n]*\n$/) })
  })

  it('writes a CPU profile of the main thread and one of each worker, and names them', async () => {
    put('a.html', htmlOf('a'))
    const profiles = path.join(dir, 'profiles')
    const { code, stdout } = await profile(dir, '--seconds', '1', '--no-compare', '--threads', '2', '--cpu-prof-dir', profiles, '--json')
    expect(code).toBe(0)
    const { cpuProfiles } = JSON.parse(stdout) as { cpuProfiles: string[] }
    expect(cpuProfiles).toHaveLength(3)
    expect(fs.readdirSync(profiles).toSorted()).toEqual(cpuProfiles.map((file) => path.basename(file)).toSorted())
    const files = cpuProfiles.map((file) => JSON.parse(fs.readFileSync(file, 'utf8')) as { nodes: { callFrame: { url: string } }[]; samples: number[] })
    const inWorker = files.map(({ nodes }) => nodes.some(({ callFrame }) => callFrame.url.endsWith('/parse-worker.js')))
    expect(inWorker[0]).toBe(false)
    expect(inWorker.slice(1)).toContain(true)
    expect(files.every(({ samples }) => samples.length > 0)).toBe(true)
  })

  it.each([
    [['--seconds', '0'], 'bad_option'], [['--threads', 'many'], 'bad_option'], [['--max-body', '1'], 'bad_option'], [['--frob'], 'bad_option'],
    [['--extract', '/nowhere.mjs'], 'extractor_unloadable'], [['/nowhere'], 'file_unreadable'], [['--cpu-prof-dir', '/nowhere/at/all'], 'usage'],
  ])('refuses %j in one line, with exit code 2', async (args, error) => {
    expect(await profile(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(new RegExp(`^sluice: ${error}: [^\n]*\n$`)) })
  })
})

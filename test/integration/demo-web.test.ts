import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { runWeb } from '../../engine/cli/web.ts'
import { faults, spawnDemoWeb, startDemoWeb, type DemoWeb, type Fault, type Page, type RequestEntry } from '../../engine/demo/index.ts'

interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** As received after the headers. */
  readonly payload: Buffer
  readonly body: Buffer
}

type Reachable = Pick<DemoWeb, 'resolve' | 'caPem'>

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-demo-test-'))
const closing: { close(): Promise<void> }[] = []

async function started<T extends { close(): Promise<void> }>(web: Promise<T>): Promise<T> {
  const opened = await web
  closing.push(opened)
  return opened
}

afterEach(async () => {
  for (const web of closing.splice(0)) await web.close()
})
afterAll(() => fs.rmSync(folder, { recursive: true }))

function decode(payload: Buffer, coding: string | undefined): Buffer {
  return coding === 'gzip' ? zlib.gunzipSync(payload) : coding === 'br' ? zlib.brotliDecompressSync(payload) : payload
}

/** One request on a connection of its own; rejects when the answer is not complete. */
function get(web: Reachable, url: string, options: https.RequestOptions = {}): Promise<Answer> {
  const { protocol, hostname, host, port, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    const request = (protocol === 'https:' ? https : http).request({
      host: web.resolve.get(hostname) ?? '127.0.0.1', port, path: pathname + search, servername: hostname, ca: web.caPem, agent: false, ...options,
      headers: { host, 'accept-encoding': 'gzip, br', 'user-agent': 'demo-test', ...options.headers as http.OutgoingHttpHeaders },
    }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const payload = Buffer.concat(chunks)
        try {
          resolve({ status: response.statusCode!, headers: response.headers, payload, body: decode(payload, response.headers['content-encoding']) })
        } catch (error) {
          reject(error as Error)
        }
      })
    })
    request.on('error', reject)
    request.end()
  })
}

/** URLs of `<a href>` in a document, by patterns and nothing of the project. */
function hrefs(html: string, base: string): string[] {
  const bare = html.replace(/<!--[\s\S]*?-->|<script[\s\S]*?<\/script>/g, '')
  return [...bare.matchAll(/<a\s[^>]*?href=(?:"([^"]*)"|'([^']*)'|([^\s>]+))/g)]
    .map((match) => (match[1] ?? match[2] ?? match[3]!).replaceAll('&amp;', '&'))
    .filter((href) => URL.canParse(href, base))
    .map((href) => new URL(href, base).href)
    .filter((url) => /^https?:/.test(url))
}

function readLog(file: string): RequestEntry[] {
  return fs.readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as RequestEntry)
}

describe('a crawl of the served web', () => {
  test('finds by the hrefs of the bodies every page of the site and what robots.txt forbids, and the log has each request', async () => {
    const logFile = path.join(folder, 'crawl.log')
    const web = await started(startDemoWeb({ hosts: 12, pagesPerHost: 20, sizeScale: 0.2, logFile }))
    const found = new Set(web.seeds)
    const sent: { url: string, answer: Answer }[] = []
    for (const url of found) {
      const answer = await get(web, url)
      expect(answer.status).toBe(200)
      sent.push({ url, answer })
      const page = web.site.pageAt(url)!
      const links = hrefs(answer.body.toString(), url)
      expect(links).toEqual(web.site.linksOf(page))
      for (const link of page.kind === 'private' ? [] : links) found.add(link.split('#', 1)[0]!)
    }
    const allowed = [...found].filter((url) => !web.site.robotsDisallowed(url))
    expect(new Set(allowed)).toEqual(new Set([...web.site.allPages()].map((page) => page.url)))
    expect(allowed).toHaveLength(web.pages)
    expect(found.size).toBeGreaterThan(allowed.length)
    expect(new Set(sent.map(({ answer }) => answer.headers['content-encoding']))).toEqual(new Set(['gzip', 'br', undefined]))

    web.flush()
    const log = readLog(logFile)
    expect(log.map(({ host, path, status, bytes, sha256, ua }) => ({ host, path, status, bytes, sha256, ua }))).toEqual(sent.map(({ url, answer }) => ({
      host: new URL(url).hostname, path: new URL(url).pathname + new URL(url).search, status: 200, bytes: answer.payload.length,
      sha256: createHash('sha256').update(answer.payload).digest('hex'), ua: 'demo-test',
    })))
    expect(log.every(({ t }, index) => t > (log[index - 1]?.t ?? 0))).toBe(true)
    expect(web.requests.total).toBe(sent.length)
    for (const url of found) expect(web.requests.count(url)).toBe(1)
  })

  test('gives the same bytes from another process, whose log is whole after a flush and after its end', async () => {
    const logFile = path.join(folder, 'spawned.log')
    const options = { hosts: 5, pagesPerHost: 4, sizeScale: 0.3, seed: 9 }
    const child = await started(spawnDemoWeb({ ...options, logFile }))
    // Links carry the port, so the web in this process must have the same one; the child lets go of it first.
    const pages = child.seeds.concat(hrefs((await get(child, child.seeds[0]!)).body.toString(), child.seeds[0]!).slice(0, 8).map((url) => url.split('#')[0]!))
    const theirs = await Promise.all(pages.map((url) => get(child, url)))
    await child.flush()
    expect(readLog(logFile)).toHaveLength(pages.length + 1)
    await get(child, `${child.seeds[0]!}missing`)
    await child.close()
    expect(readLog(logFile)).toHaveLength(pages.length + 2)
    const own = await started(startDemoWeb({ ...options, port: child.port }))
    const ours = await Promise.all(pages.map((url) => get(own, url)))
    expect(ours.map(({ payload }) => payload.toString('base64'))).toEqual(theirs.map(({ payload }) => payload.toString('base64')))
  })

  test('writes its log when it is ended by SIGTERM', async () => {
    const logFile = path.join(folder, 'term.log')
    const child = await started(spawnDemoWeb({ hosts: 1, pagesPerHost: 1, sizeScale: 0.1, logFile }))
    await get(child, child.seeds[0]!)
    process.kill(child.pid, 'SIGTERM')
    await child.close()
    expect(readLog(logFile).map(({ status }) => status)).toEqual([200])
  })
})

test('a spawned web neither keeps its parent alive nor outlives it', async () => {
  const spawn = new URL('../../dist/engine/demo/spawn.js', import.meta.url).href
  const script = `const { spawnDemoWeb } = await import(${JSON.stringify(spawn)}); console.log((await spawnDemoWeb({ hosts: 1, pagesPerHost: 1 })).pid)`
  // The web inherits the parent's standard output, so this resolves when both have ended, and rejects at the time-out.
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 10_000 })
  expect(Number(stdout)).toBeGreaterThan(1)
})

describe('the server', () => {
  test('has certificates that its authority vouches for, for every host, and for no other name', async () => {
    const web = await started(startDemoWeb({ hosts: 6, pagesPerHost: 1, sizeScale: 0.1, tls: true }))
    for (let host = 0; host < 6; host++) {
      expect((await get(web, web.site.page(host, 0).url)).status).toBe(200)
    }
    const seed = web.seeds[0]!
    await expect(get(web, seed, { ca: undefined })).rejects.toThrow(/unable to (verify|get)|self.signed/)
    await expect(get(web, seed, { servername: 'h000.elsewhere.test' })).rejects.toThrow(/does not match/)
    const misdirected = await get(web, seed, { servername: 'h001.beta.test' })
    expect(misdirected.status).toBe(421)
  })

  test('serves robots.txt with groups and a sitemap, and answers 404, 405, 304 and HEAD as HTTP has it', async () => {
    const web = await started(startDemoWeb({ hosts: 2, pagesPerHost: 3, sizeScale: 0.1 }))
    const seed = web.seeds[0]!
    const robots = (await get(web, `${seed}robots.txt`)).body.toString()
    expect(robots).toContain('User-agent: *\nDisallow: /private/')
    const sitemap = /^Sitemap: (.*)$/m.exec(robots)![1]!
    expect((await get(web, sitemap)).body.toString().match(/<loc>/g)).toHaveLength(web.site.layout.size(0))
    expect((await get(web, `${seed}no/such.html`)).status).toBe(404)
    expect((await get(web, seed, { headers: { host: 'unknown.test' } })).status).toBe(404)
    expect((await get(web, seed, { method: 'POST' })).status).toBe(405)
    const { headers } = await get(web, seed)
    expect((await get(web, seed, { headers: { 'if-none-match': headers.etag } })).status).toBe(304)
    const head = await get(web, seed, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
    expect(Number(head.headers['content-length'])).toBeGreaterThan(500)
    expect(head.payload).toHaveLength(0)
  })

  test('binds loopback addresses alone, one for each host where there are several', async () => {
    const web = await started(startDemoWeb({ hosts: 8, pagesPerHost: 1 }))
    const addresses = [...web.resolve.values()]
    expect(addresses.every((address) => address.startsWith('127.'))).toBe(true)
    if (os.platform() === 'linux') expect(new Set(addresses).size).toBe(8)
  })

  test('refuses a port that is taken with the code port_in_use', async () => {
    const web = await started(startDemoWeb({ hosts: 1, pagesPerHost: 1 }))
    await expect(startDemoWeb({ hosts: 1, port: web.port })).rejects.toMatchObject({ code: 'port_in_use' })
    await expect(spawnDemoWeb({ hosts: 1, port: web.port })).rejects.toMatchObject({ code: 'port_in_use' })
  })

  test('delays answers by the latency set, and logs when the request came and not when it was answered', async () => {
    const logFile = path.join(folder, 'latency.log')
    const web = await started(startDemoWeb({ hosts: 1, pagesPerHost: 1, sizeScale: 0.1, logFile }))
    await get(web, web.seeds[0]!)
    web.latencyMs = 150
    const beforeMs = performance.now()
    await get(web, web.seeds[0]!)
    const betweenAnswersMs = performance.now() - beforeMs
    web.flush()
    const [first, second] = readLog(logFile)
    // Between the answers lies the latency, between the arrivals it does not.
    expect(betweenAnswersMs - (second!.t - first!.t)).toBeGreaterThan(75)
  })

  test('keeps a connection for the next request', async () => {
    const web = await started(startDemoWeb({ hosts: 1, pagesPerHost: 1, sizeScale: 0.1 }))
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const first = await get(web, web.seeds[0]!, { agent })
    expect(first.headers.connection).toBe('keep-alive')
    await get(web, web.seeds[0]!, { agent })
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1)
    agent.destroy()
  })
})

describe.each([false, true])('faults (TLS: %s)', (tls) => {
  test('do what they are called', async () => {
    const logFile = path.join(folder, `faults-${tls}.log`)
    const web = await started(startDemoWeb({ hosts: 3, pagesPerHost: 100, faultShare: 0.8, sizeScale: 0.5, tls, logFile }))
    const pageWith = (fault: Fault): Page => [...web.site.allPages()].find((page) => page.fault === fault)!
    const ask = (fault: Fault): Promise<Answer> => get(web, pageWith(fault).url)

    expect((await ask('not_found')).status).toBe(404)
    expect((await ask('gone')).status).toBe(410)
    expect((await ask('server_error')).status).toBe(500)
    expect((await ask('unavailable')).status).toBe(503)
    const redirect = await ask('redirect')
    expect(redirect.status).toBe(302)
    expect((await get(web, redirect.headers.location!)).status).toBe(200)
    expect((await ask('redirect_self')).headers.location).toBe(pageWith('redirect_self').url)
    let hop = await ask('redirect_chain')
    const chain: number[] = []
    while (hop.status === 302) {
      chain.push(hop.status)
      hop = await get(web, hop.headers.location!)
    }
    expect(chain).toHaveLength(3)
    expect(hop.status).toBe(200)
    expect((await ask('wrong_type')).headers['content-type']).toBe('image/png')
    await expect(ask('broken_gzip')).rejects.toMatchObject({ code: expect.stringMatching(/^Z_/) as string })
    await expect(ask('truncated')).rejects.toMatchObject({ code: 'ECONNRESET', message: 'aborted' })
    await expect(ask('no_answer')).rejects.toMatchObject({ code: 'ECONNRESET', message: 'socket hang up' })
    await expect(ask('reset')).rejects.toMatchObject({ code: 'ECONNRESET' })

    const stalled = ask('stall')
    const stalledPath = pageWith('stall').path
    await expect.poll(() => (web.flush(), readLog(logFile).find((entry) => entry.path === stalledPath)?.status)).toBe(0)
    await web.close()
    await expect(stalled).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(new Set(readLog(logFile).map((entry) => web.site.find(entry.host, entry.path)!.fault))).toEqual(new Set([...faults, 'none']))
  })
})

test('a reset comes as a TCP reset in the middle of the body, not as an end', async () => {
  const web = await started(startDemoWeb({ hosts: 3, pagesPerHost: 100, faultShare: 0.8, sizeScale: 0.5 }))
  const page = [...web.site.allPages()].find(({ fault }) => fault === 'reset')!
  const socket = net.connect(web.port, web.resolve.get(page.host)!)
  socket.write(`GET ${page.path} HTTP/1.1\r\nhost: ${page.host}\r\n\r\n`)
  let received = ''
  socket.on('data', (chunk: Buffer) => { received += chunk.toString('latin1') })
  const [error] = await once(socket, 'error') as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
  expect(received).toContain('content-length')
})

describe('a web of given pages', () => {
  const corpus = fileURLToPath(new URL('../../../shared/corpus/pages', import.meta.url))

  test('serves the files of a folder, each with links of its own web behind the body tag', async () => {
    const dir = path.join(folder, 'pages')
    fs.mkdirSync(dir)
    fs.writeFileSync(path.join(dir, 'a.html'), '<base href="https://elsewhere.example/"><body>plain <a href="x">x</a>')
    fs.writeFileSync(path.join(dir, 'b.html.gz'), zlib.gzipSync('<p>gzip'))
    fs.writeFileSync(path.join(dir, 'c.html.br'), zlib.brotliCompressSync('<body>brotli'))
    fs.writeFileSync(path.join(dir, 'index.json'), JSON.stringify([{ file: 'b.html.gz', serve_content_type: 'text/html; charset=windows-1252' }]))
    const web = await started(startDemoWeb({ hosts: 2, pagesPerHost: 5, pagesDir: dir }))
    const pages = [...web.site.allPages()]
    expect(pages).toHaveLength(10)
    for (const [index, page] of pages.entries()) {
      const answer = await get(web, page.url)
      const html = answer.body.toString()
      expect(html.replace(/\n<div class="demo-links">[\s\S]*<\/div>\n/, '')).toBe(['<base href="https://elsewhere.example/"><body>plain <a href="x">x</a>', '<p>gzip', '<body>brotli'][index % 3])
      expect(answer.headers['content-type']).toBe(index % 3 === 1 ? 'text/html; charset=windows-1252' : 'text/html')
      const outside = index % 3 === 0 ? ['https://elsewhere.example/x'] : []
      expect(hrefs(html, index % 3 === 0 ? 'https://elsewhere.example/' : page.url)).toEqual([...web.site.linksOf(page), ...outside])
    }
  })

  test('refuses a folder without pages', async () => {
    await expect(startDemoWeb({ pagesDir: path.join(folder, 'none') })).rejects.toMatchObject({ code: 'usage' })
  })

  test.skipIf(!fs.existsSync(corpus))(`serves the project's corpus whole (skipped without ${corpus})`, async () => {
    const web = await started(startDemoWeb({ pagesDir: corpus }))
    const files = fs.readdirSync(corpus).filter((name) => name.endsWith('.br')).sort()
    expect(web.pages).toBe(files.length)
    const pages = [...web.site.allPages()]
    for (const index of [0, 47, 211, 359]) {
      const raw = zlib.brotliDecompressSync(fs.readFileSync(path.join(corpus, files[index]!)))
      const { body } = await get(web, pages[index]!.url)
      const at = body.indexOf('\n<div class="demo-links">')
      const added = body.length - raw.length
      expect(Buffer.concat([body.subarray(0, at), body.subarray(at + added)]).equals(raw)).toBe(true)
    }
  })
})

test('the command writes what a crawl needs, and a signal ends it with code 0', async () => {
  const outDir = path.join(folder, 'out')
  const before = process.listenerCount('SIGTERM')
  const code = runWeb({ hosts: 2, pagesPerHost: 2, tls: true, outDir })
  await expect.poll(() => process.listenerCount('SIGTERM')).toBe(before + 1)
  expect(fs.readFileSync(path.join(outDir, 'ca.pem'), 'utf8')).toContain('BEGIN CERTIFICATE')
  expect(fs.readFileSync(path.join(outDir, 'hosts'), 'utf8')).toMatch(/^127\.\d+\.\d+\.\d+ h000\.alpha\.test\n127\.\d+\.\d+\.\d+ h001\.beta\.test\n$/)
  expect(fs.readFileSync(path.join(outDir, 'seeds.txt'), 'utf8')).toMatch(/^https:\/\/h000\.alpha\.test:\d+\/\n$/)
  process.emit('SIGTERM')
  expect(await code).toBe(0)
  expect(process.listenerCount('SIGTERM')).toBe(before)
})

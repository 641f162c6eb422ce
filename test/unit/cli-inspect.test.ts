import fc from 'fast-check'
import fs from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { answerLines, type Answer } from '../../engine/cli/batch.ts'
import { textOf } from '../../engine/cli/inspect.ts'
import { documentOf, inspectDocument } from '../../engine/cli/inspect-page.ts'
import { inspectFetchedRobots, inspectRobots } from '../../engine/cli/inspect-robots.ts'
import { inspectSitemap, sitemapOf, sitemapText } from '../../engine/cli/inspect-sitemap.ts'
import { inspectUrl } from '../../engine/cli/inspect-url.ts'
import { limits } from '../../engine/core/limits.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-inspect-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

describe('inspect url', () => {
  it.each([
    [{ url: 'HTTP://WWW.Example.co.uk.:80/%7ea?#x' }, { url: 'http://www.example.co.uk./%7ea?', key: 'http://www.example.co.uk/~a', host: 'www.example.co.uk', domain: 'example.co.uk' }],
    [{ url: ' ../b ', base: 'https://a.test:8443/x/y/z' }, { url: 'https://a.test:8443/x/b', key: 'https://a.test:8443/x/b', host: 'a.test', domain: 'a.test' }],
    [{ url: 'http://www.a.test/x/?utm_source=1', dedupe: 'tracking,www' }, { url: 'http://www.a.test/x/?utm_source=1', key: 'http://a.test/x/', host: 'www.a.test', domain: 'a.test' }],
    [{ url: 'http://[::1]/' }, { url: 'http://[::1]/', key: 'http://[::1]/', host: '[::1]', domain: '[::1]' }],
  ])('answers URL, key, host and domain of %o', (args, answer) => {
    expect(inspectUrl(args)).toEqual(answer)
  })

  it.each([
    [{ url: 'mailto:a@b.test' }, /not an http or https URL/], [{ url: 'b' }, /not an http or https URL/], [{}, /as url/], [{ url: 'http://a/', base: 7 }, /as base/],
    [{ url: '/a', base: 'nowhere' }, /the base/], [{ url: 'http://a/', dedupe: 'all' }, /--dedupe: expected/], [{ url: `http://a/${'x'.repeat(9_000)}` }, /longer than 8000 bytes/],
    // As it would be requested.
    [{ url: `http://a/${'é'.repeat(3_000)}` }, /longer than 8000 bytes/], [{ url: `mailto:${'x'.repeat(9_000)}` }, /not an http or https URL/],
  ])('answers what is wrong with %o', (args, error) => {
    expect(inspectUrl(args)).toEqual({ error: expect.stringMatching(error) })
  })
})

describe('inspect page', () => {
  const html = `<!doctype html><html lang="de"><head><meta charset="utf-8"><title> Ein  Titel </title><base href="/b/">
    <link rel="canonical" href="c"><link rel="next" href="n"><meta name="robots" content="noindex, NOFOLLOW">
    <meta http-equiv="refresh" content="5; url=later"></head>
    <body><a href="x#frag" rel="nofollow">x</a><a href="mailto:m@a.test">m</a><a name="none">n</a><map><area href="https://other.test/"></map>ü</body></html>`

  it('answers what the engine reads, in the documented shape', async () => {
    expect(await inspectDocument(documentOf({ html, base: 'https://a.test/p' }))).toEqual({
      charset: 'utf-8', charsetFrom: 'header', title: 'Ein Titel', lang: 'de', base: 'https://a.test/b/', canonical: 'https://a.test/b/c',
      robots: { noindex: true, nofollow: true }, refresh: { delaySeconds: 5, url: 'https://a.test/b/later' }, text: expect.any(Number), needsJs: false,
      links: [
        { url: 'https://a.test/b/n', element: 'link', rel: 'next' },
        { url: 'https://a.test/b/later', element: 'meta' },
        { url: 'https://a.test/b/x', element: 'a', rel: 'nofollow' },
        { url: 'https://other.test/', element: 'area' },
      ],
      counts: { link: 1, meta: 1, a: 1, area: 1 },
    })
  })

  it('answers the robots directives and the canonical address of a header too, as they are for the agent that asks', async () => {
    const document = documentOf({ html: '<meta name=robots content=noarchive><meta name=mybot content=nofollow>', base: 'https://a.test/p' })
    const headerBlock = Buffer.from('X-Robots-Tag: sluice: noindex\r\nLink: </c>; rel="canonical"\r\n')
    expect(await inspectDocument({ ...document, headerBlock })).toMatchObject({ robots: { noarchive: true, noindex: true }, canonical: 'https://a.test/c' })
    expect((await inspectDocument({ ...document, headerBlock, userAgent: 'MyBot/1.0' }))['robots']).toEqual({ noarchive: true, nofollow: true })
  })

  it('leaves out what a document does not have', async () => {
    expect(await inspectDocument(documentOf({ html: '<p>text' }))).toEqual({
      charset: 'utf-8', charsetFrom: 'header', base: 'https://base.invalid/', robots: {}, text: 4, needsJs: false, links: [], counts: {},
    })
  })

  it('reads bytes by their own charset, and a text of JSON as what it is', async () => {
    const bytes = Buffer.from('<meta charset="windows-1251"><title>\xcf\xf0\xe8\xe2\xe5\xf2</title>', 'latin1')
    expect(await inspectDocument(documentOf({ base64: bytes.toString('base64') }))).toMatchObject({ charset: 'windows-1251', charsetFrom: 'meta', title: 'Привет' })
    expect(await inspectDocument(documentOf({ html: '<meta charset="windows-1251"><title>Привет</title>' }))).toMatchObject({ charset: 'utf-8', title: 'Привет' })
    expect(await inspectDocument(documentOf({ base64: bytes.toString('base64'), contentType: 'text/html; charset=koi8-r' }))).toMatchObject({ charset: 'koi8-r', charsetFrom: 'header' })
  })

  it('reads the charset of a document that was cut within a character as a crawl does', async () => {
    const bytes = Buffer.from('<title>\u00e9')
    const document = { bytes: Buffer.concat([bytes, Buffer.from([0xc3])]), base: 'https://a.test/', contentType: 'text/html' }
    expect(await inspectDocument({ ...document, isCut: true })).toMatchObject({ charset: 'utf-8' })
    expect(await inspectDocument({ ...document, isCut: false })).toMatchObject({ charset: 'windows-1252' })
  })

  it.each(['text/plain', 'application/json; charset=utf-8'])('finds nothing in a document of type %s, since a crawl reads only HTML', async (contentType) => {
    expect(await inspectDocument(documentOf({ html: '<title>t</title><a href=x>x</a>', contentType }))).toMatchObject({ links: [], counts: {}, text: 0 })
  })

  it('tells by its first character whether a document without a type is HTML, as a crawl does', async () => {
    const document = { base: 'https://a.test/', contentType: undefined, isCut: false }
    expect(await inspectDocument({ ...document, bytes: Buffer.from(' <a href=x>') })).toMatchObject({ counts: { a: 1 } })
    expect(await inspectDocument({ ...document, bytes: Buffer.from('x <a href=x>') })).toMatchObject({ counts: {} })
  })

  it('reads a file, and says which one it cannot', async () => {
    const file = path.join(dir, 'page.html')
    fs.writeFileSync(file, html)
    expect(await inspectDocument(documentOf({ file }))).toMatchObject({ title: 'Ein Titel', charsetFrom: 'meta' })
    expect(() => documentOf({ file: `${file}.not` })).toThrow(expect.objectContaining({ code: 'file_unreadable', message: expect.stringContaining(`${file}.not`) }))
  })

  it('notices a page that is built in the browser', async () => {
    expect(await inspectDocument(documentOf({ html: '<body><div id="root"></div><script src="/app.js"></script>' }))).toMatchObject({ needsJs: true })
  })

  it.each([[{}], [{ html: 'a', base64: 'b' }], [{ html: 7 }], [{ html: 'a', base: 7 }], [{ html: 'a', base: 'nowhere' }]])('refuses %o', (args) => {
    expect(() => documentOf(args as Answer)).toThrow(expect.objectContaining({ exitCode: 2 }))
  })

  it('is shown to people one fact and one link a line', async () => {
    const lines = textOf(await inspectDocument(documentOf({ html, base: 'https://a.test/p' }))).split('\n')
    expect(lines).toContain('title: Ein Titel')
    expect(lines).toContain('links: 4')
    expect(lines).toContain('  a      https://a.test/b/x [nofollow]')
  })
})

describe('inspect robots', () => {
  const robots = 'User-agent: *\nDisallow: /\n\nUser-agent: mybot # ours\nDisallow: /a\nAllow: /a/%62$\nRequest-rate: 1/5s\nSitemap: /s.xml\nSitemap: mailto:x\n'

  it.each([
    [{ agent: 'MyBot/1.0', url: 'https://a.test/a/c' }, { allowed: false, line: 5, rule: 'Disallow: /a', crawlDelayMs: 5_000, sitemaps: ['https://a.test/s.xml'] }],
    [{ agent: 'Mozilla/5.0 (compatible; MyBot/1.0; +https://x.test)', url: 'https://a.test/a/b' }, { allowed: true, line: 6, rule: 'Allow: /a/b$', crawlDelayMs: 5_000, sitemaps: ['https://a.test/s.xml'] }],
    [{ agent: 'other', url: 'http://a.test/' }, { allowed: false, line: 2, rule: 'Disallow: /', sitemaps: ['http://a.test/s.xml'] }],
    [{ agent: '*', url: 'http://a.test/robots.txt' }, { allowed: true, sitemaps: ['http://a.test/s.xml'] }],
    [{ url: 'http://a.test/x#y' }, { allowed: false, line: 2, rule: 'Disallow: /', sitemaps: ['http://a.test/s.xml'] }],
  ])('answers %o with the line that decides', (asked, answer) => {
    expect(inspectRobots({ robots, ...asked })).toEqual(answer)
    expect(inspectRobots({ base64: Buffer.from(robots).toString('base64'), ...asked })).toEqual(answer)
  })

  it('says why there is no line when a URL is denied for want of time', () => {
    const wild = `User-agent: *\n${Array.from({ length: 3_000 }, (_, at) => `Disallow: /*b${at}`).join('\n')}`
    expect(inspectRobots({ robots: wild, url: `http://a.test/${'a'.repeat(7_000)}` })).toMatchObject({ allowed: false, note: expect.stringContaining('wildcards') })
  })

  it.each([[{}], [{ robots, base64: '' }], [{ robots: 7, url: 'http://a.test/' }], [{ robots }], [{ robots, url: 'nowhere' }], [{ robots, url: 'http://a.test/', agent: 7 }]])('refuses %o', (args) => {
    expect(() => inspectRobots(args as Answer)).toThrow(expect.objectContaining({ code: 'usage' }))
  })

  it('asks a server as the crawl does: redirects are followed, 404 allows, 503 is a failure', async () => {
    let [status, location] = [200, '']
    const server = http.createServer(({ url }, response) => {
      if (location !== '' && url === '/robots.txt') return response.writeHead(301, { location }).end()
      return response.writeHead(status).end(robots)
    })
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ask = (asked: Answer = {}) => inspectFetchedRobots(`${origin}/a/c`, { agent: 'mybot', ...asked }, { allowAddress: ['127.0.0.0/8'] })
    const answer = { allowed: false, line: 5, rule: 'Disallow: /a', crawlDelayMs: 5_000, sitemaps: [`${origin}/s.xml`], status: 200 }
    expect(await ask()).toEqual({ ok: true, answer })
    location = '/elsewhere'
    expect(await ask({ url: `${origin}/a/b` })).toEqual({ ok: true, answer: { ...answer, allowed: true, line: 6, rule: 'Allow: /a/b$' } })
    location = ''
    status = 404
    expect(await ask()).toEqual({ ok: true, answer: { allowed: true, sitemaps: [], status: 404 } })
    status = 503
    expect(await ask()).toEqual({ ok: false, code: 'robots_unreachable', message: 'robots.txt answers 503' })
    await new Promise((resolve) => { server.close(resolve) })
    await expect(inspectFetchedRobots('http://a.test:1/', {}, {})).rejects.toThrow(expect.objectContaining({ code: 'usage', message: expect.stringMatching(/^URL: expected/) }))
  })
})

describe('inspect sitemap', () => {
  const sitemap = `<urlset><url><loc>/a</loc><lastmod>2026-01-02</lastmod><priority>0.8</priority></url><url><loc>mailto:x</loc></url></urlset>`

  it('answers type, entries and errors in the documented shape, packed or not', async () => {
    for (const bytes of [Buffer.from(sitemap), gzipSync(sitemap)]) {
      expect(await inspectSitemap(sitemapOf({ base64: bytes.toString('base64'), base: 'https://a.test/s/sitemap.xml' }))).toEqual({
        type: 'urlset', urls: [{ url: 'https://a.test/a', lastmod: '2026-01-02', priority: 0.8 }], errors: ['not an http or https address: "mailto:x"'],
      })
    }
  })

  it('has no type for what is none, and says why', async () => {
    expect(await inspectSitemap(sitemapOf({ base64: Buffer.from('<html><body>').toString('base64') }))).toEqual({ urls: [], errors: ['no sitemap: its root element is "html"'] })
  })

  it('shows all entries of one that has more than a crawl takes, and says so', async () => {
    const list = Array.from({ length: limits.sitemapEntriesMax + 1 }, (_, at) => `http://a.test/${at}`).join('\n')
    const { urls, errors } = await inspectSitemap(sitemapOf({ base64: Buffer.from(list).toString('base64') }))
    expect(urls).toHaveLength(limits.sitemapEntriesMax + 1)
    expect(errors).toEqual([`it has ${limits.sitemapEntriesMax + 1} entries, of which a crawl takes the first ${limits.sitemapEntriesMax}`])
  })

  it('is shown to people one entry a line, and no control character reaches the terminal', async () => {
    const bytes = Buffer.from(`${sitemap.replace('mailto:x', 'mailto:\u009b31m')}`)
    expect(sitemapText(await inspectSitemap(sitemapOf({ base64: bytes.toString('base64') })))).toBe([
      'type: urlset', 'urls: 1', '  https://base.invalid/a  2026-01-02  0.8', 'error: not an http or https address: "mailto: 31m"', '',
    ].join('\n'))
  })

  it.each([[{}], [{ base64: 'b', file: 'f' }], [{ base64: 7 }], [{ base64: '', base: 'nowhere' }], [{ file: '/none' }]])('refuses %o', (args) => {
    expect(() => sitemapOf(args as Answer)).toThrow(expect.objectContaining({ exitCode: 2 }))
  })
})

describe('a batch', () => {
  async function answers(chunks: readonly string[]): Promise<unknown[]> {
    const lines: string[] = []
    await answerLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), async (line) => { lines.push(line) }, (args) => {
      if (args['throw'] === true) throw new Error('thrown\nin two lines')
      return args
    })
    return lines.map((line) => {
      expect(line.indexOf('\n')).toBe(line.length - 1)
      return JSON.parse(line) as unknown
    })
  }

  it('answers every line in its order, however the bytes are cut', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.record({ url: fc.string() })), fc.integer({ min: 1, max: 30 }), async (args, charsMax) => {
      const text = args.map((each) => `${JSON.stringify(each)}\n`).join('')
      const chunks = Array.from({ length: Math.ceil(text.length / charsMax) }, (_, index) => text.slice(index * charsMax, (index + 1) * charsMax))
      fc.pre(!/[\uD800-\uDFFF]/.test(text))
      expect(await answers(chunks)).toEqual(args)
    }))
  })

  it('has an answer for a line that is no JSON, no object, or fails, and goes on', async () => {
    expect(await answers(['{"a":1}\n\nnot json\n[1]\nnull\n{"throw":true}\n{"b":2}'])).toEqual([
      { a: 1 }, { error: expect.stringMatching(/JSON/) }, { error: 'expected a JSON object of arguments' }, { error: 'expected a JSON object of arguments' },
      { error: 'thrown in two lines' }, { b: 2 },
    ])
  })
})

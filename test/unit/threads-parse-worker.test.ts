import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../engine/core/errors.ts'
import { limits } from '../../engine/core/limits.ts'
import type { PageMeta, ParsedResult, RefusalReason } from '../../engine/core/types.ts'
import { contentHashOf } from '../../engine/core/url-key.ts'
import type { Extractor, ParsedPage } from '../../threads/extractor.ts'
import { LinkCollector } from '../../threads/html/links.ts'
import { Inflater } from '../../threads/inflate.ts'
import { parsePage, type ParseTools } from '../../threads/parse-worker.ts'
import { metaOf } from '../support/pool-rig.ts'

const url = 'http://site.example/dir/page'
const tools: ParseTools = {
  inflater: new Inflater(10_000), collector: new LinkCollector({ include: [], exclude: [] }),
  agent: 'sluice', extractor: undefined, sink: undefined, nowMs: () => 5,
}

function parse(body: string | Uint8Array, meta: Partial<PageMeta> = {}, more: Partial<ParseTools> = {}, header = ''): Promise<ParsedResult> {
  const page = {
    meta: metaOf(url, meta), redirects: meta.redirectedFrom?.length ?? 0,
    headerBlock: Buffer.from(`Content-Type: text/html\r\nSet-Cookie: a\r\nset-cookie: b\r\n${header}`), body: Buffer.from(body),
  }
  return parsePage(page, { ...tools, ...more })
}

function recordOf({ line }: ParsedResult): Record<string, unknown> {
  return JSON.parse(`${Buffer.from(line).toString()}}`) as Record<string, unknown>
}

function urls({ links }: ParsedResult): string[] {
  return Array.from({ length: links.count }, (_, index) => `${links.url(index)}${links.isRedirect(index) ? ' (redirect)' : ''}`)
}

describe('a page that was read', () => {
  const html = '<html lang=en><title>T</title><link rel=canonical href="/c"><meta name=robots content=noindex><a href=/a>a</a><a href=/a#x>a</a>'

  it('has its facts in the record, and none that are absent', async () => {
    const result = await parse(html, { referrer: 'http://r.example/', etag: '"1"', ip: '127.0.0.1', timings: { totalMs: 7 } }, {}, 'X-Robots-Tag: nofollow\r\n')
    expect(result).toMatchObject({ outcome: 'ok', bodyBytes: html.length, contentHash: contentHashOf(Buffer.from(html)) })
    expect(urls(result)).toEqual(['http://site.example/a'])
    expect(recordOf(result)).toEqual({
      url, status: 200, outcome: 'ok', fetchedAt: '2026-01-01T00:00:00.000Z', depth: 0, referrer: 'http://r.example/', attempts: 1,
      contentType: 'text/html', charset: 'utf-8', bytes: html.length, wireBytes: html.length, title: 'T', lang: 'en',
      canonical: 'http://site.example/c', robots: { noindex: true, nofollow: true }, links: 1,
      hash: Buffer.from(contentHashOf(Buffer.from(html))).toString('hex'), etag: '"1"', ip: '127.0.0.1', timings: { totalMs: 7, parseMs: 0 },
    })
  })

  it('counts wire and decoded bytes apart, and says when either was cut', async () => {
    const body = gzipSync(`<a href=/first>x</a>${' '.repeat(20_000)}`)
    expect(recordOf(await parse(body, { contentEncoding: 'gzip' }))).toMatchObject({ bytes: 10_000, wireBytes: body.length, truncated: true, links: 1 })
    expect(recordOf(await parse(body.subarray(0, -9), { contentEncoding: 'gzip', truncated: true }))).toMatchObject({ outcome: 'ok', truncated: true })
    expect(recordOf(await parse('<p>x'))['truncated']).toBeUndefined()
  })

  it('counts the links that name a user, on each page again, and keeps none of their passwords', async () => {
    const html = '<a href="//me:secret@site.example/a">x</a><a href="http://me:secret@site.example/a">x</a><a href="/@me">x</a><a href="//me:secret@site.example:25/">x</a>'
    for (let visit = 0; visit < 2; visit += 1) {
      const result = await parse(html)
      expect(recordOf(result)).toMatchObject({ links: 2, userinfo: 2 })
      expect(result.refused.port).toBe(1)
      expect(urls(result)).toEqual(['http://site.example/a', 'http://site.example/@me'])
      expect(Buffer.from(result.line).toString()).not.toContain('secret')
    }
    for (const [location, facts] of [['http://me:secret@site.example/b', { redirectTo: 'http://site.example/b', userinfo: 1 }], ['http://me:secret@site.example:25/b', { redirectTo: 'http://***@site.example:25/b' }]] as const) {
      const result = await parse('', { status: 302, location })
      expect(recordOf(result)).toMatchObject({ outcome: 'redirect', ...facts })
      expect(Buffer.from(result.line).toString()).not.toContain('secret')
    }
  })

  it('probably needs a browser when it has scripts and hardly any text', async () => {
    expect(recordOf(await parse('<div id=root></div><script src=/app.js></script>'))['needsJs']).toBe(true)
    expect(recordOf(await parse('<p>short</p><script>small()</script>'))['needsJs']).toBeUndefined()
    expect(recordOf(await parse(`<script src=/app.js></script><p>${'word '.repeat(60)}`))['needsJs']).toBeUndefined()
  })

  it('needs scripts by what it holds, in UTF-16 too', async () => {
    const shell = `<nav>${'menu '.repeat(80)}</nav><div id=root></div><script src=/app.js></script>`
    for (const body of [Buffer.from(shell), Buffer.from(`\uFEFF${shell}`, 'utf16le')]) expect(recordOf(await parse(body))['needsJs']).toBe(true)
  })

  it('has no links when it is no HTML, by its type or, without one, by its first character', async () => {
    const result = await parse('<a href=/a>', { contentType: 'text/plain; charset=utf-8' })
    expect([result.links.count, recordOf(result)['links'], recordOf(result)['charset']]).toEqual([0, undefined, 'utf-8'])
    const { contentType: _type, ...untyped } = metaOf(url)
    const page = { meta: untyped, redirects: 0, headerBlock: new Uint8Array(0), body: Buffer.from(' <a href=/a>x</a>') }
    expect((await parsePage(page, tools)).links.count).toBe(1)
  })

  it('with a broken coding has the code bad_content_encoding', async () => {
    const result = await parse('no gzip at all', { contentEncoding: 'gzip' })
    expect(result).toMatchObject({ outcome: 'failed', code: 'bad_content_encoding' })
    expect(recordOf(result)).toMatchObject({ outcome: 'failed', code: 'bad_content_encoding', wireBytes: 14 })
  })

  it('that makes the reader throw costs itself parse_failed and nothing else', async () => {
    const broken = { collect: () => { throw new Error('no') } } as unknown as LinkCollector
    expect(await parse('<p>x', {}, { collector: broken })).toMatchObject({ outcome: 'failed', code: 'parse_failed' })
  })
})

describe('a redirect', () => {
  it('is an outcome whose target is a link of its own, and says where it points', async () => {
    const result = await parse('ignored <a href=/no>', { status: 301, location: '../moved?x#y' })
    expect([result.outcome, urls(result)]).toEqual(['redirect', ['http://site.example/moved?x (redirect)']])
    expect(recordOf(result)).toMatchObject({ outcome: 'redirect', redirectTo: 'http://site.example/moved?x', status: 301 })
    expect(recordOf(result)['bytes']).toBeUndefined()
  })

  it('too many of them in a chain are redirect_limit, counted without the chain itself', async () => {
    const meta = { status: 302, location: '/next' }
    const chain = (hops: number): string[] => Array.from({ length: hops }, (_, index) => `http://site.example/${index}`)
    expect((await parse('', { ...meta, redirectedFrom: chain(limits.redirectsMax - 1) })).outcome).toBe('redirect')
    expect(await parse('', { ...meta, redirectedFrom: chain(limits.redirectsMax) })).toMatchObject({ outcome: 'failed', code: 'redirect_limit', links: { count: 0 } })
    const page = { meta: metaOf(url, meta), redirects: limits.redirectsMax, headerBlock: new Uint8Array(0), body: new Uint8Array(0) }
    expect((await parsePage(page, tools)).code).toBe('redirect_limit')
  })

  it('to what is no address is counted as refused', async () => {
    const result = await parse('', { status: 302, location: 'mailto:a@b.example' })
    expect([result.outcome, result.links.count, result.refused.scheme]).toEqual(['redirect', 0, 1])
  })

  const site = 'http://site.example'
  it.each<[what: string, status: number, location: string | undefined, outcome: string, redirectTo?: string, refused?: RefusalReason]>([
    ['300 with its choice', 300, '/b', 'redirect', `${site}/b`],
    ['300 without one', 300, undefined, 'http_error'],
    ['304 that nobody asked for', 304, undefined, 'http_error'],
    ['304 with a Location', 304, '/b', 'http_error'],
    ['305, whose Location is a proxy', 305, 'http://proxy.example/', 'http_error'],
    ['306, which has no meaning any more', 306, '/b', 'http_error'],
    ['a status that is not known, as 300', 399, '/b', 'redirect', `${site}/b`],
    ['a Location with a 200', 200, '/b', 'ok'],
    ['a Location that is relative', 302, 'b?c', 'redirect', `${site}/dir/b?c`],
    ['a Location with a fragment', 307, '/b#c', 'redirect', `${site}/b`],
    ['a Location with spaces', 308, '/b c', 'redirect', `${site}/b%20c`],
    ['a Location in UTF-8', 301, Buffer.from('/é?ü').toString('latin1'), 'redirect', `${site}/%C3%A9?%C3%BC`],
    ['a Location in Latin-1', 301, '/\u00E9', 'redirect', `${site}/%E9`],
    ['a Location with escapes and bytes', 301, '/%e2\u0098%', 'redirect', `${site}/%e2%98%`],
    ['a host name in UTF-8', 301, Buffer.from('http://bücher.example/').toString('latin1'), 'redirect', 'http://xn--bcher-kva.example/'],
    ['a host name in Latin-1', 301, 'http://b\u00FCcher.example/', 'redirect', 'http://b%FCcher.example/', 'invalid'],
    ['a Location with a user', 302, 'http://me:secret@site.example/b', 'redirect', `${site}/b`],
    ['another scheme with a user', 302, 'ftp://me:secret@site.example/b', 'redirect', 'ftp://***@site.example/b', 'scheme'],
    ['a script', 302, 'javascript:alert(1)', 'redirect', 'javascript:alert(1)', 'scheme'],
    ['data', 302, 'data:text/html,x', 'redirect', 'data:text/html,x', 'scheme'],
    ['no address', 302, 'http://', 'redirect', 'http://', 'invalid'],
    ['15 KB', 302, `/${'x'.repeat(15_000)}`, 'redirect', `/${'x'.repeat(limits.urlBytesMax - 1)}`, 'too_long'],
  ])('is read: %s', async (_, ...[status, location, outcome, redirectTo, refused]) => {
    // A body of HTML is there each time, and its links are followed with 200 alone.
    const result = await parse('<a href=/in-the-body>x</a>', { status, ...(location !== undefined && { location }) })
    const target = redirectTo === undefined || refused !== undefined ? [] : [`${redirectTo} (redirect)`]
    expect([result.outcome, urls(result)]).toEqual([outcome, outcome === 'ok' ? ['http://site.example/in-the-body'] : target])
    expect(recordOf(result)['redirectTo']).toBe(redirectTo)
    expect(Object.entries(result.refused).filter(([, count]) => count > 0)).toEqual(refused === undefined ? [] : [[refused, 1]])
  })
})

describe('a refresh', () => {
  const element = (content: string): string => `<meta http-equiv=refresh content="${content}"><a href=/a>x</a>`
  const refreshOf = (result: ParsedResult): unknown => recordOf(result)['refresh']
  const hops = (count: number): string[] => Array.from({ length: count }, (_, index) => `http://site.example/${index}`)

  it.each(['0; url=/next', '5;/next', '5.9; url=/next', '.5, /next'])('that is quick (%s) is a hop of the page, which is read all the same', async (content) => {
    for (const result of [await parse(element(content)), await parse('<a href=/a>x</a>', { refresh: content })]) {
      expect([result.outcome, urls(result)]).toEqual(['ok', ['http://site.example/next (redirect)', 'http://site.example/a']])
      expect(recordOf(result)).toMatchObject({ refresh: { delaySeconds: Number.parseInt(`0${content}`, 10), url: 'http://site.example/next' }, links: 1 })
    }
  })

  it('that is slow is a link, and no deeper than any other', async () => {
    const slow = '6; url=/next'
    expect(urls(await parse(element(slow)))).toEqual(['http://site.example/next', 'http://site.example/a'])
    expect(urls(await parse('<a href=/a>x</a>', { refresh: slow }))).toEqual(['http://site.example/next', 'http://site.example/a'])
    for (const result of [await parse(element(slow), { followLinks: false }), await parse('<a href=/a>x</a>', { refresh: slow, followLinks: false })]) {
      expect([urls(result), result.refused.depth]).toEqual([[], 2])
      expect(refreshOf(result)).toEqual({ delaySeconds: 6, url: 'http://site.example/next' })
    }
  })

  it('that is quick is followed from the deepest page: a hop adds no depth', async () => {
    const result = await parse(element('0; url=/next'), { followLinks: false })
    expect([urls(result), result.refused.depth]).toEqual([['http://site.example/next (redirect)'], 1])
  })

  it('of the header goes before the element, which is a link then; without an address it goes before nothing', async () => {
    const both = await parse(element('0; url=/element'), { refresh: '0; url=/header' })
    expect(urls(both)).toEqual(['http://site.example/header (redirect)', 'http://site.example/element', 'http://site.example/a'])
    expect(urls(await parse(element('0; url=/element'), { refresh: '0' }))).toEqual(['http://site.example/element (redirect)', 'http://site.example/a'])
  })

  it('of the header is relative to the page, of the element to its base, in the encoding of the document', async () => {
    expect(urls(await parse('<base href=http://other.example/x/>', { refresh: '0; url=next' }))).toEqual(['http://site.example/dir/next (redirect)'])
    const legacy = Buffer.from('<meta charset=windows-1252><base href=http://other.example/x/><meta http-equiv=refresh content="0; url=next?\u00E9">', 'latin1')
    expect(urls(await parse(legacy))).toEqual(['http://other.example/x/next?%E9 (redirect)'])
  })

  it('counts in what is no HTML too', async () => {
    expect(urls(await parse('text', { contentType: 'text/plain', refresh: '0; url=/next' }))).toEqual(['http://site.example/next (redirect)'])
  })

  it('behind as many hops as a chain has is a link', async () => {
    const [last, over] = [{ redirectedFrom: hops(limits.redirectsMax - 1) }, { redirectedFrom: hops(limits.redirectsMax) }]
    for (const [body, meta] of [[element('0; url=/next'), {}], ['<a href=/a>x</a>', { refresh: '0; url=/next' }]] as const) {
      expect(urls(await parse(body, { ...meta, ...last }))[0]).toBe('http://site.example/next (redirect)')
      expect(await parse(body, { ...meta, ...over })).toMatchObject({ outcome: 'ok' })
      expect(urls(await parse(body, { ...meta, ...over }))[0]).toBe('http://site.example/next')
    }
  })

  it.each(['javascript:alert(1)', 'data:text/html,x', 'mailto:a@b.example'])('to %s is refused once, and is no fact', async (target) => {
    for (const seconds of [0, 60]) {
      for (const result of [await parse(element(`${seconds}; url=${target}`)), await parse('<a href=/a>x</a>', { refresh: `${seconds}; url=${target}` })]) {
        expect([urls(result), result.refused.scheme, refreshOf(result)]).toEqual([['http://site.example/a'], 1, undefined])
      }
    }
  })

  it('out of scope or against --exclude is refused once', async () => {
    const collector = new LinkCollector({ include: [], exclude: [/next/] })
    for (const seconds of [0, 60]) {
      for (const [body, meta] of [[element(`${seconds}; url=/next`), {}], ['<a href=/a>x</a>', { refresh: `${seconds}; url=/next` }]] as const) {
        const result = await parse(body, meta, { collector })
        expect([urls(result), result.refused.pattern]).toEqual([['http://site.example/a'], 1])
      }
    }
  })

  it('is a fact and nothing else where refreshes are no links', async () => {
    for (const seconds of [0, 60]) {
      for (const [body, meta] of [[element(`${seconds}; url=/next`), {}], ['<a href=/a>x</a>', { refresh: `${seconds}; url=/next` }]] as const) {
        const result = await parse(body, meta, { linkElements: ['a'] })
        expect([urls(result), refreshOf(result)]).toEqual([['http://site.example/a'], { delaySeconds: seconds, url: 'http://site.example/next' }])
      }
    }
  })

  it('after more seconds than there are numbers has as many as there are', async () => {
    expect(refreshOf(await parse(element(`${'9'.repeat(400)}; url=/next`)))).toEqual({ delaySeconds: Number.MAX_SAFE_INTEGER, url: 'http://site.example/next' })
  })

  it('of an error page is not followed, as its links are not', async () => {
    expect((await parse(element('0; url=/next'), { status: 404, refresh: '0; url=/next' })).links.count).toBe(0)
  })
})

describe('an error of the server', () => {
  it('is an outcome; its links are not followed, and its body is known by its hash', async () => {
    const result = await parse('<a href=/a>x</a>', { status: 404 })
    expect(result).toMatchObject({ outcome: 'http_error', bodyBytes: 16, links: { count: 0 }, contentHash: contentHashOf(Buffer.from('<a href=/a>x</a>')) })
    expect(result.code).toBeUndefined()
  })

  it('stays what it is when its body is broken', async () => {
    expect((await parse('no gzip', { status: 500, contentEncoding: 'gzip' })).outcome).toBe('http_error')
  })
})

describe('an extractor', () => {
  const extract = (extractor: Extractor, body = '<title>T</title><a href=/a rel=next>x</a>'): Promise<ParsedResult> => parse(body, {}, { extractor })

  it('sees the page as it was, and its answer is the record', async () => {
    let page: ParsedPage | undefined
    const result = await extract(async (given) => {
      page = given
      await Promise.resolve()
      return {
        title: given.document.querySelector('title')?.text, text: given.text.length, links: given.links, meta: given.meta,
        status: given.status, charset: given.charset, cookie: given.headers['set-cookie'], body: Buffer.from(given.body).toString().length,
      }
    })
    expect(recordOf(result)['record']).toEqual({
      title: 'T', text: 41, links: [{ url: 'http://site.example/a', element: 'a', rel: 'next' }], meta: { title: 'T', robots: {} },
      status: 200, charset: 'utf-8', cookie: 'a, b', body: 41,
    })
    expect(page!.text.length).toBe(41)
  })

  it('cannot have afterwards what it did not ask for, when the buffer holds another page', async () => {
    let page: ParsedPage | undefined
    await extract((given) => { page = given })
    expect(() => page!.body).toThrow(/no longer in hand/)
    expect(() => page!.text).toThrow(/no longer in hand/)
    expect(page!.url).toBe(url)
  })

  it('that returns nothing leaves no record, and null is a record', async () => {
    expect('record' in recordOf(await extract(() => undefined))).toBe(false)
    expect(recordOf(await extract(() => null))['record']).toBe(null)
  })

  it('that fails costs its page extractor_failed; the links are reported and the facts are kept', async () => {
    for (const extractor of [() => { throw new Error('no') }, () => Promise.reject(new Error('no')), () => 1n, () => Symbol('x'), () => 'x'.repeat(limits.extractedBytesMax)]) {
      const result = await extract(extractor)
      expect([result.code, urls(result), recordOf(result)['title']]).toEqual(['extractor_failed', ['http://site.example/a'], 'T'])
    }
  })

  it('is asked about pages that were read only', async () => {
    const extractor = (): never => { throw new Error('asked') }
    expect((await parse('', { status: 404 }, { extractor })).outcome).toBe('http_error')
  })
})

describe('a sink', () => {
  it('gets each answer as received, and the record says where it lies', async () => {
    const seen: Uint8Array[] = []
    const sink = { append: ({ body }: { body: Uint8Array }) => { seen.push(body); return { file: 3, offset: 17, length: 5 } } }
    const body = gzipSync('<p>x')
    const result = await parse(body, { contentEncoding: 'gzip' }, { sink })
    expect([result.warc, recordOf(result)['warc']]).toEqual([{ file: 3, offset: 17, length: 5 }, { file: 'warc/sluice-000003.warc.gz', offset: 17 }])
    expect(Buffer.from(seen[0]!).equals(body)).toBe(true)
    expect((await parse('', { status: 404 }, { sink })).warc).toBeDefined()
  })

  it('that cannot write throws: it is no fault of the page', async () => {
    const sink = { append: () => { throw new SluiceError('disk_failed', 'full') } }
    await expect(parse('<p>x', {}, { sink })).rejects.toMatchObject({ code: 'disk_failed' })
  })
})

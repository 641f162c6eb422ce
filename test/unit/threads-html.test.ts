import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { registrableDomainOf } from '../../engine/core/domain.ts'
import { limits } from '../../engine/core/limits.ts'
import { fingerprintOf, hostHashOf, parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import { parseDocument } from '../../threads/html/document.ts'
import { baseOf, LinkCollector, refusalOf, type LinkRules } from '../../threads/html/links.ts'
import { readHtml, type HtmlFacts } from '../../threads/html/read-html.ts'
import { readDirectives } from '../../threads/html/robots-directives.ts'
import { ScopeTable } from '../../threads/scope-table.ts'
import { corpusPath } from '../support/corpus.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const read = (html: string): HtmlFacts => readHtml(bytes(html))
const hrefs = (html: string): string[] => read(html).links.map(({ href }) => href)

describe('readHtml', () => {
  it('reads the elements that link, in document order, with character references replaced', () => {
    expect(read('<a href="/a?x=1&amp;y=2" rel=nofollow>a</a><map><area href=/b></map><iframe src=/c></iframe><link rel="alternate" href=/d><link rel=stylesheet href=/no><frame src=/e>').links).toEqual([
      { href: '/a?x=1&y=2', element: 'a', rel: 'nofollow' }, { href: '/b', element: 'area' }, { href: '/c', element: 'iframe' },
      { href: '/d', element: 'link', rel: 'alternate' }, { href: '/e', element: 'frame' },
    ])
  })

  it('reads no links in comments, scripts, styles and templates, and those in noscript', () => {
    expect(hrefs('<!-- <a href=1> --><script>"<a href=2>"</script><style><a href=3></style><template><a href=4>x</a></template><noscript><a href=5>x</a></noscript>')).toEqual(['5'])
  })

  it('ends a script at its end tag, whatever the case of either', () => {
    expect(hrefs('<SCRIPT>1</script><a href=1>x</a><script>2</SCRIPT><a href=2>x</a><Style>3</style><a href=3>x</a>')).toEqual(['1', '2', '3'])
  })

  it('takes the first base, the first title and the first canonical address', () => {
    expect(read('<title> One\n &amp; two </title><base target=_top><base href="/x/"><base href="/y/"><link rel=canonical href=/z><link rel=canonical href=/zz><svg><title>no</title></svg>'))
      .toMatchObject({ title: 'One & two', base: '/x/', canonical: '/z' })
  })

  it.each([
    ['5; url=/next', { delaySeconds: 5, url: '/next' }], ["0;URL='/q'", { delaySeconds: 0, url: '/q' }],
    ['3,/comma', { delaySeconds: 3, url: '/comma' }], ['10', undefined], ['', undefined],
  ])('reads the refresh %j', (content, refresh) => {
    const facts = read(`<meta http-equiv=Refresh content="${content}">`)
    expect(facts.refresh).toEqual(refresh)
    expect(facts.links.map(({ href }) => href)).toEqual(refresh === undefined ? [] : [refresh.url])
  })

  it('counts text and script apart', () => {
    const facts = read('<title>title</title><p> four </p><script>123456</script><script src=/x></script><style>p{}</style>')
    expect(facts).toMatchObject({ textLength: 4, scriptLength: 6, scriptsLoaded: 1 })
  })

  it('has no facts that are not there', () => {
    expect(read('plain')).toEqual({ charset: 'utf-8', charsetFrom: 'guess', robots: {}, links: [], textLength: 5, scriptLength: 0, scriptsLoaded: 0 })
  })
})

describe('hostile documents', () => {
  const KB = 1_024
  const of = (piece: string): string => piece.repeat(Math.ceil(250 * KB / piece.length))
  // Each took node-html-parser from 2 to more than 20 s; a test may not measure time, but it may not end in time either.
  it.each(['<div>', '<a href=x>', '<b>x', '<div><span><b>', '<!--', '<![CDATA[', '<h3>', '<p>x', '<li>x'])('250 KB of %s are read, a link before them included', (piece) => {
    expect(hrefs(`<a href=/first>x</a>${of(piece)}`)[0]).toBe('/first')
  }, 5_000)

  it('keep the text before the first of many comments without an end', () => {
    expect(parseDocument(`<p>before</p>${'<!--'.repeat(200)}`).text).toBe('before')
    expect(parseDocument('<p>before</p><!-- one <p>after</p>').text).toContain('after')
  })
})

describe('robots directives', () => {
  it('are read from meta elements and headers, those for other agents left out', () => {
    expect(read('<meta name=ROBOTS content="NoIndex, follow">').robots).toEqual({ noindex: true })
    expect(readDirectives(['none'])).toEqual({ noindex: true, nofollow: true })
    expect(readDirectives(['otherbot: noindex, nofollow'], 'sluice')).toEqual({})
    expect(readDirectives(['otherbot: noindex, sluice: nofollow'], 'sluice')).toEqual({ nofollow: true })
    expect(readDirectives(['unavailable_after: 25 Jun 2030, noindex'])).toEqual({ noindex: true })
  })
})

describe('LinkCollector', () => {
  const page = 'http://site.example/dir/page'
  const collect = (list: string[], rules: Partial<LinkRules> = {}, followLinks = true): ReturnType<LinkCollector['collect']> =>
    new LinkCollector({ include: [], exclude: [], ...rules }).collect(list.map((href) => ({ href, element: 'a' })), page, followLinks)
  const urls = ({ links }: ReturnType<LinkCollector['collect']>): string[] => Array.from({ length: links.count }, (_, index) => links.url(index))
  const refusedOf = ({ refused }: ReturnType<LinkCollector['collect']>): object => Object.fromEntries(Object.entries(refused).filter(([, count]) => count > 0))

  it('resolves, drops fragments and counts what has one key once', () => {
    const collected = collect(['a', './a#x', '/dir/a', '/dir/%61', 'http://SITE.example:80/dir/a', '//other.example/', '?q'])
    expect(urls(collected)).toEqual(['http://site.example/dir/a', 'http://other.example/', 'http://site.example/dir/page?q'])
    expect(collected.count).toBe(3)
    const url = parseFetchUrl('a', page)!
    expect(collected.links.fingerprint(0)).toEqual(fingerprintOf(urlKey(url)))
    expect(collected.links.hostHash(1)).toEqual(hostHashOf('other.example'))
    expect(collected.links.isRedirect(0)).toBe(false)
  })

  it('counts what it refuses by reason', () => {
    const long = `/${'x'.repeat(limits.urlBytesMax)}`
    const collected = collect(['javascript:void(0)', 'mailto:a@b', `data:text/html,${long}`, 'java\nscript:1', 'http://', 'http://a b/', long, `/${'ä'.repeat(limits.urlBytesMax / 4)}`, '/ok'])
    expect(refusedOf(collected)).toEqual({ scheme: 4, invalid: 2, too_long: 2 })
    expect(urls(collected)).toEqual(['http://site.example/ok'])
    expect(refusalOf('tel:1', page)).toBe('scheme')
  })

  it('applies patterns: one include is enough, one exclude is too', () => {
    const collected = collect(['/a', '/b', '/a-no'], { include: [/\/a/u, /\/c/u], exclude: [/no$/u] })
    expect(urls(collected)).toEqual(['http://site.example/a'])
    expect(refusedOf(collected)).toEqual({ pattern: 2 })
  })

  it('keeps to the scope, by host or by registrable domain, and sees a name that is added later', () => {
    const table = ScopeTable.create(10)
    table.add('site.example')
    const list = ['/in', 'http://www.site.example/sub', 'http://elsewhere.example/']
    const byHost = collect(list, { scope: { has: (hash) => table.has(hash), mode: 'host' } })
    expect(urls(byHost)).toEqual(['http://site.example/in'])
    expect(refusedOf(byHost)).toEqual({ scope: 2 })
    const domains = ScopeTable.create(10)
    domains.add('site.co.uk')
    const collector = new LinkCollector({ include: [], exclude: [], scope: { has: (hash) => domains.has(hash), mode: 'domain' } })
    const raw = ['http://www.site.co.uk/', 'http://other.co.uk/'].map((href) => ({ href, element: 'a' as const }))
    expect(collector.collect(raw, page, true).links.count).toBe(1)
    domains.add('other.co.uk')
    expect(collector.collect(raw, page, true).links.count).toBe(2)
  })

  it('drops what is known without counting it as refused, and never a redirect', () => {
    const known = { has: () => true }
    const collected = collect(['/a'], { known })
    expect([collected.links.count, collected.count, refusedOf(collected)]).toEqual([0, 1, {}])
    const target = new LinkCollector({ include: [], exclude: [], known }).redirect(new URL('http://site.example/a'))
    expect([target.links.count, target.links.isRedirect(0)]).toEqual([1, true])
  })

  it('refuses all links of a page that is too deep, and those beyond the limit of a page', () => {
    expect(refusedOf(collect(['/a', '/b'], {}, false))).toEqual({ depth: 2 })
    const many = collect(Array.from({ length: limits.linksPerPageMax + 5 }, (_, index) => `/${index}`))
    expect([many.links.count, refusedOf(many)]).toEqual([limits.linksPerPageMax, { too_many: 5 }])
  })

  it('resolves against the base element, unless that is no http address', () => {
    expect(baseOf(page, '/other/')).toBe('http://site.example/other/')
    expect(baseOf(page, 'data:text/plain,x')).toBe(page)
    expect(baseOf(page, undefined)).toBe(page)
  })
})

describe('registrable domain', () => {
  it('is one label more than the public suffix; an address and a suffix stand for themselves', () => {
    expect(['www.a.co.uk', 'a.b.github.io', 'example.com', '127.0.0.1', '[::1]', 'a.b.internalname', 'com', 'localhost'].map(registrableDomainOf))
      .toEqual(['a.co.uk', 'b.github.io', 'example.com', '127.0.0.1', '[::1]', 'b.internalname', 'com', 'localhost'])
  })
})

const corpus = corpusPath()
describe.skipIf(!existsSync(`${corpus}/links/page-links.json`) && (console.log(`skipped: no corpus at ${corpus}`), true))('corpus pages', () => {
  it('give nearly all links that parse5 finds', () => {
    const index = JSON.parse(readFileSync(`${corpus}/pages/index.json`, 'utf8')) as { file: string; serve_content_type: string }[] | { pages: { file: string; serve_content_type: string }[] }
    const truth = JSON.parse(readFileSync(`${corpus}/links/page-links.json`, 'utf8')) as Record<string, unknown>
    const pages = (Array.isArray(index) ? index : index.pages).slice(0, 60)
    const entries = new Map((Object.values(truth).flat() as { file?: string; a_href?: number }[]).map((one) => [one?.file, one?.a_href]))
    let [found, expected] = [0, 0]
    for (const { file, serve_content_type: contentType } of pages) {
      const facts = readHtml(brotliDecompressSync(readFileSync(`${corpus}/pages/${file}`)), { contentType })
      const count = entries.get(file)
      if (count === undefined) continue
      expected += count
      found += Math.min(count, facts.links.filter(({ element }) => element === 'a').length)
    }
    expect(expected).toBeGreaterThan(5_000)
    expect(found / expected).toBeGreaterThan(0.98)
  })
})

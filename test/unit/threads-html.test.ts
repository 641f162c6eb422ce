import { existsSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { registrableDomainOf } from '../../engine/core/domain.ts'
import { limits } from '../../engine/core/limits.ts'
import { fingerprintOf, hostHashOf, parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import { parseDocument } from '../../threads/html/document.ts'
import { readHtml, type HtmlFacts } from '../../threads/html/read-html.ts'
import { readDirectives } from '../../threads/html/robots-directives.ts'
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

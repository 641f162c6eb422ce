import { describe, expect, it } from 'vitest'
import { registrableDomainOf } from '../../engine/core/domain.ts'
import { decode } from '../../threads/html/encodings.ts'
import { parseDocument } from '../../threads/html/document.ts'
import type { HtmlFacts } from '../../threads/html/html-facts.ts'
import { readHtml } from '../../threads/html/read-html.ts'
import { readDirectives } from '../../threads/html/robots-directives.ts'
import { plainFacts } from '../support/parse5-oracle.ts'
import { integer, pick, withSeeds } from '../support/random.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const read = (html: string): HtmlFacts => readHtml(bytes(html))
const links = (html: string): ReturnType<typeof plainFacts>['links'] => plainFacts(read(html)).links
const hrefs = (html: string): string[] => links(html).map(({ href }) => href)

describe('readHtml', () => {
  it('reads the elements that link, in document order, with character references replaced', () => {
    expect(links('<a href="/a?x=1&amp;y=2" rel=nofollow>a</a><map><area href=/b></map><iframe src=/c></iframe><link rel="alternate" href=/d><link rel=stylesheet href=/no>')).toEqual([
      { href: '/a?x=1&y=2', element: 'a', rel: 'nofollow' }, { href: '/b', element: 'area' }, { href: '/c', element: 'iframe' },
      { href: '/d', element: 'link', rel: 'alternate' },
    ])
    expect(links('<frameset><frame src=/e>')).toEqual([{ href: '/e', element: 'frame' }])
  })

  it('reads no links in comments, scripts, styles and templates, and those in noscript', () => {
    expect(hrefs('<!-- <a href=1> --><script>"<a href=2>"</script><style><a href=3></style><template><a href=4>x</a></template><noscript><a href=5>x</a></noscript>')).toEqual(['5'])
  })

  it('finds the encoding that a meta element names, however late, in what is markup, and after labels that name none', () => {
    const charset = (...parts: string[]): string => {
      const { name, from, unknownLabel } = readHtml(Buffer.from(`${parts.join('')}<title>\xef</title>`, 'latin1')).charset
      return [name, from, unknownLabel].filter(Boolean).join(' ')
    }
    const far = '<p>x</p>'.repeat(20_000)
    expect(charset(far, '<meta charset=windows-1251>')).toBe('windows-1251 meta')
    expect(readHtml(Buffer.from(`${far}<meta charset=koi8-r><title>\xef</title>`, 'latin1')).title).toBe('О')
    expect(charset(far, '<meta http-equiv=Content-Type content="text/html; charset=koi8-u">')).toBe('koi8-u meta')
    expect(charset(far, '<!-- <meta charset=koi8-r> --><script>"<meta charset=koi8-r>"</script><template><meta charset=koi8-r></template>')).toBe('windows-1252 guess')
    expect(charset(far, '<meta charset=nonsense><meta charset=koi8-r>')).toBe('koi8-r meta nonsense')
    expect(charset(far, '<meta charset=utf-16>')).toBe('utf-8 meta')
    expect(readHtml(Buffer.from(`${far}<meta charset=iso-2022-jp><a href="\x1b$B$"\x1b(B">x</a>`, 'latin1')).links.href(0)).toBe('あ')
  })

  it('makes no string of more than the first 64 KB of a title', () => {
    expect(read(`<title>${'&amp;'.repeat(100_000)}</title>`).title!.length).toBe(13_108)
  })

  it('takes an empty element of XHTML for empty when the document came as that', () => {
    const document = bytes('<html><head><title/><script src="a.js"/></head><body><a href="1">x</a><iframe src="2"/><a href="3">y</a></body></html>')
    const found = (contentType: string): string[] => plainFacts(readHtml(document, { contentType })).links.map(({ href }) => href)
    expect([found('application/xhtml+xml; charset=utf-8'), found('text/html')]).toEqual([['1', '2', '3'], []])
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
    expect(plainFacts(facts).links).toEqual(refresh === undefined ? [] : [{ element: 'meta', href: refresh.url }])
  })

  it('counts text and script apart', () => {
    const facts = read('<title>title</title><p> four </p><script>123456</script><script src=/x></script><style>p{}</style>')
    expect(facts).toMatchObject({ textLength: 4, scriptLength: 6, scriptsLoaded: 1 })
  })

  it('counts data in a script element as no script', () => {
    const data = ['application/ld+json', 'application/json', 'text/template', 'importmap'].map((type) => `<script type="${type}">{"data": true}</script>`).join('')
    expect(read(`<p>one</p>${data}`)).toMatchObject({ textLength: 3, scriptLength: 0, scriptsLoaded: 0 })
    expect(read(`${data}<script>1</script><script type="">2</script><script type=" Text/JavaScript ">3</script><script type=module>4</script>`).scriptLength).toBe(4)
  })

  it('counts no style, script or title of SVG as text, nor notes it for a fingerprint', () => {
    const facts = readHtml(bytes('<p>one<svg><style>.a{fill:red}</style><title>Icon</title><script>go()</script><text>two</text></svg>'), { wantsText: true })
    expect(facts.textLength).toBe('onetwo'.length)
    const { bytes: body } = facts.links
    expect(Array.from({ length: facts.textCount! }, (_, index) => Buffer.from(body.subarray(facts.texts![2 * index], facts.texts![2 * index + 1])).toString())).toEqual(['one', 'two'])
  })

  it('has no facts that are not there', () => {
    const { links: none, ...facts } = read('plain')
    expect(none.count).toBe(0)
    expect(facts).toEqual({ charset: { name: 'utf-8', from: 'guess', bomBytes: 0 }, robots: {}, headings: 0, textLength: 5, scriptLength: 0, scriptsLoaded: 0 })
  })

  it('leaves white space out of the count of text, and trims a title by that of HTML alone', () => {
    expect(read('<p> one \n\t two </p>').textLength).toBe('onetwo'.length)
    expect(read('<title>\u00A0a\u3000</title>').title).toBe('\u00A0a\u3000')
  })

  it.each(['gbk', 'gb18030', 'big5', 'shift_jis', 'euc-jp', 'euc-kr', 'utf-8'])('decodes a value in %s that ends inside of a character as the whole document would', async (encoding) => {
    const edges = [0x30, 0x39, 0x41, 0x5c, 0x80, 0x81, 0x8e, 0x8f, 0xa1, 0xb0, 0xc2, 0xe3, 0xf0, 0xfe, 0xff]
    await withSeeds(300, (random) => {
      const value = Buffer.from(Array.from({ length: 1 + integer(random, 6) }, () => pick(random, edges)))
      for (const [before, behind] of [['<a href="', '">'], ["<a href='", "'>"], ['<a href=', '>'], ['<a href=', ' x>'], ['<title>', '</title>']] as const) {
        const document = Buffer.concat([Buffer.from(before), value, Buffer.from(behind)])
        const facts = readHtml(document, { contentType: `text/html; charset=${encoding}` })
        const found = before === '<title>' ? facts.title : facts.links.href(0)
        expect([[...value], found]).toEqual([[...value], decode(document, encoding).slice(before.length, -behind.length)])
      }
    })
  })

  it.each(['utf-8', 'ibm866', 'iso-8859-5', 'windows-874', 'koi8-r', 'windows-1251', 'macintosh', 'utf-16le'])('counts each character of a text in %s, wherever its bytes lie', (encoding) => {
    const letters = Array.from({ length: 128 }, (_, index) => decode(Uint8Array.of(0x80 + index), encoding)).filter((letter) => /^\p{L}$/u.test(letter))
    const text = letters.length > 0 ? letters.join('') : 'a\u0416\u65E5\u{1F600}'
    const body = letters.length > 0 ? Uint8Array.from({ length: 128 }, (_, index) => 0x80 + index).filter((byte) => /^\p{L}$/u.test(decode(Uint8Array.of(byte), encoding)))
      : Buffer.from(text, encoding === 'utf-8' ? 'utf8' : 'utf16le')
    for (const tail of ['', '<p>']) {
      const document = Buffer.concat([body, Buffer.from(tail, encoding === 'utf-16le' ? 'utf16le' : 'utf8')])
      expect(readHtml(document, { contentType: `text/html; charset=${encoding}` }).textLength).toBe([...text].length)
    }
  })

  it('says where an address lies in the bytes, behind a byte order mark too', () => {
    const { links: found } = read('\uFEFF<a href="/\u00E9&amp;">')
    expect(Buffer.from(found.bytes.subarray(found.start(0), found.end(0))).toString()).toBe('/\u00E9&amp;')
    expect(found.href(0)).toBe('/\u00E9&')
  })

  it('takes the links of a document out of the places of the one before', () => {
    const first = read('<a href=/long-address rel=x>')
    expect(first.links.href(0)).toBe('/long-address')
    expect(hrefs('<a href=/b>')).toEqual(['/b'])
    expect(links('<a href=/b>')[0]).toEqual({ element: 'a', href: '/b' })
  })

  it('reads robots directives, description and generator of a document whose body a frameset replaces in its head alone', () => {
    expect(plainFacts(read('<meta name=robots content=nofollow><meta name=generator content=g><p><meta name=robots content=noindex><meta name=description content=d><script src=x></script><frameset>')))
      .toEqual({ links: [], robots: { nofollow: true }, generator: 'g', headings: 0, scriptsLoaded: 0 })
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

/** What pages, headers and links ask of a crawler: how it is read, what the record says of it, and what follows when it is obeyed. */
import { describe, expect, it } from 'vitest'
import { directives as all, type Directive, type PageMeta, type PageRecord, type ParsedResult } from '../../engine/core/types.ts'
import { limits } from '../../engine/core/limits.ts'
import type { Extractor } from '../../threads/extractor.ts'
import { readLinkFields } from '../../threads/html/link-header.ts'
import { LinkCollector } from '../../threads/html/links.ts'
import { isNofollow } from '../../threads/html/rel.ts'
import { productTokenOf } from '../../engine/core/product-token.ts'
import { Inflater } from '../../threads/inflate.ts'
import { readPageHead } from '../../threads/page-head.ts'
import { parsePage } from '../../threads/parse-worker.ts'
import { metaOf } from '../support/pool-rig.ts'
import { pick, withSeeds } from '../support/random.ts'

const url = 'http://site.example/dir/page'

/** `noindex nofollow` and so on. */
function wordsOf(robots: object | undefined): string {
  return Object.keys(robots ?? {}).join(' ')
}

function blockOf(...fields: readonly string[]): Buffer {
  return Buffer.from(['Content-Type: text/html', ...fields].map((field) => `${field}\r\n`).join(''), 'latin1')
}

interface Given {
  readonly header?: readonly string[]
  readonly obey?: readonly Directive[]
  readonly meta?: Partial<PageMeta>
  readonly extractor?: Extractor
}

interface Parsed {
  readonly result: ParsedResult
  readonly record: PageRecord
  readonly urls: readonly string[]
  readonly isArchived: boolean
}

async function parse(body: string, { header = [], obey = [], meta, extractor }: Given = {}): Promise<Parsed> {
  const archived: unknown[] = []
  const result = await parsePage(
    { meta: metaOf(url, meta), redirects: 0, headerBlock: blockOf(...header), body: Buffer.from(body) },
    {
      inflater: new Inflater(10_000), collector: new LinkCollector({ include: [], exclude: [], obeysRel: obey.includes('rel') }), agent: 'sluice', obey: new Set(obey),
      extractor, sink: { append: (page) => { archived.push(page); return { file: 0, offset: 0, length: 1 } } }, nowMs: () => 0,
    },
  )
  return {
    result, record: JSON.parse(`${Buffer.from(result.line).toString()}}`) as PageRecord, isArchived: archived.length === 1,
    urls: Array.from({ length: result.links.count }, (_, index) => result.links.url(index)),
  }
}

describe('X-Robots-Tag', () => {
  const cases: readonly (readonly [what: string, fields: readonly string[], words: string])[] = [
    ['has its directives in any case, with spaces or none', ['NoIndex,  noFollow ,NOARCHIVE'], 'noindex nofollow noarchive'],
    ['none is noindex and nofollow', ['none'], 'noindex nofollow'],
    ['all, index and follow ask for nothing', ['all, index, follow, archive'], ''],
    ['of two that contradict each other the stricter holds', ['index, noindex'], 'noindex'],
    ['several fields are added up', ['noindex', 'noarchive'], 'noindex noarchive'],
    ['what is for another agent is not for us', ['googlebot: noindex'], ''],
    ['what is for us is, in any case', ['Sluice: nofollow, noarchive'], 'nofollow noarchive'],
    ['what is for us comes to what is for all', ['noindex, sluice: noarchive'], 'noindex noarchive'],
    ['the name of an agent holds until the next one', ['googlebot: noindex, nofollow, sluice: noarchive'], 'noarchive'],
    ['the name of an agent holds in its own field alone', ['googlebot: noindex', 'nofollow'], 'nofollow'],
    ['a star is every agent', ['googlebot: noindex, *: noarchive'], 'noarchive'],
    ['a version behind the name is not looked at', ['sluice/1.0: noindex, other/2: noarchive'], 'noindex'],
    ['a longer name is another one', ['sluice-news: noindex, slui: nofollow'], ''],
    ['a date with commas and colons is no agent', ['unavailable_after: Wednesday, 25 Jun 2025, 15:00:00 PST, noindex'], 'noindex'],
    ['a directive with a value is no agent', ['max-snippet: 20, max-image-preview:none, max-video-preview: -1, noarchive'], 'noarchive'],
    ['the value of a directive is no directive', ['max-image-preview: none'], ''],
    ['directives after a value are for the agent before it', ['otherbot: unavailable_after: 25 Jun 2025 15:00:00 PST, noindex'], ''],
    ['a directive in a word or in a text is none', ['noindexing, no index, xnofollow'], ''],
    ['an empty one says nothing', ['', ' , ,, '], ''],
    ['broken ones are passed over', [':noindex', ': , nofollow', 'a b: noindex'], 'nofollow'],
  ]
  it.each(cases)('%s', (_, fields, words) => {
    expect(wordsOf(readPageHead(blockOf(...fields.map((field) => `X-Robots-Tag: ${field}`)), 'sluice').robots)).toBe(words)
  })

  it('is found in any case, wherever it stands, and no other field for it', () => {
    const block = Buffer.from('x-ROBOTS-tag:noindex\r\nX-Robots-Tags: nofollow\r\nA: X-Robots-Tag: nofollow\r\nX-Robots-Tag:\tnoarchive')
    expect(readPageHead(block, 'sluice').robots).toEqual({ noindex: true, noarchive: true })
    expect(readPageHead(new Uint8Array(0), 'sluice').robots).toEqual({})
  })

  it('beyond its first characters is not read', () => {
    const long = (before: number): string => wordsOf(readPageHead(blockOf(`X-Robots-Tag: ${','.repeat(before)}noindex`), 'sluice').robots)
    expect([long(limits.directivesCharsMax - 7), long(limits.directivesCharsMax)]).toEqual(['noindex', ''])
  })

  it('is asked for under the name that the user agent begins with', () => {
    expect(['Sluice/0.1 (+https://a.test)', 'My-Bot', 'Mozilla/5.0 (compatible; MyBot/1.0)'].map(productTokenOf)).toEqual(['Sluice', 'My-Bot', 'MyBot'])
  })

  it.each([[200, 'text/html', 'nofollow'], [203, 'text/plain', 'nofollow'], [404, 'text/html', ''], [304, 'text/html', '']])('with status %i and %s is read as: %s', async (status, contentType, words) => {
    const { record } = await parse('x', { header: ['X-Robots-Tag: nofollow'], meta: { status, contentType } })
    expect(wordsOf(record.robots)).toBe(words)
  })

  it('is in the record of a page that cannot be read', async () => {
    const { record, isArchived } = await parse('no gzip', { header: ['X-Robots-Tag: noarchive'], obey: ['noarchive'], meta: { contentEncoding: 'gzip' } })
    expect([record.code, wordsOf(record.robots), isArchived]).toEqual(['bad_content_encoding', 'noarchive', false])
  })
})

describe('a robots meta element', () => {
  it.each([
    ['named robots', '<meta name=robots content="noindex, noarchive">', 'noindex noarchive'],
    ['of our own name', '<meta name=" Sluice " content=nofollow>', 'nofollow'],
    ['of another name', '<meta name=googlebot content=nofollow>', ''],
    ['for all and one for us are added up', '<meta name=robots content="noindex, follow"><meta name=sluice content="index, nofollow">', 'noindex nofollow'],
    ['without content', '<meta name=robots><meta name=sluice content>', ''],
    ['that names an agent inside is not for us', '<meta name=robots content="googlebot: noindex">', ''],
  ])('%s', async (_, html, words) => {
    expect(wordsOf((await parse(html)).record.robots)).toBe(words)
  })

  it('and the header are added up, in the record and for an extractor', async () => {
    let seen: object | undefined
    const { record } = await parse('<meta name=robots content=noindex>', { header: ['X-Robots-Tag: noarchive'], extractor: ({ meta }) => { seen = meta.robots } })
    expect([wordsOf(record.robots), wordsOf(seen)]).toEqual(['noindex noarchive', 'noindex noarchive'])
  })
})

describe('a page that asks for nofollow', () => {
  const html = '<meta name=robots content=nofollow><link rel=canonical href=/c><a href=/a>a</a><a href=/a#x>a</a><a href=mailto:x>m</a><iframe src=/b></iframe>'

  it('has its links refused and counted, those that are no addresses by their own reason', async () => {
    const { record, result, urls } = await parse(html, { obey: ['nofollow', 'canonical'] })
    expect([urls, result.refused.nofollow, result.refused.scheme, record.links]).toEqual([[], 3, 1, 3])
  })

  it('has them followed when that is not obeyed', async () => {
    const { record, result, urls } = await parse(html, { obey: all.filter((directive) => directive !== 'nofollow') })
    expect([urls.length, result.refused.nofollow, wordsOf(record.robots)]).toEqual([3, 0, 'nofollow'])
  })

  it('is followed where it redirects to', async () => {
    const { result, urls } = await parse('', { obey: all, header: ['X-Robots-Tag: nofollow'], meta: { status: 301, location: '/moved' } })
    expect([result.outcome, urls, result.refused.nofollow]).toEqual(['redirect', ['http://site.example/moved'], 0])
  })

  it('at the last depth has links that are too deep, and nothing else', async () => {
    const { result } = await parse(html, { obey: ['nofollow'], meta: { followLinks: false } })
    expect([result.refused.depth, result.refused.nofollow]).toEqual([2, 0])
  })
})

describe('a link with rel', () => {
  it.each([
    ['nofollow', true], ['noopener  NoFollow', true], ['ugc', true], ['\n sponsored\t', true], ['no-follow', false], ['nofollowx ugc-x', false],
    ['nofollo', false], ['', false], [' ', false], ['noreferrer me', false],
  ])('%j keeps its target from being vouched for: %s', (rel, expected) => {
    const bytes = Buffer.from(`x${rel}x`)
    expect(isNofollow(bytes, 1, bytes.length - 1)).toBe(expected)
  })

  const html = '<a rel=nofollow href=/ad>a</a><a rel="ugc me" href=/both>b</a><a href=/plain>c</a><a href=/both>d</a><a rel=sponsored href=/AD/../ad>e</a><area rel=ugc href=/area>'

  it('nofollow, ugc or sponsored is counted by its address, unless another link leads there without', async () => {
    const { record, urls, result } = await parse(html)
    expect([record.links, record.nofollowLinks, result.refused.nofollow]).toEqual([4, 2, 0])
    expect(urls.toSorted()).toEqual(['ad', 'area', 'both', 'plain'].map((path) => `http://site.example/${path}`))
  })

  it('is refused when rel is obeyed, and such an address is followed all the same', async () => {
    const { record, urls, result } = await parse(html, { obey: ['rel'] })
    expect([record.links, record.nofollowLinks, result.refused.nofollow]).toEqual([4, 2, 2])
    expect(urls.toSorted()).toEqual(['both', 'plain'].map((path) => `http://site.example/${path}`))
  })

  it('without any of them leaves no count in the record', async () => {
    expect((await parse('<a rel=noopener href=/a>a</a>')).record).not.toHaveProperty('nofollowLinks')
  })

  it('is found in a document in UTF-16', async () => {
    const body = Buffer.from(`\uFEFF${html}`, 'utf16le').toString('latin1')
    const { record } = await parse('', { meta: { contentType: 'text/html' } })
    expect(record.nofollowLinks).toBeUndefined()
    const wide = await parsePage(
      { meta: metaOf(url), redirects: 0, headerBlock: blockOf(), body: Buffer.from(body, 'latin1') },
      { inflater: new Inflater(10_000), collector: new LinkCollector({ include: [], exclude: [], obeysRel: true }), agent: '', extractor: undefined, sink: undefined, nowMs: () => 0 },
    )
    expect(wide.refused.nofollow).toBe(2)
  })
})

describe('a Link header', () => {
  const cases: readonly (readonly [what: string, field: string, canonical: string | undefined, followed: readonly string[]])[] = [
    ['names the canonical address', '<https://a.test/x>; rel="canonical"', 'https://a.test/x', []],
    ['without quotes, in any case, with spaces', ' < /x > ;  REL = Canonical ', '/x', []],
    ['has several links', '</c>; rel=canonical, </2>; rel="next", </0>; rel=prev, </de>; rel="alternate"; hreflang=de', '/c', ['/2', '/0', '/de']],
    ['has several words', '</2>; rel="next last"', undefined, ['/2']],
    ['has commas and semicolons inside of brackets and quotes', '</a,b;c>; title="x, </no>; rel=next"; rel=next', undefined, ['/a,b;c']],
    ['has escaped quotes', '</a>; title="x\\", </no>; rel=next \\\\"; rel="next"', undefined, ['/a']],
    ['counts the first rel alone', '</a>; rel=next; rel=canonical', undefined, ['/a']],
    ['counts the first canonical alone', '</a>; rel=canonical, </b>; rel=canonical', '/a', []],
    ['with an anchor is of another page', '</a>; rel=canonical; anchor="#x", </b>; anchor=/y; rel=next, </c>; rel=next', undefined, ['/c']],
    ['to a style sheet or an API is none', '</a>; rel="alternate stylesheet", </wp-json/>; rel="https://api.w.org/", </f>; rel=preload', undefined, []],
    ['has empty elements', ', , </a>; rel=next,,</b>;;rel=next,', undefined, ['/a', '/b']],
    ['ends where it breaks', '</a>; rel=next, b; rel=next, </c>; rel=next', undefined, ['/a']],
    ['without its closing bracket has none', '</a>; rel=next, </b; rel=next', undefined, ['/a']],
    ['without its closing quote ends there', '</a>; rel="next', undefined, ['/a']],
    ['ends in a backslash', '</a>; rel="next\\', undefined, ['/a']],
    ['has a parameter without a value', '</a>; crossorigin; rel=next', undefined, ['/a']],
    ['that is something else has none', 'canonical', undefined, []],
  ]
  it.each(cases)('%s', (_, field, canonical, followed) => {
    expect(readLinkFields([field])).toEqual({ ...(canonical !== undefined && { canonical }), followed })
  })

  it('of any text ends, and has no more links than opening brackets', () => withSeeds(300, (random) => {
    const pieces = ['<', '>', ';', ',', '"', '\\', ' ', '=', 'rel', 'next', 'canonical', 'anchor', '/a', '\t', 'é']
    const field = Array.from({ length: 60 }, () => pick(random, pieces)).join('')
    expect(readLinkFields([field]).followed.length).toBeLessThan(field.split('<').length)
  }))

  it('as long as a header may be ends too, whatever it repeats', () => {
    for (const piece of ['<', '<>', '<>;', '"', '<a>;rel="', '\\', '<>;a="\\', ' ', ';', ', ']) {
      const field = piece.repeat(limits.headerBytesMax / piece.length)
      expect(readLinkFields([`next ${field}`, `${field}next`, `<a>;rel="${field}next`]).followed.length).toBeLessThanOrEqual(1)
    }
  })

  it('gives the canonical address where the document has none, against the page and not against its base', async () => {
    const header = ['Link: <../c>; rel="canonical"']
    expect((await parse('<base href="http://other.example/x/y/">', { header })).record.canonical).toBe('http://site.example/c')
    expect((await parse('<link rel=canonical href=/own>', { header })).record.canonical).toBe('http://site.example/own')
    expect((await parse('a text', { header, meta: { contentType: 'text/plain' } })).record.canonical).toBe('http://site.example/c')
    const bytes = Buffer.from('/é').toString('latin1')
    expect((await parse('', { header: [`Link: <${bytes}>; rel=canonical; title="${bytes}"`] })).record.canonical).toBe('http://site.example/%C3%A9')
  })

  it('links to the neighbours of a page, also of a text, where link elements do', async () => {
    const header = ['Link: <?page=2>; rel=next, <mailto:x>; rel=prev', 'link: </de>; rel=alternate, </style>; rel=stylesheet']
    const neighbours = ['http://site.example/dir/page?page=2', 'http://site.example/de']
    const html = await parse('<a href=/de>a</a><a href=/a>a</a>', { header })
    expect([html.urls, html.record.links, html.result.refused.scheme]).toEqual([[...neighbours, 'http://site.example/a'], 3, 1])
    const text = await parse('a text', { header, meta: { contentType: 'text/plain' } })
    expect([text.urls, text.record.links]).toEqual([neighbours, 2])
    const without = { meta: metaOf(url), redirects: 0, headerBlock: blockOf(...header), body: Buffer.from('') }
    const tools = { inflater: new Inflater(1_024), collector: new LinkCollector({ include: [], exclude: [] }), agent: '', extractor: undefined, sink: undefined, nowMs: () => 0 }
    expect((await parsePage(without, { ...tools, linkElements: ['a'] })).links.count).toBe(0)
  })

  it('that is followed is refused with the page\'s other links', async () => {
    const { urls, result } = await parse('', { header: ['Link: </2>; rel=next', 'X-Robots-Tag: nofollow'], obey: ['nofollow'] })
    expect([urls, result.refused.nofollow]).toEqual([[], 1])
  })
})

describe('a canonical address', () => {
  it('is a link of the page when that is obeyed, and no link else', async () => {
    const html = '<link rel=canonical href=/c><a href=/a>a</a>'
    expect((await parse(html)).urls).toEqual(['http://site.example/a'])
    expect((await parse(html, { obey: ['canonical'] })).urls).toEqual(['http://site.example/c', 'http://site.example/a'])
    expect((await parse('x', { obey: ['canonical'], header: ['Link: </c>; rel=canonical'], meta: { contentType: 'text/plain' } })).urls).toEqual(['http://site.example/c'])
  })

  it('that is the page\'s own is no link, and one that is no address neither', async () => {
    for (const href of [url, 'page', '#x', 'mailto:x']) {
      const { urls, record } = await parse(`<link rel=canonical href="${href}">`, { obey: ['canonical'] })
      expect([urls, record.links]).toEqual([[], 0])
    }
  })
})

describe('noarchive', () => {
  it.each([
    ['in the header', '<p>x', ['X-Robots-Tag: noarchive']], ['in a meta element', '<meta name=robots content=noarchive>', []],
  ])('%s keeps the page out of the archive when it is obeyed, and its record says so either way', async (_, html, header) => {
    const obeyed = await parse(html, { header, obey: ['noarchive'] })
    expect([obeyed.isArchived, obeyed.record.warc, obeyed.record.robots]).toEqual([false, undefined, { noarchive: true }])
    const recorded = await parse(html, { header, obey: all.filter((directive) => directive !== 'noarchive') })
    expect([recorded.isArchived, recorded.record.robots]).toEqual([true, { noarchive: true }])
  })

  it('for others archives the page', async () => {
    expect((await parse('<p>x', { header: ['X-Robots-Tag: googlebot: noarchive'], obey: all })).isArchived).toBe(true)
  })
})

describe('noindex', () => {
  it('keeps the extractor from the page when it is obeyed; its links are followed', async () => {
    const html = '<meta name=robots content=noindex><a href=/a>a</a>'
    const extractor = (): object => ({ x: 1 })
    const obeyed = await parse(html, { obey: ['noindex'], extractor })
    expect([obeyed.record.record, obeyed.urls, obeyed.isArchived]).toEqual([undefined, ['http://site.example/a'], true])
    expect((await parse(html, { obey: all.filter((directive) => directive !== 'noindex'), extractor })).record.record).toEqual({ x: 1 })
  })
})

/**
 * The facts of the 360 pages of the corpus, read whole, against what the corpus says of them and what parse5 finds; and
 * the small documents of scrapy and w3lib.
 */
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readHtml } from '../../threads/html/read-html.ts'
import { lacksCorpus, pageBytes, readJson } from '../support/html-corpus.ts'
import { decode, disagreement, factsByParse5, plainFacts, readByPattern, type PlainFacts, type Reader } from '../support/parse5-oracle.ts'

const read: Reader = (bytes, options) => plainFacts(readHtml(bytes, options))

interface PageLinks {
  readonly file: string
  readonly encoding_used: string
  readonly document_url: string
  readonly base_href: string | null
  readonly a_href: number
  readonly area_href: number
  readonly legacy_query_hrefs: number
  readonly unique_http_links: number
  readonly links_sha256: string
  readonly hrefs_sha256: string
  readonly canonical: string | null
  readonly meta_robots: readonly string[]
  readonly title: string | null
}

/**
 * The pages on which parse5's tree holds anchors more than once, and how many copies: 241 on 13 pages. The counts of the
 * corpus include those, as its hash of the raw addresses does.
 */
const copies: Readonly<Record<string, number>> = {
  '5kaixin.net-a0126b.html.br': 20, 'avastkorea.com-d88670.html.br': 3, 'bilbasen.dk-f652f7.html.br': 3, 'hindi.business-standard.com-6a2b35.html.br': 12,
  'indomotoblog.net-12b6c5.html.br': 1, 'jslcae.com-f6e833.html.br': 8, 'krstarica.com-cf9c16.html.br': 36, 'lifehacker.jp-715899.html.br': 24,
  'origami-shop.com-3fec70.html.br': 60, 'sn.dk-aca802.html.br': 5, 'tasteofhome.com-047a87.html.br': 54, 'vorespuls.dk-7cbf0e.html.br': 10,
  'youtube.com-6b72a3.html.br': 5,
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Not URL.canParse, which in Node 20 says no to some addresses that `new URL` takes. */
function parsed(href: string, base: string): URL | undefined {
  try {
    return new URL(href, base)
  } catch {
    return undefined
  }
}

/** Distinct http(s) addresses without fragments, sorted by their bytes. */
function distinctLinks(hrefs: readonly string[], documentUrl: string, baseHref: string | undefined): string[] {
  const base = (baseHref === undefined ? undefined : parsed(baseHref, documentUrl)?.href) ?? documentUrl
  const links = new Set<string>()
  for (const href of hrefs) {
    const url = parsed(href, base)
    if (url === undefined) continue
    url.hash = ''
    if (url.protocol === 'http:' || url.protocol === 'https:') links.add(url.href)
  }
  return [...links].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
}

const hrefsOf = ({ links }: PlainFacts): string[] => links.filter(({ element }) => element === 'a' || element === 'area').map(({ href }) => href)
const countOf = ({ links }: PlainFacts, name: string): number => links.filter(({ element }) => element === name).length

/** What the corpus says of a page, as far as a reader of start tags can find it. */
function claimsOf(page: PageLinks): object {
  const { file, a_href: anchors, area_href: areas, title, canonical, base_href: base } = page
  return {
    a: anchors - (copies[file] ?? 0), area: areas, distinct: page.unique_http_links, title: title || null, canonical: canonical || null, base,
    ...(page.legacy_query_hrefs === 0 && { linksHash: page.links_sha256 }),
    ...(copies[file] === undefined && { hrefsHash: page.hrefs_sha256 }),
  }
}

function foundIn(page: PageLinks, facts: PlainFacts): object {
  const hrefs = hrefsOf(facts)
  const links = distinctLinks(hrefs, page.document_url, facts.base)
  return {
    a: countOf(facts, 'a'), area: countOf(facts, 'area'), distinct: links.length, title: facts.title ?? null, canonical: facts.canonical ?? null, base: facts.base ?? null,
    ...(page.legacy_query_hrefs === 0 && { linksHash: sha256(links.join('\n')) }),
    ...(copies[page.file] === undefined && { hrefsHash: sha256(hrefs.join('\n')) }),
  }
}

describe.skipIf(lacksCorpus('links/page-links.json'))('corpus pages', () => {
  // The charset is the corpus's own, in the header: how one is found without that is tested in threads-html.test.ts.
  const pages = readJson<PageLinks[]>('links/page-links.json')

  it('give the links, titles, bases, canonical addresses and directives that the corpus says, and all facts that parse5 finds', () => {
    const differences: object[] = []
    const found = { pages: 0, links: 0, copies: {} as Record<string, number> }
    for (const page of pages) {
      const bytes = pageBytes(page.file)
      const facts = read(bytes, { contentType: `text/html; charset=${page.encoding_used}` })
      const { facts: expected, elements } = factsByParse5(decode(bytes, page.encoding_used))
      found.pages += 1
      found.links += facts.links.length
      const inTree = elements.filter(({ tagName, attrs }) => (tagName === 'a' || tagName === 'area') && attrs.some(({ name }) => name === 'href'))
      const copied = inTree.length - hrefsOf(expected).length
      if (copied > 0) found.copies[page.file] = copied
      const [own, claimed] = [foundIn(page, facts), claimsOf(page)].map((one) => JSON.stringify(one))
      if (own !== claimed) differences.push({ file: page.file, own, claimed })
      const difference = disagreement(facts, expected)
      if (difference !== undefined) differences.push({ file: page.file, difference })
    }
    expect(differences).toEqual([])
    expect(found).toEqual({ pages: 360, links: 104_237, copies })
  }, 60_000)

  it('a reader by pattern differs on most pages, so the comparison proves something', () => {
    const some = pages.filter((_, index) => index % 20 === 0)
    const different = some.filter((page) => JSON.stringify(foundIn(page, readByPattern(pageBytes(page.file)))) !== JSON.stringify(claimsOf(page)))
    expect(different.length).toBeGreaterThan(some.length / 2)
  })
})

interface SmallDocument {
  readonly name: string
  readonly html?: string
  readonly html_base64?: string
  readonly charset?: string
  readonly content_type?: string | null
  readonly document_url: string
}

interface LinkCase extends SmallDocument {
  readonly expected_links: readonly { readonly url: string; readonly nofollow?: boolean }[]
}

interface BaseOrRefresh extends SmallDocument {
  readonly kind: 'base' | 'meta_refresh'
  readonly expected_base?: string
  readonly expected_seconds?: number | null
  readonly expected_url?: string | null
}

function readSmall(one: SmallDocument): PlainFacts {
  const bytes = one.html === undefined ? Buffer.from(one.html_base64!, 'base64') : Buffer.from(one.html)
  return read(bytes, { contentType: one.content_type ?? `text/html; charset=${one.charset ?? 'utf-8'}` })
}

const resolved = (href: string, documentUrl: string, base?: string): string | undefined =>
  parsed(href, (base === undefined ? undefined : parsed(base, documentUrl)?.href) ?? documentUrl)?.href

/** Cases that expect what the standard does not say. */
const linkDeviations: Readonly<Record<string, string>> = {
  test_restrict_xpaths_with_html_entities: 'the query is in the charset of the page, which resolving does, not reading',
}
const scriptingOff = 'w3lib passes over noscript; with scripting off its content is markup'
const whole = 'w3lib reads fractions of a second; the standard drops them'
const baseDeviations: Readonly<Record<string, string>> = {
  'test_base_url_in_script-02': scriptingOff,
  'test_base_url_in_script-05': scriptingOff,
  'test_get_meta_refresh_unterminated_tag-02': 'a tag that the end of the document cuts off is none',
  'test_nonascii_url_latin1_query-01': 'the query is in the charset of the page, which resolving does, not reading',
  'test_float_refresh_intervals-01': whole,
  'test_float_refresh_intervals-02': whole,
  'test_inside_noscript-01': scriptingOff,
  'test_inside_script-02': 'w3lib may be told to look into scripts; they are text',
}

describe.skipIf(lacksCorpus('links/cases.json'))('small documents', () => {
  it('of scrapy give the links expected', () => {
    const cases = readJson<LinkCase[]>('links/cases.json')
    const failed = cases.filter((one) => {
      const facts = readSmall(one)
      const urls = new Set(hrefsOf(facts).flatMap((href) => resolved(href, one.document_url, facts.base) ?? []))
      return JSON.stringify([...urls].sort()) !== JSON.stringify([...new Set(one.expected_links.map(({ url }) => url))].sort())
    })
    expect(cases).toHaveLength(14)
    expect(failed.map(({ name }) => name)).toEqual(Object.keys(linkDeviations))
  })

  it('of w3lib give the base and the refresh expected', () => {
    const cases = readJson<BaseOrRefresh[]>('links/base-and-refresh.json')
    const failed = cases.flatMap((one) => {
      const facts = readSmall(one)
      const found = one.kind === 'base'
        ? (facts.base === undefined ? one.document_url : resolved(facts.base, one.document_url || 'http://none.example/'))
        : [facts.refresh?.delaySeconds ?? null, facts.refresh === undefined ? null : resolved(facts.refresh.url, one.document_url) ?? null]
      const expected = one.kind === 'base'
        ? (one.expected_base === '' ? '' : resolved(one.expected_base!, one.document_url || 'http://none.example/') ?? one.expected_base)
        : [one.expected_seconds ?? null, one.expected_url ?? null]
      return JSON.stringify(found) === JSON.stringify(expected) || (facts.base === undefined && one.kind === 'base' && one.expected_base === one.document_url) ? [] : [{ name: one.name, found, expected }]
    })
    expect(cases).toHaveLength(46)
    expect(failed.filter(({ name }) => baseDeviations[name] === undefined)).toEqual([])
    expect(failed.map(({ name }) => name)).toEqual(Object.keys(baseDeviations))
  })
})

import { describe, expect, it } from 'vitest'
import { registrableDomainOf } from '../../engine/core/domain.ts'
import { makeBase, refusalOf } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { queryPathHash } from '../../engine/core/traps.ts'
import { refusalReasons, type LinkList } from '../../engine/core/types.ts'
import { fingerprintOf, hostHashOf, keyOf, plainKeys } from '../../engine/core/url-key.ts'
import { QueryGrowth } from '../../storage/query-growth.ts'
import { baseOf, LinkCollector, originOf, type CollectedLinks, type LinkedDocument, type LinkRules } from '../../threads/html/links.ts'
import { ScopeTable } from '../../threads/scope-table.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import type { Random } from '../../engine/core/clock.ts'
import { rawLinks, type TestLink } from '../support/raw-links.ts'

const page = 'http://site.example/dir/page'
const documentAt = (base: string, parts: Partial<LinkedDocument> = {}): LinkedDocument => ({ base, isForeignBase: false, encoding: 'utf-8', followLinks: true, ...parts })
const collectorOf = (rules: Partial<LinkRules> = {}): LinkCollector => new LinkCollector({ include: [], exclude: [], ...rules })
const collect = (list: readonly (string | TestLink)[], rules: Partial<LinkRules> = {}, followLinks = true): CollectedLinks =>
  collectorOf(rules).collect(rawLinks(list), documentAt(page, { followLinks }))
const urlsOf = ({ links }: { links: LinkList }): string[] => Array.from({ length: links.count }, (_, index) => links.url(index))
const nonZero = (refused: object): object => Object.fromEntries(Object.entries(refused).filter(([, count]) => count > 0))
const refusedOf = ({ refused }: { refused: object }): object => nonZero(refused)
const hex = (fingerprint: Uint8Array): string => Buffer.from(fingerprint).toString('hex')
const fingerprintOfUrl = (url: string): string => hex(fingerprintOf(keyOf(url, plainKeys)))

/** A known table that a test can look into: it may forget, and what was ever committed stays so. */
class TestKnown {
  readonly shown = new Set<string>()
  readonly committed = new Set<string>()
  has(fingerprint: Uint8Array): boolean {
    return this.shown.has(hex(fingerprint))
  }

  commit(url: string): void {
    this.shown.add(fingerprintOfUrl(url))
    this.committed.add(fingerprintOfUrl(url))
  }
}

describe('LinkCollector', () => {
  it('resolves, drops fragments and counts what has one key once', () => {
    const collected = collect(['a', './a#x', '/dir/a', '/dir/%61', 'http://SITE.example:80/dir/a', '//other.example/', '?q'])
    expect(urlsOf(collected)).toEqual(['http://site.example/dir/a', 'http://other.example/', 'http://site.example/dir/page?q'])
    expect(collected.count).toBe(3)
    expect(hex(collected.links.fingerprint(0))).toBe(fingerprintOfUrl('http://site.example/dir/a'))
    expect(collected.links.hostHash(1)).toEqual(hostHashOf('other.example'))
    expect(collected.links.isRedirect(0)).toBe(false)
  })

  it('finds the host of each kind of address: a port, a trailing dot, an IPv6 literal', () => {
    const { links } = collect(['http://a.example:81/x', 'http://b.example./', 'http://[::1]:8080/', 'http://c.example?q=a:b', 'http://d.example/a:1'])
    expect(Array.from({ length: links.count }, (_, index) => hex(links.hostHash(index))))
      .toEqual(['a.example', 'b.example', '[::1]', 'c.example', 'd.example'].map((host) => hex(hostHashOf(host))))
  })

  it('gives no link the host of the one before, whose address begins like its own', () => {
    const hosts = ['a.test', 'a.test.evil.test', 'a.test:81', 'a.test', 'a.tes', 'a.test.']
    const { links } = collect(hosts.map((host) => `http://${host}/`))
    expect(Array.from({ length: links.count }, (_, index) => [links.url(index), hex(links.hostHash(index))]))
      .toEqual(['a.test', 'a.test.evil.test', 'a.test:81', 'a.tes'].map((host) => [`http://${host}/`, hex(hostHashOf(host.replace(':81', '')))]))
  })

  it('counts what it refuses by reason, and each spelling once', () => {
    const long = `/${'x'.repeat(limits.urlBytesMax)}`
    const list = ['javascript:void(0)', 'mailto:a@b', `data:text/html,${long}`, 'java\nscript:1', 'http://', 'http://a b/', long, `/${'ä'.repeat(limits.urlBytesMax / 4)}`, '/ok']
    const collected = collect([...list, ...list])
    expect(refusedOf(collected)).toEqual({ scheme: 4, invalid: 2, too_long: 2 })
    expect(urlsOf(collected)).toEqual(['http://site.example/ok'])
    expect(refusalOf('tel:1', makeBase(page))).toBe('scheme')
  })

  it('writes a query in the encoding of the document, and nothing else of a link', () => {
    const list = ['/\u00e9?\u00e9=\u044f#\u00e9', '/plain', '/#?\u00e9']
    const read = (encoding: string): string[] => urlsOf(collectorOf().collect(rawLinks(list), documentAt(page, { encoding })))
    expect(read('windows-1252')[0]).toBe('http://site.example/%C3%A9?%E9=%26%231103%3B')
    expect(read('koi8-r')[0]).toBe('http://site.example/%C3%A9?%26%23233%3B=%D1')
    expect(read('utf-16le')[0]).toBe('http://site.example/%C3%A9?%C3%A9=%D1%8F')
    expect(read('windows-1252').slice(1)).toEqual(['http://site.example/plain', 'http://site.example/'])
  })

  it('tells a link as too long that is so only with its query in the encoding of the document', () => {
    // What the encoding lacks takes 13 characters, and 6 in UTF-8.
    const list = [`/?${'\u044f'.repeat(limits.urlBytesMax / 10)}`]
    const read = (encoding: string): object => refusedOf(collectorOf().collect(rawLinks(list), documentAt(page, { encoding })))
    expect([read('windows-1252'), read('utf-8')]).toEqual([{ too_long: 1 }, {}])
  })

  it('applies patterns: one include is enough, one exclude is too', () => {
    const collected = collect(['/a', '/b', '/a-no'], { include: [/\/a/u, /\/c/u], exclude: [/no$/u] })
    expect(urlsOf(collected)).toEqual(['http://site.example/a'])
    expect(refusedOf(collected)).toEqual({ pattern: 2 })
  })

  it('keeps to the scope, by host or by registrable domain, and sees a name that is added later', () => {
    const table = ScopeTable.create(10)
    table.add('site.example')
    const list = ['/in', 'http://www.site.example/sub', 'http://elsewhere.example/']
    const byHost = collect(list, { scope: { has: (hash) => table.has(hash) } })
    expect(urlsOf(byHost)).toEqual(['http://site.example/in'])
    expect(refusedOf(byHost)).toEqual({ scope: 2 })
    const domains = ScopeTable.create(10)
    domains.add('site.co.uk')
    const collector = collectorOf({ scope: { has: (hash) => domains.has(hash), domainOf: registrableDomainOf } })
    const raw = rawLinks(['http://www.site.co.uk/', 'http://other.co.uk/'])
    expect(collector.collect(raw, documentAt(page)).links.count).toBe(1)
    domains.add('other.co.uk')
    expect(collector.collect(raw, documentAt(page)).links.count).toBe(2)
    // Of the host that was looked up last, too.
    const single = rawLinks(['http://last.example/'])
    expect(collector.collect(single, documentAt(page)).links.count).toBe(0)
    domains.add('last.example')
    expect(collector.collect(single, documentAt(page)).links.count).toBe(1)
  })

  it('leaves out what is known, before any rule could count it as refused, and never a redirect\'s target', () => {
    const known = { has: () => true }
    const rules = { known, exclude: [/a/u] }
    expect(collect(['/a', '/b', '/a#x'], rules).linksKnown).toBe(2)
    expect([collect(['/a'], rules), collect(['/a'], rules, false)].map((one) => [one.links.count, one.count, refusedOf(one)])).toEqual([[0, 1, {}], [0, 1, {}]])
    const target = collectorOf({ known }).redirect('http://site.example/a')
    expect([target.links.count, target.links.isRedirect(0), hex(target.links.fingerprint(0))]).toEqual([1, true, fingerprintOfUrl('http://site.example/a')])
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
    expect(['http://a.example/b/?c=/', 'https://a.example:81/', 'http://[::1]:1/'].map(originOf)).toEqual(['http://a.example', 'https://a.example:81', 'http://[::1]:1'])
  })

  it('tells when all is resolved and nothing is judged', () => {
    const asked: string[] = []
    const known = { has: () => asked.push('known') > 100 }
    collectorOf({ known }).collect(rawLinks(['/a', '/b']), documentAt(page), () => asked.push('resolved'))
    expect(asked).toEqual(['resolved', 'known', 'known'])
  })
})

describe('hostile pages', () => {
  const count = 28_000

  it('of one href 28,000 times over make one string', () => {
    const raw = rawLinks(Array.from({ length: count }, () => '/same'))
    const collected = collectorOf().collect(raw, documentAt(page))
    expect([raw.strings.made, collected.count, urlsOf(collected), refusedOf(collected)]).toEqual([1, 1, ['http://site.example/same'], {}])
  })

  it('of 28,000 distinct hrefs make strings of as many as are taken', () => {
    const raw = rawLinks(Array.from({ length: count }, (_, index) => `/${index}`))
    const collected = collectorOf().collect(raw, documentAt(page))
    expect([raw.strings.made, collected.count, collected.links.count]).toEqual([limits.linksPerPageMax, limits.linksPerPageMax, limits.linksPerPageMax])
    expect(refusedOf(collected)).toEqual({ too_many: count - limits.linksPerPageMax })
  })

  it('of more spellings than can be told apart lose none and report none twice', () => {
    const tel = Array.from({ length: count }, (_, index) => `tel:${index}`)
    const collected = collect([...tel, ...tel, '/a', '/a', '/a#b'])
    expect([urlsOf(collected), collected.count]).toEqual([['http://site.example/a'], 1])
    expect(collected.refused.scheme).toBeGreaterThanOrEqual(count)
  })

  it('leave nothing behind for the next page', () => {
    const collector = collectorOf()
    const first = collector.collect(rawLinks(['/a', '/b', 'mailto:x']), documentAt(page))
    const again = collector.collect(rawLinks(['/a', '/b', 'mailto:x']), documentAt(page))
    expect([urlsOf(again), again.count, refusedOf(again)]).toEqual([urlsOf(first), first.count, refusedOf(first)])
  })
})

describe('rules against generated addresses', () => {
  const queries = QueryGrowth.create(4_096)
  const on: Partial<LinkRules> = { traps: { queries, queriesPerPathMax: 2 } }
  queries.add(queryPathHash('http://site.example/list?x')!, 2)
  queries.add(queryPathHash('http://site.example/few?x')!, 1)
  const list = [`/${'x'.repeat(limits.linkCharsMax)}`, `/${'d/e/f/'.repeat(2)}${'a/b/'.repeat(8)}`, '/a/a/a/', '/list?x=1', '/list?', '/list', '/few?x=1', '/ok']

  it('count what they refuse by reason, and let the rest pass', () => {
    const collected = collect(list, on)
    expect(refusedOf(collected)).toEqual({ url_length: 1, path_depth: 1, path_repeat: 1, query_growth: 1 })
    expect(urlsOf(collected)).toEqual(['/list?', '/list', '/few?x=1', '/ok'].map((path) => `http://site.example${path}`).filter((url) => url !== 'http://site.example/list'))
    expect(collected.count).toBe(7)
  })

  it('are off when they are not given', () => {
    expect(refusedOf(collect(list))).toEqual({})
  })

  it('let a redirect go anywhere: nothing else leads to its target', () => {
    const target = (path: string): object => refusedOf(collectorOf(on).redirect(`http://site.example${path}`))
    expect(list.map(target)).toEqual(list.map(() => ({})))
    expect(target(`/${Array.from({ length: 30 }, (_, index) => index).join('/')}`)).toEqual({})
  })

  it('see a path that grew since the page before', () => {
    const growing = QueryGrowth.create(4_096)
    const collector = collectorOf({ traps: { queries: QueryGrowth.over(growing.memory), queriesPerPathMax: 1 } })
    const raw = rawLinks(['/p?1'])
    expect(collector.collect(raw, documentAt(page)).links.count).toBe(1)
    growing.add(queryPathHash('http://site.example/p?0')!, 1)
    expect(refusedOf(collector.collect(raw, documentAt(page)))).toEqual({ query_growth: 1 })
  })
})

describe('the memory of hrefs', () => {
  const warm = (list: readonly (string | TestLink)[], document: LinkedDocument, again = document): { made: number; collected: CollectedLinks } => {
    const known = new TestKnown()
    const collector = collectorOf({ known })
    const first = rawLinks(list)
    for (const url of urlsOf(collector.collect(first, document))) known.commit(url)
    // The first page after the commit proves the links; from then on they are remembered.
    collector.collect(rawLinks(list), document)
    const raw = rawLinks(list)
    return { collected: collector.collect(raw, again), made: raw.strings.made }
  }
  const rooted = ['/a', '/b?c=d', '//other.example/x', 'http://third.example/', 'HTTPS://site.example/é'.replace('é', 'e')]

  it('makes no string of an href that is rooted, ASCII and proven known, and counts it all the same', () => {
    const { made, collected } = warm(rooted, documentAt(page))
    expect([made, collected.links.count, collected.count]).toEqual([0, 0, 5])
    expect(warm(rooted, documentAt(page), documentAt('http://site.example/elsewhere/')).made).toBe(0)
  })

  it('makes strings of what depends on the page, is not ASCII, or is part of an attribute', () => {
    const list = ['a', '?q', '#f', '', 'http:a', 'https:/b', ' /c', '/ü', { href: '/meta', element: 'meta' as const }, 'mailto:x']
    expect(warm(list, documentAt(page)).made).toBe(list.length)
  })

  it('knows nothing of another origin, another encoding or a foreign base', () => {
    const document = documentAt(page)
    expect(warm(rooted, document, documentAt('https://site.example/dir/page')).made).toBe(5)
    expect(warm(rooted, document, documentAt('http://site.example:81/dir/page')).made).toBe(5)
    expect(warm(rooted, document, documentAt(page, { encoding: 'windows-1252' })).made).toBe(5)
    expect(warm(rooted, document, documentAt(page, { isForeignBase: true })).made).toBe(5)
  })

  it('makes no string either in a document that was transcoded, whose bytes are ASCII where it is', () => {
    for (const encoding of ['utf-16le', 'utf-16be', 'iso-2022-jp']) expect(warm(rooted, documentAt(page, { encoding })).made).toBe(0)
  })

  it('resolves a rooted href anew on each origin', () => {
    const known = new TestKnown()
    const collector = collectorOf({ known })
    known.commit('http://one.example/a')
    const reported = (base: string): string[] => urlsOf(collector.collect(rawLinks(['/a']), documentAt(base)))
    expect([reported('http://one.example/'), reported('http://one.example/'), reported('http://two.example/'), reported('https://one.example/')])
      .toEqual([[], [], ['http://two.example/a'], ['https://one.example/a']])
  })

  it('is made by proof alone: a link that was reported or refused is read again', () => {
    const collector = collectorOf({ known: { has: () => false }, exclude: [/no/u] })
    for (let visit = 0; visit < 3; visit += 1) {
      const raw = rawLinks(['/yes', '/no'])
      const collected = collector.collect(raw, documentAt(page))
      expect([raw.strings.made, urlsOf(collected), refusedOf(collected)]).toEqual([2, ['http://site.example/yes'], { pattern: 1 }])
    }
  })

  it('stays true when the known table has forgotten', () => {
    const known = new TestKnown()
    const collector = collectorOf({ known })
    known.commit('http://site.example/a')
    collector.collect(rawLinks(['/a']), documentAt(page))
    known.shown.clear()
    expect(collector.collect(rawLinks(['/a', 'a']), documentAt('http://site.example/'))).toMatchObject({ count: 1, links: { count: 0 } })
  })
})

/** Not URL.canParse: on Node 20 its optimised code says false of `http:café`. */
function parsed(href: string, base: string): URL | undefined {
  try {
    return new URL(href, base)
  } catch {
    return undefined
  }
}

/** The bytes of windows-1252 for what these tests have beyond ASCII, escaped: the platform's URL, which knows UTF-8 alone, leaves escapes. */
const escapedIn1252: Readonly<Record<string, string>> = { '\u00e9': '%E9' }

/** The href with what is beyond ASCII escaped in its query, which goes from the first `?` to the fragment. */
function inEncoding(href: string, encoding: string): string {
  const [, before, query, after] = /^([^?#]*)(\?[^#]*)?([^]*)$/.exec(href)!
  if (encoding !== 'windows-1252' || query === undefined) return href
  return before + Array.from(query, (character) => escapedIn1252[character] ?? character).join('') + after
}

/** What the collector is to do, with strings and the platform's URL. `known`: fingerprints that are left out. */
function naive(list: readonly (string | TestLink)[], document: LinkedDocument, known: ReadonlySet<string>): { urls: string[]; count: number; refused: Record<string, number> } {
  const refused = Object.fromEntries(refusalReasons.map((reason) => [reason, 0])) as Record<string, number>
  const [spellings, keys, urls] = [new Set<string>(), new Set<string>(), [] as string[]]
  for (const link of list) {
    const { href, element } = typeof link === 'string' ? { href: link, element: 'a' } : link
    if (element !== 'meta' && spellings.has(href)) continue
    if (element !== 'meta') spellings.add(href)
    const url = parsed(inEncoding(href, document.encoding), document.base)
    // `http://./` is a URL to the standard; no resolver knows such a name.
    if (url === undefined || /^\.|\.\./.test(url.hostname)) refused['invalid']! += 1
    else if (!/^https?:$/.test(url.protocol)) refused['scheme']! += 1
    else {
      url.hash = ''
      const key = fingerprintOfUrl(url.href)
      if (keys.has(key)) continue
      keys.add(key)
      if (known.has(key)) continue
      if (!document.followLinks) refused['depth']! += 1
      else if (url.pathname.includes('no')) refused['pattern']! += 1
      else urls.push(url.href)
    }
  }
  return { urls, count: keys.size, refused }
}

function randomHref(random: Random): string | TestLink {
  // What every page of a site has.
  if (random() < 0.3) return pick(random, ['/nav', '/nav?x', 'http://one.example/nav/a', '//two.example/nav', '/nav/b'])
  const path = pick(random, ['a', 'b', 'no', 'a/b', '%61', '../a', './b', '', 'caf\u00e9', 'a b', 'a?q', 'a?\u00e9', 'a#f', 'no?x'])
  const start = pick(random, ['/', '/', '/', '', '?', '#', 'http://one.example/', 'https://one.example/', 'HTTP://one.example/', '//two.example/', 'http://one.example./', 'http:', 'http:/', ' /', '/\t/three.example/', '\\', 'https://four.example:443/', 'http://four.example:81/'])
  if (random() < 0.1) return pick(random, ['mailto:a', 'javascript:', 'tel:1', 'http://', '//', 'http://[', 'data:,x'])
  return random() < 0.05 ? { href: start + path, element: 'meta' } : start + path
}

function randomDocument(random: Random): { document: LinkedDocument; charset: 'utf8' | 'latin1' } {
  const isLatin = random() < 0.3
  const base = pick(random, ['http://one.example/', 'http://one.example/dir/page', 'http://one.example/other?x', 'https://one.example/', 'http://two.example/x?y', 'http://four.example:81/a/'])
  return {
    document: documentAt(base, { isForeignBase: random() < 0.15, encoding: isLatin ? 'windows-1252' : 'utf-8', followLinks: random() < 0.85 }),
    charset: isLatin ? 'latin1' : 'utf8',
  }
}

describe('against a naive model, over pages whose links are committed between them', () => {
  const rules = (known: TestKnown): Partial<LinkRules> => ({ known, exclude: [/^https?:\/\/[^/?]*\/[^?]*no/u] })

  it('while the known table forgets nothing, all that is reported is what strings and URL objects give', () => withSeeds(40, (random) => {
    let [asked, made] = [0, 0]
    const known = new TestKnown()
    const collector = collectorOf(rules(known))
    for (let visit = 0; visit < 30; visit += 1) {
      const list = Array.from({ length: integer(random, 60) }, () => randomHref(random))
      const { document, charset } = randomDocument(random)
      const raw = rawLinks(list, charset)
      const expected = naive(list, document, known.shown)
      const collected = collector.collect(raw, document)
      expect({ urls: urlsOf(collected), count: collected.count, refused: collected.refused }).toEqual(expected)
      expect(Array.from({ length: collected.links.count }, (_, index) => hex(collected.links.fingerprint(index)))).toEqual(expected.urls.map(fingerprintOfUrl))
      asked += new Set(list).size
      made += raw.strings.made
      for (const url of expected.urls) if (random() < 0.8) known.commit(url)
    }
    // Otherwise the memory never knew anything, and nothing was shown.
    expect(made).toBeLessThan(asked)
  }))

  it('when it forgets, a hit leaves out links that were committed, and changes nothing else', () => withSeeds(40, (random) => {
    const known = new TestKnown()
    const collector = collectorOf(rules(known))
    let leftOut = 0
    for (let visit = 0; visit < 30; visit += 1) {
      const list = Array.from({ length: integer(random, 60) }, () => randomHref(random))
      const { document, charset } = randomDocument(random)
      const most = naive(list, document, known.shown)
      const least = naive(list, document, known.committed)
      const collected = collector.collect(rawLinks(list, charset), document)
      const urls = urlsOf(collected)
      expect(collected.count).toBe(most.count)
      expect(urls.filter((url) => !most.urls.includes(url))).toEqual([])
      expect(least.urls.filter((url) => !urls.includes(url))).toEqual([])
      for (const reason of refusalReasons) {
        expect(collected.refused[reason], reason).toBeLessThanOrEqual(most.refused[reason]!)
        expect(collected.refused[reason], reason).toBeGreaterThanOrEqual(least.refused[reason]!)
      }
      leftOut += most.urls.length - urls.length
      for (const url of urls) if (random() < 0.7) known.commit(url)
      for (const fingerprint of known.shown) if (random() < 0.2) known.shown.delete(fingerprint)
    }
    expect(leftOut).toBeGreaterThan(0)
  }))
})

/** URLs of the corpus: the URL standard's own cases, canonicalisation vectors of other crawlers, and the hrefs of real pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { isBlockedPort } from '../../engine/core/blocked-ports.ts'
import { fetchUrl, hostOfUrl, makeBase, refusalOf } from '../../engine/core/fetch-url.ts'
import { dedupeRules, keyOf, keyPolicyOf, plainKeys, type DedupeRule } from '../../engine/core/url-key.ts'
import { corpusPath } from '../support/corpus.ts'
import { naiveFetchUrl } from '../support/naive-url.ts'

const folder = corpusPath('url')
const isThere = existsSync(folder)
const where = isThere ? '' : ` (skipped: no ${folder})`

const allKeys = keyPolicyOf(dedupeRules)

function read<T>(name: string): T[] {
  return (JSON.parse(readFileSync(corpusPath(name), 'utf8')) as unknown[]).filter((one): one is T => typeof one === 'object')
}

interface Case { readonly input: string; readonly base: string | null; readonly failure?: true; readonly href?: string; readonly hostname?: string; readonly protocol?: string; readonly username?: string; readonly password?: string; readonly port?: string }

/** Punycode labels that stand for nothing: the standard refuses them, Node 20.20 does not yet. */
const LATE_IN_NODE = /^https?:\/\/(?:[^/]*\.)?xn--(?:pokxncvks)?\/?$/i

describe.skipIf(!isThere)(`the URL standard's own cases${where}`, () => {
  /** What the case itself expects, without fragment and user. */
  function expectedOf({ failure, href = '', hostname = '', protocol, username = '', password = '', port = '' }: Case): string | undefined {
    if (failure === true || (protocol !== 'http:' && protocol !== 'https:') || /^\.|\.\./.test(hostname)) return undefined
    // Ours refuses besides: names that no name server can know, and ports of other protocols.
    if (hostname.split('.').some(({ length }) => length > 63) || isBlockedPort(Number(port || 80))) return undefined
    const user = `${username}${password === '' ? '' : `:${password}`}`
    const text = href.split('#', 1)[0]!
    return user === '' ? text : text.replace(`//${user}@`, '//')
  }

  test('are resolved as they say, where the base is http(s), or there is none', () => {
    let counted = 0
    const differing: string[] = []
    for (const one of read<Case>('url/urltestdata.json')) {
      const base = one.base === null ? undefined : makeBase(one.base)
      if (one.base !== null && base === undefined) continue
      counted += 1
      const url = fetchUrl(one.input, base)
      expect(url, one.input).toBe(naiveFetchUrl(one.input, one.base ?? undefined))
      if (url !== expectedOf(one)) differing.push(one.input)
      if (url === undefined) expect(['invalid', 'scheme', 'port']).toContain(refusalOf(one.input, base))
      else expect(hostOfUrl(url)).toBe(new URL(url).hostname.replace(/\.$/, ''))
    }
    expect(counted).toBeGreaterThan(500)
    expect(differing.filter((input) => !LATE_IN_NODE.test(input))).toEqual([])
  })

  test('have keys that are keys of themselves, by no rule and by all', () => {
    let counted = 0
    for (const { input, base } of read<Case>('url/urltestdata.json')) {
      const url = fetchUrl(input, base === null ? undefined : makeBase(base))
      if (url === undefined) continue
      counted += 1
      for (const policy of [plainKeys, allKeys]) expect(keyOf(keyOf(url, policy), policy), input).toBe(keyOf(url, policy))
    }
    expect(counted).toBeGreaterThan(200)
  })

  test('for names are answered as URL answers', () => {
    const names = [...read<{ input: string }>('url/toascii.json'), ...read<{ input: string }>('url/IdnaTestV2.json')]
    expect(names.length).toBeGreaterThan(2_000)
    for (const { input } of names) for (const text of [`https://${input}/x`, `https://sub.${input}/x`]) expect(fetchUrl(text), text).toBe(naiveFetchUrl(text))
  })
})

interface Vector { readonly input: string; readonly base?: string; readonly expected: string | null; readonly flavour: string }

/** The flavour whose policy is nearest: it too compares by RFC 3986, decodes the unreserved, and resolves what the standard resolves. */
const nearest = 'crawler-commons BasicURLNormalizer'

/** Why the others are not run. */
const others: Readonly<Record<string, string>> = {
  'crawler-commons resolve': 'resolves without normalising, by RFC 3986: the tests of fetchUrl compare with the URL standard instead',
  'w3lib canonicalize_url': 'sorts parameters, gives each one an =, and writes a space in a query as +; it does so to URLs that are requested',
  'w3lib safe_url_string': 'makes a URL that can be requested and compares nothing; it leaves the host and the dots of a path alone',
  'w3lib safe_download_url': 'is safe_url_string with dot segments removed, and with its own encoding of the path',
}

interface Deviation { readonly why: string; readonly rule?: DedupeRule; readonly inputs: readonly string[] }

const deviations: readonly Deviation[] = [
  { why: 'the order is kept unless the rule order is chosen', rule: 'order', inputs: [
    'http://example.com/?b=1&a=1', 'http://foo.com/foo.html?b=1&a=1', 'http://foo.com/index?b=2&a=1', 'http://foo.com/index?b=2&a=1#c',
    'https://example.com/path/query.php?hello=world&foo=bar', 'https://example.org/p%2d1/p%2d2/?b=2&a=1', 'http://foo.com/index?b&a=1',
  ] },
  { why: 'session identifiers are kept unless the rule session is chosen', rule: 'session', inputs: [
    'http://foo.com/foo.php?phpsessid=2Aa3ASdfasfdadf&a=1', 'http://foo.com/foo.php?phpsessid=2Aa3ASdfasfdadf&a=1&b', 'http://foo.com/foo.php?phpsessid=2Aa3ASdfasfdadf',
  ] },
  { why: 'a parameter without a name or with an empty value is not one that is absent', inputs: [
    'http://foo.com/index?a=1&b=', 'http://foo.com/index?b=&a=1', 'http://foo.com/index?b=1&a=1&', 'http://foo.com/index?&b=1&a=1', 'http://foo.com/index?&=1&a=1', 'http://foo.com/index?=1&b=1&a=1',
  ] },
  { why: 'a doubled slash is an empty segment to the URL standard and to some servers', inputs: [
    'http://foo.com//aa/bb/foo.html', 'http://foo.com/aa//bb/foo.html', 'http://foo.com/aa/bb//foo.html', 'http://foo.com//aa//bb//foo.html', 'http://foo.com////aa////bb//foo.html', 'http://foo.com////aa////bb////foo.html',
  ] },
  { why: 'a stray percent sign is left by the URL standard, and is not %25 to every server', inputs: [
    'https://www.last.fm/music/Prefuse+73/_/90%+of+My+Mind+Is+With+You', 'http://www.example.com/a/c/../b/search?q=foobar%', 'http://www.example.com/p%zz%77%v', 'http://www.example.com/search?q=foobar%', 'http://www.example.com/search?q=foobar%2',
  ] },
  { why: 'these characters are left by the URL standard', inputs: [
    'http://x.com/?x[y]=1', 'http://example.com/[x]', 'http://www.example.com/a/c/../b/search?q=foobar^', 'http://www.example.com/a/c/../b/search?q=foobar`', 'http://www.example.com/a/c/../b/search?q=foobar|',
  ] },
  { why: 'only http and https are crawled, a scheme is not guessed, and a name is not empty', inputs: [
    'file:///foo/bar.txt', 'ftp:/', 'ftp://foo.com/index.html', 'file:/path/index.html', 'file:/var/www/html/////./bar/index.html', 'file:/var/www/html/foo/../bar/index.html', 'foo.com/index.html', 'http:////', 'http:///////',
  ] },
  { why: 'names are compared as the URL standard writes them: in punycode, an IPv4 address in an IPv6 one in hexadecimal', inputs: [
    'http://xn--schne-lua.xn--bcher-kva.de/', 'https://xn--90ax2c.xn--p1ai/', 'http://schöne.xn--bcher-kva.de/', 'http://[::ffff:127.0.0.1]/',
  ] },
]

describe.skipIf(!isThere)(`canonicalisation vectors${where}`, () => {
  const vectors = isThere ? read<Vector>('url/canonicalisation.json') : []

  test('each flavour is run, or there is a reason why it is not', () => {
    expect([...new Set(vectors.map(({ flavour }) => flavour))].sort()).toEqual([nearest, ...Object.keys(others)].sort())
  })

  test(`${nearest}: the key is what the vector expects, and where it is not there is a reason`, () => {
    const differing = deviations.flatMap(({ inputs }) => inputs)
    const own = vectors.filter(({ flavour }) => flavour === nearest)
    expect(own.length).toBeGreaterThan(130)
    const missed = own.filter(({ input, expected }) => keyOfText(input) !== (expected ?? undefined)).map(({ input }) => input)
    expect(missed.sort()).toEqual(differing.toSorted())
  })

  test('what a rule is there for comes out as the vector expects when it is chosen', () => {
    for (const { rule, inputs } of deviations) {
      if (rule === undefined) continue
      for (const { input, expected } of vectors.filter(({ input, flavour }) => flavour === nearest && inputs.includes(input))) expect(keyOfText(input, rule)).toBe(expected)
    }
  })

  function keyOfText(text: string, ...rules: DedupeRule[]): string | undefined {
    const url = fetchUrl(text)
    return url === undefined ? undefined : keyOf(url, keyPolicyOf(rules))
  }
})

const pages = corpusPath('pages')

test.skipIf(!existsSync(pages))(`every href of the corpus pages is resolved as URL resolves it${existsSync(pages) ? '' : ` (skipped: no ${pages})`}`, () => {
  // Attribute values by their look, in scripts and comments too: more of them, and odder ones, than a parser finds.
  const HREF = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/gi
  const documentUrls = new Map(read<{ file: string; document_url: string }>('links/page-links.json').map((page) => [page.file, page.document_url]))
  let counted = 0
  for (const file of readdirSync(pages).filter((name) => name.endsWith('.br'))) {
    const html = brotliDecompressSync(readFileSync(`${pages}/${file}`)).toString('utf8')
    const documentUrl = documentUrls.get(file)!
    const base = makeBase(documentUrl)!
    for (const [, double, single, bare] of html.matchAll(HREF)) {
      const href = (double ?? single ?? bare ?? '').replaceAll('&amp;', '&')
      const url = fetchUrl(href, base)
      // Compared first, since an expectation costs more than both: there are 150,000.
      if (url !== naiveFetchUrl(href, documentUrl)) expect(url, `${href} in ${file}`).toBe(naiveFetchUrl(href, documentUrl))
      if (url !== undefined) checkKeys(url)
      counted += 1
    }
  }
  expect(counted).toBeGreaterThan(100_000)
})

function checkKeys(url: string): void {
  for (const policy of [plainKeys, allKeys]) {
    const key = keyOf(url, policy)
    if (keyOf(key, policy) !== key || fetchUrl(key) !== key) expect(keyOf(key, policy), url).toBe(key)
  }
}

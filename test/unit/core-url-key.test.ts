import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { contentHashOf, fingerprintOf, hostHashOf, hostOf, parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import { corpusPath } from '../support/corpus.ts'

function keyOf(text: string): string | undefined {
  const url = parseFetchUrl(text)
  return url === undefined ? undefined : urlKey(url)
}

test.each([
  ['scheme and host in capitals', 'HTTP://EXAMPLE.com/a', 'http://example.com/a'],
  ['the default port', 'https://example.com:443/', 'https://example.com/'],
  ['no path', 'https://example.com', 'https://example.com/'],
  ['escapes of unreserved characters', 'http://a.test/%7Euser/%41%2d%2E%5f?q=%61', 'http://a.test/~user/A-._?q=a'],
  ['escapes in lower case', 'http://a.test/%c3%a9?x=%2f', 'http://a.test/%C3%A9?x=%2F'],
  ['dot segments, also escaped ones', 'http://a.test/x/%2e%2E/./y/.%2e/z', 'http://a.test/z'],
  ['a trailing dot of the name', 'http://a.test./x', 'http://a.test/x'],
  ['a fragment, also an empty one', 'http://a.test/x#top', 'http://a.test/x#'],
  ['an empty query', 'http://a.test/x?', 'http://a.test/x'],
  ['user information', 'http://me:secret@a.test/x', 'http://a.test/x'],
  ['an international name', 'http://bücher.test/', 'http://xn--bcher-kva.test/'],
  ['forms of an IPv6 address', 'http://[2001:DB8:0:0::1]/', 'http://[2001:db8::1]/'],
  ['forms of an IPv4 address', 'http://0x7f.1/', 'http://127.0.0.1/'],
  ['white space around and line ends within', ' http://a.test/x\ny ', 'http://a.test/xy'],
  ['a character and its escape', 'http://a.test/é', 'http://a.test/%C3%A9'],
])('%s: the key is the same', (_, one, other) => {
  expect(keyOf(one)).toBeDefined()
  expect(keyOf(one)).toBe(keyOf(other))
})

test.each([
  ['schemes', 'http://a.test/', 'https://a.test/'],
  ['ports', 'http://a.test/', 'http://a.test:8080/'],
  ['names', 'http://a.test/', 'http://www.a.test/'],
  ['a path with and without a slash at its end', 'http://a.test/x', 'http://a.test/x/'],
  ['a doubled slash', 'http://a.test/x/y', 'http://a.test/x//y'],
  ['letter case in the path', 'http://a.test/X', 'http://a.test/x'],
  ['an escaped slash', 'http://a.test/a%2Fb', 'http://a.test/a/b'],
  ['an escaped question mark', 'http://a.test/a%3Fb', 'http://a.test/a?b'],
  ['an escaped percent sign', 'http://a.test/%2541', 'http://a.test/A'],
  ['order of parameters', 'http://a.test/?a=1&b=2', 'http://a.test/?b=2&a=1'],
  ['a parameter without a value', 'http://a.test/?a', 'http://a.test/?a='],
  ['a plus and a space', 'http://a.test/?a=+', 'http://a.test/?a=%20'],
  ['a plus and its escape', 'http://a.test/?a=+', 'http://a.test/?a=%2B'],
  ['a tracking parameter', 'http://a.test/?utm_source=x', 'http://a.test/'],
  ['a stray percent sign before an escaped digit', 'http://a.test/%%32F', 'http://a.test/%2F'],
  ['a stray percent sign in the query', 'http://a.test/?x%%33%44', 'http://a.test/?x%3D'],
])('%s: the keys differ', (_, one, other) => {
  expect(keyOf(one)).toBeDefined()
  expect(keyOf(one)).not.toBe(keyOf(other))
})

test.each([
  'ftp://a.test/', 'mailto:me@a.test', 'javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '', '   ', 'a.test', '//a.test/', 'http://', 'http:///',
  'http://a b/', 'http://[::1', 'http://a.test:99999/', 'http://./', 'http://../', 'http://.a.test/', 'http://a..test/', 'http://a.test../', 'http://1.2.3.4../', 'http://%2e/',
  `http://a.test/${'x'.repeat(limits.urlBytesMax)}`, `http://a.test/${'x/../'.repeat(limits.urlBytesMax / 4)}`, `http://a.test/${'é'.repeat(limits.urlBytesMax / 4)}`,
])('%j is no URL to fetch', (text) => {
  expect(parseFetchUrl(text)).toBeUndefined()
})

test('a URL of the greatest length is taken, and one that is longer once written out is not', () => {
  const stem = 'http://a.test/'
  expect(parseFetchUrl(stem + 'x'.repeat(limits.urlBytesMax - stem.length))).toBeDefined()
  expect(parseFetchUrl(`x${'y'.repeat(limits.urlBytesMax - stem.length)}`, stem)).toBeUndefined()
})

test('credentials in a link are neither fetched nor kept', () => {
  for (const text of ['https://me:secret@a.test/x', 'https://me@a.test/x', 'https://:secret@a.test/x', 'https://good.test:x@a.test/x']) {
    expect(parseFetchUrl(text)!.href).toBe('https://a.test/x')
  }
  expect(parseFetchUrl('/y', 'https://me:secret@a.test/x')!.href).toBe('https://a.test/y')
})

test('the URL to fetch is as the author wrote it, but for its fragment', () => {
  expect(parseFetchUrl('http://a.test/%7euser/%c3?b=1&a=%2f#part')!.href).toBe('http://a.test/%7euser/%c3?b=1&a=%2f')
})

test('a lone surrogate and a NUL are escaped as browsers do', () => {
  expect(keyOf('http://a.test/\ud800')).toBe('http://a.test/%EF%BF%BD')
  // At its end a NUL is trimmed with the white space, so one letter follows.
  expect(keyOf('http://a.test/\0?\0x')).toBe('http://a.test/%00?%00x')
})

test('a host is its name without a trailing dot', () => {
  expect(hostOf(parseFetchUrl('http://A.test.:8080/')!)).toBe('a.test')
  expect(hostOf(parseFetchUrl('http://[::1]:8080/')!)).toBe('[::1]')
})

test('the key of a key is the key, whatever the URL', () => {
  const piece = fc.oneof(
    fc.constantFrom('%', '%2', '%25', '%2e', '%2E', '%41', '%c3', '/', '//', '.', '..', '?', '&', '=', '+', '~', 'a', 'B', '#', ';', '\\', '|', '%32', '%65', ' ', 'é', '\u0000', '\ud800'),
    fc.string({ maxLength: 3 }),
  )
  fc.assert(fc.property(fc.array(piece, { maxLength: 12 }), fc.constantFrom('a.test', 'A.test.', '[::1]', 'bücher.test:81', 'u:p@1.2.3.4.'), (pieces, host) => {
    const key = keyOf(`http://${host}/${pieces.join('')}`)
    if (key === undefined) return
    expect(keyOf(key)).toBe(key)
  }), { numRuns: 3_000 })
})

const corpus = corpusPath('url/urltestdata.json')

test.skipIf(!existsSync(corpus))(`the key of a key is the key over the URL standard's own cases (${existsSync(corpus) ? corpus : `skipped: no ${corpus}`})`, () => {
  const cases = (JSON.parse(readFileSync(corpus, 'utf8')) as unknown[]).filter((one): one is { input: string; base: string | null; failure?: true } => typeof one === 'object')
  let keys = 0
  for (const { input, base, failure } of cases) {
    const url = parseFetchUrl(input, base ?? undefined)
    if (failure === true) expect(url, input).toBeUndefined()
    if (url === undefined) continue
    keys += 1
    expect([url.username, url.password, url.hash, url.href.endsWith('#')], url.href).toEqual(['', '', '', false])
    expect(keyOf(urlKey(url)), input).toBe(urlKey(url))
  }
  expect(keys).toBeGreaterThan(100)
})

test('hashes have their lengths and are the beginning of SHA-256', () => {
  // The digest of the empty message, FIPS 180-4 examples.
  const empty = 'e3b0c44298fc1c149afbf4c8996fb924'
  expect(Buffer.from(fingerprintOf('')).toString('hex')).toBe(empty)
  expect(Buffer.from(contentHashOf(new Uint8Array())).toString('hex')).toBe(empty)
  expect(Buffer.from(hostHashOf('')).toString('hex')).toBe(empty.slice(0, 16))
})

test('a body in shared memory is hashed where it lies', () => {
  const shared = new Uint8Array(new SharedArrayBuffer(16), 4, 3)
  shared.set([1, 2, 3])
  expect(contentHashOf(shared)).toEqual(contentHashOf(new Uint8Array([1, 2, 3])))
})

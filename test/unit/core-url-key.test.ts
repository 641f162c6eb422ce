import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fetchUrl, hostOfUrl } from '../../engine/core/fetch-url.ts'
import { contentHashOf, dedupeRules, fingerprintOf, hostHashOf, keyOf as keyBy, keyPolicyOf, plainKeys, twinHostOf, type DedupeRule } from '../../engine/core/url-key.ts'

function keyOf(text: string, ...rules: DedupeRule[]): string | undefined {
  const url = fetchUrl(text)
  return url === undefined ? undefined : keyBy(url, keyPolicyOf(rules))
}

test.each([
  ['scheme and host in capitals', 'HTTP://EXAMPLE.com/a', 'http://example.com/a'],
  ['the default port', 'https://example.com:443/', 'https://example.com/'],
  ['no path', 'https://example.com', 'https://example.com/'],
  ['escapes of unreserved characters', 'http://a.test/%7Euser/%41%2d%2E%5f?q=%61', 'http://a.test/~user/A-._?q=a'],
  ['escapes in lower case', 'http://a.test/%c3%a9?x=%2f', 'http://a.test/%C3%A9?x=%2F'],
  ['dot segments, also escaped ones', 'http://a.test/x/%2e%2E/./y/.%2e/z', 'http://a.test/z'],
  ['a trailing dot of the name', 'http://a.test./x', 'http://a.test/x'],
  ['a trailing dot before a port', 'http://a.test.:81/x', 'http://a.test:81/x'],
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

test('a lone surrogate and a NUL are escaped as browsers do', () => {
  expect(keyOf('http://a.test/\ud800')).toBe('http://a.test/%EF%BF%BD')
  // At its end a NUL is trimmed with the white space, so one letter follows.
  expect(keyOf('http://a.test/\0?\0x')).toBe('http://a.test/%00?%00x')
})

test('where nothing is to change the key is the URL itself', () => {
  for (const url of ['http://a.test/', 'https://www.a.test:81/x/;y/~z?b&a=%C3%A9%2F', 'http://a.test/??', 'http://a.test/x.:y?.:']) expect(keyBy(url, plainKeys)).toBe(url)
})

test('every escape is decoded where its character is unreserved, and in capitals otherwise', () => {
  for (let code = 0; code < 256; code += 1) {
    const escape = `%${code.toString(16).padStart(2, '0')}`
    const character = String.fromCharCode(code)
    const wanted = /[A-Za-z0-9\-._~]/.test(character) ? character : escape.toUpperCase()
    for (const written of [escape, escape.toUpperCase()]) expect(keyBy(`http://a.test/x${written}?${written}`, plainKeys)).toBe(`http://a.test/x${wanted}?${wanted}`)
  }
})

test.each<[DedupeRule, string, string, string]>([
  ['tracking', 'what analytics append', 'http://a.test/x?utm_source=a&id=1&UTM_New=2&_ga=3', 'http://a.test/x?id=1'],
  ['tracking', 'identifiers of a click, an empty one too', 'http://a.test/x?gclid=1&fbclid&msclkid=&yclid=2', 'http://a.test/x'],
  ['tracking', 'an escaped name', 'http://a.test/x?%75tm_source=1', 'http://a.test/x'],
  ['tracking', 'beside a stray percent sign', 'http://a.test/?utm_source=%&b=%41', 'http://a.test/?b=A'],
  ['session', "Java's identifier in the path", 'http://a.test/x;jsessionid=0A1/y;v=1;JSESSIONID=2;w?b=1', 'http://a.test/x/y;v=1;w?b=1'],
  ['session', 'an identifier in a path without query', 'http://a.test/x;jsessionid=0A1', 'http://a.test/x'],
  ['session', "PHP's, ColdFusion's and ASP's", 'http://a.test/?PHPSESSID=x&a=1&CFID=1&CFTOKEN=2&ASPSESSIONIDQABCDEFG=z', 'http://a.test/?a=1'],
  ['session', 'a long hexadecimal sid', `http://a.test/?a=1&sid=${'0aF'.repeat(6)}`, 'http://a.test/?a=1'],
  ['order', 'the order of parameters', 'http://a.test/?b=1&c&a=1&B', 'http://a.test/?B&a=1&b=1&c'],
  ['slash', 'a slash at the end', 'http://a.test/x/', 'http://a.test/x'],
  ['slash', 'a slash before the query', 'http://a.test/x/?', 'http://a.test/x'],
  ['www', 'the label www', 'http://www.a.test:81/x', 'http://a.test:81/x'],
  ['www', 'the label www and a trailing dot', 'http://www.a.test./', 'http://a.test/'],
])('%s: %s does not count, and counts without the rule', (rule, _, one, other) => {
  expect(keyOf(one, rule)).toBe(other)
  expect(keyOf(other, rule)).toBe(other)
  const others = dedupeRules.filter((name) => name !== rule)
  expect(keyOf(one)).not.toBe(keyOf(other))
  expect(keyOf(one, ...others)).not.toBe(keyOf(other, ...others))
  expect(keyOf(one, ...dedupeRules)).toBe(keyOf(other, ...dedupeRules))
})

test.each<[DedupeRule, string]>([
  ['tracking', 'http://a.test/utm_source=1?xutm_source=1&ref=2&source=3&gclids=4'], ['tracking', 'http://a.test/?a=utm_source&b=gclid&&='],
  ['session', 'http://a.test/?sid=12&sessionid=abc&sid=programming-basics-0123456789&q=phpsessid'], ['session', 'http://a.test/xjsessionid=1;jsession=2?a;jsessionid=1'],
  ['session', 'http://a.test/x/.;jsessionid=1/y'], ['session', 'http://a.test/..;jsessionid=1'],
  ['order', 'http://a.test/?a=2&a=1&b'], ['slash', 'http://a.test/'], ['slash', 'http://a.test/x//'], ['slash', 'http://a.test/x?/'],
  ['www', 'http://www.test/'], ['www', 'http://www.www.a.test/'], ['www', 'http://www2.a.test/'], ['www', 'http://a.test//www.b.test'], ['www', 'http://awww.test/'],
])('%s leaves %s as it is', (rule, url) => {
  expect(keyOf(url, rule)).toBe(url)
})

test('rules that take away what stood between leave no further work', () => {
  expect(keyOf('http://www.a.test./x/;jsessionid=1?utm_source=1&sid=0123456789abcdef', ...dedupeRules)).toBe('http://a.test/x')
  expect(keyOf('http://a.test/?&utm_source=1&', 'tracking')).toBe('http://a.test/?&')
  expect(keyOf('http://a.test/?&utm_source=1', 'tracking')).toBe('http://a.test/')
})

test('a key of a key is the key and a URL that is left as it is, by any rules, and never longer than its URL', () => {
  const piece = fc.oneof(
    fc.constantFrom('%', '%2', '%25', '%2e', '%2E', '%41', '%c3', '/', '//', '.', '..', '?', '&', '=', '+', '~', 'a', 'B', '#', ';', '\\', '|', '%32', '%65', '%3', ' ', 'é', '\u0000', '\ud800'),
    fc.constantFrom('utm_x=1', '&utm_source', '?gclid=%', '&%75tm_a=b', ';jsessionid=1', ';JSessionID=%', ';%6asessionid=2', '/.;jsessionid=', '&phpsessid=z', '&sid=0123456789abcdef', '&b=2&a=1', '&a', 'a/', '/?'),
    fc.string({ maxLength: 3 }),
  )
  const host = fc.constantFrom('a.test', 'A.test.', '[::1]', 'bücher.test:81', 'u:p@1.2.3.4.', 'www.a.test', 'www.www.a.test', 'www.test.:8080', 'www.xn--bcher-kva.test')
  fc.assert(fc.property(fc.array(piece, { maxLength: 12 }), host, fc.subarray([...dedupeRules]), (pieces, host, rules) => {
    const url = fetchUrl(`http://${host}/${pieces.join('')}`)
    if (url === undefined) return
    const policy = keyPolicyOf(rules)
    const key = keyBy(url, policy)
    expect(keyBy(key, policy)).toBe(key)
    expect(fetchUrl(key)).toBe(key)
    expect(key.length).toBeLessThanOrEqual(url.length)
  }), { numRuns: 20_000 })
})

test('two hosts are twins exactly when the rule www gives their URLs one key', () => {
  const names = ['a.test', 'www.a.test', 'www.www.a.test', 'test', 'www.test', 'www.www.test', '[::1]', 'www', 'b.a.test', 'www.b.a.test', 'wwww.a.test']
  for (const one of names) {
    for (const other of names) {
      const [keyOfOne, keyOfOther] = [one, other].map((host) => keyBy(`http://${host}/x`, keyPolicyOf(['www'])))
      expect(twinHostOf(one) === other, `${one} ${other}`).toBe(one !== other && keyOfOne === keyOfOther)
    }
  }
  expect(hostOfUrl(keyOf('http://www.a.test:81/', 'www')!)).toBe('a.test')
})

test('a policy is frozen, and plain when no rule is chosen', () => {
  expect(plainKeys).toEqual({ tracking: false, session: false, order: false, slash: false, www: false, isPlain: true })
  expect(keyPolicyOf(['www', 'www'])).toEqual({ ...plainKeys, www: true, isPlain: false })
  expect(Object.isFrozen(plainKeys)).toBe(true)
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

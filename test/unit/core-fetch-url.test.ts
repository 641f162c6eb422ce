import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fetchUrl, hostOfUrl, makeBase, refusalOf } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { naiveFetchUrl, parsedUrl } from '../support/naive-url.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const bases = ['https://a.test/', 'http://a.test:81/x/y/z.html?q=1', 'https://sub.a.test/x/?', 'http://u:p@a.test/x//y', 'http://[2001:db8::1]/d/', 'https://xn--bcher-kva.test/é/']

function expectSame(text: string, base: string | undefined): void {
  const made = base === undefined ? undefined : makeBase(base)
  expect(fetchUrl(text, made), `${JSON.stringify(text)} against ${base}`).toBe(naiveFetchUrl(text, base))
}

/** Pieces at which the standard decides something. */
const pieces = [
  'http:', 'https:', 'HTTP:', 'hTTps:', 'http', 'ftp:', 'javascript:', 'mailto:', 'data:', 'http://', 'https://', '//', '/', '///', '\\', '?', '#', ':', '@', ';', '&', '=', '+',
  '.', '..', '...', '/.', '/..', '%2e', '%2E', '.%2e', '%', '%2', '%41', '%zz', '%00', 'a', 'Z', 'a.test', 'A.test', 'a_b.test', 'a--b.test', '-', '_', '0', '7', '1.2.3.4', '0x7f.1', '.0x', '.09',
  '.1a', 'a.1', 'xn--', 'xn--a', '.xn--bcher-kva', 'ab--', ':80', ':443', ':8080', ':0', ':99999', '[::1]', '[', ']', 'é', 'ß', '。', '\u00ad', '\ud800', '\ufeff', '\u2028',
  ' ', '\t', '\n', '\r', '\0', '\u001f', '\u007f', '\u0080', '"', "'", '<', '>', '`', '{', '}', '|', '^', '~', '!', '$', '(', ')', '*', ',', 'C|', '/C:',
]

describe('fetchUrl gives what URL gives, without fragment and user', () => {
  test('over random texts from pieces that the standard treats apart', () => {
    const text = fc.array(fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...pieces) }, { weight: 1, arbitrary: fc.string({ maxLength: 3, unit: 'binary' }) }), { maxLength: 8 })
    fc.assert(fc.property(fc.constantFrom('', '', 'https://', 'http://', '//', '/', '?', 'https://a.test'), text, fc.constantFrom(undefined, ...bases), (start, parts, base) => {
      expectSame(start + parts.join(''), base)
    }), { numRuns: 40_000 })
  })

  test('with every character up to U+0180 in every place of the forms that the quick path knows', () => {
    const places = ['$', '$b', 'b$', 'b/$', 'b/$/c', '/$', '/b$', '/b$c', '/b/$', '/b/$/c', '/b/.$', '//$', '//$.test', '//a$.test/', '//a.$', '//a.test$', '//a.test/$', '//a.test$/', '?$', '?b$c', '/b?$', 'b?c$', '#$', '/b#$',
      'http://$', 'https://$', 'https://$a.test/', 'https://a$b.test/x', 'https://a.test$', 'https://a.test/$', 'https://a.test/b?$', 'https://a.test?$', 'https://a.test#$', 'https:$/a.test/', 'http$://a.test/', '$https://a.test/', '/%2$', '/%$e']
    for (const place of places) {
      for (let code = 0; code <= 0x180; code += 1) expectSame(place.replace('$', () => String.fromCharCode(code)), bases[1])
    }
  })

  test('over all short arrangements of dots, slashes, marks and colons', () => {
    const marks = ['/', '.', '%2e', '%2E', 'a', '?', '#', ':', '\\']
    let texts = ['']
    for (let length = 0; length < 4; length += 1) {
      texts = texts.flatMap((text) => marks.map((mark) => text + mark))
      for (const text of texts) for (const start of ['', '/', 'a', 'https://a.test']) expectSame(start + text, bases[1])
    }
  })

  test('over all short arrangements of labels in a host', () => {
    const labels = ['a', '.', '-', '_', '0', '9', '0x', '1', 'f', 'xn--', 'z']
    let hosts = ['']
    for (let length = 0; length < 4; length += 1) {
      hosts = hosts.flatMap((host) => labels.map((label) => host + label))
      for (const host of hosts) expectSame(`https://${host}/`, undefined)
    }
  })

  test('with labels and names longer than a resolver takes', () => {
    for (const length of [63, 64, 253, 254, 300]) for (const label of ['a'.repeat(length), 'a.'.repeat(length)]) expectSame(`https://${label}test/x`, undefined)
    // On the quick path, and on the slow one with a dot, a port or capitals.
    const labels = (bytes: number): string => `${'a'.repeat(63)}.`.repeat(4).slice(0, bytes)
    for (const bytes of [252, 253, 254]) {
      for (const name of [labels(bytes - 1) + 'z', labels(bytes - 1) + 'Z', `${labels(bytes - 1)}z.`, `${labels(bytes - 1)}z:81`]) {
        expectSame(`https://${name}/x`, undefined)
        expect(fetchUrl(`https://${name}/x`) === undefined, `${bytes} bytes`).toBe(bytes > 253)
      }
    }
    for (const [label, isTaken] of [['b'.repeat(63), true], ['b'.repeat(64), false]] as const) {
      for (const text of [`https://a.${label}.test/`, `//${label}/x`, `https://${label}:81/`, `https://A.${label}.test./`]) expect(fetchUrl(text, makeBase('http://a.test/')) !== undefined, text).toBe(isTaken)
    }
  })

  test('where the runtime has no URL.parse', () => {
    vi.stubGlobal('URL', class extends URL { static override parse = undefined as never })
    for (const text of ['../b', 'http://a b/', 'http://A.test/é#x']) expectSame(text, bases[1])
  })
})

const page = 'https://a.test/x/y.html?q=1'
const quick: readonly (readonly [string, string])[] = [
  ['', page], ['#top', page], ['# é\n', page], ['?p=2&f[0]=a?', 'https://a.test/x/y.html?p=2&f[0]=a?'], ['/', 'https://a.test/'], ['/b/c.html?x=y#z', 'https://a.test/b/c.html?x=y'],
  ['/~me/A(1)%20b;c,d=e+f@g:h!', 'https://a.test/~me/A(1)%20b;c,d=e+f@g:h!'], ["/it's/a..b/c./%2F", "https://a.test/it's/a..b/c./%2F"], ['//b.test', 'https://b.test/'], ['//b.test/c?', 'https://b.test/c?'],
  ['c/d.html', 'https://a.test/x/c/d.html'], ['c/wiki:Talk', 'https://a.test/x/c/wiki:Talk'], ['https://b.test', 'https://b.test/'], ['http://b-c.d_e.test?x', 'http://b-c.d_e.test/?x'],
  ['http://1a.b.test/c//d?e=%2e', 'http://1a.b.test/c//d?e=%2e'], ['https://b.test#', 'https://b.test/'],
]

test('the commonest forms need no URL object', () => {
  const base = makeBase(page)!
  vi.stubGlobal('URL', undefined)
  expect(quick.map(([text]) => fetchUrl(text, base))).toEqual(quick.map(([, url]) => url))
  for (const text of ['javascript:void(0)', ' mailto:a@b.test', 'JavaScript:', 'tel:1', 'data:text/html,x', 'java\nscript:x']) expect(fetchUrl(text, base)).toBeUndefined()
})

test.each([
  'ftp://a.test/', 'mailto:me@a.test', 'javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '', '   ', 'a.test', '//a.test/', '/x', '?x', '#x', 'http://', 'http:///',
  'http://a b/', 'http://[::1', 'http://a.test:99999/', 'http://./', 'http://../', 'http://.a.test/', 'http://a..test/', 'http://a.test../', 'http://a..:81/', 'http://1.2.3.4../', 'http://%2e/',
  `http://a.test/${'x'.repeat(limits.urlBytesMax)}`, `http://a.test/${'x/../'.repeat(limits.urlBytesMax / 4)}`, `http://a.test/${'é'.repeat(limits.urlBytesMax / 4)}`,
])('%j alone is no URL to fetch', (text) => {
  expect(fetchUrl(text)).toBeUndefined()
})

test('a URL of the greatest length is taken, and one that is longer once written out is not', () => {
  const stem = 'http://a.test/'
  const fill = (length: number): string => 'x'.repeat(length)
  expect(fetchUrl(stem + fill(limits.urlBytesMax - stem.length))).toHaveLength(limits.urlBytesMax)
  expect(fetchUrl(`${stem}${fill(limits.urlBytesMax - stem.length)}#`)).toBeUndefined()
  const base = makeBase(stem)
  expect(fetchUrl(fill(limits.urlBytesMax - stem.length), base)).toHaveLength(limits.urlBytesMax)
  expect(fetchUrl(fill(limits.urlBytesMax - stem.length + 1), base)).toBeUndefined()
  expect(fetchUrl(`é${fill(limits.urlBytesMax - stem.length - 5)}`, base)).toBeUndefined()
})

/** As the Web Platform Tests have the list (fetch/api/request/request-bad-port.any.js). */
const badPorts = [
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161,
  179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
]

test('exactly the 83 ports that the Fetch standard blocks are refused, however they are written', () => {
  const refused = Array.from({ length: 65_536 }, (_, port) => port).filter((port) => fetchUrl(`http://a.test:${port}/`) === undefined)
  expect(refused).toEqual(badPorts)
  expect(badPorts).toHaveLength(83)
  for (const text of ['http://a.test:025/', 'https://A.test:00000000025/', 'http://[2001:db8::1]:25/', 'http://a.test.:25', 'http://1.2.3.4:25?x:80', '//a.test:2\n5/']) {
    expect(refusalOf(text, makeBase('http://b.test/')), text).toBe('port')
    expect(fetchUrl(text, makeBase('http://b.test/')), text).toBeUndefined()
  }
  // What looks like a port and is none; and the schemes' own.
  for (const text of ['http://a.test/:25', 'http://a.test/?x=b:25', 'http://[2001:db8::25]/', 'http://a.test:80/', 'https://a.test:443/', 'http://25:443@a.test/']) expect(fetchUrl(text), text).toBeDefined()
})

test('a base at a blocked port is none, so that nothing relative to it is fetched there', () => {
  expect(makeBase('http://a.test:25/')).toBeUndefined()
})

test('credentials in a link or a base are neither fetched nor kept', () => {
  for (const text of ['https://me:secret@a.test/x', 'https://me@a.test/x', 'https://:secret@a.test/x', 'https://good.test:x@a.test/x', 'https://a@b@a.test/x']) expect(fetchUrl(text)).toBe('https://a.test/x')
  expect(fetchUrl('/y@z', makeBase('https://me:secret@a.test/x'))).toBe('https://a.test/y@z')
})

test('the URL to fetch is as the author wrote it, but for its fragment', () => {
  expect(fetchUrl('http://a.test/%7euser/%c3?b=1&a=%2f#part')).toBe('http://a.test/%7euser/%c3?b=1&a=%2f')
})

test('a base is taken by the rules of a URL, relative to the one before it', () => {
  expect(makeBase('/b/c?d#e', makeBase('http://a.test:81/x'))).toEqual({ href: 'http://a.test:81/b/c?d', scheme: 'http:', origin: 'http://a.test:81', page: 'http://a.test:81/b/c', directory: 'http://a.test:81/b/' })
  for (const text of ['', 'data:text/html,x', 'b', 'http://a..test/']) expect(makeBase(text)).toBeUndefined()
  expect(Object.isFrozen(makeBase('http://a.test/'))).toBe(true)
})

test.each([
  ['javascript:void(0)', 'scheme'], [' \0MailTo:a@b.test', 'scheme'], ['t\te\nl\r:1', 'scheme'], ['a+b-c.d:e', 'scheme'], ['httpsx:', 'scheme'], ['httpx://a.test/', 'scheme'], [`data:${'x'.repeat(100_000)}`, 'scheme'],
  ['x'.repeat(limits.urlBytesMax + 1), 'too_long'], ['é'.repeat(limits.urlBytesMax / 2), 'too_long'], [`#${'x'.repeat(limits.urlBytesMax)}`, 'too_long'],
  ['http://', 'invalid'], ['https://a b/', 'invalid'], ['//a..test/', 'invalid'], ['h\nttp://a..test/', 'invalid'], ['//[', 'invalid'],
  [`//${'a'.repeat(64)}.test/`, 'invalid'], ['//a.test:25/', 'port'], ['http://a.test:0/', 'port'], ['https://u:p@[::1]:6667/x', 'port'], ['//a.test:99999/', 'invalid'],
])('%.40j is refused as %s', (text, reason) => {
  const base = makeBase(page)
  expect(fetchUrl(text, base)).toBeUndefined()
  expect(refusalOf(text, base)).toBe(reason)
})

test('a text is refused for its scheme exactly where URL sees another scheme, or would with something behind it', () => {
  const letters = fc.array(fc.constantFrom('h', 'T', 't', 'p', 's', 'x', '1', '+', '-', '.', ':', '/', ' ', '\t', '\n', '\0', 'é', '_', '?', '#'), { maxLength: 9 })
  fc.assert(fc.property(letters, (parts) => {
    const text = parts.join('')
    const url = parsedUrl(`${text}//a.test`, page)
    if (url === undefined || text.includes('#') || text.includes('?')) return
    expect(refusalOf(text, makeBase(page)) === 'scheme', JSON.stringify(text)).toBe(!/^https?:$/.test(url.protocol))
  }), { numRuns: 5_000 })
})

test('a host is its name without port and trailing dot, an address its brackets', () => {
  for (const [url, host] of [
    ['http://a/', 'a'], ['https://a/', 'a'], ['http://a.test.:8080/b:9', 'a.test'], ['https://a.test./', 'a.test'], ['https://a.test:81/', 'a.test'], ['http://[::1]:8080/', '[::1]'], ['https://[2001:db8::1]/x:1', '[2001:db8::1]'], ['http://1.2.3.4/?//b:1', '1.2.3.4'],
  ] as const) expect(hostOfUrl(url)).toBe(host)
  const port = fc.constantFrom('', ':80', ':443', ':8080')
  fc.assert(fc.property(fc.constantFrom('http', 'https'), fc.constantFrom('a', 'A.test.', '[::1]', 'bücher.test', '0x7f.1', 'xn--bcher-kva.test.'), port, fc.constantFrom('', '/', '/a:1', '?b.:@c'), (scheme, host, port, rest) => {
    const text = `${scheme}://${host}${port}${rest}`
    expect(hostOfUrl(fetchUrl(text)!)).toBe(new URL(text).hostname.replace(/\.$/, ''))
  }))
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { decideRobots } from '../../engine/web/robots-matcher.ts'
import { readRobotsText } from '../../threads/robots-text.ts'

/** As the engine does it: read in a worker, matched on the main thread. */
const linesOf = (rules: string): string => readRobotsText(Buffer.from(`User-agent: *\n${rules}\n`), 'x').lines
const allows = (rules: string, path: string): boolean => decideRobots(linesOf(rules), new URL(path, 'https://example.com')).isAllowed

describe('the rules', () => {
  test.each([
    ['Disallow: /a', '/a', false], ['Disallow: /a', '/ab', false], ['Disallow: /a', '/b', true], ['Disallow: /a', '/A', true], ['Disallow: /ab', '/a', true],
    ['Disallow: /', '/', false], ['Disallow: /a$', '/a', false], ['Disallow: /a$', '/ab', true], ['Disallow: /*.gif$', '/x/y.gif', false],
    ['Disallow: /*.gif$', '/x/y.gif?z', true], ['Disallow: /*.gif$', '/x.gif/y.gif', false], ['Disallow: /a*c', '/a-b-c-d', false], ['Disallow: /*?', '/a?b', false],
    ['Disallow: *', '/', false], ['Disallow: *b', '/ab', false], ['Disallow: *$', '/', false], ['Disallow: /a*', '/a', false], ['Disallow: /a*$', '/ab', false],
    ['Disallow: /a*a$', '/a', true], ['Disallow: /*aab', '/aaab', false], ['Disallow: /*a*a*b$', '/aab', false], ['Disallow: /*a*a*b$', '/ab', true],
    ['Disallow: /*abab*ab$', '/abab', true], ['Disallow: /*abab*ab$', '/ababab', false], ['Disallow: /*aabaaac', '/aabaaabaaac', false], ['Disallow: $', '/', true], ['Disallow: a', '/a', true],
  ])('"%s" and %s: allowed is %s', (rules, path, allowed) => {
    expect(allows(rules, path)).toBe(allowed)
  })

  test('the longest pattern wins, and of equals the one that allows (section 2.2.2)', () => {
    expect(allows('Disallow: /a\nAllow: /a/b', '/a/b/c')).toBe(true)
    expect(allows('Allow: /a\nDisallow: /a/b', '/a/b/c')).toBe(false)
    expect(allows('Disallow: /same\nAllow: /same', '/same')).toBe(true)
    expect(allows('Allow: /\nDisallow: /*', '/x')).toBe(false)
  })

  test('escapes are compared decoded where they stand for unreserved characters, in any case (section 2.2.2)', () => {
    for (const [pattern, path] of [
      ['/%61bc', '/abc'], ['/abc', '/%61bc'], ['/~joe', '/%7Ejoe'], ['/a%2fb', '/a%2Fb'], ['/ツ', '/%E3%83%84'], ['/%E3%83%84', '/ツ'], ['/a"b|c', '/a"b|c'],
      ['/a b', '/a%20b'], ["/?q='x'", "/?q='x'"], ['/%', '/%'], ['/%zz', '/%zz'],
    ] as const) {
      expect([pattern, allows(`Disallow: ${pattern}`, path)]).toEqual([pattern, false])
    }
    expect(allows('Disallow: /a%2fb', '/a/b')).toBe(true)
    expect(allows('Disallow: /a%2561', '/aa')).toBe(true)
  })

  test('an escaped wildcard or end is the character itself (section 2.2.3)', () => {
    expect(allows('Disallow: /file-%2A.html', '/file-*.html')).toBe(false)
    expect(allows('Disallow: /file-%2A.html', '/file-x.html')).toBe(true)
    expect(allows('Disallow: /foo-%24', '/foo-$')).toBe(false)
    expect(allows('Disallow: /foo-%24', '/foo-')).toBe(true)
    expect(allows('Disallow: /a$b', '/a$b')).toBe(false)
    expect(allows('Disallow: /a$b', '/a')).toBe(true)
  })

  test('hold for whatever origin they came from', () => {
    for (const origin of ['http://a.test', 'https://b.test:8443', 'http://[::1]:80']) expect(decideRobots(linesOf('Disallow: /a'), new URL('/a', origin)).isAllowed).toBe(false)
  })

  test('name the one that decides', () => {
    const lines = linesOf('Disallow: /a\nAllow: /a/b')
    expect(lines).toBe('+/a/b\n-/a\n')
    expect(decideRobots(lines, new URL('https://a.test/a/c'))).toEqual({ isAllowed: false, at: 6 })
    expect(decideRobots(lines, new URL('https://a.test/a/b'))).toEqual({ isAllowed: true, at: 0 })
    expect(decideRobots(lines, new URL('https://a.test/c'))).toEqual({ isAllowed: true })
  })

  test('match what a regular expression of the same meaning matches', () => {
    const text = (characters: string): fc.Arbitrary<string> => fc.string({ unit: fc.constantFrom(...characters), maxLength: 12 })
    fc.assert(fc.property(fc.array(fc.tuple(fc.boolean(), text('aab*'), fc.boolean()), { maxLength: 5 }), text('aab'), (rules, path) => {
      const written = rules.map(([isAllow, pattern, isWhole]) => ({ isAllow, pattern: `/${pattern}${isWhole ? '$' : ''}` }))
      const best = written.filter(({ pattern }) => new RegExp(`^${pattern.replaceAll('*', '.*')}`).test(`/${path}`))
        .map(({ isAllow, pattern }) => ({ isAllow, chars: pattern.replaceAll(/\*+/g, '*').length }))
        .sort((left, right) => right.chars - left.chars || Number(right.isAllow) - Number(left.isAllow))[0]
      expect(allows(written.map(({ isAllow, pattern }) => `${isAllow ? 'Allow' : 'Disallow'}: ${pattern}`).join('\n'), `/${path}`)).toBe(best?.isAllow ?? true)
    }), { numRuns: 1_000 })
  })
})

/** A file of 500 KiB of such lines. */
function fileOf(line: (at: number) => string): string {
  const lines: string[] = []
  for (let chars = 20; chars < limits.robotsBytesMax - 10_000; chars += lines.at(-1)!.length + 1) lines.push(line(lines.length))
  return linesOf(lines.join('\n'))
}

const long = new URL(`https://a.test/${'a'.repeat(7_900)}`)

describe('rules made on purpose', () => {
  test.each([
    ['as many as there may be', (at: number) => `Allow:/${at.toString(36)}`, true],
    ['prefixes as long as the path', (at: number) => `Allow:/${'a'.repeat(7_000 + at)}b`, true],
    ['a few long pieces', (at: number) => `Disallow: /*${'a'.repeat(3_000 + at)}b`, true],
    ['a wildcard in each of them', (at: number) => `Allow:*b${at.toString(36)}`, false],
    ['five hundred wildcards in each', (at: number) => `Disallow: /${'*a'.repeat(500)}b${at}`, false],
  ])('%s: a path of 7,900 characters is decided within the bound, exactly or by "no": %s', (_, line, isAllowed) => {
    const lines = fileOf(line)
    expect(lines.length).toBeGreaterThan(200_000)
    // Asked 20 times: with a search of rules x pattern x path that is some minutes.
    for (let at = 0; at < 20; at += 1) expect(decideRobots(lines, long).isAllowed).toBe(isAllowed)
    expect(decideRobots(lines, new URL('https://a.test/_about')).isAllowed).toBe(true)
  })
})

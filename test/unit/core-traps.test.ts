import { describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { queryPathHash, trapOf } from '../../engine/core/traps.ts'
import { integer, pick, withSeeds } from '../support/random.ts'

const at = (path: string): string => `http://a.test${path}`

describe('traps', () => {
  it.each<[string, ReturnType<typeof trapOf>]>([
    ['/', undefined], ['/a', undefined], ['/a/a', undefined], ['/a/a/', undefined], ['/a/b/a/b/a', undefined], ['/a?/b/b/b/b', undefined],
    ['/aa/a/a/', undefined], ['/a/a/aa', undefined], ['/a/a/b/a', undefined],
    ['/a/a/a/', 'path_repeat'], ['/x/a/a/a/y', 'path_repeat'], ['/a/a/a/?q', 'path_repeat'], ['/a/b/a/b/a/b/', 'path_repeat'],
    ['/x/a/b/c/a/b/c/a/b/c/', 'path_repeat'], ['////', 'path_repeat'], ['//x', undefined],
    ['/a/b/c/d/a/b/c/d/a/b/c/d', undefined],
    [`/${Array.from({ length: 20 }, (_, index) => index).join('/')}`, undefined], [`/${Array.from({ length: 20 }, (_, index) => index).join('/')}/`, undefined],
    [`/${Array.from({ length: 21 }, (_, index) => index).join('/')}`, 'path_depth'], [`/?${'/a'.repeat(30)}`, undefined],
    [`/${'x'.repeat(limits.linkCharsMax - at('/').length)}`, undefined], [`/${'x'.repeat(limits.linkCharsMax - at('/').length + 1)}`, 'url_length'],
  ])('of %j: %s', (path, trap) => {
    expect(trapOf(at(path))).toBe(trap)
  })

  it.each(['/i/1423529/40875/0/0/0', '/a/a/a', '/a/a/a?q/', '/x/a/b/c/a/b/c/a/b/c'])('take a name that is like the folders above it for no repetition, as Heritrix does: %j', (path) => {
    const pathologicalPath = /.*?\/(.*?\/)\1{2,}.*/
    expect([trapOf(at(path)), pathologicalPath.test(at(path))]).toEqual([undefined, false])
  })

  it('say of a path what lists of segments say', () => withSeeds(200, (random) => {
    const segments = Array.from({ length: integer(random, 25) }, () => pick(random, ['a', 'b', 'ab', '']))
    const [end, query] = [pick(random, ['', '/']), pick(random, ['', '?', '?a/a/a/a'])]
    const path = segments.join('/') + end
    const parts = path.split('/')
    if (parts.at(-1) === '') parts.pop()
    const closed = path.split('/').slice(0, -1)
    const hasRun = (run: number): boolean => closed.some((_, from) => {
      const three = [0, 1, 2].map((time) => closed.slice(from + time * run, from + (time + 1) * run))
      return three[2]!.length === run && three.every((part) => part.join('/') === three[0]!.join('/'))
    })
    const isDeep = parts.length > 20
    const doesRepeat = !isDeep && [1, 2, 3].some(hasRun)
    expect(trapOf(at(`/${path}${query}`)), path).toBe(isDeep ? 'path_depth' : doesRepeat ? 'path_repeat' : undefined)
  }))

  it('look at a path below a host that is an address, and one with a port', () => {
    expect(trapOf('http://[::1]:80/a/a/a/')).toBe('path_repeat')
    expect(trapOf('https://a.a.a/b/b')).toBeUndefined()
  })

  it('know a path by host, port and path, whatever its query or scheme; a URL without a query by nothing', () => {
    const hex = (url: string): string => Buffer.from(queryPathHash(url)!).toString('hex')
    expect(hex(at('/a?x'))).toBe(hex(at('/a?y=1?z')))
    expect(hex(at('/a?x'))).toBe(hex('https://a.test/a?x'))
    expect(new Set([at('/a?x'), at('/b?x'), 'http://b.test/a?x', 'http://a.test:81/a?x'].map(hex)).size).toBe(4)
    expect([at('/a'), at('/a?')].map(queryPathHash)).toEqual([undefined, undefined])
    expect(queryPathHash(at('/a?x'))).toHaveLength(8)
  })
})

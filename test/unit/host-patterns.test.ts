import { describe, expect, it } from 'vitest'
import { hostPatternOf } from '../../engine/core/host-patterns.ts'

describe('patterns of hosts', () => {
  it.each(['example.com/private', 'example.com?a', 'example.com\\a', 'example.com#a', 'a.test\tb.test', 'a.test b.test', 'example.com:80'])(
    '%j is no host, rather than the whole of one that is named in it', (text) => {
      expect([hostPatternOf(text), hostPatternOf(`*.${text}`)]).toEqual([undefined, undefined])
    })

  it.each(['.example.com', 'a..test', '..', '*.', '*..example.com', '*.*', '*.127.0.0.1', '*.[::1]', ''])('%j is refused, rather than a pattern that no host matches', (text) => {
    expect(hostPatternOf(text)).toBeUndefined()
  })

  it.each([['Example.COM.', 'example.com'], ['*.bücher.test', '*.xn--bcher-kva.test'], ['0x7f.1', '127.0.0.1'], ['[0:0:0:0:0:0:0:1]', '[::1]'], ['a_b.test', 'a_b.test']])('%j is %s', (text, pattern) => {
    expect(hostPatternOf(text)).toBe(pattern)
  })
})

import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { Cookies, type CookiesOptions } from '../../engine/web/cookies.ts'
import { TestClock } from '../support/test-clock.ts'

function open(options: Partial<CookiesOptions> = {}) {
  const clock = new TestClock()
  const cookies = new Cookies({ clock, ...options })
  return {
    clock, cookies,
    set: (url: string, ...fields: string[]) => cookies.receive(new URL(url), fields.flatMap((field) => ['Set-Cookie', field])),
    sent: (url: string) => cookies.headerFor(new URL(url)),
  }
}

const page = 'https://www.shop.test/a/b'

describe('a cookie', () => {
  test('goes back to the host that set it, and to no other, not even of its domain', () => {
    const { set, sent } = open()
    expect(set(page, 'id=1')).toBe(true)
    expect(sent(page)).toBe('id=1')
    expect(['https://shop.test/a/b', 'https://m.shop.test/a/b', 'https://x.www.shop.test/a/b', 'https://other.test/a/b', 'https://ashop.test/'].map(sent)).toEqual(Array(5).fill(undefined))
  })

  test('with a Domain goes to the hosts below it too, as far as the registrable domain reaches', () => {
    const { set, sent } = open()
    set(page, 'id=1; Domain=.Shop.test')
    expect(['https://shop.test/a/b', 'https://m.shop.test/a/b'].map(sent)).toEqual(['id=1', 'id=1'])
    expect(['https://ashop.test/a/b', 'https://test/a/b'].map(sent)).toEqual([undefined, undefined])
  })

  test.each([
    ['another host', page, 'other.test'], ['a host of the same domain', page, 'm.shop.test'], ['a host below', page, 'x.www.shop.test'],
    ['a top-level domain', 'https://www.shop.com/', 'com'], ['a public suffix', 'https://shop.co.uk/', 'co.uk'],
    ['a suffix of a hosting service', 'https://one.github.io/', 'github.io'], ['what only ends alike', page, 'hop.test'],
    ['a part of an address', 'https://10.0.0.1/', '0.0.1'], ['no domain', page, '[::'], ['dots', page, '..'],
  ])('for the domain of %s is refused', (_, url, domain) => {
    const { cookies, set } = open()
    expect(set(url, `id=1; Domain=${domain}`)).toBe(false)
    expect(cookies.stats()).toEqual({ sites: 0, cookies: 0, bytes: 0 })
  })

  test('of an address goes back to that address', () => {
    const { set, sent } = open()
    for (const host of ['10.0.0.1', '[2001:db8::1]']) {
      set(`https://${host}/`, `id=1; Domain=${host}`)
      expect(sent(`https://${host}/`)).toBe('id=1')
    }
    expect(sent('https://10.0.0.2/')).toBeUndefined()
  })

  test('goes to its path and below, longer paths first, else older ones first', () => {
    const { set, sent } = open()
    set(page, 'd=4', 'c=3; Path=/a/b', 'a=1; Path=/', 'b=2; Path=relative', 'e=5; Path=/a/bc')
    expect(sent('https://www.shop.test/a/b')).toBe('c=3; d=4; b=2; a=1')
    expect(sent('https://www.shop.test/a/b/c')).toBe('c=3; d=4; b=2; a=1')
    expect(sent('https://www.shop.test/ab')).toBe('a=1')
    set(page, 'a=9; Path=/')
    set(page, 'z=0; Path=/')
    expect(sent('https://www.shop.test/')).toBe('a=9; z=0')
  })

  test('in clear text does not come before one that is Secure, by a longer path or a wider domain', () => {
    const { set, sent } = open()
    set('https://www.shop.test/', 'id=1; Secure; Path=/')
    expect(set('http://www.shop.test/a/b', 'id=2; Path=/a')).toBe(false)
    expect(set('http://m.shop.test/a/b', 'id=2; Path=/a; Domain=shop.test')).toBe(false)
    expect(sent('https://www.shop.test/a/b')).toBe('id=1')
    expect([set('http://www.shop.test/', 'other=2'), set('http://m.shop.test/', 'id=3')]).toEqual([true, true])
  })

  test('that is Secure goes over TLS alone, and is neither set nor replaced without', () => {
    const { set, sent } = open()
    expect(set('http://www.shop.test/', 'no=1; Secure')).toBe(false)
    set('https://www.shop.test/', 'id=1; Secure')
    expect(set('http://www.shop.test/', 'id=2')).toBe(false)
    expect(sent('http://www.shop.test/')).toBeUndefined()
    expect(sent('https://www.shop.test/')).toBe('id=1')
    // No exception for an own machine.
    expect(set('http://localhost/', 'id=1; Secure')).toBe(false)
  })

  test('whose name promises more than it keeps is refused', () => {
    const { set, sent } = open()
    set('https://www.shop.test/', '__Secure-a=1', '__Host-b=1; Secure', '__Host-c=1; Secure; Path=/; Domain=shop.test', '__host-d=1; Path=/')
    expect(sent('https://www.shop.test/')).toBeUndefined()
    set('https://www.shop.test/', '__Host-e=1; Secure; Path=/', '__Secure-f=1; secure')
    expect(sent('https://www.shop.test/')).toBe('__Host-e=1; __Secure-f=1')
  })

  test('ends at its time, which its use does not put off', () => {
    const { clock, cookies, set, sent } = open()
    set(page, 'a=1; Max-Age=60', 'b=2; Expires=Thu, 01 Jan 2026 00:00:50 GMT', 'c=3; Expires=never', 'd=4; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT')
    expect(sent(page)).toBe('a=1; b=2; c=3; d=4')
    clock.advance(49_999)
    expect(sent(page)).toBe('a=1; b=2; c=3; d=4')
    clock.advance(1)
    expect(sent(page)).toBe('a=1; c=3; d=4')
    clock.advance(10_000)
    expect(sent(page)).toBe('c=3')
    expect(cookies.stats().cookies).toBe(1)
  })

  test('is taken back by one that has ended already', () => {
    const { cookies, set, sent } = open()
    set(page, 'a=1', 'b=2')
    expect(set(page, 'a=; Max-Age=0')).toBe(true)
    expect(set(page, 'x=; Expires=Thu, 01 Jan 1970 00:00:00 GMT')).toBe(false)
    expect(sent(page)).toBe('b=2')
    expect(set(page, 'b=; Max-Age=-1')).toBe(true)
    expect(sent(page)).toBeUndefined()
    expect(cookies.stats()).toEqual({ sites: 0, cookies: 0, bytes: 0 })
  })

  test('that is set again as it was is nothing new', () => {
    const { set } = open()
    expect([set(page, 'a=1'), set(page, 'a=1; HttpOnly'), set(page, 'a=2'), set(page, 'a=1; Path=/')]).toEqual([true, false, true, true])
  })
})

describe('a hostile server', () => {
  test('with what is no cookie changes nothing, and nothing is thrown', () => {
    const { cookies, set } = open()
    const texts = ['', ';', '=', '=1', 'name', 'a\u0000=1', 'a=\u0007', 'a=1; Path=/\u0001', 'a=1\r\nX-Evil: 1', 'a=\u007f', 'a=1; Domain=\u0000', ';;;;=;=', `a=1; Domain=${'a.'.repeat(1_500)}test`]
    expect(texts.filter((text) => set(page, text))).toEqual([])
    expect(cookies.stats().cookies).toBe(0)
  })

  test('has a cookie of more than 4 KB refused, and one of 1 MB unread', () => {
    const { cookies, set } = open()
    const ofLength = (length: number): string => `a=${'x'.repeat(length - 2)}`
    expect([limits.cookieBytesMax + 1, 1_048_576].map((length) => set(page, ofLength(length)))).toEqual([false, false])
    expect(cookies.stats().cookies).toBe(0)
    expect(set(page, ofLength(limits.cookieBytesMax))).toBe(true)
  })

  test('with 1,000 cookies of 4 KB in each of 10 answers fills its jar of 50, of which 8 KB are sent', () => {
    const { cookies, set, sent } = open()
    for (let answer = 0; answer < 10; answer += 1) set(page, ...Array.from({ length: 1_000 }, (_, at) => `n${answer}-${at}=`.padEnd(limits.cookieBytesMax, 'x')))
    expect(cookies.stats().cookies).toBe(limits.cookiesPerSiteMax)
    expect(sent(page)!.length).toBeLessThanOrEqual(limits.cookieHeaderBytesMax)
    expect(sent(page)).toMatch(/^n9-0=x+$/)
  })

  test('that sets and deletes on ever new paths leaves nothing behind', () => {
    const { cookies, set } = open()
    for (let at = 0; at < 1_000; at += 1) {
      set(page, `a=1; Path=/${at}`)
      set(page, `a=1; Path=/${at}; Max-Age=0`)
    }
    expect(cookies.stats()).toEqual({ sites: 0, cookies: 0, bytes: 0 })
  })

  test('that sets one cookie again and again has the room of one', () => {
    const { cookies, set } = open()
    set(page, 'a=1')
    const { bytes } = cookies.stats()
    for (let at = 0; at < 1_000; at += 1) set(page, `a=${at % 10}`)
    expect(cookies.stats()).toEqual({ sites: 1, cookies: 1, bytes })
  })

  test('cannot make the jars of all sites more than their bounds: those unused for longest are forgotten', () => {
    const { cookies, set, sent } = open({ sitesMax: 3 })
    const url = (at: number): string => `https://www.site${at}.test/`
    for (const at of [1, 2, 3]) set(url(at), 'a=1')
    sent(url(1))
    set(url(4), 'a=1')
    expect([1, 2, 3, 4].map((at) => sent(url(at)))).toEqual(['a=1', undefined, 'a=1', 'a=1'])

    const small = open({ bytesMax: 20_000 })
    for (let at = 0; at < 100; at += 1) small.set(url(at), `a=${'x'.repeat(4_000)}`)
    expect(small.cookies.stats().bytes).toBeLessThanOrEqual(20_000)
    expect(small.sent(url(99))).toBeDefined()
    expect(cookies.stats().sites).toBe(3)
  })
})

import { describe, expect, test } from 'vitest'
import { makeBase } from '../../engine/core/fetch-url.ts'
import { namesUser, whyNotFetched, withoutUser } from '../../engine/core/url-text.ts'

describe('the text of a URL', () => {
  test.each([
    ['http://me:secret@a.test/', true], ['//me@a.test', true], ['https:me:secret@a.test', true], ['https://:secret@a.test/', true], ['\\\\me@a.test/x', true], ['ht\ntp://me@a.test/', true],
    ['http://a.test/@me', false], ['/@me', false], ['?mail=me@a.test', false], ['#me@a.test', false], ['http://@a.test/', false], ['http://a.test/', false],
  ])('%j names a user: %j', (text, does) => {
    expect(namesUser(text, makeBase('http://b.test/'))).toBe(does)
  })

  test.each([
    ['http://me:secret@a.test:25/x', 'http://***@a.test:25/x'], ['http://me:sec/ret@a.test/', 'http://***@a.test/'], ['me:secret@a.test', 'me:***@a.test'], ['  ftp://me:s@e@a.test/', '  ftp://***@a.test/'],
    ['http:\\\\me:secret\n@a.test', 'http:\\\\***@a.test'], ['http://a.test/x', 'http://a.test/x'], ['no url', 'no url'],
  ])('%j is told as %j', (text, told) => {
    expect(withoutUser(text)).toBe(told)
  })

  test('of a megabyte is told in one pass', () => {
    expect(withoutUser(`http://${'a:'.repeat(500_000)}`)).toHaveLength(1_000_007)
    expect(withoutUser(`http://${'@'.repeat(1_000_000)}b`)).toBe('http://***@b')
  })

  test.each([['ftp://a.test/', 'not an http'], ['http://[', 'not an http'], ['http://a.test:25/', 'its port belongs to another protocol'], [`http://a.test/${'x'.repeat(8_000)}`, 'longer than 8000 bytes']])('%.20j is not fetched: %s', (text, why) => {
    expect(whyNotFetched(text)).toContain(why)
  })
})

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { optionsOfFlags } from '../../engine/cli/flags.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import { HostHeaders, parseHostHeaders } from '../../engine/core/host-headers.ts'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions, storedOptions, type CrawlOptionsGiven } from '../../engine/core/options.ts'
import { readHostHeaders } from '../../engine/fetch/host-headers-file.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-headers-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

const basic = { username: 'us er', password: 'hush:ü1' }
const one = { origin: 'https://Intranet.Example.com', headers: { 'X-Api-Key': 'hush2', Accept: 'text/html' }, basic }
const secrets = /hush|us er|dXMgZXI/

const file = (origin: unknown): unknown => ({ origins: [origin] })
const written = (text: string): string => {
  const name = path.join(dir, 'headers.json')
  fs.writeFileSync(name, text)
  return name
}

function refusal(call: () => unknown): SluiceError {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    expect((error as SluiceError).message).not.toContain('\n')
    expect(inspect(error)).not.toMatch(secrets)
    return error as SluiceError
  }
  return expect.unreachable('the file was taken')
}

describe('a file of headers by origin', () => {
  test('gives one origin its fields and its password, and no other origin any', () => {
    const headers = parseHostHeaders(file(one))
    expect(headers.of('https://intranet.example.com').map(([name, value]) => [name, value.reveal()])).toEqual([
      ['x-api-key', 'hush2'], ['accept', 'text/html'], ['authorization', `Basic ${Buffer.from('us er:hush:ü1').toString('base64')}`],
    ])
    const others = ['http://intranet.example.com', 'https://intranet.example.com:8443', 'https://example.com', 'https://a.intranet.example.com', 'https://intranet.example.com.']
    expect(others.flatMap((origin) => headers.of(origin))).toEqual([])
  })

  test('names a port and a name in any form of the URL standard', () => {
    const origins = ['http://a.test:8080', 'https://b.test:443/', 'https://bücher.test', 'https://[2001:DB8::1]']
    const headers = parseHostHeaders({ origins: origins.map((origin) => ({ origin, headers: { a: 'b' } })) })
    for (const origin of ['http://a.test:8080', 'https://b.test', 'https://xn--bcher-kva.test', 'https://[2001:db8::1]']) expect(headers.of(origin)).toHaveLength(1)
  })

  test.each<[string, unknown, RegExp]>([
    ['no object', 'hush', /the file: expected an object/],
    ['no list', { origins: { 'https://a.test': { headers: { a: 'hush' } } } }, /origins: expected a list of 1 to/],
    ['an empty list', { origins: [] }, /origins: expected a list/],
    ['too many', { origins: Array.from({ length: limits.hostHeadersOriginsMax + 1 }, () => one) }, /origins: expected a list/],
    ['another field', { origins: [one], hosts: [] }, /the file: expected no fields but origins, given hosts/],
    ['an origin twice', { origins: [one, { ...one, origin: 'https://intranet.example.com:443' }] }, /origins\[1\]\.origin: expected each origin once/],
    ['no scheme', file({ ...one, origin: 'intranet.example.com' }), /origins\[0\]\.origin: /],
    ['another scheme', file({ ...one, origin: 'ftp://a.test' }), /origins\[0\]\.origin: /],
    ['a pattern', file({ ...one, origin: 'https://*.example.com' }), /origins\[0\]\.origin: .*pattern/],
    ['a path', file({ ...one, origin: 'https://a.test/hush' }), /origins\[0\]\.origin: /],
    ['a query', file({ ...one, origin: 'https://a.test?hush' }), /origins\[0\]\.origin: /],
    ['a user in the origin', file({ ...one, origin: 'https://user:hush@a.test' }), /origins\[0\]\.origin: /],
    ['nothing to send', file({ origin: 'https://a.test' }), /origins\[0\]: expected "headers", "basic" or both/],
    ['a secret for a field', file({ ...one, 'hush-1': 1 }), /origins\[0\]: expected no fields but [^,]+(, \w+)*$/],
    ['headers as a list', file({ ...one, headers: ['hush'] }), /origins\[0\]\.headers: /],
    ['a header that frames the message', file({ ...one, headers: { A: 'b', 'Transfer-Encoding': 'hush' } }), /the name of number 2: .*given Transfer-Encoding/],
    ['another host', file({ ...one, headers: { Host: 'hush' } }), /given Host$/],
    ['another user agent', file({ ...one, headers: { 'user-agent': 'hush' } }), /given user-agent$/],
    ['a coding that cannot be decoded', file({ ...one, headers: { 'Accept-Encoding': 'hush' } }), /given Accept-Encoding$/],
    ['a part of each page', file({ ...one, headers: { Range: 'bytes=0-1' } }), /given Range$/],
    ['a condition', file({ ...one, headers: { 'If-None-Match': '"hush"' } }), /given If-None-Match$/],
    ['a header name with a line break', file({ ...one, headers: { 'hush\r\nX': 'a' } }), /the name of number 1: [^"]+$/],
    ['a header value with a line break', file({ ...one, headers: { 'X-A': 'hush\r\nX-B: c' } }), /the value of number 1: /],
    ['a header value that is a number', file({ ...one, headers: { 'X-A': 5 } }), /the value of number 1: /],
    ['a header twice', file({ ...one, headers: { 'X-A': 'hush', 'x-a': 'hush' } }), /each header once/],
    ['two authorizations', file({ ...one, headers: { Authorization: 'Bearer hush' } }), /no authorization beside "basic"/],
    ['more than can be sent', file({ ...one, headers: { 'X-A': 'hush'.repeat(2_000) } }), /headers of at most 8000 bytes/],
    ['a password alone', file({ origin: 'https://a.test', basic: 'hush' }), /origins\[0\]\.basic: /],
    ['no password', file({ origin: 'https://a.test', basic: { username: 'us er' } }), /origins\[0\]\.basic\.password: /],
    ['a user with a colon', file({ origin: 'https://a.test', basic: { username: 'us er:hush', password: 'hush' } }), /origins\[0\]\.basic\.username: /],
    ['a password with a line break', file({ origin: 'https://a.test', basic: { username: 'a', password: 'hush\n' } }), /origins\[0\]\.basic\.password: /],
  ])('with %s is refused with the place and what was expected there', (_, given, message) => {
    const error = refusal(() => parseHostHeaders(given))
    expect(error.code).toBe('bad_option')
    expect(error.message).toMatch(message)
    expect(error.message).toMatch(/^--host-headers: /)
  })

  test.each<[string, string, RegExp]>([
    ['a text that is no JSON', '{\n"origins": [\nhush}', /--host-headers: .*expected JSON.*not shown here/],
    ['a value that is refused', JSON.stringify(file({ ...one, origin: 'hush' })), /origins\[0\]\.origin/],
    ['more bytes than are read', ' '.repeat(limits.hostHeadersFileBytesMax + 1), /expected a file of at most 1048576 bytes/],
  ])('that is %s is refused before anything is started, without a word of what it holds', (_, text, message) => {
    const name = written(text)
    for (const read of [() => readHostHeaders(name), () => optionsOfFlags({ hostHeaders: name })]) {
      const error = refusal(read)
      expect(error.code).toBe('bad_option')
      expect(error.message).toMatch(message)
    }
  })

  test('that cannot be read is file_unreadable', () => {
    expect(refusal(() => optionsOfFlags({ hostHeaders: path.join(dir, 'none') })).code).toBe('file_unreadable')
    expect(refusal(() => readHostHeaders(dir)).code).toBe('file_unreadable')
  })
})

describe('what is secret', () => {
  test('is seen neither in JSON nor by inspection', () => {
    const headers = parseHostHeaders(file(one))
    for (const shown of [JSON.stringify(headers), inspect(headers, { depth: 9, showHidden: true }), String(headers), inspect(headers.of('https://intranet.example.com'))]) expect(shown).not.toMatch(secrets)
  })

  test('is not kept with the crawl: the path of a file is, and an object is not', () => {
    const resolved = resolveCrawlOptions({ hostHeaders: { origins: [one] } })
    expect(resolved.hostHeaders).toBeInstanceOf(HostHeaders)
    expect(storedOptions(resolved)).not.toHaveProperty('hostHeaders')
    const name = written(JSON.stringify({ origins: [one] }))
    expect(storedOptions(resolveCrawlOptions(optionsOfFlags({ hostHeaders: name }).crawl))).toMatchObject({ hostHeaders: name })
    expect(resolveCrawlOptions({ hostHeaders: resolved.hostHeaders }).hostHeaders).toBe(resolved.hostHeaders)
  })

  test('is no part of the message when an option is nonsense', () => {
    for (const given of ['', 5, null, [one], one]) refusal(() => resolveCrawlOptions({ hostHeaders: given } as unknown as CrawlOptionsGiven))
  })
})

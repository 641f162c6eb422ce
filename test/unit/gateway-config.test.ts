import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { SluiceError } from '../../engine/core/errors.ts'
import { GatewayConfigs, parseGateways, type ProxyGateway, type TemplateGateway } from '../../engine/core/gateway-config.ts'
import { HostPatterns, matchesHost, patternsOf } from '../../engine/core/host-patterns.ts'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions, storedOptions, type CrawlOptionsGiven } from '../../engine/core/options.ts'
import { readGateways } from '../../engine/fetch/gateway-file.ts'
import { optionsOfFlags } from '../../engine/cli/flags.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-gateway-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

const proxy = { name: 'eu', proxy: 'http://us%40er:hush%3A1@proxy.example:3128', hosts: ['*'] }
const api = { name: 'api', template: 'https://api.example/v1?key=hush2&url={url}', headers: { 'X-Key': 'hush3' }, hosts: ['*.example.com'] }
const wellKnown = /hush|us@er|us%40er/

function refusal(call: () => unknown): SluiceError {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    const { message } = error as SluiceError
    expect(message).not.toContain('\n')
    // Neither the message nor what Node prints of the error, its cause included, repeats a secret.
    expect(inspect(error)).not.toMatch(wellKnown)
    return error as SluiceError
  }
  return expect.unreachable('the file was taken')
}

const written = (text: string): string => {
  const file = path.join(dir, 'gateways.json')
  fs.writeFileSync(file, text)
  return file
}

describe('a gateway file', () => {
  test('gives proxies and templates, with defaults where it says nothing', () => {
    const [one, other] = parseGateways({ gateways: [proxy, api] }).list as [ProxyGateway, TemplateGateway]
    expect(one).toMatchObject({
      kind: 'proxy', name: 'eu', secure: false, host: 'proxy.example', port: 3_128, concurrency: { start: 4, floor: 1, ceiling: 32 },
      quotaStatus: [509, 402], resetHeader: 'x-ratelimit-reset', retries: false,
    })
    expect(Buffer.from(one.authorization!.reveal().slice('Basic '.length), 'base64').toString()).toBe('us@er:hush:1')
    expect(other.template.reveal()).toBe(api.template)
    expect(other.headers.map(([name, value]) => [name, value.reveal()])).toEqual([['x-key', 'hush3']])
  })

  test('takes what it says', () => {
    const [one] = parseGateways({
      gateways: [{ name: 'a', proxy: 'https://[2001:db8::1]', hosts: ['a.test', 'Bücher.test'], concurrency: '2:1:8', quotaStatus: [403], resetHeader: 'X-Reset', retries: true }],
    }).list as [ProxyGateway]
    expect(one).toMatchObject({
      secure: true, host: '[2001:db8::1]', port: 443, authorization: undefined, concurrency: { start: 2, floor: 1, ceiling: 8 },
      quotaStatus: [403], resetHeader: 'x-reset', retries: true,
    })
    expect(one.hosts.has('xn--bcher-kva.test')).toBe(true)
  })

  test.each<[string, unknown, RegExp]>([
    ['no object', 'hush', /the file: expected an object/],
    ['no list', { gateways: {} }, /gateways: expected a list of 1 to/],
    ['an empty list', { gateways: [] }, /gateways: expected a list/],
    ['too many', { gateways: Array.from({ length: limits.gatewaysMax + 1 }, () => proxy) }, /gateways: expected a list/],
    ['another field', { gateways: [proxy], defaults: {} }, /the file: expected no fields but gateways, given defaults/],
    ['a name twice', { gateways: [proxy, proxy] }, /each name once, given "eu" twice/],
    ['no kind', { gateways: [{ name: 'a', hosts: ['*'] }] }, /gateways\[0\]: expected either "proxy" or "template"/],
    ['both kinds', { gateways: [{ ...proxy, template: api.template }] }, /gateways\[0\]: expected either/],
    ['a field of the other kind', { gateways: [{ ...proxy, headers: {} }] }, /gateways\[0\]: expected no fields but .*, given headers/],
    ['a secret for a field', { gateways: [{ ...proxy, 'hush-1': 1 }] }, /gateways\[0\]: expected no fields but [^,]+(, \w+)*$/],
    ['no name', { gateways: [{ ...proxy, name: '' }] }, /gateways\[0\]\.name: /],
    ['no hosts', { gateways: [proxy, { ...api, hosts: [] }] }, /gateways\[1\]\.hosts: /],
    ['a pattern with a star inside', { gateways: [{ ...proxy, hosts: ['*', 'a.*.test'] }] }, /gateways\[0\]\.hosts\[1\]: .*given "a\.\*\.test"/],
    ['a URL for a host', { gateways: [{ ...proxy, hosts: ['http://a.test/'] }] }, /gateways\[0\]\.hosts\[0\]: /],
    ['a concurrency that contradicts itself', { gateways: [{ ...proxy, concurrency: '4:8:2' }] }, /gateways\[0\]\.concurrency: .*given "4:8:2"/],
    ['a status that is none', { gateways: [{ ...proxy, quotaStatus: [200] }] }, /gateways\[0\]\.quotaStatus: .*given \[200\]/],
    ['one status that is no list', { gateways: [{ ...proxy, quotaStatus: 509 }] }, /gateways\[0\]\.quotaStatus: /],
    ['a header name with a space', { gateways: [{ ...proxy, resetHeader: 'x reset' }] }, /gateways\[0\]\.resetHeader: /],
    ['retries as a number', { gateways: [{ ...proxy, retries: 3 }] }, /gateways\[0\]\.retries: .*given 3/],
    ['a proxy of another scheme', { gateways: [{ ...proxy, proxy: 'socks5://user:hush@a.test' }] }, /gateways\[0\]\.proxy: /],
    ['a proxy without a scheme', { gateways: [{ ...proxy, proxy: 'user:hush@a.test:1' }] }, /gateways\[0\]\.proxy: /],
    ['a proxy with a path', { gateways: [{ ...proxy, proxy: 'http://a.test/hush' }] }, /gateways\[0\]\.proxy: /],
    ['a broken escape in a password', { gateways: [{ ...proxy, proxy: 'http://user:hush%zz@a.test' }] }, /gateways\[0\]\.proxy: .*escape/],
    ['a template without {url}', { gateways: [{ ...api, template: 'https://a.test/?key=hush' }] }, /gateways\[0\]\.template: /],
    ['a template with two', { gateways: [{ ...api, template: 'https://a.test/{url}/{url}' }] }, /gateways\[0\]\.template: /],
    ['a template whose host the page would name', { gateways: [{ ...api, template: 'https://{url}.a.test/hush' }] }, /gateways\[0\]\.template: /],
    ['a template whose host begins with the page', { gateways: [{ ...api, template: 'https://{url}/hush' }] }, /gateways\[0\]\.template: /],
    ['a template with a user', { gateways: [{ ...api, template: 'https://user:hush@a.test/{url}' }] }, /gateways\[0\]\.template: /],
    ['a template with {url} in its fragment', { gateways: [{ ...api, template: 'https://a.test/hush#{url}' }] }, /gateways\[0\]\.template: /],
    ['headers as a list', { gateways: [{ ...api, headers: ['hush'] }] }, /gateways\[0\]\.headers: /],
    ['a header that frames the message', { gateways: [{ ...api, headers: { 'X-A': 'b', 'Content-Length': '5' } }] }, /gateways\[0\]\.headers, the name of number 2: /],
    ['a header value with a line break', { gateways: [{ ...api, headers: { 'X-A': 'hush\r\nX-B: c' } }] }, /gateways\[0\]\.headers, the value of number 1: /],
  ])('with %s is refused with the place and what was expected there', (_, given, message) => {
    const error = refusal(() => parseGateways(given))
    expect(error.code).toBe('bad_option')
    expect(error.message).toMatch(message)
    expect(error.message).toMatch(/^--gateway: /)
  })

  test.each<[string, string, RegExp]>([
    ['a text that is no JSON', '{\n"gateways": [\nhush}', /expected JSON.*not shown here/],
    ['a cut file', '{"gateways": [{"proxy": "http://u:hush@', /expected JSON/],
    ['a value that is refused', JSON.stringify({ gateways: [{ ...proxy, name: 5 }] }), /gateways\[0\]\.name/],
    ['more bytes than are read', ' '.repeat(limits.gatewayFileBytesMax + 1), /expected a file of at most 1048576 bytes/],
  ])('that is %s is refused without a word of what it holds', (_, text, message) => {
    const file = written(text)
    for (const read of [() => readGateways(file), () => optionsOfFlags({ gateway: file })]) {
      const error = refusal(read)
      expect(error.code).toBe('bad_option')
      expect(error.message).toMatch(message)
    }
  })

  test('that cannot be read is file_unreadable, before anything is started', () => {
    expect(refusal(() => optionsOfFlags({ gateway: path.join(dir, 'none') })).code).toBe('file_unreadable')
    expect(refusal(() => readGateways(dir)).code).toBe('file_unreadable')
  })
})

describe('what is secret', () => {
  const configs = parseGateways({ gateways: [proxy, api] })

  test('is seen neither in JSON, nor as a string, nor by inspection', () => {
    const { template } = configs.list[1] as TemplateGateway
    for (const shown of [JSON.stringify(configs), inspect(configs, { depth: 9, showHidden: true }), String(template), `${template as unknown as string}`]) expect(shown).not.toMatch(wellKnown)
  })

  test('is not kept with the crawl: the path of a file is, and an object is not', () => {
    const resolved = resolveCrawlOptions({ gateway: { gateways: [proxy, api] } })
    expect(resolved.gateway).toBeInstanceOf(GatewayConfigs)
    expect(storedOptions(resolved)).not.toHaveProperty('gateway')
    expect(storedOptions(resolveCrawlOptions({ gateway: '/etc/gateways.json' }))).toMatchObject({ gateway: '/etc/gateways.json' })
    // Options that were resolved may be given again.
    expect(resolveCrawlOptions({ gateway: resolved.gateway }).gateway).toBe(resolved.gateway)
  })

  test('is no part of the message when an option is nonsense', () => {
    for (const given of ['', 5, null, [proxy], { proxy: 'http://user:hush@a.test' }]) refusal(() => resolveCrawlOptions({ gateway: given } as unknown as CrawlOptionsGiven))
  })
})

test('a pattern matches every host, one, or all below one and not itself', () => {
  const patterns = new HostPatterns()
  for (const pattern of ['*.example.com', 'A.test', '[::1]', '10.0.0.1']) expect(patterns.add(pattern)).toBe(true)
  expect(['x.example.com', 'y.x.example.com', 'a.test', '[::1]', '10.0.0.1'].filter((host) => !patterns.has(host))).toEqual([])
  expect(['example.com', 'badexample.com', 'b.a.test', 'com', '1.10.0.0.1', ''].filter((host) => patterns.has(host))).toEqual([])
  expect(['', '*.', '**', 'a b', '*.*.test'].filter((pattern) => patterns.add(pattern))).toEqual([])
  const all = new HostPatterns()
  all.add('*')
  expect(all.has('anything')).toBe(true)
})

test('a rule, a set and a change of a limit mean the same hosts by a pattern, and an address has none below it', () => {
  const hosts = ['test', 'a.test', 'b.a.test', '127.0.0.1', '[::1]', 'x0.0.1', '']
  for (const pattern of ['*', '*.test', '*.a.test', 'test', '*.0.0.1', '127.0.0.1', '[::1]']) {
    const patterns = new HostPatterns()
    patterns.add(pattern)
    const meant = hosts.filter((host) => matchesHost(pattern, host))
    expect(hosts.filter((host) => patterns.has(host)), pattern).toEqual(meant)
    expect(hosts.filter((host) => patternsOf(host).includes(pattern)), pattern).toEqual(meant)
    expect(meant.includes('127.0.0.1'), pattern).toBe(pattern === '*' || pattern === '127.0.0.1')
  }
})

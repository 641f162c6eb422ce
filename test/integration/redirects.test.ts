/**
 * Redirects and refreshes over real sockets, all in one crawl, since each hop waits for a commit: every hop is judged
 * anew, chains end, and no URL is lost or asked for twice. The depth is 0: what is asked for besides the seeds is a hop.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type OutgoingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { Crawler, type PageRecord, type Summary } from '../../engine/index.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { faultsOf } from '../contract/store-batch.ts'
import { countsOf, notOnce, readPages } from '../support/crawl.ts'

interface Answer {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

let server: Server
let dir: string
let port: number
let summary: Summary
let records: readonly PageRecord[]
let problems: readonly string[]
/** `host/path` of each request, robots.txt aside. */
const asked: string[] = []

function page(body = '<p>page', headers: OutgoingHttpHeaders = {}): Answer {
  return { status: 200, headers: { 'content-type': 'text/html', ...headers }, body }
}

function to(location: string | string[], status = 302, headers: OutgoingHttpHeaders = {}): Answer {
  // Node's types know of one Location only.
  return { status, headers: { location: location as string, 'content-type': 'text/html', ...headers }, body: '<a href=/in-the-body>x</a>' }
}

function refresh(target: string, seconds = 0): string {
  return `<meta http-equiv=refresh content="${seconds}; url=${target}"><a href=/in-the-body>x</a>`
}

const setCookie = (name: string): OutgoingHttpHeaders => ({ 'set-cookie': `${name}=1` })
const latin1 = (text: string): string => Buffer.from(text).toString('latin1')

/** By `host/path`. What is not there is a page. */
const answers: Readonly<Record<string, (cookie: string) => Answer>> = {
  'a.test/metadata/0': () => to('1'),
  'a.test/metadata/1': () => to('2'),
  'a.test/metadata/2': () => to('http://169.254.169.254/latest/meta-data/'),
  'a.test/inside/0': () => to('1'),
  'a.test/inside/1': () => to('2'),
  'a.test/inside/2': () => to('http://inside.test/'),
  'a.test/scheme': () => to('ftp://me:secret@a.test/file'),
  'a.test/scope': () => to(`http://out.test:${port}/`),
  'a.test/robots': () => to(`http://b.test:${port}/private`),
  'a.test/port': () => to('http://a.test:22/'),
  'a.test/host': () => to(`http://b.test:${port}/arrived`),
  'a.test/seen/1': () => to('/seen/page'),
  'a.test/seen/2': () => to('/seen/page'),
  'a.test/seen/3': () => to('/plain'),

  'a.test/self': () => to('/self'),
  'a.test/two/a': () => to('b'),
  'a.test/two/b': () => to('a'),
  'a.test/three/a': () => to('b'),
  'a.test/three/b': () => to('c'),
  'a.test/three/c': () => to('a'),
  'a.test/spelling': () => to('/other'),
  'a.test/other': () => to('/spelling/'),
  'a.test/ring': () => to('/ring/b'),
  'a.test/ring/b': () => to('/ring/'),
  'a.test/ring/': () => to('/ring'),

  // Each wall has a cookie of its own, or those that are asked later would stand open.
  'a.test/wall': (cookie) => (cookie.includes('wall=') ? page('<title>behind') : to('/wall', 302, setCookie('wall'))),
  'a.test/checked': (cookie) => (cookie.includes('check=') ? page('<title>behind') : to('/check', 302, setCookie('check'))),
  'a.test/check': () => to('/checked'),
  'a.test/wall/page': (cookie) => (cookie.includes('page=') ? page('<title>behind') : page(refresh('/wall/page'), setCookie('page'))),
  'a.test/wall/endless': () => to('/wall/endless', 302, setCookie('endless')),

  'a.test/refresh/0': () => page(refresh('1', 3)),
  'a.test/refresh/1': () => page('<p>x', { refresh: '0;url=2' }),
  'a.test/refresh/2': () => to('3'),
  'a.test/refresh/slow': () => page(refresh('/never', 30)),
  'a.test/refresh/script': () => page(refresh('javascript:alert(1)')),
  'a.test/refresh/two/a': () => page(refresh('b')),
  'a.test/refresh/two/b': () => page(refresh('a')),

  'a.test/empty': () => to(''),
  'a.test/two-locations': () => to(['/first', '/second']),
  'a.test/fragment': () => to('/fragment/to#part', 308),
  'a.test/spaces': () => to('/spaces to', 303),
  'a.test/utf-8': () => to(latin1('/utf-8/é?é'), 301),
  'a.test/latin-1': () => to('/latin-1/é', 307),
  'a.test/user': () => to(`http://me:secret@a.test:${port}/user/to`),
  'a.test/300': () => to('/300/choice', 300),
  'a.test/300-alone': () => ({ status: 300, headers: {}, body: '' }),
  'a.test/304': () => to('/never', 304),
  'a.test/305': () => to('/never', 305),
  'a.test/306': () => to('/never', 306),
  'a.test/megabyte': () => to(`/${'x'.repeat(1_048_576)}`),
}
/** `/chain/LENGTH/0` is so many hops before its page. */
const CHAINS = [limits.redirectsMax, limits.redirectsMax + 1]
const seeds = [
  'metadata/0', 'inside/0', 'scheme', 'scope', 'robots', 'port', 'host', 'plain', 'seen/1', 'seen/2', 'seen/3',
  'self', 'two/a', 'three/a', 'spelling', 'ring', 'wall', 'checked', 'wall/page', 'wall/endless',
  'refresh/0', 'refresh/slow', 'refresh/script', 'refresh/two/a',
  'empty', 'two-locations', 'fragment', 'spaces', 'utf-8', 'latin-1', 'user', '300', '300-alone', '304', '305', '306', 'megabyte',
  ...CHAINS.map((length) => `chain/${length}/0`),
]

function answerOf(place: string, cookie: string): Answer {
  const [, length, hop] = /^a\.test\/chain\/(\d+)\/(\d+)$/.exec(place)?.map(Number) ?? []
  if (hop !== undefined && hop < length!) return to(String(hop + 1))
  return answers[place]?.(cookie) ?? page()
}

beforeAll(async () => {
  server = createServer(({ headers, url = '' }, response) => {
    const host = headers.host!.split(':')[0]!
    if (url === '/robots.txt') return response.writeHead(200, { 'content-type': 'text/plain' }).end('User-agent: *\nDisallow: /private\n')
    asked.push(host + url)
    const { status, headers: sent, body } = answerOf(host + url, headers.cookie ?? '')
    return response.writeHead(status, sent).end(body)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  port = (server.address() as AddressInfo).port
  dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const crawler = await Crawler.open({
    dir, threads: 1, delayMs: 0, maxDepth: 0, scope: 'host', dedupe: 'slash', allowAddress: '127.0.0.0/8', tailMs: 'park',
    resolve: { 'a.test': '127.0.0.1', 'b.test': '127.0.0.1', 'out.test': '127.0.0.1', 'inside.test': '10.0.0.1' },
    concurrency: '32:1:32', cookies: true,
  })
  // Hosts that are in scope for their seeds.
  await crawler.add([`http://b.test:${port}/`, 'http://169.254.169.254/', 'http://inside.test/seed'])
  await crawler.add(seeds.map((path) => `http://a.test:${port}/${path}`))
  summary = await crawler.start()
  await crawler.close()
  records = await readPages(dir)
  const store = await openStore(dir)
  problems = await faultsOf(store)
  await store.close()
}, 60_000)

afterAll(async () => {
  server.close()
  server.closeAllConnections()
  await rm(dir, { recursive: true, force: true })
})

/** Records of an address, in the order of their fetches; `path` on a.test, or a whole URL. */
function recordsOf(path: string): readonly PageRecord[] {
  return records.filter(({ url }) => url === (path.startsWith('http') ? path : `http://a.test:${port}/${path}`))
}

/** What is said of the chain, its addresses as paths. */
function told(path: string): unknown {
  const [{ outcome, code, depth, redirectedFrom = [] } = {} as PageRecord] = recordsOf(path)
  return { outcome, ...(code !== undefined && { code }), depth, from: redirectedFrom.map((url) => url.replace(`http://a.test:${port}/`, '')) }
}

const timesAsked = (place: string): number => countsOf(asked).get(place) ?? 0

test('every URL has its outcome, and every answer its record', () => {
  const { discovered, pending, done, failed, dropped, excluded } = summary
  expect(problems).toEqual([])
  expect([summary.state, pending, dropped, done + failed + excluded]).toEqual(['complete', 0, 0, discovered])
  expect(new Set(records.map(({ url }) => url)).size).toBeGreaterThan(seeds.length)
  expect(notOnce(records.map(({ url, redirectedFrom = [] }) => [...redirectedFrom, url].join(' ')))).toEqual([])
})

describe('each hop is a new decision', () => {
  test('of the address: a name that is private and a metadata address are refused on the third hop', () => {
    expect(told('http://169.254.169.254/latest/meta-data/')).toEqual({ outcome: 'failed', code: 'address_refused', depth: 0, from: ['metadata/0', 'metadata/1', 'metadata/2'] })
    expect(told('http://inside.test/')).toEqual({ outcome: 'failed', code: 'address_refused', depth: 0, from: ['inside/0', 'inside/1', 'inside/2'] })
  })

  test('of scheme, scope, robots.txt and port', () => {
    expect(recordsOf('scheme')).toMatchObject([{ outcome: 'redirect', redirectTo: 'ftp://***@a.test/file' }])
    expect(asked.filter((place) => place.startsWith('out.test'))).toEqual([])
    expect(told(`http://b.test:${port}/private`)).toEqual({ outcome: 'robots_denied', code: 'robots_disallowed', depth: 0, from: ['robots'] })
    expect(timesAsked('b.test/private')).toBe(0)
    expect(recordsOf('http://a.test:22/')).toEqual([])
    // The other script is that of a refresh.
    expect(summary.refused).toMatchObject({ scheme: 2, scope: 1, port: 1 })
    expect(told(`http://b.test:${port}/arrived`)).toEqual({ outcome: 'ok', depth: 0, from: ['host'] })
  })

  test('of what is seen: pages that lead to one page have it fetched once', () => {
    expect([timesAsked('a.test/seen/page'), timesAsked('a.test/plain')]).toEqual([1, 1])
    expect(recordsOf('seen/page')).toHaveLength(1)
  })
})

describe('a chain', () => {
  test('of 20 hops leads to its page, with all of them in its record, and the 21st hop is one too many', () => {
    const hops = (length: number): string[] => Array.from({ length: limits.redirectsMax }, (_, hop) => `chain/${length}/${hop}`)
    expect(told('chain/20/20')).toEqual({ outcome: 'ok', depth: 0, from: hops(20) })
    expect(told('chain/21/20')).toEqual({ outcome: 'failed', code: 'redirect_limit', depth: 0, from: hops(21) })
    expect(recordsOf('chain/21/20')).toMatchObject([{ redirectTo: `http://a.test:${port}/chain/21/21` }])
    expect(timesAsked('a.test/chain/21/21')).toBe(0)
  })

  test('that closes a ring of one, two or three URLs ends there', () => {
    for (const place of ['self', 'two/a', 'two/b', 'three/a', 'three/b', 'three/c']) {
      expect([place, timesAsked(`a.test/${place}`), recordsOf(place).map(({ outcome }) => outcome)]).toEqual([place, 1, ['redirect']])
    }
  })

  test('that comes back to a URL under another spelling finds the page there', () => {
    expect(told('spelling/')).toEqual({ outcome: 'ok', depth: 0, from: ['spelling', 'other'] })
  })

  test('that closes a ring of spellings has been to each once', () => {
    expect(['ring', 'ring/', 'ring/b'].map((place) => timesAsked(`a.test/${place}`))).toEqual([1, 1, 1])
  })

  test('that comes back after a cookie finds the page behind the wall, once', () => {
    expect(recordsOf('wall').map(({ outcome, title }) => [outcome, title])).toEqual([['redirect', undefined], ['ok', 'behind']])
    expect(recordsOf('checked').map(({ outcome, title }) => [outcome, title])).toEqual([['redirect', undefined], ['ok', 'behind']])
    expect(recordsOf('wall/page').map(({ outcome, title }) => [outcome, title])).toEqual([['ok', undefined], ['ok', 'behind']])
    expect(timesAsked('a.test/wall/endless')).toBe(2)
  })
})

describe('a refresh', () => {
  test('of the element and of the header is a hop, and its page is read', () => {
    expect(recordsOf('refresh/0')).toMatchObject([{ outcome: 'ok', links: 1, refresh: { delaySeconds: 3, url: `http://a.test:${port}/refresh/1` } }])
    expect(recordsOf('refresh/1')).toMatchObject([{ outcome: 'ok', refresh: { delaySeconds: 0, url: `http://a.test:${port}/refresh/2` } }])
    expect(told('refresh/3')).toEqual({ outcome: 'ok', depth: 0, from: ['refresh/0', 'refresh/1', 'refresh/2'] })
  })

  test('that is slow is a link, here too deep; one that is a script is refused', () => {
    expect(recordsOf('refresh/slow')).toMatchObject([{ refresh: { delaySeconds: 30, url: `http://a.test:${port}/never` } }])
    expect(recordsOf('refresh/script')[0]).not.toHaveProperty('refresh')
    expect(asked.filter((place) => place.endsWith('/never') || place.endsWith('/in-the-body'))).toEqual([])
  })

  test('that closes a ring ends there', () => {
    expect([timesAsked('a.test/refresh/two/a'), timesAsked('a.test/refresh/two/b')]).toEqual([1, 1])
  })
})

describe('an answer', () => {
  test.each([
    ['with two Locations', 'two-locations', 'a.test/first'],
    ['with a fragment', 'fragment', 'a.test/fragment/to'],
    ['with spaces', 'spaces', 'a.test/spaces%20to'],
    ['with UTF-8', 'utf-8', 'a.test/utf-8/%C3%A9?%C3%A9'],
    ['with Latin-1', 'latin-1', 'a.test/latin-1/%E9'],
    ['with a user', 'user', 'a.test/user/to'],
    ['of 300 with a choice', '300', 'a.test/300/choice'],
  ])('%s leads on', (_, path, target) => {
    expect(recordsOf(path)).toMatchObject([{ outcome: 'redirect', redirectTo: `http://${target.replace('a.test', `a.test:${port}`)}` }])
    expect(timesAsked(target)).toBe(1)
  })

  test.each(['empty', '300-alone', '304', '305', '306'])('(%s) that leads nowhere is what it is', (path) => {
    expect(recordsOf(path)).toMatchObject([{ outcome: 'http_error' }])
  })

  test('of two Locations leads to the first alone, and one of a megabyte is not read', () => {
    expect(timesAsked('a.test/second')).toBe(0)
    expect(recordsOf('megabyte')).toMatchObject([{ outcome: 'failed', code: 'headers_too_large' }])
  })

  test('keeps no password in any record', () => {
    expect(JSON.stringify(records)).not.toContain('secret')
  })
})

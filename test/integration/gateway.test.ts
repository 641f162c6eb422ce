import { readFileSync, writeFileSync } from 'node:fs'
import * as net from 'node:net'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../engine/core/clock.ts'
import type { GatewayGiven } from '../../engine/core/gateway-config.ts'
import { limits } from '../../engine/core/limits.ts'
import { makeAuthority, type Authority } from '../../engine/demo/authority.ts'
import { Deadline } from '../../engine/fetch/deadline.ts'
import { openTunnel } from '../../engine/fetch/gateway-tunnel.ts'
import type { FetchedResponse, FetchFailure, FetchResult } from '../../engine/fetch/fetcher.ts'
import { startFaultServer, type FaultServer } from '../support/fault-server.ts'
import { makeRig, until, type Rig, type RigOptions } from '../support/fetch-rig.ts'
import { answerOf, startApi, startProxy, type ProxyPlay, type TestApi, type TestProxy } from '../support/gateways.ts'
import { TestClock } from '../support/test-clock.ts'

let server: FaultServer
let authority: Authority
let caFile: string
let proxy: TestProxy
let secureProxy: TestProxy
let api: TestApi
const rigs: Rig[] = []

beforeAll(async () => {
  authority = await makeAuthority(['proxy.test'])
  ;[server, proxy, secureProxy, api] = await Promise.all([startFaultServer(), startProxy(), startProxy(authority), startApi()])
  caFile = `${server.caFile}.both`
  writeFileSync(caFile, `${authority.caPem}\n${readFileSync(server.caFile, 'latin1')}`)
})
afterAll(() => Promise.all([server, proxy, secureProxy, api].map((one) => one.close())))

/** Every test ends with nothing reserved and nothing under way, and leaves no connection. */
afterEach(async () => {
  for (const { fetcher, budget, gateways } of rigs.splice(0)) {
    gateways.close()
    await fetcher.close()
    expect(gateways.stats().map(({ inFlight }) => inFlight)).toEqual(gateways.stats().map(() => 0))
    expect(fetcher.stats()).toMatchObject({ inFlight: 0, socketsOpen: 0, socketsIdle: 0, originsKept: 0, bodiesWaiting: 0 })
    expect(budget.reservedBytes).toBe(0)
  }
  await until(() => proxy.connectionsOpen === 0 && secureProxy.connectionsOpen === 0)
  await server.drained()
  proxy.play = () => 'tunnel'
  api.play = () => ({ status: 200 })
})

type Changes = Partial<Omit<GatewayGiven, 'hosts'>>

function rig(gateways: readonly GatewayGiven[], options: RigOptions = {}): Rig {
  const made = makeRig({ ...options, gateways: { gateways } })
  rigs.push(made)
  return made
}

const throughProxy = (changes: Changes = {}): GatewayGiven =>
  ({ name: 'one', proxy: `http://user:hush@127.0.0.1:${proxy.port}`, hosts: ['*'], ...changes }) as GatewayGiven
const throughApi = (changes: Changes = {}): GatewayGiven =>
  ({ name: 'api', template: `http://127.0.0.1:${api.port}/v1?key=hush&url={url}`, hosts: ['*'], ...changes }) as GatewayGiven

function answered(result: FetchResult): FetchedResponse {
  if (!result.ok) throw new Error(`failed with ${result.code}: ${result.detail}`)
  result.release()
  expect(inspect(result, { depth: 9 })).not.toContain('hush')
  return result
}

function failed(result: FetchResult): FetchFailure {
  if (result.ok) throw new Error(`answered ${result.status}`)
  expect(inspect(result, { depth: 9 })).not.toMatch(/hush|dXNlcjpodXNo/)
  return result
}

const textOf = (response: FetchedResponse): string => Buffer.concat(response.body).toString('latin1')

describe('through a proxy', () => {
  test('an http page and an https page come out of a tunnel, with its name and without an address', async () => {
    const { get } = rig([throughProxy()], { ca: caFile })
    const before = proxy.asked.length
    for (const listener of ['http', 'https'] as const) {
      const response = answered(await get(server.urlOf(listener, '/ok')))
      expect(response).toMatchObject({ status: 200, gateway: 'one' })
      expect(response).not.toHaveProperty('ip')
      expect(response.tls?.version).toBe(listener === 'https' ? 'TLSv1.3' : undefined)
      expect(textOf(response)).toContain('<a href="/ok">')
    }
    const [first, second] = proxy.asked.slice(before)
    expect([first!.authority, second!.authority]).toEqual([server.urlOf('http', ''), server.urlOf('https', '')].map((url) => new URL(url).host))
    expect(first!.head).toBe(`CONNECT ${first!.authority} HTTP/1.1\r\nHost: ${first!.authority}\r\nUser-Agent: SluiceTest/1.0 (+https://example.com/bot)\r\nProxy-Authorization: Basic dXNlcjpodXNo\r\n\r\n`)
  })

  test('the name is looked up by the proxy and not here, and the site does not see the credentials', async () => {
    const { get } = rig([throughProxy()])
    const head = textOf(answered(await get(server.urlOf('http', '/echo', 'unknown.example'))))
    expect(head).toContain('host: unknown.example:')
    expect(head.toLowerCase()).not.toContain('proxy-')
  })

  test('a tunnel is kept for its origin, and no connection of another way is taken for it', async () => {
    const { get, fetcher } = rig([throughProxy({ hosts: ['fault.test'] } as Changes)])
    const url = server.urlOf('http', '/ok')
    const direct = url.replace('fault.test', '127.0.0.1')
    answered(await get(url))
    expect(answered(await get(direct))).toMatchObject({ ip: '127.0.0.1' })
    const kept = answered(await get(url))
    expect(Object.keys(kept.timings)).toEqual(['ttfbMs', 'totalMs'])
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 1 })
  })

  test("the site's certificate must name the site, whatever the proxy says", async () => {
    const { get } = rig([throughProxy()], { ca: caFile })
    expect(failed(await get(server.urlOf('https', '/ok', 'wrong.example')))).toMatchObject({ code: 'tls_name_mismatch', gateway: 'one' })
    expect(failed(await get(server.urlOf('expired', '/ok')))).toMatchObject({ code: 'tls_untrusted' })
    expect(failed(await get(server.urlOf('reset', '/ok')))).toMatchObject({ code: 'tls_failed' })
  })

  test('TLS to the proxy itself carries both schemes, and its certificate must name it', async () => {
    const before = secureProxy.asked.length
    const named = (host: string): GatewayGiven => throughProxy({ proxy: `https://user:hush@${host}:${secureProxy.port}` } as Changes)
    const { get } = rig([named('proxy.test')], { ca: caFile, pins: { 'proxy.test': '127.0.0.1' } })
    expect(textOf(answered(await get(server.urlOf('http', '/ok'))))).toContain('<a href')
    expect(answered(await get(server.urlOf('https', '/large'))).tls?.version).toBe('TLSv1.3')
    expect(secureProxy.asked.length - before).toBe(2)
    const other = rig([named('127.0.0.1')], { ca: caFile })
    expect(failed(await other.get(server.urlOf('http', '/ok')))).toMatchObject({ code: 'gateway_failed' })
    // Whoever it was, it was told nothing.
    expect(secureProxy.asked.length - before).toBe(2)
  })

  test.each<[string, ProxyPlay, string]>([
    ['407', answerOf(407), 'gateway_refused'],
    ['403, a policy', answerOf(403), 'gateway_refused'],
    ['429', answerOf(429), 'gateway_throttled'],
    ['509', answerOf(509), 'gateway_quota'],
    ['402', answerOf(402), 'gateway_quota'],
    ['503, which may be the site', answerOf(503), 'connect_failed'],
    ['garbage', { write: Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 7_919 + 13) & 255)) }, 'gateway_failed'],
    ['HTTP of another kind', { write: 'HTTP/2 200\r\n\r\n' }, 'gateway_failed'],
    ['an answer that was cut', { write: 'HTTP/1.1 200 Connection est' }, 'gateway_failed'],
    ['nothing, and an end', { write: '' }, 'gateway_failed'],
    ['a reset', (socket) => socket.resetAndDestroy(), 'gateway_failed'],
    ['a long head', { write: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(limits.headerBytesMax)}\r\n\r\n` }, 'gateway_failed'],
  ])('an answer of %s has its code', async (_, play, code) => {
    const { get } = rig([throughProxy()])
    proxy.play = () => play
    expect(failed(await get(server.urlOf('http', '/ok')))).toMatchObject({ code, gateway: 'one' })
  })

  test('an endless head is cut off, and what is kept of it is bounded', async () => {
    const { get } = rig([throughProxy()])
    let written = 0
    proxy.play = () => (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => { written += 1; socket.write(`X-${written}: ${'x'.repeat(1_000)}\r\n`) }, 1)
      socket.once('close', () => clearInterval(timer))
    }
    expect(failed(await get(server.urlOf('http', '/ok')))).toMatchObject({ code: 'gateway_failed' })
    expect(written).toBeLessThan(1_000)
  })

  test('interim answers are passed over', async () => {
    const { get } = rig([throughProxy()])
    proxy.play = () => (socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.0 200\r\n\r\n')
      socket.once('data', () => socket.write('HTTP/1.1 203 Site\r\nContent-Length: 2\r\n\r\nhi'))
    }
    expect(answered(await get(server.urlOf('http', '/ok'))).status).toBe(203)
  })

  test('what a site says first, in one packet with the answer of the proxy, is not lost', async () => {
    proxy.play = () => ({ write: 'HTTP/1.1 200 OK\r\n\r\nhello' })
    const socket = net.connect(proxy.port, '127.0.0.1')
    const deadline = new Deadline(systemClock, 20_000)
    expect(await openTunnel(socket, { authority: 'a.test:80', userAgent: 'a', authorization: undefined }, deadline)).toMatchObject({ kind: 'answer', status: 200 })
    deadline.end()
    expect(await text(socket)).toBe('hello')
  })

  test("silence ends at the fetch's own deadline, and what was not asked for in time is the site's failure", async () => {
    const { get } = rig([throughProxy()])
    proxy.play = () => 'hold'
    expect(failed(await get(server.urlOf('http', '/ok'), { deadlineMs: 30 }))).toMatchObject({ code: 'connect_timeout' })
  })

  test('an abort ends the wait for a tunnel and the handshake in it', async () => {
    const { get } = rig([throughProxy()])
    for (const url of [server.urlOf('http', '/ok'), server.urlOf('stalled', '/ok')]) {
      const before = proxy.asked.length
      proxy.play = () => (url.startsWith('https') ? 'tunnel' : 'hold')
      const aborter = new AbortController()
      const fetching = get(url, { signal: aborter.signal })
      await until(() => proxy.asked.length > before)
      aborter.abort()
      expect(failed(await fetching)).toMatchObject({ code: 'aborted' })
    }
  })

  test('a proxy that is not there fails as a gateway, and rests longer each time', async () => {
    const clock = new TestClock()
    const { get, gateways } = rig([throughProxy({ proxy: 'http://127.0.0.1:1' } as Changes)], { clock })
    const rests: number[] = []
    for (let tries = 0; tries < 4; tries += 1) {
      expect(failed(await get(server.urlOf('http', '/ok')))).toMatchObject({ code: 'gateway_failed' })
      rests.push(gateways.of('fault.test')!.pausedUntilMs - clock.nowMs())
      clock.advance(rests.at(-1)!)
      clock.advance(1)
    }
    expect(rests).toEqual([...rests].sort((a, b) => a - b))
    expect(rests.at(-1)).toBeGreaterThan(2 * rests[0]!)
    expect(gateways.stats()).toMatchObject([{ failed: 4 }])
    expect(clock.timersCount).toBe(0)
  })

  test("one dead host is the host's own failure; when none of many hosts in a row can be reached, the proxy is blamed", async () => {
    const { get, gateways } = rig([throughProxy()])
    proxy.play = () => answerOf(502)
    const codeOf = async (host: string): Promise<string> => failed(await get(server.urlOf('http', '/ok', host))).code
    for (let tries = 0; tries < 20; tries += 1) expect(await codeOf('dead.example')).toBe('connect_failed')
    const codes: string[] = []
    for (let at = 1; at < limits.gatewayHostsFailedMax + 2; at += 1) codes.push(await codeOf(`h${at}.example`))
    expect(codes.slice(0, limits.gatewayHostsFailedMax - 2)).toEqual(codes.slice(0, limits.gatewayHostsFailedMax - 2).map(() => 'connect_failed'))
    expect(codes.slice(-2)).toEqual(['gateway_failed', 'gateway_failed'])
    expect(gateways.stats()[0]!.failed).toBeGreaterThan(0)
    proxy.play = () => 'tunnel'
    answered(await get(server.urlOf('http', '/ok')))
    proxy.play = () => answerOf(502)
    expect(await codeOf('h1.example')).toBe('connect_failed')
  })

  test('idle tunnels make room for a new one, because a plan counts tunnels and not requests', async () => {
    const { get } = rig([throughProxy({ concurrency: '2:2:2' })])
    proxy.play = ({ tunnelsOpen }) => (tunnelsOpen < 2 ? 'tunnel' : answerOf(429))
    for (const host of ['a.example', 'b.example', 'c.example', 'd.example', 'a.example']) {
      answered(await get(server.urlOf('http', '/ok', host)))
    }
  })
})

describe('what must not be asked for is refused before anything is sent', () => {
  test.each([
    'http://169.254.169.254/latest/meta-data/', 'http://127.0.0.1/', 'http://2130706433/', 'http://0x7f.1/', 'http://[::1]/', 'http://[::ffff:10.0.0.1]/',
    'http://localhost/', 'http://a.localhost./', 'http://metadata.google.internal/', 'http://printer.local/', 'http://router/', 'https://pinned.example/', 'http://0/',
  ])('%s', async (url) => {
    for (const gateway of [throughProxy(), throughApi()]) {
      const before = [proxy.asked.length, api.asked.length]
      const { get } = rig([gateway], { allowAddress: [], pins: { 'pinned.example': '10.0.0.1' } })
      expect(failed(await get(url))).toMatchObject({ code: 'address_refused' })
      expect([proxy.asked.length, api.asked.length]).toEqual(before)
    }
  })

  test('what the operator allowed or pinned elsewhere is not', async () => {
    const { get } = rig([throughApi()], { allowAddress: ['10.0.0.0/8'], pins: { router: '10.0.0.1', 'pinned.example': '8.8.8.8' } })
    for (const url of ['http://10.0.0.5/', 'http://router/', 'http://pinned.example/']) expect(answered(await get(url)).status).toBe(200)
  })
})

describe('through an API', () => {
  test('the page is a parameter of the template, escaped, with the headers of the file, and the answer is its own', async () => {
    const { get } = rig([throughApi({ headers: { 'X-Key': 'hush', 'User-Agent': 'own' } } as Changes)])
    api.play = () => ({ status: 200, headers: { 'x-of': 'api' }, body: '<p>made</p>' })
    const url = 'https://a.example/b%20c?d=1&e=%26'
    const response = answered(await get(url, { headers: { 'if-none-match': '"x"' } }))
    expect(response).toMatchObject({ status: 200, gateway: 'api', bodyBytes: 11 })
    expect(response).not.toHaveProperty('ip')
    const asked = api.asked.at(-1)!
    expect(asked.target).toBe(url)
    expect(asked.path).toBe(`/v1?key=hush&url=${encodeURIComponent(url)}`)
    expect(asked.headers).toMatchObject({ 'x-key': 'hush', 'user-agent': 'own', 'if-none-match': '"x"', host: `127.0.0.1:${api.port}` })
  })

  test('a dollar sign in a page is a dollar sign', async () => {
    const { get } = rig([throughApi()])
    answered(await get("http://a.example/$&$'$1$$"))
    expect(api.asked.at(-1)!.target).toBe("http://a.example/$&$'$1$$")
  })

  test('its connection serves every site, and nobody who goes to the API itself', async () => {
    const { get, fetcher } = rig([throughApi({ hosts: ['*.example'] } as Changes)])
    for (const host of ['a.example', 'b.example', 'c.example']) answered(await get(`https://${host}/`))
    expect(fetcher.stats()).toMatchObject({ connects: 1, reuses: 2 })
    answered(await get(`http://127.0.0.1:${api.port}/`))
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 2 })
  })

  test('429 and the quota are its own word, any other status is that of the page', async () => {
    const { get, gateways } = rig([throughApi({ quotaStatus: [403] } as Changes)])
    for (const status of [404, 500, 503, 509, 402]) {
      api.play = () => ({ status, body: '{}', headers: { 'content-type': 'application/json' } })
      expect(answered(await get('http://a.example/')).status).toBe(status)
    }
    api.play = () => ({ status: 429 })
    expect(failed(await get('http://a.example/'))).toMatchObject({ code: 'gateway_throttled', gateway: 'api' })
    api.play = () => ({ status: 403 })
    expect(failed(await get('http://a.example/'))).toMatchObject({ code: 'gateway_quota' })
    expect(gateways.stats()).toMatchObject([{ name: 'api', throttled: 1, quotaHits: 1, failed: 0, pausedUntil: 'resume' }])
    gateways.resume()
    expect(gateways.stats()[0]).not.toHaveProperty('pausedUntil')
  })

  test('its name is looked up here, at an address that is not judged, and without one it has failed', async () => {
    const template = (host: string): Changes => ({ template: `http://${host}:${api.port}/?url={url}` }) as Changes
    const { get } = rig([throughApi(template('api.test'))], { allowAddress: [], pins: { 'api.test': '127.0.0.1' } })
    expect(answered(await get('http://a.example/')).status).toBe(200)
    const lost = rig([throughApi(template('nowhere.test'))])
    expect(failed(await lost.get('http://a.example/'))).toMatchObject({ code: 'gateway_failed', gateway: 'api' })
  })
})

test('the first gateway that a host matches is used, and a host that matches none goes direct', async () => {
  const { get } = rig([throughApi({ hosts: ['*.example', 'fault.test'] } as Changes), throughProxy({ hosts: ['a.example', 'b.test'] } as Changes)])
  expect(answered(await get('http://a.example/')).gateway).toBe('api')
  expect(answered(await get(server.urlOf('http', '/ok', 'b.test'))).gateway).toBe('one')
  expect(answered(await get(server.url('/ok'))).gateway).toBeUndefined()
})

test('a gateway that tries again by itself says so of every end', async () => {
  const { get } = rig([throughApi({ retries: true })])
  api.play = () => ({ status: 503 })
  expect(answered(await get('http://a.example/'))).toMatchObject({ status: 503, isFinal: true })
})

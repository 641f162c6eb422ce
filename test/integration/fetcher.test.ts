import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { connect } from '../../engine/fetch/connector.ts'
import { Deadline } from '../../engine/fetch/deadline.ts'
import type { FetchedResponse, FetchFailure, FetchResult } from '../../engine/fetch/fetcher.ts'
import { createTlsTrust } from '../../engine/fetch/tls-context.ts'
import { startFaultServer, type FaultServer } from '../support/fault-server.ts'
import { makeRig, until, type Rig, type RigOptions } from '../support/fetch-rig.ts'
import { TestClock } from '../support/test-clock.ts'

let server: FaultServer
const rigs: Rig[] = []

beforeAll(async () => { server = await startFaultServer() })
afterAll(() => server.close())

/** Every test ends with nothing reserved, and leaves no connection. */
afterEach(async () => {
  for (const { fetcher, budget } of rigs.splice(0)) {
    await fetcher.close()
    expect(fetcher.stats()).toMatchObject({ inFlight: 0, socketsOpen: 0, socketsIdle: 0, originsKept: 0, bodiesWaiting: 0 })
    expect(budget.reservedBytes).toBe(0)
  }
  await server.drained()
  expect(server.connectionsOpen).toBe(0)
})

function rig(options?: RigOptions): Rig {
  const made = makeRig(options)
  rigs.push(made)
  return made
}

function answered(result: FetchResult): FetchedResponse {
  if (!result.ok) throw new Error(`failed with ${result.code}: ${result.detail}`)
  result.release()
  return result
}

function failed(result: FetchResult): FetchFailure {
  if (result.ok) throw new Error(`answered ${result.status}`)
  return result
}

const textOf = (response: FetchedResponse): string => Buffer.concat(response.body).toString('latin1')

describe('a good answer', () => {
  test('is given as it was sent: status, header fields in order, body', async () => {
    const response = answered(await rig().get(server.url('/ok')))
    expect(response).toMatchObject({ status: 200, statusText: 'Status', truncated: false, ip: '127.0.0.1' })
    expect(response.headers).toEqual(['Content-Type', 'text/html; charset=utf-8', 'Content-Length', String(response.bodyBytes)])
    expect(Buffer.from(response.headerBlock).toString()).toBe(`Content-Type: text/html; charset=utf-8\r\nContent-Length: ${response.bodyBytes}\r\n`)
    expect(textOf(response)).toContain('<a href="/ok">')
    expect(response.tls).toBeUndefined()
  })

  test('has its transfer coding removed and its content coding untouched', async () => {
    const { get } = rig()
    expect(textOf(answered(await get(server.url('/chunked'))))).toBe('one two')
    expect(Buffer.concat(answered(await get(server.url('/gzip-broken'))).body).subarray(0, 2).toString('hex')).toBe('1f8b')
  })

  test('may end with its connection, and such a connection is not used again', async () => {
    const { get, fetcher } = rig()
    expect(textOf(answered(await get(server.url('/until-end'))))).toContain('<a href')
    expect(textOf(answered(await get(server.url('/ok-close'))))).toContain('<a href')
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 0, socketsIdle: 0 })
  })

  test('may have no body, no content type, or interim answers before it', async () => {
    const { get } = rig()
    expect(answered(await get(server.url('/no-content')))).toMatchObject({ status: 204, bodyBytes: 0 })
    expect(answered(await get(server.url('/no-type')))).toMatchObject({ status: 200 })
    const response = answered(await get(server.url('/interim')))
    expect(response).toMatchObject({ status: 200 })
    expect(response.headers).not.toContain('Link')
  })

  test('of a status other than 2xx is an answer, and a redirect is not followed', async () => {
    const { get } = rig()
    expect(answered(await get(server.url('/redirect-self')))).toMatchObject({ status: 302 })
    expect(answered(await get(server.url('/redirect-metadata'))).headers).toContain('http://169.254.169.254/latest/meta-data/')
    const busy = answered(await get(server.url('/429')))
    expect(busy).toMatchObject({ status: 429 })
    expect(busy.headers.slice(0, 2)).toEqual(['Retry-After', '7'])
  })

  test('is asked for with our name, the codings that we decode, and the headers given', async () => {
    const { get } = rig()
    const head = textOf(answered(await get(server.url('/echo?a=1&b=%20'), { headers: { 'if-none-match': '"x"' } })))
    expect(head).toMatch(/^GET \/echo\?a=1&b=%20 HTTP\/1.1\r\nhost: 127\.0\.0\.1:\d+\r\nconnection: keep-alive\r\n/)
    expect(head).toContain('user-agent: SluiceTest/1.0 (+https://example.com/bot)')
    expect(head).toMatch(/accept-encoding: gzip, br/)
    expect(head).toContain('if-none-match: "x"')
  })

  test('over TLS tells the protocol, and the handshake only with the first request', async () => {
    const { get } = rig({ ca: server.caFile })
    const first = answered(await get(server.urlOf('https', '/ok')))
    expect(first.tls).toMatchObject({ version: 'TLSv1.3', resumed: false })
    expect(Object.keys(first.timings)).toEqual(['dnsMs', 'connectMs', 'tlsMs', 'ttfbMs', 'totalMs'])
    const second = answered(await get(server.urlOf('https', '/ok')))
    expect(second.tls).toEqual(first.tls)
    expect(Object.keys(second.timings)).toEqual(['ttfbMs', 'totalMs'])
  })
})

describe('each failure has its code', () => {
  test.each([
    ['/close', 'connection_closed'],
    ['/reset', 'connection_closed'],
    ['/half-a-head', 'connection_closed'],
    ['/length-long', 'connection_closed'],
    ['/length-long-reset', 'connection_closed'],
    ['/chunked-cut', 'connection_closed'],
    ['/chunked-cut-close', 'connection_closed'],
    ['/garbage', 'bad_http'],
    ['/no-status-line', 'bad_http'],
    ['/two-lengths', 'bad_http'],
    ['/chunked-bad', 'bad_http'],
    ['/header-bomb', 'headers_too_large'],
    ['/header-endless', 'headers_too_large'],
  ] as const)('%s is %s', async (path, code) => {
    const failure = failed(await rig().get(server.url(path)))
    expect(failure.code).toBe(code)
    expect(failure.detail).not.toMatch(/\n/)
    expect(failure.ip).toBe('127.0.0.1')
  })

  test('a failure in the body keeps the status and the headers', async () => {
    const failure = failed(await rig().get(server.url('/length-long')))
    expect(failure).toMatchObject({ status: 200, headers: ['Content-Type', 'text/html; charset=utf-8', 'Content-Length', '1000'] })
  })

  test('nothing listens at the port: connect_refused', async () => {
    const { get } = rig()
    const other = await startFaultServer()
    const url = other.url('/ok')
    await other.close()
    expect(failed(await get(url))).toMatchObject({ code: 'connect_refused', ip: '127.0.0.1' })
  })

  test('a name that does not exist: dns_not_found', async () => {
    expect(failed(await rig().get('http://nowhere.example/'))).toMatchObject({ code: 'dns_not_found' })
  })

  test('a certificate that has expired, is unknown, or is for another name', async () => {
    expect(failed(await rig({ ca: server.expiredCaFile }).get(server.urlOf('expired', '/ok'))))
      .toMatchObject({ code: 'tls_untrusted', detail: expect.stringContaining('CERT_HAS_EXPIRED') })
    expect(failed(await rig().get(server.urlOf('https', '/ok')))).toMatchObject({ code: 'tls_untrusted' })
    expect(failed(await rig({ ca: server.caFile }).get(server.urlOf('https', '/ok', 'wrong.example')))).toMatchObject({ code: 'tls_name_mismatch' })
    expect(failed(await rig({ ca: server.caFile }).get(server.urlOf('https', '/ok', '127.0.0.1')))).toMatchObject({ code: 'tls_name_mismatch' })
  })

  test('with --insecure every certificate does', async () => {
    const { get } = rig({ insecure: true })
    expect(answered(await get(server.urlOf('expired', '/ok')))).toMatchObject({ status: 200 })
    expect(answered(await get(server.urlOf('https', '/ok', 'wrong.example')))).toMatchObject({ status: 200 })
  })

  test('a server that does not speak TLS, or resets in the handshake: tls_failed', async () => {
    const { get } = rig()
    expect(failed(await get(server.urlOf('reset', '/ok')))).toMatchObject({ code: 'tls_failed' })
    expect(failed(await get(server.url('/ok').replace('http:', 'https:')))).toMatchObject({ code: 'tls_failed' })
  })

  test('a type that is not text is refused by its headers, before its body; an error page is not', async () => {
    const { get, budget } = rig()
    const failure = failed(await get(server.url('/image')))
    expect(failure).toMatchObject({ code: 'unsupported_type', status: 200 })
    expect(failure.headers).toContain('image/png')
    expect(budget.reservedBytes).toBe(0)
    expect(answered(await get(server.url('/image-missing')))).toMatchObject({ status: 404, bodyBytes: 100 })
  })
})

describe('an address that must not be connected to', () => {
  test.each([
    ['a literal', 'http://127.0.0.1:1/'],
    ['a name', 'http://fault.test:1/'],
    ['metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['a literal in another notation', 'http://0x7f000001:1/'],
    ['IPv6 loopback', 'http://[::1]:1/'],
    ['mapped IPv6', 'http://[::ffff:127.0.0.1]:1/'],
    ['a private one behind a name', 'https://intranet.example/'],
  ])('is refused before any packet: %s', async (_, url) => {
    const connections = server.connections
    const { get, fetcher } = rig({ allowAddress: [], pins: { 'intranet.example': '10.1.2.3' } })
    expect(failed(await get(url))).toMatchObject({ code: 'address_refused', detail: expect.stringContaining('RFC') })
    expect(fetcher.stats().connects).toBe(0)
    expect(server.connections).toBe(connections)
  })

  test('is refused when only the end of the socket shows it, before a byte is sent', async () => {
    const seen: string[] = []
    // A guard that is asked twice: about the address to be used, and about the one at the other end.
    const guard = { verdict: (address: string) => (seen.push(address) === 1 ? { allowed: true as const } : { allowed: false as const, why: `${address} is elsewhere` }) }
    const requests = server.requests
    const deadline = new Deadline(systemClock, 10_000)
    const target = { secure: false, name: '127.0.0.1', port: Number(new URL(server.url('/')).port), address: '127.0.0.1', family: 4 } as const
    const result = await connect(target, { guard, clock: systemClock, trust: createTlsTrust({ ca: undefined, insecure: false }) }, deadline)
    deadline.end()
    expect(result).toEqual({ ok: false, code: 'address_refused', detail: '127.0.0.1 is elsewhere', connectMs: expect.any(Number) as number })
    expect(seen).toEqual(['127.0.0.1', '127.0.0.1'])
    await server.drained()
    expect(server.requests).toBe(requests)
  })

  test('is opened by its range alone', async () => {
    const { get } = rig({ allowAddress: ['127.0.0.0/8'] })
    expect(answered(await get(server.url('/ok')))).toMatchObject({ status: 200 })
    expect(failed(await get('http://[::1]:1/'))).toMatchObject({ code: 'address_refused' })
  })
})

describe('the size of a body', () => {
  test.each(['/body-50mb', '/chunked-endless'])('%s is cut at the limit and marked, and its connection is closed', async (path) => {
    const { get, fetcher } = rig()
    const response = answered(await get(server.url(path), { bodyBytesMax: 100_000 }))
    expect(response).toMatchObject({ status: 200, truncated: true, bodyBytes: 100_000 })
    expect(Buffer.concat(response.body)).toHaveLength(100_000)
    expect(fetcher.stats().socketsIdle).toBe(0)
  })

  test('at the limit exactly is whole', async () => {
    expect(answered(await rig().get(server.url('/large'), { bodyBytesMax: 100_000 }))).toMatchObject({ truncated: false, bodyBytes: 100_000 })
    expect(answered(await rig().get(server.url('/large'), { bodyBytesMax: 99_999 }))).toMatchObject({ truncated: true, bodyBytes: 99_999 })
  })

  test('more bytes than were announced do not belong to it', async () => {
    expect(textOf(answered(await rig().get(server.url('/length-short'))))).toBe('hello')
  })
})

describe('the deadline', () => {
  test.each(['/silence', '/header-slow', '/interim-endless', '/body-slow', '/body-stall'])('ends %s with timeout, and not before its time', async (path) => {
    const clock = new TestClock()
    const { get, fetcher } = rig({ clock })
    const result = get(server.url(path), { deadlineMs: 1_000 })
    await server.taken(path)
    clock.advance(999)
    await new Promise((resolve) => setImmediate(resolve))
    expect(fetcher.stats().inFlight).toBe(1)
    clock.advance(1)
    expect(failed(await result)).toMatchObject({ code: 'timeout', ip: '127.0.0.1' })
  })

  test('that passes in a handshake is the failure of the host: connect_timeout', async () => {
    const clock = new TestClock()
    const connections = server.connections
    const result = rig({ clock }).get(server.urlOf('stalled', '/'), { deadlineMs: 60_000 })
    await until(() => server.connections > connections)
    clock.advance(limits.connectTimeoutMs)
    expect(failed(await result)).toMatchObject({ code: 'connect_timeout' })
  })

  test('has a shorter one beside it for silence in a body', async () => {
    const clock = new TestClock()
    const { get, budget } = rig({ clock })
    const result = get(server.url('/manual/stall'), { deadlineMs: 600_000 })
    const peer = await server.taken('/manual/stall')
    peer.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n')
    await until(() => budget.reservedBytes === 100)
    clock.advance(limits.bodyStallMsMax)
    expect(failed(await result)).toMatchObject({ code: 'timeout', detail: `no byte of the body for ${limits.bodyStallMsMax} ms`, status: 200 })
  })

  test('leaves no timer behind', async () => {
    const clock = new TestClock()
    const { get } = rig({ clock })
    answered(await get(server.url('/ok')))
    failed(await get(server.url('/close')))
    expect(clock.timersCount).toBe(0)
  })
})

describe('an abort', () => {
  test('ends a fetch in any stage, at once', async () => {
    const { get } = rig()
    for (const [url, requested] of [
      [server.url('/silence'), '/silence'], [server.url('/body-stall'), '/body-stall'], [server.urlOf('stalled', '/'), undefined],
    ] as const) {
      const aborter = new AbortController()
      const connections = server.connections
      const result = get(url, { signal: aborter.signal })
      if (requested === undefined) await until(() => server.connections > connections)
      else await server.taken(requested)
      aborter.abort()
      expect(failed(await result)).toMatchObject({ code: 'aborted' })
    }
    expect(failed(await get(server.url('/ok'), { signal: AbortSignal.abort() }))).toMatchObject({ code: 'aborted' })
  })

  test('by one signal for many fetches makes no warning', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => { warnings.push(warning) }
    process.on('warning', onWarning)
    const { get } = rig()
    const aborter = new AbortController()
    const results = Array.from({ length: 15 }, () => get(server.url('/silence'), { signal: aborter.signal }))
    for (let at = 0; at < 15; at++) await server.taken('/silence')
    aborter.abort()
    for (const result of results) expect(failed(await result)).toMatchObject({ code: 'aborted' })
    await new Promise((resolve) => process.nextTick(resolve))
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  test('by closing the fetcher ends what is in flight, and later fetches at once', async () => {
    const { get, fetcher } = rig()
    const result = get(server.url('/silence'))
    await server.taken('/silence')
    await fetcher.close()
    expect(failed(await result)).toMatchObject({ code: 'aborted' })
    expect(failed(await get(server.url('/ok')))).toMatchObject({ code: 'aborted' })
  })
})

describe('the byte budget', () => {
  test('a response waits for its bytes before its body is read, and the deadline waits with it', async () => {
    const clock = new TestClock()
    const { get, budget, fetcher } = rig({ clock, budgetBytes: 150_000 })
    const first = await get(server.url('/large'), { bodyBytesMax: 120_000 })
    expect(budget.reservedBytes).toBe(100_000)
    const second = get(server.url('/large'), { bodyBytesMax: 120_000, deadlineMs: 1_000 })
    await until(() => budget.waiting === 1)
    expect(fetcher.isShortOfBytes).toBe(true)
    clock.advance(3_600_000)
    answered(first)
    expect(answered(await second)).toMatchObject({ bodyBytes: 100_000, timings: { totalMs: 0 } })
    expect(fetcher.isShortOfBytes).toBe(false)
  })

  test('reserves the limit when the length is unknown', async () => {
    const { get, budget } = rig()
    const result = await get(server.url('/chunked'), { bodyBytesMax: 5_000 })
    expect(budget.reservedBytes).toBe(5_000)
    answered(result)
  })

  test('an aborted wait gives up its place', async () => {
    const { get, budget } = rig({ budgetBytes: 250 * 1_024 })
    const first = await get(server.url('/chunked'))
    const aborter = new AbortController()
    const second = get(server.url('/large'), { signal: aborter.signal })
    await until(() => budget.waiting === 1)
    aborter.abort()
    expect(failed(await second)).toMatchObject({ code: 'aborted', status: 200 })
    expect(budget.waiting).toBe(0)
    answered(first)
  })

  // undici 7 throws an assertion in a socket's event for most of these, which nobody can catch.
  const lengths = { 'with a length': 'Content-Length: 1000\r\n', 'until the end': '' }
  for (const [how, header] of Object.entries(lengths)) {
    for (const body of ['', 'a part']) {
      for (const end of ['end', 'resetAndDestroy', 'destroy'] as const) {
        test(`a server that says "close" and then does ${end}, ${how}, ${body === '' ? 'no byte' : 'a part'} sent, ends a waiting response as it should`, async () => {
          const { get, budget } = rig({ budgetBytes: 250 * 1_024 })
          const first = await get(server.url('/chunked'))
          const path = `/manual/${end}/${how.length}/${body.length}`
          const second = get(server.url(path))
          const peer = await server.taken(path)
          peer.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${header}\r\n${body}`)
          await until(() => budget.waiting === 1)
          const gone = new Promise((resolve) => peer.socket.once(end === 'end' ? 'finish' : 'close', resolve))
          peer.socket[end]()
          await gone
          // Some turns of the loop, in which the client notices it; with bytes unread it may not, and that is fine too.
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
          answered(first)
          const result = await second
          if (end === 'resetAndDestroy' || header !== '') expect(result).toMatchObject({ code: 'connection_closed' })
          else expect(textOf(answered(result))).toBe(body)
          if (result.ok) result.release()
        })
      }
    }
  }
})

describe('kept connections', () => {
  test('serve the next request of their origin, and no other', async () => {
    const { get, fetcher } = rig()
    for (let at = 0; at < 5; at++) answered(await get(server.url('/ok')))
    answered(await get(server.urlOf('http', '/ok')))
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 4, socketsIdle: 2, originsKept: 2 })
  })

  test.each(['/kept-then-closed', '/kept-then-reset'])('%s: one that the server has closed is replaced, and the fetch succeeds', async (path) => {
    const { get, fetcher } = rig()
    answered(await get(server.url(path)))
    answered(await get(server.url(path)))
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 1, staleRetries: 1 })
  })

  test.each(['/kept-then-closed', '/kept-then-reset'])('%s: one that the server has closed costs a paced request a turn and not a try, since the server may have seen it', async (path) => {
    const { get, fetcher } = rig()
    answered(await get(server.url(path)))
    let sent = 0
    const paced = { isPaced: true, onSend: () => { sent += 1 } }
    expect(failed(await get(server.url(path), paced))).toMatchObject({ code: 'connection_closed', isStale: true })
    expect([sent, fetcher.stats().staleRetries]).toEqual([1, 0])
    answered(await get(server.url(path), paced))
    expect(fetcher.stats()).toMatchObject({ connects: 2, reuses: 1 })
  })

  test('that break off in the middle of a head are not tried again here', async () => {
    const { get, fetcher } = rig()
    answered(await get(server.url('/kept-then-half')))
    expect(failed(await get(server.url('/kept-then-half')))).toMatchObject({ code: 'connection_closed' })
    expect(fetcher.stats().staleRetries).toBe(0)
  })

  test('close when the server closes them, and leave nothing of their origin', async () => {
    const { get, fetcher } = rig()
    const result = get(server.url('/manual/idle'))
    const peer = await server.taken('/manual/idle')
    peer.answer(200, ['Content-Type: text/html'], 'x')
    answered(await result)
    expect(fetcher.stats()).toMatchObject({ socketsIdle: 1, originsKept: 1 })
    peer.socket.end()
    await until(() => fetcher.stats().socketsOpen === 0)
    expect(fetcher.stats()).toMatchObject({ socketsIdle: 0, originsKept: 0 })
  })

  test('close by themselves after a while', async () => {
    const { get, fetcher } = rig()
    // The server's hint, less the second that undici takes off it, comes before our own four.
    const result = get(server.url('/manual/hint'))
    const peer = await server.taken('/manual/hint')
    peer.answer(200, ['Content-Type: text/html', 'Keep-Alive: timeout=2'], 'x')
    answered(await result)
    expect(fetcher.stats().socketsIdle).toBe(1)
    await new Promise((resolve) => peer.socket.once('close', resolve))
    await until(() => fetcher.stats().socketsOpen === 0)
  })

  test('beyond the bound the least recently used closes', async () => {
    const { get, fetcher } = rig({ socketsIdleMax: 2, pins: { 'a.test': '127.0.0.1', 'b.test': '127.0.0.1', 'c.test': '127.0.0.1' } })
    for (const name of ['a.test', 'b.test', 'a.test', 'c.test']) answered(await get(server.urlOf('http', '/ok', name)))
    expect(fetcher.stats()).toMatchObject({ connects: 3, socketsIdle: 2, originsKept: 2 })
    answered(await get(server.urlOf('http', '/ok', 'a.test')))
    expect(fetcher.stats().connects).toBe(3)
    answered(await get(server.urlOf('http', '/ok', 'b.test')))
    expect(fetcher.stats().connects).toBe(4)
  })

  test('1,000 origins, good and bad, leave no state behind', async () => {
    const names = Array.from({ length: 1_000 }, (_, at) => `h${at}.many.test`)
    const { get, fetcher } = rig({ socketsIdleMax: 8, pins: Object.fromEntries(names.map((name) => [name, '127.0.0.1'])) })
    const paths = ['/ok', '/close', '/garbage', '/image', '/ok-close', '/reset']
    let next = 0
    const work = async (): Promise<void> => {
      while (next < names.length) {
        const at = next++
        const result = await get(server.urlOf(at % 50 === 7 ? 'stalled' : 'http', paths[at % paths.length]!, names[at]!), at % 50 === 7 ? { deadlineMs: 1 } : {})
        if (result.ok) result.release()
      }
    }
    await Promise.all(Array.from({ length: 16 }, work))
    await until(() => fetcher.stats().socketsOpen <= 8)
    const { socketsIdle, originsKept, inFlight } = fetcher.stats()
    expect(socketsIdle).toBeLessThanOrEqual(8)
    expect(originsKept).toBe(socketsIdle)
    expect(inFlight).toBe(0)
  })
})

test('a user agent that cannot be sent is a bad option', () => {
  expect(() => new (rig().fetcher.constructor as new (options: object) => unknown)({ userAgent: 'Bot\r\nX: y' })).toThrow(/--user-agent/)
})

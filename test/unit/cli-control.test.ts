import { describe, expect, it } from 'vitest'
import type { HostStats } from '../../engine/core/api-types.ts'
import { handleControl, type ControlledCrawler } from '../../engine/cli/control-handler.ts'
import { hostNameOf } from '../../engine/core/host-name.ts'
import { SluiceError } from '../../engine/core/errors.ts'
import { statsWith } from '../support/cli.ts'

const host: HostStats = { name: 'a.test', pending: 3, excluded: false, inFlight: 1, limit: 4, delayMs: 1_000, waitMs: 0, backoffMs: 0, retryAfterMs: 0, paceMs: 0, health: 1, unhealthy: false, failures: 0, robots: {} }

function fakeCrawler(calls: string[]): ControlledCrawler {
  return {
    stats: () => statsWith({ pages: 7 }),
    worstHosts: () => [],
    host: (name) => (name === 'a.test' ? host : undefined),
    exclude: async (names) => {
      calls.push(`exclude ${names.join(' ')}`)
      if (names.includes('closed.test')) throw new SluiceError('crawler_closed', 'the crawler is closed')
    },
    requeue: async ({ host }, onProgress) => {
      calls.push(`requeue ${host}`)
      onProgress({ requeued: 2, excluded: 0 })
      if (host === 'slow.test') await new Promise(() => undefined)
      if (host === 'closed.test') throw new SluiceError('crawler_closed', 'the crawler is closed')
      return { requeued: 5, excluded: 1 }
    },
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
  }
}

describe('the control handler', () => {
  it.each([
    [{ cmd: 'status' }, [], { ok: true, stats: { pages: 7 } }],
    [{ cmd: 'host', name: 'A.test.' }, [], { ok: true, host }],
    [{ cmd: 'host', name: 'b.test' }, [], { ok: true, host: undefined }],
    [{ cmd: 'pause' }, ['pause'], { ok: true, stats: { pages: 7 } }],
    [{ cmd: 'resume' }, ['resume'], { ok: true }],
    [{ cmd: 'exclude', hosts: ['A.test', 'b.test'] }, ['exclude a.test b.test'], { ok: true, excluded: ['a.test', 'b.test'] }],
    [{ cmd: 'exclude', hosts: ['closed.test'] }, ['exclude closed.test'], { ok: false, code: 'crawler_closed' }],
    [{ cmd: 'requeue', filter: { host: 'a.test' } }, ['requeue a.test'], { ok: true, requeue: { requeued: 5, excluded: 1, isDone: true } }],
    [{ cmd: 'requeue', filter: { host: 'closed.test' } }, ['requeue closed.test'], { ok: false, code: 'crawler_closed' }],
  ])('does what %o asks for', async (request, expectedCalls, answer) => {
    const calls: string[] = []
    expect(await handleControl(fakeCrawler(calls), request)).toMatchObject(answer)
    expect(calls).toEqual(expectedCalls)
  })

  it.each([
    [undefined], [null], [7], ['status'], [{}], [{ cmd: 'stop' }], [{ cmd: 'host' }], [{ cmd: 'exclude' }], [{ cmd: 'exclude', hosts: [] }],
    [{ cmd: 'requeue' }], [{ cmd: 'requeue', filter: { host: 'not a host' } }],
    [{ cmd: 'exclude', hosts: ['good.test', 'not a host'] }], [{ cmd: 'exclude', hosts: [7] }],
  ])('answers %o with what is wrong, and does nothing', async (request) => {
    const calls: string[] = []
    expect(await handleControl(fakeCrawler(calls), request)).toMatchObject({ ok: false, code: 'usage' })
    expect(calls).toEqual([])
  })
})

describe('a requeue that takes long', () => {
  it('is answered before it is done, can be followed, and has no other beside it', async () => {
    const calls: string[] = []
    const crawler = fakeCrawler(calls)
    const soFar = { ok: true, requeue: { requeued: 2, excluded: 0, isDone: false } }
    expect(await handleControl(crawler, { cmd: 'requeue', filter: { host: 'slow.test' } })).toMatchObject(soFar)
    expect(await handleControl(crawler, { cmd: 'requeue' })).toMatchObject(soFar)
    expect(await handleControl(crawler, { cmd: 'requeue', filter: { host: 'a.test' } })).toMatchObject({ ok: false, code: 'already_running' })
    expect(calls).toEqual(['requeue slow.test'])
  })

  it.each([{}, { outcome: 'good' }, { outcome: [] }, { code: 'timeout,none' }, { all: false }, 7, null])('with the filter %j is refused', async (filter) => {
    expect(await handleControl(fakeCrawler([]), { cmd: 'requeue', filter })).toMatchObject({ ok: false, code: 'bad_option' })
  })
})

describe('a host name', () => {
  it.each([
    ['Example.COM', 'example.com'], ['example.com.', 'example.com'], ['bücher.example', 'xn--bcher-kva.example'], ['[::1]', '[::1]'], ['127.0.0.1', '127.0.0.1'],
    ['https://Example.com:8443/path?q', 'example.com'],
  ])('%s is known as %s', (given, name) => {
    expect(hostNameOf(given)).toBe(name)
  })

  it.each(['', ' ', 'a b', 'example.com/path', 'example.com:80', 'example.com:8080', 'user@example.com', 'example.com#x', '*', '*.example.com', '%2a.example.com', 'https://*.example.com/'])('%j is refused', (given) => {
    expect(() => hostNameOf(given)).toThrow(expect.objectContaining({ code: 'usage' }))
  })
})

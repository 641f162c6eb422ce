import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { createNameLookup, type LookupResult, type NameServices } from '../../engine/fetch/name-lookup.ts'
import { Resolver } from '../../engine/fetch/resolver.ts'
import { TestClock } from '../support/test-clock.ts'

const address = (last: number): { address: string, family: 4 } => ({ address: `192.0.2.${last}`, family: 4 })
const found = (ttlMs: number, ...lasts: number[]): LookupResult => ({ ok: true, addresses: lasts.map(address), ttlMs })
const missing: LookupResult = { ok: false, code: 'dns_not_found', detail: 'none' }
const broken: LookupResult = { ok: false, code: 'dns_failed', detail: 'broken' }

/** A resolver over a look-up that answers by name, and counts. */
function rig(answer: (name: string) => LookupResult | Promise<LookupResult>, options: { pins?: Record<string, string>, entriesMax?: number } = {}) {
  const clock = new TestClock()
  const asked: string[] = []
  const lookup = { lookup: async (name: string) => { asked.push(name); return await answer(name) }, close: () => {} }
  const resolver = new Resolver({ clock, lookup, pins: options.pins ?? {}, ...(options.entriesMax === undefined ? {} : { entriesMax: options.entriesMax }) })
  return { clock, asked, resolver }
}

describe('the resolver', () => {
  test('takes pins first and IP literals as they are, without asking', async () => {
    const { resolver, asked } = rig(() => found(1, 1), { pins: { 'a.test': '10.0.0.1', 'six.test': 'fd00::1' } })
    expect(await resolver.resolve('a.test')).toEqual({ ok: true, address: '10.0.0.1', family: 4 })
    expect(await resolver.resolve('a.test.')).toEqual({ ok: true, address: '10.0.0.1', family: 4 })
    expect(await resolver.resolve('six.test')).toEqual({ ok: true, address: 'fd00::1', family: 6 })
    expect(await resolver.resolve('127.0.0.1')).toEqual({ ok: true, address: '127.0.0.1', family: 4 })
    expect(await resolver.resolve('[::1]')).toEqual({ ok: true, address: '::1', family: 6 })
    expect(asked).toEqual([])
  })

  test('knows no name but those that were pinned: a name of Object.prototype is none', async () => {
    const { resolver, asked } = rig(() => missing)
    expect(await resolver.resolve('constructor')).toEqual(missing)
    expect(asked).toEqual(['constructor'])
  })

  test.each([
    [100, limits.dnsTtlMsMin], [limits.dnsTtlMsMin * 3, limits.dnsTtlMsMin * 3], [limits.dnsTtlMsMax * 10, limits.dnsTtlMsMax],
  ])('keeps an answer with a life of %d ms for %d ms', async (ttlMs, lifeMs) => {
    const { resolver, asked, clock } = rig(() => found(ttlMs, 1))
    await resolver.resolve('a.test')
    clock.advance(lifeMs - 1)
    await resolver.resolve('a.test')
    expect(asked).toHaveLength(1)
    clock.advance(1)
    await resolver.resolve('a.test')
    expect(asked).toHaveLength(2)
  })

  test('keeps "does not exist" for a while, and no other failure', async () => {
    const { resolver, asked, clock } = rig((name) => (name === 'missing.test' ? missing : broken))
    for (let at = 0; at < 3; at++) expect(await resolver.resolve('missing.test')).toEqual(missing)
    for (let at = 0; at < 3; at++) expect(await resolver.resolve('broken.test')).toEqual(broken)
    expect(asked).toEqual(['missing.test', 'broken.test', 'broken.test', 'broken.test'])
    clock.advance(limits.dnsNegativeTtlMs)
    await resolver.resolve('missing.test')
    expect(asked).toHaveLength(5)
  })

  test('asks once for all who wait, and takes the addresses in turn', async () => {
    const gate = deferred<LookupResult>()
    const { resolver, asked } = rig(() => gate.promise)
    const all = Promise.all(Array.from({ length: 5 }, () => resolver.resolve('a.test')))
    gate.resolve(found(60_000, 1, 2, 3))
    const first = (await all).map((result) => result.ok && result.address)
    expect(new Set(first)).toEqual(new Set(['192.0.2.1']))
    expect(asked).toEqual(['a.test'])
    const later = [await resolver.resolve('a.test'), await resolver.resolve('a.test'), await resolver.resolve('a.test')]
    expect(later.map((result) => result.ok && result.address)).toEqual(['192.0.2.2', '192.0.2.3', '192.0.2.1'])
  })

  test('keeps a few of thousands of addresses', async () => {
    const { resolver } = rig(() => found(60_000, ...Array.from({ length: 5_000 }, (_, at) => at)))
    const seen = new Set<unknown>()
    for (let at = 0; at < 100; at++) seen.add((await resolver.resolve('a.test') as { address: string }).address)
    expect(seen.size).toBe(limits.dnsAddressesMax)
  })

  test('a look-up that does not answer has failed at the deadline, and what comes later changes nothing', async () => {
    const gate = deferred<LookupResult>()
    const { resolver, clock, asked } = rig(() => gate.promise)
    const result = resolver.resolve('a.test')
    clock.advance(limits.dnsTimeoutMs)
    expect(await result).toMatchObject({ ok: false, code: 'dns_failed' })
    gate.resolve(found(60_000, 1))
    expect(resolver.stats()).toEqual({ entries: 0, inFlight: 0 })
    await resolver.resolve('a.test')
    expect(asked).toHaveLength(2)
    expect(clock.timersCount).toBe(0)
  })

  test('remembers as a bounded cache in order of use does', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 60 }), async (names) => {
      const { resolver, asked } = rig(() => found(limits.dnsTtlMsMax, 1), { entriesMax: 4 })
      const model: string[] = []
      let misses = 0
      for (const number of names) {
        const name = `h${number}.test`
        const at = model.indexOf(name)
        if (at >= 0) model.splice(at, 1)
        else misses++
        model.push(name)
        if (model.length > 4) model.shift()
        await resolver.resolve(name)
        expect(asked).toHaveLength(misses)
        expect(resolver.stats().entries).toBe(model.length)
      }
    }))
  })
})

function deferred<T>(): { promise: Promise<T>, resolve: (value: T) => void } {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => { resolve = settle })
  return { promise, resolve }
}

/** Name services in which everything fails with a code, but for what is given. */
function services(given: Partial<NameServices>, asked: string[] = []): NameServices {
  const refuse = (kind: string) => (host: string): Promise<never> => {
    asked.push(`${kind} ${host}`)
    return Promise.reject(Object.assign(new Error(`${kind} ENOTFOUND ${host}`), { code: 'ENOTFOUND' }))
  }
  return { resolve4: refuse('4'), resolve6: refuse('6'), system: refuse('system'), hostsFile: '', close: () => {}, ...given }
}

const fails = (code: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))

const resolve6 = async (): Promise<{ address: string, ttl: number }[]> => [{ address: '2001:db8::1', ttl: 9 }]
const system = async (): Promise<{ address: string, family: number }[]> => [{ address: '::1', family: 6 }, { address: '127.0.0.1', family: 4 }]

describe('a look-up', () => {
  test('asks the name servers, and takes the least life of the records', async () => {
    const lookup = createNameLookup(services({ resolve4: async () => [{ address: '192.0.2.1', ttl: 300 }, { address: '192.0.2.2', ttl: 60 }] }))
    expect(await lookup.lookup('a.example')).toEqual(found(60_000, 1, 2))
  })

  test('asks for IPv6 only when the name exists and has no IPv4 address', async () => {
    expect(await createNameLookup(services({ resolve4: fails('ENODATA'), resolve6 })).lookup('a.example'))
      .toEqual({ ok: true, addresses: [{ address: '2001:db8::1', family: 6 }], ttlMs: 9_000 })
    expect(await createNameLookup(services({ resolve4: fails('ENOTFOUND'), resolve6 })).lookup('a.example')).toMatchObject({ code: 'dns_not_found' })
  })

  test.each([
    ['ENOTFOUND', 'dns_not_found'], ['EBADNAME', 'dns_not_found'], ['ESERVFAIL', 'dns_failed'], ['ETIMEOUT', 'dns_failed'],
    ['EREFUSED', 'dns_failed'], ['ECANCELLED', 'dns_failed'], ['EAI_AGAIN', 'dns_failed'],
  ])('that fails with %s is %s', async (error, code) => {
    expect(await createNameLookup(services({ resolve4: fails(error), resolve6: fails(error), system: fails(error) })).lookup('a.example'))
      .toMatchObject({ ok: false, code })
  })

  test('of a name with neither kind of address has found nothing', async () => {
    expect(await createNameLookup(services({ resolve4: fails('ENODATA'), resolve6: fails('ENODATA') })).lookup('a.example'))
      .toMatchObject({ ok: false, code: 'dns_not_found' })
    expect(await createNameLookup(services({ resolve4: async () => [] })).lookup('a.example')).toMatchObject({ ok: false, code: 'dns_not_found' })
  })

  test.each(['localhost', 'intranet', 'printer.local', 'app.localhost', 'nas.home.arpa', 'db.internal', 'pinned.example.com'])(
    'of %s asks the system, and the name servers never hear of it', async (name) => {
      const asked: string[] = []
      const hostsFile = '# a comment 10.9.9.9 other.example\n127.0.0.1\tlocalhost\n10.0.0.7  alias Pinned.Example.com # trailing\n'
      expect(await createNameLookup(services({ hostsFile, system }, asked)).lookup(name))
        .toEqual({ ok: true, addresses: [{ address: '127.0.0.1', family: 4 }], ttlMs: 60_000 })
      expect(asked).toEqual([])
    })

  test('of a public name never takes a thread for getaddrinfo, unless there is no name server at all', async () => {
    const asked: string[] = []
    await createNameLookup(services({}, asked)).lookup('other.example')
    expect(asked).toEqual(['4 other.example'])
    await createNameLookup(services({ resolve4: fails('ECONNREFUSED') }, asked)).lookup('b.example')
    expect(asked).toEqual(['4 other.example', 'system b.example'])
  })
})

/**
 * Names that lead to another address with each look-up, in one crawl: what answers their robots.txt is open to us,
 * what their pages would come from is not. Two servers on one port: "public" on 127.1.0.1, which --allow-address opens,
 * and "private" on 127.0.0.1 and [::1], where nothing may ever arrive.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import * as http from 'node:http'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { limits } from '../../engine/core/limits.ts'
import type { NameServices } from '../../engine/fetch/name-lookup.ts'
import { Crawler, type PageRecord } from '../../engine/index.ts'
import { readPages } from '../support/crawl.ts'

/** What the name servers answer to the first question for a name, to the second and so on; the last answer stands. */
const answers = vi.hoisted(() => new Map<string, string[]>())
const asked = vi.hoisted((): string[] => [])

vi.mock('../../engine/fetch/name-lookup.ts', async (importOriginal) => {
  const none = (): Promise<never> => Promise.reject(Object.assign(new Error('no data'), { code: 'ENODATA' }))
  const records = (host: string, isMine: (address: string) => boolean): Promise<{ address: string; ttl: number }[]> => {
    const left = answers.get(host) ?? []
    const addresses = (left[0] ?? '').split(' ').filter(isMine)
    if (addresses.length === 0) return none()
    if (left.length > 1) left.shift()
    asked.push(`${host} ${addresses.join(' ')}`)
    return Promise.resolve(addresses.map((address) => ({ address, ttl: 0 })))
  }
  const services: NameServices = {
    resolve4: (host) => records(host, (address) => net.isIP(address) === 4), resolve6: (host) => records(host, (address) => net.isIP(address) === 6),
    system: none, hostsFile: '', close: () => {},
  }
  return { ...await importOriginal<object>(), systemNameServices: () => services }
})

// A look-up is kept for no time: the name server of the attacker is asked for each connection.
vi.mock('../../engine/core/limits.ts', async (importOriginal) => {
  const original = await importOriginal<{ limits: typeof limits }>()
  return { ...original, limits: { ...original.limits, dnsTtlMsMin: 0 } }
})

/** IPv4 in IPv6 is what every machine has: it is opened with the range of the IPv4 address. */
const families = [
  ['a', 'IPv4', '127.1.0.1', '127.0.0.1'],
  ['b', 'IPv6', '::ffff:127.1.0.1', '::1'],
  ['c', 'IPv6, then an IPv4 address in it', '::ffff:127.1.0.1', '::ffff:127.0.0.1'],
  ['d', 'IPv4, then IPv6', '127.1.0.1', '::1'],
] as const

let open: http.Server
let closed: net.Server[]
let port: number
let arrivals = 0
let dir: string
let records: readonly PageRecord[]

const recordsOf = (name: string): readonly PageRecord[] => records.filter(({ url }) => new URL(url).hostname === name)
const refused = [expect.objectContaining({ outcome: 'failed', code: 'address_refused' })]

beforeAll(async () => {
  // `/1/NAME` leads to another host's `/2/NAME`, and that to the page of NAME. Each request has a connection of its own, so that each needs an address.
  open = http.createServer(({ headers, url = '' }, response) => {
    const [, hop = '', name = ''] = url.split('/')
    response.setHeader('connection', 'close')
    if (url === '/robots.txt') response.writeHead(404).end()
    else if (hop === '1') response.writeHead(302, { location: `http://second.example:${port}/2/${name}` }).end()
    else if (hop === '2') response.writeHead(302, { location: `http://${name}:${port}/3` }).end()
    else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${headers.host}</title>`)
  }).listen(0, '127.1.0.1')
  await once(open, 'listening')
  ;({ port } = open.address() as net.AddressInfo)
  closed = await Promise.all(['127.0.0.1', '::1'].map(async (host) => {
    const server = net.createServer((socket) => { arrivals += 1; socket.destroy() }).listen(port, host)
    await once(server, 'listening')
    return server
  }))
  for (const name of ['first.example', 'second.example']) answers.set(name, ['127.1.0.1'])
  for (const [id, , isPublic, isPrivate] of families) {
    for (const name of [`page-${id}.example`, `hop-${id}.example`]) answers.set(name, [isPublic, isPrivate])
    answers.set(`steady-${id}.example`, [isPublic])
  }
  answers.set('both-private-second.example', ['127.1.0.1', '127.0.0.1 127.1.0.1'])
  answers.set('both-public-second.example', ['127.1.0.1 127.0.0.1'])
  dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const crawler = await Crawler.open({ dir, threads: 1, scope: 'any', delayMs: 0, retries: 0, allowAddress: ['127.1.0.0/16'] })
  await crawler.add([...answers.keys()].map((name) => `http://${/hop|steady/.test(name) ? `first.example:${port}/1/${name}` : `${name}:${port}/3`}`))
  await crawler.start()
  await crawler.close()
  records = await readPages(dir)
})
afterAll(async () => {
  open.closeAllConnections()
  for (const server of [open, ...closed]) server.close()
  await rm(dir, { recursive: true, force: true })
})

describe.each(families)('%s: a name that is public for its robots.txt and private for its page, over %s', (id, _, isPublic, isPrivate) => {
  test('is refused on the first page', () => {
    const name = `page-${id}.example`
    expect(asked.filter((line) => line.startsWith(name))).toEqual([`${name} ${isPublic}`, `${name} ${isPrivate}`])
    expect(recordsOf(name)).toEqual(refused)
  })

  test('is refused on the third hop of a chain', () => {
    const name = `hop-${id}.example`
    expect(asked.filter((line) => line.startsWith(name))).toEqual([`${name} ${isPublic}`, `${name} ${isPrivate}`])
    expect(recordsOf(name)).toEqual(refused)
    expect(recordsOf(name)[0]!.redirectedFrom).toEqual([`http://first.example:${port}/1/${name}`, `http://second.example:${port}/2/${name}`])
  })

  test('while one that stays public is read at the end of the same chain', () => {
    expect(recordsOf(`steady-${id}.example`)).toEqual([expect.objectContaining({ outcome: 'ok', title: `steady-${id}.example:${port}` })])
  })
})

test('a name with a public and a private address is judged by the one that is used', () => {
  expect(recordsOf('both-private-second.example')).toEqual(refused)
  expect(recordsOf('both-public-second.example')).toEqual([expect.objectContaining({ outcome: 'ok', ip: '127.1.0.1' })])
})

test('nothing arrives where nothing may', () => {
  expect(arrivals).toBe(0)
})

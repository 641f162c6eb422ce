/**
 * Every way to write an address that may not be connected to, from the text of a link to the socket: through the URL
 * parser, the resolver and the guard of each kind of connection. A server listens at the addresses; nothing may arrive.
 */
import { once } from 'node:events'
import * as net from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fetchDocument } from '../../engine/cli/fetch-document.ts'
import { systemClock } from '../../engine/core/clock.ts'
import { fetchUrl, hostOfUrl, refusalOf } from '../../engine/core/fetch-url.ts'
import { keyOf, plainKeys } from '../../engine/core/url-key.ts'
import { RobotsGate } from '../../engine/web/robots.ts'
import { makeRig } from '../support/fetch-rig.ts'
import { openSmallWeb } from '../support/small-web.ts'

/** What is written as the host, and the host that it is. */
const forms = [
  ['127.0.0.1', '127.0.0.1'], ['127.1', '127.0.0.1'], ['127.0.1', '127.0.0.1'], ['2130706433', '127.0.0.1'], ['0x7f000001', '127.0.0.1'], ['0x7f.1', '127.0.0.1'], ['0X7F.0.0.0x1', '127.0.0.1'],
  ['017700000001', '127.0.0.1'], ['0177.0.0.1', '127.0.0.1'], ['0177.0x0.1', '127.0.0.1'], ['127.0.0.1.', '127.0.0.1'], ['\uFF11\uFF12\uFF17.0.0.1', '127.0.0.1'], ['127\u30020\u30020\u30021', '127.0.0.1'],
  ['\u2460\u2461\u2466.0.0.1', '127.0.0.1'], ['%31%32%37.0.0.1', '127.0.0.1'], ['0', '0.0.0.0'], ['0.0.0.0', '0.0.0.0'], ['0x0', '0.0.0.0'], ['me:secret@127.1', '127.0.0.1'], ['8.8.8.8@127.1', '127.0.0.1'],
  ['127.0\t.0.1', '127.0.0.1'], ['[::1]', '[::1]'], ['[0:0:0:0:0:0:0:1]', '[::1]'], ['[::]', '[::]'], ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]'], ['[::ffff:7f00:1]', '[::ffff:7f00:1]'], ['[::127.0.0.1]', '[::7f00:1]'],
  ['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]'], ['[2002:7f00:1::]', '[2002:7f00:1::]'],
  ['169.254.169.254', '169.254.169.254'], ['0xa9fea9fe', '169.254.169.254'], ['2852039166', '169.254.169.254'], ['0251.0376.0251.0376', '169.254.169.254'], ['169.254.43518', '169.254.169.254'],
  ['[fd00:ec2::254]', '[fd00:ec2::254]'], ['[fe80::1]', '[fe80::1]'], ['10.1', '10.0.0.1'], ['100.64.0.1', '100.64.0.1'], ['192.168.257', '192.168.1.1'], ['224.0.0.1', '224.0.0.1'], ['0xffffffff', '255.255.255.255'],
  ['pinned.example', 'pinned.example'], ['PINNED.example.', 'pinned.example'],
] as const
/** No address by the URL standard, and no name either. */
const noHosts = ['127.0.0.1.1', '256.0.0.1', '0x100000000', '4294967296', '1.2.3.08', '0x7g.1.1.1', '127.0.0.1..', '[fe80::1%25eth0]', '[fe80::1%eth0]', '[::1', '[1.2.3.4]', '127.0.0.1%00', '%5B::1%5D']

const pins = { 'pinned.example': '127.0.0.1' }
let servers: net.Server[]
let port: number
let arrivals = 0

beforeAll(async () => {
  servers = []
  for (const host of ['127.0.0.1', '::1']) {
    const server = net.createServer((socket) => { arrivals += 1; socket.destroy() }).listen(port, host)
    await once(server, 'listening')
    port = (server.address() as net.AddressInfo).port
    servers.push(server)
  }
})
afterAll(() => { for (const server of servers) server.close() })

describe('a host that may not be connected to', () => {
  test.each(forms)('%j is %s, and refused for pages, for robots.txt, on a look at one page and through a gateway', async (form, host) => {
    const url = fetchUrl(`http://${form}:${port}/`)!
    expect(hostOfUrl(url)).toBe(host)
    expect(hostOfUrl(keyOf(url, plainKeys))).toBe(host)
    const refused = { ok: false, code: 'address_refused' }
    const rig = makeRig({ allowAddress: [], pins })
    expect(await rig.get(url)).toMatchObject(refused)
    const robots = new RobotsGate({
      fetcher: rig.fetcher, clock: systemClock, userAgent: 'SluiceTest/1.0', deadlineMs: 5_000, stored: () => undefined, readRobots: () => Promise.reject(new Error('read')),
    })
    expect(await robots.ask(url)).toMatchObject({ kind: 'failed', code: 'address_refused' })
    expect(rig.fetcher.stats().connects).toBe(0)
    await rig.fetcher.close()
    expect(await fetchDocument(url, { resolve: pins })).toMatchObject(refused)
    for (const kind of [{ proxy: `http://127.0.0.1:${port}` }, { template: `http://127.0.0.1:${port}/?url={url}` }]) {
      const through = makeRig({ allowAddress: [], pins, gateways: { gateways: [{ name: 'one', hosts: ['*'], ...kind }] } })
      expect(await through.get(url)).toMatchObject(refused)
      through.gateways.close()
      await through.fetcher.close()
    }
    expect(arrivals).toBe(0)
  })

  test.each(noHosts)('%s is none', (form) => {
    expect(fetchUrl(`http://${form}:${port}/`)).toBeUndefined()
    expect(refusalOf(`http://${form}:${port}/`)).toBe('invalid')
  })
})

describe('a name with a dot at its end', () => {
  test('is the host without it, for its key and its connection', async () => {
    const web = await openSmallWeb(['dotted.example'], () => ({ html: 'x' }))
    const url = fetchUrl(`${web.origin('Dotted.example.')}/x`)!
    expect([hostOfUrl(url), keyOf(url, plainKeys)]).toEqual(['dotted.example', `${web.origin('dotted.example')}/x`])
    const { fetcher, get } = makeRig({ pins: { 'dotted.example': '127.0.0.1' } })
    const answer = await get(url)
    expect(answer).toMatchObject({ ok: true, status: 200 })
    if (answer.ok) answer.release()
    await fetcher.close()
    await web.close()
  })
})

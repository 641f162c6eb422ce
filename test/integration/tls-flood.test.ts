import * as net from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { makeRig } from '../support/fetch-rig.ts'

// HelloRequest (RFC 5246 section 7.4.1.1), which OpenSSL passes over in a handshake as often as it comes.
const helloRequests = Buffer.from('160303000400000000'.repeat(5_000), 'hex')

const server = net.createServer((socket) => {
  const pour = (): void => { while (!socket.destroyed && socket.write(helloRequests)); }
  socket.on('error', () => {})
  socket.once('data', pour)
  socket.on('drain', pour)
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => server.close())

test('a handshake of records that ask for nothing ends by their bytes, and not by the connect timeout', async () => {
  const { fetcher, get } = makeRig()
  const result = await get(`https://fault.test:${(server.address() as net.AddressInfo).port}/`)
  expect(result).toMatchObject({ ok: false, code: 'tls_failed', detail: expect.stringContaining(String(limits.handshakeBytesMax)) })
  await fetcher.close()
  expect(fetcher.stats().socketsOpen).toBe(0)
})

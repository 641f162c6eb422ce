/** The server behind --listen, asked over real sockets on loopback. */
import { request as ask } from 'node:http'
import { connect } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { SluiceError } from '../../engine/core/errors.ts'
import { parseListen } from '../../engine/core/listen-address.ts'
import { limits } from '../../engine/core/limits.ts'
import { StatusServer, type StatusSource } from '../../engine/listen.ts'

const open: StatusServer[] = []
afterEach(async () => { await Promise.all(open.splice(0).map((server) => server.close())) })

async function serve(address = '127.0.0.1', source: Partial<StatusSource> = {}): Promise<StatusServer> {
  const server = await StatusServer.open({ address, port: 0 })
  server.tell({ status: () => ({ pages: 7 }), metrics: async () => 'sluice_pages_total 7\n', ...source })
  open.push(server)
  return server
}

interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: string
}

async function get(url: string, { method = 'GET', host }: { method?: string; host?: string } = {}): Promise<Answer> {
  const request = ask(url, { method, agent: false, ...(host !== undefined && { headers: { host } }) }).end()
  const [response] = await once(request, 'response') as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += chunk as string
  return { status: response.statusCode!, headers: response.headers, body }
}

describe('the server of --listen', () => {
  it('answers /metrics as Prometheus wants it, /status.json as JSON, and 404 to all else', async () => {
    const { metricsUrl } = await serve()
    const base = metricsUrl.replace('/metrics', '')
    expect(await get(metricsUrl)).toMatchObject({ status: 200, body: 'sluice_pages_total 7\n', headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
    expect(await get(`${base}/status.json?pretty`)).toMatchObject({ status: 200, body: '{"pages":7}\n', headers: { 'content-type': 'application/json' } })
    for (const path of ['/', '/metrics/', '/status', '/%6detrics', '/metrics%00']) expect((await get(base + path)).status).toBe(404)
  })

  it('answers HEAD with the head alone, and refuses every other method before it looks at anything', async () => {
    let reads = 0
    const { metricsUrl } = await serve('127.0.0.1', { metrics: async () => `${reads += 1}\n` })
    expect(await get(metricsUrl, { method: 'HEAD' })).toMatchObject({ status: 200, body: '', headers: { 'content-length': '2' } })
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE']) {
      expect(await get(metricsUrl, { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    }
    expect(reads).toBe(1)
  })

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1'])('at %s refuses whoever calls it by a name that is not local: a page of a browser whose name was made to point here', async (address) => {
    const { metricsUrl } = await serve(address)
    for (const host of ['evil.test', 'evil.test:80', '127.0.0.1.evil.test', 'localhost.evil.test', '10.0.0.1', '[::2]', '[evil]', 'a@127.0.0.1', '127.0.0.1:80:80']) {
      expect([host, (await get(metricsUrl, { host })).status]).toEqual([host, 403])
    }
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1', '127.8.9.1:9090', '[::1]', '[::1]:9090']) expect([host, (await get(metricsUrl, { host })).status]).toEqual([host, 200])
  })

  it('lets no page of another origin read an answer', async () => {
    const { headers } = await get((await serve()).metricsUrl)
    expect(headers['access-control-allow-origin']).toBeUndefined()
    expect(headers).toMatchObject({ 'cross-origin-resource-policy': 'same-origin', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
  })

  it('answers 503 with a code, and no more of what went wrong', async () => {
    const { metricsUrl } = await serve('127.0.0.1', { metrics: async () => { throw new SluiceError('crawler_closed', 'secret') }, status: () => { throw new Error('secret') } })
    expect(await get(metricsUrl)).toMatchObject({ status: 503, body: 'crawler_closed\n' })
    expect(await get(metricsUrl.replace('metrics', 'status.json'))).toMatchObject({ status: 503, body: 'internal\n' })
  })

  it('says that a port is in use, or is not to be had here', async () => {
    const { metricsUrl } = await serve()
    const port = Number(new URL(metricsUrl).port)
    await expect(StatusServer.open({ address: '127.0.0.1', port })).rejects.toMatchObject({ code: 'port_in_use', exitCode: 1, message: expect.stringContaining(`127.0.0.1:${port}`) })
    // An address for documentation (RFC 5737), which is nobody's.
    await expect(StatusServer.open({ address: '192.0.2.1', port: 0 })).rejects.toMatchObject({ code: 'bad_option', message: expect.stringContaining('192.0.2.1:0') })
  })

  it('closes at once what clients hold open, a request that never ends among it', async () => {
    const server = await serve()
    const { port } = new URL(server.metricsUrl)
    const sockets = Array.from({ length: 5 }, () => connect(Number(port), '127.0.0.1'))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    for (const socket of sockets) socket.on('error', () => {}).write('GET /metrics HTTP/1.1\r\nhost: loc')
    const ended = Promise.all(sockets.map((socket) => new Promise((resolve) => { socket.on('close', resolve) })))
    await server.close()
    await ended
  })

  it('holds a bounded number of connections', async () => {
    const { metricsUrl } = await serve()
    const sockets = Array.from({ length: limits.listenConnectionsMax + 8 }, () => connect(Number(new URL(metricsUrl).port), '127.0.0.1'))
    let closed = 0
    const allRefused = new Promise<void>((resolve) => {
      for (const socket of sockets) socket.on('error', () => {}).on('close', () => (closed += 1) === 8 && resolve())
    })
    await allRefused
    expect(sockets.filter((socket) => !socket.destroyed)).toHaveLength(limits.listenConnectionsMax)
    for (const socket of sockets) socket.destroy()
  })
})

describe('an address for --listen', () => {
  it.each([
    ['9090', '127.0.0.1', 9_090], ['0', '127.0.0.1', 0], ['localhost:80', '127.0.0.1', 80], ['0.0.0.0:65535', '0.0.0.0', 65_535], ['[::1]:9090', '::1', 9_090], ['[::]:0', '::', 0],
  ])('%s is %s and port %d', (text, address, port) => {
    expect(parseListen(text)).toEqual({ address, port })
  })

  it.each(['', ':9090', '65536', '-1', '1.5', '9090 ', '::1:9090', '[127.0.0.1]:80', '127.0.0.1', '127.0.0.1:', 'example.com:80', '1.2.3:80', '[fe80::1%eth0]:80', '[::1]', '*:80', '[]:80', '127.0.0.1:80:80', '1e3'])('%j is none', (text) => {
    expect(parseListen(text)).toBeUndefined()
  })
})

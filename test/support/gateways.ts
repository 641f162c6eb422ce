/**
 * Gateways on loopback: an HTTP proxy that speaks CONNECT and leads every name to 127.0.0.1, and a scraping API behind a URL
 * template. Both count what was asked at once, and answer as a test says.
 */
import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Authority } from '../../engine/demo/authority.ts'

/** One CONNECT. */
export interface Asked {
  /** `HOST:PORT` */
  readonly authority: string
  readonly head: string
  /** 1 for the first. */
  readonly number: number
  /** Tunnels that are open, this one not counted. */
  readonly tunnelsOpen: number
}

/** What to do with it: make the tunnel, or write this and end; `hold`: nothing; with a function, whatever it does. */
export type ProxyPlay = 'tunnel' | 'hold' | { readonly write: string | Buffer } | ((socket: net.Socket) => void)

export interface TestProxy {
  readonly port: number
  readonly asked: readonly Asked[]
  readonly tunnelsOpen: number
  readonly tunnelsOpenMax: number
  /** Connections to the proxy that are open. */
  readonly connectionsOpen: number
  /** What it does from now on. */
  play: (asked: Asked) => ProxyPlay
  close(): Promise<void>
}

/** An answer without a body. */
export function answerOf(status: number, ...headers: readonly string[]): { readonly write: string } {
  return { write: [`HTTP/1.1 ${status} Status`, ...headers, 'Content-Length: 0', '', ''].join('\r\n') }
}

/** With an authority, TLS to the proxy itself. */
export async function startProxy(authority?: Authority): Promise<TestProxy> {
  const asked: Asked[] = []
  const sockets = new Set<net.Socket>()
  const counts = { open: 0, openMax: 0 }

  function answer(socket: net.Socket, head: string): void {
    const one = { authority: head.split(' ', 2)[1] ?? '', head, number: asked.length + 1, tunnelsOpen: counts.open }
    asked.push(one)
    const play = proxy.play(one)
    if (play === 'tunnel') lead(socket, one.authority)
    else if (typeof play === 'function') play(socket)
    else if (play !== 'hold') socket.end(play.write)
  }

  function lead(socket: net.Socket, authority: string): void {
    counts.open += 1
    counts.openMax = Math.max(counts.openMax, counts.open)
    socket.once('close', () => { counts.open -= 1 })
    const target = net.connect(Number(authority.slice(authority.lastIndexOf(':') + 1)), '127.0.0.1')
    target.on('error', () => socket.destroy())
    target.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(target).pipe(socket)
    })
    socket.once('close', () => target.destroy())
    target.once('close', () => socket.destroy())
  }

  function serve(socket: net.Socket): void {
    let head = ''
    const read = (data: Buffer): void => {
      head += data.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      socket.off('data', read)
      answer(socket, head)
    }
    socket.on('data', read)
  }

  const server = authority === undefined ? net.createServer(serve) : tls.createServer({ cert: authority.certPem, key: authority.keyPem }, serve)
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('secureConnection', (socket: net.Socket) => socket.on('error', () => {}))
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: TestProxy = {
    port: (server.address() as net.AddressInfo).port,
    asked,
    get tunnelsOpen() { return counts.open },
    get tunnelsOpenMax() { return counts.openMax },
    get connectionsOpen() { return sockets.size },
    play: () => 'tunnel',
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return proxy
}

export interface ApiRequest {
  /** The page that is asked for. */
  readonly target: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly number: number
  /** Requests under way, this one included. */
  readonly inFlight: number
}

export interface ApiAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface TestApi {
  readonly port: number
  readonly asked: readonly ApiRequest[]
  /** A promise: the answer waits for it. */
  play: (request: ApiRequest) => ApiAnswer | Promise<ApiAnswer>
  close(): Promise<void>
}

/** An API that takes the page in the parameter `url` of its query. */
export async function startApi(): Promise<TestApi> {
  const asked: ApiRequest[] = []
  let inFlight = 0
  const server = http.createServer((request, response) => {
    const { headers, url: path = '' } = request
    inFlight += 1
    const one = { target: new URL(path, 'http://api.test').searchParams.get('url') ?? '', path, headers, number: asked.length + 1, inFlight }
    asked.push(one)
    void (async () => {
      const { status, headers: fields, body = '<!doctype html><title>page</title>' } = await api.play(one)
      inFlight -= 1
      response.writeHead(status, { 'content-type': 'text/html', ...fields }).end(body)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const api: TestApi = {
    port: (server.address() as net.AddressInfo).port,
    asked,
    play: () => ({ status: 200 }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return api
}

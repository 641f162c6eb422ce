/** What raw servers of tests share: listeners on loopback, the connections that are open on them, and the heads of requests. */
import { once } from 'node:events'
import type * as net from 'node:net'

/** Servers that listen together, and what is open on all of them. */
export class RawServers {
  readonly #servers: readonly net.Server[]
  readonly #sockets = new Set<net.Socket>()
  #whenDrained: (() => void)[] = []

  private constructor(servers: readonly net.Server[]) {
    this.#servers = servers
  }

  /** `onConnection` is told of each connection and the server that took it. */
  static async listen<S extends net.Server>(servers: readonly S[], onConnection: (socket: net.Socket, server: S) => void): Promise<RawServers> {
    const raw = new RawServers(servers)
    for (const server of servers) {
      server.on('connection', (socket: net.Socket) => {
        raw.#accept(socket)
        onConnection(socket, server)
      })
      server.on('tlsClientError', () => {})
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
    }
    return raw
  }

  get open(): number {
    return this.#sockets.size
  }

  /** Resolves when no connection is open. */
  drained(): Promise<void> {
    return new Promise((resolve) => { if (this.open === 0) resolve(); else this.#whenDrained.push(resolve) })
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }

  #accept(socket: net.Socket): void {
    this.#sockets.add(socket)
    // Clients that go away are what such servers are about.
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#sockets.delete(socket)
      if (this.open > 0) return
      for (const resolve of this.#whenDrained.splice(0)) resolve()
    })
  }
}

/** Calls back with the head of each request that comes, and its number on the connection, from 1 on. */
export function onRequests(socket: net.Socket, answer: (head: string, number: number) => void): void {
  let received = ''
  let requests = 0
  socket.on('error', () => {})
  socket.on('data', (data) => {
    received += data.toString('latin1')
    for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
      const head = received.slice(0, end)
      received = received.slice(end + 4)
      answer(head, ++requests)
    }
  })
}

/** The port that a server took. */
export function portOf(server: net.Server): number {
  return (server.address() as net.AddressInfo).port
}

/**
 * One listening socket per host on loopback addresses of its own, all on one port, all feeding one HTTP server. Where
 * only 127.0.0.1 exists (macOS), every name goes there. Invariant: nothing but loopback is ever bound; after `close`
 * no socket is left. Main thread of the web's process.
 */
import { once } from 'node:events'
import net from 'node:net'
import { SluiceError } from '../core/errors.ts'

/** Addresses, and with them open files, that a web takes; further hosts share them. */
const addressesMax = 1_024

/** Ports tried when any will do: one that is free on the first address may be taken on another. */
const portTriesMax = 20

export class Listeners {
  readonly port: number
  readonly addresses: readonly string[]
  readonly #servers: readonly net.Server[]
  readonly #sockets = new Set<net.Socket>()

  private constructor(servers: readonly net.Server[], addresses: readonly string[], port: number) {
    this.port = port
    this.addresses = addresses
    this.#servers = servers
  }

  /** Port 0 takes any free one. */
  static async open(hosts: number, port: number): Promise<Listeners> {
    const wanted = Array.from({ length: Math.min(hosts, addressesMax) }, (_, index) => `127.1.${Math.floor(index / 250)}.${1 + index % 250}`)
    const addresses = await hasAddress(wanted[0]!) ? wanted : ['127.0.0.1']
    for (let tries = 1; ; tries++) {
      const servers: net.Server[] = []
      try {
        let bound = port
        for (const address of addresses) {
          const server = net.createServer()
          servers.push(server)
          bound = await listen(server, address, bound)
        }
        return new Listeners(servers, addresses, bound)
      } catch (error) {
        await Promise.all(servers.map(closeServer))
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
        if (port !== 0 || tries === portTriesMax) throw new SluiceError('port_in_use', `port ${port} is in use on a loopback address: expected a free one, or 0 for any`, { cause: error })
      }
    }
  }

  addressOf(host: number): string {
    return this.addresses[host % this.addresses.length]!
  }

  /** Hands every new connection to `accept`. */
  start(accept: (socket: net.Socket) => void): void {
    for (const server of this.#servers) {
      server.on('connection', (socket) => {
        this.#sockets.add(socket)
        socket.once('close', () => this.#sockets.delete(socket))
        socket.setNoDelay(true)
        accept(socket)
      })
    }
  }

  /** Whether connections to these hosts are refused, and those that are open reset. Concerns all hosts of an address. */
  async setRefusing(hosts: readonly number[], isRefusing: boolean): Promise<void> {
    for (const at of new Set(hosts.map((host) => host % this.addresses.length))) {
      const [server, address] = [this.#servers[at]!, this.addresses[at]!]
      if (server.listening !== isRefusing) continue
      if (!isRefusing) {
        await listen(server, address, this.port)
        continue
      }
      // It has closed when its last connection has.
      const closed = closeServer(server)
      for (const socket of this.#sockets) if (socket.localAddress === address) socket.resetAndDestroy()
      await closed
    }
  }

  /** The accepted socket with these ends, below any TLS. */
  socketOf(remoteAddress: string | undefined, remotePort: number | undefined): net.Socket | undefined {
    for (const socket of this.#sockets) {
      if (socket.remotePort === remotePort && socket.remoteAddress === remoteAddress) return socket
    }
    return undefined
  }

  async close(): Promise<void> {
    const closed = Promise.all(this.#servers.map(closeServer))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

async function listen(server: net.Server, host: string, port: number): Promise<number> {
  server.listen({ host, port, exclusive: true, backlog: 1_024 })
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

async function hasAddress(address: string): Promise<boolean> {
  const server = net.createServer()
  try {
    await listen(server, address, 0)
    return true
  } catch {
    return false
  } finally {
    await closeServer(server)
  }
}

function closeServer(server: net.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

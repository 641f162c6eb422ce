/**
 * The connections: one undici Client for each socket, kept for its origin while idle. The only file that imports
 * undici. Main thread.
 *
 * A Client is given a socket that is connected already and never makes one: when its socket has gone, its request
 * fails, and whether to connect anew is the fetcher's decision (with a fresh look at address and deadline).
 *
 *   #idle      origin -> [ connection, connection ]    taken from the end: the warmest first
 *   #idleLru   { oldest ............. newest }         over all origins; beyond the bound the oldest is closed
 *   #open      every connection, idle or not
 *
 * An origin leaves nothing behind: it has an entry only while it has an idle connection, and an idle connection closes
 * after `socketIdleMsMax`. Idle sockets and their timers are unreferenced (by undici), so they keep no process alive.
 *
 * An Agent would keep an object for each origin, and its connector makes a SecureContext and a second look-up.
 */
import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import { limits } from '../core/limits.ts'
import type { ConnectionFacts } from './connector.ts'

export type ResponseHandler = Dispatcher.DispatchHandler
export type ResponseController = Dispatcher.DispatchController

export class Connection {
  readonly origin: string
  readonly socket: Socket
  readonly facts: ConnectionFacts
  /** Requests sent over it. */
  requests = 0
  readonly #client: Client

  constructor(origin: string, socket: Socket, facts: ConnectionFacts) {
    this.origin = origin
    this.socket = socket
    this.facts = facts
    this.#client = clientOn(origin, socket)
  }

  /** Sends one GET. `headers` alternate between name and value. Everything that follows is told to the handler. */
  send(path: string, headers: readonly string[], handler: ResponseHandler): void {
    this.requests++
    this.#client.dispatch({ method: 'GET', path, headers: headers as string[] }, handler)
  }

  /** Closes the socket at once. With an error, because undici takes a close without one for the end of the body. */
  destroy(): void {
    this.socket.destroy(closedByUs)
  }
}

// One for all: making an error for each page that ends its connection costs 0.02 ms.
const closedByUs = new Error('closed by the fetcher')

function clientOn(origin: string, socket: Socket): Client {
  let given = false
  return new Client(origin, {
    connect(_options, callback) {
      const error = given ? new Error('the kept connection was closed') : null
      given = true
      // In a later microtask: undici ignores a socket that is given while it is asking for it.
      queueMicrotask(() => (error === null ? callback(null, socket) : callback(error, null)))
    },
    pipelining: 1,
    maxHeaderSize: limits.headerBytesMax,
    // Off: they restart with every chunk and tick for every socket. The fetch has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
    // The fetcher cuts the body and keeps what it has; undici would fail the request.
    maxResponseSize: -1,
    keepAliveTimeout: limits.socketIdleMsMax,
    // A server's own hint is believed as far as it is shorter, less a second for the way there.
    keepAliveMaxTimeout: limits.socketIdleMsMax,
    keepAliveTimeoutThreshold: 1_000,
  })
}

export interface ClientsOptions {
  readonly socketsIdleMax?: number
}

export class Clients {
  readonly #idle = new Map<string, Connection[]>()
  readonly #idleLru = new Set<Connection>()
  readonly #open = new Set<Connection>()
  readonly socketsIdleMax: number
  #whenEmpty: (() => void) | undefined

  constructor({ socketsIdleMax = limits.socketsIdleMax }: ClientsOptions = {}) {
    this.socketsIdleMax = socketsIdleMax
  }

  /** An idle connection to the origin, or undefined: then connect, and `add`. */
  acquire(origin: string): Connection | undefined {
    const connection = this.#idle.get(origin)?.at(-1)
    if (connection !== undefined) this.#unlist(connection)
    return connection
  }

  /** A new connection, acquired. It is forgotten when its socket closes. */
  add(origin: string, socket: Socket, facts: ConnectionFacts): Connection {
    const connection = new Connection(origin, socket, facts)
    this.#open.add(connection)
    socket.once('close', () => {
      this.#unlist(connection)
      this.#open.delete(connection)
      if (this.#open.size === 0) this.#whenEmpty?.()
    })
    return connection
  }

  /** Gives a connection back after its response. It is kept unless it was destroyed, by the exchange or by undici. */
  release(connection: Connection): void {
    if (connection.socket.destroyed) return
    const list = this.#idle.get(connection.origin)
    if (list === undefined) this.#idle.set(connection.origin, [connection])
    else list.push(connection)
    this.#idleLru.add(connection)
    if (this.#idleLru.size > this.socketsIdleMax) {
      const [oldest] = this.#idleLru
      this.#unlist(oldest!)
      oldest!.destroy()
    }
  }

  stats(): { readonly open: number, readonly idle: number, readonly origins: number } {
    return { open: this.#open.size, idle: this.#idleLru.size, origins: this.#idle.size }
  }

  /** Closes every connection, also those in use. Resolves when their sockets are closed. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => { this.#whenEmpty = resolve })
    for (const connection of this.#open) connection.destroy()
    if (this.#open.size > 0) await closed
  }

  #unlist(connection: Connection): void {
    if (!this.#idleLru.delete(connection)) return
    const rest = this.#idle.get(connection.origin)!.filter((other) => other !== connection)
    if (rest.length === 0) this.#idle.delete(connection.origin)
    else this.#idle.set(connection.origin, rest)
  }
}

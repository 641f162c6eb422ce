/**
 * The connections: one undici Client for each socket, kept while idle for its route: an origin, and the gateway before it
 * if there is one. The only file that imports undici. Main thread.
 *
 * A Client is given a socket that is connected already and never makes one: when its socket has gone, its request
 * fails, and whether to connect anew is the fetcher's decision (with a fresh look at address and deadline).
 *
 *   #idle      route -> [ connection, connection ]     taken from the end: the warmest first
 *   #idleLru   { oldest ............. newest }         over all routes; beyond the bound the oldest is closed
 *   #open      every connection, idle or not
 *
 * A route leaves nothing behind: it has an entry only while it has an idle connection, and an idle connection closes
 * after `socketIdleMsMax`. Idle sockets and their timers are unreferenced (by undici), so they keep no process alive.
 *
 * An Agent would keep an object for each origin, and its connector makes a SecureContext and a second look-up.
 */
import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import { limits } from '../core/limits.ts'
import type { ConnectionFacts } from './connector.ts'
import type { Gateway } from './gateway.ts'

export type ResponseHandler = Dispatcher.DispatchHandler
export type ResponseController = Dispatcher.DispatchController

/** Whose connections they are: an origin, or an origin by way of a gateway. */
export interface Route {
  readonly origin: string
  readonly via?: Gateway | undefined
}

export class Connection {
  /** The connections of one route are alike. */
  readonly key: string
  readonly via: Gateway | undefined
  readonly socket: Socket
  readonly facts: ConnectionFacts
  /** Requests sent over it. */
  requests = 0
  readonly #client: Client
  #whileResting = (): void => {}

  constructor(route: Route, socket: Socket, facts: ConnectionFacts) {
    this.key = keyOf(route)
    this.via = route.via
    this.socket = socket
    this.facts = facts
    this.#client = clientOn(route.origin, socket)
  }

  /** Sends one GET. `headers` alternate between name and value. Everything that follows is told to the handler. */
  send(path: string, headers: readonly string[], handler: ResponseHandler): void {
    this.requests++
    this.#client.dispatch({ method: 'GET', path, headers: headers as string[] }, handler)
  }

  /**
   * Nobody has asked for anything: whatever comes now ends it. undici does so too, but passes over blank lines, and took
   * 826 MB of them in the four seconds that a connection may be idle.
   */
  rest(): void {
    const bytes = this.socket.bytesRead
    this.#whileResting = () => { if (this.socket.bytesRead > bytes) this.destroy() }
    this.socket.on('readable', this.#whileResting)
  }

  wake(): void {
    this.socket.off('readable', this.#whileResting)
  }

  /** Closes the socket at once. With an error, because undici takes a close without one for the end of the body. */
  destroy(): void {
    this.socket.destroy(closedByUs)
  }
}

function keyOf({ origin, via }: Route): string {
  return via === undefined ? origin : `${via.name} ${origin}`
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

  /** An idle connection of the route, or undefined: then connect, and `add`. */
  acquire(route: Route): Connection | undefined {
    const connection = this.#idle.get(keyOf(route))?.at(-1)
    if (connection !== undefined) this.#unlist(connection)
    return connection
  }

  /** A new connection, acquired. It is forgotten when its socket closes. */
  add(route: Route, socket: Socket, facts: ConnectionFacts): Connection {
    const connection = new Connection(route, socket, facts)
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
    const list = this.#idle.get(connection.key)
    if (list === undefined) this.#idle.set(connection.key, [connection])
    else list.push(connection)
    this.#idleLru.add(connection)
    connection.rest()
    if (this.#idleLru.size > this.socketsIdleMax) {
      const [oldest] = this.#idleLru
      this.#unlist(oldest!)
      oldest!.destroy()
    }
  }

  /**
   * Before one more connection through a gateway: closes as many idle ones through it as would make, with those in use,
   * more than it is given at once. A proxy's plan counts tunnels, whether anything goes through them or not.
   */
  makeRoom(via: Gateway): void {
    const idle = [...this.#idleLru].filter((connection) => connection.via === via)
    const over = idle.length + via.limiter.inFlight - via.limiter.limit
    for (const connection of idle.slice(0, Math.max(0, over))) {
      this.#unlist(connection)
      connection.destroy()
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
    connection.wake()
    const rest = this.#idle.get(connection.key)!.filter((other) => other !== connection)
    if (rest.length === 0) this.#idle.delete(connection.key)
    else this.#idle.set(connection.key, rest)
  }
}

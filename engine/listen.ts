/**
 * The HTTP server behind --listen: how the crawl stands, for Prometheus and for programs. It reads and changes nothing.
 * Main thread.
 *
 * Invariants: it keeps no process alive, and `close` leaves no connection; it answers GET and HEAD of two paths. There is
 * no password, so on a loopback address it answers only who calls it by one: the Host header of a browser names the page
 * that it believes to be on, so that a page whose name was made to point here (DNS rebinding) is refused, and no other
 * page may read the answers, since no CORS header lets it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { BlockList, isIP, type AddressInfo } from 'node:net'
import { SluiceError, sluiceErrorOf } from './core/errors.ts'
import { listenText, type ListenAddress } from './core/listen-address.ts'
import { limits } from './core/limits.ts'

/** What is told; made when it is asked for. */
export interface StatusSource {
  status(): object
  /** In Prometheus's text format, version 0.0.4. */
  metrics(): Promise<string>
}

export class StatusServer {
  readonly metricsUrl: string
  readonly #server: Server
  #source: StatusSource | undefined

  private constructor(server: Server, address: ListenAddress) {
    this.#server = server
    this.metricsUrl = `http://${listenText(address)}/metrics`
  }

  /**
   * Takes the port; answers 503 until there is something to `tell`. Throws `port_in_use`, or `bad_option` for an address or
   * a port that this process cannot have.
   */
  static async open(given: ListenAddress): Promise<StatusServer> {
    const server = createServer({ requestTimeout: limits.listenRequestMsMax, headersTimeout: limits.listenRequestMsMax, maxHeaderSize: limits.headerBytesMax })
    server.maxConnections = limits.listenConnectionsMax
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(error, given)))
      server.listen({ host: given.address, port: given.port }, resolve)
    })
    server.unref()
    const opened = new StatusServer(server, { address: given.address, port: (server.address() as AddressInfo).port })
    const isGuarded = isLoopback(given.address)
    server.on('request', (request, response) => void answer(request, response, { source: opened.#source, isGuarded }))
    return opened
  }

  tell(source: StatusSource): void {
    this.#source = source
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => { this.#server.close(() => resolve()) })
    this.#server.closeAllConnections()
    await closed
  }
}

function listenError(error: NodeJS.ErrnoException, address: ListenAddress): SluiceError {
  const place = listenText(address)
  if (error.code === 'EADDRINUSE') return new SluiceError('port_in_use', `--listen: ${place} is in use by another process; give another port, or 0 for any that is free`, { cause: error })
  return new SluiceError('bad_option', `--listen: expected an address and a port of this machine that may be used, given ${place}: ${error.code}`, { cause: error })
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** In any way to write it, also as IPv4 inside IPv6. */
function isLoopback(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && loopback.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** The Host header names this machine by a loopback address. */
function isLocalName(header: string | undefined): boolean {
  const name = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(header ?? '')
  return name !== null && (name[2]?.toLowerCase() === 'localhost' || isLoopback(name[1] ?? name[2]!))
}

interface Answering {
  readonly source: StatusSource | undefined
  readonly isGuarded: boolean
}

async function answer(request: IncomingMessage, response: ServerResponse, { source, isGuarded }: Answering): Promise<void> {
  // Whoever hangs up before the answer has no use for it.
  response.on('error', () => {})
  if (isGuarded && !isLocalName(request.headers.host)) return send(response, 403, 'text/plain', 'ask for 127.0.0.1, [::1] or localhost\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return send(response, 405, 'text/plain', 'only GET and HEAD\n')
  }
  if (source === undefined) return send(response, 503, 'text/plain', 'the crawl is being opened\n')
  const path = request.url?.split('?', 1)[0]
  try {
    if (path === '/metrics') send(response, 200, 'text/plain; version=0.0.4; charset=utf-8', await source.metrics())
    else if (path === '/status.json') send(response, 200, 'application/json', `${JSON.stringify(source.status())}\n`)
    else send(response, 404, 'text/plain', 'there are /metrics and /status.json\n')
  } catch (error) {
    send(response, 503, 'text/plain', `${sluiceErrorOf(error).code}\n`)
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type, 'content-length': Buffer.byteLength(body), 'cache-control': 'no-store',
    'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin',
  })
  // Of HEAD, Node sends the head alone.
  response.end(body)
}

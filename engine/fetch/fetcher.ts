/**
 * Fetches one URL: look-up, connection, request, response, under one deadline; every failure is a value. HTTP/1.1 and
 * GET. A redirect is an answer like any other: its target is a new decision, made elsewhere. Main thread; touches
 * neither the store nor the ring.
 *
 *   acquire ------------------------> exchange --> release
 *      \                              ^    |
 *       +--> resolve --> connect --> add   +-- a kept connection was closed: once more, on a new one, unless it is paced
 *
 * Measured, client CPU for a page of 100 KB, identity coding, server in another process on the same two cores, Node
 * 20.20, ranges of six rounds in two runs: HTTP kept 0.14-0.22 ms, HTTPS kept 0.18-0.29 ms, a new HTTPS connection for each
 * page 1.9-2.2 ms. Beside it: undici's Agent 0.06-0.18, 0.18-0.25 and 1.9-2.4 ms (it throws the bodies away); bare
 * tls.connect, write, read, close 1.4-1.6 ms, of which 0.35 is Node making an object of the certificate's chain.
 */
import * as zlib from 'node:zlib'
import type { Clock } from '../core/clock.ts'
import { invariant, type FailureCode } from '../core/errors.ts'
import { hostOfUrl } from '../core/fetch-url.ts'
import { limits } from '../core/limits.ts'
import type { Timings, TlsFacts } from '../core/types.ts'
import type { Session } from '../web/session.ts'
import { anyAddress, type AddressGuard } from './address-guard.ts'
import type { BodySink } from './body-sink.ts'
import type { ByteBudget, Release } from './byte-budget.ts'
import { Clients, type Connection, type Route } from './clients.ts'
import { connect, type ConnectorOptions, type ConnectResult } from './connector.ts'
import { Deadline } from './deadline.ts'
import { exchange, type ExchangeEnd, type ExchangeRequest } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { headersThrough, portOf, requestedOf, type Gateways, type Place } from './gateways.ts'
import { checkedUserAgent, withFields } from './request-fields.ts'
import { nameOf, type Resolution, type Resolver } from './resolver.ts'
import type { TlsTrust } from './tls-context.ts'

export interface FetchRequest {
  /** A URL that `fetchUrl` gave. */
  readonly url: string
  /** The body is cut here, in bytes as they come over the wire. At most the budget's capacity. */
  readonly bodyBytesMax: number
  readonly deadlineMs: number
  /** Asked once, after the headers. */
  readonly acceptBody: (status: number, contentType: string | undefined) => 'read' | 'refuse'
  /** A request that a kept connection swallowed is not sent again at once, on a new one: the server may have seen it, and the next must wait its turn. */
  readonly isPaced?: boolean
  /** Called when the request goes out on its connection; once more when it is sent again on another. */
  readonly onSend?: () => void
  /** Takes the body as it comes: of a 2xx answer nothing is kept then, and `bodyBytesMax` may pass the budget's capacity. */
  readonly sink?: BodySink
  /** Called when the head says how many bytes the body will take from the budget. */
  readonly onBody?: (bytes: number) => void
  /** Ends the fetch with `aborted`. May be shared by many. */
  readonly signal?: AbortSignal
  /** Sent besides the usual ones. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface FetchedResponse {
  readonly ok: true
  readonly status: number
  readonly statusText: string
  /** Name, value, name, value, as sent. */
  readonly headers: readonly string[]
  /** `Name: value` lines, each ended by CRLF, without the status line. */
  readonly headerBlock: Uint8Array
  /** As received: content coding untouched, transfer coding removed. */
  readonly body: readonly Uint8Array[]
  readonly bodyBytes: number
  readonly truncated: boolean
  /** It changed a cookie that we keep. */
  readonly setsCookie?: true
  /** Absent with a gateway, which alone knows it. */
  readonly ip?: string
  readonly tls?: TlsFacts
  readonly timings: Timings
  /** When the request was sent. */
  readonly fetchedAtMs: number
  /** Name of the gateway that it came through. */
  readonly gateway?: string
  /** The gateway has tried again by itself: nobody else should. */
  readonly isFinal?: true
  /** Gives the body's bytes back to the budget: call it when the body is copied or dropped. */
  readonly release: Release
}

export interface FetchFailure {
  readonly ok: false
  readonly code: FailureCode | 'aborted'
  readonly detail: string
  /** The server closed a kept connection without a byte of an answer: no try of the URL. Only of paced requests. */
  readonly isStale?: true
  /** It can only be the network here: see failure-codes.ts. */
  readonly isLocal?: true
  readonly timings: Timings
  readonly fetchedAtMs: number
  /** Present when the failure came after the headers. */
  readonly status?: number
  readonly statusText?: string
  readonly headers?: readonly string[]
  readonly ip?: string
  readonly tls?: TlsFacts
  /** As of a response. */
  readonly gateway?: string
  readonly isFinal?: true
}

export type FetchResult = FetchedResponse | FetchFailure

export interface FetcherOptions {
  readonly resolver: Resolver
  readonly guard: AddressGuard
  readonly trust: TlsTrust
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly userAgent: string
  readonly socketsIdleMax?: number
  /** Told of every request, and of what it brought. */
  readonly rates?: RequestMeter
  /** Hosts that are asked for nothing, whoever leads there (a redirect of robots.txt does). */
  readonly isExcluded?: (host: string) => boolean
  /** Absent: all is fetched from the sites themselves. */
  readonly gateways?: Gateways
  /** Absent: every host is sent the same, and no cookie is kept. */
  readonly session?: Session
  /** The system has no file for another connection (or look-up), with so many fetches under way. Such a fetch is `aborted`. */
  readonly onNoFiles?: (inFlight: number) => void
}

/** Counts requests and received bytes of the whole crawl. */
export interface RequestMeter {
  /** A fetch begins; answers what it is expected to bring. */
  began(): number
  ended(expectedBytes: number, bytes: number): void
  /** It sends its request once more. */
  resent(): void
}

/** Codings that the parse workers decode; zstd where this Node has it. */
export const acceptEncoding = 'createZstdDecompress' in zlib ? 'gzip, br, zstd' : 'gzip, br'

/** No Accept-Language: a crawler has no preference, and what a site shows without one is its own choice. */
const ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

/** What one fetch carries from stage to stage. */
interface Flight {
  /** What is asked for: the page, or an API for the page. */
  readonly url: URL
  readonly route: Route
  readonly request: ExchangeRequest
  readonly isPaced: boolean
  readonly deadline: Deadline
  fetchedAtMs: number
  bytes: number
  dnsMs?: number
  /** Of a connection that was made and came to nothing. */
  connectMs?: number
}

interface ConnectFailure {
  readonly code: FailureCode | 'aborted'
  readonly detail: string
  readonly noFiles?: true
  readonly isLocal?: true
}

interface Exchanged {
  readonly end: ExchangeEnd
  readonly connection: Connection
}

export class Fetcher {
  readonly #resolver: Resolver
  readonly #connecting: ConnectorOptions
  readonly #budget: ByteBudget
  readonly #clock: Clock
  readonly #clients: Clients
  readonly #gateways: Gateways | undefined
  readonly #session: Session | undefined
  readonly #isExcluded: ((host: string) => boolean) | undefined
  readonly #headers: readonly string[]
  readonly #rates: RequestMeter | undefined
  readonly #onNoFiles: (inFlight: number) => void
  readonly #flights = new Set<Flight>()
  #closed = false
  #connects = 0
  #reuses = 0
  #staleRetries = 0

  /** Throws `bad_option` for a user agent that cannot be sent. */
  constructor(options: FetcherOptions) {
    this.#resolver = options.resolver
    this.#connecting = { guard: options.guard, trust: options.trust, clock: options.clock }
    this.#budget = options.budget
    this.#clock = options.clock
    this.#clients = new Clients({ socketsIdleMax: options.socketsIdleMax ?? limits.socketsIdleMax })
    this.#rates = options.rates
    this.#onNoFiles = options.onNoFiles ?? (() => {})
    this.#gateways = options.gateways
    this.#session = options.session
    this.#isExcluded = options.isExcluded
    this.#headers = ['user-agent', checkedUserAgent(options.userAgent), 'accept', ACCEPT, 'accept-encoding', acceptEncoding]
  }

  /** Never rejects, but for a broken invariant. */
  async fetch(request: FetchRequest): Promise<FetchResult> {
    invariant((request.sink === undefined ? request.bodyBytesMax : limits.sitemapChunkBytesMax) <= this.#budget.capacityBytes, 'a body fits into the byte budget')
    const target = new URL(request.url)
    const via = this.#gateways?.of(hostOfUrl(request.url))
    const url = via === undefined ? target : requestedOf(via, target)
    const sent = this.#session?.fieldsFor(target, via?.config.kind) ?? []
    const headers = withFields([...this.#headers, ...Object.entries(request.headers ?? {}).flat()], sent)
    const flight: Flight = {
      url,
      route: { origin: url.origin, via },
      request: {
        onSend: () => {
          flight.fetchedAtMs = this.#clock.wallMs()
          request.onSend?.()
        },
        onBody: (bytes) => request.onBody?.(bytes),
        path: `${url.pathname}${url.search}`,
        onBytes: (count) => { flight.bytes += count },
        headers: via === undefined ? headers : headersThrough(via, headers),
        bodyBytesMax: request.bodyBytesMax,
        acceptBody: request.acceptBody,
        ...(request.sink && { sink: request.sink }),
      },
      isPaced: request.isPaced === true,
      deadline: new Deadline(this.#clock, request.deadlineMs, request.signal),
      fetchedAtMs: this.#clock.wallMs(),
      bytes: 0,
    }
    const expectedBytes = this.#rates?.began() ?? 0
    this.#flights.add(flight)
    if (this.#closed) flight.deadline.stop(closing)
    try {
      if (this.#isExcluded?.(hostOfUrl(request.url)) === true) return this.#failure(flight, { code: 'address_refused', detail: 'its host is excluded' })
      const result = via === undefined ? await this.#fly(flight) : await this.#flyThrough(via, target, flight)
      // Before anybody can ask the host for more.
      const setsCookie = result.headers !== undefined && this.#session?.answered(target, via?.config.kind, result.headers, sent) === true
      return result.ok && setsCookie ? { ...result, setsCookie } : result
    } finally {
      this.#flights.delete(flight)
      flight.deadline.end()
      this.#rates?.ended(expectedBytes, flight.bytes)
    }
  }

  stats(): FetcherStats {
    const { open, idle, origins } = this.#clients.stats()
    return {
      socketsIdleMax: this.#clients.socketsIdleMax, inFlight: this.#flights.size, connects: this.#connects, reuses: this.#reuses, staleRetries: this.#staleRetries,
      socketsOpen: open, socketsIdle: idle, originsKept: origins,
      bodyBytesReserved: this.#budget.reservedBytes, bodiesWaiting: this.#budget.waiting,
    }
  }

  /** Bodies wait for bytes, so another fetch would only join them. */
  get isShortOfBytes(): boolean {
    return this.#budget.waiting > 0
  }

  /** Aborts what is in flight and closes every connection. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { deadline } of this.#flights) deadline.stop(closing)
    this.#resolver.close()
    await this.#clients.close()
  }

  async #flyThrough(via: Gateway, target: URL, flight: Flight): Promise<FetchResult> {
    const refusal = this.#gateways!.refusalOf(target)
    return refusal === undefined ? await this.#gateways!.through(via, () => this.#fly(flight)) : this.#failure(flight, refusal)
  }

  async #fly(flight: Flight): Promise<FetchResult> {
    const kept = this.#clients.acquire(flight.route)
    if (kept !== undefined) {
      this.#reuses++
      const end = await this.#exchange(kept, flight)
      // The server closed it while our request was on its way: no answer of its, and no try of the URL.
      if (end.kind === 'complete' || !end.unanswered) return this.#result(flight, { end, connection: kept })
      if (flight.isPaced) return { ...this.#result(flight, { end, connection: kept }) as FetchFailure, isStale: true }
      this.#staleRetries++
      this.#rates?.resent()
    }
    const connection = await this.#connect(flight)
    if ('code' in connection) return this.#failure(flight, connection)
    return this.#result(flight, { end: await this.#exchange(connection, flight), connection })
  }

  async #connect(flight: Flight): Promise<Connection | Omit<FetchFailure, 'ok' | 'timings' | 'fetchedAtMs'>> {
    const { url, route } = flight
    const result = route.via === undefined
      ? await this.#reach({ secure: url.protocol === 'https:', host: url.hostname, port: portOf(url) }, this.#connecting, flight)
      : await this.#connectVia(route.via, flight)
    if (!result.ok) return result
    this.#connects++
    return this.#clients.add(route, result.socket, result.facts)
  }

  #connectVia(via: Gateway, flight: Flight): Promise<ConnectResult> {
    this.#clients.makeRoom(via)
    // The address of a gateway is the operator's word.
    const connecting = { ...this.#connecting, guard: anyAddress }
    return this.#gateways!.connect(via, flight.url, (place) => this.#reach(place, connecting, flight), flight.deadline)
  }

  async #reach({ secure, host, port }: Place, connecting: ConnectorOptions, flight: Flight): Promise<ConnectResult & { readonly ip?: string }> {
    const { deadline } = flight
    const startMs = this.#clock.nowMs()
    const resolution = await under(deadline, this.#resolver.resolve(host))
    deadline.onStop(undefined)
    flight.dnsMs = this.#clock.nowMs() - startMs
    if (!resolution.ok) return { ok: false, ...this.#ownLack(resolution) }
    const { address, family } = resolution
    const result = await connect({ secure, name: nameOf(host), port, address, family }, connecting, deadline)
    if (result.ok) return result
    if (result.connectMs !== undefined) flight.connectMs = result.connectMs
    return { ok: false, ...this.#ownLack(result), ip: address }
  }

  /** The failure, which is no try of its URL when it was ours. */
  #ownLack({ code, detail, noFiles, isLocal }: ConnectFailure): ConnectFailure {
    if (noFiles !== true) return { code, detail, ...(isLocal === true && { isLocal }) }
    this.#onNoFiles(this.#flights.size)
    return { code: 'aborted', detail }
  }

  async #exchange(connection: Connection, flight: Flight): Promise<ExchangeEnd> {
    const end = await exchange(connection, flight.request, { budget: this.#budget, clock: this.#clock, deadline: flight.deadline })
    this.#clients.release(connection)
    return end
  }

  #result(flight: Flight, { end, connection }: Exchanged): FetchResult {
    const { facts } = connection
    // The look-up, connection and handshake belong to the first request on the connection.
    const first = connection.requests === 1
    const timings = this.#timings(flight, {
      ...(first ? { connectMs: facts.connectMs } : {}),
      ...(first && facts.tlsMs !== undefined ? { tlsMs: facts.tlsMs } : {}),
      ...(end.ttfbMs === undefined ? {} : { ttfbMs: end.ttfbMs }),
    })
    const place = { ...(facts.ip === undefined ? {} : { ip: facts.ip }), ...(facts.tls === undefined ? {} : { tls: facts.tls }), timings, fetchedAtMs: flight.fetchedAtMs }
    if (end.kind === 'complete') {
      const { head: { status, statusText, headers, headerBlock }, body, bodyBytes, truncated, release } = end
      return { ok: true, status, statusText, headers, headerBlock, body, bodyBytes, truncated, release, ...place }
    }
    const { code, detail, head } = end
    if (head === undefined) return { ok: false, code, detail, ...place }
    return { ok: false, code, detail, ...place, status: head.status, statusText: head.statusText, headers: head.headers }
  }

  #failure(flight: Flight, failure: Omit<FetchFailure, 'ok' | 'timings' | 'fetchedAtMs'>): FetchFailure {
    const { code, detail, ip, isLocal } = failure
    return { ok: false, code, detail, ...(ip === undefined ? {} : { ip }), ...(isLocal === true && { isLocal }), timings: this.#timings(flight, flight.connectMs === undefined ? {} : { connectMs: flight.connectMs }), fetchedAtMs: flight.fetchedAtMs }
  }

  #timings({ dnsMs, deadline }: Flight, parts: Timings): Timings {
    const all: Timings = { ...(dnsMs === undefined ? {} : { dnsMs }), ...parts, totalMs: deadline.elapsedMs }
    // Tenths: finer than any network is, and short in a record.
    return Object.fromEntries(Object.entries(all).map(([part, ms]) => [part, Math.round(ms * 10) / 10]))
  }
}

export interface FetcherStats {
  readonly inFlight: number
  /** Connections made; requests on kept ones; requests sent again because a kept one was closed. */
  readonly connects: number
  readonly reuses: number
  readonly staleRetries: number
  readonly socketsOpen: number
  readonly socketsIdle: number
  readonly socketsIdleMax: number
  /** Origins that have an idle connection; of all others nothing is kept. */
  readonly originsKept: number
  readonly bodyBytesReserved: number
  /** Responses that are paused until bytes are free. */
  readonly bodiesWaiting: number
}

const closing = { code: 'aborted', detail: 'the fetcher is closed' } as const

/** A look-up under the deadline of its fetch; it goes on for others who wait for it. */
function under(deadline: Deadline, looking: Promise<Resolution>): Promise<Resolution | ({ ok: false } & ConnectFailure)> {
  return new Promise((resolve) => {
    // The host's name service, and not the URL, is to blame for a deadline that passes here.
    deadline.onStop((stop) => resolve({ ok: false, code: stop.code === 'timeout' ? 'dns_failed' : 'aborted', detail: stop.detail }))
    void looking.then(resolve)
  })
}


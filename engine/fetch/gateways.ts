/**
 * The gateways of a crawl, and what stands between the fetcher and them: which of them a host goes through, what must not
 * be asked for through any, how a connection through one is made, and what an end of a fetch says of the gateway and what
 * of the site. Main thread.
 *
 *     fetch --> through --> [ refused? ] --> connect: proxy, CONNECT, TLS   --> exchange --> judged
 *                                            template: the API itself
 *
 * The names of sites are looked up by the gateway, where we do not see the address. So what we can know is refused before
 * anything is sent: addresses, names that are pinned to a refused address, and names that only a local network has. The
 * gateway's own address is the operator's word, and is not judged.
 *
 * Invariant: a failure with a code of a gateway (`gateway_throttled`, `gateway_quota`, `gateway_failed`) is no word about the site.
 */
import { isIP } from 'node:net'
import type { GatewayStats } from '../core/api-types.ts'
import type { Clock, Random } from '../core/clock.ts'
import type { GatewayConfig } from '../core/gateway-config.ts'
import { retryAfterMs } from '../page-meta.ts'
import type { SharedCap } from '../schedule/shared-cap.ts'
import type { AddressGuard } from './address-guard.ts'
import { tlsFacts, type ConnectResult } from './connector.ts'
import type { Deadline } from './deadline.ts'
import type { FetchResult } from './fetcher.ts'
import { Gateway, resetMsOf, type Begun } from './gateway.ts'
import { openTunnel, secure, type ProxyAnswer } from './gateway-tunnel.ts'
import { isLocalName } from './name-lookup.ts'
import { nameOf } from './resolver.ts'
import { withFields } from './request-fields.ts'
import { headerOf } from './response-head.ts'
import type { TlsTrust } from './tls-context.ts'

export interface GatewaysOptions {
  readonly configs: readonly GatewayConfig[]
  readonly guard: AddressGuard
  readonly trust: TlsTrust
  readonly clock: Clock
  readonly random: Random
  readonly userAgent: string
  /** Lower-case host name to address, as the resolver has them. */
  readonly pins: Readonly<Record<string, string>>
}

/** Where to connect to: the host as in a URL. */
export interface Place {
  readonly secure: boolean
  readonly host: string
  readonly port: number
}

/** Connects to a place of the operator's. */
export type Reach = (place: Place) => Promise<ConnectResult>

type Refusal = Extract<ConnectResult, { ok: false }>

export class Gateways {
  readonly #is: GatewaysOptions
  readonly #list: readonly Gateway[]
  /** Called when more may go through a gateway than before. */
  onRoom: (cap: SharedCap) => void = () => {}
  readonly #timers = new Map<Gateway, () => void>()
  #isClosed = false

  constructor(options: GatewaysOptions) {
    this.#is = options
    this.#list = options.configs.map((config) => new Gateway(config))
  }

  /** The gateway that a host goes through; undefined: none. `host` as a queued URL has it. */
  of(host: string): Gateway | undefined {
    return this.#list.find(({ config }) => config.hosts.has(host))
  }

  /** The bounds that a host shares with all that go through its gateway. */
  capsOf(host: string): readonly SharedCap[] {
    return this.of(host)?.caps ?? []
  }

  /** Hosts whose turn has come wait for a gateway. */
  get areWaitedFor(): boolean {
    return this.#list.some(({ caps: [cap] }) => cap.waiting.size > 0)
  }

  /** What must not be asked for, and why; undefined: it may be. */
  refusalOf(url: URL): Refusal | undefined {
    // A URL's host is in its canonical form: 0x7f.1 and 2130706433 are 127.0.0.1 here.
    const name = nameOf(url.hostname)
    const address = this.#is.pins[name] ?? (/(?:^|\.)localhost$/.test(name) ? '127.0.0.1' : name)
    if (isIP(address) !== 0) {
      const verdict = this.#is.guard.verdict(address)
      return verdict.allowed ? undefined : { ok: false, code: 'address_refused', detail: verdict.why }
    }
    return isLocalName(name) ? { ok: false, code: 'address_refused', detail: `${name} is a name of a local network` } : undefined
  }

  /** Makes one fetch through a gateway, and judges it by its end. */
  async through(gateway: Gateway, fetch: () => Promise<FetchResult>): Promise<FetchResult> {
    gateway.limiter.inFlight += 1
    const begun = this.#begun(gateway)
    try {
      return this.#judged(gateway, await fetch(), begun)
    } finally {
      gateway.limiter.inFlight -= 1
      this.#changed(gateway)
    }
  }

  /** A connection on which the request can be sent: a tunnel to the site, or a connection to the API. */
  async connect(gateway: Gateway, url: URL, reach: Reach, deadline: Deadline): Promise<ConnectResult> {
    const [{ config }, begun] = [gateway, this.#begun(gateway)]
    const place = config.kind === 'proxy' ? config : { secure: url.protocol === 'https:', host: url.hostname, port: portOf(url) }
    const reached = await reach(place)
    if (!reached.ok) {
      if (reached.code === 'aborted') return reached
      return this.#failed(gateway, begun, reached.detail)
    }
    if (config.kind === 'template') return reached
    const authority = `${url.hostname}:${portOf(url)}`
    const answer = await openTunnel(reached.socket, { authority, userAgent: this.#is.userAgent, authorization: config.authorization?.reveal() }, deadline)
    if (answer.kind !== 'answer' || answer.status >= 300) {
      reached.socket.destroy()
      return this.#noTunnel(gateway, url.hostname, answer, begun)
    }
    gateway.reached()
    const connectMs = this.#is.clock.nowMs() - begun.startedAtMs
    if (url.protocol === 'http:') return { ok: true, socket: reached.socket, facts: { connectMs } }
    const secured = await secure(reached.socket, nameOf(url.hostname), this.#is.trust, deadline)
    if (!secured.ok) return secured
    return { ok: true, socket: secured.socket, facts: { connectMs, ...tlsFacts(secured.socket, () => this.#is.clock.nowMs() - begun.startedAtMs - connectMs) } }
  }

  /** The operator has filled a quota, or mended what was wrong. */
  resume(): void {
    for (const gateway of this.#list) {
      gateway.resume()
      this.#changed(gateway)
    }
  }

  stats(): readonly GatewayStats[] {
    const { clock } = this.#is
    return this.#list.map((gateway) => gateway.stats(clock.nowMs(), clock.wallMs()))
  }

  /** Nobody waits any more. */
  close(): void {
    this.#isClosed = true
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  #begun({ limiter }: Gateway): Begun {
    return { startedAtMs: this.#is.clock.nowMs(), inFlight: limiter.inFlight }
  }

  /** What the answer to a CONNECT says that gave no tunnel. */
  #noTunnel(gateway: Gateway, host: string, answer: ProxyAnswer, begun: Begun): Refusal {
    if (answer.kind === 'aborted') return { ok: false, code: 'aborted', detail: answer.detail }
    if (answer.kind === 'broken') return this.#failed(gateway, begun, answer.detail)
    if (answer.kind === 'answer') {
      const said = this.#saysOfItself(gateway, answer, begun)
      if (said !== undefined) return said
      if (answer.status === 407) gateway.refusedCredentials()
      if (answer.status < 500) return { ok: false, code: 'gateway_refused', detail: `the proxy answers ${answer.status}` }
    }
    const detail = answer.kind === 'answer' ? `the proxy answers ${answer.status}` : answer.detail
    if (gateway.blames(host)) return this.#failed(gateway, begun, detail)
    return { ok: false, code: answer.kind === 'silence' ? 'connect_timeout' : 'connect_failed', detail }
  }

  #failed(gateway: Gateway, begun: Begun, detail: string): Refusal {
    gateway.failed({ ...begun, nowMs: this.#is.clock.nowMs() }, this.#is.random)
    return { ok: false, code: 'gateway_failed', detail }
  }

  /** 429, or that its quota is spent. */
  #saysOfItself(gateway: Gateway, { status, headers }: { readonly status: number, readonly headers: readonly string[] }, begun: Begun): Refusal | undefined {
    const { clock, random } = this.#is
    const { name, quotaStatus, resetHeader } = gateway.config
    const retryAfter = headerOf(headers, 'retry-after')
    if (quotaStatus.includes(status)) {
      const resetMs = resetMsOf(headerOf(headers, resetHeader), clock.wallMs()) ?? resetMsOf(retryAfter, clock.wallMs())
      gateway.quotaSpent(clock.nowMs(), resetMs)
      return { ok: false, code: 'gateway_quota', detail: `gateway ${name} answers ${status}` }
    }
    if (status !== 429) return undefined
    gateway.throttled({ ...begun, nowMs: clock.nowMs() }, retryAfterMs(retryAfter, clock.wallMs()), random)
    return { ok: false, code: 'gateway_throttled', detail: `gateway ${name} answers 429` }
  }

  /** The result as the site's, or as the gateway's failure; without the address and the TLS that are the gateway's own. */
  #judged(gateway: Gateway, result: FetchResult, begun: Begun): FetchResult {
    const { name, kind, retries } = gateway.config
    const { ip: _ip, tls, ...rest } = result
    const own = { ...rest, gateway: name, ...(retries && { isFinal: true as const }), ...(tls !== undefined && kind === 'proxy' && { tls }) } as FetchResult
    const { status, headers = [] } = own
    // Whatever became of its body.
    const said = kind === 'template' && status !== undefined ? this.#saysOfItself(gateway, { status, headers }, begun) : undefined
    if (said === undefined) {
      if (own.ok) gateway.worked({ ...begun, nowMs: this.#is.clock.nowMs() })
      return own
    }
    if (own.ok) own.release()
    return { ...said, gateway: name, timings: own.timings, fetchedAtMs: own.fetchedAtMs }
  }

  /** Something has ended that went through it, or its rest: who waits for it is told now, and again when its rest is over. */
  #changed(gateway: Gateway): void {
    this.#timers.get(gateway)?.()
    this.#timers.delete(gateway)
    const { clock } = this.#is
    const restMs = gateway.pausedUntilMs - clock.nowMs()
    if (restMs > 0 && restMs < Number.POSITIVE_INFINITY && !this.#isClosed) {
      this.#timers.set(gateway, clock.after(restMs, () => this.#changed(gateway)))
    }
    for (const cap of gateway.caps) this.onRoom(cap)
  }
}

/** The port of a URL, the scheme's own too. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** What is asked of a template's API for a page; of a proxy, the page itself. */
export function requestedOf({ config }: Gateway, url: URL): URL {
  // As a function: a replacement text would have its dollar signs read.
  return config.kind === 'proxy' ? url : new URL(config.template.reveal().replace('{url}', () => encodeURIComponent(url.href)))
}

/** The headers of a request, with those of a template in the place of ours that have the same name. */
export function headersThrough({ config }: Gateway, headers: readonly string[]): readonly string[] {
  return config.kind === 'proxy' ? headers : withFields(headers, config.headers.flatMap(([name, value]) => [name, value.reveal()]))
}

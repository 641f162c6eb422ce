/**
 * A web without sockets, and the fetcher that reaches it. What a host answers, how fast, and whether at all is a function
 * of virtual time and of how many requests it serves at once, so a bad afternoon is a few lines. The web keeps a log of
 * its own: what the engine says of itself is compared with that.
 *
 *     fetch -> connect -> [ request: logged, concurrent + 1 ] -> head -> bytes reserved -> body -> concurrent - 1
 */
import type { Clock } from '../../engine/core/clock.ts'
import type { FailureCode, WallCode } from '../../engine/core/errors.ts'
import type { Timings } from '../../engine/core/types.ts'
import type { ByteBudget } from '../../engine/fetch/byte-budget.ts'
import { Deadline, type Stop } from '../../engine/fetch/deadline.ts'
import type { Fetcher, FetcherStats, FetchRequest, FetchResult, RequestMeter } from '../../engine/fetch/fetcher.ts'
import type { Gateway } from '../../engine/fetch/gateway.ts'
import type { Gateways } from '../../engine/fetch/gateways.ts'
import { readHead } from '../../engine/fetch/response-head.ts'

/** What a host sees of a request. */
export interface VirtualRequest {
  readonly host: string
  readonly path: string
  readonly nowMs: number
  /** Requests that the host serves now, this one among them. */
  readonly concurrent: number
  /** Requests under way through its gateway, this one among them; 0 without one. */
  readonly atGateway: number
}

export type VirtualAnswer =
  | {
      readonly status: number
      /** From the request to the head; default 50. */
      readonly latencyMs?: number
      /** Of the body; default 20,000. */
      readonly bytes?: number
      /** From the head to the end of the body; default 0. */
      readonly bodyMs?: number
      readonly headers?: Readonly<Record<string, string>>
      /** The body is no page, but what a wall in its place says. */
      readonly wall?: WallCode
    }
  /** No connection is made. */
  | { readonly refuses: FailureCode; readonly afterMs?: number }
  /** The request is sent, and the connection ends without an answer. */
  | { readonly breaks: FailureCode; readonly afterMs?: number }
  /** The request is sent, and nothing ever comes. */
  | { readonly isSilent: true }

export type Behaviour = (request: VirtualRequest) => VirtualAnswer

/** A line of the web's own log: a request that was sent. */
export interface Served {
  readonly host: string
  readonly path: string
  readonly startMs: number
  endMs: number
  /** 0: there was no complete answer. */
  status: number
  /** It was the page, whole. */
  isPage: boolean
  readonly concurrent: number
}

type Sent = Exclude<VirtualAnswer, { refuses: FailureCode }>
type Headed = Extract<VirtualAnswer, { status: number }>

export interface VirtualWebOptions {
  readonly clock: Clock
  readonly behaviour: Behaviour
  readonly budget: ByteBudget
  readonly rates: RequestMeter
  readonly gateways: Gateways | undefined
  /** Called when a fetch begins, before anything happens. */
  readonly onFetch?: (url: URL) => void
  /** Called when a host has asked not to be asked for so long. */
  readonly onRetryAfter?: (host: string, ms: number) => void
  /** Called when a request arrives. */
  readonly onSend?: (served: Served) => void
}

interface Flight {
  readonly request: FetchRequest
  readonly deadline: Deadline
  readonly host: string
  readonly path: string
  readonly via: Gateway | undefined
}

/** A connection was made, in no time, before the request was sent. */
const reached: Timings = { connectMs: 0 }

export class VirtualWeb implements Pick<Fetcher, 'fetch' | 'isShortOfBytes' | 'stats'> {
  readonly #is: VirtualWebOptions
  readonly #concurrent = new Map<string, number>()
  readonly log: Served[] = []
  #inFlight = 0

  constructor(options: VirtualWebOptions) {
    this.#is = options
  }

  get isShortOfBytes(): boolean {
    return this.#is.budget.waiting > 0
  }

  stats(): FetcherStats {
    return {
      inFlight: this.#inFlight, connects: 0, reuses: 0, staleRetries: 0, socketsOpen: this.#inFlight, socketsIdle: 0, socketsIdleMax: 0, originsKept: 0,
      bodyBytesReserved: this.#is.budget.reservedBytes, bodiesWaiting: this.#is.budget.waiting,
    }
  }

  concurrentAt(host: string): number {
    return this.#concurrent.get(host) ?? 0
  }

  async fetch(request: FetchRequest): Promise<FetchResult> {
    const url = new URL(request.url)
    this.#is.onFetch?.(url)
    const deadline = new Deadline(this.#is.clock, request.deadlineMs, request.signal)
    const { gateways, rates } = this.#is
    const flight: Flight = { request, deadline, host: url.hostname, path: url.pathname + url.search, via: gateways?.of(url.hostname) }
    this.#inFlight += 1
    const expectedBytes = rates.began()
    let bytes = 0
    try {
      const result = await (flight.via === undefined ? this.#fly(flight) : gateways!.through(flight.via, () => this.#fly(flight)))
      if (result.ok) bytes = result.bodyBytes
      return result
    } finally {
      this.#inFlight -= 1
      rates.ended(expectedBytes, bytes)
      deadline.end()
    }
  }

  async #fly(flight: Flight): Promise<FetchResult> {
    const { clock, behaviour } = this.#is
    const { host, path, request } = flight
    // Never within the call: a real connection takes its time too.
    await undefined
    const concurrent = this.concurrentAt(host) + 1
    const answer = behaviour({ host, path, nowMs: clock.nowMs(), concurrent, atGateway: flight.via?.limiter.inFlight ?? 0 })
    if ('refuses' in answer) {
      const stop = await this.#wait(answer.afterMs ?? 1, flight.deadline)
      return this.#failure(stop?.code === 'aborted' ? 'aborted' : answer.refuses)
    }
    request.onSend?.()
    const served: Served = { host, path, startMs: clock.nowMs(), endMs: Number.POSITIVE_INFINITY, status: 0, isPage: false, concurrent }
    this.log.push(served)
    this.#concurrent.set(host, concurrent)
    this.#is.onSend?.(served)
    try {
      return await this.#answer(flight, answer, served)
    } finally {
      served.endMs = clock.nowMs()
      this.#concurrent.set(host, this.concurrentAt(host) - 1)
    }
  }

  async #answer(flight: Flight, answer: Sent, served: Served): Promise<FetchResult> {
    const { deadline } = flight
    if (!('status' in answer)) {
      const stop = await this.#wait('breaks' in answer ? answer.afterMs ?? 1 : Number.POSITIVE_INFINITY, deadline)
      return this.#failure(stop?.code ?? ('breaks' in answer ? answer.breaks : 'timeout'), reached)
    }
    const stop = await this.#wait(answer.latencyMs ?? 50, deadline)
    return stop === undefined ? this.#body(flight, answer, served) : this.#failure(stop.code, reached)
  }

  async #body({ deadline, request }: Flight, answer: Headed, served: Served): Promise<FetchResult> {
    const { clock } = this.#is
    const fields = { 'content-type': 'text/html', 'content-length': String(answer.bytes ?? 20_000), ...answer.headers }
    const head = readHead(answer.status, '', Object.entries(fields).flat().map((text) => Buffer.from(text)))
    if (request.acceptBody(head.status, head.contentType) === 'refuse') return this.#failure('unsupported_type')
    const bodyBytes = Math.min(head.contentLength ?? request.bodyBytesMax, request.bodyBytesMax)
    const ttfbMs = clock.nowMs() - served.startMs
    request.onBody?.(bodyBytes)
    const release = await this.#reserve(bodyBytes, deadline)
    if (release === undefined) return this.#failure('aborted')
    const stop = answer.bodyMs === undefined ? undefined : await this.#wait(answer.bodyMs, deadline)
    if (stop !== undefined) {
      release()
      return this.#failure(stop.code)
    }
    served.status = answer.status
    served.isPage = answer.status === 200 && answer.wall === undefined
    const retryAfter = answer.headers?.['retry-after']
    if (retryAfter !== undefined) this.#is.onRetryAfter?.(served.host, Number(retryAfter) * 1_000)
    return {
      ok: true, status: head.status, statusText: '', headers: head.headers, headerBlock: head.headerBlock,
      body: answer.wall === undefined ? [] : [Buffer.from(answer.wall)], bodyBytes, truncated: (head.contentLength ?? 0) > bodyBytes,
      ip: '192.0.2.1', timings: { ttfbMs, totalMs: clock.nowMs() - served.startMs }, fetchedAtMs: clock.wallMs(), release,
    }
  }

  /** As an exchange does: at once, or in turn while the deadline is held. */
  async #reserve(bytes: number, deadline: Deadline): Promise<(() => void) | undefined> {
    const { budget } = this.#is
    const release = budget.tryReserve(bytes)
    if (release !== undefined) return release
    const giveUp = new AbortController()
    deadline.hold()
    deadline.onStop(() => giveUp.abort())
    const granted = await budget.reserve(bytes, giveUp.signal)
    deadline.onStop(undefined)
    deadline.proceed()
    return granted
  }

  /** Waits so long, or until the deadline says why no longer. */
  #wait(ms: number, deadline: Deadline): Promise<Stop | undefined> {
    return new Promise((resolve) => {
      const cancel = ms === Number.POSITIVE_INFINITY ? () => {} : this.#is.clock.after(ms, () => {
        deadline.onStop(undefined)
        resolve(undefined)
      })
      deadline.onStop((stop) => {
        cancel()
        resolve(stop)
      })
    })
  }

  #failure(code: FailureCode | 'aborted', timings: Timings = {}): FetchResult {
    return { ok: false, code, detail: code, timings, fetchedAtMs: this.#is.clock.wallMs() }
  }
}

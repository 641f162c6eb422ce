/**
 * Servers on virtual time, and a client that keeps a limiter's limit full: what bench/limiter.ts prints and the limiter's
 * tests assert. Every number is drawn from the seed; nothing waits, and no socket is opened. The client does not rest
 * after a refusal as a crawl does, so the limiter is all that slows it down.
 *
 *     start -> 1-5 ms -> the server sees it and serves or refuses it -> 1-5 ms -> its end is told to the limiter
 */
import { dice, type Dice } from '../engine/demo/random.ts'
import { Heap } from '../engine/schedule/heap.ts'
import type { Limiter } from '../engine/schedule/limiter.ts'

/** How long it takes to answer a request that finds so many others there (milliseconds); undefined: it refuses. */
export interface SimulatedServer {
  readonly serve: (others: number, nowMs: number) => number | undefined
  /** What it refuses may be the fault of its pages. */
  readonly isStrained?: boolean
}

interface Sample {
  readonly nowMs: number
  readonly limit: number
  readonly paceMs: number
  readonly isRefused: boolean
}

export interface SimulationOptions {
  readonly requests: number
  readonly seed: number
  /** Requests that are left out of the result. */
  readonly settleRequests: number
}

/** What happened at the ends of requests. */
export class Simulated {
  readonly #samples: readonly Sample[]

  constructor(samples: readonly Sample[]) {
    this.#samples = samples
  }

  get limits(): number[] {
    return this.#samples.map(({ limit }) => limit)
  }

  get refusedShare(): number {
    return this.#samples.filter(({ isRefused }) => isRefused).length / this.#samples.length
  }

  /** Over time. */
  get meanLimit(): number {
    return this.#overTime(({ limit }) => limit)
  }

  get pagesPerSecond(): number {
    return 1_000 * this.#samples.length * (1 - this.refusedShare) / (this.#samples.at(-1)!.nowMs - this.#samples[0]!.nowMs)
  }

  timeShareOf(isSo: (sample: Sample) => boolean): number {
    return this.#overTime((sample) => (isSo(sample) ? 1 : 0))
  }

  #overTime(value: (sample: Sample) => number): number {
    let [sum, allMs] = [0, 0]
    for (const [i, next] of this.#samples.slice(1).entries()) {
      const sample = this.#samples[i]!
      sum += value(sample) * (next.nowMs - sample.nowMs)
      allMs += next.nowMs - sample.nowMs
    }
    return sum / allMs
  }
}

interface Event {
  readonly atMs: number
  readonly run: () => void
  heapIndex: number
}

export function simulate(limiter: Limiter, server: SimulatedServer, { requests, seed, settleRequests }: SimulationOptions): { readonly settled: Simulated } {
  const random = dice(seed)
  const events = new Heap<Event>((one, other) => one.atMs < other.atMs)
  const samples: Sample[] = []
  let [nowMs, others, nextStartAtMs, isWaiting] = [0, 0, 0, false]
  const after = (ms: number, run: () => void): void => events.set({ atMs: nowMs + ms, run, heapIndex: -1 })
  const end = (request: { startedAtMs: number; inFlight: number }, latencyMs: number | undefined): void => {
    if (latencyMs !== undefined) limiter.success(request, nowMs, latencyMs)
    else if (server.isStrained === true) limiter.strain(request, nowMs)
    else limiter.throttle(request, nowMs)
    limiter.inFlight -= 1
    samples.push({ nowMs, limit: limiter.limit, paceMs: limiter.paceMs, isRefused: latencyMs === undefined })
    fill()
  }
  const arrive = (request: { startedAtMs: number; inFlight: number }): void => {
    const serviceMs = server.serve(others, nowMs)
    if (serviceMs !== undefined) others += 1
    after(serviceMs ?? 2, () => {
      if (serviceMs !== undefined) others -= 1
      after(1 + 4 * random(), () => end(request, serviceMs))
    })
  }
  const fill = (): void => {
    while (!limiter.isFull && nextStartAtMs <= nowMs) {
      limiter.inFlight += 1
      const request = { startedAtMs: nowMs, inFlight: limiter.inFlight }
      if (limiter.paceMs > 0) nextStartAtMs = nowMs + limiter.paceWaitMs(random)
      after(1 + 4 * random(), () => arrive(request))
    }
    if (limiter.isFull || isWaiting) return
    isWaiting = true
    after(nextStartAtMs - nowMs, () => {
      isWaiting = false
      fill()
    })
  }
  fill()
  while (samples.length < requests) {
    const event = events.peek()!
    events.delete(event)
    nowMs = event.atMs
    event.run()
  }
  return { settled: new Simulated(samples.slice(settleRequests)) }
}

export function logNormal(random: Dice, medianMs: number, sigma: number): number {
  return medianMs * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()))
}

/** Answers 429 above so many at once; `capOf` gets the requests seen so far. */
export function limited(capOf: (seen: number) => number, random: Dice): SimulatedServer {
  let seen = 0
  return { serve: (others) => (others >= capOf(seen++) ? undefined : logNormal(random, 100, 0.5)) }
}

/** Answers 429 above so many a second, with a burst of five (a token bucket). */
export function rated(perSecond: number, random: Dice): SimulatedServer {
  let [tokens, atMs] = [5, 0]
  return {
    serve: (_, nowMs) => {
      tokens = Math.min(5, tokens + (nowMs - atMs) / 1_000 * perSecond)
      atMs = nowMs
      if (tokens < 1) return undefined
      tokens -= 1
      return logNormal(random, 100, 0.5)
    },
  }
}

/** Latency rises with what is there at once, from `knee` on: 50 ms x max(1, n / knee), with some noise. */
export function slowing(knee: number, random: Dice): SimulatedServer {
  return { serve: (others) => logNormal(random, 50 * Math.max(1, (others + 1) / knee), 0.3) }
}

/** Refuses a share of its requests, whatever their number. */
export function erring(share: number, random: Dice): SimulatedServer {
  return { isStrained: true, serve: () => (random() < share ? undefined : logNormal(random, 100, 0.5)) }
}

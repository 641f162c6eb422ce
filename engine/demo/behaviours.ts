/**
 * How hosts of the demonstration web behave from one moment to the next, as a parent process switches it: slow, refusing,
 * challenging, failing, silent. The server asks before it answers. What was asked of each host is counted here, exactly:
 * requests at once, their peak, and how many were refused.
 *
 * Invariant: what begins ends, so `inFlight` is the number of requests without an answer. Pure state, the dice aside,
 * which are a hash of the seed and the request's number at its host. Main thread of the web's process.
 */
import { share } from './random.ts'

export interface Behaviour {
  /** Added to the delay before each answer. */
  readonly latencyMs?: number
  /** And so much for each other request of the host that is under way. */
  readonly latencyMsPerRequest?: number
  /** With more requests at once the further ones are refused with status 429, without delay. */
  readonly concurrentMax?: number
  /** Retry-After of what is refused; absent: the header is. */
  readonly retryAfterS?: number
  /** This status for this share of the requests, all by default. */
  readonly status?: number
  readonly statusShare?: number
  /** A page that asks whoever comes to prove that it is no robot: 403 with `cf-mitigated: challenge`. */
  readonly challenge?: boolean
  /** Decoded size of each page, sent without a content coding. */
  readonly pageBytes?: number
  /** `refused`: nothing listens, and open connections are reset. `reset`: each request is. `silent`: none is answered. */
  readonly connections?: 'refused' | 'reset' | 'silent'
}

/** What was asked of one host since the web began. */
export interface HostTally {
  readonly requests: number
  /** Answered with 429 because of `concurrentMax`. */
  readonly refused: number
  readonly inFlight: number
  /** Most requests at once since the last time that somebody asked. */
  readonly inFlightPeak: number
}

/** What becomes of one request. */
export type Manner = { readonly delayMs: number } & (
  | { readonly kind: 'page'; readonly pageBytes?: number }
  | { readonly kind: 'answer'; readonly status: number; readonly headers: readonly string[] }
  | { readonly kind: 'reset' | 'silence' }
)

const wellBehaved: Behaviour = {}

export class Behaviours {
  readonly #seed: number
  readonly #behaviours = new Map<string, Behaviour>()
  readonly #tallies = new Map<string, { -readonly [K in keyof HostTally]: HostTally[K] }>()

  constructor(seed: number) {
    this.#seed = seed
  }

  /** From now on; an empty behaviour is the usual one. */
  set(hosts: readonly string[], behaviour: Behaviour): void {
    for (const host of hosts) {
      if (Object.keys(behaviour).length === 0) this.#behaviours.delete(host)
      else this.#behaviours.set(host, behaviour)
    }
  }

  /** A request has arrived for a host of the web. */
  begin(host: string): Manner {
    let tally = this.#tallies.get(host)
    if (tally === undefined) this.#tallies.set(host, tally = { requests: 0, refused: 0, inFlight: 0, inFlightPeak: 0 })
    tally.requests += 1
    tally.inFlight += 1
    tally.inFlightPeak = Math.max(tally.inFlightPeak, tally.inFlight)
    const behaviour = this.#behaviours.get(host) ?? wellBehaved
    const isRefused = tally.inFlight > (behaviour.concurrentMax ?? Number.POSITIVE_INFINITY)
    if (isRefused) tally.refused += 1
    return isRefused ? refusal(behaviour) : this.#mannerOf(behaviour, tally)
  }

  /** Its connection is closed, or its answer is sent. */
  end(host: string): void {
    this.#tallies.get(host)!.inFlight -= 1
  }

  /** The tallies of all hosts that were asked; peaks start again. */
  take(): ReadonlyMap<string, HostTally> {
    const taken = new Map([...this.#tallies].map(([host, tally]) => [host, { ...tally }]))
    for (const tally of this.#tallies.values()) tally.inFlightPeak = tally.inFlight
    return taken
  }

  #mannerOf(behaviour: Behaviour, { requests, inFlight }: HostTally): Manner {
    const { latencyMs = 0, latencyMsPerRequest = 0, status, statusShare = 1, challenge, pageBytes, connections } = behaviour
    const delayMs = latencyMs + latencyMsPerRequest * (inFlight - 1)
    // A host that refuses connections resets what was sent before it did.
    if (connections !== undefined) return { kind: connections === 'silent' ? 'silence' : 'reset', delayMs: 0 }
    if (challenge === true) return { kind: 'answer', delayMs, status: 403, headers: ['cf-mitigated', 'challenge'] }
    if (status !== undefined && share(this.#seed, requests) < statusShare) return { kind: 'answer', delayMs, status, headers: [] }
    return { kind: 'page', delayMs, ...(pageBytes !== undefined && { pageBytes }) }
  }
}

function refusal({ retryAfterS }: Behaviour): Manner {
  return { kind: 'answer', delayMs: 0, status: 429, headers: retryAfterS === undefined ? [] : ['retry-after', String(retryAfterS)] }
}

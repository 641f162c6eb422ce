/**
 * How many connections this process may have under way: what the limit on open files and the share of memory leave, and
 * what the operator allows. When the system refuses one more all the same (somebody else's files are open too), the
 * ceiling falls below what there is, and rises again slowly. Pure state; times are given by the caller. Main thread.
 *
 * Invariant: 1 <= limit <= max. After a refusal nothing is started for a moment, so that a refused fetch, which costs
 * its URL and its host nothing and is given back, does not come again at once.
 */
import { limits } from '../core/limits.ts'

/** Files of the store, the sinks, the control channel, look-ups, and the runtime. Measured: 30 beside the workers and sockets of a crawl with WARC. */
const FILES_RESERVED = 96
/** Of a parse worker: its event loop's, its ports', its WARC file. Measured: 7. */
const FILES_PER_WORKER = 12
/** Nothing is started for so long after a refusal. */
const REFUSED_WAIT_MS = 250
/** After so long without a refusal the ceiling rises by a part of itself. */
const RISE_AFTER_MS = 10_000
const RISE_FACTOR = 1.125

export interface CeilingFacts {
  /** What the operator allows; 0: not given. */
  readonly connections: number
  readonly filesMax: number
  readonly socketsMax: number
  readonly workers: number
}

export interface Ceilings {
  /** Requests under way. */
  readonly connections: number
  /** Connections that are kept besides, for the next request to their origin. */
  readonly socketsIdle: number
}

/** The most that there may be: operator, files and memory. A quarter of what is left of the files may be idle, where there are few. */
export function ceilingsOf({ connections, filesMax, socketsMax, workers }: CeilingFacts): Ceilings {
  const files = Math.max(2, filesMax - FILES_RESERVED - workers * FILES_PER_WORKER)
  const socketsIdle = Math.min(limits.socketsIdleMax, Math.floor(files / 4))
  const asked = connections === 0 ? limits.connectionsMax : connections
  return { connections: Math.max(1, Math.min(asked, files - socketsIdle, socketsMax, limits.connectionsMax)), socketsIdle }
}

export class ConnectionCeiling {
  readonly max: number
  #limit: number
  #refusedAtMs = Number.NEGATIVE_INFINITY

  constructor(max: number) {
    this.max = max
    this.#limit = max
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** Until then nothing is started. */
  get waitUntilMs(): number {
    return this.#refusedAtMs + REFUSED_WAIT_MS
  }

  /** The system has no file for another connection, with so many under way. */
  refused(inFlight: number, nowMs: number): void {
    // Many are refused at once; the first has said it.
    if (nowMs < this.waitUntilMs) return
    this.#refusedAtMs = nowMs
    this.#limit = Math.max(1, Math.min(this.#limit, inFlight * 7 / 8))
  }

  rise(nowMs: number): void {
    if (this.#limit === this.max || nowMs - this.#refusedAtMs < RISE_AFTER_MS) return
    this.#limit = Math.min(this.max, Math.max(this.#limit + 1, this.#limit * RISE_FACTOR))
    this.#refusedAtMs = nowMs - REFUSED_WAIT_MS
  }
}

/**
 * Time and chance, injected wherever they are used, so that tests own both. Two kinds of time: `nowMs` is monotonic
 * and serves every wait inside the process; `wallMs` is the time of day and serves what is stored. Leaf module.
 */

export interface Clock {
  /** Monotonic milliseconds since some moment; never goes back. */
  nowMs(): number
  /** Milliseconds since 1970; may jump. */
  wallMs(): number
  /** Calls back once, at or after `nowMs() + delayMs`; answers a function that cancels it. Keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void
  /** Calls back once what lies in sockets and files was read; answers a function that cancels it. */
  nextTurn(callback: () => void): () => void
}

/** A number in [0, 1). */
export type Random = () => number

/** Longest delay that setTimeout takes: more overflows 32 bits and fires at once. A longer wait is made of several. */
const TIMER_MS_MAX = 2 ** 31 - 1

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout
    const wait = (leftMs: number): void => {
      const nextMs = Math.min(Math.max(0, Math.ceil(leftMs)), TIMER_MS_MAX)
      timer = setTimeout(() => (leftMs > nextMs ? wait(leftMs - nextMs) : callback()), nextMs)
    }
    wait(delayMs)
    return () => clearTimeout(timer)
  },
  nextTurn(callback) {
    // Immediates have their turn after the poll for events, in which sockets are read.
    const immediate = setImmediate(callback)
    return () => clearImmediate(immediate)
  },
}

/** Full jitter: a random part of the exponential delay (AWS architecture blog, "Exponential Backoff And Jitter"). */
export function backoffMs(attempt: number, minMs: number, maxMs: number, random: Random): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(attempt, 30))
  return minMs / 2 + random() * (ceiling - minMs / 2)
}

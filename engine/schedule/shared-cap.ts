/**
 * A bound that hosts of several units share: connections to one address, what goes through one gateway, tokens of the
 * whole crawl. A host whose turn has come and that finds it full waits here, outside every heap; when there is room, as
 * many as there is room for are put back, first come first served (workbench.ts). Pure state; times are given by the
 * caller. Main thread.
 *
 * Invariant: a host waits at one cap at most, and then lies in no lane: `host.waitsAt` and `waiting` say the same.
 */
import type { Host } from './host.ts'

export interface CapRule {
  /** How many more may start now, of `inFlight` under way; 0 or less: none. */
  readonly room: (inFlight: number, nowMs: number) => number
  /** When there may be room though nothing ends (monotonic); absent, or infinite: never. */
  readonly roomAtMs?: (nowMs: number) => number
  /** Whether a host that waits here still has to; absent: as long as it has work. */
  readonly isFor?: (host: Host) => boolean
}

export class SharedCap {
  readonly name: string
  /** Requests under way, robots.txt included. */
  inFlight = 0
  /** Hosts that wait for room, the longest waiting first. */
  readonly waiting = new Set<Host>()
  /** Hosts in memory that it counts for. */
  hostsCount = 0
  readonly #rule: CapRule

  constructor(name: string, rule: CapRule) {
    this.name = name
    this.#rule = rule
  }

  room(nowMs: number): number {
    return this.#rule.room(this.inFlight, nowMs)
  }

  isFor(host: Host): boolean {
    return this.#rule.isFor?.(host) ?? true
  }

  roomAtMs(nowMs: number): number {
    return this.#rule.roomAtMs?.(nowMs) ?? Number.POSITIVE_INFINITY
  }
}

/** Caps that many hosts share by name; one lives as long as a host in memory that it counts for. */
export class SharedCaps {
  readonly #caps = new Map<string, SharedCap>()
  readonly #rule: CapRule

  constructor(rule: CapRule) {
    this.#rule = rule
  }

  join(name: string): SharedCap {
    let cap = this.#caps.get(name)
    if (cap === undefined) this.#caps.set(name, cap = new SharedCap(name, this.#rule))
    cap.hostsCount += 1
    return cap
  }

  /** A host is forgotten; a cap that is none of these is left alone. */
  leave(cap: SharedCap): void {
    if (this.#caps.get(cap.name) !== cap) return
    cap.hostsCount -= 1
    if (cap.hostsCount === 0) this.#caps.delete(cap.name)
  }
}

/**
 * The hosts in memory and where each of them lies: in a lane of its unit when it could start, among the idle ones when
 * there is nothing to do, nowhere while it waits for something else. Main thread; pure state but for the clock.
 *
 *     hosts   by name; each in at most one heap:
 *       turns   of lanes, for those that could start now or later (turns.ts)
 *       idle    by the end of their clocks; then they are forgotten
 *
 * Invariant: `settle` was called after every change of a host, so a host lies where its state says.
 */
import type { Clock } from '../core/clock.ts'
import { Heap } from './heap.ts'
import { canStart, clocksUntilMs, hasWork, isIdle, isLaterNext, Lane, Unit, type Host } from './host.ts'
import { Turns } from './turns.ts'

export class Workbench {
  readonly #clock: Clock
  readonly #onForget: (host: Host) => void
  readonly #hosts = new Map<string, Host>()
  readonly #units = new Map<string, Unit>()
  readonly #turns = new Turns()
  /** Hosts with work, now or later, whether they may start or not. */
  readonly #working = new Set<Host>()
  readonly #idle = new Heap<Host>((a, b) => a.forgetAtMs < b.forgetAtMs)

  /** `onForget` is told of a host before it is forgotten. */
  constructor(clock: Clock, onForget: (host: Host) => void) {
    this.#clock = clock
    this.#onForget = onForget
  }

  get hosts(): ReadonlyMap<string, Host> {
    return this.#hosts
  }

  get working(): ReadonlySet<Host> {
    return this.#working
  }

  /** The host whose turn it is now. */
  next(): Host | undefined {
    return this.#turns.next(this.#clock.nowMs())?.peek()
  }

  /** When `next` may have another answer; infinity when that is not a matter of time. */
  get nextAtMs(): number {
    return this.#turns.nextAtMs
  }

  /** When a host may be forgotten, which makes room for another; infinity when none is idle. */
  get roomAtMs(): number {
    return this.#idle.peek()?.forgetAtMs ?? Number.POSITIVE_INFINITY
  }

  /** The unit of this name, for a host that joins it. */
  join(name: string): Unit {
    let unit = this.#units.get(name)
    if (unit === undefined) this.#units.set(name, unit = new Unit(name))
    unit.hostsCount += 1
    return unit
  }

  add(host: Host): void {
    this.#hosts.set(host.name, host)
    this.settle(host)
  }

  /** Puts host and unit where their state says they belong. Called after every change. */
  settle(host: Host): void {
    const { unit } = host
    if (hasWork(host)) this.#working.add(host)
    else this.#working.delete(host)
    if (isIdle(host)) host.forgetAtMs = clocksUntilMs(host)
    this.#move(host, this.#placeOf(host))
    this.#turns.settle(unit)
  }

  #placeOf(host: Host): Heap<Host> | undefined {
    if (isIdle(host)) return this.#idle
    if (!canStart(host)) return undefined
    return isLaterNext(host) ? (host.unit.later ??= new Lane(host.unit)) : host.unit.first
  }

  #move(host: Host, place: Heap<Host> | undefined): void {
    if (host.place !== place) host.place?.delete(host)
    host.place = place
    place?.set(host)
  }

  forgetIdle(): void {
    const nowMs = this.#clock.nowMs()
    for (let host = this.#idle.peek(); host !== undefined && host.forgetAtMs <= nowMs; host = this.#idle.peek()) {
      // Another host of its unit may have started since.
      if (clocksUntilMs(host) > nowMs) this.settle(host)
      else this.#forget(host)
    }
  }

  #forget(host: Host): void {
    this.#onForget(host)
    this.#move(host, undefined)
    this.#hosts.delete(host.name)
    host.unit.hostsCount -= 1
    if (host.unit.hostsCount === 0) this.#units.delete(host.unit.name)
  }
}

/**
 * The hosts in memory and where each of them lies: in a lane of its unit when it could start, among the idle ones when
 * there is nothing to do, nowhere while it waits for something else. Main thread; pure state but for the clock.
 *
 *     hosts   by name; each in at most one heap:
 *       turns   of lanes, for those that could start now or later (turns.ts)
 *       idle    by the end of their clocks; then they are forgotten
 *     returns   of hosts in a later lane, by when a deferred row of theirs falls due: that one is of the first class
 *     shared caps   hosts whose turn came while a bound was full that they share with others (shared-cap.ts)
 *
 * Invariant: `settle` was called after every change of a host, so a host lies where its state says.
 */
import type { Clock } from '../core/clock.ts'
import { Heap, type HeapItem } from './heap.ts'
import { canStart, clocksUntilMs, hasWork, isIdle, isLaterNext, Lane, laneReadyAtMs, Unit, type Host } from './host.ts'
import type { SharedCap } from './shared-cap.ts'
import { Turns } from './turns.ts'

/** A host lies in one heap already. */
interface Return extends HeapItem {
  readonly host: Host
  readonly atMs: number
}

export class Workbench {
  readonly #clock: Clock
  readonly #onForget: (host: Host) => void
  readonly #onReturn: (host: Host) => void
  readonly #hosts = new Map<string, Host>()
  readonly #units = new Map<string, Unit>()
  readonly #turns = new Turns()
  /** Hosts with work, now or later, whether they may start or not. */
  readonly #working = new Set<Host>()
  readonly #idle = new Heap<Host>((a, b) => a.forgetAtMs < b.forgetAtMs)
  readonly #returns = new Heap<Return>((a, b) => a.atMs < b.atMs)
  readonly #returnOf = new Map<Host, Return>()
  /** Caps where hosts wait for a moment, and those that had room for more hosts than were put back. */
  readonly #timed = new Set<SharedCap>()
  readonly #roomy = new Set<SharedCap>()

  /** `onForget` is told of a host before it is forgotten; `onReturn` of one that has a row of the first class again, which it must then know. */
  constructor(clock: Clock, onForget: (host: Host) => void, onReturn: (host: Host) => void) {
    this.#clock = clock
    this.#onForget = onForget
    this.#onReturn = onReturn
  }

  get hosts(): ReadonlyMap<string, Host> {
    return this.#hosts
  }

  get working(): ReadonlySet<Host> {
    return this.#working
  }

  /** The host whose turn it is now. */
  next(): Host | undefined {
    const nowMs = this.#clock.nowMs()
    for (let due = this.#returns.peek(); due !== undefined && due.atMs <= nowMs; due = this.#returns.peek()) this.#onReturn(due.host)
    for (const cap of this.#timed) if (cap.roomAtMs(nowMs) <= nowMs) this.wake(cap)
    for (;;) {
      const lane = this.#turns.next(nowMs)
      const host = lane?.peek()
      const full = host?.ended === undefined ? host?.caps?.find((cap) => cap.room(nowMs) <= 0) : undefined
      if (host !== undefined && full !== undefined) {
        this.waitAt(host, full)
        continue
      }
      // Hosts that were put back and did not start after all left room that others wait for, perhaps of a better class.
      const isLast = lane === undefined || lane === lane.unit.later
      if (!isLast || !this.#wakeMore()) return host
    }
  }

  /** The host lies in no lane until the cap lets it go. */
  waitAt(host: Host, cap: SharedCap): void {
    host.waitsAt = cap
    cap.waiting.add(host)
    if (cap.roomAtMs(this.#clock.nowMs()) < Number.POSITIVE_INFINITY) this.#timed.add(cap)
    this.settle(host)
  }

  /** Something under the cap has ended, or it has risen: as many hosts as there is room for may have their turn. */
  wake(cap: SharedCap): void {
    const nowMs = this.#clock.nowMs()
    let room = cap.room(nowMs)
    for (const host of cap.waiting) {
      if (room <= 0) break
      this.#leave(host, cap)
      this.settle(host)
      // Those that wait for a clock of their own will find out when it has run out.
      if (host.place instanceof Lane && laneReadyAtMs(host.place) <= nowMs) room -= 1
    }
    if (cap.waiting.size === 0) this.#timed.delete(cap)
    else this.#roomy.add(cap)
  }

  #leave(host: Host, cap: SharedCap): void {
    cap.waiting.delete(host)
    host.waitsAt = undefined
  }

  #wakeMore(): boolean {
    const nowMs = this.#clock.nowMs()
    let hasWoken = false
    for (const cap of this.#roomy) {
      this.#roomy.delete(cap)
      if (cap.waiting.size === 0 || cap.room(nowMs) <= 0) continue
      hasWoken = true
      this.wake(cap)
    }
    return hasWoken
  }

  /** When `next` may have another answer; infinity when that is not a matter of time. */
  get nextAtMs(): number {
    let atMs = Math.min(this.#turns.nextAtMs, this.#returns.peek()?.atMs ?? Number.POSITIVE_INFINITY)
    for (const cap of this.#timed) atMs = Math.min(atMs, cap.roomAtMs(this.#clock.nowMs()))
    return atMs
  }

  /** When a host may be forgotten, which makes room for another; infinity when none is idle. */
  get roomAtMs(): number {
    return this.#idle.peek()?.forgetAtMs ?? Number.POSITIVE_INFINITY
  }

  /** The unit of this name, for a host that joins it with a ceiling of its own. */
  join(name: string, ceiling?: number): Unit {
    let unit = this.#units.get(name)
    if (unit === undefined) this.#units.set(name, unit = new Unit(name, ceiling))
    else if (ceiling !== undefined) unit.ceiling = Math.max(unit.ceiling, ceiling)
    unit.hostsCount += 1
    return unit
  }

  add(host: Host): void {
    this.#hosts.set(host.name, host)
    this.settle(host)
  }

  /** Puts host and unit where their state says they belong. Called after every change. */
  settle(host: Host): void {
    const { unit, waitsAt } = host
    if (waitsAt !== undefined && (host.ended !== undefined || !hasWork(host) || !waitsAt.isFor(host))) this.#leave(host, waitsAt)
    if (hasWork(host)) this.#working.add(host)
    else this.#working.delete(host)
    if (isIdle(host)) host.forgetAtMs = clocksUntilMs(host)
    const place = this.#placeOf(host)
    this.#move(host, place)
    this.#awaitReturn(host, place !== undefined && place === unit.later ? host.dueAtMs : Number.POSITIVE_INFINITY)
    this.#turns.settle(unit)
  }

  #awaitReturn(host: Host, atMs: number): void {
    const known = this.#returnOf.get(host)
    if (known?.atMs === atMs || (known === undefined && atMs === Number.POSITIVE_INFINITY)) return
    if (known !== undefined) this.#returns.delete(known)
    this.#returnOf.delete(host)
    if (atMs === Number.POSITIVE_INFINITY) return
    const item = { host, atMs, heapIndex: -1 }
    this.#returnOf.set(host, item)
    this.#returns.set(item)
  }

  #placeOf(host: Host): Heap<Host> | undefined {
    if (isIdle(host)) return this.#idle
    if (host.waitsAt !== undefined || !canStart(host)) return undefined
    return isLaterNext(host) ? (host.unit.later ??= new Lane(host.unit)) : host.unit.first
  }

  #move(host: Host, place: Heap<Host> | undefined): void {
    if (host.place !== place) {
      host.place?.delete(host)
      host.placedAtMs = this.#clock.nowMs()
    }
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

/**
 * While the crawl sheds (flow/shed.ts), hosts whose best URL is of the worst step back, before it costs a fetch: others
 * have their turn, and what has stepped back comes again when nobody else can start, or after a while in any case. Inside
 * a host the best URL comes first, so where its best steps back nothing better waits behind it. No row of the queue is
 * changed for it and no attempt charged: a crawl that recovers goes on as if nothing had been.
 *
 *     scheduler.candidate -> is it of the worst? -> [ cap: hosts that have stepped back ] -> put back: room, or their time
 *
 * Invariants: nothing steps back while the claims are free, so shedding leaves no room empty; a host that was passed over
 * has its turn within `shedHoldMsMax`; a second sees at most `shedTurnsMax` of it. Main thread.
 */
import type { Clock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import type { QueuedUrl } from '../core/types.ts'
import type { OwnStage, Shed } from '../flow/shed.ts'
import type { Candidate, Host } from './host.ts'
import type { Scheduler } from './scheduler.ts'
import { SharedCap } from './shared-cap.ts'

export interface StepBackOptions {
  readonly scheduler: Pick<Scheduler, 'candidate' | 'stepBack' | 'wake'>
  readonly shed: Shed
  readonly clock: Clock
  /** A URL was passed over, and another has its turn. */
  readonly onDeferred: (url: QueuedUrl, reason: OwnStage) => void
}

export class StepBack {
  readonly #is: StepBackOptions
  readonly #cap: SharedCap
  /** Hosts that stepped back, in the order in which they did, and when their time is over (monotonic); some have left since. */
  readonly #held = new Map<Host, number>()
  /** Hosts that were put back for their time: they are not passed over again. */
  readonly #owed = new Set<Host>()
  #room = 0
  #tokens: number = limits.shedTurnsMax
  #tokensAtMs: number

  constructor(options: StepBackOptions) {
    this.#is = options
    this.#tokensAtMs = options.clock.nowMs()
    // A host without a hand has to look again: something better has come.
    this.#cap = new SharedCap('shed', { room: () => this.#room, isFor: ({ claimed }) => claimed.length > 0 })
  }

  /** Hosts that have stepped back. */
  get size(): number {
    return this.#cap.waiting.size
  }

  /** The URL whose turn it is now, as the scheduler has it, but for those that step back. */
  next(): Candidate | undefined {
    const { scheduler, shed } = this.#is
    this.#putBackDue()
    const reason = shed.heldBy
    const passed: Candidate[] = []
    let candidate = scheduler.candidate()
    if (reason !== undefined) {
      while (candidate !== undefined && this.#stepsBack(candidate)) {
        passed.push(candidate)
        candidate = scheduler.candidate()
      }
    }
    if (this.size > 0 && (candidate === undefined || candidate.url.isLater === true)) {
      this.#putBack(this.size)
      candidate = scheduler.candidate()
    }
    for (const { host, url } of passed) if (host.waitsAt === this.#cap) this.#is.onDeferred(url, reason!)
    if (candidate !== undefined) shed.claimed(candidate.url.priority)
    return candidate
  }

  #stepsBack(candidate: Candidate): boolean {
    const { clock, scheduler, shed } = this.#is
    const { host, url } = candidate
    // The later class waits for the first in any case, and what ends without a fetch costs none.
    if (this.#owed.delete(host) || host.ended !== undefined || url.isLater === true || !shed.isWorst(url.priority)) return false
    if (this.size >= limits.shedHostsMax || !this.#takeToken()) return false
    shed.claimed(url.priority)
    this.#held.delete(host)
    this.#held.set(host, clock.nowMs() + limits.shedHoldMsMax)
    scheduler.stepBack(host, this.#cap)
    return true
  }

  #takeToken(): boolean {
    const nowMs = this.#is.clock.nowMs()
    this.#tokens = Math.min(limits.shedTurnsMax, this.#tokens + (nowMs - this.#tokensAtMs) * limits.shedTurnsMax / 1_000)
    this.#tokensAtMs = nowMs
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  /** Those whose time is over, and those that have left the cap by themselves: their work has ended, or they were excluded. */
  #putBackDue(): void {
    const nowMs = this.#is.clock.nowMs()
    let due = 0
    for (const [host, untilMs] of this.#held) {
      if (host.waitsAt === this.#cap && untilMs > nowMs) break
      this.#held.delete(host)
      if (host.waitsAt !== this.#cap) continue
      this.#owed.add(host)
      due += 1
    }
    if (due > 0) this.#putBack(due)
    // Of hosts that were forgotten before their turn came.
    for (const host of this.#owed) {
      if (this.#owed.size <= limits.shedHostsMax) break
      this.#owed.delete(host)
    }
  }

  #putBack(count: number): void {
    this.#room = count
    this.#is.scheduler.wake(this.#cap)
    this.#room = 0
  }
}

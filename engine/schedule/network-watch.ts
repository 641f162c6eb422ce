/**
 * Whose failure it is when a look-up, a connection or an answer fails: the host's, or that of the network here. One failure
 * cannot tell; all the others can. A failure is held, its lease with it, until one of these says so:
 *
 *     an answer of any host                        the network is there: all that is held is the hosts'
 *     most hosts with something under way failed,  the network is down: nothing of it is charged, everything pauses
 *       or the crawl is silent as it never was
 *     neither within the hold                      the hosts'
 *
 * While the network is down one probe at a time goes out, to another host each time, in growing waits; the first answer ends
 * it. What was under way meanwhile and fails later is not charged either. Only hosts that answered this process before prove
 * anything by falling silent: a list of dead names, or the dead ones that are left at the end of a crawl, are no outage
 * here. (Some words of the system can only mean the network here, see fetch/failure-codes.ts; they count from any host.)
 *
 * Invariants: every held failure is settled once, at the latest after `networkSilenceMsMax` and a hold; there is one timer for
 * all of them. What is held is bounded by what may be under way. Main thread; touches no host but its
 * `hasAnswered`.
 */
import { backoffMs, type Clock, type Random } from '../core/clock.ts'
import { limits } from '../core/limits.ts'

/** As much of a host as its network is about. */
export interface Peer {
  /** It answered this process before. */
  hasAnswered: boolean
}

/** To whom a failure is charged: to the host or its URL as the failure table says, or to nobody. */
export type Blame = 'host' | 'network'

export interface NetworkFailure<P> {
  readonly host: P
  /** When its request began. */
  readonly startedAtMs: number
  /** It can only be the network here. */
  readonly isLocal: boolean
  /** When a connection was made for it, or the head of its answer came, if one did: the network was there at that moment. */
  readonly reachedAtMs?: number
}

interface Held<P> extends NetworkFailure<P> {
  readonly sinceMs: number
  readonly settle: (blame: Blame) => void
}

export interface NetworkWatchOptions {
  readonly clock: Clock
  readonly random: Random
  /** Hosts that have work. */
  readonly hostsWorking: () => number
  /** The network went down, or is back; or a probe may go out. */
  readonly onChange: () => void
}

/** What one more gap between answers weighs in their mean. */
const GAP_WEIGHT = 1 / 8

export class NetworkWatch<P extends Peer> {
  readonly #is: NetworkWatchOptions
  /** Requests under way, by host. */
  readonly #underWay = new Map<P, number>()
  /** The longest held first; how many of each host; and the hosts among them whose silence proves something. */
  readonly #held = new Set<Held<P>>()
  readonly #failed = new Map<P, number>()
  readonly #proven = new Set<P>()
  #cancelTimer: (() => void) | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  /** Moments since which there was no answer, and how far apart answers were. */
  #answeredAtMs: number
  #gapMs = 0
  #downAtMs: number | undefined
  #upAtMs = Number.NEGATIVE_INFINITY
  #isMistaken = false
  #downs = 0
  #downMs = 0
  #probe: P | undefined
  #probes = 0
  #probeAtMs = 0

  constructor(options: NetworkWatchOptions) {
    this.#is = options
    this.#answeredAtMs = options.clock.nowMs()
  }

  get isDown(): boolean {
    return this.#downAtMs !== undefined
  }

  /** How often it was down, and for how long in all. */
  get downs(): number {
    return this.#downs
  }

  get downMs(): number {
    return this.#downMs + this.downForMs
  }

  /** Since when it is down, as a time; 0 while it is not. */
  get downForMs(): number {
    return this.#downAtMs === undefined ? 0 : this.#is.clock.nowMs() - this.#downAtMs
  }

  /** Failures that wait to be charged. */
  get heldCount(): number {
    return this.#held.size
  }

  /** While the network is down: one request may go out now, to see. */
  get wantsProbe(): boolean {
    return this.isDown && this.#probe === undefined && this.#is.clock.nowMs() >= this.#probeAtMs
  }

  /** When the next probe may go out; infinity while one is under way, whose end will tell. */
  get probeAtMs(): number {
    return this.#probe === undefined ? this.#probeAtMs : Number.POSITIVE_INFINITY
  }

  /** A request of the host begins; while the network is down it is the probe. */
  begun(host: P): void {
    if (this.#underWay.size === 0) this.#answeredAtMs = Math.max(this.#answeredAtMs, this.#is.clock.nowMs() - this.#gapMs)
    this.#underWay.set(host, (this.#underWay.get(host) ?? 0) + 1)
    if (this.isDown) this.#probe = host
  }

  /** It has ended, and what it ended with was told and settled. Called once for each `begun`. */
  ended(host: P): void {
    const left = this.#underWay.get(host)! - 1
    if (left > 0) this.#underWay.set(host, left)
    else this.#underWay.delete(host)
    if (this.#probe === host) {
      this.#probe = undefined
      this.#probes += 1
      this.#awaitProbe()
    }
    if (this.#held.size > 0) this.#decide()
  }

  /** The host answered, whatever it said; without one, something that is not a host of the crawl did. */
  answered(host?: P): void {
    const nowMs = this.#is.clock.nowMs()
    if (host !== undefined) host.hasAnswered = true
    if (this.#downAtMs === undefined) this.#gapMs += (nowMs - this.#answeredAtMs - this.#gapMs) * GAP_WEIGHT
    this.#answeredAtMs = nowMs
    this.#isMistaken = false
    this.#comeUp()
    this.#settleAll('host')
  }

  #comeUp(): void {
    if (this.#downAtMs === undefined) return
    this.#downMs += this.downForMs
    this.#downAtMs = undefined
    this.#upAtMs = this.#is.clock.nowMs()
    this.#is.onChange()
  }

  /** A request failed as it does when a network is away. `settle` is called once, now or later. */
  failed(failure: NetworkFailure<P>, settle: (blame: Blame) => void): void {
    const isFew = this.#is.hostsWorking() < limits.networkHostsMin
    if (this.#hasReached(failure)) settle('host')
    else if (this.isDown || failure.startedAtMs < this.#upAtMs) settle('network')
    else if (isFew && failure.isLocal) {
      this.#goDown()
      settle('network')
    } else if (isFew) settle('host')
    else {
      this.#hold({ ...failure, sinceMs: this.#is.clock.nowMs(), settle })
      this.#decide()
    }
  }

  /** A connection that was made while the network was thought to be away: it was not, and until the next answer such failures are the hosts'. */
  #hasReached({ reachedAtMs }: NetworkFailure<P>): boolean {
    if (reachedAtMs === undefined) return false
    this.#answeredAtMs = Math.max(this.#answeredAtMs, reachedAtMs)
    if (this.#downAtMs !== undefined && reachedAtMs > this.#downAtMs) {
      this.#isMistaken = true
      this.#comeUp()
    }
    return this.#isMistaken
  }

  #hold(held: Held<P>): void {
    const { host, isLocal } = held
    this.#held.add(held)
    this.#failed.set(host, (this.#failed.get(host) ?? 0) + 1)
    if (isLocal || host.hasAnswered) this.#proven.add(host)
  }

  #letGo(held: Held<P>): void {
    const { host } = held
    this.#held.delete(held)
    const left = this.#failed.get(host)! - 1
    this.#failed.set(host, left)
    if (left > 0) return
    this.#failed.delete(host)
    this.#proven.delete(host)
  }

  /** Nobody waits for what is held any more: its run was aborted. */
  release(): void {
    this.#settleAll('network')
  }

  #decide(): void {
    if (this.isDown) return
    const [nowMs, failed] = [this.#is.clock.nowMs(), this.#failed.size]
    const silenceMs = nowMs - this.#answeredAtMs
    const isSilent = this.#gapMs > 0 && silenceMs >= Math.max(limits.networkHoldMsMax, limits.networkSilenceGapsMin * this.#gapMs)
    const areMost = failed >= limits.networkDownShareMin * this.#underWay.size && silenceMs >= limits.networkQuietGapsMin * this.#gapMs
    if (this.#proven.size >= limits.networkHostsMin && (isSilent || areMost)) return this.#goDown()
    // In a silence what else is under way will tell: it is waited for.
    const [oldest] = this.#held
    const isOpen = isSilent && failed < this.#underWay.size && oldest !== undefined && nowMs - oldest.sinceMs < limits.networkSilenceMsMax
    const over = isOpen ? [] : this.#takeHeldUntil(nowMs)
    this.#setTimer(isOpen ? nowMs + limits.networkHoldMsMax : undefined)
    for (const { settle } of over) settle('host')
  }

  /** Those whose hold is over by then: by the same sum as the timer that sees to it, or rounding keeps it from what it fired for. */
  #takeHeldUntil(atMs: number): readonly Held<P>[] {
    const taken: Held<P>[] = []
    for (const held of this.#held) {
      if (held.sinceMs + limits.networkHoldMsMax > atMs) break
      this.#letGo(held)
      taken.push(held)
    }
    return taken
  }

  #goDown(): void {
    this.#downAtMs = this.#is.clock.nowMs()
    this.#downs += 1
    this.#probes = 0
    this.#awaitProbe()
    this.#is.onChange()
    this.#settleAll('network')
  }

  #awaitProbe(): void {
    const { clock, random } = this.#is
    this.#probeAtMs = clock.nowMs() + backoffMs(this.#probes, limits.networkProbeMsMin, limits.networkProbeMsMax, random)
  }

  /** Whoever hears of it may tell of more: what is settled is held no longer. */
  #settleAll(blame: Blame): void {
    if (this.#held.size === 0) return
    const all = this.#takeHeldUntil(Number.POSITIVE_INFINITY)
    this.#setTimer()
    for (const { settle } of all) settle(blame)
  }

  /** Decides again at that moment, or at the end of the longest hold; a timer that is set for sooner will see to it. */
  #setTimer(atMs?: number): void {
    const { clock } = this.#is
    const [oldest] = this.#held
    const dueAtMs = oldest === undefined ? Number.POSITIVE_INFINITY : atMs ?? oldest.sinceMs + limits.networkHoldMsMax
    if (oldest !== undefined && this.#timerAtMs <= dueAtMs) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAtMs = dueAtMs
    if (oldest === undefined) return
    this.#cancelTimer = clock.after(dueAtMs - clock.nowMs(), () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.#decide()
    })
  }
}

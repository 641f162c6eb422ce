/**
 * How many requests a host (or a gateway) is given at once. Additive increase, multiplicative decrease (Chiu and Jain,
 * 1989), as TCP does: a success adds 1/limit, so that a full round of successes adds one; a throttle halves the limit,
 * once per congestion event: what was under way when it fell says nothing new about it.
 *
 *     limit    1 .. known      climbs; held while latency is on trial (latency-watch.ts)
 *              known           stays for `patience` full successes, then probes:
 *              known + 1       refused: back to `known`, patience doubles. Held for a while: `known` is forgotten, climbs
 *     pace     0, then `limits.paceMsMin` x 1, 2, 4 .. `limits.paceMsMax`: below one request at a time the limit is a wait
 *              before each start. It doubles with a throttle at the floor, and is halved after `patience` successes
 *
 * The memory (`known`) is there because the bare law goes on probing into refusals. What is refused is not the limit but
 * what was under way, and a success says nothing about a limit that was not half used (RFC 7661). A refused probe falls
 * back to what is known to be good instead of to its half: the half was left again at once, and cost a fifth of the time.
 * The memory ages: patience ends at `limits.limiterPatienceMax` successes, or after `limits.limiterMemoryMs`.
 *
 * Latency is congestion, too, once a rise against the host's own baseline has lasted for a round. If halving the limit
 * does not ease it, our load is not the cause; the limit climbs again, and nothing is remembered. At the floor latency
 * changes nothing: one request at a time slows down by itself.
 *
 * A time-out, a reset or a 5xx may be its page's own fault. With 3 % of pages broken at random, each taken for a throttle, the
 * limit fell to 2, a pace held for 44 % of the time, and 14 pages a second came; as strains, which count when two come close
 * together, the limit is 19 and 163 come (at 32 at once: 300).
 *
 * Measured by bench/limiter.ts, 20,000 requests on virtual time, medians of 20 seeds. Servers that refuse above 1, 3, 8 and
 * 20 at once: after 300 requests 0.2 % refused, within a fifth below the server's limit for 99.6 % of the time or more (the
 * bare law: 33, 11, 2.7 and 0.6 % refused, and in band a third of the time; with a refused probe that halves, 20 is in band
 * for 79 %). From 3 at once to 8 or 20 and back: the same, after 650 requests. Latency that rises above 4 at once and has
 * doubled at 8: held at 8.7. Log-normal latency, sigma 0.7 and 1: 32 of 32, as without the rule. Where a rate
 * is limited and not a number, a pace is a blunt tool: of 1.5 a second 11 % are refused, of 5 a second 13 %, of 30 a second 3 %.
 *
 * Invariant: floor <= limit <= ceiling. Pure state, no clock of its own; times and chance are given by the caller, who
 * counts `inFlight`; a request still counts when its end is told here. Main thread.
 */
import type { Random } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import type { Concurrency } from '../core/options.ts'
import { LatencyWatch } from './latency-watch.ts'

/** A request as its limiter knows it from its start on. */
export interface StartedRequest {
  readonly startedAtMs: number
  /** Requests under way at its start, itself among them. */
  readonly inFlight: number
}

/** What a limiter may be told of its past; what is missing or makes no sense is as at first. */
export interface LimiterMemory {
  readonly limit?: number | undefined
  /** The most at once that was not refused; undefined when nothing was refused. */
  readonly known?: number | undefined
  readonly patience?: number | undefined
  readonly paceMs?: number | undefined
}

export class Limiter {
  #bounds: Concurrency
  #limit: number
  #known = Number.POSITIVE_INFINITY
  #patience: number = limits.limiterPatienceMin
  #paceMs = 0
  /** Successes since the last step, as far as they count for the next one. */
  #successes = 0
  /** Strained answers, each of which a good one makes an eighth smaller. */
  #strain = 0
  /** What the last step up was, until it is refused or has held. */
  #probe: 'limit' | 'pace' | undefined
  #decreasedAtMs = Number.NEGATIVE_INFINITY
  #heldSinceMs: number | undefined
  /** Made with the first latency: most hosts are asked for a few pages only. */
  #latency: LatencyWatch | undefined
  /** What was under way when latency had risen, while that is on trial. */
  #suspect = 0
  /** Requests under way. */
  inFlight = 0

  constructor(bounds: Concurrency, memory: LimiterMemory = {}) {
    this.#bounds = bounds
    this.#limit = within(memory.limit, bounds.floor, bounds.ceiling) ?? bounds.start
    const { known = Number.NaN, patience, paceMs = 0 } = memory
    if (known >= this.#limit) this.#known = Math.floor(known)
    if (paceMs > 0 && this.limit === bounds.floor) this.#paceMs = within(paceMs, limits.paceMsMin, limits.paceMsMax)!
    this.#patience = within(patience, this.#patienceMin, limits.limiterPatienceMax) ?? this.#patienceMin
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  get isFull(): boolean {
    return this.inFlight >= this.limit
  }

  /** Least time from a start to the next one, on top of the host's delay; 0 when the limit alone is slow enough. */
  get paceMs(): number {
    return this.#paceMs
  }

  /** The pace of one start: up to a tenth longer, so that hosts that were slowed together do not stay together. */
  paceWaitMs(random: Random): number {
    return this.#paceMs * (1 + random() / 10)
  }

  /** What is worth keeping for a later limiter. A probe is not: nothing says that it would have held. */
  memory(): LimiterMemory & { readonly limit: number } {
    const isKnown = this.#known < Number.POSITIVE_INFINITY
    return {
      limit: Math.min(this.limit, this.#known), known: isKnown ? this.#known : undefined,
      patience: isKnown || this.#paceMs > 0 ? this.#patience : undefined, paceMs: this.#paceMs || undefined,
    }
  }

  /** The operator's word: the limit moves within the new bounds from now on. */
  setBounds(bounds: Concurrency): void {
    this.#bounds = bounds
    this.#limit = Math.min(bounds.ceiling, Math.max(bounds.floor, this.#limit))
    this.#known = Math.max(bounds.floor, this.#known)
    if (this.#probe === 'limit' && this.#limit <= this.#known) this.#probe = undefined
  }

  /** `latencyMs`: to the first byte, without time that we made it wait; undefined when our own loop was too busy to tell. */
  success(request: StartedRequest, nowMs: number, latencyMs?: number): void {
    this.#strain *= 7 / 8
    if (request.startedAtMs <= this.#decreasedAtMs) return
    if (latencyMs !== undefined && latencyMs >= 0 && this.#heed(latencyMs, request, nowMs)) return
    if (this.#latency?.isTrying === true) return
    if (this.#probe !== undefined) this.#confirm(request, this.#probe)
    else if (this.#paceMs === 0 && this.#limit < this.#top) this.#climb(request)
    else if (this.#isPatient(request, nowMs)) this.#step()
  }

  /**
   * The host refused the request, or did not answer it in time. `delayMs`: the delay that the host has anyway, where a
   * pace begins. Answers whether this was a new congestion event: a request that started after the last decrease.
   */
  throttle(request: StartedRequest, nowMs: number, delayMs = 0): boolean {
    if (request.startedAtMs <= this.#decreasedAtMs) return false
    this.#latency?.restart(false)
    if (this.#probe === 'limit') this.#fallBack()
    else if (this.limit === this.#bounds.floor) this.#slowDown(delayMs)
    else this.#halve(this.#underWay(request))
    this.#decreased(nowMs)
    return true
  }

  /**
   * An answer that may be the fault of its page alone, or the host's strain: one says nothing, two within three answers do.
   * It never asks for a pace: one request at a time is slow enough for what is merely slow or broken.
   */
  strain(request: StartedRequest, nowMs: number): boolean {
    this.#strain += 1
    if (this.#strain < limits.limiterStrainMin || this.limit === this.#bounds.floor) return false
    this.#strain = 0
    return this.throttle(request, nowMs)
  }

  get #top(): number {
    return Math.min(this.#known, this.#bounds.ceiling)
  }

  /** How many the server may have seen: what came between start and end may have come before it. Too many cost a probe, too few a climb. */
  #underWay(request: StartedRequest): number {
    return Math.max(request.inFlight, this.inFlight)
  }

  #climb(request: StartedRequest): void {
    if (2 * request.inFlight >= this.limit) this.#limit = Math.min(this.#top, this.#limit + 1 / this.limit)
  }

  /** The limit, or the pace, has held for so many full successes, or for so long, that more may be tried. */
  #isPatient(request: StartedRequest, nowMs: number): boolean {
    if (request.inFlight >= this.limit) this.#successes += 1
    // What an earlier limiter knew ages from the first success on.
    this.#heldSinceMs ??= nowMs
    return this.#successes >= this.#patience || (this.#successes > 0 && nowMs - this.#heldSinceMs >= limits.limiterMemoryMs)
  }

  /** One step up: a shorter pace, or one more at once. */
  #step(): void {
    if (this.#paceMs > 0) {
      this.#probe = 'pace'
      this.#paceMs = this.#paceMs >= 2 * limits.paceMsMin ? this.#paceMs / 2 : 0
    } else if (this.#limit < this.#bounds.ceiling) {
      this.#probe = 'limit'
      this.#limit = Math.min(this.#bounds.ceiling, this.#known + 1)
    }
    this.#successes = 0
  }

  /** A step up is believed after a number of full successes: a pace after half its patience, a limit after its patience, a round, and once latency could tell. */
  #confirm(request: StartedRequest, probe: 'limit' | 'pace'): void {
    if (request.inFlight < this.limit) return
    this.#successes += 1
    const patience = Math.min(this.#patience, limits.limiterProbeMax)
    if (this.#successes < (probe === 'pace' ? patience / 2 : Math.max(patience, this.limit, limits.limiterProbeMin))) return
    this.#probe = undefined
    this.#successes = 0
    if (probe === 'limit') this.#known = Number.POSITIVE_INFINITY
    if (this.#paceMs === 0) this.#patience = limits.limiterPatienceMin
  }

  get #patienceMin(): number {
    return this.#paceMs > 0 ? 1 : limits.limiterPatienceMin
  }

  #losePatience(): void {
    this.#patience = Math.min(this.#probe === 'pace' ? limits.pacePatienceMax : limits.limiterPatienceMax, 2 * this.#patience)
  }

  /** A probe was refused. */
  #fallBack(): void {
    this.#limit = this.#known
    this.#losePatience()
  }

  #halve(underWay: number): void {
    this.#known = Math.max(this.#bounds.floor, underWay - 1)
    this.#limit = Math.max(this.#bounds.floor, Math.min(this.#limit / 2, this.#known))
    this.#patience = limits.limiterPatienceMin
  }

  #slowDown(delayMs: number): void {
    this.#limit = this.#bounds.floor
    this.#known = this.#bounds.floor
    if (this.#probe === 'pace') this.#losePatience()
    // Refusals without a success between them are an outage, and then one success may be enough.
    else if (this.#paceMs === 0) this.#patience = this.#successes === 0 ? 1 : limits.pacePatienceMax
    this.#paceMs = Math.min(limits.paceMsMax, Math.max(delayMs, limits.paceMsMin, 2 * this.#paceMs))
  }

  #decreased(nowMs: number): void {
    this.#decreasedAtMs = nowMs
    this.#heldSinceMs = nowMs
    this.#successes = 0
    this.#probe = undefined
  }

  /** Answers whether the limit has changed because of latency. */
  #heed(latencyMs: number, request: StartedRequest, nowMs: number): boolean {
    this.#latency ??= new LatencyWatch()
    const verdict = this.#latency.sample(latencyMs, this.limit)
    // Somewhere between the half, which is well, and what was too much.
    if (verdict === 'eased') this.#known = Math.max(this.limit, Math.floor(this.#suspect * 3 / 4))
    if (verdict !== 'risen') return false
    if (this.limit === this.#bounds.floor) {
      this.#latency.accept()
      return false
    }
    const isProbe = this.#probe === 'limit'
    this.#latency.restart(!isProbe)
    if (isProbe) this.#fallBack()
    else {
      this.#suspect = this.#underWay(request)
      this.#limit = Math.max(this.#bounds.floor, this.#limit / 2)
      this.#patience = limits.limiterPatienceMin
    }
    this.#decreased(nowMs)
    return true
  }
}

/** The nearest value in the range; undefined of what is no number. */
function within(value: number | undefined, min: number, max: number): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : Math.min(max, Math.max(min, value))
}

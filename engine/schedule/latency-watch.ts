/**
 * Tells when a host's latency (time to first byte) has risen for good, against its own baseline. Means are taken of
 * logarithms: they do not follow single slow answers, and a rise is a ratio.
 *
 *     fast      mean of the last 32 answers or so
 *     baseline  follows `fast` when it falls: a slow minimum
 *     risen     fast > 2 x baseline, and `limits.latencyRiseMsMin` above it, over 32 answers and a full round, twice
 *
 * A rise may have nothing to do with us. So the caller halves its limit, holds it, and the watch begins a trial: if
 * latency does not follow, our load was not the cause, and what is measured now is the new baseline. So a site that has
 * become slower for good costs one decrease, and the baseline needs no ageing.
 *
 * The caller leaves out what is no latency of the host: refusals and failures, time that we made a fetch wait, answers
 * that began before the last decrease, and all while our own loop is busy. Pure state. Main thread.
 */
import { limits } from '../core/limits.ts'

/** Answers that make a mean; of those that follow each weighs 1/32. */
const ANSWERS = 32
/** Answers that make the first baseline; until twice as many the limit has hardly grown. */
const ANSWERS_FIRST = 16
const RISE = Math.log(2)
/** At half the load a saturated host answers in half the time. When it gains less than a sixth, our load is not the cause. */
const RELIEF = Math.log(6 / 5)

/** `risen` begins a trial when the caller says so; it ends with `eased` or `not eased`. */
export type LatencyVerdict = 'steady' | 'risen' | 'eased' | 'not eased'

export class LatencyWatch {
  #answers = 0
  #fast = 0
  #baseline = Number.POSITIVE_INFINITY
  /** The last mean was above the mark. */
  #isSuspected = false
  /** What `fast` was when the trial began; undefined when there is none. */
  #before: number | undefined

  get isTrying(): boolean {
    return this.#before !== undefined
  }

  /** Takes one answer; `round` of them are a full round at the present limit. */
  sample(latencyMs: number, round: number): LatencyVerdict {
    this.#answers += 1
    this.#fast += (Math.log(Math.max(1, latencyMs)) - this.#fast) / Math.min(this.#answers, ANSWERS)
    const isRound = this.#answers >= Math.max(ANSWERS, round)
    if (this.#before !== undefined) return isRound ? this.#endTrial(this.#before) : 'steady'
    if (this.#answers < ANSWERS_FIRST) return 'steady'
    if (this.#baseline === Number.POSITIVE_INFINITY) this.#baseline = this.#fast
    if (this.#fast < this.#baseline) this.#baseline += (this.#fast - this.#baseline) / ANSWERS
    return isRound ? this.#judge() : 'steady'
  }

  /**
   * A mean that has just passed the mark holds answers from before the rise. So it is taken anew: what a trial is measured
   * against must be the whole rise, or a latency that goes on rising during the trial looks like one that does not ease.
   */
  #judge(): LatencyVerdict {
    const [wasSuspected, hasRisen] = [this.#isSuspected, this.#hasRisen]
    this.#isSuspected = hasRisen && !wasSuspected
    if (this.#isSuspected) this.restart(false)
    return hasRisen && wasSuspected ? 'risen' : 'steady'
  }

  /** The load has changed, and means begin anew; with `isTrial` they decide whether it was the cause of the rise. */
  restart(isTrial: boolean): void {
    this.#before = isTrial ? this.#fast : undefined
    this.#answers = 0
    this.#fast = 0
  }

  /** The present latency is as low as it gets. */
  accept(): void {
    this.#baseline = this.#fast
  }

  get #hasRisen(): boolean {
    return this.#fast - this.#baseline > RISE && Math.exp(this.#fast) - Math.exp(this.#baseline) > limits.latencyRiseMsMin
  }

  #endTrial(before: number): LatencyVerdict {
    this.#before = undefined
    const hasEased = before - this.#fast >= RELIEF
    this.#baseline = hasEased ? Math.min(this.#baseline, this.#fast) : this.#fast
    return hasEased ? 'eased' : 'not eased'
  }
}

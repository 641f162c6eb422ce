/**
 * When the crawl sheds, and what it sheds first. Claims that our own stages have held for longer than `afterMs` are more
 * than we can take: until they have been free for as long again, the worst of what would be claimed gives way to the rest.
 * Pure state: times are given by the caller. Main thread.
 *
 *     level   time held less time free, from 0 to afterMs:  sheds from afterMs on, until it is 0 again
 *
 *                afterMs ........ /------\
 *                               /        \           a crawl that is held now and then never begins,
 *                      0 ______/__________\____      and one that sheds goes on for a while
 *
 *     claims  how many URLs of each priority had their turn lately; all counts are halved now and then, and so forget
 *
 * Invariant: what is shed is worse than the best that had its turn lately, and in the worst quarter of that.
 */
import type { BlockedOn } from '../core/api-types.ts'
import { limits } from '../core/limits.ts'

/** Our own stages: what they hold is no matter of any host. A ceiling that the operator set is meant to hold, and sheds nothing. */
export const ownStages = ['consumer', 'commit', 'page_ring', 'body_bytes', 'memory', 'loop'] as const
export type OwnStage = (typeof ownStages)[number]

/** Time in which claims are neither held nor free: somebody, or something outside, has stopped the crawl. */
const standstills: readonly BlockedOn[] = ['paused', 'suspects', 'disk', 'store_full', 'network_down', 'limit']

function isOwnStage(blockedOn: BlockedOn): blockedOn is OwnStage {
  return (ownStages as readonly BlockedOn[]).includes(blockedOn)
}

const CLAIMS_KEPT = 1_024
const WORST_SHARE = 0.25

export class Shed {
  readonly #afterMs: number
  readonly #claims = new Uint32Array(limits.priorityMax + 1)
  #claimsCount = 0
  #levelMs = 0
  #isShedding = false
  #blockedOn: BlockedOn = 'idle'
  #sinceMs: number | undefined

  /** Infinite: never. */
  constructor(afterMs: number) {
    this.#afterMs = afterMs
  }

  get isShedding(): boolean {
    return this.#isShedding
  }

  /** While it sheds: what holds the claims now. Undefined: they are free, and then nothing is shed. */
  get heldBy(): OwnStage | undefined {
    return this.#isShedding && isOwnStage(this.#blockedOn) ? this.#blockedOn : undefined
  }

  /** What holds the claims from now on. */
  note(blockedOn: BlockedOn, nowMs: number): void {
    const passedMs = this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs
    if (isOwnStage(this.#blockedOn)) this.#levelMs = Math.min(this.#afterMs, this.#levelMs + passedMs)
    else if (!standstills.includes(this.#blockedOn)) this.#levelMs = Math.max(0, this.#levelMs - passedMs)
    if (this.#levelMs >= this.#afterMs && isOwnStage(blockedOn)) this.#isShedding = true
    if (this.#levelMs === 0 && !isOwnStage(blockedOn)) this.#isShedding = false
    this.#blockedOn = blockedOn
    this.#sinceMs = nowMs
  }

  /** A URL has its turn. */
  claimed(priority: number): void {
    this.#claims[priority]! += 1
    this.#claimsCount += 1
    if (this.#claimsCount < CLAIMS_KEPT) return
    this.#claimsCount = 0
    for (let at = 0; at < this.#claims.length; at += 1) {
      this.#claims[at]! >>>= 1
      this.#claimsCount += this.#claims[at]!
    }
  }

  /** Whether a URL of this priority would be shed. */
  isWorst(priority: number): boolean {
    let better = 0
    for (let at = 0; at < priority; at += 1) better += this.#claims[at]!
    const same = this.#claims[priority]!
    return better > 0 && better + same > (1 - WORST_SHARE) * this.#claimsCount
  }
}

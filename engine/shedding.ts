/**
 * Shedding as the crawl loop sees it: whose turn it is, and what became of those that gave way. Only wires. Main thread.
 *
 *     what holds the claims -> [ shed: does it shed? ] -> turns: who steps back -> account: counts, and the shed log
 */
import type { CommitResult } from '../storage/store.ts'
import type { BlockedOn, ShedStats } from './core/api-types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import { Shed } from './flow/shed.ts'
import type { Candidate } from './schedule/host.ts'
import { StepBack } from './schedule/step-back.ts'
import { ShedAccount } from './shed-account.ts'

export class Shedding {
  readonly #clock: CrawlParts['clock']
  readonly #shed: Shed
  readonly #turns: StepBack
  readonly #account: ShedAccount

  constructor({ clock, options, scheduler, shedLog, store }: CrawlParts) {
    this.#clock = clock
    this.#shed = new Shed(options.shedAfterMs)
    this.#account = new ShedAccount({ clock, counters: () => store.counters(), log: shedLog })
    this.#turns = new StepBack({ scheduler, shed: this.#shed, clock, onDeferred: this.#account.deferred })
  }

  /** The URL whose turn it is now. */
  next(): Candidate | undefined {
    return this.#turns.next()
  }

  /** What holds the claims from now on. */
  note(blockedOn: BlockedOn): void {
    this.#shed.note(blockedOn, this.#clock.nowMs())
  }

  /** A commit is stored. */
  stored(result: CommitResult): void {
    this.#account.stored(result)
  }

  get stats(): ShedStats {
    return this.#account.stats(this.#shed.isShedding)
  }
}

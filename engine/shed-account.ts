/**
 * What was shed since the crawl was opened: counted by reason, and written to the log if there is one. Main thread.
 */
import type { CommitResult } from '../storage/store.ts'
import type { ShedStats } from './core/api-types.ts'
import type { Clock } from './core/clock.ts'
import { fullReasons, type Counters, type QueuedUrl } from './core/types.ts'
import { ownStages, type OwnStage } from './flow/shed.ts'
import type { ShedLine, ShedLog } from './shed-log.ts'

export interface ShedAccountOptions {
  readonly clock: Pick<Clock, 'wallMs'>
  /** Those of the store, as the last commit left them. */
  readonly counters: () => Pick<Counters, 'refused'>
  readonly log: ShedLog | undefined
}

function zeros<Key extends string>(keys: readonly Key[]): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>
}

export class ShedAccount {
  readonly #is: ShedAccountOptions
  readonly #deferred = zeros(ownStages)
  readonly #dropped = zeros(fullReasons)
  readonly #refused = zeros(fullReasons)
  #refusedBefore: Counters['refused']

  constructor(options: ShedAccountOptions) {
    this.#is = options
    this.#refusedBefore = options.counters().refused
  }

  /** A host with this URL as its best has stepped back, since a stage holds the claims. */
  readonly deferred = (url: QueuedUrl, reason: OwnStage): void => {
    this.#deferred[reason] += 1
    this.#write({ ...url, reason, action: 'deferred' })
  }

  /** A commit is stored. */
  stored({ shed }: Pick<CommitResult, 'shed'>): void {
    const { refused } = this.#is.counters()
    let unreported = 0
    for (const reason of fullReasons) {
      const now = refused[reason] - this.#refusedBefore[reason]
      this.#refused[reason] += now
      unreported += now
    }
    this.#refusedBefore = refused
    for (const url of shed) {
      if (url.action === 'dropped') this.#dropped[url.reason] += 1
      else unreported -= 1
      this.#write(url)
    }
    this.#is.log?.lose(unreported)
  }

  stats(isShedding: boolean): ShedStats {
    return {
      isShedding, deferred: { ...this.#deferred }, dropped: { ...this.#dropped }, refused: { ...this.#refused },
      ...(this.#is.log && { logLinesLost: this.#is.log.linesLost }),
    }
  }

  #write({ url, host, priority, depth, reason, action }: Omit<ShedLine, 'at'>): void {
    this.#is.log?.write({ at: new Date(this.#is.clock.wallMs()).toISOString(), url, host, priority, depth, reason, action })
  }
}


/**
 * What the command line's process and the engine's process say to each other over the IPC channel.
 *
 *   parent                                   child
 *     start  ------------------------------->  opens the store
 *            <-------------------------------  opened
 *            <-------------------------------  seeded     (once all seeds are in the frontier)
 *            <-------------------------------  stats ...  seed_failed ...
 *     stop   ------------------------------->  aborts fetches, stores what lies in slots
 *     pause  ------------------------------->  starts no URL until resume
 *            <-------------------------------  ended | failed, and the process exits
 */
import type { AddResult, Stats, Summary } from '../core/api-types.ts'
import type { ErrorCode, FailureCode } from '../core/errors.ts'
import type { CrawlOptionsGiven, RunLimitsGiven } from '../core/options.ts'
import type { Counters } from '../core/types.ts'

/** Where this run began: an engine that is started again goes on counting from here. */
export interface RunBaseline {
  readonly pages: number
  readonly wireBytes: number
  /** Time that the run has taken so far. */
  readonly elapsedMs: number
}

export interface SeedSources {
  readonly urls: readonly string[]
  /** Present when more of them come over the child's standard input: what messages call it. */
  readonly stdinName?: string
}

export interface StartMessage {
  readonly type: 'start'
  readonly crawl: CrawlOptionsGiven
  readonly run: RunLimitsGiven
  /** Absent when the seeds are in the frontier already. */
  readonly seeds?: SeedSources
  /** Absent at the first start of the run. */
  readonly baseline?: RunBaseline
  readonly statsEveryMs: number
  readonly verbose: boolean
}

export type ToChild = StartMessage | { readonly type: 'stop' | 'pause' | 'resume' }

export interface OpenedMessage {
  readonly type: 'opened'
  readonly isContinued: boolean
  /** One text for each option that differs from the stored one, such as `delayMs: 1000 -> 0`. */
  readonly changedOptions: readonly string[]
  /** Where it answers, as --listen takes it, with the port that was taken; absent when it was not asked to. */
  readonly listen?: string
  readonly counters: Counters
}

/** URLs that ended without a page, in this process. */
export interface FailureCounts {
  readonly byCode: Readonly<Record<string, number>>
  /** Seeds among them. */
  readonly seeds: number
}

export const noFailures: FailureCounts = { byCode: {}, seeds: 0 }

export type ToParent =
  | OpenedMessage
  | { readonly type: 'seeded'; readonly result: AddResult }
  | { readonly type: 'stats'; readonly stats: Stats; readonly failures: FailureCounts }
  | { readonly type: 'seed_failed'; readonly url: string; readonly code: FailureCode }
  /** Of a page that was set aside: at once, since the next one may end the process before its snapshot. */
  | { readonly type: 'failures'; readonly failures: FailureCounts }
  /** It goes on by itself when there is room. */
  | { readonly type: 'paused'; readonly blockedOn: 'disk' | 'store_full' }
  | { readonly type: 'ended'; readonly summary: Summary; readonly failures: FailureCounts }
  | { readonly type: 'failed'; readonly code: ErrorCode; readonly message: string; readonly stack?: string }

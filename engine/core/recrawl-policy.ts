/**
 * When a URL that has its outcome is fetched again: what may be asked for, and what a policy is told. Types only; the
 * decision is made in engine/schedule/recrawl.ts. Leaf module.
 */
import type { Outcome } from './types.ts'

/** As `--recrawl` says it. `lastmod`: only when somebody says that it was modified, so nothing ever falls due. */
export type RecrawlPolicy =
  | { readonly kind: 'never' }
  | { readonly kind: 'lastmod' }
  | { readonly kind: 'fixed'; readonly intervalMs: number }
  | { readonly kind: 'adaptive'; readonly floorMs: number; readonly ceilingMs: number }

/** What is known of a URL at the end of a fetch. Times are wall clock, milliseconds since 1970. */
export interface RecrawlFacts {
  readonly url: string
  readonly outcome: Outcome
  /** Failure code, see the failure table. */
  readonly code?: string
  /** 0: no server answered. */
  readonly status: number
  readonly fetchedAtMs: number
  /** Whether this is another page than the one that was read before; absent when there was none, or none was read now. */
  readonly isChanged?: boolean
  /** Answers in a row that said that the page is gone (404, 410), this one included; 0 when this one does not. */
  readonly goneTimes: number
  /** The fetch before this one, and the interval that was chosen then, if one was. */
  readonly previous?: { readonly fetchedAtMs: number; readonly status: number; readonly intervalMs?: number }
}

/** Answers the milliseconds from this fetch until the next; undefined: it is never due. Called once for each outcome. */
export type RecrawlFunction = (facts: RecrawlFacts) => number | undefined

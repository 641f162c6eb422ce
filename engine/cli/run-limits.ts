/**
 * The limits of a run whose engine was started again: what the engines before it have used is taken off, so that
 * `--max-pages` is never exceeded. Pure functions.
 */
import type { RunLimits, RunLimitsGiven } from '../core/options.ts'
import type { Counters } from '../core/types.ts'
import type { RunBaseline } from './messages.ts'

/** `counters` are the crawl's as this engine found them. */
export function remainingLimits(limits: RunLimits, counters: Pick<Counters, 'pages' | 'wireBytes'>, baseline: RunBaseline | undefined): RunLimits {
  if (baseline === undefined) return limits
  return {
    maxPages: limits.maxPages - (counters.pages - baseline.pages),
    maxBytes: limits.maxBytes - (counters.wireBytes - baseline.wireBytes),
    maxTimeMs: limits.maxTimeMs - baseline.elapsedMs,
  }
}

/** Nothing may be fetched any more. */
export function isSpent(limits: RunLimits): boolean {
  return limits.maxPages < 1 || limits.maxBytes < 1 || limits.maxTimeMs < 1
}

/** As a run takes them: what has no limit is left out. */
export function givenLimits(limits: RunLimits): RunLimitsGiven {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => Number.isFinite(value)))
}

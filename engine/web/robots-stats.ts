/** What is shown of a stored robots.txt verdict. Pure; no thread of its own. */
import type { RobotsVerdict } from '../../storage/store.ts'
import type { RobotsStats } from '../core/api-types.ts'
import { limits } from '../core/limits.ts'

/** By origin. */
export function robotsStatsOf(verdicts: RobotsVerdict = {}): Readonly<Record<string, RobotsStats>> {
  return Object.fromEntries(Object.entries(verdicts).map(([origin, verdict]) => [origin, statsOf(verdict)]))
}

function statsOf({ rule, lines = '', crawlDelayMs, status, code, sitemaps = [], expiresAtMs }: RobotsVerdict[string]): RobotsStats {
  let chars = 0
  const shown = sitemaps.filter(({ length }) => (chars += length) <= limits.robotsSitemapsShownCharsMax)
  return {
    rule, ...(rule === 'rules' && { rules: lines.split('\n').length - 1 }), ...(crawlDelayMs !== undefined && { crawlDelayMs }),
    ...(status !== undefined && { status }), ...(code !== undefined && { code }),
    ...(sitemaps.length > 0 && { sitemaps: shown }), ...(shown.length < sitemaps.length && { sitemapsMore: sitemaps.length - shown.length }),
    until: new Date(expiresAtMs).toISOString(),
  }
}

/** What `sluice status` shows of a running crawl's pressure: tables of its stages and bounds, and its worst hosts. Pure functions. */
import type { Bound, GatewayStats, HostPressure, Pressure, RobotsStats, StageName, StagePressure } from '../core/api-types.ts'
import { count, exactDuration, percent, plural, shortDuration, shortSize } from './human.ts'
import { blockedOnText } from './progress.ts'

/** The worst hosts that are shown; --json has them all. */
const hostLinesMax = 5

/** A host is named among the worst when its health is below this: the others are well. */
const wellFrom = 0.95

const stageText: Readonly<Record<StageName, string>> = {
  claimed: 'claimed', fetch: 'fetch', received: 'received', slots: 'in slots', done: 'parsed', window: 'consumer', commit: 'commit',
}

/** Columns as wide as their widest cell; the first to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  ').trimEnd())
}

export function stageLines(stages: readonly StagePressure[]): readonly string[] {
  if (stages.length === 0) return []
  const rows = stages.map(({ name, depth, oldestMs, blocked, blockedMs }) => [
    stageText[name], count(depth), depth === 0 ? '' : shortDuration(oldestMs), blocked === 0 ? '' : count(blocked), blocked === 0 ? '' : shortDuration(blockedMs),
  ])
  return table([['stage', 'URLs', 'oldest', 'blocked', 'for'], ...rows])
}

/** A line for each gateway: what it is given, what it said, and until when it rests. */
export function gatewayLines(gateways: readonly GatewayStats[] = []): readonly string[] {
  return gateways.map(({ name, inFlight, limit, throttled, quotaHits, failed, pausedUntil }) => {
    const facts = [
      `${count(inFlight)} of ${count(limit)} in flight`, `429: ${count(throttled)}`, `out of quota: ${count(quotaHits)}`, `failures: ${count(failed)}`,
      ...(pausedUntil === undefined ? [] : [pausedUntil === 'resume' ? 'paused until it is resumed' : `paused until ${pausedUntil}`]),
    ]
    return `gateway ${name}: ${facts.join(', ')}`
  })
}

/** What an origin's robots.txt says, and its sitemaps, one a line. */
export function robotsLines(origin: string, { rule, rules, crawlDelayMs, status, code, sitemaps = [], sitemapsMore = 0, until }: RobotsStats): readonly string[] {
  const facts = [
    rules === undefined ? rule : plural(rules, 'rule'), ...(crawlDelayMs === undefined ? [] : [`crawl delay ${exactDuration(crawlDelayMs)}`]),
    ...(status === undefined ? [] : [`status ${status}`]), ...(code === undefined ? [] : [code]), `until ${until}`,
  ]
  const more = sitemapsMore === 0 ? [] : [`  and ${plural(sitemapsMore, 'sitemap')} more`]
  return [`robots.txt of ${origin}: ${facts.join(', ')}`, ...sitemaps.map((url) => `  sitemap ${url}`), ...more]
}

export function boundLines(bounds: readonly Bound[]): readonly string[] {
  if (bounds.length === 0) return []
  const rows = bounds.map(({ name, unit, used, limit, max }) => {
    const text = unit === 'bytes' ? shortSize : count
    return [name, text(used), text(limit), text(max), limit > 0 && Number.isFinite(limit) ? percent(used / limit) : '']
  })
  const lines = table([['bound', 'used', 'of', 'at most', 'full'], ...rows])
  const width = Math.max(...lines.map((line) => line.length))
  return lines.map((line, at) => `${line.padEnd(width)}  ${at === 0 ? 'from' : bounds[at - 1]!.derivedFrom}`)
}

/** `time: politeness 62%, nothing 30%`: the largest share first. */
export function timeLine({ blockedMs }: Pressure): string {
  const entries = Object.entries(blockedMs) as [keyof typeof blockedOnText, number][]
  const sumMs = entries.reduce((sum, [, ms]) => sum + ms, 0)
  const shares = entries.filter(([, ms]) => ms > 0).toSorted(([, a], [, b]) => b - a).map(([on, ms]) => `${blockedOnText[on]} ${percent(ms / sumMs)}`)
  return `time blocked on: ${shares.length === 0 ? 'nothing' : shares.join(', ')}`
}

/** `retries 12%, blocked 50%`: those that are there. */
function sharesText(shares: HostPressure['shares']): readonly string[] {
  const named = { retries: shares?.retryShare, throttled: shares?.throttleShare, 'timed out': shares?.timeoutShare, blocked: shares?.blockShare, challenged: shares?.challengeShare, failed: shares?.failureShare }
  return Object.entries(named).filter(([, share = 0]) => share > 0).map(([name, share = 0]) => `${name} ${percent(share)}`)
}

export function hostPressureLines(worst: readonly HostPressure[]): readonly string[] {
  const ill = worst.filter(({ health }) => health < wellFrom)
  return ill.slice(0, hostLinesMax).map(({ name, health, limit, inFlight, waitMs, failureCode, parked, shares }) => {
    const facts = [`${count(inFlight)} in flight of ${count(limit)}`, ...(waitMs > 0 ? [`rests ${shortDuration(waitMs)}`] : []), ...(failureCode === undefined ? [] : [failureCode]), ...(parked === undefined ? [] : [`parked: ${parked}`]), ...sharesText(shares)]
    return `host ${name}: health ${health}, ${facts.join(', ')}`
  })
}

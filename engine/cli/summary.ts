/**
 * How a crawl ended, as text: what to do next, and last of all one line with the sums. Pure functions.
 */
import type { Stats, Summary } from '../core/api-types.ts'
import { failureTable } from '../core/errors.ts'
import { noCounters, type Counters } from '../core/types.ts'
import { count, plural, rate, shellPath, shortDuration, shortSize } from './human.ts'
import type { FailureCounts } from './messages.ts'
import { gatewayLines } from './status-tables.ts'
import { troubleLines } from './troubles.ts'

export interface SummaryView {
  readonly dir: string
  readonly summary: Summary
  readonly failures: FailureCounts
  readonly elapsedMs: number
  readonly canContinue: boolean
}

/** Causes that are named; the rest are counted together. */
const causesMax = 3

/** Lines for people; the last begins with the state. */
export function summaryLines(view: SummaryView): readonly string[] {
  const { dir, summary } = view
  const lines: string[] = []
  if (summary.pages > 0) lines.push(`page records: ${shellPath(dir)}/pages-*.jsonl, as CSV: sluice export --format csv --dir ${shellPath(dir)}`)
  const causes = causesLine(view)
  if (causes !== undefined) lines.push(causes)
  lines.push(...gatewayLines(summary.flow?.gateways?.filter(({ failed, quotaHits, throttled }) => failed + quotaHits + throttled > 0)))
  if (summary.flow !== undefined) lines.push(...troubleLines({ ...summary.flow, shed: { ...summary.flow.shed, isShedding: false } }))
  // A site that sends its visitors to another host (`www.`) is a crawl of one page, which nothing else would explain.
  if (summary.state === 'complete' && summary.refused.scope > 0) lines.push(`not followed: ${plural(summary.refused.scope, 'link')} out of scope; see --scope`)
  const traps = generated(summary)
  if (summary.state === 'complete' && traps > 0) lines.push(`not followed: ${plural(traps, 'link')} whose address looks generated; see --traps, and sluice status for the reasons`)
  if (view.canContinue && summary.parked > 0) lines.push(`parked: ${plural(summary.parked, 'URL')} may be asked for only later than --tail; the command below goes on with them${payText(summary)}`)
  // Nothing else would explain why a crawl that fetches again is complete.
  if (view.canContinue && summary.pending === 0 && summary.nextDueAtMs !== undefined) lines.push(`the next page is due ${new Date(summary.nextDueAtMs).toISOString()}; from then on: sluice crawl --dir ${shellPath(dir)}`)
  if (view.canContinue && summary.pending > 0) lines.push(`to go on: sluice crawl --dir ${shellPath(dir)}`)
  lines.push(sumsLine(view))
  return lines
}

function payText({ flow }: Summary): string {
  return flow === undefined || flow.hostsParked === 0 ? '' : ', but with those of hosts that ask to be paid only after sluice requeue --host NAME'
}

function generated({ refused }: Counters): number {
  return refused.url_length + refused.path_depth + refused.path_repeat + refused.query_growth
}

function sumsLine({ summary, elapsedMs }: SummaryView): string {
  const parts = [`${plural(summary.pages, 'page')}`]
  // Only where it says something else: the crawl had pages before this run.
  if (summary.pagesThisRun !== summary.pages) parts.push(`${count(summary.pagesThisRun)} of them now`)
  if (summary.refetched > 0) parts.push(`${count(summary.refetched)} fetched again (${count(summary.notModified + summary.unchanged)} of them the same)`)
  if (summary.nearDuplicates > 0) parts.push(`${count(summary.nearDuplicates)} near-duplicates`)
  if (summary.excluded > 0) parts.push(`${count(summary.excluded)} excluded`)
  parts.push(`${count(summary.failed)} failed`, `${count(summary.pending)} queued`, `${shortSize(summary.wireBytes)} received`)
  const speed = elapsedMs > 0 && summary.pagesThisRun > 0 ? ` (${rate(summary.pagesThisRun / elapsedMs * 1_000)})` : ''
  return `${summary.state}: ${parts.join(', ')}, in ${shortDuration(elapsedMs)}${speed}`
}

function causesLine({ failures }: SummaryView): string | undefined {
  const causes = Object.entries(failures.byCode).map(([code, times]) => ({ code, times })).sort((a, b) => b.times - a.times)
  if (causes.length === 0) return undefined
  const named = causes.slice(0, causesMax).map(({ code, times }) => `${count(times)} ${code}${meaningOf(code)}`)
  const others = causes.slice(causesMax).reduce((sum, { times }) => sum + times, 0)
  return `failures: ${[...named, ...(others > 0 ? [`${count(others)} for other reasons`] : [])].join(', ')}`
}

function meaningOf(code: string): string {
  return Object.hasOwn(failureTable, code) ? ` (${failureTable[code as keyof typeof failureTable].meaning})` : ''
}

/** The summary for programs. */
export function summaryJson({ dir, summary, failures, elapsedMs }: SummaryView): string {
  const { state, pages, failed, pending, ...rest } = summary
  return JSON.stringify({ event: 'summary', state, pages, failed, queued: pending, ...rest, elapsedMs, failures: failures.byCode, dir })
}

/** The sums of an engine that could not give its own: the latest that were heard. `before`: those at the first opening. */
export function sumsSoFar(latest: Counters | undefined, before: Counters | undefined, stats: Stats | undefined): Omit<Summary, 'state'> {
  const all: Counters = latest ?? noCounters
  const counters = Object.fromEntries(Object.keys(noCounters).map((name) => [name, all[name as keyof Counters]])) as unknown as Counters
  const { pages } = counters
  return {
    ...counters,
    pagesThisRun: pages - (before?.pages ?? pages), fetchesThisRun: stats?.fetches ?? 0, parked: 0, elapsedMs: stats?.elapsedMs ?? 0,
  }
}

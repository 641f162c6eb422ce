/**
 * `sluice status`: the state of a crawl, running or stopped, or of one of its hosts.
 */
import type { HostPressure, HostStats, Stats, StoreStats } from '../core/api-types.ts'
import { systemClock } from '../core/clock.ts'
import type { Counters } from '../core/types.ts'
import type { HostRecord, Store } from '../../storage/store.ts'
import { parkedStats, restsOf } from '../schedule/host-memory.ts'
import { statusOf } from '../stats.ts'
import { robotsStatsOf } from '../web/robots-stats.ts'
import { writeOut } from './batch.ts'
import { hostNameOf } from '../core/host-name.ts'
import { count, percent, plural, shellPath, shortDuration, shortSize } from './human.ts'
import { askRunning, checkCrawl, neverMet, readStore } from './owner.ts'
import { blockedOn } from './progress.ts'
import { troubleLines } from './troubles.ts'
import { boundLines, gatewayLines, hostPressureLines, robotsLines, stageLines, timeLine } from './status-tables.ts'

export interface StatusCommand {
  readonly dir: string
  readonly json: boolean
  readonly host?: string
}

/** Resolves to the exit code. Throws `no_crawl`, and what opening the store throws. */
export async function runStatus({ dir, json, host }: StatusCommand): Promise<number> {
  checkCrawl(dir)
  const text = host === undefined ? await crawlText(dir, json) : await hostText(dir, hostNameOf(host), json)
  await writeOut(`${text}\n`)
  return 0
}

async function crawlText(dir: string, isJson: boolean): Promise<string> {
  const answer = await askRunning(dir, { cmd: 'status' })
  if (answer?.stats !== undefined) {
    const { pid, stats, worstHosts = [] } = answer
    return isJson ? JSON.stringify(statusOf({ ...stats, worstHosts, pid })) : runningText(dir, { stats, worstHosts, pid })
  }
  const facts = await readStore(dir, storedFacts)
  return isJson ? JSON.stringify(statusOf({ state: 'stopped', ...facts })) : stoppedText(dir, facts)
}

/** What the store of a crawl tells that is not running. */
interface StoredFacts extends Counters {
  readonly store: Pick<StoreStats, 'bytesUsed' | 'fileBytes'>
  readonly nextDueAtMs?: number
}

function storedFacts(store: Store): StoredFacts {
  const { bytesUsed, fileBytes } = store.stats()
  const nextDueAtMs = store.nextDueAtMs()
  return { ...store.counters(), store: { bytesUsed, fileBytes }, ...(nextDueAtMs !== undefined && { nextDueAtMs }) }
}

interface Running {
  readonly stats: Stats
  readonly worstHosts: readonly HostPressure[]
  readonly pid: number
}

function runningText(dir: string, { stats, worstHosts, pid }: Running): string {
  const { pressure } = stats
  return [
    `${dir}: ${stats.state}, process ${pid}, for ${shortDuration(stats.elapsedMs)}, blocked on ${blockedOn(stats)} for ${shortDuration(pressure.blockedForMs)}`,
    ...sumsOf(stats),
    `now: ${plural(stats.hosts, 'host')} with work, ${count(stats.inFlight)} in flight, ${count(stats.leased)} taken from the queue, memory ${shortSize(stats.residentBytes)}`,
    storeText(stats), knownText(stats),
    ...troubleLines(stats), timeLine(pressure), `busy: main loop ${percent(stats.loopUtilization)}, parse workers ${pressure.workerUtilizations.map(percent).join(' ') || 'none'}`,
    ...gatewayLines(stats.gateways), ...hostPressureLines(worstHosts), '', ...stageLines(pressure.stages), '', ...boundLines(stats.bounds),
  ].join('\n')
}

function stoppedText(dir: string, facts: StoredFacts): string {
  const next = facts.pending > 0 ? [`to go on: sluice crawl --dir ${shellPath(dir)}`] : []
  return [`${dir}: not running`, ...sumsOf(facts), storeText(facts), ...next].join('\n')
}

function storeText({ store, durability, nextDueAtMs }: StoredFacts & { readonly durability?: string }): string {
  const facts = [
    `${shortSize(store.bytesUsed)} in use of a file of ${shortSize(store.fileBytes)}`,
    ...(durability === undefined ? [] : [`durability ${durability}`]),
    ...(nextDueAtMs === undefined ? [] : [`the next page is due ${new Date(nextDueAtMs).toISOString()}`]),
  ]
  return `store: ${facts.join(', ')}`
}

function knownText({ linksDroppedKnown, store: { linksKnown, linksLookedUp, linksNew } }: Stats): string {
  const met = linksDroppedKnown + linksKnown + linksLookedUp
  const spared = met === 0 ? 0 : (linksDroppedKnown + linksKnown) / met
  return `links: ${count(met)} met, ${percent(spared)} of them known without a look-up, ${count(linksLookedUp)} looked up, ${count(linksNew)} new`
}

function sumsOf(counters: Counters): readonly string[] {
  const refused = Object.entries(counters.refused).filter(([, times]) => times > 0).map(([reason, times]) => `${count(times)} ${reason}`)
  return [
    `URLs: ${count(counters.discovered)} = ${count(counters.pending)} queued + ${count(counters.done)} done + ${count(counters.failed)} failed + ${count(counters.dropped)} dropped + ${count(counters.excluded)} excluded`,
    `pages: ${count(counters.pages)}, ${shortSize(counters.wireBytes)} received, ${shortSize(counters.bodyBytes)} decoded, ${count(counters.retries)} retries${counters.nearDuplicates > 0 ? `, ${count(counters.nearDuplicates)} near-duplicates` : ''}`,
    ...(counters.refetched > 0 ? [`fetched again: ${count(counters.refetched)}, ${count(counters.notModified)} not modified, ${count(counters.unchanged)} sent whole though unchanged`] : []),
    ...(refused.length > 0 ? [`links never queued: ${refused.join(', ')}`] : []),
  ]
}

async function hostText(dir: string, name: string, isJson: boolean): Promise<string> {
  const answer = await askRunning(dir, { cmd: 'host', name })
  const host = answer === undefined ? await readStore(dir, (store) => storedHost(store.host(name))) : answer.host
  if (host === undefined) throw neverMet(name)
  return isJson ? JSON.stringify(host) : hostLines(host)
}

/** What the store remembers of a host; what is under way is not among it, and its delay only when robots.txt asks for one. */
type StoredHost = Pick<HostStats, 'name' | 'pending' | 'excluded' | 'failures' | 'failureCode' | 'robots'> & Partial<HostStats>

function storedHost(record: HostRecord | undefined): StoredHost | undefined {
  if (record === undefined) return undefined
  const { name, pending, limit, crawlDelayMs, failureCode, givenUp, parked, health = 1 } = record
  const { backoffMs, retryAfterMs, restMs } = restsOf(undefined, record, systemClock)
  return {
    name, pending, excluded: record.excluded === true, failures: record.failures ?? 0,
    robots: robotsStatsOf(record.robots),
    waitMs: restMs, backoffMs, retryAfterMs, health,
    ...(limit !== undefined && { limit }), ...(crawlDelayMs !== undefined && { delayMs: crawlDelayMs }), ...(failureCode !== undefined && { failureCode }),
    ...(givenUp !== undefined && { givenUp: { code: givenUp.code, at: new Date(givenUp.atMs).toISOString() } }),
    ...(parked !== undefined && { parked: parkedStats(parked) }),
  }
}

function hostLines(host: StoredHost): string {
  const { name, robots, ...rest } = host
  const facts = Object.entries(rest).map(([fact, value]) => `${fact}: ${typeof value === 'object' ? Object.entries(value).map(([name, part]) => (typeof part === 'number' ? `${name} ${part}` : part)).join(', ') : String(value)}`)
  return [name, ...facts, ...Object.entries(robots).flatMap(([origin, stats]) => robotsLines(origin, stats))].join('\n  ')
}

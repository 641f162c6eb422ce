/**
 * Main module of the engine's process: one crawler, told what to do over the IPC channel (messages.ts). It ends when its
 * work is done, when it is told to, and at once when its parent is gone.
 */
import { Crawler } from '../crawler.ts'
import type { Stats, Summary } from '../core/api-types.ts'
import { failureTable, sluiceErrorOf, type FailureCode } from '../core/errors.ts'
import { limits as bounds } from '../core/limits.ts'
import { resolveRunLimits, type RunLimits } from '../core/options.ts'
import type { PageRecord } from '../core/types.ts'
import { handleControl } from './control-handler.ts'
import { watchParent } from './lifeline.ts'
import { openLog, type Log } from './log.ts'
import type { FailureCounts, SeedSources, StartMessage, ToChild, ToParent } from './messages.ts'
import { givenLimits, isSpent, remainingLimits } from './run-limits.ts'
import { readSeeds } from './seeds.ts'

/** Failed seeds that are reported one by one; the others are only counted. */
const seedFailuresMax = 20

const stopping = new AbortController()
let running: Crawler | undefined
/** How the crawl stands; undefined before it is opened. */
let snapshot: (() => ToParent) | undefined

/** Resolves when the message has left the process. */
function tell(message: ToParent): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send!(message, () => resolve())
    else resolve()
  })
}

async function fail(error: unknown): Promise<never> {
  const known = sluiceErrorOf(error)
  const stack = error instanceof Error ? error.stack : undefined
  try {
    // The summary of a run that failed is made of the last of these.
    if (snapshot !== undefined) await tell(snapshot())
  } catch {
    // It failed while it closed, and a store that is closed tells no counts. Thrown here, this would come back for ever.
  }
  await tell({ type: 'failed', code: known.code, message: known.message, ...(stack !== undefined && { stack }) })
  process.exit(1)
}

/** Counts failures by code, and reports the first seeds among them. Answers a function that gives the counts so far. */
function watchFailures(crawler: Crawler, log: Log): () => FailureCounts {
  const byCode: Record<string, number> = {}
  let seeds = 0
  crawler.on('failed', (record: PageRecord) => {
    const { code, depth, url } = record
    if (code === undefined) return
    byCode[code] = (byCode[code] ?? 0) + 1
    log.debug({ url, code, attempts: record.attempts }, 'failed')
    if (code === 'page_killed') void tell({ type: 'failures', failures: { byCode, seeds } })
    if (depth > 0) return
    seeds += 1
    if (seeds <= seedFailuresMax && Object.hasOwn(failureTable, code)) void tell({ type: 'seed_failed', url, code: code as FailureCode })
  })
  crawler.on('pressure', (blockedOn) => {
    log.debug({ blockedOn }, 'pressure')
    if (blockedOn === 'disk' || blockedOn === 'store_full') void tell({ type: 'paused', blockedOn })
  })
  return () => ({ byCode, seeds })
}

async function addSeeds(crawler: Crawler, seeds: SeedSources): Promise<void> {
  const input = seeds.stdinName === undefined ? undefined : { stream: process.stdin, name: seeds.stdinName }
  const result = await crawler.add(readSeeds(seeds.urls, input, stopping.signal))
  if (!stopping.signal.aborted) await tell({ type: 'seeded', result })
}

async function crawlOn(crawler: Crawler, limits: RunLimits, hasRoom: boolean): Promise<Summary> {
  if (hasRoom && !stopping.signal.aborted) return crawler.start({ ...givenLimits(limits), signal: stopping.signal })
  return idleSummary(crawler.stats(), hasRoom ? 'stopped' : 'limit')
}

/** Of a run that ended before it began. */
function idleSummary(stats: Stats, state: Summary['state']): Summary {
  return { ...stats, state, pagesThisRun: 0, fetchesThisRun: 0, parked: 0 }
}

async function live(start: StartMessage): Promise<void> {
  const log = openLog(start.verbose)
  const crawler = await Crawler.open(start.crawl)
  running = crawler
  crawler.onControl((request) => handleControl(crawler, request))
  const failures = watchFailures(crawler, log)
  const { isContinued, changedOptions } = crawler
  const counters = crawler.stats()
  log.debug({ dir: crawler.options.dir, isContinued, pid: process.pid }, 'opened')
  const listen = crawler.metricsUrl?.replaceAll(/^http:\/\/|\/metrics$/g, '')
  await tell({ type: 'opened', isContinued, changedOptions, counters, ...(listen !== undefined && { listen }) })
  const stats = (): ToParent => ({ type: 'stats', stats: crawler.stats(), failures: failures() })
  snapshot = stats
  const timer = setInterval(() => void tell(stats()), start.statsEveryMs)
  if (start.seeds !== undefined) await addSeeds(crawler, start.seeds)
  const limits = remainingLimits(resolveRunLimits(start.run), counters, start.baseline)
  const summary = await crawlOn(crawler, limits, !isSpent(limits))
  clearInterval(timer)
  // Closed before the end is told, so that all is stored by then.
  await crawler.close()
  await tell({ type: 'ended', summary, failures: failures() })
  process.exit(0)
}

/** A worker that hangs must not cost the clean end: it is given up a little after the pages that nobody has taken. */
function stop(): void {
  stopping.abort()
  running?.stop({ slotsMs: (bounds.stopDrainMs + bounds.stopMsMax) / 2 - 200 }).catch(() => {
    // Whoever started the run is told.
  })
}

/** lmdb-js prints an error with its stack, beside rejecting with it. */
function hushLmdb(): void {
  const { error: print } = console
  console.error = (...args: unknown[]) => {
    const [first] = args
    if (!(first instanceof Error && /[\\/]node_modules[\\/]lmdb[\\/]/.test(first.stack ?? ''))) print(...args)
  }
}

hushLmdb()
watchParent()
process.on('uncaughtException', (error) => void fail(error))
// A service manager may signal every process of the group.
process.on('SIGINT', stop)
process.on('SIGTERM', stop)
process.on('message', (message: ToChild) => {
  switch (message.type) {
    case 'start': void live(message).catch(fail); return
    case 'stop': stop(); return
    case 'pause': running?.pause(); return
    case 'resume': running?.resume(); return
    default: message satisfies never
  }
})

/** What the evidence of a run says about each claim. Pure functions. */
import type { Claims, Evidence, Sample, Step, Verdict } from './scenario.ts'

/** Throughput is back when a window of this length is at 90 %, and so is all that follows. */
const windowMs = 4_000
const recoveredShare = 0.9
/** A host's limit settles within a fifth below what the host allows. */
const settledBelow = 0.2
const refusedShareMax = 0.02
/** A machine on which the crawl does not come near the pace of its hosts says nothing of what a fault costs. */
const steadyShareMin = 0.85

export function judge(claims: Claims, evidence: Evidence): readonly Verdict[] {
  return [
    steadyVerdict(evidence), countersVerdict(evidence), serverVerdict(evidence), outcomesVerdict(claims, evidence), boundsVerdict(evidence), memoryVerdict(claims, evidence),
    ...othersVerdicts(claims, evidence), ...recoveryVerdicts(claims, evidence), ...blockedVerdicts(claims, evidence),
    ...retryVerdicts(claims, evidence), ...ceilingVerdicts(claims, evidence), ...limitVerdicts(claims, evidence), ...claims.more?.(evidence) ?? [],
  ]
}

function steadyVerdict({ pace, samples, steps }: Evidence): Verdict {
  const before = rate(samples, pace.of, beforeOf(steps))
  return { name: 'steady', isKept: before >= steadyShareMin * pace.pagesPerSecond, text: `${before.toFixed(0)} pages/s before the fault, the delays allow ${pace.pagesPerSecond.toFixed(0)}` }
}

function countersVerdict({ counters, records, recordUrls }: Evidence): Verdict {
  const { discovered, pending, done, failed, dropped, excluded } = counters
  const ended = done + failed + dropped + excluded
  return {
    name: 'counters', isKept: discovered === pending + ended && records === recordUrls && recordUrls === ended,
    text: `${discovered} URLs are ${pending} pending and ${ended} ended, with ${records} records of ${recordUrls} URLs`,
  }
}

/** Each page of the web was given to the crawl: it has its record, or it is pending still. */
function serverVerdict({ counters, pagesWithoutRecord, answeredWithoutRecord, recordsWithoutAnswer, underWayMax }: Evidence): Verdict {
  return {
    name: 'server log',
    isKept: pagesWithoutRecord <= counters.pending && answeredWithoutRecord <= underWayMax && recordsWithoutAnswer === 0,
    text: `${pagesWithoutRecord} pages wait (${counters.pending} URLs pending); ${answeredWithoutRecord} were answered as the run stopped; ${recordsWithoutAnswer} records without an answer`,
  }
}

function outcomesVerdict({ notOkMax = 0 }: Claims, { pagesNotOk }: Evidence): Verdict {
  const counts = Object.entries(pagesNotOk)
  const sum = counts.reduce((sum, [, count]) => sum + count, 0)
  return { name: 'outcomes', isKept: sum <= notOkMax, text: `${sum} pages did not end well${sum === 0 ? '' : ` (${counts.map(([code, count]) => `${code} ${count}`).join(', ')})`}` }
}

function boundsVerdict({ samples }: Evidence): Verdict {
  const passed = new Map<string, string>()
  for (const { bounds } of samples) {
    for (const [name, { used, max }] of Object.entries(bounds)) if (used > max) passed.set(name, `${name} at ${used} of ${max}`)
  }
  return { name: 'bounds', isKept: passed.size === 0, text: passed.size === 0 ? 'none passed' : [...passed.values()].join(', ') }
}

function memoryVerdict({ ownMbMax }: Claims, { samples }: Evidence): Verdict {
  const peak = Math.max(...samples.map(({ ownBytes }) => ownBytes)) / 1_048_576
  return { name: 'memory', isKept: peak <= ownMbMax, text: `${peak.toFixed(0)} of ${ownMbMax} MB` }
}

type Group = 'all' | 'concerned' | 'others'

export function pagesOf({ pagesConcerned, pagesOthers }: Sample, group: Group): number {
  return (group === 'others' ? 0 : pagesConcerned) + (group === 'concerned' ? 0 : pagesOthers)
}

/** Pages a second between two moments. */
export function rate(samples: readonly Sample[], group: Group, { fromMs, toMs }: { fromMs: number; toMs: number }): number {
  const inside = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
  const [first, last] = [inside[0], inside.at(-1)]
  if (first === undefined || last === undefined || last.atMs === first.atMs) return 0
  return (pagesOf(last, group) - pagesOf(first, group)) * 1_000 / (last.atMs - first.atMs)
}

/** From the beginning of the first fault to the end of the last. */
export function faultSpan(steps: readonly Step[]): { fromMs: number; toMs: number } {
  const faults = steps.filter(({ kind }) => kind === 'fault')
  return { fromMs: faults[0]!.fromMs, toMs: faults.at(-1)!.toMs }
}

export function beforeOf(steps: readonly Step[]): Step {
  return steps.find(({ kind }) => kind === 'before')!
}

function halfOf({ fromMs, toMs }: { fromMs: number; toMs: number }): { fromMs: number; toMs: number } {
  return { fromMs: (fromMs + toMs) / 2, toMs }
}

function within(samples: readonly Sample[], { fromMs, toMs }: { fromMs: number; toMs: number }): readonly Sample[] {
  return samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
}

export function othersShare({ samples, steps }: Evidence): number {
  return rate(samples, 'others', faultSpan(steps)) / rate(samples, 'others', beforeOf(steps))
}

function othersVerdicts({ othersShareMin }: Claims, evidence: Evidence): Verdict[] {
  if (othersShareMin === undefined) return []
  const share = othersShare(evidence)
  return [{ name: 'others', isKept: share >= othersShareMin, text: `others keep ${percent(share)} of their throughput` }]
}

/** Seconds from the last fault's end; undefined when throughput did not come back within the run. */
export function recoveryS({ samples, steps }: Evidence, group: Group): number | undefined {
  const [{ toMs: endMs }, after] = [faultSpan(steps), steps.find(({ kind }) => kind === 'after')!]
  const wanted = recoveredShare * rate(samples, group, beforeOf(steps))
  for (const { atMs } of within(samples, { fromMs: endMs, toMs: after.toMs - windowMs })) {
    const isBack = [atMs + windowMs, after.toMs].every((toMs) => rate(samples, group, { fromMs: atMs, toMs }) >= wanted)
    if (isBack) return (atMs - endMs) / 1_000
  }
  return undefined
}

function recoveryVerdicts({ recovery }: Claims, evidence: Evidence): Verdict[] {
  if (recovery === undefined) return []
  const seconds = recoveryS(evidence, recovery.of)
  return [{
    name: 'recovery', isKept: seconds !== undefined && seconds <= recovery.withinS,
    text: seconds === undefined ? 'did not recover' : `recovered after ${seconds.toFixed(1)} s of ${recovery.withinS}`,
  }]
}

/** Shares of the samples, the largest first. */
export function blockedShares({ samples, steps }: Evidence): readonly (readonly [string, number])[] {
  const seen = new Map<string, number>()
  const inside = within(samples, halfOf(faultSpan(steps)))
  for (const { blockedOn } of inside) seen.set(blockedOn, (seen.get(blockedOn) ?? 0) + 1 / inside.length)
  return [...seen].sort((a, b) => b[1] - a[1])
}

function blockedVerdicts({ blockedOn }: Claims, evidence: Evidence): Verdict[] {
  if (blockedOn === undefined) return []
  const shares = blockedShares(evidence)
  const named = shares.filter(([name]) => (blockedOn as readonly string[]).includes(name)).reduce((sum, [, share]) => sum + share, 0)
  return [{ name: 'blocked on', isKept: named > 0.5, text: shares.map(([name, share]) => `${name} ${percent(share)}`).join(', ') }]
}

function retryVerdicts({ retryShareMax }: Claims, { samples, steps }: Evidence): Verdict[] {
  if (retryShareMax === undefined) return []
  const inside = within(samples, faultSpan(steps))
  const [first, last] = [inside[0]!, inside.at(-1)!]
  const share = (last.retries - first.retries) / Math.max(1, last.fetches - first.fetches)
  return [{ name: 'retries', isKept: share <= retryShareMax, text: `${percent(share)} of the fetches were retries, ${percent(retryShareMax)} allowed` }]
}

/** In the second half of each fault: where the limit stands, and the share of requests that were refused. */
function ceilingVerdicts({ ceilings = {} }: Claims, { samples, steps }: Evidence): Verdict[] {
  return steps.filter(({ name }) => ceilings[name] !== undefined).flatMap((step) => {
    const [ceiling, inside] = [ceilings[step.name]!, within(samples, halfOf(step))]
    const [first, last] = [inside[0]!.tally, inside.at(-1)!.tally]
    const limit = medianLimit(inside)
    const [asked, refused] = [last.requests - first.requests, last.refused - first.refused]
    return [
      { name: `limit, ${step.name}`, isKept: limit >= (1 - settledBelow) * ceiling && limit <= ceiling, text: `the limit settled at ${limit}, ${ceiling} are allowed` },
      { name: `refused, ${step.name}`, isKept: refused < refusedShareMax * asked, text: `${refused} of ${asked} requests were refused` },
    ]
  })
}

function limitVerdicts({ limitMax }: Claims, { samples, steps }: Evidence): Verdict[] {
  if (limitMax === undefined) return []
  const limit = medianLimit(within(samples, halfOf(faultSpan(steps))))
  return [{ name: 'limit', isKept: limit <= limitMax, text: `the limit settled at ${limit}, at most ${limitMax}` }]
}

/** A probe above the limit is no part of where it settled. */
function medianLimit(samples: readonly Sample[]): number {
  return samples.map(({ limit }) => limit).sort((a, b) => a - b)[samples.length >> 1] ?? 0
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
}

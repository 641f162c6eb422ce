/**
 * One measurement, in a process of its own: fill a store, or open one and claim, commit and discover at a steady state.
 * What is measured is the store alone: the links of the next pages are made beforehand, outside of the time.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { systemClock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { resolveCrawlOptions } from '../../engine/core/options.ts'
import { Scheduler } from '../../engine/schedule/scheduler.ts'
import { mainThreadCpuMs, pagingNow, processCpuMs, watchMemory } from '../process-meter.ts'
import type { Claimed, EndedPage, Frontier } from './frontier.ts'
import { openFrontier, type StoreName } from './open.ts'
import { SluiceFrontier } from './sluice.ts'
import { LINKS_NEW, LINKS_SEEN, Workload, type BenchLinks, type Size } from './workload.ts'

export interface Job {
  readonly kind: 'fill' | 'run'
  readonly store: StoreName
  readonly dir: string
  readonly size: Size
  /** Turns that earlier runs took on this store. */
  readonly turnsBefore: number
  readonly turns: number
}

export interface Measured {
  readonly pages: number
  readonly newUrls: number
  readonly elapsedMs: number
  readonly cpuMs: number
  readonly mainCpuMs: number
  readonly serverCpuMs: number
  readonly openMs: number
  readonly schedulerOpenMs: number
  readonly claimMs: number
  readonly stallMsMax: number
  readonly peakOwnBytes: number
  readonly peakFileBytes: number
  readonly serverOwnBytes: number
  readonly queued: number
  readonly usedBytes: number
  /** The same, and the URLs, when the store was filled. */
  readonly usedBytesFilled: number
  readonly filledUrls: number
  readonly fileBytes: number
  readonly readBytes: number
  readonly majorFaults: number
}

/** What a page costs in rows, the same in every store: claimed 1, ended 3 (queue, state, page row), a link looked up 1, a new URL 2. */
export function rowOperations({ pages, newUrls }: Pick<Measured, 'pages' | 'newUrls'>): number {
  return pages * (1 + 3 + LINKS_SEEN + LINKS_NEW) + newUrls * 2
}

const FILL_PAGES_PER_COMMIT = 2_000
const COMMITS_PER_PART = 20

export async function fill({ store, dir, size }: Job): Promise<Measured> {
  const frontier = await openFrontier(store, dir)
  const meter = new Meter()
  let part: BenchLinks[] = []
  const add = async (): Promise<void> => {
    await meter.during(() => frontier.add(part))
    part = []
  }
  for (const page of new Workload(size).fill()) {
    part.push(page)
    if (part.length === FILL_PAGES_PER_COMMIT) await add()
  }
  await add()
  return finish(frontier, meter, {})
}

/** `ready` is awaited before the part that is measured, with the store open and URLs claimed. */
export async function run({ store, dir, size, turns, turnsBefore }: Job, ready: () => Promise<void> = async () => {}): Promise<Measured> {
  const workload = new Workload(size)
  workload.skip(turnsBefore)
  const openedAtMs = performance.now()
  const frontier = await openFrontier(store, dir)
  const openMs = performance.now() - openedAtMs
  const schedulerOpenMs = frontier instanceof SluiceFrontier ? openScheduler(frontier) : 0
  const hands = new Hands(frontier)
  const claimedAtMs = performance.now()
  const names = Array.from({ length: size.hosts }, (_, host) => workload.hostName(host))
  // As if the run had been going on for long: every host has some of its URLs in hand, and few run out at once.
  for (let at = 0; at < names.length; at += limits.commitUrlsMax) {
    await hands.claim(names.slice(at, at + limits.commitUrlsMax), (host) => 1 + names.indexOf(host, at) % limits.claimUrlsPerHost)
    await new Promise(setImmediate)
  }
  const claimMs = performance.now() - claimedAtMs
  await ready()
  const meter = new Meter(frontier)
  let [pages, newUrls] = [0, 0]
  for (let left = turns; left > 0;) {
    const part = Array.from({ length: Math.min(left, COMMITS_PER_PART * limits.commitUrlsMax) }, () => workload.turn())
    left -= part.length
    await meter.during(async () => {
      for (let at = 0; at < part.length; at += limits.commitUrlsMax) {
        const batch = part.slice(at, at + limits.commitUrlsMax).map(({ host, links }) => ({ host: workload.hostName(host), links }))
        const ended = await hands.take(batch)
        newUrls += await frontier.commit(ended)
        pages += ended.length
        // A turn of the loop, so that a store that never waits is seen to hold it.
        await new Promise(setImmediate)
      }
    })
  }
  return finish(frontier, meter, { filledUrls: size.urls, openMs, schedulerOpenMs, claimMs, pages, newUrls })
}

function openScheduler({ store }: SluiceFrontier): number {
  const startedAtMs = performance.now()
  new Scheduler({ store, options: resolveCrawlOptions({}), clock: systemClock, random: Math.random, unitOf: (host) => host, onWork: () => {}, note: () => {} }).open(true)
  return performance.now() - startedAtMs
}

/** URLs that were claimed ahead, by host, as the scheduler keeps them. */
class Hands {
  readonly #frontier: Frontier
  readonly #claimed = new Map<string, Claimed[]>()

  constructor(frontier: Frontier) {
    this.#frontier = frontier
  }

  async claim(hosts: readonly string[], limitOf: (host: string) => number): Promise<void> {
    const claims = await this.#frontier.claim(hosts.map((host) => ({ host, limit: limitOf(host) })))
    for (let at = 0; at < hosts.length; at += 1) this.#claimed.set(hosts[at]!, [...claims[at]!])
  }

  /** One URL of each host; a host that has none left is passed over. */
  async take(batch: readonly { readonly host: string; readonly links: BenchLinks }[]): Promise<EndedPage[]> {
    const empty = batch.filter(({ host }) => (this.#claimed.get(host)?.length ?? 0) === 0).map(({ host }) => host)
    if (empty.length > 0) await this.claim([...new Set(empty)], () => limits.claimUrlsPerHost)
    return batch.flatMap(({ host, links }) => {
      const claimed = this.#claimed.get(host)!.shift()
      return claimed === undefined ? [] : [{ claimed, links }]
    })
  }
}

/** Adds up what the parts of a measurement cost. */
class Meter {
  readonly #server: () => { readonly cpuMs: number }
  readonly #serverCpuMs: number
  readonly #memory = watchMemory()
  readonly #stalls = monitorEventLoopDelay({ resolution: 1 })
  readonly #paging = pagingNow()
  #elapsedMs = 0
  #cpuMs = 0
  #mainCpuMs = 0

  constructor(frontier?: Frontier) {
    this.#server = () => frontier?.server() ?? { cpuMs: 0 }
    this.#serverCpuMs = this.#server().cpuMs
  }

  async during(work: () => Promise<void>): Promise<void> {
    this.#stalls.enable()
    const [startMs, cpuMs, mainMs] = [performance.now(), processCpuMs(), mainThreadCpuMs() ?? 0]
    await work()
    this.#elapsedMs += performance.now() - startMs
    this.#cpuMs += processCpuMs() - cpuMs
    this.#mainCpuMs += (mainThreadCpuMs() ?? 0) - mainMs
    this.#stalls.disable()
  }

  stop(): Pick<Measured, 'elapsedMs' | 'cpuMs' | 'mainCpuMs' | 'serverCpuMs' | 'stallMsMax' | 'peakOwnBytes' | 'peakFileBytes' | 'readBytes' | 'majorFaults'> {
    const { peak } = this.#memory.stop()
    const paging = pagingNow()
    return {
      elapsedMs: this.#elapsedMs, cpuMs: this.#cpuMs, mainCpuMs: this.#mainCpuMs, serverCpuMs: this.#server().cpuMs - this.#serverCpuMs,
      stallMsMax: this.#stalls.max / 1e6, peakOwnBytes: peak.ownBytes, peakFileBytes: peak.fileBytes,
      readBytes: paging.readBytes - this.#paging.readBytes, majorFaults: paging.majorFaults - this.#paging.majorFaults,
    }
  }
}

async function finish(frontier: Frontier, meter: Meter, facts: Partial<Measured>): Promise<Measured> {
  const costs = meter.stop()
  const queued = await frontier.queued()
  const { used, file } = await frontier.bytes()
  const serverOwnBytes = frontier.server().ownBytes
  await frontier.close()
  return { pages: 0, newUrls: 0, openMs: 0, schedulerOpenMs: 0, claimMs: 0, usedBytesFilled: Number.NaN, filledUrls: 0, ...facts, ...costs, serverOwnBytes, queued, usedBytes: used, fileBytes: file }
}

/**
 * Runs pages through the ring and the parse workers of a crawl, again and again, and takes the times. The ring is kept
 * full, as in a crawl that is held up by parsing, so a page waits for as many pages as the ring has slots before it.
 * Every link counts as new, which costs most. Main thread.
 *
 * Invariant: what is measured begins and ends with an empty ring; of the warm-up nothing is counted.
 */
import { systemClock } from '../core/clock.ts'
import { SluiceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { FetchedPage } from '../core/types.ts'
import { ParsePool } from '../../threads/parse-pool.ts'
import { StageTimes } from '../../threads/stage-times.ts'
import type { ProfileInput } from './profile-inputs.ts'

export interface PoolProfileOptions {
  readonly threads: number
  readonly maxBodyBytes: number
  readonly seconds: number
  readonly userAgent: string
  readonly extractor?: string
  /** Flags of Node for the workers. */
  readonly execArgv: readonly string[]
}

export interface PoolProfile {
  readonly warmUp: PassResult
  readonly measured: PassResult
  readonly times: StageTimes
  /** Pages that may lie in the ring at once. */
  readonly slots: number
  readonly workersLost: number
  /** Share of the time in which the main thread was busy filling and collecting. */
  readonly mainUtilization: number
}

export interface PassResult {
  readonly pages: number
  readonly elapsedMs: number
  /** Pages without a result or with a failure, by code. */
  readonly failures: Readonly<Record<string, number>>
}

/** Before it is measured, code must have been compiled for these pages and not for others. */
const WARM_UP_MS = 1_000
const WARM_UP_PAGES_MAX = 400
/**
 * So many may die of one page, which is a fact about that page. With more, the figures are those of workers that begin
 * anew, and an extractor that loops would keep its user for ten seconds a page, hours in all.
 */
const WORKERS_LOST_MAX = limits.parseTriesMax

/** Throws `extractor_unloadable`, and `internal` when more workers are lost than `WORKERS_LOST_MAX`. */
export async function profilePool(inputs: readonly ProfileInput[], options: PoolProfileOptions): Promise<PoolProfile> {
  const { threads, maxBodyBytes, userAgent, extractor, execArgv, seconds } = options
  const times = StageTimes.create()
  const pool = await ParsePool.open({
    threads, maxBodyBytes, clock: systemClock, execArgv,
    worker: { include: [], exclude: [], crawlId: 'profile', userAgent, profile: times.memory, ...(extractor !== undefined && { extractor }) },
  })
  try {
    const warmUp = await pass(pool, inputs, { pagesMin: Math.min(inputs.length, WARM_UP_PAGES_MAX), ms: WARM_UP_MS })
    times.reset()
    const before = performance.eventLoopUtilization()
    const measured = await pass(pool, inputs, { pagesMin: inputs.length, ms: seconds * 1_000 })
    const mainUtilization = performance.eventLoopUtilization(before).utilization
    const { slots, workersLost } = pool.stats()
    return { warmUp, measured, times, slots, workersLost, mainUtilization }
  } finally {
    await pool.close()
  }
}

/** Fills until so many pages were filled and so much time has passed; resolves when the last one is collected. */
function pass(pool: ParsePool, inputs: readonly ProfileInput[], { pagesMin, ms }: { pagesMin: number; ms: number }): Promise<PassResult> {
  const startMs = performance.now()
  const failures: Record<string, number> = {}
  let [filled, collected] = [0, 0]
  const isOver = (): boolean => filled >= pagesMin && performance.now() - startMs >= ms
  return new Promise((resolve, reject) => {
    pool.onWorkerLost = ({ code }) => {
      const lost = pool.stats().workersLost
      if (lost > WORKERS_LOST_MAX) reject(new SluiceError('internal', `${lost} workers were lost, the last one by ${code}`))
    }
    pool.onProgress = () => {
      for (let pages = pool.collect(64); pages.length > 0; pages = pool.collect(64)) {
        collected += pages.length
        for (const page of pages) {
          const code = 'result' in page ? page.result.code : page.code
          if (code !== undefined) failures[code] = (failures[code] ?? 0) + 1
        }
      }
      while (!isOver() && pool.fill(fetchedPage(inputs[filled % inputs.length]!)) !== undefined) filled += 1
      if (isOver() && collected === filled) resolve({ pages: collected, elapsedMs: performance.now() - startMs, failures })
    }
    pool.onProgress()
  })
}

/** As if it had been received now: from here on its wait for a worker is counted. */
function fetchedPage({ url, contentType, contentEncoding, headerBlock, body, isCut }: ProfileInput): FetchedPage {
  return {
    meta: {
      url, depth: 0, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: performance.timeOrigin + performance.now(), contentType,
      ...(contentEncoding !== undefined && { contentEncoding }), timings: {}, truncated: isCut, followLinks: true,
    },
    headerBlock, body: [body], bodyBytes: body.byteLength,
  }
}

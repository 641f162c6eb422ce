/**
 * How long the stages of parsing take, page by page: histograms in shared memory, written by the parse workers of
 * `sluice profile parse` and read by the main thread. In a crawl there are none, and each mark is one look at an
 * absent tool. Invariant: what a worker did for a page is added before the page's slot becomes done, so whoever has
 * collected a page finds its times.
 *
 *   0         64              64 + 8 x series      .. + 24 x 512           .. + 4,096 x series
 *   +---------+---------------+--------------------+-----------------------+
 *   | clocks, | sum of each   | pages, bytes, busy | 1,024 buckets of each |
 *   | epoch   | series, in ns | ns of each clock   | series: pages         |
 *   +---------+---------------+--------------------+-----------------------+
 *
 * Bucket i holds times from 1.025^i to 1.025^(i + 1) nanoseconds, the last one also what is longer (95 s). A percentile
 * is the geometric middle of its bucket, so it is at most 1.25 % off; sums are exact.
 *
 * Measured: a mark costs 0.06 microseconds, mostly of the clock, and the end of a page 1.1. Two marks for each link of a
 * page of 150 links make its figures 18 microseconds larger than without.
 */

/** What a page's time in a worker is made of, in the order of a page; `take` reads the slot, `encode` writes the result. */
export const stageNames = ['take', 'inflate', 'sniff', 'scan', 'resolve', 'fingerprint', 'hash', 'document', 'extractor', 'record', 'encode'] as const
export type Stage = (typeof stageNames)[number]

/** The whole page; how long it lay in its slot before a worker took it; how long its worker was without a page before. */
export const seriesNames = [...stageNames, 'page', 'pageWait', 'workerWait'] as const
export type Series = (typeof seriesNames)[number]

const BUCKETS = 1_024
const BUCKET_WIDTH = 1.025
const LOG_WIDTH = Math.log(BUCKET_WIDTH)
const CONTROL_BYTES = 64
const control = { clocks: 0, epoch: 1 } as const
/** Workers that died have rows too; the last row takes all that come after. */
const CLOCKS_MAX = 512
const clockRow = { pages: 0, bytes: 1, busyNs: 2 } as const
const CLOCK_ROW = 3
const SUMS_AT = CONTROL_BYTES
const CLOCKS_AT = SUMS_AT + 8 * seriesNames.length
const BUCKETS_AT = CLOCKS_AT + 8 * CLOCK_ROW * CLOCKS_MAX

const seriesIndex = Object.fromEntries(seriesNames.map((name, index) => [name, index])) as Readonly<Record<Series, number>>

function bucketOf(ns: number): number {
  if (ns < 1) return 0
  return Math.min(BUCKETS - 1, Math.floor(Math.log(ns) / LOG_WIDTH))
}

/** The times of one series. */
export interface SeriesTimes {
  /** Pages that have a time; a stage that a page did not pass has none. */
  readonly count: number
  readonly sumNs: number
  /** The time in nanoseconds that so many percent of the pages do not exceed (nearest rank); 0 without any. */
  percentileNs(percent: number): number
}

/** What one worker did. */
export interface ClockTotals {
  readonly pages: number
  /** Decoded bytes. */
  readonly bytes: number
  readonly busyNs: number
}

export class StageTimes {
  /** What a worker is handed. */
  readonly memory: SharedArrayBuffer
  readonly #control: Int32Array
  readonly #sums: BigInt64Array
  readonly #clocks: BigInt64Array
  readonly #buckets: Int32Array

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#control = new Int32Array(memory, 0, CONTROL_BYTES / 4)
    this.#sums = new BigInt64Array(memory, SUMS_AT, seriesNames.length)
    this.#clocks = new BigInt64Array(memory, CLOCKS_AT, CLOCK_ROW * CLOCKS_MAX)
    this.#buckets = new Int32Array(memory, BUCKETS_AT, BUCKETS * seriesNames.length)
  }

  static create(): StageTimes {
    return new StageTimes(new SharedArrayBuffer(BUCKETS_AT + 4 * BUCKETS * seriesNames.length))
  }

  /** The same memory, seen from another thread. */
  static over(memory: SharedArrayBuffer): StageTimes {
    return new StageTimes(memory)
  }

  /** A worker's own clock. `nowMs` and `originMs`: monotonic milliseconds, and when they began since 1970. */
  clock(nowMs = (): number => performance.now(), originMs = performance.timeOrigin): StageClock {
    // Tells the other workers that this row has an owner.
    const row = Math.min(Atomics.add(this.#control, control.clocks, 1), CLOCKS_MAX - 1)
    return new StageClock(this, { row, nowMs, originMs })
  }

  /** Changes when all was forgotten. */
  get epoch(): number {
    // Reads what the main thread published by `reset`.
    return Atomics.load(this.#control, control.epoch)
  }

  add(series: number, ns: number): void {
    // Both are read by the main thread after it has seen the page's slot done.
    Atomics.add(this.#buckets, series * BUCKETS + bucketOf(ns), 1)
    Atomics.add(this.#sums, series, BigInt(Math.round(ns)))
  }

  addPage(row: number, bytes: number, busyNs: number): void {
    const at = row * CLOCK_ROW
    // Read by the main thread after it has seen the page's slot done.
    Atomics.add(this.#clocks, at + clockRow.pages, 1n)
    Atomics.add(this.#clocks, at + clockRow.bytes, BigInt(bytes))
    Atomics.add(this.#clocks, at + clockRow.busyNs, BigInt(Math.round(busyNs)))
  }

  /** Main thread, while no page is outstanding: forgets all times, those of the warm-up. */
  reset(): void {
    this.#sums.fill(0n)
    this.#clocks.fill(0n)
    this.#buckets.fill(0)
    // Publishes the zeros to the workers, and tells them that their present wait does not count.
    Atomics.add(this.#control, control.epoch, 1)
  }

  /** The times of a series so far. */
  read(name: Series): SeriesTimes {
    const series = seriesIndex[name]
    // Copies what the workers of collected pages added.
    const buckets = this.#buckets.slice(series * BUCKETS, (series + 1) * BUCKETS)
    const count = buckets.reduce((sum, pages) => sum + pages, 0)
    return { count, sumNs: Number(Atomics.load(this.#sums, series)), percentileNs: (percent) => percentileOf(buckets, count, percent) }
  }

  /** What each worker did that has a page. */
  totals(): readonly ClockTotals[] {
    // Reads what the workers of collected pages added.
    const cell = (row: number, column: number): number => Number(Atomics.load(this.#clocks, row * CLOCK_ROW + column))
    return Array.from({ length: CLOCKS_MAX }, (_, row) => ({ pages: cell(row, clockRow.pages), bytes: cell(row, clockRow.bytes), busyNs: cell(row, clockRow.busyNs) }))
      .filter(({ pages }) => pages > 0)
  }
}

function percentileOf(buckets: Int32Array, count: number, percent: number): number {
  if (count === 0) return 0
  let left = Math.max(1, Math.ceil(count * percent / 100))
  const bucket = buckets.findIndex((pages) => (left -= pages) <= 0)
  return BUCKET_WIDTH ** (bucket + 0.5)
}

/** A page's stages on one worker's clock: `begin`, `taken`, `mark` after each stage, `end`. A page without an end leaves nothing. */
export class StageClock {
  readonly #times: StageTimes
  readonly #row: number
  readonly #nowMs: () => number
  readonly #originMs: number
  /** Milliseconds of this page by stage; below zero: not passed. */
  readonly #stageMs = new Float64Array(stageNames.length)
  #beganMs = 0
  #markedMs = 0
  #waitMs = 0
  #endedMs = 0
  #epoch = -1

  constructor(times: StageTimes, { row, nowMs, originMs }: { row: number; nowMs: () => number; originMs: number }) {
    this.#times = times
    this.#row = row
    this.#nowMs = nowMs
    this.#originMs = originMs
  }

  /** The worker has taken a slot. */
  begin(): void {
    this.#stageMs.fill(-1)
    this.#beganMs = this.#markedMs = this.#nowMs()
  }

  /** The slot was read; its page was filled in at this time since 1970. */
  taken(filledAtMs: number): void {
    this.#waitMs = Math.max(0, this.#originMs + this.#beganMs - filledAtMs)
    this.mark('take')
  }

  /** What passed since the last mark belongs to this stage. A stage may be marked many times: its parts are added up. */
  mark(stage: Stage): void {
    const nowMs = this.#nowMs()
    const index = seriesIndex[stage]
    this.#stageMs[index] = Math.max(0, this.#stageMs[index]!) + nowMs - this.#markedMs
    this.#markedMs = nowMs
  }

  /** The page's result is written, `bodyBytes` were read of it. Before the slot becomes done. */
  end(bodyBytes: number): void {
    const times = this.#times
    const { epoch } = times
    const busyNs = (this.#nowMs() - this.#beganMs) * 1e6
    // The first page, and the first after the warm-up, waited for a reason that is none.
    if (epoch === this.#epoch) times.add(seriesIndex.workerWait, (this.#beganMs - this.#endedMs) * 1e6)
    for (let stage = 0; stage < stageNames.length; stage += 1) {
      if (this.#stageMs[stage]! >= 0) times.add(stage, this.#stageMs[stage]! * 1e6)
    }
    times.add(seriesIndex.pageWait, this.#waitMs * 1e6)
    times.add(seriesIndex.page, busyNs)
    times.addPage(this.#row, bodyBytes, busyNs)
    this.#epoch = epoch
    this.#endedMs = this.#nowMs()
  }
}

import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { seriesNames, stageNames, StageTimes, type StageClock } from '../../threads/stage-times.ts'
import { integer, pick, withSeeds } from '../support/random.ts'

/** A clock whose time the test sets, in nanoseconds. */
function manual(times: StageTimes, originMs = 1_000): { clock: StageClock; pass(ns: number): void } {
  let ns = 0
  return { clock: times.clock(() => ns / 1e6, originMs), pass: (more) => { ns += more } }
}

function nearestRank(values: readonly number[], percent: number): number {
  return [...values].sort((a, b) => a - b)[Math.max(1, Math.ceil(values.length * percent / 100)) - 1]!
}

it('percentiles are those of the sorted times to 1.25 %, and sums and counts are exact, for times from 1 ns to 90 s', () => withSeeds(20, (random) => {
  const times = StageTimes.create()
  const { clock, pass } = manual(times)
  const passed: number[] = []
  const pages = 1 + integer(random, 400)
  for (let page = 0; page < pages; page += 1) {
    const ns = Math.round(Math.exp(random() * Math.log(9e10)))
    passed.push(ns)
    clock.begin()
    pass(ns)
    clock.mark('scan')
    clock.end(1)
  }
  const scan = times.read('scan')
  expect(scan.count).toBe(pages)
  // A double holds seconds of milliseconds to about a nanosecond.
  expect(Math.abs(scan.sumNs - passed.reduce((a, b) => a + b, 0))).toBeLessThanOrEqual(pages)
  for (const percent of [0, 1, 50, 95, 99, 100]) {
    const ratio = scan.percentileNs(percent) / nearestRank(passed, percent)
    expect(ratio).toBeGreaterThan(1 / 1.0131)
    expect(ratio).toBeLessThan(1.0131)
  }
}))

it('a stage that is marked many times has one time a page, the sum of its parts', () => withSeeds(20, (random) => {
  const times = StageTimes.create()
  const { clock, pass } = manual(times)
  const sums = new Map<string, number>()
  clock.begin()
  for (let mark = 0; mark < 50; mark += 1) {
    const [stage, ns] = [pick(random, stageNames), integer(random, 100_000)]
    pass(ns)
    clock.mark(stage)
    sums.set(stage, (sums.get(stage) ?? 0) + ns)
  }
  clock.end(0)
  for (const stage of stageNames) {
    expect(times.read(stage).count).toBe(sums.has(stage) ? 1 : 0)
    expect(Math.abs(times.read(stage).sumNs - (sums.get(stage) ?? 0))).toBeLessThanOrEqual(1)
  }
  expect(Math.abs(times.read('page').sumNs - [...sums.values()].reduce((a, b) => a + b, 0))).toBeLessThanOrEqual(1)
}))

it('a page that has no end leaves nothing, nor does it lengthen the next', () => {
  const times = StageTimes.create()
  const { clock, pass } = manual(times)
  clock.begin()
  pass(5_000)
  clock.mark('inflate')
  clock.begin()
  pass(100)
  clock.mark('hash')
  clock.end(7)
  expect(times.read('inflate').count).toBe(0)
  expect(times.read('page').sumNs).toBe(100)
  expect(times.totals()).toEqual([{ pages: 1, bytes: 7, busyNs: 100 }])
})

it('waits: the page from its filling to its taking, the worker from one page to the next, but not before the first one', () => {
  const times = StageTimes.create()
  const { clock, pass } = manual(times, 1_000)
  pass(2_000_000)
  clock.begin()
  pass(500_000)
  clock.taken(1_001.5)
  clock.end(0)
  expect(times.read('pageWait').sumNs).toBe(500_000)
  expect(times.read('take').sumNs).toBe(500_000)
  expect(times.read('workerWait').count).toBe(0)
  pass(3_000_000)
  clock.begin()
  // Filled after it was taken, by clocks that differ a little: no wait below zero.
  clock.taken(9_999)
  clock.end(0)
  expect(times.read('pageWait').sumNs).toBe(500_000)
  expect(times.read('workerWait')).toMatchObject({ count: 1, sumNs: 3_000_000 })
})

it('a reset forgets every time, and the wait that spans it', () => {
  const times = StageTimes.create()
  const { clock, pass } = manual(times)
  const page = (): void => {
    clock.begin()
    pass(1_000)
    clock.mark('scan')
    clock.end(10)
  }
  page()
  page()
  times.reset()
  for (const name of seriesNames) expect(times.read(name).count).toBe(0)
  expect(times.totals()).toEqual([])
  pass(9e9)
  page()
  expect(times.read('workerWait').count).toBe(0)
  page()
  expect(times.read('workerWait').count).toBe(1)
  expect(times.totals()).toEqual([{ pages: 2, bytes: 20, busyNs: 2_000 }])
})

it('more clocks than rows share the last row, and no page is lost', () => {
  const times = StageTimes.create()
  for (let index = 0; index < 600; index += 1) {
    const { clock } = manual(times)
    clock.begin()
    clock.end(1)
  }
  expect(times.totals()).toHaveLength(512)
  expect(times.totals().reduce((sum, { pages }) => sum + pages, 0)).toBe(600)
  expect(times.read('page').count).toBe(600)
})

it('without a page every figure is 0', () => {
  const scan = StageTimes.create().read('scan')
  expect([scan.count, scan.sumNs, scan.percentileNs(50)]).toEqual([0, 0, 0])
})

it('four threads at once add every page of theirs to the same memory', async () => {
  const times = StageTimes.create()
  const module = new URL('../../dist/threads/stage-times.js', import.meta.url).href
  const source = `
    const { workerData } = require('node:worker_threads')
    import(${JSON.stringify(module)}).then(({ StageTimes }) => {
      let ns = 0
      const clock = StageTimes.over(workerData).clock(() => ns / 1e6, 0)
      for (let page = 0; page < 20000; page += 1) {
        clock.begin()
        ns += 1000
        clock.mark('hash')
        clock.end(3)
      }
    })`
  await Promise.all(Array.from({ length: 4 }, () => once(new Worker(source, { eval: true, workerData: times.memory }), 'exit')))
  expect(times.read('hash')).toMatchObject({ count: 80_000, sumNs: 80_000_000 })
  expect(times.totals()).toEqual(Array.from({ length: 4 }, () => ({ pages: 20_000, bytes: 60_000, busyNs: 20_000_000 })))
})

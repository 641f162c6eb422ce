/**
 * What `sluice profile parse` answers: one object (INTERFACE.md), and the same as tables for people. Pure functions.
 */
import os from 'node:os'
import { stageNames, type Series, type SeriesTimes, type Stage } from '../../threads/stage-times.ts'
import { count, percent, plural, shortSize } from './human.ts'
import type { ProfileInputs } from './profile-inputs.ts'
import { parsers, type ParserComparison, type ParserFigures } from './profile-parsers.ts'
import type { PoolProfile } from './profile-pool.ts'

export interface TimesReport {
  readonly p50Us: number
  readonly p95Us: number
  readonly p99Us: number
}

/** 1 MB is 1,048,576 bytes of decoded pages, cut where a crawl cuts. */
export interface ProfileReport {
  readonly node: string
  readonly cpu: string
  /** Pages that were read in, each once. */
  readonly files: number
  /** Their decoded bytes. */
  readonly bytes: number
  /** Their bytes as stored. */
  readonly wireBytes: number
  readonly skipped: number
  readonly leftOut: number
  /** Pages of which a crawl reads the beginning only. */
  readonly cut: number
  readonly maxBodyBytes: number
  readonly threads: number
  readonly warmUpPages: number
  readonly measuredPages: number
  readonly measuredMs: number
  readonly pagesPerSecond: number
  readonly mbPerSecond: number
  /** One entry a worker; `busy` is its share of the time, from 0 to 1. */
  readonly perThread: readonly { readonly pagesPerSecond: number; readonly mbPerSecond: number; readonly busy: number }[]
  readonly mainBusy: number
  /** Microseconds a page over the pages that have the stage; `share` of all the time that workers spent on pages. */
  readonly stages: readonly ({ readonly name: Stage; readonly pages: number; readonly share: number } & TimesReport)[]
  /** The whole page in its worker. */
  readonly page: TimesReport
  readonly waits: { readonly slots: number; readonly workerForPage: TimesReport; readonly pageForWorker: TimesReport }
  readonly failures: Readonly<Record<string, number>>
  readonly workersLost: number
  readonly comparison: readonly ParserFigures[]
  /** The scanner, with a string for each link. */
  readonly scannerWithStrings?: Figures
  /** What was compared: a sample of the pages, and how often each parser read it. */
  readonly comparisonOf?: { readonly pages: number; readonly bytes: number; readonly rounds: number }
  readonly cpuProfiles?: readonly string[]
}

export interface ProfileParts {
  readonly inputs: ProfileInputs
  readonly threads: number
  readonly maxBodyBytes: number
  readonly pool: PoolProfile
  readonly comparison?: ParserComparison & { readonly pages: number; readonly bytes: number }
  readonly cpuProfiles?: readonly string[]
}

export function profileReport({ inputs, threads, maxBodyBytes, pool, comparison, cpuProfiles }: ProfileParts): ProfileReport {
  const { measured, times, slots } = pool
  const { pages } = inputs
  const seconds = measured.elapsedMs / 1_000
  const totals = times.totals()
  const page = times.read('page')
  const of = (series: Series): TimesReport => figuresOf(times.read(series))
  return {
    node: process.version, cpu: cpuName(), files: pages.length,
    bytes: sumOf(pages, ({ decoded }) => decoded.byteLength), wireBytes: sumOf(pages, ({ body }) => body.byteLength),
    skipped: inputs.skipped, leftOut: inputs.leftOut, cut: pages.filter(({ isDecodedCut }) => isDecodedCut).length, maxBodyBytes,
    threads, warmUpPages: pool.warmUp.pages, measuredPages: measured.pages, measuredMs: rounded(measured.elapsedMs),
    pagesPerSecond: rounded(measured.pages / seconds), mbPerSecond: rounded(sumOf(totals, ({ bytes }) => bytes) / 2 ** 20 / seconds),
    perThread: totals.map(({ pages, bytes, busyNs }) => ({
      pagesPerSecond: rounded(pages / seconds), mbPerSecond: rounded(bytes / 2 ** 20 / seconds), busy: rounded(busyNs / 1e9 / seconds),
    })),
    mainBusy: rounded(pool.mainUtilization),
    stages: stageNames.map((name) => {
      const series = times.read(name)
      return { name, pages: series.count, ...figuresOf(series), share: rounded(series.sumNs / Math.max(1, page.sumNs)) }
    }),
    page: figuresOf(page),
    waits: { slots, workerForPage: of('workerWait'), pageForWorker: of('pageWait') },
    failures: measured.failures, workersLost: pool.workersLost,
    comparison: (comparison?.figures ?? []).map(({ name, ...figures }) => ({ name, ...roundedFigures(figures) })),
    ...(comparison && { scannerWithStrings: roundedFigures(comparison.withStrings), comparisonOf: { pages: comparison.pages, bytes: comparison.bytes, rounds: comparison.rounds } }),
    ...(cpuProfiles && { cpuProfiles }),
  }
}

function figuresOf(series: SeriesTimes): TimesReport {
  const us = (at: number): number => rounded(series.percentileNs(at) / 1_000)
  return { p50Us: us(50), p95Us: us(95), p99Us: us(99) }
}

type Figures = Omit<ParserFigures, 'name'>

function roundedFigures(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, rounded(value)])) as unknown as Figures
}

/** Four digits are more than a measurement has. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0)
}

function cpuName(): string {
  const cpus = os.cpus()
  return `${cpus.length} x ${cpus[0]?.model.trim() ?? 'unknown'}`
}

const NAME_CHARS = 20
const CELL_CHARS = 11

function row(name: string, ...cells: readonly string[]): string {
  return `  ${name.padEnd(NAME_CHARS)}${cells.map((cell) => cell.padStart(CELL_CHARS)).join('')}`.trimEnd()
}

function head(name: string, ...cells: readonly string[]): string {
  return `\n${name.padEnd(NAME_CHARS + 2)}${cells.map((cell) => cell.padStart(CELL_CHARS)).join('')}`
}

/** Three digits, or as many as stand before the point. */
function short(value: number): string {
  return value === 0 ? '0' : value >= 99.95 ? count(value) : value.toFixed(value >= 9.995 ? 1 : 2)
}

export function profileText(report: ProfileReport): string {
  const lines = [
    `${plural(report.files, 'page')} of ${shortSize(report.bytes)}, ${shortSize(report.wireBytes)} as stored; ${count(report.cut)} cut at ${shortSize(report.maxBodyBytes)}`,
    `Node ${report.node}, ${report.cpu}`,
    `${plural(report.measuredPages, 'page')} measured in ${(report.measuredMs / 1_000).toFixed(1)} s, after a warm-up of ${count(report.warmUpPages)}`,
    ...notes(report),
    head('parse workers', 'pages/s', 'MB/s', 'busy'),
    row(plural(report.threads, 'thread'), short(report.pagesPerSecond), short(report.mbPerSecond)),
    ...report.perThread.map((thread, index) => row(`  thread ${index + 1}`, short(thread.pagesPerSecond), short(thread.mbPerSecond), percent(thread.busy))),
    row('main thread', '', '', percent(report.mainBusy)),
    head('us a page', 'p50', 'p95', 'p99', 'share'),
    ...report.stages.filter(({ pages }) => pages > 0).map((stage) => row(stage.name, ...cellsOf(stage), percent(stage.share))),
    row('whole page', ...cellsOf(report.page), percent(1)),
    head('ring waits, us', 'p50', 'p95', 'p99'),
    row('worker for a page', ...cellsOf(report.waits.workerForPage)),
    row('page for a worker', ...cellsOf(report.waits.pageForWorker)),
    `  (the ring is kept full: ${report.waits.slots} slots)`,
    ...comparisonLines(report),
    ...(report.cpuProfiles === undefined ? [] : ['\nCPU profiles (they make everything above slower):', ...report.cpuProfiles.map((file) => `  ${file}`)]),
  ]
  return `${lines.join('\n')}\n`
}

function cellsOf({ p50Us, p95Us, p99Us }: TimesReport): readonly string[] {
  return [p50Us, p95Us, p99Us].map(short)
}

function notes({ skipped, leftOut, failures, workersLost }: ProfileReport): string[] {
  return [
    ...(skipped > 0 ? [`${count(skipped)} skipped: they could not be read`] : []),
    ...(leftOut > 0 ? [`${plural(leftOut, 'file')} left out, in whole or in part: enough is held`] : []),
    ...Object.entries(failures).map(([code, pages]) => `${plural(pages, 'page')} failed: ${code}`),
    ...(workersLost > 0 ? [`${plural(workersLost, 'worker')} lost`] : []),
  ]
}

function comparisonLines({ comparison, comparisonOf, scannerWithStrings }: ProfileReport): string[] {
  if (comparisonOf === undefined || scannerWithStrings === undefined) return []
  const [scanner, ...others] = comparison
  const lines = [...(scanner === undefined ? [] : [scanner]), { name: ' with strings', ...scannerWithStrings }, ...others]
  return [
    head('parsers, one thread', 'pages/s', 'MB/s', 'x parse5', 'least', 'most'),
    ...lines.map(({ name, pagesPerSecond, mbPerSecond, ratio, ratioMin, ratioMax }) =>
      row(name, short(pagesPerSecond), short(mbPerSecond), short(ratio), short(ratioMin), short(ratioMax))),
    `  (${plural(comparisonOf.pages, 'page')} of ${shortSize(comparisonOf.bytes)}, inflated before; ${plural(comparisonOf.rounds, 'round')}, medians)`,
    '  each finds links, title, base, metas, lengths of text and script:',
    ...comparison.map(({ name }) => `  ${name.padEnd(NAME_CHARS)}${parsers[name].does}`),
  ]
}

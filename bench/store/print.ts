/** What was measured, as a table with a column for each run, the ratios to its first one, and what it says of a billion URLs. */
import { rowOperations, type Measured } from './job.ts'

const MB = 1_048_576
const BILLION = 1e9

const rows: readonly (readonly [string, (measured: Measured) => number, number])[] = [
  ['pages claimed and committed', ({ pages }) => pages, 0],
  ['opening the store (ms)', ({ openMs }) => openMs, 1],
  ['opening the scheduler on it (ms)', ({ schedulerOpenMs }) => schedulerOpenMs, 0],
  ['pages/s', ({ pages, elapsedMs }) => pages / elapsedMs * 1_000, 0],
  ['CPU a page (microseconds)', ({ pages, cpuMs, serverCpuMs }) => (cpuMs + serverCpuMs) / pages * 1_000, 1],
  ['  of that the main thread', ({ pages, mainCpuMs }) => mainCpuMs / pages * 1_000, 1],
  ['  of that a server', ({ pages, serverCpuMs }) => serverCpuMs / pages * 1_000, 1],
  ['pages per CPU second', pagesPerCpuSecond, 0],
  ['row operations per CPU second', (measured) => rowOperations(measured) / (measured.cpuMs + measured.serverCpuMs) * 1_000, 0],
  ['longest stall of the loop (ms)', ({ stallMsMax }) => stallMsMax, 0],
  ['peak memory, own, with a server (MB)', ({ peakOwnBytes, serverOwnBytes }) => (peakOwnBytes + serverOwnBytes) / MB, 0],
  ['peak memory, mapped files (MB)', ({ peakFileBytes }) => peakFileBytes / MB, 0],
  ['bytes in use for each URL, when filled', ({ usedBytesFilled, filledUrls }) => usedBytesFilled / filledUrls, 1],
  ['file (MB)', ({ fileBytes }) => fileBytes / MB, 0],
  ['read from the disk for each page (KB)', ({ readBytes, pages }) => readBytes / pages / 1_024, 1],
  ['major page faults for each page', ({ majorFaults, pages }) => majorFaults / pages, 2],
]

function pagesPerCpuSecond({ pages, cpuMs, serverCpuMs }: Measured): number {
  return pages / (cpuMs + serverCpuMs) * 1_000
}

export function print(runs: readonly (readonly [string, Measured])[]): void {
  console.log(`${''.padEnd(42)}${runs.map(([name]) => name.padStart(16)).join('')}`)
  for (const [name, of, digits] of rows) console.log(`${name.padEnd(42)}${runs.map(([, run]) => cell(of(run), digits)).join('')}`)
  const [[, first]] = runs as [readonly [string, Measured]]
  console.log(`${'pages per CPU second, to the first column'.padEnd(42)}${runs.map(([, run]) => cell(pagesPerCpuSecond(run) / pagesPerCpuSecond(first), 2)).join('')}`)
}

function cell(value: number, digits: number): string {
  return (Number.isNaN(value) ? '-' : value.toFixed(digits)).padStart(16)
}

/**
 * From the run with a limited page cache, where a page costs its CPU and waits for its faults. Assumed: a quarter of the
 * file in memory there too, the same links, a disk that answers as this one did, and as many leaves read for a page: what
 * is above the leaves, a hundredth of a tree, stays in memory.
 */
export function printProjection({ pages, elapsedMs, majorFaults, readBytes, usedBytes, queued }: Measured, urls: number): void {
  const gb = usedBytes / queued * BILLION / 1e9
  console.log(`projected to ${BILLION} queued URLs from ${urls}, not measured: ${gb.toFixed(0)} GB on disk, and with ${(gb / 4).toFixed(0)} GB of it in memory `
    + `${(majorFaults / pages).toFixed(1)} page faults and ${(readBytes / pages / 1_024).toFixed(0)} KB read for each page, `
    + `${(pages / elapsedMs * 1_000).toFixed(0)} pages/s as measured here, when the disk answers as fast and each page reads as many leaves.`)
}

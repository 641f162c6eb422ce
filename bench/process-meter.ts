/**
 * What a process used, as the operating system counts it. Linux has the parts (main thread, anonymous and shared
 * memory) under /proc; elsewhere only the sums are known.
 */
import { readFileSync } from 'node:fs'

const CLOCK_TICK_MS = 10 // USER_HZ is 100 on every Linux that Node supports

export interface Memory {
  /** Anonymous and shared pages: what the process itself takes. */
  readonly ownBytes: number
  /** Pages of mapped files: the store. */
  readonly fileBytes: number
}

/** Of a process by its id, where the system tells. */
export function memoryOf(pid: number | 'self'): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1_024
  return { ownBytes: field('RssAnon') + field('RssShmem'), fileBytes: field('RssFile') }
}

export function memoryNow(): Memory {
  try {
    return memoryOf('self')
  } catch {
    return { ownBytes: process.memoryUsage.rss(), fileBytes: 0 }
  }
}

/** CPU milliseconds of the main thread, user and system; undefined where the system does not tell. */
export function mainThreadCpuMs(): number | undefined {
  try {
    return cpuMsIn(`/proc/self/task/${process.pid}/stat`, 2)
  } catch {
    return undefined
  }
}

/** CPU milliseconds of another process, all its threads, and of its children that ended. */
export function processCpuMsOf(pid: number): number {
  return cpuMsIn(`/proc/${pid}/stat`, 4)
}

/** User and system time, and with four fields those of children that ended too. */
function cpuMsIn(file: string, fields: 2 | 4): number {
  const stat = readFileSync(file, 'utf8')
  const times = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 11 + fields).map(Number)
  return times.reduce((sum, ticks) => sum + ticks, 0) * CLOCK_TICK_MS
}

/** What was read from the disk for this process, and how often it waited for a page of a mapped file. Zeros where the system does not tell. */
export function pagingNow(): { readonly readBytes: number; readonly majorFaults: number } {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const majorFaults = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[9])
    return { readBytes: Number(/^read_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))![1]), majorFaults }
  } catch {
    return { readBytes: 0, majorFaults: 0 }
  }
}

/** CPU milliseconds of the whole process. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Samples memory until `stop`, which answers the peaks of each quarter of the time that has passed. */
export function watchMemory(everyMs = 100): { stop(): { peak: Memory; quarters: readonly number[] } } {
  const samples: Memory[] = [memoryNow()]
  const timer = setInterval(() => samples.push(memoryNow()), everyMs)
  return {
    stop() {
      clearInterval(timer)
      const quarter = Math.max(1, Math.ceil(samples.length / 4))
      const quarters = [0, 1, 2, 3].map((i) => peakOf(samples.slice(i * quarter, (i + 1) * quarter), 'ownBytes'))
      return { peak: { ownBytes: peakOf(samples, 'ownBytes'), fileBytes: peakOf(samples, 'fileBytes') }, quarters }
    },
  }
}

function peakOf(part: readonly Memory[], key: keyof Memory): number {
  return Math.max(0, ...part.map((sample) => sample[key]))
}

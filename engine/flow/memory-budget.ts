/**
 * The memory that the whole process may hold, and how it is shared out. Each stage's own bound is the clamp while memory
 * is plenty (from 512 MB on); a smaller budget makes all of them smaller. Pure functions; the guard is memory-guard.ts.
 *
 *   |<- 8: code, heap, store ->|<- 8: workers' heaps ->|<- 4: slots ->|<- 4: bodies ->|<- 4: sockets ->|<- 3: commit ->|1|
 *                                                                                                 consumer's window -----^
 */
import { availableParallelism } from 'node:os'
import { SluiceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { CrawlOptions } from '../core/options.ts'
import { slotCountFor, slotsBytes } from '../../threads/arena.ts'
import { memoryAllowedBytes } from './machine.ts'

/** Of the budget, in parts of 32. `base` is what is there before the first page: no bound is made of it. */
const shares = { base: 8, workers: 8, slots: 4, bodies: 4, sockets: 4, commit: 3, window: 1 } as const

/** What of the machine's memory a crawl takes when it is not told: the rest is the page cache, where the store lies, and others. */
const SHARE_OF_MACHINE = 0.6

export interface MemoryBudget {
  /** For all together; infinite when there is no bound. */
  readonly bytes: number
  readonly slots: number
  readonly bodyBytes: number
  readonly socketsMax: number
  /** A batch's worth of outcomes; three of them may be in memory: one that is being stored, and a queue of two. */
  readonly commitBytes: number
  readonly windowBytes: number
  readonly workerHeapMb: number
}

type Wanted = Pick<CrawlOptions, 'maxBodyBytes' | 'memoryBytes' | 'threads'>

/**
 * Shares the memory out.
 *
 * @throws SluiceError `bad_option` when the shares of slots and bodies cannot hold a few bodies of `maxBodyBytes`
 */
export function memoryBudgetOf({ maxBodyBytes, memoryBytes, threads }: Wanted, allowedBytes = memoryAllowedBytes()): MemoryBudget {
  const bytes = memoryBytes > 0 ? memoryBytes : Math.max(limits.memoryBytesMin, Math.floor(allowedBytes * SHARE_OF_MACHINE))
  const shareOf = (name: keyof typeof shares): number => bytes * shares[name] / 32
  const slots = slotCountFor(maxBodyBytes, Math.min(limits.arenaBytesMax, shareOf('slots')))
  const needed = slotsBytes(maxBodyBytes, limits.slotsMin) + maxBodyBytes
  if (needed > shareOf('slots') + shareOf('bodies')) throw tooSmall(bytes, maxBodyBytes, needed)
  return {
    bytes, slots,
    bodyBytes: Math.max(maxBodyBytes, Math.min(limits.bodyBytesInFlightMax, Math.floor(shareOf('bodies')))),
    socketsMax: Math.max(1, Math.floor(shareOf('sockets') / limits.socketBytes)),
    commitBytes: Math.min(limits.commitBytesMax, Math.floor(shareOf('commit') / 3)),
    windowBytes: Math.floor(Math.min(limits.windowBytesMax, shareOf('window'))),
    workerHeapMb: workerHeapMbOf(shareOf('workers') / workersOf(threads)),
  }
}

/** A worker needs a heap to start at all: the least is more than a small budget's share. */
function workerHeapMbOf(shareBytes: number): number {
  return Math.min(limits.workerHeapMb, Math.max(limits.workerHeapMbMin, Math.floor(shareBytes / 1_048_576)))
}

/** Parse workers: as many as asked for, else one less than there are processors. */
export function workersOf(threads: number): number {
  return threads > 0 ? threads : Math.max(1, availableParallelism() - 1)
}

function mb(bytes: number): string {
  return `${Math.ceil(bytes / 1_048_576)}MB`
}

function tooSmall(bytes: number, maxBodyBytes: number, needed: number): SluiceError {
  const least = needed * 32 / (shares.slots + shares.bodies)
  return new SluiceError('bad_option', `--memory: expected at least ${mb(least)} for a --max-body of ${mb(maxBodyBytes)}, given ${mb(bytes)}`)
}

/**
 * What is remembered of suspects from one process to the next: `in-hand/suspects.json` in the crawl directory. It is
 * there only while there are suspects. Main thread.
 *
 * Invariants: the file is replaced as a whole, so a death leaves the old one or the new one; what does not read as this
 * version's is taken as no suspects. It cannot fail a crawl: without it a page may end the process once more.
 */
import * as fs from 'node:fs'
import { limits } from './core/limits.ts'

export interface KnownSuspect {
  /** The queue row in hexadecimal, and the sequence: as `Store.queued` takes them. */
  readonly row: string
  readonly sequence: number
  /** For people, and as a check: the address, or how it begins. */
  readonly url: string
  /** Deaths of the process while it read this page alone. */
  readonly deaths: number
  /** The page is being read alone. */
  readonly isAlone: boolean
}

const VERSION = 1

export function readSuspects(file: string): KnownSuspect[] {
  try {
    const { version, suspects } = JSON.parse(fs.readFileSync(file, 'utf8')) as { version: unknown; suspects: unknown }
    return version === VERSION && Array.isArray(suspects) ? suspects.filter(isSuspect).slice(0, limits.suspectsMax) : []
  } catch {
    return []
  }
}

function isSuspect(value: unknown): value is KnownSuspect {
  if (typeof value !== 'object' || value === null) return false
  const { row, sequence, url, deaths, isAlone } = value as Record<string, unknown>
  return typeof row === 'string' && /^(?:[\da-f]{2}){1,64}$/.test(row) && isCount(sequence) && typeof url === 'string' && isCount(deaths) && typeof isAlone === 'boolean'
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export function writeSuspects(file: string, suspects: readonly KnownSuspect[]): void {
  try {
    if (suspects.length === 0) return fs.rmSync(file, { force: true })
    fs.writeFileSync(`${file}.new`, `${JSON.stringify({ version: VERSION, suspects })}\n`)
    fs.renameSync(`${file}.new`, file)
  } catch {
    // A full disk: the crawl is told by its store, and the old file stands.
  }
}

/** Stand-ins for what the command line works with: a terminal that can be read, and snapshots of a crawl. */
import type { LatencySummary, Pressure, Stats, Summary } from '../../engine/core/api-types.ts'
import { noCounters, type Counters } from '../../engine/core/types.ts'

/**
 * A terminal that understands what the screen writes: line feed, carriage return, cursor up, erase to the end of the
 * line and of the screen, cursor hidden and shown. Anything else with an escape is a mistake.
 */
export class FakeTerminal {
  readonly isTTY = true
  readonly columns: number
  readonly rows: number
  isCursorShown = true
  writes = 0
  #lines: string[] = ['']
  #row = 0
  #column = 0

  constructor(columns = 80, rows = 24) {
    this.columns = columns
    this.rows = rows
  }

  /** What stands on the screen, without the empty line of the cursor. */
  get lines(): readonly string[] {
    return this.#lines.at(-1) === '' ? this.#lines.slice(0, -1) : this.#lines
  }

  write(text: string): boolean {
    this.writes += 1
    // oxlint-disable-next-line no-control-regex -- a terminal is controlled by control characters
    for (const [part] of text.matchAll(/\u001B\[[?\d]*[A-Za-z]|\n|\r|[^\u001B\n\r]+/g)) this.#take(part)
    return true
  }

  #take(part: string): void {
    // oxlint-disable-next-line no-control-regex -- as above
    const up = /^\u001B\[(\d+)A$/.exec(part)
    if (part === '\n') this.#feed()
    else if (part === '\r') this.#column = 0
    else if (up !== null) this.#row = Math.max(0, this.#row - Number(up[1]))
    else if (part === '\u001B[K') this.#lines[this.#row] = this.#lines[this.#row]!.slice(0, this.#column)
    else if (part === '\u001B[0J') this.#lines = [...this.#lines.slice(0, this.#row), this.#lines[this.#row]!.slice(0, this.#column)]
    else if (part === '\u001B[?25l') this.isCursorShown = false
    else if (part === '\u001B[?25h') this.isCursorShown = true
    else if (part.startsWith('\u001B')) throw new Error(`a sequence that this terminal does not know: ${JSON.stringify(part)}`)
    else this.#print(part)
  }

  #feed(): void {
    this.#row += 1
    this.#column = 0
    if (this.#row === this.#lines.length) this.#lines.push('')
  }

  #print(text: string): void {
    const line = this.#lines[this.#row]!
    if (this.#column + text.length > this.columns) throw new Error(`a line wraps: ${text}`)
    this.#lines[this.#row] = line.slice(0, this.#column).padEnd(this.#column) + text + line.slice(this.#column + text.length)
    this.#column += text.length
  }
}

export const noRefusals = noCounters.refused

export function countersWith(given: Partial<Counters> = {}): Counters {
  return { ...noCounters, ...given }
}

const nothingTook: LatencySummary = { count: 0, meanMs: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0 }

export const noPressure: Pressure = {
  stages: [], blockedForMs: 0, blockedMs: {}, blockedChanges: 0, workerUtilizations: [],
  latencies: { queueAge: nothingTook, ttfb: nothingTook, fetch: nothingTook, parse: nothingTook, commit: nothingTook },
}

const noneFull = { host_full: 0, domain_full: 0, queue_full: 0, store_full: 0 }

export function statsWith(given: Partial<Stats> = {}): Stats {
  return {
    ...countersWith(), state: 'running', blockedOn: 'nothing', leased: 0, inFlight: 0, hosts: 0, retryShare: 0, networkDowns: 0, networkDownMs: 0, hostsUnhealthy: 0, hostsGivenUp: 0, hostsParked: 0,
    fetches: 0, commitLagMs: 0, challenged: 0, blocked: 0, shed: { isShedding: false, deferred: {}, dropped: noneFull, refused: noneFull }, loopUtilization: 0, workersLost: 0, linksDroppedKnown: 0, durability: 'commit',
    store: { commits: 0, rowsWritten: 0, linksKnown: 0, linksLookedUp: 0, linksNew: 0, bytesUsed: 0, fileBytes: 0 }, bounds: [], pressure: noPressure, residentBytes: 0, elapsedMs: 0, ...given,
  }
}

export function summaryWith(given: Partial<Summary> = {}): Summary {
  return { ...countersWith(), state: 'complete', pagesThisRun: 0, fetchesThisRun: 0, parked: 0, elapsedMs: 0, ...given }
}

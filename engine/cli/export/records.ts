/**
 * Queue, hosts and failures out of the store, as records: names and times as in page records, absent facts absent. Reads
 * a part of a table each turn, as far as it was filled when the store was opened; what came in since is left out. What
 * was changed since is told as it is when its turn comes. A URL that leaves the queue, or is put off, in the meantime may
 * be missing; none comes twice. Invariant: one part is held at a time.
 */
import type { HostRecord, RobotsVerdict, RowsPart, Store } from '../../../storage/store.ts'
import type { QueuedUrl } from '../../core/types.ts'

/** Rows of a part. Those of the queue hold several URLs, those of hosts come with their robots.txt. */
const rowsMax = { queue: 256, pages: 1_024, hosts: 64 } as const

/** A URL in the queue. Times are ISO 8601. */
export interface QueueRecord {
  readonly url: string
  readonly host: string
  /** Absent: a page. */
  readonly kind?: 'sitemap'
  readonly depth: number
  /** 0 is first. */
  readonly priority: number
  /** Fetches that were charged to it so far. */
  readonly attempts: number
  readonly referrer?: string
  readonly redirectedFrom?: readonly string[]
  /** Over its domain's budget: its turn comes when nothing else has one. */
  readonly later?: true
  /** It is tried again at this time. */
  readonly notBefore?: string
  /** Order of arrival over the whole crawl. */
  readonly sequence: number
}

/** What is remembered of a host. */
export interface HostLine extends Omit<HostRecord, 'name' | 'robots' | 'answered' | 'limitMemory' | 'backoffUntilMs' | 'retryAfterUntilMs' | 'givenUp' | 'parked'> {
  readonly host: string
  /** It rests until then: as the crawl chose, and as the server asked. */
  readonly backoffUntil?: string
  readonly retryAfterUntil?: string
  readonly givenUpCode?: string
  readonly givenUpAt?: string
  readonly parkedCode?: string
  readonly parkedPrice?: string
  readonly parkedAt?: string
  /** By origin: what robots.txt allows there, as far as it is known. */
  readonly robots?: Readonly<Record<string, { readonly rule: string; readonly status?: number; readonly crawlDelayMs?: number; readonly expiresAt: string }>>
}

/** A URL whose last outcome is `failed`. */
export interface FailureRecord {
  readonly url: string
  readonly host: string
  /** Absent: a page. */
  readonly kind?: 'sitemap'
  readonly code?: string
  /** Of the last answer; absent when no server answered. */
  readonly status?: number
  readonly fetchedAt: string
  readonly depth: number
  readonly priority: number
  /** It is tried again at this time. */
  readonly dueAt?: string
}

export function* queueRecords(store: Store): Generator<readonly QueueRecord[], void> {
  const { nextSequence } = store
  for (const rows of partsOf((cursor) => store.queueRows(cursor, rowsMax.queue))) {
    yield rows.filter(({ sequence }) => sequence < nextSequence).map(queueRecord)
  }
}

function queueRecord(row: QueuedUrl & { readonly notBeforeMs?: number }): QueueRecord {
  const { url, host, kind, depth, priority, attempts, referrer, redirectedFrom, isLater, notBeforeMs, sequence } = row
  return {
    url, host, ...(kind && { kind }), depth, priority, attempts, ...(referrer !== undefined && { referrer }), ...(redirectedFrom && { redirectedFrom }),
    ...(isLater && { later: isLater }), ...(notBeforeMs !== undefined && { notBefore: iso(notBeforeMs) }), sequence,
  }
}

export function* hostRecords(store: Store): Generator<readonly HostLine[], void> {
  const { commitNumber } = store
  for (const rows of partsOf((cursor) => store.hostRows(cursor, rowsMax.hosts))) {
    yield rows.filter(({ since = 0 }) => since <= commitNumber).map(({ since: _since, ...host }) => hostLine(host))
  }
}

function hostLine({ name, robots, answered: _answered, limitMemory: _limitMemory, backoffUntilMs, retryAfterUntilMs, givenUp, parked, ...facts }: HostRecord): HostLine {
  return {
    host: name, ...facts,
    ...(backoffUntilMs !== undefined && { backoffUntil: iso(backoffUntilMs) }), ...(retryAfterUntilMs !== undefined && { retryAfterUntil: iso(retryAfterUntilMs) }),
    ...(givenUp && { givenUpCode: givenUp.code, givenUpAt: iso(givenUp.atMs) }),
    ...(parked && { parkedCode: parked.code, ...(parked.price !== undefined && { parkedPrice: parked.price }), parkedAt: iso(parked.atMs) }),
    ...(robots && { robots: Object.fromEntries(Object.entries(robots).map(verdictOf)) }),
  }
}

function verdictOf([origin, { rule, status, crawlDelayMs, expiresAtMs }]: [string, RobotsVerdict[string]]): [string, NonNullable<HostLine['robots']>[string]] {
  return [origin, { rule, ...(status !== undefined && { status }), ...(crawlDelayMs !== undefined && { crawlDelayMs }), expiresAt: iso(expiresAtMs) }]
}

/** `nowMs`: the wall clock when the store was opened. A URL that was fetched again since is left out. */
export function* failureRecords(store: Store, nowMs: number): Generator<readonly FailureRecord[], void> {
  for (const rows of partsOf((cursor) => store.pageRows(cursor, rowsMax.pages))) {
    yield rows.filter(({ page }) => page.outcome === 'failed' && page.fetchedAtMs <= nowMs).map(({ host, page }) => {
      const { url, kind, code, status, fetchedAtMs, depth, priority, due } = page
      return {
        url, host, ...(kind && { kind }), ...(code !== undefined && { code }), ...(status !== 0 && { status }), fetchedAt: iso(fetchedAtMs), depth, priority,
        ...(due && { dueAt: iso(due.atMs) }),
      }
    })
  }
}

function* partsOf<T>(read: (cursor: Uint8Array | undefined) => RowsPart<T>): Generator<readonly T[], void> {
  let cursor: Uint8Array | undefined
  do {
    const part = read(cursor)
    yield part.rows
    cursor = part.cursor
  } while (cursor !== undefined)
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

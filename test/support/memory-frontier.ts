/**
 * What the scheduler asks of a store, in memory and without any cleverness: rows in an array for each host. It keeps
 * the contract of `storage/store.ts` as a scheduler sees it, so that a test can say what is left to do.
 */
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { Claim, HostRecord, HostUpdate, Store } from '../../storage/store.ts'

interface Row {
  readonly url: QueuedUrl
  readonly notBeforeMs: number
}

type Known = Omit<HostUpdate, 'name' | 'pending'>

export class MemoryFrontier implements Pick<Store, 'claim' | 'host' | 'hostsWithWork'> {
  readonly #rows = new Map<string, Map<number, Row>>()
  readonly #known = new Map<string, Known>()
  #sequence = 0
  /** Host records read, to bound what a scheduler asks for. */
  recordsRead = 0

  /** Host records written. */
  recordsWritten = 0

  /** Adds so many URLs of a host, and answers them. */
  add(host: string, count = 1, isLater = false, priority = 0): readonly QueuedUrl[] {
    const rows = this.#rows.get(host) ?? new Map<number, Row>()
    this.#rows.set(host, rows)
    return Array.from({ length: count }, () => {
      const sequence = this.#sequence++
      const url: QueuedUrl = {
        row: new Uint8Array(), fingerprint: new Uint8Array(16), host, sequence, url: `http://${host}/${sequence}`, depth: 0, priority, attempts: 0, ...(isLater && { isLater }),
      }
      rows.set(sequence, { url, notBeforeMs: 0 })
      return url
    })
  }

  note(host: string, known: Known): void {
    this.recordsWritten += 1
    this.#known.set(host, { ...this.#known.get(host), ...known })
    if (!this.#rows.has(host)) this.#rows.set(host, new Map())
  }

  /** A URL has its outcome. */
  end({ host, sequence }: QueuedUrl): void {
    if (this.#rows.get(host)?.delete(sequence) !== true) throw new Error(`row ${sequence} of ${host} ended twice`)
  }

  defer(url: QueuedUrl, notBeforeMs: number): void {
    this.end(url)
    const { isLater: _isLater, ...rest } = url
    this.#rows.get(url.host)!.set(url.sequence, { url: { ...rest, attempts: url.attempts + 1 }, notBeforeMs })
  }

  /** URLs without an outcome. */
  get pending(): number {
    let pending = 0
    for (const rows of this.#rows.values()) pending += rows.size
    return pending
  }

  rowsOf(host: string): readonly QueuedUrl[] {
    return [...(this.#rows.get(host)?.values() ?? [])].map((row) => row.url)
  }

  /** Those that may be claimed. */
  dueRowsOf(host: string, nowMs: number): readonly QueuedUrl[] {
    return [...(this.#rows.get(host)?.values() ?? [])].filter(({ notBeforeMs }) => notBeforeMs <= nowMs).map(({ url }) => url)
  }

  host(name: string): HostRecord | undefined {
    const rows = this.#rows.get(name)
    if (rows === undefined) return undefined
    const known = Object.entries(this.#known.get(name) ?? {}).filter(([, fact]) => fact !== undefined)
    return { ...Object.fromEntries(known), name, pending: rows.size }
  }

  hostsWithWork(cursor: Uint8Array | undefined, limit: number): { hosts: readonly HostRecord[]; cursor?: Uint8Array } {
    const after = cursor === undefined ? '' : Buffer.from(cursor).toString()
    const names = [...this.#rows].filter(([name, rows]) => rows.size > 0 && name > after).map(([name]) => name).sort()
    const hosts = names.slice(0, limit).map((name) => this.host(name)!)
    this.recordsRead += hosts.length
    return names.length > limit ? { hosts, cursor: Buffer.from(hosts.at(-1)!.name) } : { hosts }
  }

  claim(host: string, { limit, nowMs, leased, isWithoutDeferred = false }: { limit: number; nowMs: number; leased: ReadonlySet<number>; isWithoutDeferred?: boolean }): Claim {
    const urls: QueuedUrl[] = []
    let nextDueAtMs = Number.POSITIVE_INFINITY
    const rows = [...this.#rows.get(host)?.values() ?? []].toSorted((one, other) => rankOf(one) - rankOf(other))
    for (const { url, notBeforeMs } of rows) {
      if (notBeforeMs > nowMs || (isWithoutDeferred && notBeforeMs > 0)) nextDueAtMs = Math.min(nextDueAtMs, notBeforeMs)
      else if (!leased.has(url.sequence) && urls.length < limit) urls.push(url)
    }
    return nextDueAtMs === Number.POSITIVE_INFINITY ? { urls } : { urls, nextDueAtMs }
  }
}

/** The first class before the later one, then by priority; the order of arrival stays. */
function rankOf({ url }: Row): number {
  return (url.isLater === true ? 1_000 : 0) + url.priority
}

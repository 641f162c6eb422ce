/**
 * Tables as those see them who look at every row: exports and requeue. A part each turn. Invariant: between two parts
 * nothing is held of a table, so that no reader keeps old pages of the file from being used again for long. Main thread;
 * reads only.
 */
import { SluiceError } from '../../engine/core/errors.ts'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { AgainUrl, HostRecord, PageRow, RowsPart } from '../store.ts'
import { decodePageRow, factsOfHostRow, nameOfHostRow } from './codec.ts'
import type { Table, Tables } from './environment.ts'
import { readHost } from './hosts.ts'
import { after, fingerprintOfSeen, hostKeyOf, isDeferredRow, keyText, notBeforeMsOf } from './layout.ts'
import { decodeQueueRow } from './queue-row.ts'

/** Of the half second that a part may take; its last row, a robots.txt of 500 KB or a page fault, may need the rest. */
const PART_MS_MAX = 250

type Row = { readonly key: Uint8Array; readonly value: Uint8Array }

/** At most `limit` rows from after `cursor`, each made into as many things as it holds; fewer when time is up. */
export function part<T>(
  table: Pick<Table, 'entries' | 'letGo'>, { cursor, limit }: PartOf, read: (row: Row) => readonly T[], nowMs = (): number => performance.now(),
): RowsPart<T> {
  const endMs = nowMs() + PART_MS_MAX
  const rows: T[] = []
  let last: Uint8Array | undefined
  let count = 0
  for (const row of table.entries({ limit, ...(cursor && { start: after(cursor) }) })) {
    rows.push(...read(row))
    count += 1
    if (count < limit && nowMs() < endMs) continue
    last = new Uint8Array(row.key)
    break
  }
  table.letGo()
  return last === undefined ? { rows } : { rows, cursor: last }
}

interface PartOf {
  readonly cursor: Uint8Array | undefined
  readonly limit: number
}

export function queueRows(tables: Tables, cursor: Uint8Array | undefined, limit: number): RowsPart<QueuedUrl & { readonly notBeforeMs?: number }> {
  const names = new Map<string, string>()
  const nameOf = (key: Uint8Array): string => {
    const id = keyText(key)
    let name = names.get(id)
    if (name === undefined) {
      const row = tables.hosts.get(key)
      if (row === undefined) throw new SluiceError('store_corrupt', 'a host that has rows in the queue has no record')
      names.set(id, name = nameOfHostRow(row))
    }
    return name
  }
  return part(tables.queue, { cursor, limit }, ({ key, value }) => {
    const notBefore = isDeferredRow(key) ? { notBeforeMs: notBeforeMsOf(key) } : {}
    return decodeQueueRow(new Uint8Array(key), value, nameOf(hostKeyOf(key))).map(({ url }) => ({ ...url, ...notBefore }))
  })
}

export function pageRows(tables: Tables, cursor: Uint8Array | undefined, limit: number): RowsPart<AgainUrl & { readonly page: PageRow }> {
  return part(tables.pages, { cursor, limit }, ({ key, value }) => {
    const page = decodePageRow(value)
    return [{ host: hostOfUrl(page.url), fingerprint: fingerprintOfSeen(new Uint8Array(key)), page }]
  })
}

export function hostRows(tables: Tables, cursor: Uint8Array | undefined, limit: number): RowsPart<HostRecord & { readonly since?: number }> {
  return part(tables.hosts, { cursor, limit }, ({ key, value }) => {
    const { since } = factsOfHostRow(value)
    return [{ ...readHost(tables, key)!, ...(since !== undefined && { since: since as number }) }]
  })
}

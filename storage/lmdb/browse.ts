/**
 * Tables as those see them who look at every row: exports, requeue, check. A part each turn, so that no reader keeps old
 * pages of the file from being used again for long. Main thread; reads only.
 */
import { SluiceError } from '../../engine/core/errors.ts'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import type { AgainUrl, HostRecord, PageRow, RowsPart } from '../store.ts'
import { decodePageRow, nameOfHostRow } from './codec.ts'
import type { Table, Tables } from './environment.ts'
import { readHost } from './hosts.ts'
import { after, fingerprintOfSeen, hostKeyOf, isDeferredRow, keyText, notBeforeMsOf } from './layout.ts'
import { decodeQueueRow } from './queue-row.ts'

type Row = { readonly key: Uint8Array; readonly value: Uint8Array }

/** At most `limit` rows from after `cursor`, each made into as many things as it holds. */
function part<T>(table: Table, cursor: Uint8Array | undefined, limit: number, read: (row: Row) => readonly T[]): RowsPart<T> {
  const rows: T[] = []
  let last: Uint8Array | undefined
  let count = 0
  for (const row of table.entries({ limit, ...(cursor && { start: after(cursor) }) })) {
    rows.push(...read(row))
    last = new Uint8Array(row.key)
    count += 1
  }
  return last === undefined || count < limit ? { rows } : { rows, cursor: last }
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
  return part(tables.queue, cursor, limit, ({ key, value }) => {
    const notBefore = isDeferredRow(key) ? { notBeforeMs: notBeforeMsOf(key) } : {}
    return decodeQueueRow(new Uint8Array(key), value, nameOf(hostKeyOf(key))).map(({ url }) => ({ ...url, ...notBefore }))
  })
}

export function pageRows(tables: Tables, cursor: Uint8Array | undefined, limit: number): RowsPart<AgainUrl & { readonly page: PageRow }> {
  return part(tables.pages, cursor, limit, ({ key, value }) => {
    const page = decodePageRow(value)
    return [{ host: hostOfUrl(page.url), fingerprint: fingerprintOfSeen(new Uint8Array(key)), page }]
  })
}

export function hostRows(tables: Tables, cursor: Uint8Array | undefined, limit: number): RowsPart<HostRecord> {
  return part(tables.hosts, cursor, limit, ({ key }) => [readHost(tables, key)!])
}

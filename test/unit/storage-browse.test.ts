/** Tables read in parts. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { part } from '../../storage/lmdb/browse.ts'
import type { KeyRange } from '../../storage/lmdb/environment.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import type { RowsPart } from '../../storage/store.ts'
import { emptyBatch, ended, linkList, newUrl } from '../contract/store-batch.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-browse-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

/** Rows 1 to `count`; reading one takes `rowMs` of a clock. */
function slowTable(count: number, rowMs: number) {
  let ms = 0
  let letGo = 0
  const table = {
    * entries({ start, limit = Number.POSITIVE_INFINITY }: KeyRange = {}) {
      // A key that is longer than those of rows stands behind the row that it begins with.
      for (let row = start === undefined ? 1 : start[0]! + start.length - 1; row <= count && limit > 0; row += 1, limit -= 1) {
        ms += rowMs
        yield { key: Uint8Array.of(row), value: new Uint8Array(0) }
      }
    },
    letGo: () => { letGo += 1 },
  }
  return { table, nowMs: () => ms, timesLetGo: () => letGo }
}

test.each([[0, 4], [100, 7], [400, 20]])('parts of rows that take %i ms each hold every row once, and nothing is held between them', (rowMs, partsMin) => {
  const { table, nowMs, timesLetGo } = slowTable(20, rowMs)
  const rows: number[] = []
  let parts = 0
  let cursor: Uint8Array | undefined
  do {
    const before = nowMs()
    const read: RowsPart<number> = part(table, { cursor, limit: 6 }, ({ key }) => [key[0]!], nowMs)
    rows.push(...read.rows)
    parts += 1
    cursor = read.cursor
    expect(nowMs() - before).toBeLessThanOrEqual(Math.max(500, rowMs))
    expect(timesLetGo()).toBe(parts)
  } while (cursor !== undefined)
  expect(rows).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  expect(parts).toBeGreaterThanOrEqual(partsMin)
})

test('a host names the commit that met it first, whatever becomes of it later', async () => {
  const store = await openStore(path.join(dir, 'hosts'))
  await store.commit(emptyBatch({ added: [newUrl('http://a.test/')] }))
  const since = store.commitNumber
  const [url] = store.claim('a.test', { limit: 1, nowMs: 0, leased: new Set() }).urls
  await store.commit(emptyBatch({ ended: [ended(url!, { links: linkList(['http://b.test/']) })], hosts: [{ name: 'a.test', limit: 2 }] }))
  await store.commit(emptyBatch({ hosts: [{ name: 'c.test', excluded: true }, { name: 'a.test', failures: 1 }] }))
  const rows = store.hostRows(undefined, 10).rows.map(({ name, since }) => [name, since])
  expect(rows.sort()).toEqual([['a.test', since], ['b.test', since + 1], ['c.test', since + 2]])
  expect(store.host('a.test')).toEqual({ name: 'a.test', pending: 0, limit: 2, failures: 1 })
  await store.close()
})

/** Compacting a store, killed at every step; and what is found in a store that does not agree with itself. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'lmdb'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { compactStore } from '../../storage/lmdb/compact.ts'
import type { TableName } from '../../storage/lmdb/environment.ts'
import { dueKey, seenKey } from '../../storage/lmdb/layout.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, newUrl } from '../contract/store-batch.ts'
import { hostHashOf } from '../../engine/core/url-key.ts'
import { run } from '../support/processes.ts'

const child = fileURLToPath(new URL('./store-compact-child.mjs', import.meta.url))
let dir: string

beforeEach(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-compact-'))
  const store = await openStore(dir)
  store.setScope('any', (host) => host)
  await store.setCaps({ queuedPerDomainMax: 1e6 })
  for (const host of ['a.test', 'b.test']) {
    await store.commit(emptyBatch({ added: Array.from({ length: 400 }, (_, index) => newUrl(`http://${host}/${index}`)) }))
    const { urls } = store.claim(host, { limit: 300, nowMs: 0, leased: new Set() })
    await store.commit(emptyBatch({ ended: urls.map((url) => ended(url, { due: { atMs: 1_000_000 + url.sequence, intervalMs: 9 } })) }))
  }
  await store.close()
})
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

const storeFiles = (): string[] => fs.readdirSync(path.join(dir, 'store')).toSorted()
const size = (): number => fs.statSync(path.join(dir, 'store', 'data.mdb')).size

async function opened<T>(use: (store: LmdbStore) => T | Promise<T>, readOnly = false): Promise<T> {
  const store = await openStore(dir, { readOnly })
  store.setScope('any', (host) => host)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

async function isWhole(): Promise<void> {
  await opened(async (store) => {
    expect(await store.check()).toMatchObject({ mended: [], problems: [], rows: { seen: 800, pages: 600, due: 600, ready: 2 } })
    expect(store.counters()).toMatchObject({ discovered: 800, pending: 200, done: 600 })
    expect(store.claim('a.test', { limit: 1e6, nowMs: 0, leased: new Set() }).urls).toHaveLength(100)
  })
  expect(storeFiles()).toEqual(['data.mdb', 'lock.mdb'])
}

test('a compact store is smaller, has the same rows, and is written on', async () => {
  const before = size()
  const { bytesBefore, bytesAfter } = await compactStore(dir)
  expect([bytesBefore, bytesAfter]).toEqual([before, size()])
  expect(bytesAfter).toBeLessThan(before)
  await isWhole()
  await opened((store) => store.commit(emptyBatch({ added: [newUrl('http://c.test/')] })))
  expect(await opened((store) => store.counters().pending, true)).toBe(201)
})

test.each(['begin', 'copied', 'synced', 'counted', 'renamed'])('a kill at the step "%s" leaves the old store or the new one, whole', async (step) => {
  const before = size()
  expect(await run([child, dir, step]).ended).toMatchObject({ signal: 'SIGKILL' })
  expect(size() < before).toBe(step === 'renamed')
  if (step === 'begin') expect(storeFiles()).toEqual(['data.mdb', 'lock.mdb'])
  else expect(storeFiles()).toContain('compacted')
  if (step === 'copied') expect(await compactStore(dir)).toMatchObject({ bytesBefore: before })
  await isWhole()
})

test('whatever lies in the place of the copy is removed, and where there is no store none is made', async () => {
  const copy = path.join(dir, 'store', 'compacted')
  fs.writeFileSync(copy, 'a file, and no directory')
  await compactStore(dir)
  await isWhole()
  await expect(compactStore(path.join(dir, 'none'))).rejects.toMatchObject({ code: 'no_crawl' })
  expect(fs.existsSync(path.join(dir, 'none'))).toBe(false)
})

/** Changes rows behind the store's back. */
async function tamper(change: (put: (table: TableName, key: Uint8Array, value?: Uint8Array) => Promise<unknown>) => Promise<unknown>): Promise<void> {
  const options = { encoding: 'binary', keyEncoding: 'binary' } as const
  const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, maxDbs: 12, ...options })
  await change((name, key, value) => {
    const table = root.openDB<Uint8Array, Uint8Array>({ name, ...options })
    return value === undefined ? table.remove(key) : table.put(key, value)
  })
  await root.close()
}

const keyOf = (url: string): Uint8Array => {
  const { host, fingerprint } = newUrl(url)
  return seenKey(hostHashOf(host), fingerprint)
}
const urlOf = (state: 'pending' | 'done'): Promise<{ readonly url: string; readonly key: Uint8Array; readonly atMs: number }> => opened((store) => {
  const [row] = state === 'pending' ? store.queueRows(undefined, 1).rows : store.pageRows(undefined, 1).rows.map(({ page }) => ({ url: page.url, due: page.due }))
  return { url: row!.url, key: keyOf(row!.url), atMs: 'due' in row! ? row.due!.atMs : 0 }
}, true)

test('counts that do not agree with the rows are told, and mended when the store is opened for writing', async () => {
  await tamper(async (put) => {
    await put('ready', hostHashOf('a.test'), Uint8Array.of(0, 0, 0, 7))
    await put('ready', hostHashOf('gone.test'), Uint8Array.of(0, 0, 0, 1))
    await put('domains', hostHashOf('b.test'), Uint8Array.of(0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 2))
  })
  const told = await opened((store) => store.check(), true)
  expect(told.problems).toEqual([])
  expect(told.mended).toEqual(expect.arrayContaining([
    'URLs of host a.test: 7 were counted, there are 100', expect.stringMatching(/^URLs of host \w{16}: 1 were counted, there are 0$/),
    'URLs of domain b.test: 9 were counted, there are 100', 'domains that link to domain b.test: 2 were counted, there are 0',
  ]))
  expect(await opened((store) => store.check())).toEqual(told)
  await isWhole()
})

test('a counter alone that is wrong is mended too', async () => {
  await tamper(async (put) => {
    const state = await opened((store) => ({ counters: { ...store.counters(), done: 1, discovered: 5 }, sequence: store.nextSequence, commitNumber: 9, clean: true }), true)
    await put('meta', Buffer.from('state'), Buffer.from(JSON.stringify(state)))
  })
  expect((await opened((store) => store.check())).mended).toEqual(['URLs that are done: 1 were counted, there are 600', 'URLs discovered: 5 were counted, there are 800'])
  await isWhole()
})

test.each([
  ['a queued URL that was never seen', 'pending', 'seen', undefined, / is in the queue, and was never seen$/],
  ['a queued URL that has ended', 'pending', 'seen', Uint8Array.of(1, 0), / is in the queue, and its state is done$/],
  ['a state that is none', 'pending', 'seen', Uint8Array.of(77), /^seen row \w{48}: a seen row has an unknown state$/],
  ['an ended URL without its page', 'done', 'pages', undefined, /^600 URLs have ended, and 599 of them have a page row$/],
  ['a page that does not decode', 'done', 'pages', Uint8Array.of(1, 2, 3), /^pages row \w{48}: a row of the store ends too early$/],
  ['a page of another outcome', 'done', 'seen', Uint8Array.of(2, 3), / is failed, and its page row says ok$/],
  ['a page that was never seen', 'done', 'seen', undefined, / has a page row and was never seen$/],
] as const)('%s is told of', async (...[, state, table, value, expected]) => {
  const { key } = await urlOf(state)
  await tamper((put) => put(table, key, value))
  expect((await opened((store) => store.check(), true)).problems).toContainEqual(expect.stringMatching(expected))
})

test('an index of due pages that lacks one, or has one more, is told of', async () => {
  const { url, key, atMs } = await urlOf('done')
  await tamper(async (put) => {
    await put('due', dueKey(atMs, key))
    await put('due', dueKey(77, key), new Uint8Array(0))
  })
  expect((await opened((store) => store.check(), true)).problems).toEqual([`${url} is due at ${atMs}, and is not in the index`, `a page is due at 77 and its row says ${atMs}`])
})

test('of many findings the first are told, and the others counted', async () => {
  await tamper(async (put) => { for (let index = 0; index < 250; index += 1) await put('robots', hostHashOf(`${index}.test`), Buffer.from('no JSON')) })
  const { problems } = await opened((store) => store.check(), true)
  expect([problems.length, problems.at(-1)]).toEqual([101, 'and 150 more like these'])
})

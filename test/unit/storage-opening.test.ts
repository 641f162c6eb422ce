import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { open } from 'lmdb'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { KnownTable } from '../../storage/known.ts'
import { checkDataFile } from '../../storage/lmdb/data-file.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl, pageRow } from '../contract/store-batch.ts'

let dir: string
let data: string

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-opening-'))
  data = path.join(dir, 'store', 'data.mdb')
})

afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

async function made(use: (store: LmdbStore) => Promise<unknown> = () => Promise.resolve()): Promise<void> {
  const store = await openStore(dir)
  await use(store)
  await store.close()
}

async function commitPages(store: LmdbStore, count: number): Promise<void> {
  await store.commit(emptyBatch({ added: Array.from({ length: count }, (_, index) => newUrl(`http://a.test/${index}`)) }))
  const { urls } = store.claim('a.test', { limit: count, nowMs: 0, leased: new Set() })
  await store.commit(emptyBatch({ ended: urls.map((url) => ended(url, { page: pageRow(url.url) })) }))
}

test('a store of an unknown layout is refused and left byte for byte as it was', async () => {
  await made()
  const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, encoding: 'binary', keyEncoding: 'binary' })
  await root.openDB<Uint8Array, Uint8Array>({ name: 'meta', encoding: 'binary', keyEncoding: 'binary' }).put(Buffer.from('layout'), Uint8Array.of(0, 0, 0, 99))
  await root.close()
  const before = fs.readFileSync(data)
  await expect(openStore(dir)).rejects.toMatchObject({ code: 'store_version' })
  expect(fs.readFileSync(data).equals(before)).toBe(true)
})

test('a store that is older than a counter or a reason has 0 of it, and counts on', async () => {
  await made((store) => commitPages(store, 2))
  const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, encoding: 'binary', keyEncoding: 'binary' })
  const meta = root.openDB<Uint8Array, Uint8Array>({ name: 'meta', encoding: 'binary', keyEncoding: 'binary' })
  const state = JSON.parse(Buffer.from(meta.get(Buffer.from('state'))!).toString()) as { counters: { nearDuplicates?: number; refused: { near_duplicate?: number } } }
  delete state.counters.nearDuplicates
  delete state.counters.refused.near_duplicate
  await meta.put(Buffer.from('state'), Buffer.from(JSON.stringify(state)))
  await root.close()
  await made(async (store) => {
    expect(store.counters()).toMatchObject({ done: 2, nearDuplicates: 0, refused: { near_duplicate: 0 } })
    await store.commit(emptyBatch({ added: [newUrl('http://a.test/late')] }))
    const { urls } = store.claim('a.test', { limit: 1, nowMs: 0, leased: new Set() })
    await store.commit(emptyBatch({ ended: [ended(urls[0]!, { isNearDuplicate: true, refused: { near_duplicate: 3 } })] }))
    expect(store.counters()).toMatchObject({ done: 3, nearDuplicates: 1, refused: { near_duplicate: 3 } })
  })
})

test('a data file that was emptied is no store: its crawl’s results are not deleted for want of a committed length', async () => {
  await made((store) => commitPages(store, 3))
  const pages = path.join(dir, 'pages-000001.jsonl')
  const before = fs.readFileSync(pages)
  fs.truncateSync(data, 0)
  await expect(openStore(dir)).rejects.toMatchObject({ code: 'dir_unusable' })
  expect(fs.readFileSync(pages).equals(before)).toBe(true)
  expect(fs.statSync(data).size).toBe(0)
  fs.rmSync(pages)
  // lmdb-js reads such a file with SIGSEGV.
  await expect(openStore(dir, { readOnly: true })).rejects.toMatchObject({ code: 'no_crawl' })
  await made()
})

test('a store whose maker died before its first rows holds no crawl for a reader, and is made by the next writer', async () => {
  await made()
  const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, encoding: 'binary', keyEncoding: 'binary' })
  await root.openDB<Uint8Array, Uint8Array>({ name: 'meta', encoding: 'binary', keyEncoding: 'binary' }).clearAsync()
  await root.close()
  await expect(openStore(dir, { readOnly: true })).rejects.toMatchObject({ code: 'no_crawl' })
  await made((store) => commitPages(store, 1))
})

test('a data file that was cut anywhere within its used pages is corrupt, not a signal', async () => {
  await made((store) => commitPages(store, 300))
  const whole = fs.readFileSync(data)
  const lastPage = Math.max(...[0, 4096].map((at) => Number(whole.readBigUInt64LE(at + 144))))
  for (const length of [100, 4_096, 8_192, Math.floor(lastPage / 2) * 4_096, lastPage * 4_096, (lastPage + 1) * 4_096 - 1]) {
    fs.writeFileSync(data, whole.subarray(0, length))
    await expect(openStore(dir)).rejects.toMatchObject({ code: 'store_corrupt' })
  }
  fs.writeFileSync(data, whole.subarray(0, (lastPage + 1) * 4_096))
  await made(async (store) => expect(await faultsOf(store)).toEqual([]))
})

test('a data file that is something else is corrupt', async () => {
  await made()
  const size = fs.statSync(data).size
  for (const bytes of [Buffer.alloc(size, 7), Buffer.alloc(size)]) {
    fs.writeFileSync(data, bytes)
    await expect(openStore(dir)).rejects.toMatchObject({ code: 'store_corrupt' })
  }
})

test('a healthy file passes the check after every commit, although LMDB leaves some a few pages short', async () => {
  await made(async (store) => {
    for (let round = 0; round < 60; round += 1) {
      const count = 1 + (round * 37) % 90
      await store.commit(emptyBatch({ added: Array.from({ length: count }, (_, index) => newUrl(`http://h${index % 7}.test/${round}/${index}`)) }))
      for (const { name } of store.hostsWithWork(undefined, 3).hosts) {
        const { urls } = store.claim(name, { limit: 40, nowMs: 0, leased: new Set() })
        await store.commit(emptyBatch({ ended: urls.map((url) => ended(url, { page: pageRow(url.url) })) }))
      }
      checkDataFile(data)
      expect(fs.statSync(data).size).toBeGreaterThan(2 * 1024 * 1024)
    }
  })
})

test('a directory that cannot be one is unusable', async () => {
  fs.writeFileSync(path.join(dir, 'file'), '')
  await expect(openStore(path.join(dir, 'file'))).rejects.toMatchObject({ code: 'dir_unusable' })
  await expect(openStore(path.join(dir, 'file', 'below'))).rejects.toMatchObject({ code: 'dir_unusable' })
})

test('a new store does not delete the results of a crawl whose store is gone', async () => {
  await made((store) => commitPages(store, 3))
  fs.rmSync(path.join(dir, 'store'), { recursive: true })
  await expect(openStore(dir)).rejects.toMatchObject({ code: 'dir_unusable' })
  expect(fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8').split('\n')).toHaveLength(4)
})

test('opening to read needs a crawl, and changes nothing: an unclean stop stays one', async () => {
  await expect(openStore(dir, { readOnly: true })).rejects.toMatchObject({ code: 'no_crawl' })
  expect(fs.readdirSync(dir)).toEqual([])
  // A copy of the files of an open store is what a killed process leaves.
  const killed = `${dir}-killed`
  await made(async (store) => {
    await commitPages(store, 3)
    fs.cpSync(dir, killed, { recursive: true })
  })
  fs.rmSync(dir, { recursive: true })
  dir = killed
  fs.appendFileSync(path.join(dir, 'pages-000001.jsonl'), '{"half":')
  for (let time = 0; time < 2; time += 1) {
    const reader = await openStore(dir, { readOnly: true })
    expect(reader.openedUnclean).toBe(true)
    expect(reader.counters()).toMatchObject({ done: 3 })
    await expect(reader.commit(emptyBatch())).rejects.toMatchObject({ code: 'internal' })
    await reader.close()
  }
  expect(fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8')).toContain('half')
  await made((store) => Promise.resolve(expect(store.openedUnclean).toBe(true)))
  await made((store) => Promise.resolve(expect(store.openedUnclean).toBe(false)))
})

test('opening cuts every sink file to its committed length and deletes files that have none', async () => {
  const warc = path.join(dir, 'warc')
  fs.mkdirSync(warc)
  await made(async (store) => {
    expect(store.warcFileFirst).toBe(1)
    await commitPages(store, 2)
    fs.writeFileSync(path.join(warc, 'sluice-000001.warc.gz'), 'committed, not')
    await store.commit(emptyBatch({ warcLengths: new Map([[1, 9]]) }))
    await store.commit(emptyBatch({ warcLengths: new Map([[1, 4]]) }))
    fs.writeFileSync(path.join(warc, 'sluice-000002.warc.gz'), 'never committed')
    fs.writeFileSync(path.join(warc, 'notes.txt'), 'mine')
  })
  const lines = fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8')
  fs.appendFileSync(path.join(dir, 'pages-000001.jsonl'), '{"url":"half')
  fs.writeFileSync(path.join(dir, 'pages-000002.jsonl'), '{"url":"lost"}\n')
  await made(async (store) => {
    expect(store.warcFileFirst).toBe(2)
    await store.commit(emptyBatch({ added: [newUrl('http://b.test/')] }))
    const [url] = store.claim('b.test', { limit: 1, nowMs: 0, leased: new Set() }).urls
    await store.commit(emptyBatch({ ended: [ended(url!)] }))
  })
  expect(fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8')).toBe(`${lines}{"url":"http://b.test/","newLinks":0}\n`)
  expect(fs.readdirSync(dir).sort()).toEqual(['pages-000001.jsonl', 'store', 'warc'])
  expect(fs.readdirSync(warc).sort()).toEqual(['notes.txt', 'sluice-000001.warc.gz'])
  expect(fs.readFileSync(path.join(warc, 'sluice-000001.warc.gz'), 'utf8')).toBe('committed')
})

test('a page file that someone shortened or took away is not written again, a new one is begun', async () => {
  await made((store) => commitPages(store, 2))
  fs.truncateSync(path.join(dir, 'pages-000001.jsonl'), 10)
  const again = async (host: string): Promise<void> => made(async (store) => {
    await store.commit(emptyBatch({ added: [newUrl(`http://${host}/`)] }))
    await store.commit(emptyBatch({ ended: [ended(store.claim(host, { limit: 1, nowMs: 0, leased: new Set() }).urls[0]!)] }))
  })
  await again('b.test')
  expect(fs.statSync(path.join(dir, 'pages-000001.jsonl')).size).toBe(10)
  expect(fs.readFileSync(path.join(dir, 'pages-000002.jsonl'), 'utf8')).toBe('{"url":"http://b.test/","newLinks":0}\n')
  fs.rmSync(path.join(dir, 'pages-000002.jsonl'))
  await again('c.test')
  expect(fs.readFileSync(path.join(dir, 'pages-000003.jsonl'), 'utf8')).toBe('{"url":"http://c.test/","newLinks":0}\n')
})

test.each(['pages-000009.jsonl/', 'warc'])('what stands in the place of a sink’s file, %s, is refused with a code', async (name) => {
  await made()
  const place = path.join(dir, name)
  if (name.endsWith('/')) fs.mkdirSync(place)
  else fs.writeFileSync(place, '')
  await expect(openStore(dir)).rejects.toMatchObject({ code: 'dir_unusable', message: expect.stringContaining(dir) as unknown })
})

test('page files rotate at their size between batches, and every line is there once', async () => {
  const store = await openStore(dir, { jsonlFileBytesMax: 100 })
  for (let batch = 0; batch < 4; batch += 1) await commitOne(store, batch)
  await store.close()
  const files = fs.readdirSync(dir).filter((name) => name.endsWith('.jsonl')).sort()
  expect(files).toEqual(['pages-000001.jsonl', 'pages-000002.jsonl'])
  const lines = files.flatMap((name) => fs.readFileSync(path.join(dir, name), 'utf8').trim().split('\n'))
  expect(lines.map((line) => (JSON.parse(line) as { newLinks: number }).newLinks)).toEqual([1, 1, 1, 1])
})

test('a page file that is deleted while it is written fails the commit: its pages would be stored nowhere', async () => {
  const store = await openStore(dir)
  await commitOne(store, 1)
  fs.rmSync(dir, { recursive: true })
  await expect(commitOne(store, 2)).rejects.toMatchObject({ code: 'disk_failed', message: expect.stringContaining('deleted') as unknown })
  await store.close()
})

async function commitOne(store: LmdbStore, index: number): Promise<void> {
  await store.commit(emptyBatch({ added: [newUrl(`http://h${index}.test/`)] }))
  const [url] = store.claim(`h${index}.test`, { limit: 1, nowMs: 0, leased: new Set() }).urls
  await store.commit(emptyBatch({ ended: [ended(url!, { links: linkList([`http://h${index}.test/next`]) })] }))
}

test('a WARC file is never cut below what was committed', async () => {
  fs.mkdirSync(path.join(dir, 'warc'))
  const file = path.join(dir, 'warc', 'sluice-000001.warc.gz')
  await made(async (store) => {
    fs.writeFileSync(file, '0123456789')
    await store.commit(emptyBatch({ warcLengths: new Map([[1, 4]]) }))
    await store.cutWarc(1, 6)
    expect(fs.readFileSync(file, 'utf8')).toBe('012345')
    await expect(store.cutWarc(1, 3)).rejects.toMatchObject({ code: 'internal' })
    fs.writeFileSync(file.replace('1.', '2.'), 'lost')
    await store.cutWarc(2, 0)
    expect(fs.existsSync(file.replace('1.', '2.'))).toBe(false)
  })
})

test('the known table learns new and seen links after the commit, and never what was refused', async () => {
  const known = KnownTable.create()
  const store = await openStore(dir, { known })
  store.setScope('host', (host) => host)
  const [inside, outside, seed] = [newUrl('http://a.test/in'), newUrl('http://b.test/out'), newUrl('http://a.test/')]
  const adding = store.commit(emptyBatch({ added: [seed], scope: ['a.test'] }))
  expect(known.has(seed.fingerprint)).toBe(false)
  await adding
  expect(known.has(seed.fingerprint)).toBe(true)
  const [url] = store.claim('a.test', { limit: 1, nowMs: 0, leased: new Set() }).urls
  await store.commit(emptyBatch({ ended: [ended(url!, { links: linkList([inside.url, outside.url]) })] }))
  expect([inside, outside].map(({ fingerprint }) => known.has(fingerprint))).toEqual([true, false])
  await store.close()

  const learned = KnownTable.create()
  const again = await openStore(dir, { known: learned })
  await again.commit(emptyBatch({ added: [seed] }))
  expect(learned.has(seed.fingerprint)).toBe(true)
  await again.close()
})

test('pages and states are found under host and fingerprint', async () => {
  await made(async (store) => {
    const [first, second] = [newUrl('http://a.test/1'), newUrl('http://a.test/2')]
    await store.commit(emptyBatch({ added: [first, second] }))
    const page = pageRow(first.url, { code: 'http_503', status: 503, outcome: 'http_error', contentHash: new Uint8Array(16).fill(3), etag: '"ü"', lastModified: 'Mon' })
    const [url] = store.claim('a.test', { limit: 1, nowMs: 0, leased: new Set() }).urls
    await store.commit(emptyBatch({ ended: [ended(url!, { page, outcome: 'http_error' })] }))
    expect(store.page('a.test', first.fingerprint)).toEqual(page)
    expect(store.page('a.test', second.fingerprint)).toBeUndefined()
    expect([first, second].map(({ fingerprint }) => store.state('a.test', fingerprint))).toEqual(['done', 'pending'])
    expect(store.state('b.test', first.fingerprint)).toBeUndefined()
  })
})

test('a command that changes the store of a crawl that had died leaves that known', async () => {
  await made()
  const visit = async (): Promise<boolean> => {
    const store = await openStore(dir, { isVisit: true })
    await store.commit(emptyBatch({ hosts: [{ name: 'a.test', excluded: true }] }))
    await store.close()
    return store.openedUnclean
  }
  expect([await visit(), await visit()]).toEqual([false, false])
  const died = await openStore(dir)
  const copy = path.join(dir, 'copy.mdb')
  fs.copyFileSync(data, copy)
  await died.close()
  fs.renameSync(copy, data)
  expect([await visit(), await visit()]).toEqual([true, true])
  await made()
  expect(await visit()).toBe(false)
})

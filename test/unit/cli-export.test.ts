/** What an export holds in each format, and where it goes. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { failureColumns, hostColumns, pageColumns, queueColumns } from '../../engine/cli/export/columns.ts'
import { exportKinds, runExport } from '../../engine/cli/export/export.ts'
import { writeToFile } from '../../engine/cli/export/output.ts'
import { noLinks } from '../../engine/core/types.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, linkList, newUrl } from '../contract/store-batch.ts'

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-export-'))
afterAll(() => fs.rmSync(base, { recursive: true }))

const columns = { pages: pageColumns, queue: queueColumns, hosts: hostColumns, failures: failureColumns }

/** A crawl with a row of every kind: queued, put off, tried again, ended well and badly. */
async function makeCrawl(dir: string): Promise<void> {
  const store = await openStore(dir)
  await store.commit(emptyBatch({ added: ['http://a.test/', 'http://b.test/', 'http://c.test/', 'http://d.test/'].map((url) => newUrl(url)) }))
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => store.claim(`${name}.test`, { limit: 1, nowMs: 0, leased: new Set() }).urls[0]!)
  await store.commit(emptyBatch({
    ended: [
      ended(a!, { page: { status: 200 }, links: linkList(['http://a.test/1,"x"', 'https://e.test/']), line: lineOf({ url: a!.url, outcome: 'ok', title: 'Ä "quoted", title', record: { n: [1, null] } }) }),
      ended(b!, { outcome: 'failed', code: 'timeout', line: lineOf({ url: b!.url, outcome: 'failed', code: 'timeout' }), due: { atMs: 1_800_000_000_000, intervalMs: 1_000 } }),
      ended(d!, { outcome: 'failed', code: 'http_503', page: { status: 503 }, links: noLinks, line: lineOf({ url: d!.url, outcome: 'failed', code: 'http_503', status: 503 }) }),
    ],
    deferred: [{ url: c!, attempts: 2, notBeforeMs: 1_900_000_000_000, retry: true }],
    hosts: [{ name: 'a.test', limit: 2.5, robots: { 'http://a.test': { rule: 'rules', lines: '-/secret\n', status: 200, expiresAtMs: 1_700_000_000_000 } } }],
  }))
  const [again] = store.pageRows(undefined, 10).rows.filter(({ host }) => host === 'd.test')
  await store.commit(emptyBatch({ again: [again!] }))
  await store.commit(emptyBatch({ ended: [ended(store.claim('d.test', { limit: 1, nowMs: 0, leased: new Set() }).urls[0]!, { page: { status: 200 }, line: lineOf({ url: d!.url, outcome: 'ok', status: 200 }) })] }))
  await store.close()
}

function lineOf(facts: Record<string, unknown>): Buffer {
  return Buffer.from(JSON.stringify({ fetchedAt: '2026-01-02T03:04:05.678Z', depth: 0, attempts: 1, ...facts }).slice(0, -1))
}

describe('an export', () => {
  const dir = path.join(base, 'crawl')
  const read = async (what: (typeof exportKinds)[number], format: 'jsonl' | 'csv' | 'parquet'): Promise<Buffer> => {
    const output = path.join(base, `${what}.${format}`)
    expect(await runExport({ what, dir, format, output })).toBe(0)
    return fs.readFileSync(output)
  }
  const records = async (what: (typeof exportKinds)[number]) => (await read(what, 'jsonl')).toString().trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
  beforeEach(async () => { if (!fs.existsSync(dir)) await makeCrawl(dir) })

  it('of the queue has its URLs with what they are waiting for', async () => {
    const rows = await records('queue')
    expect(rows.toSorted((x, y) => (String(x['url']) < String(y['url']) ? -1 : 1))).toEqual([
      { url: 'http://a.test/1,%22x%22', host: 'a.test', depth: 1, priority: 1, attempts: 0, referrer: 'http://a.test/', sequence: expect.any(Number) },
      { url: 'http://c.test/', host: 'c.test', depth: 0, priority: 0, attempts: 2, notBefore: '2030-03-17T17:46:40.000Z', sequence: 3 },
      { url: 'https://e.test/', host: 'e.test', depth: 1, priority: 1, attempts: 0, referrer: 'http://a.test/', sequence: expect.any(Number) },
    ])
  })

  it('of hosts has what robots.txt means and not its text', async () => {
    const rows = await records('hosts')
    expect(rows.map(({ host }) => host).sort()).toEqual(['a.test', 'b.test', 'c.test', 'd.test', 'e.test'])
    expect(rows.find(({ host }) => host === 'a.test')).toEqual({
      host: 'a.test', pending: 1, limit: 2.5, robots: { 'http://a.test': { rule: 'rules', status: 200, expiresAt: '2023-11-14T22:13:20.000Z' } },
    })
  })

  it('of failures has the URLs whose last outcome is failed, and not one that was fetched later', async () => {
    expect(await records('failures')).toEqual([
      { url: 'http://b.test/', host: 'b.test', code: 'timeout', fetchedAt: '2023-11-14T22:13:20.000Z', depth: 0, priority: 0, dueAt: '2027-01-15T08:00:00.000Z' },
    ])
    expect((await records('pages')).map(({ url, outcome }) => [url, outcome])).toEqual([['http://a.test/', 'ok'], ['http://b.test/', 'failed'], ['http://d.test/', 'failed'], ['http://d.test/', 'ok']])
  })

  it.each(exportKinds)('of %s holds the same in each format', async (what) => {
    const rows = await records(what)
    const parquet = new Uint8Array(await read(what, 'parquet')).buffer
    const names = columns[what].map(({ name }) => name)
    expect(parquetMetadata(parquet).schema.slice(1).map(({ name }) => name)).toEqual(names)
    const plain = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value instanceof Date ? value.toISOString() : value)
    const cells = rows.map((row) => columns[what].map(({ name, read }) => [name, (read as (record: unknown) => unknown)(row) ?? null]))
    expect((await parquetReadObjects({ file: parquet })).map((row) => Object.entries(row).map(([name, value]) => [name, plain(value)]))).toEqual(cells)
    const [header, ...lines] = (await read(what, 'csv')).toString().trimEnd().split('\r\n')
    expect([header, lines.length]).toEqual([names.join(','), rows.length])
  })

  it('of a store without rows has its columns all the same', async () => {
    const empty = path.join(base, 'empty')
    await (await openStore(empty)).close()
    const output = path.join(base, 'empty.out')
    await runExport({ what: 'queue', dir: empty, format: 'csv', output })
    expect(fs.readFileSync(output, 'utf8')).toBe(`${queueColumns.map(({ name }) => name).join(',')}\r\n`)
    await runExport({ what: 'pages', dir: empty, format: 'csv', output })
    expect(fs.readFileSync(output, 'utf8')).toBe(`${pageColumns.map(({ name }) => name).join(',')}\r\n`)
    await runExport({ what: 'queue', dir: empty, format: 'parquet', output })
    expect(await parquetReadObjects({ file: new Uint8Array(fs.readFileSync(output)).buffer })).toEqual([])
  })

  it('as Parquet is not for a terminal', async () => {
    const { isTTY } = process.stdout
    Object.assign(process.stdout, { isTTY: true })
    try {
      await expect(runExport({ what: 'queue', dir, format: 'parquet' })).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(/^--output: expected a file/) })
    } finally {
      Object.assign(process.stdout, { isTTY })
    }
  })
})

describe('the file of an export', () => {
  let dir: string
  let file: string
  beforeEach(() => {
    dir = fs.mkdtempSync(path.join(base, 'out-'))
    file = path.join(dir, 'out.csv')
    fs.writeFileSync(file, 'old')
  })
  afterEach(() => vi.restoreAllMocks())

  async function* chunks(between: () => void): AsyncGenerator<string, void> {
    yield 'one,'
    between()
    yield 'two'
  }

  it('is there when it is whole, and the old one until then, also behind a link', async () => {
    const link = path.join(dir, 'link.csv')
    fs.symlinkSync(file, link)
    let before: string | undefined
    expect(await writeToFile(chunks(() => { before = fs.readFileSync(file, 'utf8') }), link)).toBe(true)
    expect([before, fs.readFileSync(file, 'utf8'), fs.readlinkSync(link)]).toEqual(['old', 'one,two', file])
    expect(fs.readdirSync(dir).sort()).toEqual(['link.csv', 'out.csv'])
  })

  it.each([['an error of what is exported', () => { throw new Error('no more') }], ['a signal', () => { process.emit('SIGINT') }]])('stays the old one after %s, and nothing is left beside it', async (_, between) => {
    const told = await writeToFile(chunks(between), file).catch((error: unknown) => (error as Error).message)
    expect([false, 'no more']).toContain(told)
    expect([fs.readFileSync(file, 'utf8'), fs.readdirSync(dir)]).toEqual(['old', ['out.csv']])
    expect(process.listenerCount('SIGINT')).toBe(0)
  })

  it('is written to as it is when it is a pipe', async () => {
    const pipe = path.join(dir, 'pipe')
    execFileSync('mkfifo', [pipe])
    const [whole, text] = await Promise.all([writeToFile(chunks(() => undefined), pipe), fs.promises.readFile(pipe, 'utf8')])
    expect([whole, text, fs.statSync(pipe).isFIFO()]).toEqual([true, 'one,two', true])
  })

  it('without a name, as an unset variable gives it, is refused with bad_option, and nothing is left', async () => {
    await expect(writeToFile(chunks(() => undefined), '')).rejects.toMatchObject({ code: 'bad_option' })
    expect(fs.readdirSync('.').filter((name) => name.endsWith('.part'))).toEqual([])
  })

  it.each([['is a directory', ''], ['lies in none', 'none/out.csv']])('that %s is refused with bad_option', async (_, name) => {
    await expect(writeToFile(chunks(() => undefined), path.join(dir, name))).rejects.toMatchObject({ code: 'bad_option' })
  })

  it('that does not fit on the disk is refused with disk_failed', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })
    await expect(writeToFile(chunks(() => { throw full }), file)).rejects.toMatchObject({ code: 'disk_failed' })
    expect(fs.readdirSync(dir)).toEqual(['out.csv'])
  })
})

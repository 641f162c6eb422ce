/** Exports by another process while the store goes on being written. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, ended, newUrl } from '../contract/store-batch.ts'
import { cliPath } from '../support/processes.ts'

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-export-'))
afterAll(() => fs.rmSync(base, { recursive: true }))

/** Long, so that no export of theirs fits into a pipe and the memory of who reads it. */
const names = Array.from({ length: 1_500 }, (_, index) => `host-${index}.${'long'.repeat(14)}.${'long'.repeat(14)}.${'long'.repeat(14)}.test`)

/** A crawl of 1,500 hosts, each with two URLs in the queue and one that failed. */
async function openCrawl(dir: string): Promise<LmdbStore> {
  const store = await openStore(dir)
  await store.commit(emptyBatch({ added: names.flatMap((name) => ['/', '/1', '/2'].map((path) => newUrl(`http://${name}${path}`))) }))
  const ends = names.flatMap((name) => store.claim(name, { limit: 1, nowMs: 0, leased: new Set() }).urls)
  await store.commit(emptyBatch({ ended: ends.map((url) => ended(url, { outcome: 'failed', code: 'timeout' })) }))
  return store
}

/** Ten commits that write rows all over the store anew, none more than there were. */
async function goOn(store: LmdbStore): Promise<void> {
  for (let commit = 0; commit < 10; commit += 1) {
    const some = names.filter((_, index) => index % 10 === commit)
    await store.commit(emptyBatch({ hosts: some.map((name) => ({ name, failures: commit })) }))
  }
}

/** The last page that the file has, by the newer of its two meta pages (see storage/lmdb/data-file.ts). */
function lastPage(dir: string): number {
  const file = fs.readFileSync(path.join(dir, 'store/data.mdb'))
  const metas = [0, file.readUInt32LE(48)].map((at) => ({ page: Number(file.readBigUInt64LE(at + 144)), transaction: file.readBigUInt64LE(at + 152) }))
  return metas.toSorted((a, b) => Number(b.transaction - a.transaction))[0]!.page
}

/** `pid thread transaction` for each process that has a place among the readers; `-` reads nothing now. */
function readersOf(dir: string): string {
  const source = "import { open } from 'lmdb'; process.stdout.write(open({ path: process.argv[1], noSubdir: false, readOnly: true, maxDbs: 12 }).readerList())"
  return execFileSync(process.execPath, ['--input-type=module', '-e', source, path.join(dir, 'store')], { encoding: 'utf8', cwd: path.dirname(cliPath) })
}

test.skipIf(!fs.existsSync('/dev/full'))('an export that does not fit where it goes says so in one line', async () => {
  const dir = path.join(base, 'full')
  await (await openStore(dir)).close()
  const full = fs.openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [cliPath, 'export', 'queue', '--format', 'csv', '--dir', dir], { stdio: ['ignore', full, 'pipe'] })
  fs.closeSync(full)
  let stderr = ''
  child.stderr!.on('data', (text: Buffer) => { stderr += text.toString() })
  expect(await once(child, 'close')).toEqual([1, null])
  expect(stderr).toMatch(/^sluice: disk_failed: standard output could not be written: ENOSPC[^\n]*\n$/)
})

test.each(['queue', 'hosts', 'failures'])('an export of %s that waits for its reader holds no page of the file, and has the rows of its start', async (what) => {
  const dir = path.join(base, what)
  const store = await openCrawl(dir)
  await goOn(store)
  const child = spawn(process.execPath, [cliPath, 'export', what, '--dir', dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'readable')
  // It reads on until pipe and memory are full. A reader that holds pages makes every round grow the file.
  const grown: number[] = []
  while (grown.at(-1) !== 0 && grown.length < 6) {
    const before = lastPage(dir)
    await goOn(store)
    grown.push(lastPage(dir) - before)
  }
  expect(grown.at(-1)).toBe(0)
  expect(readersOf(dir)).toMatch(new RegExp(`^ *${child.pid} \\S+ -$`, 'm'))

  const late = names.flatMap((name) => [newUrl(`http://${name}/late`), newUrl(`http://late-${name}/`)])
  await store.commit(emptyBatch({ added: late }))
  const ends = names.slice(0, 100).map((name) => store.claim(`late-${name}`, { limit: 1, nowMs: 0, leased: new Set() }).urls[0]!)
  await store.commit(emptyBatch({ ended: ends.map((url) => ended(url, { outcome: 'failed', code: 'timeout', atMs: Date.now() })) }))
  const output: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  expect(await once(child, 'close')).toEqual([0, null])
  const rows = Buffer.concat(output).toString().trimEnd().split('\n').map((line) => JSON.parse(line) as { url?: string; host: string })
  const expected = { queue: names.flatMap((name) => [`http://${name}/1`, `http://${name}/2`]), hosts: names, failures: names.map((name) => `http://${name}/`) }
  expect(rows.map(({ url, host }) => url ?? host).sort()).toEqual(expected[what as keyof typeof expected].toSorted())
  expect(readersOf(dir)).not.toMatch(new RegExp(`^ *${child.pid} `, 'm'))
  await store.close()
}, 30_000)

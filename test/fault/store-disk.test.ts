import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { expect, test } from 'vitest'
import { faultsOf } from '../contract/store-batch.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'

interface Report {
  readonly commits: number
  readonly withRoom?: string
  readonly counters: { readonly discovered: number; readonly done: number }
}

const child = new URL('store-limit-child.mjs', import.meta.url).pathname

/** Runs the child with no file larger than `kilobytes`: the write beyond fails with EFBIG, as on a full disk. */
async function runUntilFull(kilobytes: number, lineBytes: number): Promise<Report> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-full-'))
  const { stdout, signal } = spawnSync('bash', ['-c', `ulimit -S -f ${kilobytes}; exec "$0" "$@"`, process.execPath, child, dir, String(lineBytes)], { encoding: 'utf8', timeout: 50_000 })
  expect(signal).toBe(null)
  const report = JSON.parse(stdout) as Report
  expect(report).toMatchObject({ failed: 'disk_full', again: 'disk_full', isUnchanged: true, flushed: 'ok', closed: 'ok', unhandled: [] })
  expect(report.withRoom ?? 'ok').toBe('ok')
  expect(report.commits).toBeGreaterThan(0)
  const store = await openStore(dir)
  expect(store.counters()).toEqual(report.counters)
  expect(await faultsOf(store)).toEqual([])
  await store.close()
  const lines = fs.readFileSync(path.join(dir, 'pages-000001.jsonl'), 'utf8').split('\n').length - 1
  expect(lines).toBe(report.counters.done)
  fs.rmSync(dir, { recursive: true })
  return report
}

test('a data file that cannot grow refuses the commit with a code, takes the same batch when it can, and loses nothing', async () => {
  await runUntilFull(2_000, 10)
})

test('a page file that cannot grow refuses the commit likewise, and each line of the batch that was tried three times stands there once', async () => {
  await runUntilFull(2_000, 100_000)
})

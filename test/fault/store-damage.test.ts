/** What the command line and the store answer where the store cannot be used: a code, one line, and nothing changed. */
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { open } from 'lmdb'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { faultsOf, emptyBatch, newUrl } from '../contract/store-batch.ts'
import { reportError } from '../../engine/cli/lines.ts'
import { cliPath } from '../support/processes.ts'
import { Crawler } from '../../engine/index.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'

const checkChild = new URL('store-check-child.mjs', import.meta.url).pathname
const PAGE = 4_096

let dir: string
let data: string

beforeEach(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-damage-'))
  data = path.join(dir, 'store', 'data.mdb')
  const store = await openStore(dir)
  for (let round = 0; round < 5; round += 1) {
    await store.commit(emptyBatch({ added: Array.from({ length: 400 }, (_, index) => newUrl(`http://h${index % 40}.test/${round}/${index}`)) }))
  }
  await store.close()
})
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

/** `sluice crawl` in the directory, as a user who may not do everything. */
function crawl(): { readonly status: number | null; readonly stderr: string } {
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const { status, stderr } = spawnSync(process.execPath, [cliPath, 'crawl', 'http://a.test/', '--dir', dir, '--progress', 'none', '--max-time', '1s'], { encoding: 'utf8', timeout: 50_000, ...nobody })
  return { status, stderr }
}

/** Runs `use`, and finds every file of the store as it was, and the store sound. */
async function unchanged(use: () => unknown): Promise<void> {
  const before = fs.readFileSync(data)
  await use()
  expect(fs.readFileSync(data).equals(before)).toBe(true)
  const store = await openStore(dir)
  expect(store.counters().pending).toBe(2_000)
  expect(await faultsOf(store)).toEqual([])
  await store.close()
}

describe('a store that may not be used', () => {
  it.each([
    ['a directory that cannot be read', '.', 0o000, /permission denied/],
    ['a directory that cannot be written', '.', 0o555, /permission denied/],
    // lmdb-js would die of these two.
    ['a data file that cannot be written', 'store/data.mdb', 0o444, /permission denied.*data\.mdb/],
    ['a lock file that cannot be written', 'store/lock.mdb', 0o444, /permission denied.*lock\.mdb/],
  ])('says so in one line with its code and exit code 4: %s', async (_, name, mode, text) => {
    await unchanged(() => {
      for (const [each, open] of [['.', 0o777], ['store', 0o777], ['store/data.mdb', 0o666], ['store/lock.mdb', 0o666]] as const) fs.chmodSync(path.join(dir, each), open)
      fs.chmodSync(path.join(dir, name), mode)
      try {
        const { status, stderr } = crawl()
        expect(stderr).toMatch(/^sluice: dir_unusable: [^\n]+\n$/)
        expect(stderr).toMatch(text)
        expect(status).toBe(4)
      } finally {
        fs.chmodSync(path.join(dir, name), name.includes('/') ? 0o666 : 0o777)
      }
    })
  })
})

describe('a store of another version', () => {
  it.each([[1, /older version.*layout 1/], [99, /newer version.*layout 99/]])('says who made it, an older or a newer one, and is left as it was: %i', async (version, text) => {
    const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, encoding: 'binary', keyEncoding: 'binary' })
    await root.openDB<Uint8Array, Uint8Array>({ name: 'meta', encoding: 'binary', keyEncoding: 'binary' }).put(Buffer.from('layout'), Uint8Array.of(0, 0, 0, version))
    await root.close()
    const before = fs.readFileSync(data)
    await expect(openStore(dir)).rejects.toMatchObject({ code: 'store_version', message: expect.stringMatching(text) as unknown })
    await expect(openStore(dir, { readOnly: true })).rejects.toMatchObject({ code: 'store_version' })
    expect(fs.readFileSync(data).equals(before)).toBe(true)
  })
})

describe('a damaged data file', () => {
  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['cut', (bytes) => bytes.subarray(0, 20 * PAGE)],
    ['with two zeroed meta pages', (bytes) => bytes.fill(0, 0, 2 * PAGE)],
    // Found by the child, which LMDB ends by a signal.
    ['with every page behind the meta pages overwritten', (bytes) => bytes.fill(0, 2 * PAGE)],
  ])('is answered with its code and exit code 4, and as good as new when the bytes are back: %s', async (_, damage) => {
    await unchanged(() => {
      const whole = fs.readFileSync(data)
      fs.writeFileSync(data, damage(Buffer.from(whole)))
      fs.chmodSync(dir, 0o777)
      const { status, stderr } = spawnSync(process.execPath, [cliPath, 'crawl', 'http://a.test/', '--dir', dir, '--progress', 'none', '--max-time', '1s'], { encoding: 'utf8', timeout: 50_000 })
      fs.writeFileSync(data, whole)
      expect(stderr).toMatch(/^sluice: store_corrupt: [^\n]+\n$/)
      expect(status).toBe(4)
    })
  })

  it('that a command meets while it reads is told as such, and not as an error of ours', () => {
    const said: string[] = []
    const answer = reportError(new Error('MDB_CORRUPTED: Located page was wrong type'), false, { write: (text) => said.push(text) })
    expect([answer, said]).toEqual([4, ['sluice: store_corrupt: the store is damaged: MDB_CORRUPTED: Located page was wrong type\n']])
  })

  it('with every other page overwritten is never called sound by a check, whatever LMDB makes of them', async () => {
    const whole = fs.readFileSync(data)
    const lastPage = Math.max(...[0, PAGE].map((at) => Number(whole.readBigUInt64LE(at + 144))))
    await unchanged(() => {
      for (const fill of [0, 97, 255]) {
        const damaged = Buffer.from(whole)
        // Some pages are free, so many must be overwritten to hit those in use.
        for (let page = 3; page <= lastPage; page += 2) damaged.fill(fill, page * PAGE, (page + 1) * PAGE)
        fs.writeFileSync(data, damaged)
        const { stdout, signal } = spawnSync(process.execPath, [checkChild, dir], { encoding: 'utf8', timeout: 50_000 })
        expect(['problems', 'store_corrupt', 'SIGABRT', 'SIGSEGV', 'SIGBUS']).toContain(signal ?? stdout)
      }
      fs.writeFileSync(data, whole)
    })
  })
})

it('a crawl that finds its hosts gone as it opens says so, and gives the directory back', async () => {
  const root = open<Uint8Array, Uint8Array>({ path: path.join(dir, 'store'), overlappingSync: false, encoding: 'binary', keyEncoding: 'binary' })
  await root.openDB<Uint8Array, Uint8Array>({ name: 'hosts', encoding: 'binary', keyEncoding: 'binary' }).clearAsync()
  await root.close()
  await expect(Crawler.open({ dir, threads: 1 })).rejects.toMatchObject({ code: 'store_corrupt' })
  await expect(Crawler.open({ dir, threads: 1 })).rejects.toMatchObject({ code: 'store_corrupt' })
})

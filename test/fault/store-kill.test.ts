/**
 * Kills a committing process at random moments and looks at what it left. KILLS=200 for a longer run; SEED repeats one.
 */
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { expect, test } from 'vitest'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import { faultsOf } from '../contract/store-batch.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'

const kills = Number(process.env['KILLS'] ?? 20)
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31)
const child = new URL('store-kill-child.mjs', import.meta.url).pathname

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Starts the child, kills it `afterMs` after it has begun to commit, and resolves when it is gone. */
function killAfter(dir: string, childSeed: number, afterMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const running = spawn(process.execPath, [child, dir, String(childSeed)], { stdio: ['ignore', 'pipe', 'inherit'] })
    running.stdout.once('data', () => setTimeout(() => running.kill('SIGKILL'), afterMs))
    running.once('exit', (code, signal) => (signal === 'SIGKILL' ? resolve() : reject(new Error(`the child ended by itself: ${code}`))))
  })
}

function lines(dir: string, pattern: RegExp): string[] {
  return fs.readdirSync(dir).filter((name) => pattern.test(name)).sort()
    .flatMap((name) => fs.readFileSync(path.join(dir, name), 'utf8').split('\n').slice(0, -1))
}

test(`after each of ${kills} kills, counters, rows and files agree: each ended URL has one line in each sink (SEED=${seed})`, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-kill-'))
  const random = randomFrom(seed)
  let discovered = 0
  for (let round = 0; round < kills; round += 1) {
    await killAfter(dir, Math.floor(random() * 2 ** 32), random() * 150)
    const store = await openStore(dir)
    expect(store.openedUnclean).toBe(true)
    expect(await faultsOf(store)).toEqual([])
    const urls = lines(dir, /^pages-.*\.jsonl$/).map((line) => (JSON.parse(line) as { url: string }).url)
    expect(urls).toHaveLength(store.counters().done)
    expect(new Set(urls).size).toBe(urls.length)
    for (const url of urls) expect(store.state(hostOfUrl(url), fingerprintOf(url))).toBe('done')
    expect(lines(path.join(dir, 'warc'), /\.warc\.gz$/).sort()).toEqual(urls.sort())
    discovered = store.counters().discovered
    await store.close()
  }
  expect(discovered).toBeGreaterThan(4)
  fs.rmSync(dir, { recursive: true })
}, 30_000 + kills * 5_000)

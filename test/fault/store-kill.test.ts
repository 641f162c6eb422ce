/**
 * Kills a committing process at random moments and looks at what it left. KILLS=200 for a longer run; SEED repeats one.
 */
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { expect, test } from 'vitest'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { fingerprintOf, hostHashOf } from '../../engine/core/url-key.ts'
import { decodeDomain, type DomainCounts } from '../../storage/lmdb/domains.ts'
import { openEnvironment } from '../../storage/lmdb/environment.ts'
import { keyText } from '../../storage/lmdb/layout.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { checkVersion } from '../../storage/lmdb/state.ts'
import type { AgainUrl } from '../../storage/store.ts'
import { faultsOf } from '../contract/store-batch.ts'

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

/** Pages that are due by their own row and not in the queue, and those that the index of due times has. */
function dueFaults(store: LmdbStore): string[] {
  const keyOf = ({ host, fingerprint }: AgainUrl): string => `${host} ${Buffer.from(fingerprint).toString('hex')}`
  const byIndex = new Set(store.due(Number.MAX_SAFE_INTEGER, 1_000_000).map(keyOf))
  const byRow = store.pageRows(undefined, 1_000_000).rows.filter((row) => row.page.due !== undefined && store.state(row.host, row.fingerprint) !== 'pending').map(keyOf)
  expect(byRow.length).toBe(byIndex.size)
  return byRow.filter((key) => !byIndex.has(key))
}

/** What the queue holds of each domain, and in the first class, as the child names them. */
/** As the child has it. */
function domainOf(host: string): string {
  return host.split('.').slice(1).join('.')
}

function domainsOfQueue(store: LmdbStore): Map<string, { pending: number; first: number }> {
  const domains = new Map<string, { pending: number; first: number }>()
  for (const { host, isLater } of store.queueRows(undefined, 1_000_000).rows) {
    const counts = domains.get(domainOf(host)) ?? { pending: 0, first: 0 }
    domains.set(domainOf(host), { pending: counts.pending + 1, first: counts.first + (isLater === true ? 0 : 1) })
  }
  return domains
}

/** The rows of domains as they lie in the tables. */
async function domainRows(dir: string): Promise<{ readonly counts: ReadonlyMap<string, DomainCounts>; readonly links: ReadonlyMap<string, number> }> {
  const environment = openEnvironment(path.join(dir, 'store'), { readOnly: true }, checkVersion)!
  const counts = new Map([...environment.tables.domains.entries()].map(({ key, value }) => [keyText(key), decodeDomain(value)]))
  const links = new Map<string, number>()
  for (const key of environment.tables.domainLinks.keys()) links.set(keyText(key.subarray(0, 8)), (links.get(keyText(key.subarray(0, 8))) ?? 0) + 1)
  await environment.close()
  return { counts, links }
}

test(`after each of ${kills} kills or more, counters, rows, indexes and files agree: each end of a URL has one line in each sink (SEED=${seed})`, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-kill-'))
  const random = randomFrom(seed)
  const most = { discovered: 0, dropped: 0, refetched: 0, later: 0 }
  const unmet = (): unknown[] => Object.entries(most).filter(([, count]) => count <= 4)
  // A slow machine does less between two kills: it goes on until it has met what the rounds are about.
  for (let round = 0; round < kills || (unmet().length > 0 && round < 3 * kills); round += 1) {
    await killAfter(dir, Math.floor(random() * 2 ** 32), random() * 150)
    const store = await openStore(dir)
    store.setScope('any', domainOf)
    expect(store.openedUnclean).toBe(true)
    expect(await faultsOf(store)).toEqual([])
    expect(dueFaults(store)).toEqual([])
    const counters = store.counters()
    const records = lines(dir, /^pages-.*\.jsonl$/).map((line) => JSON.parse(line) as { url: string; id: string })
    const ids = records.map(({ id }) => id)
    expect(ids).toHaveLength(counters.pages)
    expect(new Set(ids).size).toBe(ids.length)
    // Those that ended and are not done are tried again, or lost their place in a full queue then.
    const ended = [...new Set(records.map(({ url }) => url))]
    expect(ended.filter((url) => store.state(hostOfUrl(url), fingerprintOf(url)) === 'done')).toHaveLength(counters.done)
    expect(lines(path.join(dir, 'warc'), /\.warc\.gz$/).sort()).toEqual(ids.sort())
    const queued = domainsOfQueue(store)
    await store.close()
    const { counts, links } = await domainRows(dir)
    for (const [domain, { pending, first }] of queued) {
      const key = keyText(hostHashOf(domain))
      expect(counts.get(key), domain).toEqual({ pending, first, linkingDomains: links.get(key) ?? 0 })
    }
    most.discovered = Math.max(most.discovered, counters.discovered)
    most.dropped = Math.max(most.dropped, counters.dropped)
    most.refetched = Math.max(most.refetched, counters.refetched)
    for (const { pending, first } of queued.values()) most.later = Math.max(most.later, pending - first)
  }
  expect(unmet()).toEqual([])
  fs.rmSync(dir, { recursive: true })
}, 30_000 + 3 * kills * 5_000)

/**
 * The store at scale: fills one with millions of URLs, then claims, commits and discovers at a steady state, and does
 * the same with a small one, with the page cache limited, and with SQLite and Redis. Prints what each cost.
 *
 *     npm run bench:store -- [--urls 10000000] [--hosts 100000] [--seed 1] [--turns 102400]
 *                            [--peer-urls 1000000] [--no-peers] [--no-limit] [--dir DIR]
 *
 * Every measurement runs in a process of its own. A turn is one page of one host: claimed (eight at a time), ended, with
 * 9 links that are in the store and 1 that is new, in commits of 128 pages of 128 hosts. CPU counts all threads, and the
 * server's where there is one. Peers: `npm install --prefix bench/peers`, and redis-server on the path.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { dropFromCache, limitCache, type CacheLimit } from './store/cache-limit.ts'
import { fill, run, type Job, type Measured } from './store/job.ts'
import type { StoreName } from './store/open.ts'
import { redisMissing, sqliteMissing } from './store/peers.ts'
import { print, printProjection } from './store/print.ts'
import type { Size } from './store/workload.ts'

const SMALL_URLS = 100_000
const URLS_PER_HOST = 100
/** What processes may grow by while one is measured, and what the system keeps free, so that the limit ends none of them. */
const GROWTH_BYTES = 384 * 1_048_576

/** Pages that wait for the disk take their time. */
const LIMITED_TURNS_MAX = 12_800

interface Asked {
  readonly dir: string
  readonly turns: number
  readonly limit: boolean
}

/** What a measuring process says: that it is ready for the part that counts, and what it measured. */
type Told = { readonly isReady: true } | { readonly measured: Measured }

/** Runs one job; with a limit, `cacheBytes` of page cache are left to it while it is measured. */
async function measure(job: Job, limited?: { readonly limit: CacheLimit; readonly cacheBytes: number }): Promise<Measured> {
  const child = fork(fileURLToPath(import.meta.url), { env: { ...process.env, SLUICE_BENCH_JOB: '1' } })
  child.send(job)
  let measured: Measured | undefined
  child.on('message', (told: Told) => {
    if ('measured' in told) measured = told.measured
    else {
      limited?.limit.set(limited.cacheBytes)
      child.send('go on')
    }
  })
  await once(child, 'exit')
  if (measured === undefined) throw new Error(`the process that measured ${job.store} ended without an answer`)
  return measured
}

function storeDir(dir: string, store: StoreName, { urls, seed }: Size): string {
  return join(dir, `${store}-${urls}-${seed}`)
}

async function fillAndRun(store: StoreName, size: Size, { dir, turns }: Asked): Promise<Measured> {
  const job = { store, size, turns, turnsBefore: 0, dir: storeDir(dir, store, size) }
  const filled = await measure({ ...job, kind: 'fill' })
  console.log(`${store}, ${size.urls} URLs filled in ${(filled.elapsedMs / 1_000).toFixed(0)} s, `
    + `${((filled.cpuMs + filled.serverCpuMs) / size.urls * 1_000).toFixed(1)} microseconds of CPU each`)
  const measured = await measure({ ...job, kind: 'run' })
  return { ...measured, usedBytesFilled: filled.usedBytes }
}

/** The same store once more, with a quarter of its file in memory beside what the process itself took. */
async function runLimited(size: Size, { dir, turns }: Asked, warm: Measured): Promise<Measured | string> {
  const place = storeDir(dir, 'sluice', size)
  const stays = dropFromCache(join(place, 'store', 'data.mdb'))
  if (stays !== undefined) return stays
  const limit = limitCache()
  if (typeof limit === 'string') return limit
  try {
    const job: Job = { kind: 'run', store: 'sluice', size, turns: Math.min(turns, LIMITED_TURNS_MAX), turnsBefore: turns, dir: place }
    return await measure(job, { limit, cacheBytes: warm.usedBytes / 4 + GROWTH_BYTES })
  } finally {
    limit.close()
  }
}

async function runPeers(size: Size, asked: Asked): Promise<void> {
  const all = [['sluice', await fillAndRun('sluice', size, asked)]] as [StoreName, Measured][]
  for (const [peer, missing] of [['sqlite', sqliteMissing()], ['redis', redisMissing()]] as const) {
    if (missing === undefined) all.push([peer, await fillAndRun(peer, size, asked)])
    else console.log(`${peer} left out: ${missing}`)
  }
  print(all)
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: {
    urls: { type: 'string', default: '10000000' }, hosts: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' },
    turns: { type: 'string', default: '102400' }, 'peer-urls': { type: 'string', default: '1000000' }, dir: { type: 'string', default: tmpdir() },
    'no-peers': { type: 'boolean', default: false }, 'no-limit': { type: 'boolean', default: false },
  } })
  const seed = Number(values.seed)
  const large = { urls: Number(values.urls), hosts: Number(values.hosts), seed }
  const dir = await mkdtemp(join(values.dir, 'sluice-bench-store-'))
  const asked = { dir, turns: Number(values.turns), limit: !values['no-limit'] }
  console.log(`store: seed ${seed}, ${large.urls} URLs of 80 characters on ${large.hosts} hosts, ${asked.turns} turns; `
    + `Node ${process.version}, ${cpus().length} processors (${cpus()[0]!.model.trim()})`)
  try {
    const small = await fillAndRun('sluice', { urls: SMALL_URLS, hosts: SMALL_URLS / URLS_PER_HOST, seed }, { ...asked, turns: Math.min(asked.turns, SMALL_URLS / 4) })
    const warm = await fillAndRun('sluice', large, asked)
    const limited = asked.limit ? await runLimited(large, asked, warm) : 'not asked for'
    print([[`${SMALL_URLS} URLs`, small], [`${large.urls} URLs`, warm], ...(typeof limited === 'string' ? [] : [['cache limited', limited] as [string, Measured]])])
    if (typeof limited === 'string') console.log(`no run with a limited page cache: ${limited}`)
    else printProjection(limited, large.urls)
    await rm(storeDir(dir, 'sluice', large), { recursive: true, force: true })
    if (!values['no-peers']) await runPeers({ urls: Number(values['peer-urls']), hosts: Number(values['peer-urls']) / URLS_PER_HOST, seed: seed + 1 }, asked)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

if (process.env['SLUICE_BENCH_JOB'] === undefined) await main()
else {
  const [job] = await once(process, 'message') as [Job]
  const ready = async (): Promise<void> => {
    process.send!({ isReady: true } satisfies Told)
    await once(process, 'message')
  }
  const measured = await (job.kind === 'fill' ? fill(job) : run(job, ready))
  process.send!({ measured } satisfies Told, () => process.disconnect())
}

/**
 * What servers that mean harm cost the others: one crawl of the demonstration web together with every host of the
 * hostile table (test/support/hostile-rows.ts) against the same crawl without them, in pairs, fresh processes for each,
 * the servers in processes of their own. Delay 0, so that the processor is the bound. Prints CPU milliseconds a healthy
 * page (all of the crawler's until the last healthy page is stored, what the hostile hosts cost among it), the longest that
 * a healthy host waited which could have been asked, and peak memory, with their ratios. The hostile hosts are met a few
 * at a time over the whole crawl, as a crawl of the web meets them; with --at-once all are seeds, parsed before most
 * others. What is left in the end are hostile hosts that hang or rest: how long they take, and the processor's time of a
 * second of that, are told apart. Ends with 1 when a row has not ended as it must, a healthy page is missing, or a target
 * is missed.
 *
 *     npm run bench:hostile -- [--rounds 3] [--seed 1] [--hosts 24] [--pages-per-host 250] [--threads 1] [--at-once]
 */
import { fork, type ChildProcess } from 'node:child_process'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { spawnDemoWeb } from '../engine/demo/spawn.ts'
import { Crawler, type PageRecord } from '../engine/index.ts'
import { hostileLinks, okPagesOf, rowsAmiss } from '../test/support/hostile-crawl.ts'
import { hostileRows } from '../test/support/hostile-rows.ts'
import { startHostileServer } from '../test/support/hostile-server.ts'
import { processCpuMs, watchMemory } from './process-meter.ts'

/** A process of this file: a server of hostile hosts, or one crawl. */
type Job = { readonly kind: 'server' } | CrawlJob

interface CrawlJob {
  readonly kind: 'crawl'
  readonly dir: string
  readonly seeds: readonly string[]
  /** Added a few at a time, evenly over so many healthy pages. */
  readonly later: readonly string[]
  readonly pages: number
  readonly resolve: Readonly<Record<string, string>>
  readonly ca: string
  readonly threads: number
}

interface ServerTold {
  readonly urls: readonly string[]
  readonly resolve: Readonly<Record<string, string>>
  readonly caFile: string
}

interface CrawlTold {
  /** Until the last healthy page. */
  readonly cpuMs: number
  readonly elapsedMs: number
  /** After it. */
  readonly tailMs: number
  readonly tailCpuMs: number
  /** The longest of a healthy host. */
  readonly waitMs: number
  readonly peakOwnMb: number
}

interface Measured extends CrawlTold {
  readonly healthyPages: number
  readonly cpuMsPerPage: number
  readonly amiss: readonly string[]
}

const MB = 1_048_576
const hostileHost = /\.hostile\.test$/
const [cpuRatioMax, waitRatioMax, memoryMbMax] = [1.1, 1.1, 50]

async function serve(): Promise<ServerTold> {
  const server = await startHostileServer()
  process.once('disconnect', () => void server.close())
  return { urls: hostileRows.map((row) => server.url(row)), resolve: server.resolve, caFile: server.caFile }
}

async function crawl({ dir, seeds, later, pages, resolve, ca, threads }: CrawlJob): Promise<CrawlTold> {
  const crawler = await Crawler.open({
    dir, resolve, ca, threads, scope: 'any', delayMs: 0, allowAddress: ['127.0.0.0/8'], exclude: hostileLinks, timeoutMs: 5_000, retries: 0, hostPatienceMs: 0,
  })
  await crawler.add(seeds)
  const memory = watchMemory(50)
  const [cpuMs, beganMs] = [processCpuMs(), performance.now()]
  let last = { cpuMs, atMs: beganMs }
  let [healthy, added, waitMs] = [0, 0, 0]
  diagnostics.subscribe('sluice:fetch', (message) => {
    const { host, waitedMs } = message as { host: string; waitedMs: number }
    if (!hostileHost.test(host)) waitMs = Math.max(waitMs, waitedMs)
  })
  crawler.on('page', ({ url }) => {
    if (hostileHost.test(new URL(url).hostname)) return
    last = { cpuMs: processCpuMs(), atMs: performance.now() }
    healthy += 1
    // Ten at a time: each call is a commit of its own, which is no cost of theirs.
    if (added >= later.length || added * pages >= healthy * later.length) return
    void crawler.add(later.slice(added, added + 10))
    added += 10
  })
  await crawler.start()
  const told = {
    cpuMs: last.cpuMs - cpuMs, elapsedMs: last.atMs - beganMs, tailMs: performance.now() - last.atMs, tailCpuMs: processCpuMs() - last.cpuMs,
    waitMs, peakOwnMb: memory.stop().peak.ownBytes / MB,
  }
  await crawler.close()
  return told
}

/** Starts this file as another process, which answers once. */
async function start<T>(job: Job): Promise<{ readonly told: T; readonly child: ChildProcess }> {
  const child = fork(fileURLToPath(import.meta.url), { env: { ...process.env, SLUICE_BENCH_JOB: JSON.stringify(job) } })
  const [told] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => { throw new Error(`the ${job.kind} ended by itself`) })]) as [T]
  return { told, child }
}

async function recordsOf(dir: string): Promise<readonly PageRecord[]> {
  const names = (await readdir(dir)).filter((name) => /^pages-\d+\.jsonl$/.test(name))
  const texts = await Promise.all(names.map((name) => readFile(join(dir, name), 'utf8')))
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as PageRecord))
}

async function measure(job: Omit<CrawlJob, 'kind'>, healthy: { has(host: string): boolean }, isHostile: boolean): Promise<Measured> {
  const { told, child } = await start<CrawlTold>({ kind: 'crawl', ...job })
  if (child.exitCode === null) await once(child, 'exit')
  const records = await recordsOf(job.dir)
  const pages = okPagesOf(records, healthy)
  const healthyPages = new Set(pages.map(({ url }) => url)).size
  await rm(job.dir, { recursive: true, force: true })
  return { ...told, healthyPages, cpuMsPerPage: told.cpuMs / healthyPages, amiss: isHostile ? rowsAmiss(records) : [] }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function line(name: string, values: readonly number[], digits: number): string {
  const text = (value: number): string => value.toFixed(digits)
  return `${name.padEnd(50)} ${text(median(values)).padStart(8)}   ${text(Math.min(...values))} to ${text(Math.max(...values))}`
}

/** Prints the pairs; answers whether all is as it must be. */
function judge(pairs: readonly { readonly plain: Measured; readonly beside: Measured }[], pages: number): boolean {
  const [plain, beside] = [pairs.map((pair) => pair.plain), pairs.map((pair) => pair.beside)]
  const ratios = (of: (run: Measured) => number): number[] => pairs.map((pair) => of(pair.beside) / of(pair.plain))
  const [cpu, wait] = [ratios((run) => run.cpuMsPerPage), ratios((run) => run.waitMs)]
  const memory = pairs.map((pair) => pair.beside.peakOwnMb - pair.plain.peakOwnMb)
  console.log(`${'median, and range, over the pairs'.padEnd(50)}`)
  console.log(line('CPU ms a healthy page, without', plain.map((run) => run.cpuMsPerPage), 3))
  console.log(line('CPU ms a healthy page, beside the hostile', beside.map((run) => run.cpuMsPerPage), 3))
  console.log(line(`  ratio (at most ${cpuRatioMax})`, cpu, 3))
  console.log(line('longest wait of a healthy host, ms, without', plain.map((run) => run.waitMs), 0))
  console.log(line('longest wait of a healthy host, ms, beside', beside.map((run) => run.waitMs), 0))
  console.log(line(`  ratio (at most ${waitRatioMax})`, wait, 3))
  console.log(line('peak memory, MB, without', plain.map((run) => run.peakOwnMb), 0))
  console.log(line('peak memory, MB, beside', beside.map((run) => run.peakOwnMb), 0))
  console.log(line(`  more (at most ${memoryMbMax})`, memory, 0))
  console.log(line('after the last healthy page, s, beside', beside.map((run) => run.tailMs / 1_000), 1))
  console.log(line('  CPU ms a second of it', beside.map((run) => run.tailCpuMs / run.tailMs * 1_000), 1))
  const amiss = [...new Set(beside.flatMap((run) => run.amiss))]
  for (const row of amiss) console.log(`amiss: ${row}`)
  const missing = [...plain, ...beside].filter((run) => run.healthyPages !== pages).length
  console.log(`${hostileRows.length} hostile hosts, ${amiss.length} amiss; ${missing} of ${2 * pairs.length} crawls without all ${pages} healthy pages`)
  return amiss.length === 0 && missing === 0 && median(cpu) <= cpuRatioMax && median(wait) <= waitRatioMax && median(memory) <= memoryMbMax
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: {
    rounds: { type: 'string', default: '3' }, seed: { type: 'string', default: '1' }, hosts: { type: 'string', default: '24' },
    'pages-per-host': { type: 'string', default: '250' }, threads: { type: 'string', default: '1' }, 'at-once': { type: 'boolean', default: false },
  } })
  const web = await spawnDemoWeb({ hosts: Number(values.hosts), pagesPerHost: Number(values['pages-per-host']), seed: Number(values.seed), tls: true })
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  const { told: hostile, child: server } = await start<ServerTold>({ kind: 'server' })
  try {
    const ca = join(folder, 'ca.pem')
    await writeFile(ca, `${web.caPem}\n${await readFile(hostile.caFile, 'utf8')}`)
    console.log(`hostile hosts beside healthy ones: seed ${values.seed}, ${values.hosts} healthy hosts, ${web.pages} pages over HTTPS, ${hostile.urls.length} hostile hosts; `
      + `Node ${process.version}, ${cpus().length} processors (${cpus()[0]!.model.trim()})`)
    const plainJob = { ca, threads: Number(values.threads), seeds: web.seeds, later: [], pages: web.pages, resolve: Object.fromEntries(web.resolve) }
    const met = values['at-once'] ? { seeds: [...web.seeds, ...hostile.urls] } : { later: hostile.urls }
    const besideJob = { ...plainJob, ...met, resolve: { ...plainJob.resolve, ...hostile.resolve } }
    const pairs: { plain: Measured; beside: Measured }[] = []
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const plain = await measure({ ...plainJob, dir: join(folder, `plain-${round}`) }, web.resolve, false)
      const beside = await measure({ ...besideJob, dir: join(folder, `beside-${round}`) }, web.resolve, true)
      pairs.push({ plain, beside })
      console.log(`pair ${round + 1}: ${plain.cpuMsPerPage.toFixed(3)} and ${beside.cpuMsPerPage.toFixed(3)} ms a page, ${(plain.elapsedMs / 1_000).toFixed(1)} and ${(beside.elapsedMs / 1_000).toFixed(1)} s`)
    }
    if (!judge(pairs, web.pages)) process.exitCode = 1
  } finally {
    server.disconnect()
    await web.close()
    await rm(folder, { recursive: true, force: true })
  }
}

const given = process.env['SLUICE_BENCH_JOB']
if (given === undefined) await main()
else {
  const job = JSON.parse(given) as Job
  process.send!(await (job.kind === 'server' ? serve() : crawl(job)), () => { if (job.kind === 'crawl') process.disconnect() })
}

/**
 * The whole crawl: the demonstration web in a process of its own, a crawler in another, fresh for each run. Prints
 * pages a second, CPU milliseconds a page (all threads, and the main thread alone), and peak memory, with its seed.
 *
 *     npm run bench -- [--runs 3] [--seed 1] [--hosts 24] [--pages-per-host 60] [--http] [--no-warc] [--threads N]
 *
 * The web shares the machine's processors with the crawler, so pages a second say little; CPU a page is what counts.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { spawnDemoWeb } from '../engine/demo/spawn.ts'
import { Crawler } from '../engine/index.ts'
import { mainThreadCpuMs, processCpuMs, watchMemory } from './process-meter.ts'

interface Job {
  readonly dir: string
  readonly seeds: readonly string[]
  readonly resolve: Readonly<Record<string, string>>
  readonly ca: string | undefined
  readonly warc: boolean
  readonly threads: number | undefined
}

interface Measured {
  readonly pages: number
  readonly failed: number
  readonly elapsedMs: number
  readonly cpuMs: number
  readonly mainCpuMs: number | undefined
  readonly wireMb: number
  readonly bodyMb: number
  readonly peakOwnMb: number
  readonly peakFileMb: number
  readonly quartersMb: readonly number[]
}

const MB = 1_048_576

async function crawlOnce(job: Job): Promise<Measured> {
  const crawler = await Crawler.open({
    dir: job.dir, scope: 'any', delayMs: 0, allowAddress: ['127.0.0.0/8'], resolve: job.resolve, format: job.warc ? ['jsonl', 'warc'] : ['jsonl'],
    ...(job.ca !== undefined && { ca: job.ca }), ...(job.threads !== undefined && { threads: job.threads }),
  })
  await crawler.add(job.seeds)
  const memory = watchMemory()
  const [cpuMs, mainMs] = [processCpuMs(), mainThreadCpuMs()]
  const summary = await crawler.start()
  const { peak, quarters } = memory.stop()
  const measured: Measured = {
    pages: summary.pages, failed: summary.failed, elapsedMs: summary.elapsedMs, cpuMs: processCpuMs() - cpuMs,
    mainCpuMs: mainMs === undefined ? undefined : mainThreadCpuMs()! - mainMs,
    wireMb: summary.wireBytes / MB, bodyMb: summary.bodyBytes / MB,
    peakOwnMb: peak.ownBytes / MB, peakFileMb: peak.fileBytes / MB, quartersMb: quarters.map((bytes) => Math.round(bytes / MB)),
  }
  await crawler.close()
  return measured
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function row(name: string, values: readonly number[], digits: number): string {
  const text = (value: number): string => value.toFixed(digits).padStart(9)
  return `${name.padEnd(34)}${text(Math.min(...values))}${text(median(values))}${text(Math.max(...values))}`
}

function print(all: readonly Measured[]): void {
  const perPage = (key: 'cpuMs' | 'mainCpuMs'): number[] => all.map((run) => (run[key] ?? Number.NaN) / run.pages)
  console.log(`${''.padEnd(34)}${['min', 'median', 'max'].map((head) => head.padStart(9)).join('')}`)
  console.log(row('pages/s', all.map((run) => run.pages / run.elapsedMs * 1_000), 1))
  console.log(row('CPU ms a page, all threads', perPage('cpuMs'), 2))
  if (all[0]!.mainCpuMs !== undefined) console.log(row('CPU ms a page, main thread', perPage('mainCpuMs'), 2))
  console.log(row('peak memory, own (MB)', all.map((run) => run.peakOwnMb), 0))
  console.log(row('peak memory, mapped store (MB)', all.map((run) => run.peakFileMb), 0))
  console.log(`own memory by quarter of the run (MB): ${all.map((run) => run.quartersMb.join(' ')).join(' | ')}`)
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: {
    runs: { type: 'string', default: '3' }, seed: { type: 'string', default: '1' }, hosts: { type: 'string', default: '24' },
    'pages-per-host': { type: 'string', default: '60' }, http: { type: 'boolean', default: false }, 'no-warc': { type: 'boolean', default: false },
    threads: { type: 'string' },
  } })
  const web = await spawnDemoWeb({ hosts: Number(values.hosts), pagesPerHost: Number(values['pages-per-host']), seed: Number(values.seed), tls: !values.http })
  const dir = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  try {
    const ca = web.caPem === '' ? undefined : join(dir, 'ca.pem')
    if (ca !== undefined) await writeFile(ca, web.caPem)
    console.log(`whole crawl: seed ${values.seed}, ${values.hosts} hosts, ${web.pages} pages, ${values.http ? 'HTTP' : 'HTTPS'}, connections kept, `
      + `${values['no-warc'] ? 'no WARC' : 'JSONL and WARC'}; Node ${process.version}, ${cpus().length} processors (${cpus()[0]!.model.trim()})`)
    const all: Measured[] = []
    for (let i = 0; i < Number(values.runs); i++) {
      const job: Job = {
        dir: join(dir, `run-${i}`), seeds: web.seeds, resolve: Object.fromEntries(web.resolve), ca, warc: !values['no-warc'],
        threads: values.threads === undefined ? undefined : Number(values.threads),
      }
      const child = fork(fileURLToPath(import.meta.url), { env: { ...process.env, SLUICE_BENCH_JOB: JSON.stringify(job) } })
      const [measured] = await once(child, 'message') as [Measured]
      await once(child, 'exit')
      console.log(`run ${i + 1}: ${measured.pages} pages, ${measured.failed} failed, ${(measured.elapsedMs / 1_000).toFixed(1)} s, `
        + `${measured.wireMb.toFixed(0)} MB received, ${measured.bodyMb.toFixed(0)} MB read`)
      all.push(measured)
    }
    print(all)
  } finally {
    await web.close()
    await rm(dir, { recursive: true, force: true })
  }
}

const job = process.env['SLUICE_BENCH_JOB']
if (job === undefined) await main()
else process.send!(await crawlOnce(JSON.parse(job) as Job), () => process.disconnect())

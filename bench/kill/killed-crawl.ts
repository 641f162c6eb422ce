/**
 * One crawl of a demonstration web that is killed until it has died often enough, or has completed; then it completes,
 * and is judged. The web lives on through all of it, with faulty pages, slow ones, pages that are cut, redirects and
 * robots.txt.
 */
import fs from 'node:fs/promises'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { crawlOptions } from '../../engine/core/options.ts'
import { dice } from '../../engine/demo/random.ts'
import { Site, spawnDemoWeb, type RequestEntry, type SpawnedDemoWeb } from '../../engine/demo/index.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { Ledger } from './ledger.ts'
import { compiled, planLife, planText, start, type Commands, type Driver, type Plan, type Running } from './lives.ts'
import { seedWithout503 } from './truth.ts'
import { faultsOfCrawl, leftovers, refetched, setAside } from './verdict.ts'

/** Options of a crawl as the command line takes them. */
export type GivenTexts = Readonly<Partial<Record<keyof typeof crawlOptions, string | readonly string[]>>>

export interface KilledCrawlOptions {
  readonly seed: number
  readonly kills: number
  readonly hosts: number
  readonly pages: number
  readonly delayMs: number
  readonly lifeMsMax: number
  readonly politeness: 'host' | 'domain' | 'ip'
  readonly threads: number
  /** Pages that answer 503 are among the faulty ones; each may rest its host for minutes. */
  readonly with503: boolean
  /** Further options of the crawl. */
  readonly more?: GivenTexts
  readonly onLine?: (line: string) => void
}

export interface KilledCrawl {
  readonly kills: number
  readonly records: number
  readonly requests: number
  /** Requests for pages that were made again because of the kills. */
  readonly refetched: number
  /** Pages that were in hand at so many kills that the crawl took them for the cause. */
  readonly setAside: number
  readonly problems: readonly string[]
}

const retries = 2
const connections = 16
const faultShare = 0.2
/** Of the larger pages, which are cut (`maxBodyBytes`). */
const sizeScale = 0.15

export async function killCrawl(options: KilledCrawlOptions): Promise<KilledCrawl> {
  const base = await fs.mkdtemp(join(tmpdir(), 'sluice-kill-loop-'))
  const logFile = join(base, 'requests.log')
  const siteOf = (seed: number, port = 80): Site => new Site({
    scheme: 'http', port, hosts: options.hosts, pages: options.pages, seed, faultShare, sizeScale, bodies: 'made',
  })
  const seed = options.with503 ? options.seed : seedWithout503(siteOf, options.seed)
  const web = await spawnDemoWeb({ hosts: options.hosts, pagesPerHost: options.pages / options.hosts, seed, faultShare, sizeScale, logFile })
  putFirst(web.pid)
  const crawl = new Crawl(options, base, web)
  try {
    await crawl.prepare()
    return await crawl.run(siteOf(seed, web.port), async () => {
      await web.flush()
      return parseLines(await fs.readFile(logFile, 'utf8'))
    })
  } finally {
    await crawl.end()
    await web.close()
    await fs.rm(base, { recursive: true, force: true })
  }
}

/** Who judges by the time at which requests arrive must not wait for the processor behind those who are judged. */
function putFirst(pid: number): void {
  try {
    setPriority(pid, -10)
  } catch {
    // Not every user may.
  }
}

class Crawl {
  readonly #is: KilledCrawlOptions
  readonly #dir: string
  readonly #handedLog: string
  readonly #web: SpawnedDemoWeb
  readonly #commands: Commands
  #running: Running | undefined

  constructor(options: KilledCrawlOptions, base: string, web: SpawnedDemoWeb) {
    this.#is = options
    this.#dir = join(base, 'crawl')
    this.#handedLog = join(base, 'handed.log')
    this.#web = web
    this.#commands = { dir: this.#dir, args: this.#args() }
  }

  /** The folders exist from the beginning, so that they can be watched. */
  async prepare(): Promise<void> {
    await fs.mkdir(join(this.#dir, 'warc'), { recursive: true })
  }

  async run(site: Site, requests: () => Promise<readonly RequestEntry[]>): Promise<KilledCrawl> {
    const { seed, kills: killsMax, lifeMsMax, politeness, delayMs } = this.#is
    const random = dice(seed)
    const ledger = new Ledger({ dir: this.#dir, seeds: this.#web.seeds.length, requests, handedLog: this.#handedLog })
    let kills = 0
    for (let isComplete = false; !isComplete && kills < killsMax;) {
      const plan = planLife(random, lifeMsMax)
      const { driver, died, problem } = await this.#live(plan)
      if (died) kills += 1
      const when = `seed ${seed}, life ${kills} (${planText({ ...plan, driver })})`
      if (problem !== undefined) ledger.problems.push(`${when}: ${problem}`)
      await ledger.read(driver, when)
      this.#is.onLine?.(`${when}: ${died ? 'killed' : 'ended by itself'}; ${ledger.counters?.done ?? 0} done, ${ledger.counters?.pending ?? 0} pending`)
      isComplete = ledger.counters !== undefined && ledger.counters.discovered > 0 && ledger.counters.pending === 0
    }
    await this.#complete(ledger)
    const evidence = {
      dir: this.#dir, site, records: ledger.records, requests: await requests(), retries, connections, kills, delayMs,
      unitOf: (host: string) => unitOf(politeness, host, this.#web.resolve),
    }
    const problems = [...ledger.problems, ...(await faultsOfCrawl(evidence)).map((text) => `seed ${seed}, at the end: ${text}`)]
    return { kills, records: evidence.records.length, requests: evidence.requests.length, refetched: refetched(evidence), setAside: setAside(evidence.records).length, problems }
  }

  async end(): Promise<void> {
    await this.#running?.end()
  }

  async #live(plan: Plan): Promise<{ readonly driver: Driver; readonly died: boolean; readonly problem?: string }> {
    const running = this.#running ?? start(plan.driver, this.#commands)
    const { driver } = running
    const end = await running.live({ ...plan, victim: driver === 'library' ? 'both' : plan.victim }, this.#dir)
    this.#running = running.hasEnded ? undefined : running
    // SIGINT ends a process that has no handler for it yet.
    const isFine = end === undefined || end.code === 0 || (plan.moment === 'ending' && (end.code === 3 || end.signal === 'SIGINT'))
    return { driver, died: end === undefined, ...(!isFine && { problem: `exit code ${end.code}, ${end.signal}: ${end.stderr.trim()}` }) }
  }

  async #complete(ledger: Ledger): Promise<void> {
    const running = this.#running ?? start('command', this.#commands)
    const { code, stderr } = await running.complete()
    if (code !== 0) ledger.problems.push(`the last run ends with exit code ${code}: ${stderr.trim()}`)
    await ledger.read(running.driver, 'at the end')
    if (ledger.counters?.pending !== 0) ledger.problems.push(`at the end ${ledger.counters?.pending} URLs are pending`)
    const store = await openStore(this.#dir, { readOnly: true })
    ledger.problems.push(...leftovers(this.#dir, store.committedLengths()))
    await store.close()
  }

  /** The same crawl for both drivers. */
  #args(): Commands['args'] {
    const { politeness, delayMs, threads, more } = this.#is
    const crawl: GivenTexts = {
      dir: this.#dir, scope: 'any', allowAddress: ['127.0.0.0/8'], resolve: [...this.#web.resolve].map(([name, address]) => `${name}=${address}`),
      format: 'jsonl,warc', politeness, delayMs: `${delayMs}ms`, threads: String(threads), connections: String(connections), retries: String(retries),
      timeoutMs: '1s', maxBodyBytes: '40KB', ...more,
    }
    const flags = Object.entries(crawl).flatMap(([name, value]) => [value].flat().flatMap((text) => [crawlOptions[name as keyof GivenTexts].flag!, text]))
    const task = { crawl: { ...crawl, resolve: Object.fromEntries(this.#web.resolve) }, seeds: this.#web.seeds, log: this.#handedLog }
    return {
      command: [compiled('../../engine/cli/main.js'), 'crawl', ...this.#web.seeds, ...flags, '--progress', 'none'],
      library: [compiled('consumer.js'), JSON.stringify(task)],
    }
  }
}

function unitOf(politeness: KilledCrawlOptions['politeness'], host: string, addresses: ReadonlyMap<string, string>): string {
  if (politeness === 'host') return host
  return politeness === 'ip' ? addresses.get(host) ?? host : host.split('.').slice(-2).join('.')
}

/** The whole lines of a request log. */
function parseLines(text: string): RequestEntry[] {
  return text.split('\n').slice(0, -1).map((line) => JSON.parse(line) as RequestEntry)
}

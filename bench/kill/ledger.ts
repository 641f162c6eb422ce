/**
 * Keeps the books on a crawl that is killed: after each death the store is read, without changing anything, and held
 * against what it said before, against its own files, and against what the web's server was asked. Every contradiction
 * is one line in `problems`.
 *
 *   what must hold after each death
 *     the store is sound: rows and counters agree, and no file is shorter than its committed length
 *     the records up to those lengths are whole lines, one for each ended URL, and sum up to the counters
 *     what was stored once stays as it was, and is neither asked for nor handed to a consumer again
 *     what a consumer acknowledges is all that is stored of its pages
 */
import fs from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../../engine/core/errors.ts'
import { stateOfOutcome, type Counters } from '../../engine/core/types.ts'
import type { RequestEntry } from '../../engine/demo/index.ts'
import type { PageRecord } from '../../engine/index.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import type { Driver } from './lives.ts'

const jsonlPattern = /^pages-\d+\.jsonl$/

export interface LedgerOptions {
  readonly dir: string
  readonly seeds: number
  /** What the web was asked so far. */
  readonly requests: () => Promise<readonly RequestEntry[]>
  /** What a consumer was handed so far, one URL a line. */
  readonly handedLog: string
}

/** Of a URL or an origin: how often it had been asked for when the store had it. */
type AskedWhenStored = Map<string, number>

export class Ledger {
  readonly problems: string[] = []
  readonly #is: LedgerOptions
  readonly #lines = new Map<string, string>()
  readonly #pagesStored: AskedWhenStored = new Map()
  readonly #robotsStored: AskedWhenStored = new Map()
  #handedSeen = 0
  counters: Counters | undefined

  constructor(options: LedgerOptions) {
    this.#is = options
  }

  get records(): PageRecord[] {
    return [...this.#lines.values()].map((line) => JSON.parse(line) as PageRecord)
  }

  /** Reads what a life left behind. */
  async read(driver: Driver, when: string): Promise<void> {
    const found = this.problems.length
    await this.#readStore(driver)
    for (let at = found; at < this.problems.length; at += 1) this.problems[at] = `${when}: ${this.problems[at]}`
  }

  async #readStore(driver: Driver): Promise<void> {
    let store: LmdbStore
    try {
      store = await openStore(this.#is.dir, { readOnly: true })
    } catch (error) {
      // It died before it had made a store.
      if (error instanceof SluiceError && error.code === 'no_crawl' && this.#lines.size === 0) return
      this.problems.push(`the store does not open: ${String(error)}`)
      return
    }
    try {
      // All of this is read in one turn, so that an engine that has been started again changes nothing in between.
      const [counters, lengths] = [store.counters(), store.committedLengths()]
      const robots = store.hostRows(undefined, 10_000).rows.filter((host) => host.robots !== undefined).map(({ name }) => name)
      const { mended, problems } = await store.check()
      this.problems.push(...mended, ...problems)
      const retriesQueued = store.queueRows(undefined, 1_000_000).rows.reduce((sum, { attempts }) => sum + attempts, 0)
      const added = this.#readRecords(lengths)
      this.#sum(counters, retriesQueued)
      this.counters = counters
      this.#checkHanded(driver, added)
      await this.#checkAsked(added, robots)
    } finally {
      await store.close()
    }
  }

  /** Answers the records that are new. */
  #readRecords(lengths: ReadonlyMap<string, number>): PageRecord[] {
    const lines = new Map<string, string>()
    for (const [name, length] of lengths) {
      const file = join(this.#is.dir, name)
      const size = fs.existsSync(file) ? fs.statSync(file).size : 0
      if (size < length) this.problems.push(`${name} has ${size} bytes, and ${length} are committed`)
      else if (jsonlPattern.test(name)) this.#readLines(fs.readFileSync(file).subarray(0, length), name, lines)
    }
    for (const [url, line] of this.#lines) {
      if (lines.get(url) !== line) this.problems.push(`${url} was stored as ${line}, and now as ${lines.get(url)}`)
    }
    const added = [...lines].filter(([url]) => !this.#lines.has(url))
    for (const [url, line] of added) this.#lines.set(url, line)
    return added.map(([, line]) => JSON.parse(line) as PageRecord)
  }

  #readLines(bytes: Buffer, name: string, lines: Map<string, string>): void {
    const texts = bytes.toString().split('\n')
    if (texts.pop() !== '') this.problems.push(`${name} does not end with a whole line`)
    for (const text of texts) {
      try {
        const { url } = JSON.parse(text) as PageRecord
        if (lines.has(url)) this.problems.push(`${url} has two records`)
        lines.set(url, text)
      } catch {
        this.problems.push(`${name} has a line that is no record: ${text.slice(0, 100)}`)
      }
    }
  }

  /** The counters are the sums of the records, and of the tries that queued URLs have behind them. */
  #sum(counters: Counters, retriesQueued: number): void {
    const sums = { done: 0, failed: 0, dropped: 0, excluded: 0, pages: 0, wireBytes: 0, bodyBytes: 0, retries: retriesQueued }
    let discovered = this.#is.seeds
    for (const { outcome, attempts, timings, newLinks = 0, ...page } of this.records) {
      // Without timings it ended unfetched, and every try before was followed by a retry that did not come.
      sums.retries += timings === undefined ? attempts : attempts - 1
      sums[stateOfOutcome[outcome]] += 1
      discovered += newLinks
      if (stateOfOutcome[outcome] !== 'done') continue
      sums.pages += 1
      sums.wireBytes += page.wireBytes ?? 0
      sums.bodyBytes += page.bytes ?? 0
    }
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) {
      if (counters[name] !== sums[name]) this.problems.push(`${name}: ${counters[name]} by the counters, ${sums[name]} by the records`)
    }
    // The seed comes in a commit of its own, which may not have been.
    if (counters.discovered !== discovered && counters.discovered !== 0) this.problems.push(`discovered: ${counters.discovered} by the counters, ${discovered} by the records`)
    const { pending, done, failed, dropped, excluded } = counters
    if (counters.discovered !== pending + done + failed + dropped + excluded) this.problems.push(`the states do not sum up to ${counters.discovered} discovered`)
  }

  #checkHanded(driver: Driver, added: readonly PageRecord[]): void {
    const handed = fs.existsSync(this.#is.handedLog) ? fs.readFileSync(this.#is.handedLog, 'utf8').split('\n').slice(0, -1) : []
    const since = handed.slice(this.#handedSeen)
    this.#handedSeen = handed.length
    for (const url of since) if (this.#pagesStored.has(url)) this.problems.push(`${url} was handed out again after it was stored`)
    if (driver !== 'library') return
    for (const { url, outcome } of added) {
      if (stateOfOutcome[outcome] === 'done' && !since.includes(url)) this.problems.push(`${url} is stored, and the consumer never had it`)
    }
  }

  async #checkAsked(added: readonly PageRecord[], robots: readonly string[]): Promise<void> {
    const asked = askedOf(await this.#is.requests())
    for (const [stored, noun] of [[this.#pagesStored, ''], [this.#robotsStored, 'the verdict of ']] as const) {
      for (const [url, count] of stored) {
        const since = (asked.get(askedKey(url)) ?? 0) - count
        if (since > 0) this.problems.push(`${url} was asked for again after ${noun}it was stored`)
      }
    }
    for (const { url } of added) this.#pagesStored.set(url, asked.get(askedKey(url)) ?? 0)
    for (const host of robots) this.#robotsStored.set(`http://${host}/robots.txt`, asked.get(`${host}/robots.txt`) ?? 0)
  }
}

/** How often each host and path was asked for. */
export function askedOf(requests: readonly RequestEntry[]): ReadonlyMap<string, number> {
  const asked = new Map<string, number>()
  for (const { host, path } of requests) asked.set(host + path, (asked.get(host + path) ?? 0) + 1)
  return asked
}

/** Under which name a URL is in `askedOf`. */
export function askedKey(url: string): string {
  const { hostname, pathname, search } = new URL(url)
  return hostname + pathname + search
}

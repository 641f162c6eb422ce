/** The LMDB store against a naive model that keeps everything in one list. */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { stateOfOutcome, type Outcome, type QueuedUrl, type UrlState } from '../../engine/core/types.ts'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import type { CommitBatch, DeferredUrl, EndedUrl } from '../../storage/store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from '../contract/store-batch.ts'

const HOSTS = ['a.test', 'b.test', 'c.test']
/** A host whose hash is another's, so that probing is under test too. */
const hostHash = (host: string): Uint8Array => new Uint8Array(8).fill(host === 'c.test' ? 1 : host.charCodeAt(0) % 3)

interface ModelUrl {
  readonly url: string
  readonly host: string
  readonly sequence: number
  readonly priority: number
  readonly depth: number
  state: UrlState
  attempts: number
  /** Absent while it was never deferred: it is ready. */
  notBeforeMs?: number
}

class Model {
  readonly urls: ModelUrl[] = []
  readonly excluded = new Set<string>()
  retries = 0
  refused = 0

  add(url: string, priority: number, depth: number): boolean {
    const host = hostOfUrl(url)
    if (this.urls.some((known) => known.url === url)) return false
    if (this.excluded.has(host)) {
      this.refused += 1
      return false
    }
    this.urls.push({ url, host, sequence: this.urls.length + 1, priority, depth, state: 'pending', attempts: 0 })
    return true
  }

  pending(host: string): ModelUrl[] {
    return this.urls.filter((url) => url.state === 'pending' && url.host === host)
  }

  claim(host: string, nowMs: number, leased: ReadonlySet<string>): ModelUrl[] {
    const open = this.pending(host).filter(({ url }) => !leased.has(url))
    const due = open.filter(({ notBeforeMs }) => notBeforeMs !== undefined && notBeforeMs <= nowMs)
    const ready = open.filter(({ notBeforeMs }) => notBeforeMs === undefined)
    return [
      ...due.sort((one, two) => one.notBeforeMs! - two.notBeforeMs! || one.sequence - two.sequence),
      ...ready.sort((one, two) => one.priority - two.priority || one.sequence - two.sequence),
    ]
  }

  nextDueAtMs(host: string, nowMs: number): number | undefined {
    const later = this.pending(host).flatMap(({ notBeforeMs }) => (notBeforeMs !== undefined && notBeforeMs > nowMs ? [notBeforeMs] : []))
    return later.length === 0 ? undefined : Math.min(...later)
  }

  count(state: UrlState): number {
    return this.urls.filter((url) => url.state === state).length
  }
}

const url = fc.record({ host: fc.constantFrom(...HOSTS), page: fc.nat(25) }).map(({ host, page }) => `http://${host}/${page}`)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('add'), urls: fc.array(fc.tuple(url, fc.nat(3)), { maxLength: 6 }) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('claim'), host: fc.constantFrom(...HOSTS), limit: fc.integer({ min: 1, max: 4 }), ms: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('giveBack'), seed: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle'), fates: fc.array(fc.record({
    outcome: fc.constantFrom<Outcome | 'defer'>('ok', 'redirect', 'failed', 'dropped', 'robots_denied', 'defer', 'defer'),
    links: fc.array(url, { maxLength: 4 }), delayMs: fc.nat(5),
  }), { maxLength: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('exclude'), host: fc.constantFrom(...HOSTS) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen') }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Sequences are the store's own: the model has only their order. */
function facts({ url, priority, depth, attempts }: ModelUrl | QueuedUrl): unknown {
  return { url, priority, depth, attempts }
}

class Run {
  readonly model = new Model()
  readonly leased = new Map<number, QueuedUrl>()
  store: LmdbStore
  nowMs = 0
  readonly #dir: string

  constructor(dir: string, store: LmdbStore) {
    this.#dir = dir
    this.store = store
  }

  async do(step: Step): Promise<void> {
    if ('urls' in step) {
      const result = await this.store.commit(emptyBatch({ added: step.urls.map(([text, priority]) => newUrl(text, { priority })) }))
      expect(result.addedNew).toEqual(step.urls.map(([text, priority]) => this.model.add(text, priority, 0)))
    } else if ('limit' in step) {
      this.#claim(step.host, step.limit, step.ms)
    } else if ('fates' in step) {
      await this.#settle(step.fates)
    } else if ('seed' in step) {
      const sequences = [...this.leased.keys()]
      if (sequences.length > 0) this.leased.delete(sequences[step.seed % sequences.length]!)
    } else if ('host' in step) {
      await this.store.commit(emptyBatch({ hosts: [{ name: step.host, excluded: true }] }))
      this.model.excluded.add(step.host)
    } else {
      await this.store.close()
      this.store = await openStore(this.#dir, { hostHash })
      this.leased.clear()
    }
    await this.#compare()
  }

  #claim(host: string, limit: number, ms: number): void {
    this.nowMs += ms
    const leased = new Set(this.leased.keys())
    const { urls, nextDueAtMs } = this.store.claim(host, { limit, nowMs: this.nowMs, leased })
    expect(urls.map(facts)).toEqual(this.model.claim(host, this.nowMs, new Set([...this.leased.values()].map(({ url }) => url))).slice(0, limit).map(facts))
    expect(nextDueAtMs).toBe(this.model.nextDueAtMs(host, this.nowMs))
    for (const claimed of urls) this.leased.set(claimed.sequence, claimed)
  }

  async #settle(fates: readonly { outcome: Outcome | 'defer'; links: string[]; delayMs: number }[]): Promise<void> {
    const settled = [...this.leased.values()].slice(0, fates.length).map((claimed, index) => ({ claimed, ...fates[index]! }))
    const endings = settled.filter((each): each is typeof each & { outcome: Outcome } => each.outcome !== 'defer')
    const batch: CommitBatch = emptyBatch({
      ended: endings.map(({ claimed, outcome, links }): EndedUrl => ended(claimed, { outcome, links: linkList(links, { redirect: outcome === 'redirect', hashOf: hostHash }) })),
      deferred: settled.filter(({ outcome }) => outcome === 'defer')
        .map(({ claimed, delayMs }): DeferredUrl => ({ url: claimed, attempts: claimed.attempts + 1, notBeforeMs: this.nowMs + delayMs, retry: true })),
    })
    const result = await this.store.commit(batch)
    for (const { claimed, outcome, delayMs } of settled) {
      const entry = this.model.urls.find(({ url }) => url === claimed.url)!
      if (outcome === 'defer') Object.assign(entry, { attempts: entry.attempts + 1, notBeforeMs: this.nowMs + delayMs })
      else entry.state = stateOfOutcome[outcome]
      this.leased.delete(claimed.sequence)
    }
    this.model.retries += batch.deferred.length
    const added = endings.map(({ claimed, outcome, links }) => links.filter((link) => (outcome === 'redirect'
      ? this.model.add(link, claimed.priority, claimed.depth)
      : this.model.add(link, claimed.depth + 1, claimed.depth + 1))).length)
    expect(result.newLinks).toEqual(added)
  }

  async #compare(): Promise<void> {
    const counters = this.store.counters()
    for (const state of ['pending', 'done', 'failed', 'dropped', 'excluded'] as const) expect([state, counters[state]]).toEqual([state, this.model.count(state)])
    expect(counters).toMatchObject({ discovered: this.model.urls.length, retries: this.model.retries })
    expect(counters.refused.excluded_host).toBe(this.model.refused)
    for (const { url, host, state } of this.model.urls) expect(this.store.state(host, fingerprintOf(url))).toBe(state)
    const work = this.store.hostsWithWork(undefined, 10).hosts.map(({ name, pending }) => [name, pending])
    expect(work.sort()).toEqual(HOSTS.map((host) => [host, this.model.pending(host).length]).filter(([, pending]) => pending !== 0))
    expect(await faultsOf(this.store)).toEqual([])
  }
}

test('claims, states, counters and hosts with work are those of a list in memory', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-model-'))
    const run = new Run(dir, await openStore(dir, { hostHash }))
    try {
      for (const each of steps) await run.do(each)
    } finally {
      await run.store.close()
      fs.rmSync(dir, { recursive: true })
    }
  }), { numRuns: Number(process.env['RUNS'] ?? 60) })
}, 120_000)

/**
 * The LMDB store against a naive model that keeps everything in one list: adding, claiming, ending, deferring, links,
 * redirects, coming back, due times, caps that drop the worst, budgets of domains, exclusion; with reopenings, and with
 * kills between two operations (a copy of the files as they lie there is what a killed process leaves).
 */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { stateOfOutcome, type Outcome, type QueuedUrl, type RefusalReason, type UrlState } from '../../engine/core/types.ts'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import type { DeferredUrl, EndedUrl } from '../../storage/store.ts'
import { emptyBatch, ended, faultsOf, linkList, newUrl } from '../contract/store-batch.ts'

const HOSTS = ['a.test', 'b.a.test', 'c.test']
/** A host whose hash is another's, so that probing is under test too. */
const hostHash = (host: string): Uint8Array => new Uint8Array(8).fill(host === 'c.test' ? 1 : host.length % 3)
const domainOf = (host: string): string => host.split('.').slice(-2).join('.')
const none = Number.POSITIVE_INFINITY

interface Caps {
  readonly queuedPerHostMax: number
  readonly queuedPerDomainMax: number
  readonly queuedMax: number
  readonly domainBudget: number
}

interface ModelUrl {
  readonly url: string
  readonly host: string
  depth: number
  priority: number
  state: UrlState
  attempts: number
  /** Order of arrival in the queue, and in which batch it came. */
  order: number
  batch: number
  isLater: boolean
  /** Absent while it was never deferred: it is ready. */
  notBeforeMs: number | undefined
  dueAtMs: number | undefined
  fetchedAtMs: number
  chain: readonly string[]
  hasCookie: boolean
  /** In which batch it had its outcome. */
  endedIn: number
  /** It had its outcome before. */
  isAgain: boolean
  /** As the store gave it when it was claimed. */
  sequence: number
}

type NewFacts = Pick<ModelUrl, 'depth' | 'priority'> & Partial<Pick<ModelUrl, 'chain' | 'hasCookie'>>

class Model {
  readonly urls = new Map<string, ModelUrl>()
  readonly excluded = new Set<string>()
  readonly leased = new Set<string>()
  readonly refused: Partial<Record<RefusalReason, number>> = {}
  readonly linking = new Set<string>()
  retries = 0
  pages = 0
  refetched = 0
  #order = 0
  batch = 0
  readonly #caps: Caps

  constructor(caps: Caps) {
    this.#caps = caps
  }

  pending(host?: string): ModelUrl[] {
    return [...this.urls.values()].filter((each) => each.state === 'pending' && (host === undefined || each.host === host))
  }

  add(url: string, facts: NewFacts, again?: true | number): boolean {
    const known = this.urls.get(url)
    if (known !== undefined) return again !== undefined && (again === true || known.fetchedAtMs < again) && this.again(url, facts.priority)
    return this.#enter(url, facts)
  }

  again(url: string, priority = none): boolean {
    const known = this.urls.get(url)
    if (known === undefined || known.state === 'pending') return false
    if (this.excluded.has(known.host)) {
      // Or it would be offered for ever.
      known.dueAtMs = undefined
      return this.#refuse('excluded_host')
    }
    const { depth } = known
    this.#put(url, { depth, priority: Math.min(known.priority, priority) }, { isAgain: true, fetchedAtMs: known.fetchedAtMs })
    return true
  }

  link(from: ModelUrl, url: string, isRedirect: boolean, setsCookie: boolean): boolean {
    const host = hostOfUrl(url)
    const chain = [...from.chain, from.url]
    const hasCookie = from.hasCookie || setsCookie
    const known = this.urls.get(url)
    if (known !== undefined) {
      const isOpen = isRedirect && known.state !== 'pending' && (known === from || known.endedIn < this.batch)
      if (!isOpen || !hasCookie || !chain.includes(url) || new Set(chain).size < chain.length) return false
      if (this.excluded.has(host)) return this.#refuse('excluded_host')
      this.#put(url, { depth: from.depth, priority: from.priority, chain, hasCookie }, { isAgain: false, fetchedAtMs: known.fetchedAtMs })
      return false
    }
    if (this.excluded.has(host)) return this.#refuse('excluded_host')
    const facts = isRedirect ? { depth: from.depth, priority: from.priority, chain, hasCookie } : { depth: from.depth + 1, priority: from.depth + 1 }
    const full = isRedirect ? undefined : this.#fullness(host)
    if (full !== undefined && !this.#evict(host, facts.priority)) return this.#refuse(full)
    if (domainOf(from.host) !== domainOf(host)) this.linking.add(`${domainOf(host)} ${domainOf(from.host)}`)
    return this.#enter(url, facts)
  }

  end(entry: ModelUrl, outcome: Outcome, atMs: number, dueAtMs: number | undefined): void {
    entry.state = stateOfOutcome[outcome]
    entry.dueAtMs = dueAtMs
    entry.fetchedAtMs = atMs
    entry.endedIn = this.batch
    entry.notBeforeMs = undefined
    if (entry.state !== 'done') return
    this.pages += 1
    if (entry.isAgain) this.refetched += 1
  }

  /** In the order of claims, leased ones left out. */
  claim(host: string, nowMs: number): ModelUrl[] {
    const open = this.pending(host).filter(({ url }) => !this.leased.has(url))
    const due = open.filter(({ notBeforeMs }) => notBeforeMs !== undefined && notBeforeMs <= nowMs)
    return [...due.sort((one, two) => one.notBeforeMs! - two.notBeforeMs! || one.sequence - two.sequence), ...this.#ready(open)]
  }

  nextDueAtMs(host: string, nowMs: number): number | undefined {
    const later = this.pending(host).flatMap(({ notBeforeMs }) => (notBeforeMs !== undefined && notBeforeMs > nowMs ? [notBeforeMs] : []))
    return later.length === 0 ? undefined : Math.min(...later)
  }

  due(nowMs: number): ModelUrl[] {
    return [...this.urls.values()].filter(({ state, dueAtMs }) => state !== 'pending' && dueAtMs !== undefined && dueAtMs <= nowMs)
  }

  count(state: UrlState): number {
    return [...this.urls.values()].filter((url) => url.state === state).length
  }

  #ready(urls: readonly ModelUrl[]): ModelUrl[] {
    return urls.filter(({ notBeforeMs }) => notBeforeMs === undefined)
      .sort((one, two) => Number(one.isLater) - Number(two.isLater) || one.priority - two.priority || one.order - two.order)
  }

  #fullness(host: string): RefusalReason | undefined {
    const { queuedPerHostMax, queuedPerDomainMax, queuedMax } = this.#caps
    if (this.pending(host).length >= queuedPerHostMax) return 'host_full'
    if (this.#ofDomain(host).length >= queuedPerDomainMax) return 'domain_full'
    return this.pending().length >= queuedMax ? 'queue_full' : undefined
  }

  #ofDomain(host: string): ModelUrl[] {
    return this.pending().filter((each) => domainOf(each.host) === domainOf(host))
  }

  #evict(host: string, priority: number): boolean {
    const worst = this.#ready(this.pending(host)).findLast((each) => each.batch < this.batch && each.priority > priority && !each.isAgain && !this.leased.has(each.url))
    if (worst === undefined) return false
    worst.state = 'dropped'
    worst.dueAtMs = undefined
    worst.fetchedAtMs = 0
    return true
  }

  #enter(url: string, facts: NewFacts): boolean {
    if (this.excluded.has(hostOfUrl(url))) return this.#refuse('excluded_host')
    this.#put(url, facts, { isAgain: false, fetchedAtMs: 0 })
    return true
  }

  #put(url: string, facts: NewFacts, more: Pick<ModelUrl, 'isAgain' | 'fetchedAtMs'>): void {
    const host = hostOfUrl(url)
    const links = [...this.linking].filter((pair) => pair.startsWith(`${domainOf(host)} `)).length
    const first = this.#ofDomain(host).filter(({ isLater }) => !isLater).length
    this.urls.delete(url)
    this.urls.set(url, {
      url, host, chain: [], hasCookie: false, endedIn: 0, ...facts, ...more, state: 'pending', attempts: 0, order: this.#order += 1, batch: this.batch, sequence: 0,
      isLater: first >= this.#caps.domainBudget * (1 + links), notBeforeMs: undefined, dueAtMs: undefined,
    })
  }

  #refuse(reason: RefusalReason): false {
    this.refused[reason] = (this.refused[reason] ?? 0) + 1
    return false
  }
}

const url = fc.record({ host: fc.constantFrom(...HOSTS), page: fc.nat(14) }).map(({ host, page }) => `http://${host}/${page}`)
const again = fc.option(fc.oneof(fc.constant<true>(true), fc.nat(20)), { nil: undefined, freq: 3 })
const step = fc.oneof(
  { weight: 9, arbitrary: fc.record({ kind: fc.constant('add' as const), urls: fc.array(fc.tuple(url, fc.nat(6), again), { maxLength: 6 }) }) },
  { weight: 18, arbitrary: fc.record({ kind: fc.constant('claim' as const), host: fc.constantFrom(...HOSTS), limit: fc.integer({ min: 1, max: 4 }), ms: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('giveBack' as const), seed: fc.nat() }) },
  { weight: 18, arbitrary: fc.record({ kind: fc.constant('settle' as const), fates: fc.array(fc.record({
    outcome: fc.constantFrom<Outcome | 'defer'>('ok', 'ok', 'redirect', 'failed', 'dropped', 'robots_denied', 'not_modified', 'defer', 'defer'),
    links: fc.array(fc.oneof({ weight: 4, arbitrary: url }, { weight: 1, arbitrary: fc.nat() }), { maxLength: 6 }), setsCookie: fc.boolean(), delayMs: fc.nat(5), dueMs: fc.option(fc.nat(9), { nil: undefined }),
  }), { maxLength: 5 }) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('again' as const), picks: fc.array(fc.oneof(url, fc.nat()), { maxLength: 5 }) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('due' as const), ms: fc.nat(4), limit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('exclude' as const), host: fc.constantFrom(...HOSTS) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('reopen' as const, 'kill' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type Fate = Extract<Step, { kind: 'settle' }>['fates'][number]

/** Sequences are the store's own: the model has only their order. */
function facts(each: ModelUrl | QueuedUrl): unknown {
  const { url, priority, depth, attempts } = each
  return { url, priority, depth, attempts, chain: 'chain' in each ? each.chain : each.redirectedFrom ?? [], hasCookie: each.hasCookie === true, isLater: each.isLater === true && (!('notBeforeMs' in each) || each.notBeforeMs === undefined), isAgain: 'isAgain' in each ? each.isAgain : (each as QueuedUrl).previous !== undefined }
}

class Run {
  readonly model: Model
  readonly leased = new Map<number, QueuedUrl>()
  store!: LmdbStore
  nowMs = 10
  readonly #base: string
  readonly #caps: Caps
  #dirs = 0

  constructor(base: string, caps: Caps) {
    this.#base = base
    this.#caps = caps
    this.model = new Model(caps)
  }

  get #dir(): string {
    return path.join(this.#base, String(this.#dirs))
  }

  async open(): Promise<void> {
    this.store = await openStore(this.#dir, { hostHash })
    this.store.setScope('any', domainOf)
    await this.store.setCaps(Object.fromEntries(Object.entries(this.#caps).filter(([, max]) => max < none)))
    this.store.setLeases((_, sequence) => this.leased.has(sequence))
    this.leased.clear()
    this.model.leased.clear()
  }

  async do(step: Step): Promise<void> {
    this.model.batch += 1
    switch (step.kind) {
      case 'add': {
        const added = step.urls.map(([text, priority, again]) => newUrl(text, { priority, ...(again !== undefined && { again }) }))
        const result = await this.store.commit(emptyBatch({ added }))
        expect(result.addedNew).toEqual(step.urls.map(([text, priority, again]) => this.model.add(text, { priority, depth: 0 }, again)))
        break
      }
      case 'claim': this.#claim(step.host, step.limit, step.ms); break
      case 'settle': await this.#settle(step.fates); break
      case 'again': {
        // Most are URLs that have their outcome, since any other is passed over.
        const endedUrls = [...this.model.urls.values()].filter(({ state }) => state !== 'pending')
        const texts = step.picks.flatMap((pick) => (typeof pick === 'string' ? [pick] : endedUrls.length === 0 ? [] : [endedUrls[pick % endedUrls.length]!.url]))
        const result = await this.store.commit(emptyBatch({ again: texts.map((text) => newUrl(text)) }))
        expect(result.again).toEqual(texts.map((text) => this.model.again(text)))
        break
      }
      case 'due': await this.#bringDue(step.ms, step.limit); break
      case 'giveBack': this.#giveBack(step.seed); break
      case 'exclude':
        await this.store.commit(emptyBatch({ hosts: [{ name: step.host, excluded: true }] }))
        this.model.excluded.add(step.host)
        break
      case 'reopen':
        await this.store.close()
        await this.open()
        break
      case 'kill': await this.#kill(); break
    }
    await this.#compare()
  }

  /** What a killed process leaves are its files as they lie there. */
  async #kill(): Promise<void> {
    const old = [this.store, this.#dir] as const
    this.#dirs += 1
    fs.cpSync(old[1], this.#dir, { recursive: true })
    await old[0].close()
    await this.open()
    expect(this.store.openedUnclean).toBe(true)
  }

  #giveBack(seed: number): void {
    const sequences = [...this.leased.keys()]
    if (sequences.length === 0) return
    const sequence = sequences[seed % sequences.length]!
    this.model.leased.delete(this.leased.get(sequence)!.url)
    this.leased.delete(sequence)
  }

  #claim(host: string, limit: number, ms: number): void {
    this.nowMs += ms
    const { urls, nextDueAtMs } = this.store.claim(host, { limit, nowMs: this.nowMs, leased: new Set(this.leased.keys()) })
    const expected = this.model.claim(host, this.nowMs).slice(0, limit)
    expect(urls.map(facts)).toEqual(expected.map(facts))
    expect(nextDueAtMs).toBe(this.model.nextDueAtMs(host, this.nowMs))
    for (const claimed of urls) {
      this.leased.set(claimed.sequence, claimed)
      this.model.leased.add(claimed.url)
      this.model.urls.get(claimed.url)!.sequence = claimed.sequence
      expect(this.store.queued(claimed.row, claimed.sequence)).toEqual(claimed)
    }
  }

  async #settle(fates: readonly Fate[]): Promise<void> {
    const settled = [...this.leased.values()].slice(0, fates.length).map((claimed, index) => {
      // A number is a URL of its own chain.
      const chain = [...claimed.redirectedFrom ?? [], claimed.url]
      return { claimed, ...fates[index]!, links: fates[index]!.links.map((link) => (typeof link === 'string' ? link : chain[link % chain.length]!)) }
    })
    const endings = settled.filter((each): each is typeof each & { outcome: Outcome } => each.outcome !== 'defer')
    const batch = emptyBatch({
      ended: endings.map(({ claimed, outcome, links, dueMs, setsCookie }): EndedUrl => ended(claimed, {
        outcome, ...(setsCookie && { setsCookie }), links: linkList(links, { redirect: outcome === 'redirect', hashOf: hostHash }), atMs: this.nowMs,
        ...(dueMs !== undefined && { due: { atMs: this.nowMs + dueMs, intervalMs: dueMs } }),
      })),
      deferred: settled.filter(({ outcome }) => outcome === 'defer')
        .map(({ claimed, delayMs }): DeferredUrl => ({ url: claimed, attempts: claimed.attempts + 1, notBeforeMs: this.nowMs + delayMs, retry: true })),
    })
    const result = await this.store.commit(batch)
    const added = endings.map(({ claimed, outcome, links, dueMs, setsCookie }) => {
      const entry = this.model.urls.get(claimed.url)!
      this.model.end(entry, outcome, this.nowMs, dueMs === undefined ? undefined : this.nowMs + dueMs)
      return links.filter((link) => this.model.link(entry, link, outcome === 'redirect', setsCookie)).length
    })
    expect(result.newLinks).toEqual(added)
    for (const { claimed, outcome, delayMs } of settled) {
      if (outcome === 'defer') Object.assign(this.model.urls.get(claimed.url)!, { attempts: claimed.attempts + 1, notBeforeMs: this.nowMs + delayMs, isLater: false })
      this.leased.delete(claimed.sequence)
      this.model.leased.delete(claimed.url)
    }
    this.model.retries += batch.deferred.length
  }

  async #bringDue(ms: number, limit: number): Promise<void> {
    this.nowMs += ms
    const due = this.store.due(this.nowMs, limit)
    const expected = this.model.due(this.nowMs)
    expect(due).toHaveLength(Math.min(limit, expected.length))
    const times = [...expected].map(({ dueAtMs }) => dueAtMs!).sort((one, two) => one - two)
    const found = due.map(({ fingerprint }) => expected.find(({ url }) => Buffer.compare(fingerprintOf(url), fingerprint) === 0)!)
    expect(found.map(({ dueAtMs }) => dueAtMs)).toEqual(times.slice(0, limit))
    const result = await this.store.commit(emptyBatch({ again: due }))
    expect(result.again).toEqual(found.map(({ url }) => this.model.again(url)))
  }

  async #compare(): Promise<void> {
    const counters = this.store.counters()
    for (const state of ['pending', 'done', 'failed', 'dropped', 'excluded'] as const) expect([state, counters[state]]).toEqual([state, this.model.count(state)])
    const { retries, pages, refetched } = this.model
    expect(counters).toMatchObject({ discovered: this.model.urls.size, retries, pages, refetched, refused: this.model.refused })
    for (const { url, host, state } of this.model.urls.values()) expect(this.store.state(host, fingerprintOf(url))).toBe(state)
    const work = this.store.hostsWithWork(undefined, 10).hosts.map(({ name, pending }) => [name, pending])
    expect(work.sort()).toEqual(HOSTS.map((host) => [host, this.model.pending(host).length]).filter(([, pending]) => pending !== 0).sort())
    expect(await faultsOf(this.store)).toEqual([])
  }
}

const cap = (max: number): fc.Arbitrary<number> => fc.oneof({ weight: 1, arbitrary: fc.constant(none) }, { weight: 1, arbitrary: fc.integer({ min: 1, max }) })
const caps = fc.record({ queuedPerHostMax: cap(6), queuedPerDomainMax: cap(10), queuedMax: cap(15), domainBudget: cap(5) })

test('claims, states, counters and hosts with work are those of a list in memory, whatever is reopened and killed in between', async () => {
  await fc.assert(fc.asyncProperty(caps, fc.array(step, { minLength: 40, maxLength: 80 }), async (given, steps) => {
    const base = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-model-'))
    const run = new Run(base, given)
    await run.open()
    try {
      for (const each of steps) await run.do(each)
    } finally {
      await run.store.close()
      fs.rmSync(base, { recursive: true })
    }
  }), { numRuns: Number(process.env['RUNS'] ?? 20), endOnFailure: true })
}, 120_000)

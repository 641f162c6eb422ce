/**
 * What one batch changes, worked out by reading alone: the writes of its transaction, the new counters, and for each
 * page how many of its links were new. Main thread. Invariant: nothing here writes, so a batch that breaks a rule is
 * thrown out whole and the store is as it was; and discovered = pending + done + failed + dropped + excluded holds in
 * the counters that it answers, because each change of a state moves one URL from one term to another.
 *
 * Order: host records and scope names first, since the links of the same batch are judged by them; then what the user
 * added, whose depth and priority win over those of a link to the same URL; then outcomes, links and deferrals.
 */
import { invariant } from '../../engine/core/errors.ts'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { queryPathHash } from '../../engine/core/traps.ts'
import { stateOfOutcome, type Counters, type Known, type NewUrl, type QueryCounts, type QueuedUrl, type RefusalReason } from '../../engine/core/types.ts'
import type { CommitBatch, DeferredUrl, EndedUrl } from '../store.ts'
import {
  Arena, decodeCount, encodeCount, encodeHostRow, encodeJson, encodePageRow, encodeQueueRow, encodeState,
  factsOfHostRow, fingerprintOfQueueRow, nameOfHostRow,
} from './codec.ts'
import type { Tables, Write } from './environment.ts'
import { findHostKey } from './hosts.ts'
import { deferredRow, hostKeyOf, keyText, readyRow, seenKey } from './layout.ts'

export type ScopeMode = 'any' | 'host' | 'domain'

/** How much of one kind is taken from links. What the user adds is meant, and is neither refused nor counted. */
export interface LinkCaps {
  /** A host with as many rows in the queue gets no more from links; redirects lead to it all the same. */
  readonly queuedPerHostMax: number
  /** A path that got as many URLs with a query from links and redirects gets no more of them from links. */
  readonly queriesPerPathMax: number
}

/** What a plan reads. */
export interface PlanView {
  readonly tables: Tables
  readonly hashOf: (host: string) => Uint8Array
  readonly scope: { readonly mode: ScopeMode; readonly domainOf: (host: string) => string }
  /** The other host under which a URL of the same fingerprint may have its row; undefined where each host is its own. */
  readonly twinOf: ((host: string) => string | undefined) | undefined
  /** Proofs of `seen` rows that spare look-ups. */
  readonly known: Known | undefined
  readonly caps: LinkCaps
  /** URLs with a query by path, as committed; absent: none are counted, and `queriesPerPathMax` does not apply. */
  readonly queries: QueryCounts | undefined
  readonly counters: Counters
  /** The sequence of the next new URL. */
  readonly sequence: number
}

interface PlannedHost {
  readonly name: string
  readonly key: Uint8Array
  readonly isNew: boolean
  readonly facts: Record<string, unknown>
  changed: boolean
  grown: boolean
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export class Plan {
  readonly writes: Write[] = []
  readonly addedNew: boolean[] = []
  readonly newLinks: number[] = []
  /** Rows that leave the queue, and ready rows that enter it. */
  readonly left: Uint8Array[] = []
  readonly entered: Uint8Array[] = []
  /** Fingerprints of all that the batch met and that has a `seen` row once it is committed; empty without a table. */
  readonly proven: Uint8Array[] = []
  /** URLs with a query that links of the batch brought, by path. */
  readonly queryPaths: { readonly path: Uint8Array; urls: number }[] = []
  readonly counters: Mutable<Counters> & { refused: Record<RefusalReason, number> }
  readonly arena = new Arena()
  sequence: number

  readonly #view: PlanView
  readonly #hashes = new Map<string, Uint8Array>()
  readonly #hosts = new Map<string, PlannedHost>()
  readonly #newNames = new Map<string, string>()
  readonly #newUrls = new Set<string>()
  readonly #newScope = new Set<string>()
  readonly #touched = new Set<string>()
  readonly #queryPaths = new Map<string, { readonly path: Uint8Array; urls: number }>()
  readonly #pending = new Map<string, { readonly key: Uint8Array; change: number }>()

  constructor(view: PlanView, batch: CommitBatch) {
    this.#view = view
    this.counters = { ...view.counters, refused: { ...view.counters.refused } }
    this.sequence = view.sequence
    for (const host of batch.hosts) this.#updateHost(host)
    for (const name of batch.scope) this.#addScope(name)
    for (const url of batch.added) this.addedNew.push(this.#addUrl(url))
    for (const ended of batch.ended) this.#end(ended)
    for (const deferred of batch.deferred) this.#defer(deferred)
    this.#finishHosts()
  }

  hostsGrown(): string[] {
    return [...this.#hosts.values()].filter((host) => host.grown).map((host) => host.name)
  }

  #updateHost(update: CommitBatch['hosts'][number]): void {
    const { name, pending: _pending, robots, ...facts } = update
    const host = this.#host(name)
    Object.assign(host.facts, facts)
    host.changed = true
    if (robots !== undefined) this.#put('robots', host.key, encodeJson(this.arena, robots))
  }

  #addScope(name: string): void {
    this.#newScope.add(name)
    this.#put('scope', Buffer.from(name), new Uint8Array(0))
  }

  #addUrl(url: NewUrl): boolean {
    const key = seenKey(this.#hashOf(url.host), url.fingerprint)
    if (this.#isSeen(key) || this.#isSeenUnderTwin(url.host, url.fingerprint)) return false
    const host = this.#host(url.host)
    if (host.facts['excluded'] === true) return this.#refuse('excluded_host')
    this.#enter(host, key, url)
    return true
  }

  #end(ended: EndedUrl): void {
    const { url, outcome, page } = ended
    this.#takeRow(url)
    const key = seenKey(this.#hashOf(url.host), url.fingerprint)
    const state = stateOfOutcome[outcome]
    this.#put('seen', key, encodeState(this.arena, state, outcome))
    if (page !== undefined) this.#put('pages', key, encodePageRow(this.arena, page))
    this.#changePending(hostKeyOf(url.row), -1)
    this.counters.pending -= 1
    this.counters[state] += 1
    if (state === 'done') {
      this.counters.pages += 1
      this.counters.wireBytes += ended.wireBytes
      this.counters.bodyBytes += ended.bodyBytes
    }
    if (ended.isNearDuplicate === true) this.counters.nearDuplicates += 1
    for (const [reason, count] of Object.entries(ended.refused ?? {})) this.counters.refused[reason as RefusalReason] += count
    this.newLinks.push(this.#addLinks(ended))
  }

  #addLinks({ url, links }: EndedUrl): number {
    let added = 0
    // Most links were seen before: one key serves all look-ups, and a new link gets a copy.
    const key = new Uint8Array(24)
    for (let index = 0; index < links.count; index += 1) {
      const fingerprint = links.fingerprint(index)
      if (links.isRedirect(index) && Buffer.compare(fingerprint, url.fingerprint) === 0) {
        if (this.#followSpelling(url, links.url(index), links.hostHash(index))) added += 1
        continue
      }
      if (this.#view.known?.has(fingerprint) === true) continue
      key.set(links.hostHash(index), 0)
      key.set(fingerprint, 8)
      if (this.#isSeen(key)) continue
      const text = links.url(index)
      if (this.#view.twinOf !== undefined && this.#isSeenUnderTwin(hostOfUrl(text), fingerprint)) continue
      if (this.#addLink(url, key.slice(), text, links.isRedirect(index))) added += 1
    }
    return added
  }

  /**
   * A redirect to another spelling of the URL itself (`/a` to `/a/`, or to the name with `www.`, where the crawl takes
   * them for one): the page is behind it, so the URL goes on under that spelling. It is pending again; only under another
   * host it is one more, which is the answer. A site that sends it back to where it was is followed no further: the
   * other pages of such a site would each cost `redirectsMax` fetches too.
   */
  #followSpelling(from: QueuedUrl, url: string, hostHash: Uint8Array): boolean {
    if (url === from.url || from.redirectedFrom?.includes(url) === true) return false
    const key = seenKey(hostHash, from.fingerprint)
    if (Buffer.compare(hostHash, this.#hashOf(from.host)) !== 0) return !this.#isSeen(key) && this.#addLink(from, key, url, true)
    const host = this.#host(from.host)
    if (host.facts['excluded'] === true) return this.#refuse('excluded_host')
    this.counters.discovered -= 1
    this.counters[stateOfOutcome.redirect] -= 1
    this.#enterRedirected(from, host, key, url)
    return false
  }

  #addLink(from: QueuedUrl, key: Uint8Array, url: string, isRedirect: boolean): boolean {
    const name = hostOfUrl(url)
    const hash = this.#hashOf(name)
    invariant(Buffer.compare(hash, key.subarray(0, hash.length)) === 0, 'a link carries the hash of its host')
    if (!this.#inScope(name)) return this.#refuse('scope')
    const host = this.#host(name)
    if (host.facts['excluded'] === true) return this.#refuse('excluded_host')
    // A link that a full host did not take comes again; a redirect's target never does, since the URL that led to it is done.
    // It takes that one's place in the queue.
    if (!isRedirect && this.#isFull(host)) return this.#refuse('host_full')
    if (!this.#takesQuery(url, isRedirect)) return this.#refuse('query_growth')
    const fingerprint = key.subarray(8)
    if (isRedirect) {
      this.#enterRedirected(from, host, key, url)
    } else {
      const depth = Math.min(from.depth + 1, limits.depthMax)
      this.#enter(host, key, { url, host: name, fingerprint, depth, priority: Math.min(depth, limits.priorityMax), referrer: from.url })
    }
    return true
  }

  /** Rows of the host as committed, and what the batch changed so far: a page that ends makes room for its links. */
  #isFull(host: PlannedHost): boolean {
    const { queuedPerHostMax } = this.#view.caps
    if (queuedPerHostMax === Number.POSITIVE_INFINITY) return false
    const change = this.#pending.get(keyText(host.key))?.change ?? 0
    return decodeCount(this.#view.tables.ready.get(host.key)) + change >= queuedPerHostMax
  }

  /** Counts the query of a URL for its path, unless a link must not bring it any more. A redirect's target is one URL. */
  #takesQuery(url: string, isRedirect: boolean): boolean {
    const { queries, caps } = this.#view
    // A count that nobody asks for costs a hash of each link.
    const path = queries === undefined || caps.queriesPerPathMax === Number.POSITIVE_INFINITY ? undefined : queryPathHash(url)
    if (path === undefined) return true
    const id = keyText(path)
    const entry = this.#queryPaths.get(id) ?? { path, urls: 0 }
    if (!isRedirect && queries!.countOf(path) + entry.urls >= caps.queriesPerPathMax) return false
    if (entry.urls === 0) {
      this.#queryPaths.set(id, entry)
      this.queryPaths.push(entry)
    }
    entry.urls += 1
    return true
  }

  #enterRedirected(from: QueuedUrl, host: PlannedHost, key: Uint8Array, url: string): void {
    const { depth, priority, referrer } = from
    const redirectedFrom = [...from.redirectedFrom ?? [], from.url]
    this.#enter(host, key, { url, host: host.name, fingerprint: key.subarray(8), depth, priority, redirectedFrom, ...(referrer === undefined ? {} : { referrer }) })
  }

  #defer({ url, attempts, notBeforeMs, retry }: DeferredUrl): void {
    const value = this.#takeRow(url)
    const fingerprint = fingerprintOfQueueRow(value)
    this.#put('queue', deferredRow(hostKeyOf(url.row), notBeforeMs, url.sequence), encodeQueueRow(this.arena, { ...url, fingerprint, attempts }))
    if (retry) this.counters.retries += 1
  }

  /** Takes the row of a claimed URL out of the queue. A URL that ends or is deferred twice breaks the lease. */
  #takeRow(url: QueuedUrl): Uint8Array {
    const id = keyText(url.row)
    const value = this.#view.tables.queue.get(url.row)
    invariant(!this.#touched.has(id), `a URL ends once in a batch: ${url.url}`)
    invariant(value !== undefined, `a URL that ends has a row in the queue: ${url.url}`)
    invariant(Buffer.compare(fingerprintOfQueueRow(value), url.fingerprint) === 0, `the row of a URL is its own: ${url.url}`)
    this.#touched.add(id)
    this.left.push(url.row)
    this.writes.push({ table: 'queue', key: url.row })
    return value
  }

  /** Whether a URL has a `seen` row or gets one in this batch; then its fingerprint is proven too. */
  #isSeen(key: Uint8Array): boolean {
    if (!this.#view.tables.seen.has(key) && !this.#newUrls.has(keyText(key))) return false
    this.#prove(key)
    return true
  }

  /** A row stays under the host that its URL names, so that its end finds it whatever the rules are by then. */
  #isSeenUnderTwin(host: string, fingerprint: Uint8Array): boolean {
    const twin = this.#view.twinOf?.(host)
    return twin !== undefined && this.#isSeen(seenKey(this.#hashOf(twin), fingerprint))
  }

  #prove(key: Uint8Array): void {
    if (this.#view.known !== undefined) this.proven.push(key.slice(8))
  }

  #enter(host: PlannedHost, key: Uint8Array, url: NewUrl): void {
    const row = readyRow(host.key, url.priority, this.sequence)
    this.sequence += 1
    this.#newUrls.add(keyText(key))
    this.#prove(key)
    this.entered.push(row)
    this.#put('queue', row, encodeQueueRow(this.arena, { ...url, attempts: 0 }))
    this.#put('seen', key, encodeState(this.arena, 'pending'))
    this.#changePending(host.key, 1)
    host.grown = true
    this.counters.discovered += 1
    this.counters.pending += 1
  }

  #refuse(reason: RefusalReason): false {
    this.counters.refused[reason] += 1
    return false
  }

  /** A host is in scope with its twin: the URLs of both are one, and a site may answer under the other name only. */
  #inScope(host: string): boolean {
    const { scope: { mode, domainOf }, twinOf } = this.#view
    if (mode === 'any') return true
    if (mode === 'domain') return this.#isScopeName(domainOf(host))
    const twin = twinOf?.(host)
    return this.#isScopeName(host) || (twin !== undefined && this.#isScopeName(twin))
  }

  #isScopeName(name: string): boolean {
    return this.#newScope.has(name) || this.#view.tables.scope.has(Buffer.from(name))
  }

  #hashOf(name: string): Uint8Array {
    const known = this.#hashes.get(name)
    if (known !== undefined) return known
    const hash = this.#view.hashOf(name)
    this.#hashes.set(name, hash)
    return hash
  }

  #host(name: string): PlannedHost {
    const known = this.#hosts.get(name)
    if (known !== undefined) return known
    let row: Uint8Array | undefined
    const key = findHostKey(this.#hashOf(name), name, (at) => {
      row = this.#view.tables.hosts.get(at)
      return row === undefined ? this.#newNames.get(keyText(at)) : nameOfHostRow(row)
    })
    const host = { name, key, isNew: row === undefined, facts: row === undefined ? {} : { ...factsOfHostRow(row) }, changed: false, grown: false }
    this.#hosts.set(name, host)
    if (host.isNew) this.#newNames.set(keyText(key), name)
    return host
  }

  #changePending(key: Uint8Array, change: number): void {
    const id = keyText(key)
    const entry = this.#pending.get(id)
    if (entry === undefined) this.#pending.set(id, { key, change })
    else entry.change += change
  }

  #finishHosts(): void {
    for (const host of this.#hosts.values()) {
      // A host whose every link was refused leaves no row.
      if (host.changed || (host.isNew && host.grown)) this.#put('hosts', host.key, encodeHostRow(this.arena, host.name, host.facts))
    }
    for (const { key, change } of this.#pending.values()) {
      const pending = decodeCount(this.#view.tables.ready.get(key)) + change
      invariant(pending >= 0, 'a host has no fewer than no rows')
      if (pending === 0) this.writes.push({ table: 'ready', key })
      else this.#put('ready', key, encodeCount(this.arena, pending))
    }
  }

  #put(table: Write['table'], key: Uint8Array, value: Uint8Array): void {
    this.writes.push({ table, key, value })
  }
}

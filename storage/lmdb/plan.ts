/**
 * What one batch changes, worked out by reading alone: the writes of its transaction, the new counters, and for each
 * page how many of its links were new. Main thread. Invariant: nothing here writes, so a batch that breaks a rule is
 * thrown out whole and the store is as it was; and discovered = pending + done + failed + dropped + excluded holds in
 * the counters that it answers, because each change of a state moves one URL from one term to another.
 *
 * Order: host records and scope names first, since the links of the same batch are judged by them; then what the user
 * added, whose depth and priority win over those of a link to the same URL; then URLs that are tried again, outcomes,
 * links and deferrals.
 *
 *   this file          states, page rows, due times, counters
 *   returns.ts         whether a redirect may lead back to a URL of its own chain
 *   queue-edit.ts      rows of the queue
 *   planned-hosts.ts   rows of hosts, and how many URLs of each are in the queue
 *   admission.ts       which links come in
 *   domains.ts         counts of registrable domains
 */
import { invariant } from '../../engine/core/errors.ts'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { askPriority } from '../../engine/core/priority.ts'
import { stateOfOutcome, type Counters, type FullReason, type NewUrl, type Outcome, type PreviousFetch, type QueuedUrl, type RefusalReason } from '../../engine/core/types.ts'
import type { AgainUrl, CommitBatch, CommitResult, DeferredUrl, EndedUrl, PageAnswer, PageRow, ShedUrl } from '../store.ts'
import { Admission, isQueueFull, type Link, type PlanView } from './admission.ts'
import { Arena, decodePageRow, decodeState, encodePageRow, encodeState } from './codec.ts'
import type { Write } from './environment.ts'
import { dueKey, fingerprintOfSeen, hostKeyOf, keyText, seenKey } from './layout.ts'
import { PlannedHosts, type PlannedHost } from './planned-hosts.ts'
import { isInLaterClass, QueueEdit } from './queue-edit.ts'
import type { RowHead } from './queue-row.ts'
import { chainOf, mayReturn } from './returns.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export class Plan {
  readonly writes: Write[] = []
  readonly addedNew: boolean[] = []
  readonly again: boolean[] = []
  readonly newLinks: number[] = []
  readonly shed: ShedUrl[] = []
  readonly counters: Mutable<Counters> & { refused: Record<RefusalReason, number> }
  readonly arena = new Arena()
  readonly queue: QueueEdit
  readonly admission: Admission

  readonly #view: PlanView
  readonly #hosts: PlannedHosts
  /** URLs that entered the queue in this batch, by their `seen` key. */
  readonly #entered = new Set<string>()
  #refusedReported = 0

  constructor(given: PlanView, batch: CommitBatch) {
    const view = { ...given, hashOf: remembering(given.hashOf) }
    this.#view = view
    this.counters = { ...view.counters, refused: { ...view.counters.refused } }
    this.queue = new QueueEdit({ queue: view.tables.queue, arena: this.arena, sequence: view.sequence })
    this.#hosts = new PlannedHosts(view.tables, view.hashOf, view.commitNumber, view.linkRules.isExcluded)
    this.admission = new Admission(view, this.#hosts, { counters: this.counters, entered: this.#entered })
    for (const host of batch.hosts) this.#updateHost(host)
    for (const name of batch.scope) this.#addScope(name)
    for (const url of batch.added) this.addedNew.push(this.#addUrl(url))
    for (const url of batch.again) this.again.push(this.#tryAgain(url))
    for (const ended of batch.ended) this.#end(ended)
    for (const deferred of batch.deferred) this.#defer(deferred)
    for (const write of this.queue.finish()) this.writes.push(write)
    for (const write of this.#hosts.writes(this.arena)) this.writes.push(write)
    for (const write of this.admission.domains?.writes(this.arena) ?? []) this.writes.push(write)
  }

  get hostsGrown(): CommitResult['hostsGrown'] {
    return this.#hosts.grown()
  }

  #updateHost({ name, pending: _pending, robots, ...facts }: CommitBatch['hosts'][number]): void {
    this.#hosts.change(name, facts, robots)
  }

  #addScope(name: string): void {
    this.admission.addScope(name)
    this.#put('scope', Buffer.from(name), new Uint8Array(0))
  }

  #addUrl(url: NewUrl): boolean {
    const key = seenKey(this.#view.hashOf(url.host), url.fingerprint)
    const seen = this.admission.seenAs(key, url.host)
    if (seen !== undefined) return url.again !== undefined && this.#again(url.host, seen, url)
    if (url.referrer !== undefined) return this.#addListed(key, { ...url, referrer: url.referrer })
    const host = this.#hosts.of(url.host)
    if (host.isExcluded) return this.#refuse('excluded_host')
    this.#enter(host, key, { ...url, priority: this.#priorityOf(url, true) })
    return true
  }

  /** What a site lists itself is not the user's word: the rules for links hold. */
  #addListed(key: Uint8Array, { again: _again, ...url }: NewUrl & { readonly referrer: string }): boolean {
    const link = { url: url.url, name: url.host, isRedirect: false, isListed: true, from: hostOfUrl(url.referrer) } as const
    return this.#admit(link, url, (host, priority) => this.#enter(host, key, { ...url, priority }))
  }

  #tryAgain({ host, fingerprint }: AgainUrl): boolean {
    return this.#again(host, seenKey(this.#view.hashOf(host), fingerprint), undefined)
  }

  /** Moves an ended URL back into the queue. `given`: as the user wrote it now, which may be another spelling. */
  #again(hostName: string, key: Uint8Array, given: NewUrl | undefined): boolean {
    const state = this.#view.tables.seen.get(key)
    const value = this.#view.tables.pages.get(key)
    // Without a state or a page row it is new in this batch, or pending.
    if (state === undefined || value === undefined || this.#entered.has(keyText(key))) return false
    const was = decodeState(state)
    if (was === 'pending') return false
    const page = decodePageRow(value)
    if (typeof given?.again === 'number' && page.fetchedAtMs >= given.again) return false
    // A twin stands under the host that its page row names.
    const url = given === undefined || hostOfUrl(page.url) !== hostName ? page.url : given.url
    const host = this.#hosts.of(hostOfUrl(page.url))
    if (page.due !== undefined) this.#remove('due', dueKey(page.due.atMs, key))
    if (host.isExcluded) {
      // Never due again, or it would be offered for ever.
      const { due, ...rest } = page
      if (due !== undefined) this.#put('pages', key, encodePageRow(this.arena, rest))
      return this.#refuse('excluded_host')
    }
    this.counters[was] -= 1
    this.counters.discovered -= 1
    const priority = Math.min(page.priority, given?.priority ?? page.priority)
    this.#enter(host, key, { url, host: host.name, fingerprint: fingerprintOfSeen(key), depth: page.depth, priority, ...(page.kind && { kind: page.kind }) }, true)
    return true
  }

  #end(ended: EndedUrl): void {
    const { url, outcome } = ended
    this.#take(url)
    const key = seenKey(this.#view.hashOf(url.host), url.fingerprint)
    const state = stateOfOutcome[outcome]
    this.#settle(key, outcome, pageRowOf(ended))
    this.counters[state] += 1
    if (state === 'done' && url.kind === undefined) {
      this.counters.pages += 1
      this.counters.wireBytes += ended.wireBytes
      this.counters.bodyBytes += ended.bodyBytes
      if (url.previous !== undefined) this.counters.refetched += 1
      if (outcome === 'not_modified') this.counters.notModified += 1
      if (ended.isUnchanged === true) this.counters.unchanged += 1
    }
    if (ended.isNearDuplicate === true) this.counters.nearDuplicates += 1
    for (const [reason, count] of Object.entries(ended.refused ?? {})) this.counters.refused[reason as RefusalReason] += count
    this.newLinks.push(this.#addLinks(ended))
  }

  #addLinks(ended: EndedUrl): number {
    const { url, links } = ended
    let added = 0
    // Most links were seen before: one key serves all look-ups, and a new link gets a copy.
    const key = new Uint8Array(24)
    for (let index = 0; index < links.count; index += 1) {
      const fingerprint = links.fingerprint(index)
      if (!links.isRedirect(index) && this.admission.isKnown(fingerprint)) continue
      key.set(links.hostHash(index), 0)
      key.set(fingerprint, 8)
      if (links.isRedirect(index)) {
        if (this.#follow(ended, key.slice(), links.url(index))) added += 1
        continue
      }
      if (this.admission.isSeen(key)) continue
      const text = links.url(index)
      if (this.admission.isSeenUnderTwin(hostOfUrl(text), fingerprint)) continue
      if (this.#addLink(url, key.slice(), text, false)) added += 1
    }
    return added
  }

  /**
   * The target of a redirect: a link, unless the crawl has its URL already. Then it is followed only back to a URL of its
   * own chain, and only as returns.ts has it: the page is behind it. That URL has its outcome and is pending again, under
   * the address that it is asked for now; only under another host it is one more, which is the answer.
   */
  #follow(ended: EndedUrl, key: Uint8Array, url: string): boolean {
    const from: QueuedUrl = ended.setsCookie ? { ...ended.url, hasCookie: true } : ended.url
    const name = hostOfUrl(url)
    const seen = this.admission.seenAs(key, name)
    if (seen === undefined) return this.#addLink(from, key, url, true)
    // It is pending, and in this batch only since one before it.
    if (this.#entered.has(keyText(seen))) return false
    const isOwn = Buffer.compare(seen, seenKey(this.#view.hashOf(from.host), from.fingerprint)) === 0
    const page = isOwn ? pageRowOf(ended) : this.#pageOf(seen)
    if (page === undefined || !mayReturn(from, page, url)) return false
    if (Buffer.compare(seen, key) !== 0) return this.#addLink(from, key, url, true)
    const host = this.#hosts.of(name)
    if (host.isExcluded) return this.#refuse('excluded_host')
    if (page.due !== undefined) this.#remove('due', dueKey(page.due.atMs, key))
    this.counters.discovered -= 1
    this.counters[stateOfOutcome[page.outcome]] -= 1
    this.#enterRedirected(from, host, key, url)
    return false
  }

  /** The page row of a URL that has its outcome, and not since this batch. */
  #pageOf(key: Uint8Array): PageRow | undefined {
    const { seen, pages } = this.#view.tables
    const [state, page] = [seen.get(key), pages.get(key)]
    if (state === undefined || page === undefined || decodeState(state) === 'pending') return undefined
    return decodePageRow(page)
  }

  #addLink(from: QueuedUrl, key: Uint8Array, url: string, isRedirect: boolean): boolean {
    const name = hostOfUrl(url)
    const depth = isRedirect ? from.depth : Math.min(from.depth + 1, limits.depthMax)
    invariant(Buffer.compare(this.#view.hashOf(name), hostKeyOf(key)) === 0, 'a link carries the hash of its host')
    const facts = { url, host: name, depth, priority: isRedirect ? from.priority : Math.min(depth, limits.priorityMax), referrer: from.url, ...(from.kind && { kind: from.kind }) }
    return this.#admit({ url, name, isRedirect, from: from.host }, facts, (host, priority) => {
      if (isRedirect) this.#enterRedirected({ ...from, priority }, host, key, url)
      else this.#enter(host, key, { ...facts, priority, fingerprint: fingerprintOfSeen(key) })
    })
  }

  /** Has a URL that is new enter the queue, if the rules for links let it in. */
  #admit(link: Link, facts: Omit<NewUrl, 'fingerprint'>, enter: (host: PlannedHost, priority: number) => void): boolean {
    const verdict = this.admission.admit(link)
    if (verdict === 'store_full') return this.#refuseFull(facts, verdict)
    if (verdict !== 'admitted' && !isQueueFull(verdict)) return this.#refuse(verdict)
    const [host, priority] = [this.#hosts.of(link.name), this.#priorityOf(facts, link.isListed === true)]
    // A queue that is full gives up its worst URL of this host for a better one.
    if (isQueueFull(verdict) && !this.#evictWorse(host, priority, verdict)) return this.#refuseFull({ ...facts, priority }, verdict)
    this.admission.take(link)
    enter(host, priority)
    return true
  }

  /** The user may say otherwise of a page. */
  #priorityOf({ url, host, depth, priority, referrer, kind }: Omit<NewUrl, 'fingerprint'>, isSeed: boolean): number {
    const { priorityOf } = this.#view.linkRules
    return priorityOf === undefined || kind !== undefined ? priority : askPriority(priorityOf, { url, host, depth, priority, isSeed, ...(referrer !== undefined && { referrer }) })
  }

  #refuseFull({ url, host, depth, priority }: Omit<ShedUrl, 'reason' | 'action'>, reason: FullReason): false {
    if (this.#refusedReported < this.#view.linkRules.refusedReportedMax) {
      this.#refusedReported += 1
      this.shed.push({ url, host, depth, priority, reason, action: 'refused' })
    }
    return this.#refuse(reason)
  }

  #evictWorse(host: PlannedHost, priority: number, code: FullReason): boolean {
    const { isLeased } = this.#view
    const url = this.queue.evict(host, priority, { isLeased: (sequence) => isLeased(host.name, sequence), rowsMax: limits.evictionRowsMax })
    if (url === undefined) return false
    this.#left(host, url)
    const key = seenKey(this.#view.hashOf(host.name), url.fingerprint)
    this.#settle(key, 'dropped', { fetchedAtMs: 0, url: url.url, status: 0, outcome: 'dropped', code, depth: url.depth, priority: url.priority, ...(url.kind && { kind: url.kind }) })
    this.counters.dropped += 1
    this.shed.push({ url: url.url, host: host.name, depth: url.depth, priority: url.priority, reason: code, action: 'dropped' })
    return true
  }

  #enterRedirected(from: QueuedUrl, host: PlannedHost, key: Uint8Array, url: string): void {
    const { depth, priority, referrer, hasCookie, kind } = from
    const redirectedFrom = chainOf(from)
    this.#enter(host, key, {
      url, host: host.name, fingerprint: fingerprintOfSeen(key), depth, priority, redirectedFrom,
      ...(hasCookie && { hasCookie }), ...(referrer === undefined ? {} : { referrer }), ...(kind && { kind }),
    })
  }

  #enter(host: PlannedHost, key: Uint8Array, url: NewUrl, isAgain = false): void {
    const { depth, priority, referrer, redirectedFrom, hasCookie, kind } = url
    const head: RowHead = {
      depth, priority, attempts: 0, isAgain, ...(referrer !== undefined && { referrer }), ...(redirectedFrom && { redirectedFrom }),
      ...(hasCookie && { hasCookie }), ...(kind && { kind }),
    }
    const of = this.admission.classOf(host.name)
    this.queue.add(host, of, head, url)
    this.#entered.add(keyText(key))
    this.admission.prove(key)
    this.#put('seen', key, encodeState(this.arena, 'pending'))
    this.#hosts.enter(host, priority)
    this.admission.domains?.change(host.name, 1, of === 'later')
    this.counters.discovered += 1
    this.counters.pending += 1
  }

  #defer({ url, attempts, notBeforeMs, retry }: DeferredUrl): void {
    this.queue.take(url)
    this.queue.defer(url, attempts, notBeforeMs)
    // A deferred row is of the first class.
    if (isInLaterClass(url)) {
      this.admission.domains?.change(url.host, -1, true)
      this.admission.domains?.change(url.host, 1, false)
    }
    if (retry) this.counters.retries += 1
  }

  #take(url: QueuedUrl): void {
    this.queue.take(url)
    this.#left({ key: hostKeyOf(url.row), name: url.host }, url)
  }

  #left(host: { readonly key: Uint8Array; readonly name: string }, url: QueuedUrl): void {
    this.#hosts.leave(host.key)
    this.admission.domains?.change(host.name, -1, isInLaterClass(url))
    this.counters.pending -= 1
  }

  /** A URL has its outcome: its state, its page row, and when it is due again. */
  #settle(key: Uint8Array, outcome: Outcome, page: PageRow): void {
    this.#put('seen', key, encodeState(this.arena, stateOfOutcome[outcome], outcome))
    this.#put('pages', key, encodePageRow(this.arena, page))
    if (page.due !== undefined) this.#put('due', dueKey(page.due.atMs, key), new Uint8Array(0))
  }

  #refuse(reason: RefusalReason): false {
    this.counters.refused[reason] += 1
    return false
  }

  #put(table: Write['table'], key: Uint8Array, value: Uint8Array): void {
    this.writes.push({ table, key, value })
  }

  #remove(table: Write['table'], key: Uint8Array): void {
    this.writes.push({ table, key })
  }
}

/** A batch asks for the hashes of few hosts many times. */
function remembering(hashOf: (host: string) => Uint8Array): (host: string) => Uint8Array {
  const hashes = new Map<string, Uint8Array>()
  return (host) => {
    let hash = hashes.get(host)
    if (hash === undefined) hashes.set(host, hash = hashOf(host))
    return hash
  }
}

/** What is remembered of a URL that ended. Where no server answered, what was known of its page before stands. */
function pageRowOf({ url, outcome, code, atMs, page, due }: EndedUrl): PageRow {
  const { depth, priority, previous, kind } = url
  const row: Mutable<PageRow> = { ...(page ?? before(previous)), url: url.url, outcome, fetchedAtMs: atMs, depth, priority }
  if (kind !== undefined) row.kind = kind
  if (code !== undefined) row.code = code
  if (due !== undefined) row.due = due
  return row
}

function before(previous: PreviousFetch | undefined): PageAnswer {
  if (previous === undefined) return { status: 0 }
  const { fetchedAtMs: _fetchedAtMs, intervalMs: _intervalMs, ...answer } = previous
  return { ...answer, status: 0 }
}

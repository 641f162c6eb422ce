/**
 * Which links of a batch come in: what is known already, what is out of scope, what is over a cap, and in which class of
 * the queue a URL waits. Main thread; reads alone. Invariant: a link is known only by a proof, its `seen` row or the
 * fingerprint that a commit put into the known table; nothing here guesses.
 */
import type { PriorityFunction } from '../../engine/core/priority.ts'
import { queryPathHash } from '../../engine/core/traps.ts'
import type { Counters, FullReason, Known, QueryCounts, RefusalReason } from '../../engine/core/types.ts'
import type { Tables } from './environment.ts'
import { DomainEdit } from './domains.ts'
import { fingerprintOfSeen, keyText, seenKey, type ReadyClass } from './layout.ts'
import type { PlannedHosts } from './planned-hosts.ts'

export type ScopeMode = 'any' | 'host' | 'domain'

/** How much of one kind is taken from links; infinite where there is no bound. What the user adds is meant, and redirects lead on all the same. */
export interface LinkCaps {
  /** URLs in the queue: of a host, of a registrable domain, of all. */
  readonly queuedPerHostMax: number
  readonly queuedPerDomainMax: number
  readonly queuedMax: number
  /** A path that got as many URLs with a query from links and redirects gets no more of them from links. */
  readonly queriesPerPathMax: number
  /** URLs of a domain in the first class, and as many more for each other domain that links to it. */
  readonly domainBudget: number
}

export const noCaps: LinkCaps = {
  queuedPerHostMax: Number.POSITIVE_INFINITY, queuedPerDomainMax: Number.POSITIVE_INFINITY, queuedMax: Number.POSITIVE_INFINITY,
  queriesPerPathMax: Number.POSITIVE_INFINITY, domainBudget: Number.POSITIVE_INFINITY,
}

/** What else is decided about links that are new. */
export interface LinkRules {
  /** The user's word on the priority of a URL; absent: it has the one that it comes with. */
  readonly priorityOf?: PriorityFunction | undefined
  /** The user's word on hosts, besides what their records say; absent: none is excluded by it. */
  readonly isExcluded?: (host: string) => boolean
  /** So many links are reported of those that a batch refuses for want of room. */
  readonly refusedReportedMax: number
}

export const noLinkRules: LinkRules = { refusedReportedMax: 0 }

/** Whether the counts of domains are asked for. */
export function countsDomains({ queuedPerDomainMax, domainBudget }: LinkCaps): boolean {
  return Math.min(queuedPerDomainMax, domainBudget) < Number.POSITIVE_INFINITY
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
  readonly linkRules: LinkRules
  /** The store is nearly as large as it may be. */
  readonly isStoreFull: boolean
  /** A URL that is in somebody's hands, and may not be dropped. */
  readonly isLeased: (host: string, sequence: number) => boolean
  /** URLs with a query by path, as committed; absent: none are counted, and `queriesPerPathMax` does not apply. */
  readonly queries: QueryCounts | undefined
  readonly counters: Counters
  /** The sequence of the next new URL. */
  readonly sequence: number
  /** Of the batch's commit. */
  readonly commitNumber: number
}

export interface Link {
  readonly url: string
  readonly name: string
  readonly isRedirect: boolean
  /** A sitemap lists it. Its site means it, so that its queries are not counted. */
  readonly isListed?: true
  /** Host of the page that it stands in. */
  readonly from: string
}

/** Why a link does not come in; the last three unless a worse URL of its host makes room. */
export type Verdict = 'admitted' | FullReason | Extract<RefusalReason, 'scope' | 'excluded_host' | 'query_growth'>

/** A cap on the queue, and not on what is written at all. */
export function isQueueFull(verdict: Verdict): verdict is Exclude<FullReason, 'store_full'> {
  return verdict === 'host_full' || verdict === 'domain_full' || verdict === 'queue_full'
}

/** What the plan knows of the batch so far. */
interface BatchSoFar {
  readonly counters: Readonly<Counters>
  /** `seen` keys of URLs that entered the queue. */
  readonly entered: ReadonlySet<string>
}

export class Admission {
  /** Fingerprints of all that the batch met and that has a `seen` row once it is committed; empty without a table. */
  readonly proven: Uint8Array[] = []
  /** URLs with a query that links of the batch brought, by path. */
  readonly queryPaths: { readonly path: Uint8Array; urls: number }[] = []
  readonly domains: DomainEdit | undefined
  /** Links that were known by the table, looked up, and not found. */
  linksKnown = 0
  linksLookedUp = 0
  linksNew = 0

  readonly #view: PlanView
  readonly #hosts: PlannedHosts
  readonly #batch: BatchSoFar
  readonly #newScope = new Set<string>()
  readonly #queryPathsById = new Map<string, { readonly path: Uint8Array; urls: number }>()

  constructor(view: PlanView, hosts: PlannedHosts, batch: BatchSoFar) {
    this.#view = view
    this.#hosts = hosts
    this.#batch = batch
    this.domains = countsDomains(view.caps) ? new DomainEdit(view.tables, view.scope.domainOf) : undefined
  }

  addScope(name: string): void {
    this.#newScope.add(name)
  }

  /** By the table of proven fingerprints. */
  isKnown(fingerprint: Uint8Array): boolean {
    if (this.#view.known?.has(fingerprint) !== true) return false
    this.linksKnown += 1
    return true
  }

  /** Whether a URL has a `seen` row or gets one in this batch; then its fingerprint is proven too. */
  isSeen(key: Uint8Array): boolean {
    this.linksLookedUp += 1
    if (!this.#view.tables.seen.has(key) && !this.#batch.entered.has(keyText(key))) {
      this.linksNew += 1
      return false
    }
    this.prove(key)
    return true
  }

  /** A row stays under the host that its URL names, so that its end finds it whatever the rules are by then. */
  isSeenUnderTwin(host: string, fingerprint: Uint8Array): boolean {
    const twin = this.#view.twinOf?.(host)
    return twin !== undefined && this.isSeen(seenKey(this.#view.hashOf(twin), fingerprint))
  }

  /** The key under which a URL has its `seen` row, its own or its twin's; undefined when it has none. */
  seenAs(key: Uint8Array, host: string): Uint8Array | undefined {
    if (this.isSeen(key)) return key
    const twin = this.#view.twinOf?.(host)
    const twinKey = twin === undefined ? undefined : seenKey(this.#view.hashOf(twin), fingerprintOfSeen(key))
    return twinKey !== undefined && this.isSeen(twinKey) ? twinKey : undefined
  }

  prove(key: Uint8Array): void {
    if (this.#view.known !== undefined) this.proven.push(fingerprintOfSeen(key))
  }

  /** Judges a link that is new. */
  admit(link: Link): Verdict {
    const { name, isRedirect, isListed, url } = link
    if (!this.#inScope(name)) return 'scope'
    const host = this.#hosts.of(name)
    if (host.isExcluded) return 'excluded_host'
    // A link that a full queue did not take comes again; a redirect's target never does, since the URL that led to it is
    // done. It takes that one's place in the queue.
    const full = isRedirect ? undefined : this.#fullness(name)
    if (full === 'store_full') return full
    if (!isRedirect && isListed !== true && this.#hasQueriesEnough(url)) return 'query_growth'
    return full ?? 'admitted'
  }

  /** Counts a link that comes in. */
  take({ name, url, from, isListed }: Link): void {
    this.domains?.link(from, name)
    const path = isListed === true ? undefined : this.#queryPathOf(url)
    if (path === undefined) return
    const id = keyText(path)
    const entry = this.#queryPathsById.get(id) ?? { path, urls: 0 }
    if (entry.urls === 0) {
      this.#queryPathsById.set(id, entry)
      this.queryPaths.push(entry)
    }
    entry.urls += 1
  }

  /** Where a URL of the host waits: over its domain's budget, in the later class. */
  classOf(host: string): ReadyClass {
    const { domainBudget } = this.#view.caps
    if (this.domains === undefined || domainBudget === Number.POSITIVE_INFINITY) return 'ready'
    const { first, linkingDomains } = this.domains.of(host)
    return first >= domainBudget * (1 + linkingDomains) ? 'later' : 'ready'
  }

  #fullness(name: string): FullReason | undefined {
    const { caps, isStoreFull } = this.#view
    if (isStoreFull) return 'store_full'
    if (caps.queuedPerHostMax < Number.POSITIVE_INFINITY && this.#hosts.pending(this.#hosts.of(name)) >= caps.queuedPerHostMax) return 'host_full'
    if (caps.queuedPerDomainMax < Number.POSITIVE_INFINITY && this.domains!.of(name).pending >= caps.queuedPerDomainMax) return 'domain_full'
    return this.#batch.counters.pending >= caps.queuedMax ? 'queue_full' : undefined
  }

  #hasQueriesEnough(url: string): boolean {
    const path = this.#queryPathOf(url)
    if (path === undefined) return false
    const inBatch = this.#queryPathsById.get(keyText(path))?.urls ?? 0
    return this.#view.queries!.countOf(path) + inBatch >= this.#view.caps.queriesPerPathMax
  }

  /** Undefined without a query, and when nobody asks for the count, which costs a hash of each link. */
  #queryPathOf(url: string): Uint8Array | undefined {
    const { queries, caps } = this.#view
    return queries === undefined || caps.queriesPerPathMax === Number.POSITIVE_INFINITY ? undefined : queryPathHash(url)
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
}

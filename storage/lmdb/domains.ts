/**
 * What is counted of registrable domains: URLs in the queue, and how many other domains link there. Only while an
 * option asks for it (`--max-queued-per-domain`, `--domain-budget`); turned on for a crawl that has a queue already, the
 * counts are made from the hosts with work, in one pass. Main thread; reads here, the plan writes.
 *
 * The budget is IRLbot's idea (Lee, Leonard, Wang, Loguinov, "IRLbot: Scaling to 6 Billion Pages and Beyond", 2008): a
 * domain may fill as much of the crawl as other domains vouch for. What is over budget is not dropped; it lies in the
 * later class of the queue, whose turn comes when nothing else may start. Of links that are known already workers do not
 * tell, so a domain is vouched for by those that brought a URL of it that was new.
 *
 *   domain row   rows in queue (4) | of them not in the later class (4) | domains that link to it (4)
 */
import { hostHashOf } from '../../engine/core/url-key.ts'
import { Arena, decodeCount, decodeCounts, encodeCounts, nameOfHostRow } from './codec.ts'
import type { Tables, Write } from './environment.ts'
import { keyText } from './layout.ts'

export interface DomainCounts {
  pending: number
  first: number
  linkingDomains: number
}

interface Changed {
  readonly key: Uint8Array
  readonly counts: DomainCounts
}

/** The counts as a batch changes them. */
export class DomainEdit {
  readonly #tables: Pick<Tables, 'domains' | 'domainLinks'>
  readonly #domainOf: (host: string) => string
  readonly #from: 'stored' | 'empty'
  readonly #domains = new Map<string, Changed>()
  readonly #ofHost = new Map<string, Changed>()
  readonly #links = new Map<string, Uint8Array>()

  /** `from`: the counts as stored, or those of a queue that holds nothing. */
  constructor(tables: Pick<Tables, 'domains' | 'domainLinks'>, domainOf: (host: string) => string, from: 'stored' | 'empty' = 'stored') {
    this.#from = from
    this.#tables = tables
    this.#domainOf = domainOf
  }

  /** Of the domain of a host, as committed and changed so far. */
  of(host: string): DomainCounts {
    return this.#entry(host).counts
  }

  /** A URL of the host enters the queue (1) or leaves it (-1). */
  change(host: string, by: 1 | -1, isLater: boolean): void {
    const { counts } = this.#entry(host)
    counts.pending += by
    if (!isLater) counts.first += by
    // Rows that lay in the later class when the counts were made were counted for the first.
    counts.first = Math.min(counts.first, counts.pending)
  }

  /** Rows of a host that was not counted so far, as if none were of the later class. */
  count(host: string, rows: number): void {
    const { counts } = this.#entry(host)
    counts.pending += rows
    counts.first += rows
  }

  /** A page of one host brought a new URL of another. */
  link(from: string, to: string): void {
    const [source, target] = [this.#entry(from), this.#entry(to)]
    if (source === target) return
    const key = Buffer.concat([target.key, source.key])
    const id = keyText(key)
    if (this.#links.has(id) || this.#tables.domainLinks.has(key)) return
    this.#links.set(id, key)
    target.counts.linkingDomains += 1
  }

  writes(arena: Arena): Write[] {
    const rows = [...this.#domains.values()].map(({ key, counts }): Write => ({ table: 'domains', key, value: encodeDomain(arena, counts) }))
    return [...rows, ...[...this.#links.values()].map((key): Write => ({ table: 'domainLinks', key, value: new Uint8Array(0) }))]
  }

  #entry(host: string): Changed {
    const known = this.#ofHost.get(host)
    if (known !== undefined) return known
    const key = hostHashOf(this.#domainOf(host))
    const id = keyText(key)
    let entry = this.#domains.get(id)
    if (entry === undefined) {
      const stored = decodeDomain(this.#tables.domains.get(key))
      this.#domains.set(id, entry = { key, counts: this.#from === 'stored' ? stored : { ...stored, pending: 0, first: 0 } })
    }
    this.#ofHost.set(host, entry)
    return entry
  }
}

/** The counts of a queue that was not counted for a while. Which domains link where is kept: it was true, and still is. */
export function countedDomains(tables: Tables, domainOf: (host: string) => string): Write[] {
  const arena = new Arena()
  const emptied = [...tables.domains.entries()].map(({ key, value }): Write => ({
    table: 'domains', key: new Uint8Array(key), value: encodeDomain(arena, { ...decodeDomain(value), pending: 0, first: 0 }),
  }))
  const edit = new DomainEdit(tables, domainOf, 'empty')
  for (const { key, value } of tables.ready.entries()) edit.count(nameOfHostRow(tables.hosts.get(key)!), decodeCount(value))
  return [...emptied, ...edit.writes(arena)]
}

export function encodeDomain(arena: Arena, { pending, first, linkingDomains }: DomainCounts): Uint8Array {
  return encodeCounts(arena, [pending, first, linkingDomains])
}

export function decodeDomain(value: Uint8Array | undefined): DomainCounts {
  const [pending = 0, first = 0, linkingDomains = 0] = value === undefined ? [] : decodeCounts(value)
  return { pending, first, linkingDomains }
}

/**
 * Makes the hosts that come into memory: what the store remembers of each, what the operator says of it, and the bounds
 * that it shares with others. A place; what it makes is moved by the scheduler. Main thread.
 *
 * Invariant: the cap of an address lives as long as one of its hosts is in memory; `forget` is called once for each host.
 */
import type { HostRecord } from '../../storage/store.ts'
import type { Clock } from '../core/clock.ts'
import { matchesHost } from '../core/host-patterns.ts'
import type { CrawlOptions, HostLimit } from '../core/options.ts'
import type { EndedHosts } from './host-failures.ts'
import type { Belonging } from './host-loader.ts'
import { forgive, limiterMemoryOf, remember } from './host-memory.ts'
import { HostRules } from './host-rules.ts'
import { newHost, type Host, type Unit } from './host.ts'
import { Limiter } from './limiter.ts'
import { SharedCaps, type SharedCap } from './shared-cap.ts'

export interface HostMakerOptions {
  readonly clock: Clock
  readonly options: Pick<CrawlOptions, 'concurrency' | 'delayMs'> & Partial<Pick<CrawlOptions, 'hostLimits' | 'maxPerAddress'>>
  /** Bounds that the host shares with hosts of other units, besides that of its address. */
  readonly capsOf?: ((host: string) => readonly SharedCap[]) | undefined
  readonly ended: EndedHosts
  /** The operator's list of hosts that are asked for nothing. */
  readonly isExcluded?: ((host: string) => boolean) | undefined
  /** The unit of this name, which the host joins. */
  readonly join: (unit: string, ceiling: number) => Unit
}

export class HostMaker {
  readonly #is: HostMakerOptions
  readonly #rules: HostRules
  readonly #addresses: SharedCaps
  readonly #perAddressMax: number
  /** When the crawl went on from an earlier process: that one's last starts are unknown. */
  continuedAtMs: number | undefined

  constructor(is: HostMakerOptions) {
    this.#is = is
    this.#rules = new HostRules(is.options.hostLimits)
    this.#perAddressMax = is.options.maxPerAddress ?? Number.POSITIVE_INFINITY
    this.#addresses = new SharedCaps({ room: (inFlight) => this.#perAddressMax - inFlight })
  }

  make(record: HostRecord, belonging: Belonging): Host {
    const { clock, ended, join, options } = this.#is
    const unit = join(typeof belonging === 'string' ? belonging : belonging.unit, options.concurrency.ceiling)
    // Its turn comes behind those that wait for theirs already, however many new hosts there are.
    unit.nextStartAtMs = Math.max(unit.nextStartAtMs, clock.nowMs())
    const continuedUntilMs = (this.continuedAtMs ?? Number.NEGATIVE_INFINITY) + Math.max(options.delayMs, record.crawlDelayMs ?? 0)
    unit.nextStartAtMs = Math.max(unit.nextStartAtMs, continuedUntilMs)
    const host = newHost({ name: record.name, unit, limiter: new Limiter(options.concurrency, limiterMemoryOf(record)), caps: this.#capsOf(record.name, belonging) })
    limit(host, this.#rules.of(record.name))
    host.turnEndedAtMs = clock.nowMs()
    host.startedAtMs = host.turnEndedAtMs
    remember(host, record, clock)
    // A pace is a delay of the host's own.
    if (host.limiter.paceMs > 0) host.paceUntilMs = Math.max(0, continuedUntilMs + host.limiter.paceMs)
    const known = ended.get(record.name, clock.nowMs())
    if (known?.ended !== undefined) host.ended = known.ended
    else if (known !== undefined && host.ended?.outcome === 'failed') forgive(host)
    if (this.#is.isExcluded?.(record.name) === true) host.ended = { outcome: 'excluded' }
    return host
  }

  /** The host leaves memory. */
  forget(host: Host): void {
    for (const cap of host.caps ?? []) this.#addresses.leave(cap)
  }

  /** The operator's word on the hosts of a pattern, as long as the process runs. Answers those of the given hosts that it changes. */
  setLimit(pattern: string, said: HostLimit, hosts: Iterable<Host>): readonly Host[] {
    this.#rules.set(pattern, said)
    const meant = [...hosts].filter(({ name }) => matchesHost(pattern, name))
    for (const host of meant) limit(host, this.#rules.of(host.name))
    return meant
  }

  #capsOf(name: string, belonging: Belonging): readonly SharedCap[] | undefined {
    const caps = this.#is.capsOf?.(name) ?? []
    if (typeof belonging !== 'string' && this.#perAddressMax < Number.POSITIVE_INFINITY) return [...caps, this.#addresses.join(belonging.address)]
    return caps.length === 0 ? undefined : caps
  }
}

function limit(host: Host, { concurrency, delayMs, weight = 1 }: HostLimit): void {
  if (concurrency !== undefined) host.limiter.setBounds(concurrency)
  host.unit.ceiling = Math.max(host.unit.ceiling, concurrency?.ceiling ?? 0)
  host.delayMs = delayMs
  host.weight = weight
}

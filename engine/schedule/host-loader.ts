/**
 * Brings hosts with work from the store into memory, as far as there is room, and finds out their politeness units.
 * Hosts that do not fit stay in the store, and are read when others are forgotten, in passes over its hosts with work, a few in
 * each turn of the event loop:
 *
 *     pass:  |-- in memory or looked up --|cursor|-- still to be read --|     `#isMissing`: one was left behind
 *
 * Invariant: every host with work is in memory, being looked up or ahead of the cursor, or `#isMissing` says that
 * another pass is due. A pass in which none was left behind is the last. Reads only. Main thread.
 */
import type { HostRecord, Store } from '../../storage/store.ts'
import { limits } from '../core/limits.ts'

/** The name of its politeness unit, and its address where connections to one address are bounded. */
export type Belonging = string | { readonly unit: string; readonly address: string }

export interface HostLoaderOptions {
  readonly store: Pick<Store, 'host' | 'hostsWithWork'>
  /** The hosts in memory. */
  readonly hosts: ReadonlyMap<string, unknown>
  readonly hostsMax: number
  /** Where a host belongs; a promise when that must be looked up (by IP). Never rejects. */
  readonly unitOf: (host: string) => Belonging | Promise<Belonging>
  readonly onLoaded: (record: HostRecord, belonging: Belonging) => void
  /** The same, for a host that had to be looked up: it may start though nothing else has changed. */
  readonly onLoadedLate: () => void
}

export class HostLoader {
  readonly #is: HostLoaderOptions
  readonly #resolving = new Set<string>()
  /** How far the present pass has come; undefined between passes. */
  #cursor: Uint8Array | undefined
  /** A host was left in the store since the last pass began. */
  #isMissing = true

  constructor(options: HostLoaderOptions) {
    this.#is = options
  }

  /** The store may hold hosts with work that are not in memory. */
  get hasMore(): boolean {
    return this.#cursor !== undefined || this.#isMissing
  }

  /** Hosts are being looked up. */
  get isResolving(): boolean {
    return this.#resolving.size > 0
  }

  /** Hosts that may be loaded at once. */
  get room(): number {
    const { hosts, hostsMax } = this.#is
    return Math.min(hostsMax - hosts.size, limits.hostsResolvingMax) - this.#resolving.size
  }

  /** A read would bring enough hosts to be worth it. */
  get isRoomy(): boolean {
    return this.hasMore && this.room >= Math.min(this.#is.hostsMax, limits.hostsResolvingMax) / 2
  }

  /** Reads the next few hosts: few enough that the event loop is not held. */
  refill(): void {
    if (!this.hasMore || this.room <= 0) return
    if (this.#cursor === undefined) this.#isMissing = false
    const page = this.#is.store.hostsWithWork(this.#cursor, Math.min(this.room, limits.hostsPerRefillMax))
    this.#cursor = page.cursor
    for (const record of page.hosts) this.load(record.name, record)
  }

  /** Loads one host that has work. */
  load(name: string, known?: HostRecord): void {
    const { hosts, store, unitOf, onLoaded } = this.#is
    if (hosts.has(name) || this.#resolving.has(name)) return
    if (this.room <= 0) {
      this.#isMissing = true
      return
    }
    const record = known ?? store.host(name)
    if (record === undefined) return
    const unit = unitOf(name)
    if (unit instanceof Promise) void this.#loadLate(record, unit)
    else onLoaded(record, unit)
  }

  async #loadLate(record: HostRecord, unit: Promise<Belonging>): Promise<void> {
    this.#resolving.add(record.name)
    const belonging = await unit
    this.#resolving.delete(record.name)
    this.#is.onLoaded(record, belonging)
    this.#is.onLoadedLate()
  }
}

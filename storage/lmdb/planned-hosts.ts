/**
 * The hosts that a batch meets: their records with what changes, and how many of their URLs are in the queue. Main
 * thread; reads the tables, and answers writes. Invariant: a host whose every link was refused leaves no row.
 */
import { invariant } from '../../engine/core/errors.ts'
import type { CommitResult, RobotsVerdict } from '../store.ts'
import { decodeCount, encodeCount, encodeHostRow, encodeJson, factsOfHostRow, nameOfHostRow, type Arena } from './codec.ts'
import type { Tables, Write } from './environment.ts'
import { findHostKey } from './hosts.ts'
import { keyText } from './layout.ts'

export interface PlannedHost {
  readonly name: string
  readonly key: Uint8Array
  readonly isExcluded: boolean
}

interface Entry extends PlannedHost {
  isExcluded: boolean
  readonly isNew: boolean
  readonly facts: Record<string, unknown>
  robots: RobotsVerdict | undefined
  isChanged: boolean
  /** The best of its new rows; infinity: it has none. */
  bestPriority: number
}

interface Pending {
  readonly key: Uint8Array
  readonly before: number
  change: number
}

function isGrown({ bestPriority }: Entry): boolean {
  return bestPriority < Number.POSITIVE_INFINITY
}

export class PlannedHosts {
  readonly #tables: Pick<Tables, 'hosts' | 'ready'>
  readonly #hashOf: (host: string) => Uint8Array
  readonly #commitNumber: number
  readonly #isExcluded: (name: string) => boolean
  readonly #hosts = new Map<string, Entry>()
  readonly #newNames = new Map<string, string>()
  readonly #pending = new Map<string, Pending>()

  /** `commitNumber` is kept with the hosts that the batch meets first; `isExcluded` speaks besides the records. */
  constructor(tables: Pick<Tables, 'hosts' | 'ready'>, hashOf: (host: string) => Uint8Array, commitNumber: number, isExcluded: (name: string) => boolean = () => false) {
    this.#tables = tables
    this.#hashOf = hashOf
    this.#commitNumber = commitNumber
    this.#isExcluded = isExcluded
  }

  of(name: string): PlannedHost {
    return this.#entry(name)
  }

  change(name: string, facts: Readonly<Record<string, unknown>>, robots: RobotsVerdict | undefined): void {
    const host = this.#entry(name)
    Object.assign(host.facts, facts)
    host.isExcluded = host.facts['excluded'] === true || this.#isExcluded(name)
    host.isChanged = true
    host.robots = robots ?? host.robots
  }

  enter(host: PlannedHost, priority: number): void {
    const entry = this.#entry(host.name)
    entry.bestPriority = Math.min(entry.bestPriority, priority)
    this.#pendingOf(host.key).change += 1
  }

  leave(key: Uint8Array): void {
    this.#pendingOf(key).change -= 1
  }

  /** URLs of the host in the queue, as the batch leaves them so far. */
  pending(host: PlannedHost): number {
    const { before, change } = this.#pendingOf(host.key)
    return before + change
  }

  grown(): CommitResult['hostsGrown'] {
    return [...this.#hosts.values()].filter(isGrown).map(({ name, bestPriority }) => ({ name, priority: bestPriority }))
  }

  writes(arena: Arena): Write[] {
    const writes: Write[] = []
    for (const host of this.#hosts.values()) {
      const { name, key, facts, robots, isNew, isChanged } = host
      if (isChanged || (isNew && isGrown(host))) writes.push({ table: 'hosts', key, value: encodeHostRow(arena, name, facts) })
      if (robots !== undefined) writes.push({ table: 'robots', key, value: encodeJson(arena, robots) })
    }
    for (const { key, before, change } of this.#pending.values()) {
      invariant(before + change >= 0, 'a host has no fewer than no rows')
      if (change === 0) continue
      writes.push(before + change === 0 ? { table: 'ready', key } : { table: 'ready', key, value: encodeCount(arena, before + change) })
    }
    return writes
  }

  #pendingOf(key: Uint8Array): Pending {
    const id = keyText(key)
    let entry = this.#pending.get(id)
    if (entry === undefined) this.#pending.set(id, entry = { key, before: decodeCount(this.#tables.ready.get(key)), change: 0 })
    return entry
  }

  #entry(name: string): Entry {
    const known = this.#hosts.get(name)
    if (known !== undefined) return known
    let row: Uint8Array | undefined
    const key = findHostKey(this.#hashOf(name), name, (at) => {
      row = this.#tables.hosts.get(at)
      return row === undefined ? this.#newNames.get(keyText(at)) : nameOfHostRow(row)
    })
    const facts: Record<string, unknown> = row === undefined ? { since: this.#commitNumber } : { ...factsOfHostRow(row) }
    const host: Entry = { name, key, isExcluded: facts['excluded'] === true || this.#isExcluded(name), isNew: row === undefined, facts, robots: undefined, isChanged: false, bestPriority: Number.POSITIVE_INFINITY }
    this.#hosts.set(name, host)
    if (host.isNew) this.#newNames.set(keyText(key), name)
    return host
  }
}

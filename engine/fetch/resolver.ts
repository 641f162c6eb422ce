/**
 * Host to address: the operator's pins first, then IP literals as they are, then a cache over one look-up at a time
 * for each name. A failure is a value. Main thread.
 *
 * Kept: answers for their TTL (clamped), "does not exist" for a short while, and no other failure: the scheduler lets
 * the host rest, and a remembered failure would spend the host's tries on itself. The cache is bounded, least recently
 * used out first. Of a name's addresses a few are kept and taken in turn.
 */
import { isIP } from 'node:net'
import type { Clock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import type { Failure } from './failure-codes.ts'
import { afterPatiently } from './patience.ts'
import type { Address, LookupResult, NameLookup } from './name-lookup.ts'

export type Resolution = ({ readonly ok: true } & Address) | ({ readonly ok: false } & Failure)

interface Entry {
  readonly result: LookupResult
  readonly untilMs: number
  turn: number
}

export interface ResolverOptions {
  readonly lookup: NameLookup
  /** Lower-case host name to address. */
  readonly pins: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly entriesMax?: number
}

export class Resolver {
  readonly #lookup: NameLookup
  readonly #pins: ReadonlyMap<string, string>
  readonly #clock: Clock
  readonly #entriesMax: number
  /** In order of use, the least recently used first. */
  readonly #cache = new Map<string, Entry>()
  readonly #flights = new Map<string, Promise<Resolution>>()

  constructor({ lookup, pins, clock, entriesMax = limits.dnsEntriesMax }: ResolverOptions) {
    this.#lookup = lookup
    this.#pins = new Map(Object.entries(pins))
    this.#clock = clock
    this.#entriesMax = entriesMax
  }

  /** `host` as in a URL: lower case, IPv6 literals in brackets, with or without a trailing dot. Never rejects. */
  async resolve(host: string): Promise<Resolution> {
    const name = nameOf(host)
    const address = this.#pins.get(name) ?? name
    const family = isIP(address)
    if (family !== 0) return { ok: true, address, family: family === 4 ? 4 : 6 }
    const entry = this.#cache.get(name)
    if (entry !== undefined && entry.untilMs > this.#clock.nowMs()) {
      this.#cache.delete(name)
      this.#cache.set(name, entry)
      return pick(entry)
    }
    const flight = this.#flights.get(name) ?? this.#start(name)
    return await flight
  }

  stats(): { readonly entries: number, readonly inFlight: number } {
    return { entries: this.#cache.size, inFlight: this.#flights.size }
  }

  close(): void {
    this.#lookup.close()
  }

  #start(name: string): Promise<Resolution> {
    const flight = this.#ask(name).then((result) => {
      this.#flights.delete(name)
      return pick(this.#keep(name, result))
    })
    this.#flights.set(name, flight)
    return flight
  }

  /** The look-up under its deadline; what comes later is not waited for. */
  #ask(name: string): Promise<LookupResult> {
    return new Promise((resolve) => {
      const cancel = afterPatiently(this.#clock, limits.dnsTimeoutMs, () => {
        resolve({ ok: false, code: 'dns_failed', detail: `no answer for ${name} within ${limits.dnsTimeoutMs} ms` })
      })
      void this.#lookup.lookup(name).then(resolve).finally(cancel)
    })
  }

  #keep(name: string, result: LookupResult): Entry {
    const nowMs = this.#clock.nowMs()
    const entry: Entry = {
      result: result.ok ? { ...result, addresses: result.addresses.slice(0, limits.dnsAddressesMax) } : result,
      untilMs: nowMs + lifeMs(result),
      turn: 0,
    }
    this.#cache.delete(name)
    if (entry.untilMs > nowMs) this.#cache.set(name, entry)
    if (this.#cache.size > this.#entriesMax) this.#cache.delete(this.#cache.keys().next().value!)
    return entry
  }
}

/** A host of a URL as a name server knows it. */
export function nameOf(host: string): string {
  if (host.startsWith('[')) return host.slice(1, -1)
  return host.endsWith('.') ? host.slice(0, -1) : host
}

function lifeMs(result: LookupResult): number {
  if (result.ok) return Math.min(Math.max(result.ttlMs, limits.dnsTtlMsMin), limits.dnsTtlMsMax)
  return result.code === 'dns_not_found' ? limits.dnsNegativeTtlMs : 0
}

function pick(entry: Entry): Resolution {
  const { result } = entry
  if (!result.ok) return result
  const address = result.addresses[entry.turn % result.addresses.length]!
  entry.turn++
  return { ok: true, ...address }
}

/**
 * One look-up of a host name, uncached. Names of the Internet go to c-ares, which speaks to the name servers from this
 * thread's own sockets; `getaddrinfo`, which blocks one of the four threads of libuv's pool (the store needs them too),
 * is used only for names that the system alone knows, and when c-ares has no server to ask. Main thread.
 */
import { promises as dns } from 'node:dns'
import { readFileSync } from 'node:fs'
import { limits } from '../core/limits.ts'
import { failureOfLookup, type Failure } from './failure-codes.ts'

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

export type LookupResult =
  | { readonly ok: true, readonly addresses: readonly Address[], readonly ttlMs: number }
  | ({ readonly ok: false } & Failure)

export interface NameLookup {
  /** Never rejects. All addresses of an answer are of one family, IPv4 where the name has it. */
  lookup(host: string): Promise<LookupResult>
  /** Ends what is still asked. */
  close(): void
}

/** What asks the network and the system; tests put their own. */
export interface NameServices {
  resolve4(host: string): Promise<readonly { readonly address: string, readonly ttl: number }[]>
  resolve6(host: string): Promise<readonly { readonly address: string, readonly ttl: number }[]>
  /** getaddrinfo. */
  system(host: string): Promise<readonly { readonly address: string, readonly family: number }[]>
  readonly hostsFile: string
  close(): void
}

/** The services of this machine. The hosts file is read once. */
export function systemNameServices(): NameServices {
  // Two tries of two seconds fit into the deadline of a look-up.
  const resolver = new dns.Resolver({ timeout: Math.floor(limits.dnsTimeoutMs * 0.4), tries: 2 })
  return {
    resolve4: (host) => resolver.resolve4(host, { ttl: true }),
    resolve6: (host) => resolver.resolve6(host, { ttl: true }),
    system: (host) => dns.lookup(host, { all: true }),
    hostsFile: readHostsFile(),
    close: () => resolver.cancel(),
  }
}

function readHostsFile(): string {
  const path = process.platform === 'win32' ? `${process.env['SystemRoot']}\\System32\\drivers\\etc\\hosts` : '/etc/hosts'
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // A system without the file has no names in it.
    return ''
  }
}

/** Suffixes that never are in the public tree: RFC 6761, RFC 6762, RFC 8375, and ICANN's reservation of `internal`. */
const SYSTEM_SUFFIX = /\.(?:localhost|local|home\.arpa|internal)$/

/** A name that only this system or its network knows. */
export function isLocalName(host: string): boolean {
  return !host.includes('.') || SYSTEM_SUFFIX.test(host)
}

/** An answer of getaddrinfo carries no life; it is kept for a minute, as Chromium does. */
const SYSTEM_TTL_MS = 60_000

export function createNameLookup(services: NameServices): NameLookup {
  const hosts = new Set(namesInHostsFile(services.hostsFile))

  async function bySystem(host: string): Promise<LookupResult> {
    try {
      const found = await services.system(host)
      const family = found.some((entry) => entry.family === 4) ? 4 : 6
      const addresses = found.filter((entry) => entry.family === family).map(({ address }) => ({ address, family }) as const)
      return answer(addresses, SYSTEM_TTL_MS)
    } catch (error) {
      return { ok: false, ...failureOfLookup(error) }
    }
  }

  async function byServers(host: string): Promise<LookupResult> {
    try {
      return fromRecords(await services.resolve4(host), 4)
    } catch (error) {
      // Only "no data" says that the name exists and may have addresses of the other family.
      if ((error as { code?: unknown }).code !== 'ENODATA') throw error
      return fromRecords(await services.resolve6(host), 6)
    }
  }

  return {
    async lookup(host) {
      if (isLocalName(host) || hosts.has(host)) return await bySystem(host)
      try {
        return await byServers(host)
      } catch (error) {
        if ((error as { code?: unknown }).code === 'ECONNREFUSED') return await bySystem(host)
        return { ok: false, ...failureOfLookup(error) }
      }
    },
    close: () => services.close(),
  }
}

function fromRecords(records: readonly { readonly address: string, readonly ttl: number }[], family: 4 | 6): LookupResult {
  const ttl = records.reduce((least, record) => Math.min(least, record.ttl), Number.POSITIVE_INFINITY)
  return answer(records.map(({ address }) => ({ address, family })), ttl * 1_000)
}

function answer(addresses: readonly Address[], ttlMs: number): LookupResult {
  if (addresses.length === 0) return { ok: false, code: 'dns_not_found', detail: 'the answer holds no address' }
  return { ok: true, addresses, ttlMs }
}

function namesInHostsFile(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => line.split('#', 1)[0]!.trim().split(/\s+/).slice(1)).map((name) => name.toLowerCase())
}

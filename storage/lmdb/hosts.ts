/**
 * Hosts by name: the key of a host, and what is remembered of it. Main thread; reads only, the commit writes.
 * Invariant: one key for each name and one name for each key. Rows of hosts are never removed, so a search that finds
 * a free key has seen every key that the name could have.
 */
import { SluiceError } from '../../engine/core/errors.ts'
import type { HostRecord, RobotsVerdict } from '../store.ts'
import { decodeCount, decodeJson, factsOfHostRow, nameOfHostRow } from './codec.ts'
import type { Tables } from './environment.ts'
import { probeKey } from './layout.ts'

/** Names that may share one 64-bit hash; two are not expected in 2^32 hosts, nine are no accident. */
const PROBES_MAX = 8

/**
 * The key of a host, whether it has a row or not. `nameAt` answers who has a key already; a commit looks into its own
 * new hosts there as well.
 */
export function findHostKey(hostHash: Uint8Array, name: string, nameAt: (key: Uint8Array) => string | undefined): Uint8Array {
  for (let probe = 0; probe < PROBES_MAX; probe += 1) {
    const key = probeKey(hostHash, probe)
    const owner = nameAt(key)
    if (owner === undefined || owner === name) return key
  }
  throw new SluiceError('internal', `more than ${PROBES_MAX} host names share the hash of ${name}`)
}

export function hostNameAt(tables: Tables, key: Uint8Array): string | undefined {
  const row = tables.hosts.get(key)
  return row === undefined ? undefined : nameOfHostRow(row)
}

/** The record of a host with its robots verdicts and its pending rows; undefined when the key is free. */
export function readHost(tables: Tables, key: Uint8Array): HostRecord | undefined {
  const row = tables.hosts.get(key)
  if (row === undefined) return undefined
  const robots = tables.robots.get(key)
  const record = hostOfRow(row, tables.ready.get(key))
  return robots === undefined ? record : { ...record, robots: decodeJson(robots) as RobotsVerdict }
}

/** The record of a host without its robots verdicts. */
export function hostOfRow(row: Uint8Array, ready: Uint8Array | undefined): HostRecord {
  const { since: _since, ...facts } = factsOfHostRow(row)
  return { ...facts, name: nameOfHostRow(row), pending: decodeCount(ready) }
}

/**
 * The keys of every table, and the version of the whole layout. Keys are binary and big-endian, so that LMDB's byte
 * order is the order of claims. Main thread. Invariant: a change of any drawing below is a new LAYOUT_VERSION; an
 * unknown version is refused, never migrated by guess. Pure functions: touches no table.
 *
 *   table   key                                                        value
 *   meta    text                                                       see lmdb-store.ts
 *   hosts   host key (8)                                               name, facts without robots     codec.ts
 *   robots  host key (8)                                               verdicts by origin as JSON
 *   ready   host key (8)                                               rows of the host in queue (4)
 *   queue   host key (8) | 0 | not before, ms (8) | sequence (8)       queue row                      codec.ts
 *           host key (8) | 1 | priority (1)       | sequence (8)       queue row
 *   seen    host hash (8) | fingerprint (16)                           state (1), outcome (1) once it has one
 *   pages   host hash (8) | fingerprint (16)                           page row                       codec.ts
 *   scope   name                                                       nothing
 *
 * The host hash is the first 64 bits of SHA-256 of the name, so a worker can form it for a host that nobody knows yet.
 * Two names may share it: the host key is the hash, or the next number whose row is free (hosts.ts). seen and pages
 * use the hash as it is, since the fingerprint behind it tells URLs apart.
 *
 * robots stands beside hosts because a verdict may be 500 KB of text and the facts change more often. ready holds the
 * count and not (next time, host): the scheduler keeps its own heap of times in memory, and asks the store only which
 * hosts have rows; a time in the key would be one more delete and put for each host of each commit.
 */
export const LAYOUT_VERSION = 1

export const HOST_KEY_BYTES = 8

const DEFERRED = 0
const READY = 1
const KIND_AT = HOST_KEY_BYTES
const READY_ROW_BYTES = 18
const DEFERRED_ROW_BYTES = 25

const TWO_32 = 2 ** 32

/** Writes a whole number below 2^53 as 8 bytes. */
export function putNumber(target: Uint8Array, at: number, value: number): void {
  putWord(target, at, Math.floor(value / TWO_32))
  putWord(target, at + 4, value % TWO_32)
}

function putWord(target: Uint8Array, at: number, word: number): void {
  target[at] = word >>> 24
  target[at + 1] = word >>> 16
  target[at + 2] = word >>> 8
  target[at + 3] = word
}

export function getNumber(source: Uint8Array, at: number): number {
  return getWord(source, at) * TWO_32 + getWord(source, at + 4)
}

function getWord(source: Uint8Array, at: number): number {
  return ((source[at]! << 24) | (source[at + 1]! << 16) | (source[at + 2]! << 8) | source[at + 3]!) >>> 0
}

export function seenKey(hostHash: Uint8Array, fingerprint: Uint8Array): Uint8Array {
  const key = new Uint8Array(24)
  key.set(hostHash, 0)
  key.set(fingerprint, 8)
  return key
}

export function readyRow(hostKey: Uint8Array, priority: number, sequence: number): Uint8Array {
  const row = new Uint8Array(READY_ROW_BYTES)
  row.set(hostKey, 0)
  row[KIND_AT] = READY
  row[KIND_AT + 1] = priority
  putNumber(row, KIND_AT + 2, sequence)
  return row
}

export function deferredRow(hostKey: Uint8Array, notBeforeMs: number, sequence: number): Uint8Array {
  const row = new Uint8Array(DEFERRED_ROW_BYTES)
  row.set(hostKey, 0)
  row[KIND_AT] = DEFERRED
  putNumber(row, KIND_AT + 1, Math.max(0, Math.ceil(notBeforeMs)))
  putNumber(row, KIND_AT + 9, sequence)
  return row
}

export function hostKeyOf(row: Uint8Array): Uint8Array {
  return row.subarray(0, HOST_KEY_BYTES)
}

export function isReadyRow(row: Uint8Array): boolean {
  return row[KIND_AT] === READY
}

/** Both kinds of row end in the sequence. */
export function sequenceOf(row: Uint8Array): number {
  return getNumber(row, row.length - 8)
}

export function notBeforeMsOf(row: Uint8Array): number {
  return getNumber(row, KIND_AT + 1)
}

/** Deferred rows of a host that are due at `nowMs`: from the first key to before the second. */
export function dueRange(hostKey: Uint8Array, nowMs: number): { start: Uint8Array; end: Uint8Array } {
  return { start: deferredRow(hostKey, 0, 0), end: deferredRow(hostKey, Math.floor(nowMs) + 1, 0) }
}

/** Deferred rows of a host that are not due at `nowMs`. */
export function laterRange(hostKey: Uint8Array, nowMs: number): { start: Uint8Array; end: Uint8Array } {
  return { start: dueRange(hostKey, nowMs).end, end: kindEnd(hostKey, DEFERRED) }
}

/** Ready rows of a host, from after `cursor` when there is one. */
export function readyRange(hostKey: Uint8Array, cursor: Uint8Array | undefined): { start: Uint8Array; end: Uint8Array } {
  return { start: cursor === undefined ? readyRow(hostKey, 0, 0) : after(cursor), end: kindEnd(hostKey, READY) }
}

/** The least key above all of a kind. */
function kindEnd(hostKey: Uint8Array, kind: number): Uint8Array {
  const end = new Uint8Array(KIND_AT + 1)
  end.set(hostKey, 0)
  end[KIND_AT] = kind + 1
  return end
}

/** The least key above this one. */
export function after(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1)
  next.set(key, 0)
  return next
}

/** The host key that is tried `probe` steps after the hash; wraps at the end of the numbers. */
export function probeKey(hostHash: Uint8Array, probe: number): Uint8Array {
  const key = new Uint8Array(hostHash)
  for (let step = 0; step < probe; step += 1) {
    for (let at = HOST_KEY_BYTES - 1; at >= 0; at -= 1) {
      key[at] = (key[at]! + 1) & 0xff
      if (key[at] !== 0) break
    }
  }
  return key
}

/** A key as a string that Maps and Sets can hold. */
export function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
}

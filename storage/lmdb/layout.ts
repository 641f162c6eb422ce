/**
 * The keys of every table, and the version of the whole layout. Keys are binary and big-endian, so that LMDB's byte
 * order is the order of claims. Main thread. Invariant: a change of any drawing below is a new LAYOUT_VERSION; an
 * unknown version is refused, never migrated by guess. Pure functions: touches no table.
 * A key is a plain Uint8Array and parts of it are copies: V8 keeps up to 64 bytes inside the object, and a view of them
 * (`subarray`, `buffer`) makes it move them into memory of their own, which was
 * measured at 0.75 microseconds a key (made, as a string, and its fingerprint) where copies cost 0.2.
 *
 *   table         key                                                        value
 *   meta          text                                                       see state.ts
 *   hosts         host key (8)                                               name, facts without robots     codec.ts
 *   robots        host key (8)                                               verdicts by origin as JSON
 *   ready         host key (8)                                               URLs of the host in queue (4)
 *   queue         host key (8) | 0 | not before, ms (6) | sequence (6)       one URL                        queue-row.ts
 *                 host key (8) | 1 | priority (1) | first sequence (6)       URLs that came in together
 *                 host key (8) | 2 | priority (1) | first sequence (6)       the same, of the later class
 *   seen          host hash (8) | fingerprint (16)                           state (1), outcome (1) once it has one
 *   pages         host hash (8) | fingerprint (16)                           page row                       codec.ts
 *   due           due at, ms (6) | host hash (8) | fingerprint (16)          nothing
 *   domains       domain hash (8)                                            counts                         domains.ts
 *   domainLinks   domain hash (8) | hash of a domain that links to it (8)    nothing
 *   scope         name                                                       nothing
 *
 * The host hash is the first 64 bits of SHA-256 of the name, so a worker can form it for a host that nobody knows yet.
 * Two names may share it: the host key is the hash, or the next number whose row is free (hosts.ts). seen and pages
 * use the hash as it is, since the fingerprint behind it tells URLs apart.
 *
 * robots stands beside hosts because a verdict may be 500 KB of text and the facts change more often. ready holds the
 * count and not (next time, host): the scheduler keeps its own heap of times in memory, and asks the store only which
 * hosts have rows; a time in the key would be one more delete and put for each host of each commit.
 */
export const LAYOUT_VERSION = 2

export const HOST_KEY_BYTES = 8

const DEFERRED = 0
const READY = 1
const LATER = 2
const CLASS_AT = HOST_KEY_BYTES
const READY_ROW_BYTES = 16
const DEFERRED_ROW_BYTES = 21
const SHORT_BYTES = 6

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

/** Four bytes as a whole number. */
export function getWord(source: Uint8Array, at: number): number {
  return ((source[at]! << 24) | (source[at + 1]! << 16) | (source[at + 2]! << 8) | source[at + 3]!) >>> 0
}

/** Writes a whole number below 2^48 as 6 bytes: a sequence, or milliseconds until the year 10889. */
export function putShort(target: Uint8Array, at: number, value: number): void {
  target[at] = value / 2 ** 40
  target[at + 1] = value / TWO_32
  putWord(target, at + 2, value % TWO_32)
}

export function getShort(source: Uint8Array, at: number): number {
  return (source[at]! * 256 + source[at + 1]!) * TWO_32 + getWord(source, at + 2)
}

export function seenKey(hostHash: Uint8Array, fingerprint: Uint8Array): Uint8Array {
  const key = new Uint8Array(24)
  key.set(hostHash, 0)
  key.set(fingerprint, 8)
  return key
}

export type ReadyClass = 'ready' | 'later'

export function readyRow(hostKey: Uint8Array, of: ReadyClass, priority: number, sequence: number): Uint8Array {
  const row = new Uint8Array(READY_ROW_BYTES)
  row.set(hostKey, 0)
  row[CLASS_AT] = of === 'ready' ? READY : LATER
  row[CLASS_AT + 1] = priority
  putShort(row, CLASS_AT + 2, sequence)
  return row
}

export function deferredRow(hostKey: Uint8Array, notBeforeMs: number, sequence: number): Uint8Array {
  const row = new Uint8Array(DEFERRED_ROW_BYTES)
  row.set(hostKey, 0)
  row[CLASS_AT] = DEFERRED
  putShort(row, CLASS_AT + 1, Math.max(0, Math.ceil(notBeforeMs)))
  putShort(row, CLASS_AT + 1 + SHORT_BYTES, sequence)
  return row
}

export function hostKeyOf(row: Uint8Array): Uint8Array {
  return copyOf(row, 0, HOST_KEY_BYTES)
}

export function isDeferredRow(row: Uint8Array): boolean {
  return row[CLASS_AT] === DEFERRED
}

export function isLaterRow(row: Uint8Array): boolean {
  return row[CLASS_AT] === LATER
}

/** Of a row that is not deferred. */
export function priorityOf(row: Uint8Array): number {
  return row[CLASS_AT + 1]!
}

/** Every kind of row ends in the sequence of its first URL. */
export function sequenceOf(row: Uint8Array): number {
  return getShort(row, row.length - SHORT_BYTES)
}

export function notBeforeMsOf(row: Uint8Array): number {
  return getShort(row, CLASS_AT + 1)
}

interface Range {
  readonly start: Uint8Array
  readonly end: Uint8Array
}

/** All deferred rows of a host: from the first key to before the second. */
export function deferredRange(hostKey: Uint8Array): Range {
  return { start: deferredRow(hostKey, 0, 0), end: classStart(hostKey, READY) }
}

/** Deferred rows of a host that are due at `nowMs`. */
export function dueRange(hostKey: Uint8Array, nowMs: number): Range {
  return { start: deferredRow(hostKey, 0, 0), end: deferredRow(hostKey, Math.floor(nowMs) + 1, 0) }
}

/** Deferred rows of a host that are not due at `nowMs`. */
export function laterRange(hostKey: Uint8Array, nowMs: number): Range {
  return { start: dueRange(hostKey, nowMs).end, end: classStart(hostKey, READY) }
}

/** Ready rows of a host, those of the later class last, from after `cursor` when there is one. */
export function readyRange(hostKey: Uint8Array, cursor: Uint8Array | undefined): Range {
  return { start: cursor === undefined ? classStart(hostKey, READY) : after(cursor), end: classStart(hostKey, LATER + 1) }
}

/** The least key of a class of rows. */
function classStart(hostKey: Uint8Array, of: number): Uint8Array {
  const start = new Uint8Array(CLASS_AT + 1)
  start.set(hostKey, 0)
  start[CLASS_AT] = of
  return start
}

export function dueKey(atMs: number, seen: Uint8Array): Uint8Array {
  const key = new Uint8Array(SHORT_BYTES + seen.length)
  putShort(key, 0, Math.max(0, Math.ceil(atMs)))
  key.set(seen, SHORT_BYTES)
  return key
}

export function dueAtMsOf(key: Uint8Array): number {
  return getShort(key, 0)
}

export function seenKeyOfDue(key: Uint8Array): Uint8Array {
  return copyOf(key, SHORT_BYTES, key.length)
}

export function fingerprintOfSeen(key: Uint8Array): Uint8Array {
  return copyOf(key, HOST_KEY_BYTES, key.length)
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

// Node's own, which the types do not name; it takes any bytes.
const { latin1Slice } = Buffer.prototype as unknown as { readonly latin1Slice: (this: Uint8Array, start: number, end: number) => string }

/** `slice` of a Buffer would be a view. */
function copyOf(key: Uint8Array, start: number, end: number): Uint8Array {
  const copy = new Uint8Array(end - start)
  for (let at = start; at < end; at += 1) copy[at - start] = key[at]!
  return copy
}

/** A key as a string that Maps and Sets can hold. */
export function keyText(key: Uint8Array): string {
  return latin1Slice.call(key, 0, key.length)
}

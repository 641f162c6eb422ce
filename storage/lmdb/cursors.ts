/**
 * Where the ready rows of a host go on. Leased rows stay at the head of their host's range, so a claim that began at
 * the head each time would step over all of them again. For some hosts the store remembers the last row that it handed
 * out and which sequences below it were leased then. Main thread, in memory only; losing an entry costs time, nothing
 * else. Never touches a table.
 *
 * Invariant: a row at or below a host's cursor is one of the sequences held with it. It is kept in three ways:
 *   - a row that a commit takes out of the queue is forgotten (`left`);
 *   - a row that a commit puts in at or below the cursor drops the entry (`entered`), so the next claim begins at the
 *     head: a better URL that arrives late is not missed;
 *   - a held sequence that is no longer leased was given back without a commit, and drops the entry too (`of`).
 */
import { keyText } from './layout.ts'

interface Cursor {
  readonly row: Uint8Array
  readonly held: Set<number>
}

/** Hosts with a cursor; the one set longest ago is dropped first. */
const CURSORS_MAX = 4_096
/** A host with more leased rows than this has no cursor: checking them would cost more than stepping over them. */
const HELD_PER_HOST_MAX = 4_096

export class Cursors {
  readonly #cursors = new Map<string, Cursor>()

  /** The row after which to go on; undefined: from the head. */
  of(hostKey: Uint8Array, leased: ReadonlySet<number>): Uint8Array | undefined {
    const cursor = this.#cursors.get(keyText(hostKey))
    if (cursor === undefined) return undefined
    for (const sequence of cursor.held) {
      if (leased.has(sequence)) continue
      this.#cursors.delete(keyText(hostKey))
      return undefined
    }
    return cursor.row
  }

  /** After a claim: every row from the old cursor up to `row` is leased, or was handed out just now. */
  advance(hostKey: Uint8Array, row: Uint8Array, sequences: readonly number[]): void {
    const id = keyText(hostKey)
    const held = this.#cursors.get(id)?.held ?? new Set()
    for (const sequence of sequences) held.add(sequence)
    this.#cursors.delete(id)
    if (held.size <= HELD_PER_HOST_MAX) this.#cursors.set(id, { row, held })
    const oldest = this.#cursors.size > CURSORS_MAX ? this.#cursors.keys().next().value : undefined
    if (oldest !== undefined) this.#cursors.delete(oldest)
  }

  /** A row left the queue. */
  left(hostKey: Uint8Array, sequence: number): void {
    this.#cursors.get(keyText(hostKey))?.held.delete(sequence)
  }

  /** A ready row came into the queue. */
  entered(hostKey: Uint8Array, row: Uint8Array): void {
    const id = keyText(hostKey)
    const cursor = this.#cursors.get(id)
    if (cursor !== undefined && Buffer.compare(row, cursor.row) <= 0) this.#cursors.delete(id)
  }
}

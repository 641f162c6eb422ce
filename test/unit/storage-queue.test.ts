import { expect, test } from 'vitest'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import { Arena } from '../../storage/lmdb/codec.ts'
import { Cursors } from '../../storage/lmdb/cursors.ts'
import type { KeyRange } from '../../storage/lmdb/environment.ts'
import { deferredRow, keyText, readyRow, sequenceOf } from '../../storage/lmdb/layout.ts'
import { claim } from '../../storage/lmdb/queue.ts'
import { encodeQueueRow } from '../../storage/lmdb/queue-row.ts'

const host = { name: 'a.test', key: new Uint8Array(8).fill(5) }

/** A queue in memory, of rows with one URL, that counts the rows that were read of it. */
class CountingQueue {
  readonly rows = new Map<string, Uint8Array>()
  keysRead = 0
  readonly queue = { keys: (range: KeyRange = {}) => [...this.#range(range)].map(({ key }) => key), entries: (range: KeyRange = {}) => this.#range(range) }
  readonly previousOf = (): undefined => undefined

  constructor(rows: readonly Uint8Array[]) {
    const head = { depth: 0, priority: 0, attempts: 0, isAgain: false }
    const value = encodeQueueRow(new Arena(), 'a.test', head, [{ url: 'http://a.test/', fingerprint: fingerprintOf('x') }])
    for (const row of rows) this.rows.set(keyText(row), value)
  }

  * #range({ start, end, limit = Number.POSITIVE_INFINITY }: KeyRange): Iterable<{ key: Uint8Array; value: Uint8Array }> {
    const keys = [...this.rows.keys()].map((text) => Buffer.from(text, 'latin1')).sort(Buffer.compare)
      .filter((key) => Buffer.compare(key, start!) >= 0 && Buffer.compare(key, end!) < 0)
    for (const key of keys.slice(0, limit)) {
      this.keysRead += 1
      yield { key, value: this.rows.get(keyText(key))! }
    }
  }
}

test('a claim does not step over leased ready rows again, however many there are', () => {
  const queue = new CountingQueue(Array.from({ length: 1_000 }, (_, index) => readyRow(host.key, 'ready', 1, index + 1)))
  const cursors = new Cursors()
  const leased = new Set<number>()
  for (let round = 0; round < 100; round += 1) {
    const { urls } = claim(queue, cursors, host, { limit: 8, nowMs: 0, leased })
    for (const { sequence } of urls) leased.add(sequence)
  }
  expect(leased.size).toBe(800)
  expect(queue.keysRead).toBeLessThanOrEqual(100 * 9)
})

test('with ended rows in between, a cursor goes on where it was', () => {
  const queue = new CountingQueue(Array.from({ length: 100 }, (_, index) => readyRow(host.key, 'ready', 1, index + 1)))
  const cursors = new Cursors()
  const leased = new Set(claim(queue, cursors, host, { limit: 50, nowMs: 0, leased: new Set() }).urls.map(({ sequence }) => sequence))
  for (const sequence of [1, 2, 50]) {
    queue.rows.delete(keyText(readyRow(host.key, 'ready', 1, sequence)))
    leased.delete(sequence)
    cursors.left(host.key, sequence)
  }
  queue.keysRead = 0
  expect(claim(queue, cursors, host, { limit: 1, nowMs: 0, leased }).urls[0]!.sequence).toBe(51)
  // One for a look at the deferred rows, which finds none, would be one more.
  expect(queue.keysRead).toBe(1)
})

test('cursors of more hosts than are remembered cost only time', () => {
  const cursors = new Cursors()
  const keys = Array.from({ length: 5_000 }, (_, index) => Buffer.from(String(index).padStart(8, '0')))
  for (const key of keys) cursors.advance(key, readyRow(key, 'ready', 0, 1), [1])
  expect(cursors.of(keys[0]!, new Set([1]))).toBeUndefined()
  expect(cursors.of(keys[4_999]!, new Set([1]))).toEqual(readyRow(keys[4_999]!, 'ready', 0, 1))
})

test('a host with more leased rows than are worth remembering has no cursor', () => {
  const cursors = new Cursors()
  const sequences = Array.from({ length: 4_097 }, (_, index) => index)
  cursors.advance(host.key, readyRow(host.key, 'ready', 0, 4_097), sequences)
  expect(cursors.of(host.key, new Set(sequences))).toBeUndefined()
})

test('rows of both kinds order as claims do, for every number that fits', () => {
  const numbers = [0, 1, 255, 256, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 3, 2 ** 48 - 1]
  for (const [index, number] of numbers.entries()) {
    expect(sequenceOf(readyRow(host.key, 'ready', 9, number))).toBe(number)
    expect(sequenceOf(deferredRow(host.key, 7, number))).toBe(number)
    if (index === 0) continue
    const before = numbers[index - 1]!
    expect(Buffer.compare(readyRow(host.key, 'ready', 9, before), readyRow(host.key, 'ready', 9, number))).toBe(-1)
    expect(Buffer.compare(readyRow(host.key, 'ready', 8, number), readyRow(host.key, 'ready', 9, before))).toBe(-1)
    expect(Buffer.compare(deferredRow(host.key, before, number), deferredRow(host.key, number, before))).toBe(-1)
    expect(Buffer.compare(deferredRow(host.key, number, number), readyRow(host.key, 'ready', 0, 0))).toBe(-1)
  }
})

import { Worker } from 'node:worker_threads'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import { KnownTable } from '../../storage/known.ts'

const SET_BYTES = 128

test('an empty table knows nothing, not even the fingerprint of zeros', () => {
  const table = KnownTable.create(SET_BYTES)
  expect(table.has(new Uint8Array(16))).toBe(false)
  expect(table.has(fingerprintOf('a'))).toBe(false)
})

test('a table never has more bytes than it was given, and at least one set', () => {
  expect(KnownTable.create().memory.byteLength).toBe(4 * 1024 * 1024)
  expect(KnownTable.create(1_000).memory.byteLength).toBe(512)
  expect(KnownTable.create(1).memory.byteLength).toBe(SET_BYTES)
})

test('a hit was always added, and a set of seven keeps its last seven', () => {
  const byte = fc.integer({ min: 0, max: 2 })
  const fingerprint = fc.uint8Array({ minLength: 16, maxLength: 16 }).chain((base) => fc.array(byte, { minLength: 4, maxLength: 4 })
    .map((words) => Uint8Array.from(base, (_, at) => words[at >> 2]!)))
  fc.assert(fc.property(fc.array(fingerprint, { maxLength: 60 }), fc.array(fingerprint, { maxLength: 60 }), (added, asked) => {
    const table = KnownTable.create(SET_BYTES)
    const order: string[] = []
    for (const print of added) {
      const text = Buffer.from(print).toString('hex')
      if (!order.slice(-7).includes(text)) order.push(text)
      table.add(print)
    }
    const kept = new Set(order.slice(-7))
    for (const print of [...asked, ...added]) expect(table.has(print)).toBe(kept.has(Buffer.from(print).toString('hex')))
  }))
})

test('another view of the memory sees what was added', () => {
  const table = KnownTable.create()
  for (let index = 0; index < 1_000; index += 1) table.add(fingerprintOf(String(index)))
  const other = KnownTable.over(table.memory)
  for (let index = 0; index < 1_000; index += 1) expect(other.has(fingerprintOf(String(index)))).toBe(true)
  expect(other.has(fingerprintOf('1000'))).toBe(false)
})

test('a reader never takes the mix of two entries for one of them', async () => {
  // Eight fingerprints go round in a set of seven, so each takes the place of the one after it, and mixes of two
  // neighbours, which nobody added, lie there for a moment. The reader runs the compiled table in a thread of its own.
  const table = KnownTable.create(SET_BYTES)
  const control = new Int32Array(new SharedArrayBuffer(12))
  const worker = new Worker(`
    const { workerData } = require('node:worker_threads')
    import(workerData.module).then(({ KnownTable }) => {
      const table = KnownTable.over(workerData.memory)
      const mixes = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((one) => [[one, (one + 1) % 8], [(one + 1) % 8, one]])
        .flatMap(([low, high]) => [8, 12].map((at) => new Uint8Array(16).fill(low + 1, 4, at).fill(high + 1, at)))
      const whole = new Uint8Array(16).fill(1, 4)
      let rounds = 0
      let hits = 0
      while (Atomics.load(workerData.control, 0) === 0) {
        for (const mix of mixes) if (table.has(mix)) Atomics.add(workerData.control, 1, 1)
        if (table.has(whole)) hits += 1
        rounds += 1
        if (rounds === 1) { Atomics.store(workerData.control, 2, 1); Atomics.notify(workerData.control, 2) }
      }
      require('node:worker_threads').parentPort.postMessage({ rounds, hits })
    })
  `, { eval: true, workerData: { memory: table.memory, control, module: new URL('../../dist/storage/known.js', import.meta.url).href } })
  const told = new Promise<{ rounds: number; hits: number }>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  await Atomics.waitAsync(control, 2, 0).value
  const prints = Array.from({ length: 8 }, (_, index) => new Uint8Array(16).fill(index + 1, 4))
  for (let round = 0; round < 2_000_000; round += 1) table.add(prints[round % 8]!)
  // Publishes to the reader that it may stop.
  Atomics.store(control, 0, 1)
  const { rounds, hits } = await told
  expect(rounds).toBeGreaterThan(1_000)
  expect(hits).toBeGreaterThan(0)
  expect(Atomics.load(control, 1)).toBe(0)
  await worker.terminate()
})

/**
 * The ring under real threads. Each worker notes, in the slot itself, how many pages it finished before; so the main
 * thread can tell whether it gets each worker's pages without a gap and in order.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { PageRing } from '../../threads/ring.ts'
import { turn } from '../support/test-clock.ts'
import { integer, withSeeds } from '../support/random.ts'

const SLOTS = 8
const WORKERS = 3
const PAGES = 20_000

const source = `
  const { workerData } = require('node:worker_threads')
  import(workerData.ring).then(({ take, finish }) => {
    const { words, notes, stop, owner } = workerData
    let finished = 0, last = -1, state = owner * 7919
    while (Atomics.load(stop, 0) === 0) {
      const taken = take(words, owner)
      if (taken === undefined) continue
      if (taken.position <= last) Atomics.store(stop, 1, taken.position)
      last = taken.position
      // A page takes a while, and not always the same.
      state = (state * 1103515245 + 12345) & 0x7fffffff
      for (let spin = state % 400; spin > 0; spin -= 1) Atomics.load(words, taken.slot)
      notes[2 * taken.slot] = owner
      notes[2 * taken.slot + 1] = finished
      if (finish(words, taken, owner)) finished += 1
    }
  })
`

describe('ring between threads', () => {
  it('hands out each page once, and each worker\'s pages in the order in which it finished them', async () => {
    await withSeeds(1, async (random) => {
      const words = new Int32Array(new SharedArrayBuffer(4 * SLOTS))
      const notes = new Int32Array(new SharedArrayBuffer(8 * SLOTS))
      // Word 0 ends the workers, word 1 is a position that a worker took after a greater one.
      const stop = new Int32Array(new SharedArrayBuffer(8))
      const ring = new PageRing(words)
      const workers = Array.from({ length: WORKERS }, (_, index) => new Worker(source, {
        eval: true,
        workerData: { ring: new URL('../../dist/threads/ring.js', import.meta.url).href, words, notes, stop, owner: index + 1 },
      }))
      const finished = new Map<number, number>()
      const seen = new Set<number>()
      let filled = 0
      while (seen.size < PAGES) {
        for (let count = integer(random, SLOTS); count > 0 && filled < PAGES; count -= 1) {
          const slot = ring.acquire()
          if (slot === undefined) break
          ring.publish(slot)
          filled += 1
        }
        const done = ring.done().slice(0, 1 + integer(random, SLOTS))
        for (const one of done) {
          const [owner, before] = [notes[2 * one.slot]!, notes[2 * one.slot + 1]!]
          expect(one.owner).toBe(owner)
          expect(before).toBe(finished.get(owner) ?? 0)
          finished.set(owner, before + 1)
          seen.add(one.position)
          ring.release(one)
        }
        if (done.length === 0) await turn()
      }
      // Tells the workers to return.
      Atomics.store(stop, 0, 1)
      await Promise.all(workers.map((worker) => once(worker, 'exit')))
      expect(stop[1]).toBe(0)
      expect(ring.counts()).toEqual({ free: SLOTS, filled: 0, taken: 0, done: 0 })
      expect([...finished.values()].reduce((sum, count) => sum + count)).toBe(PAGES)
    })
  })
})

/**
 * Workers ended from outside, at random moments, under load.
 */
import { Worker } from 'node:worker_threads'
import { describe, expect, it, vi } from 'vitest'
import { turn } from '../support/test-clock.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { openRig, smallPage } from '../support/pool-rig.ts'

const KILLS = 300
const THREADS = 2

/** Every worker thread that this process starts; a dead one leaves, and so does one that is told to end. */
function watchThreads(): { readonly living: Set<Worker>; restore(): void } {
  const living = new Set<Worker>()
  const postMessage = Worker.prototype.postMessage
  // Piscina posts a worker's first message right after it made it.
  const spy = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, ...args) {
    if (!living.has(this)) {
      living.add(this)
      this.once('exit', () => living.delete(this))
    }
    return Reflect.apply(postMessage, this, args) as void
  })
  return { living, restore: () => spy.mockRestore() }
}

describe('workers killed at random moments', () => {
  it(`lose no slot and no page over ${KILLS} kills, and each page comes out once`, { timeout: 180_000 }, async () => {
    await withSeeds(1, async (random) => {
      const { living, restore } = watchThreads()
      const rig = await openRig({ threads: THREADS, slots: 8, turnMs: 50 })
      try {
        const tickets: number[] = []
        let kills = 0
        while (kills < KILLS) {
          for (let page = integer(random, 12); page > 0; page -= 1) {
            tickets.push(await rig.put(smallPage(tickets.length)))
            // A random part of a worker's few milliseconds of life, in steps of the loop.
            for (let turns = integer(random, 40); turns > 0; turns -= 1) await turn()
          }
          if (living.size === 0) continue
          const worker = pick(random, [...living])
          living.delete(worker)
          void worker.terminate()
          kills += 1
        }
        await rig.until(() => rig.collected.length === tickets.length)
        expect(rig.collected.map(({ ticket }) => ticket).sort((a, b) => a - b)).toEqual(tickets)
        const outcomes = tickets.map((ticket) => rig.outcomeOf(ticket))
        const crashed = outcomes.filter((outcome) => outcome === 'parse_crashed').length
        expect(outcomes.filter((outcome) => outcome === 'ok').length + crashed).toBe(tickets.length)
        expect(crashed).toBeLessThan(tickets.length / 4)
        expect(rig.pool.stats()).toMatchObject({ slots: 8, free: 8, filled: 0, taken: 0, done: 0 })
        expect(rig.pool.stats().workersLost).toBeGreaterThan(KILLS / 2)
        console.log(`${kills} kills, ${tickets.length} pages, ${crashed} given up after two deaths, ${rig.lost.length} turns lost`)
      } finally {
        restore()
        await rig.close()
      }
    })
  })
})

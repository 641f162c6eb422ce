/**
 * Workers ended from outside, at random moments, under load.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { TestClock, turn } from '../support/test-clock.ts'
import { integer, pick, withSeeds } from '../support/random.ts'
import { openRig, smallPage, type PoolRig } from '../support/pool-rig.ts'
import { warcFileName } from '../../engine/core/types.ts'

const KILLS = 300
/** Each of these also costs the start of an extractor and of a WARC file. */
const OWN_DEATHS = 100
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

/** The pages in the WARC files, each file cut as the engine would cut it. */
async function pagesInWarcs(dir: string, rig: PoolRig): Promise<string[]> {
  const lengths = new Map(rig.lost.flatMap(({ warcFile, warcLength }) => (warcFile === undefined ? [] : [[warcFileName(warcFile), warcLength]])))
  const urls: string[] = []
  for (const name of await readdir(join(dir, 'warc'))) {
    const whole = await readFile(join(dir, 'warc', name))
    const cut = whole.subarray(0, lengths.get(`warc/${name}`) ?? whole.length)
    if (cut.length === 0) continue
    urls.push(...Array.from(gunzipSync(cut).toString('latin1').matchAll(/^WARC-Target-URI: (.*)\r$/gm), ([, url]) => url!))
  }
  return urls.sort()
}

/** The places of the collected pages, in the order of collecting; by file. */
function placesOf(rig: PoolRig): Map<number, { offset: number; length: number }[]> {
  const places = new Map<number, { offset: number; length: number }[]>()
  for (const page of rig.collected) {
    if (!('result' in page) || page.result.warc === undefined) continue
    const { file, offset, length } = page.result.warc
    places.set(file, [...(places.get(file) ?? []), { offset, length }])
  }
  return places
}

describe('a worker killed while it starts', () => {
  it('is replaced, though Piscina gives up replacing workers then, and the page that waited is read', async () => {
    const { living, restore } = watchThreads()
    // The clock stands still, so no deadline comes to help.
    const rig = await openRig({ clock: new TestClock(), extractor: 'export default (page) => page.url.endsWith("/1") && new Promise(() => {})' })
    try {
      const hanging = await rig.put(smallPage(1))
      while (rig.pool.stats().taken === 0) await turn()
      for (let kills = 0; kills < 3; kills += 1) {
        const [worker] = living
        living.delete(worker!)
        void worker!.terminate()
        while (living.size === 0) await turn()
      }
      const ticket = await rig.put(smallPage(2))
      while (rig.pool.stats().taken === 0) await turn()
      const [worker] = living
      void worker!.terminate()
      await rig.until(() => rig.collected.length === 2)
      expect([rig.outcomeOf(hanging), rig.outcomeOf(ticket)]).toEqual(['parse_crashed', 'ok'])
    } finally {
      restore()
      await rig.close()
    }
  })
})

/** Kills workers, if they do not die by themselves; answers how many deaths there were. */
type Kill = () => number

/** Fills pages and kills workers in turn, until there were enough deaths and every page has come out. */
async function survive(rig: PoolRig, random: () => number, { kill, kills }: { kill: Kill; kills: number }): Promise<{ tickets: readonly number[]; crashed: number }> {
  const tickets: number[] = []
  while (kill() < kills) {
    for (let page = integer(random, 12); page > 0; page -= 1) {
      tickets.push(await rig.put(smallPage(tickets.length)))
      // A random part of a worker's few milliseconds of life, in steps of the loop.
      for (let turns = integer(random, 40); turns > 0; turns -= 1) await turn()
    }
  }
  await rig.until(() => rig.collected.length === tickets.length)
  expect(rig.collected.map(({ ticket }) => ticket).sort((a, b) => a - b)).toEqual(tickets)
  const outcomes = tickets.map((ticket) => rig.outcomeOf(ticket))
  const crashed = outcomes.filter((outcome) => outcome === 'parse_crashed').length
  expect(outcomes.filter((outcome) => outcome === 'ok').length + crashed).toBe(tickets.length)
  expect(rig.pool.stats()).toMatchObject({ slots: 8, free: 8, filled: 0, taken: 0, done: 0 })
  expect(rig.pool.stats().workersLost).toBeGreaterThan(kills / 2)
  return { tickets, crashed }
}

describe('workers killed at random moments', () => {
  // Without WARC files and with pages in no coding: on Node 20 a thread that is ended between the making of a zlib
  // object and its initialisation ends the process ("close before init"), wherever it is made, and that is no slot's doing.
  it(`from outside lose no slot and no page over ${KILLS} kills; each page comes out once`, { timeout: 180_000 }, async () => {
    await withSeeds(1, async (random) => {
      const { living, restore } = watchThreads()
      const rig = await openRig({ threads: THREADS, slots: 8, turnMs: 50 })
      try {
        let kills = 0
        const kill = (): number => {
          if (living.size === 0) return kills
          const worker = pick(random, [...living])
          living.delete(worker)
          void worker.terminate()
          return kills += 1
        }
        const { tickets, crashed } = await survive(rig, random, { kill, kills: KILLS })
        expect(crashed).toBeLessThan(tickets.length / 4)
        console.log(`${KILLS} kills, ${tickets.length} pages, ${crashed} given up after two deaths, ${rig.lost.length} turns lost`)
      } finally {
        restore()
        await rig.close()
      }
    })
  })

  it(`by themselves lose no slot and no page over ${OWN_DEATHS} deaths, and each page's WARC record is there once`, { timeout: 180_000 }, async () => {
    await withSeeds(1, async (random) => {
      const dir = await mkdtemp(join(tmpdir(), 'sluice-kills-'))
      // A page's first worker dies of it at once, or once its turn is over, with more pages in its WARC file.
      const extractor = `import { openSync } from 'node:fs'
        export default ({ url }) => {
          const id = Number(url.slice(url.lastIndexOf('/') + 1))
          if (id % 3 !== 0) return
          try { openSync(${JSON.stringify(dir)} + '/seen-' + id, 'wx') } catch { return }
          if (id % 2 === 0) process.exit(1)
          setImmediate(() => process.exit(1))
        }`
      const rig = await openRig({ threads: THREADS, slots: 8, turnMs: 50, worker: { warcDir: dir }, extractor })
      try {
        const { tickets } = await survive(rig, random, { kill: () => rig.lost.length, kills: OWN_DEATHS })
        const read = tickets.flatMap((ticket, id) => (rig.outcomeOf(ticket) === 'ok' ? [`http://site.example/${id}`] : []))
        expect(await pagesInWarcs(dir, rig)).toEqual(read.sort())
        for (const places of placesOf(rig).values()) {
          // Without a gap: what was committed first lies first, so a committed length covers committed pages alone.
          places.reduce((last, place) => {
            expect(place.offset).toBe(last.offset + last.length)
            return place
          })
        }
      } finally {
        await rig.close()
        await rm(dir, { recursive: true, force: true })
      }
    })
  })
})

/**
 * The ring against a naive model: a list of pages. Workers are simulated, so that every interleaving of whole steps can
 * be tried; ring-workers.test.ts has real threads.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finish, PageRing, slotState, take, type Taken } from '../../threads/ring.ts'

const SLOTS = 4
const WORKERS = 3

interface Page {
  readonly id: number
  readonly slot: number
  /** Position as a number that never wraps: the order of publishing. */
  order: number
  state: 'filled' | 'taken' | 'done'
  owner: number
}

type Step =
  | { readonly do: 'fill' | 'collect' }
  | { readonly do: 'take' | 'finish' | 'die'; readonly worker: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('fill' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('collect' as const) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('take' as const, 'finish' as const), worker: fc.nat(WORKERS - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const), worker: fc.nat(WORKERS - 1) }) },
)

class Model {
  readonly words = new Int32Array(new SharedArrayBuffer(4 * SLOTS))
  readonly ring: PageRing
  readonly pages: Page[] = []
  readonly hands: (Taken | undefined)[] = Array.from({ length: WORKERS })
  /** Turn number of each worker; a dead worker's successor has another. */
  readonly owners = [1, 2, 3]
  readonly collected: { id: number; owner: number; order: number }[] = []
  #orderNext = 0
  #idNext = 0
  #ownerNext = WORKERS + 1

  constructor(positionFirst: number) {
    this.ring = new PageRing(this.words, positionFirst)
  }

  run(step: Step): void {
    switch (step.do) {
      case 'fill': return this.#fill()
      case 'collect': return this.#collect()
      case 'take': return this.#take(step.worker)
      case 'finish': return this.#finish(step.worker)
      default: return this.#die(step.worker)
    }
  }

  #fill(): void {
    const slot = this.ring.acquire()
    expect(slot === undefined).toBe(this.pages.length === SLOTS)
    if (slot === undefined) return
    expect(this.pages.some((page) => page.slot === slot)).toBe(false)
    this.ring.publish(slot)
    this.pages.push({ id: this.#idNext += 1, slot, order: this.#orderNext += 1, state: 'filled', owner: 0 })
  }

  #take(worker: number): void {
    if (this.hands[worker] !== undefined) return
    const best = this.pages.filter((page) => page.state === 'filled').sort((a, b) => a.order - b.order)[0]
    const taken = take(this.words, this.owners[worker]!)
    expect(taken?.slot).toBe(best?.slot)
    if (taken === undefined || best === undefined) return
    Object.assign(best, { state: 'taken', owner: this.owners[worker] })
    this.hands[worker] = taken
  }

  #finish(worker: number): void {
    const taken = this.hands[worker]
    if (taken === undefined) return
    expect(finish(this.words, taken, this.owners[worker]!)).toBe(true)
    this.pages.find((page) => page.slot === taken.slot)!.state = 'done'
    this.hands[worker] = undefined
  }

  #die(worker: number): void {
    const owner = this.owners[worker]!
    const taken = this.hands[worker]
    this.owners[worker] = this.#ownerNext
    this.#ownerNext = (this.#ownerNext % 511) + 1
    this.hands[worker] = undefined
    const theirs = this.ring.scan().filter((one) => one.owner === owner && one.state === slotState.taken)
    expect(theirs.map((one) => one.slot)).toEqual(taken === undefined ? [] : [taken.slot])
    for (const one of theirs) {
      expect(this.ring.takeBack(one)).toBe(true)
      this.ring.publish(one.slot)
      Object.assign(this.pages.find((page) => page.slot === one.slot)!, { state: 'filled', owner: 0, order: this.#orderNext += 1 })
      expect(finish(this.words, taken!, owner)).toBe(false)
    }
  }

  #collect(): void {
    const done = this.ring.done()
    const expected = this.pages.filter((page) => page.state === 'done').sort((a, b) => a.order - b.order)
    expect(done.map((one) => one.slot)).toEqual(expected.map((page) => page.slot))
    for (const one of done) {
      this.ring.release(one)
      const page = this.pages.find(({ slot }) => slot === one.slot)!
      this.collected.push(page)
      this.pages.splice(this.pages.indexOf(page), 1)
    }
  }

  check(): void {
    const counts = this.ring.counts()
    const count = (state: Page['state']): number => this.pages.filter((page) => page.state === state).length
    expect(counts).toEqual({ free: SLOTS - this.pages.length, filled: count('filled'), taken: count('taken'), done: count('done') })
    expect(this.ring.free).toBe(SLOTS - this.pages.length)
    for (const owner of new Set(this.collected.map((page) => page.owner))) {
      const orders = this.collected.filter((page) => page.owner === owner).map((page) => page.order)
      expect(orders).toEqual([...orders].sort((a, b) => a - b))
    }
  }
}

describe('ring', () => {
  it('does what a list of pages does, through deaths and across the wrap of positions', () => {
    const start = fc.constantFrom(0, 2 ** 20 - 3, 2 ** 19 - 3)
    fc.assert(fc.property(start, fc.array(step, { maxLength: 120 }), (positionFirst, steps) => {
      const model = new Model(positionFirst)
      for (const one of steps) {
        model.run(one)
        model.check()
      }
    }), { numRuns: 300 })
  })
})

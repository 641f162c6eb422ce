import { afterEach, describe, expect, it, vi } from 'vitest'
import { finish, isBefore, ownerOf, packWord, PageRing, positionOf, slotState, stateOf, take } from '../../threads/ring.ts'

const POSITIONS = 2 ** 20

function words(slots: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * slots))
}

function fill(ring: PageRing): number {
  const slot = ring.acquire()
  if (slot === undefined) throw new Error('no slot is free')
  return ring.publish(slot)
}

afterEach(() => vi.restoreAllMocks())

describe('state word', () => {
  it('holds the greatest position, state and owner without loss', () => {
    const word = packWord(POSITIONS - 1, slotState.done, 511)
    expect([positionOf(word), stateOf(word), ownerOf(word)]).toEqual([POSITIONS - 1, slotState.done, 511])
  })

  it('orders positions across the wrap', () => {
    expect(isBefore(POSITIONS - 1, 0)).toBe(true)
    expect(isBefore(0, POSITIONS - 1)).toBe(false)
    expect(isBefore(7, 7)).toBe(false)
  })
})

describe('take', () => {
  it('takes the least position, whatever slot it lies in', () => {
    const memory = words(4)
    const ring = new PageRing(memory)
    const first = fill(ring)
    fill(ring)
    const taken = take(memory, 1)!
    expect(finish(memory, taken, 1)).toBe(true)
    ring.release(ring.done()[0]!)
    // The slot that came free is the first of all words now, and holds the greatest position.
    fill(ring)
    expect(taken.position).toBe(first)
    expect(take(memory, 1)!.position).toBe(first + 1)
    expect(take(memory, 1)!.position).toBe(first + 2)
    expect(take(memory, 1)).toBeUndefined()
  })

  it('takes the older page although a younger one was published behind the scan and an older one before it', () => {
    const memory = words(3)
    const ring = new PageRing(memory)
    const load = Atomics.load.bind(Atomics)
    let reads = 0
    // While the first scan stands between word 0 and word 1, the main thread publishes 0 in word 0 and 1 in word 1.
    vi.spyOn(Atomics, 'load').mockImplementation(((array: Int32Array, index: number) => {
      const word = load(array, index)
      reads += 1
      if (reads === 1) {
        expect([ring.acquire(), ring.acquire()]).toEqual([0, 1])
        ring.publish(0)
        ring.publish(1)
      }
      return word
    }) as typeof Atomics.load)
    expect(take(memory, 1)!.position).toBe(0)
    expect(take(memory, 1)!.position).toBe(1)
  })

  it('scans again when another worker was faster', () => {
    const memory = words(2)
    const ring = new PageRing(memory)
    fill(ring)
    fill(ring)
    const exchange = Atomics.compareExchange.bind(Atomics)
    let isFirst = true
    vi.spyOn(Atomics, 'compareExchange').mockImplementation(((array: Int32Array, index: number, expected: number, next: number) => {
      if (isFirst) {
        isFirst = false
        expect(take(memory, 2)!.position).toBe(0)
      }
      return exchange(array, index, expected, next)
    }) as typeof Atomics.compareExchange)
    expect(take(memory, 1)!.position).toBe(1)
  })
})

describe('a worker that was declared dead', () => {
  it('cannot finish a slot that was taken back', () => {
    const memory = words(2)
    const ring = new PageRing(memory)
    fill(ring)
    const taken = take(memory, 3)!
    expect(ring.takeBack(ring.scan()[0]!)).toBe(true)
    expect(finish(memory, taken, 3)).toBe(false)
    ring.publish(taken.slot)
    expect(finish(memory, taken, 3)).toBe(false)
    const again = take(memory, 4)!
    expect(finish(memory, taken, 3)).toBe(false)
    expect(finish(memory, again, 4)).toBe(true)
    expect(ring.done()).toMatchObject([{ slot: taken.slot, owner: 4, position: 1 }])
  })

  it('finds its page behind those that were published since', () => {
    const memory = words(3)
    const ring = new PageRing(memory)
    fill(ring)
    fill(ring)
    const taken = take(memory, 1)!
    ring.takeBack(ring.scan()[0]!)
    const position = ring.publish(taken.slot)
    expect(position).toBe(2)
    expect(ring.scan().map((one) => one.position)).toEqual([1, 2])
  })
})

describe('PageRing', () => {
  it('sees every earlier page of a worker whose later page it sees done', () => {
    const memory = words(3)
    const ring = new PageRing(memory)
    fill(ring)
    fill(ring)
    const load = Atomics.load.bind(Atomics)
    let reads = 0
    // Between the two reads of the main thread the worker finishes both pages, in order.
    const spy = vi.spyOn(Atomics, 'load').mockImplementation(((array: Int32Array, index: number) => {
      const word = load(array, index)
      reads += 1
      if (reads === 1) {
        spy.mockRestore()
        for (let page = 0; page < 2; page += 1) finish(memory, take(memory, 1)!, 1)
      }
      return word
    }) as typeof Atomics.load)
    const seen = ring.done().map((one) => one.position)
    // Read upwards it would see page 1 done and page 0 not; read downwards it may miss page 1, never page 0.
    expect(seen).toEqual([0])
    expect(ring.done().map((one) => one.position)).toEqual([0, 1])
  })

  it('withdraws no slot that a worker takes in the meantime', () => {
    const memory = words(1)
    const ring = new PageRing(memory)
    fill(ring)
    const [seen] = ring.scan()
    take(memory, 1)
    expect(ring.takeBack(seen!)).toBe(false)
    expect(ring.outstanding).toBe(1)
  })

  it('hands a failed slot out as done, owned by nobody, and frees it', () => {
    const memory = words(1)
    const ring = new PageRing(memory)
    fill(ring)
    take(memory, 1)
    ring.takeBack(ring.scan()[0]!)
    ring.fail(0)
    expect(ring.done()).toMatchObject([{ slot: 0, owner: 0 }])
    ring.release(ring.done()[0]!)
    expect([ring.free, ring.outstanding, ring.counts().free]).toEqual([1, 0, 1])
  })

  it('refuses to fill while the oldest page is half a turn of the counter behind', () => {
    const memory = words(2)
    const ring = new PageRing(memory)
    fill(ring)
    take(memory, 1)
    let filled = 0
    while (filled <= POSITIONS) {
      const slot = ring.acquire()
      if (slot === undefined) break
      ring.publish(slot)
      filled += 1
      const taken = take(memory, 2)!
      finish(memory, taken, 2)
      ring.release(ring.done()[0]!)
    }
    expect(filled).toBeGreaterThan(POSITIONS / 2 - 10)
    expect(filled).toBeLessThan(POSITIONS / 2)
  })

  it('refuses to release a slot that is not done', () => {
    const memory = words(1)
    const ring = new PageRing(memory)
    fill(ring)
    expect(() => ring.release(ring.scan()[0]!)).toThrow(/only a done slot/)
  })
})

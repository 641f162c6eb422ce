import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteBudget, type Release } from '../../engine/fetch/byte-budget.ts'

const never = new AbortController().signal

/** Lets what is resolved be heard. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('bytes are reserved at once while they last, and given back once', async () => {
  const budget = new ByteBudget(100)
  const release = budget.tryReserve(60)
  expect(budget.tryReserve(41)).toBeUndefined()
  expect(budget.tryReserve(40)).toBeTypeOf('function')
  expect(budget.reservedBytes).toBe(100)
  release?.()
  release?.()
  expect(budget.reservedBytes).toBe(40)
})

test('a small body does not overtake a large one that waits', async () => {
  const budget = new ByteBudget(100)
  const first = budget.tryReserve(60)!
  const order: string[] = []
  const note = (bytes: number, name: string): Promise<unknown> => budget.reserve(bytes, never).then((release) => [order.push(name), release?.()])
  void note(100, 'large')
  void note(10, 'small')
  await turn()
  expect(budget.tryReserve(1)).toBeUndefined()
  expect({ waiting: budget.waiting, order }).toEqual({ waiting: 2, order: [] })
  first()
  await turn()
  expect(order).toEqual(['large', 'small'])
})

test('who gives up lets the next one through, and holds nothing', async () => {
  const budget = new ByteBudget(100)
  const first = budget.tryReserve(60)!
  const aborter = new AbortController()
  const large = budget.reserve(100, aborter.signal)
  const small = budget.reserve(40, never)
  aborter.abort()
  expect(await large).toBeUndefined()
  expect(await small).toBeTypeOf('function')
  first()
  expect(budget.reservedBytes).toBe(40)
  expect(await budget.reserve(10, AbortSignal.abort())).toBeTypeOf('function')
  expect(await budget.reserve(60, AbortSignal.abort())).toBeUndefined()
  expect(budget.waiting).toBe(0)
})

test('a body larger than the budget is a programmer\'s error', () => {
  expect(() => new ByteBudget(100).tryReserve(101)).toThrow(/invariant/)
})

test('grants as a queue of numbers does, whatever the order of events', async () => {
  type Step = { kind: 'reserve', bytes: number } | { kind: 'release' | 'abort', pick: number }
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant('reserve' as const), bytes: fc.integer({ min: 0, max: 100 }) }),
    fc.record({ kind: fc.constantFrom('release' as const, 'abort' as const), pick: fc.nat(50) }),
  )
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
    const budget = new ByteBudget(100)
    const releases = new Map<number, Release>()
    const aborters = new Map<number, AbortController>()
    // The model: who holds, who waits.
    const held = new Map<number, number>()
    const queue: { id: number, bytes: number }[] = []
    const heldBytes = (): number => [...held.values()].reduce((sum, bytes) => sum + bytes, 0)
    const serve = (): void => {
      while (queue.length > 0 && queue[0]!.bytes <= 100 - heldBytes()) held.set(queue[0]!.id, queue.shift()!.bytes)
    }
    for (const [id, one] of steps.entries()) {
      if (one.kind === 'reserve') {
        const aborter = new AbortController()
        aborters.set(id, aborter)
        void budget.reserve(one.bytes, aborter.signal).then((release) => release && releases.set(id, release))
        queue.push({ id, bytes: one.bytes })
        serve()
      } else if (one.kind === 'release' && held.size > 0) {
        const id = [...held.keys()][one.pick % held.size]!
        held.delete(id)
        serve()
        releases.get(id)!()
        releases.delete(id)
      } else if (one.kind === 'abort' && queue.length > 0) {
        const { id } = queue.splice(one.pick % queue.length, 1)[0]!
        serve()
        aborters.get(id)!.abort()
      }
      // Three microtasks lie between a grant and its holder.
      for (let at = 0; at < 5; at++) await Promise.resolve()
      expect(budget.reservedBytes).toBe(heldBytes())
      expect(budget.waiting).toBe(queue.length)
      expect([...releases.keys()].sort()).toEqual([...held.keys()].sort())
    }
  }))
})

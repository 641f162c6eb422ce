import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Heap } from '../../engine/schedule/heap.ts'

interface Item { heapIndex: number; key: number }

const operation = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), which: fc.nat(30), key: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ kind: fc.constant('delete' as const), which: fc.nat(30) }),
  fc.record({ kind: fc.constant('pop' as const) }),
)

test('a heap has the least item in front whatever is put in, moved and taken out, as a sorted array has', () => {
  fc.assert(fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
    const heap = new Heap<Item>((a, b) => a.key < b.key)
    const items = Array.from({ length: 31 }, (): Item => ({ heapIndex: -1, key: 0 }))
    const model = new Set<Item>()
    for (const operation of operations) {
      if (operation.kind === 'set') {
        const item = items[operation.which]!
        item.key = operation.key
        heap.set(item)
        model.add(item)
      } else if (operation.kind === 'delete') {
        const item = items[operation.which]!
        heap.delete(item)
        model.delete(item)
      } else {
        const first = heap.peek()
        if (first !== undefined) {
          heap.delete(first)
          model.delete(first)
        }
      }
      const sorted = [...model].map((item) => item.key).sort((a, b) => a - b)
      expect(heap.size).toBe(model.size)
      expect(heap.peek()?.key).toBe(sorted[0])
      for (const item of items) expect(item.heapIndex >= 0).toBe(model.has(item))
    }
    // What is left comes out in order, so nothing lies beneath a greater one.
    const left = [...model].map((item) => item.key).sort((a, b) => a - b)
    const out: number[] = []
    for (let first = heap.peek(); first !== undefined; first = heap.peek()) {
      out.push(first.key)
      heap.delete(first)
    }
    expect(out).toEqual(left)
  }), { numRuns: 300 })
})

test('an item that was taken out can be put into another heap', () => {
  const [one, other] = [new Heap<Item>((a, b) => a.key < b.key), new Heap<Item>((a, b) => a.key > b.key)]
  const item = { heapIndex: -1, key: 1 }
  one.set(item)
  one.delete(item)
  other.set(item)
  expect([one.size, other.size, other.peek()]).toEqual([0, 1, item])
})

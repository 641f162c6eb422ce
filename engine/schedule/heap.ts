/**
 * A binary min-heap whose items know their place, so that one can be moved or removed in O(log n). An item is in at
 * most one heap at a time. Main thread.
 *
 *        at(0)            parent of i: (i - 1) >> 1
 *       /     \           children:    2i + 1, 2i + 2
 *    at(1)   at(2)        invariant: no item is less than its parent, and items[i].heapIndex === i
 */

export interface HeapItem {
  /** Place in the heap; -1 outside. Written by the heap only. */
  heapIndex: number
}

export class Heap<T extends HeapItem> {
  #items: T[] = []
  readonly #less: (a: T, b: T) => boolean

  constructor(less: (a: T, b: T) => boolean) {
    this.#less = less
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  /** Puts the item in, or moves it to where its key now belongs. */
  set(item: T): void {
    if (item.heapIndex === -1) {
      item.heapIndex = this.#items.length
      // The first push into an empty array makes room for sixteen more, and most heaps are of one host.
      if (item.heapIndex === 0) this.#items = [item]
      else this.#items.push(item)
    }
    this.#rise(item.heapIndex)
    this.#sink(item.heapIndex)
  }

  /** Takes the item out; nothing happens when it is not in. */
  delete(item: T): void {
    const index = item.heapIndex
    if (index === -1) return
    const last = this.#items.pop()!
    item.heapIndex = -1
    if (last === item) return
    this.#items[index] = last
    last.heapIndex = index
    this.#rise(index)
    this.#sink(last.heapIndex)
  }

  #rise(index: number): void {
    const item = this.#items[index]!
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!this.#less(item, this.#items[parent]!)) break
      this.#place(this.#items[parent]!, index)
      index = parent
    }
    this.#place(item, index)
  }

  #sink(index: number): void {
    const item = this.#items[index]!
    const size = this.#items.length
    for (;;) {
      let child = 2 * index + 1
      if (child >= size) break
      if (child + 1 < size && this.#less(this.#items[child + 1]!, this.#items[child]!)) child += 1
      if (!this.#less(this.#items[child]!, item)) break
      this.#place(this.#items[child]!, index)
      index = child
    }
    this.#place(item, index)
  }

  #place(item: T, index: number): void {
    this.#items[index] = item
    item.heapIndex = index
  }
}

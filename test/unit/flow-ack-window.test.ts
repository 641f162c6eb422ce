import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AckWindow } from '../../engine/flow/ack-window.ts'

function setUp(options: { sizeMax?: number; isHanded?: (item: number) => boolean } = {}) {
  const acknowledged: number[] = []
  const window = new AckWindow<number>({
    sizeMax: () => options.sizeMax ?? 4, isHanded: options.isHanded ?? (() => true), onAck: (item) => acknowledged.push(item),
  })
  return { window, acknowledged }
}

test('asking for the next page acknowledges the one in hand, and no other', async () => {
  const { window, acknowledged } = setUp()
  for (const item of [1, 2, 3]) window.push(item)
  expect(await window.next()).toBe(1)
  expect(acknowledged).toEqual([])
  expect(await window.next()).toBe(2)
  expect(acknowledged).toEqual([1])
  expect(window.size).toBe(2)
})

test('a consumer that asks first gets the page when it comes', async () => {
  const { window, acknowledged } = setUp()
  const asked = window.next()
  window.push(7)
  expect(await asked).toBe(7)
  expect([window.size, acknowledged]).toEqual([1, []])
})

test('the page in hand counts against the bound', async () => {
  const { window } = setUp({ sizeMax: 2 })
  window.push(1)
  await window.next()
  expect(window.isFull).toBe(false)
  window.push(2)
  expect(window.isFull).toBe(true)
  await window.next()
  expect(window.isFull).toBe(false)
})

test('an item that is not for the consumer is acknowledged in its turn, not before those ahead of it', async () => {
  const { window, acknowledged } = setUp({ isHanded: (item) => item > 0 })
  for (const item of [1, -2, -3, 4]) window.push(item)
  expect(await window.next()).toBe(1)
  expect(acknowledged).toEqual([])
  expect(await window.next()).toBe(4)
  expect(acknowledged).toEqual([1, -2, -3])
  const asked = window.next()
  window.push(-5)
  expect(acknowledged).toEqual([1, -2, -3, 4, -5])
  window.push(6)
  expect(await asked).toBe(6)
})

test('closing answers a waiting consumer with the end, and every later one', async () => {
  const { window, acknowledged } = setUp()
  const asked = window.next()
  expect(window.close()).toEqual([])
  expect(await asked).toBeUndefined()
  expect(await window.next()).toBeUndefined()
  expect(acknowledged).toEqual([])
})

test('closing answers what waits, oldest first; what is in hand can still be acknowledged or taken back', async () => {
  const one = setUp()
  for (const item of [1, 2, 3]) one.window.push(item)
  await one.window.next()
  expect(one.window.close()).toEqual([2, 3])
  expect(one.window.size).toBe(1)
  expect(await one.window.next()).toBeUndefined()
  expect(one.acknowledged).toEqual([1])

  const other = setUp()
  other.window.push(1)
  await other.window.next()
  other.window.close()
  expect(other.window.takeBack()).toBe(1)
  expect(other.window.takeBack()).toBeUndefined()
  expect(await other.window.next()).toBeUndefined()
  expect(other.acknowledged).toEqual([])
})

test('what comes after the end is neither handed out nor acknowledged, and the next closing answers it', async () => {
  const { window, acknowledged } = setUp({ isHanded: (item) => item > 0 })
  window.close()
  window.push(-1)
  window.push(2)
  expect(await window.next()).toBeUndefined()
  expect(acknowledged).toEqual([])
  expect(window.close()).toEqual([-1, 2])
})

test('two questions at once are refused, since the first would never be answered', () => {
  const { window } = setUp()
  void window.next()
  expect(() => window.next()).toThrow('one page at a time')
})

test('whatever happens, acknowledged plus given back is what was pushed, in order, each once', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant('push' as const) }, { weight: 3, arbitrary: fc.constant('ask' as const) },
    { weight: 1, arbitrary: fc.constant('close' as const) }, { weight: 1, arbitrary: fc.constant('leave' as const) },
  )
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(3), async (steps, oneIn) => {
    const { window, acknowledged } = setUp({ isHanded: (item) => item % 4 > oneIn })
    const back: number[] = []
    let pushed = 0
    let asked: Promise<void> | undefined
    const ask = async (): Promise<void> => {
      const item = await window.next()
      asked = undefined
      if (item !== undefined) expect(item % 4).toBeGreaterThan(oneIn)
    }
    for (const step of steps) {
      if (step === 'push') window.push(pushed++)
      else if (step === 'ask') asked ??= ask()
      else if (step === 'close') back.push(...window.close())
      else if (step === 'leave') {
        const item = window.takeBack()
        if (item !== undefined) back.push(item)
      }
      await Promise.resolve()
      expect(acknowledged).toEqual([...acknowledged].sort((a, b) => a - b))
    }
    const inHand = window.takeBack()
    if (inHand !== undefined) back.push(inHand)
    back.push(...window.close())
    await asked
    expect([...acknowledged, ...back].sort((a, b) => a - b)).toEqual(Array.from({ length: pushed }, (_, i) => i))
  }), { numRuns: 300 })
})

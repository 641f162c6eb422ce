import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { DiskSpace, neededBytes } from '../../engine/flow/disk-space.ts'
import { TestClock, turn } from '../support/test-clock.ts'

const GB = 1024 ** 3

async function setUp({ freeBytes = GB, totalBytes = 1024 * GB, storeBytesMax = Number.POSITIVE_INFINITY } = {}) {
  const clock = new TestClock()
  const now = { freeBytes, totalBytes, storeBytes: 0, isUnknown: false, rooms: 0, looks: 0 }
  const disk = new DiskSpace({
    clock, storeBytesMax,
    look: () => {
      now.looks += 1
      return now.isUnknown ? Promise.reject(new Error('ENOSYS')) : Promise.resolve(now)
    },
    storeBytes: () => now.storeBytes,
    onRoom: () => { now.rooms += 1 },
  })
  await disk.start()
  const look = async (): Promise<void> => {
    clock.advance(limits.diskLookMs)
    await turn()
  }
  return { clock, disk, now, look }
}

test('a crawl pauses when less is free than it may need, and goes on only when half as much again is', async () => {
  const { disk, now, look } = await setUp()
  const seen: unknown[] = []
  for (const freeBytes of [limits.diskFreeBytesMin, limits.diskFreeBytesMin - 1, 1.5 * limits.diskFreeBytesMin - 1, 1.5 * limits.diskFreeBytesMin, limits.diskFreeBytesMin]) {
    now.freeBytes = freeBytes
    await look()
    seen.push(disk.shortOf)
  }
  expect(seen).toEqual([undefined, 'disk', 'disk', undefined, undefined])
  expect(now.rooms).toBe(1 + 3)
})

test('of a small file system a share must be free, or no crawl would ever begin on it', async () => {
  const { disk, now, look } = await setUp({ totalBytes: 1024 ** 2 * 24, freeBytes: 1024 ** 2 * 2 })
  expect([disk.shortOf, neededBytes(now.totalBytes)]).toEqual([undefined, 1024 ** 2 * 24 * limits.diskFreeShareMin])
  now.freeBytes = 1024 ** 2
  await look()
  expect(disk.shortOf).toBe('disk')
})

test('what found no room is told to try again once a look, where the free bytes do not say why', async () => {
  const { disk, now, look } = await setUp()
  for (const isUnknown of [false, true]) {
    now.isUnknown = isUnknown
    disk.noteFull()
    expect(disk.shortOf).toBe('disk')
    const { rooms } = now
    await look()
    expect([disk.shortOf, now.rooms - rooms]).toEqual([undefined, 1])
  }
})

test('a store at its bound pauses the crawl with a word of its own, until it is smaller', async () => {
  const { disk, now, look } = await setUp({ storeBytesMax: 1_000 })
  const seen: unknown[] = []
  for (const storeBytes of [999, 1_000, 999]) {
    now.storeBytes = storeBytes
    await look()
    seen.push(disk.shortOf)
  }
  expect(seen).toEqual([undefined, 'store_full', undefined])
})

test('nobody looks any more after a stop, not even a look that was under way', async () => {
  const { clock, disk, now } = await setUp()
  clock.advance(limits.diskLookMs)
  disk.stop()
  await turn()
  expect([clock.timersCount, now.looks, now.rooms]).toEqual([0, 2, 1])
})

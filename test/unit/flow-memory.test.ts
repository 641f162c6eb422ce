import { describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { ceilingsOf, ConnectionCeiling } from '../../engine/flow/connection-ceiling.ts'
import { filesOpenMax, memoryAllowedBytes, memoryHeldBytes, type ReadSystemFile } from '../../engine/flow/machine.ts'
import { memoryBudgetOf } from '../../engine/flow/memory-budget.ts'
import { MemoryGuard } from '../../engine/flow/memory-guard.ts'
import { slotsBytes } from '../../threads/arena.ts'

const [KB, MB, GB] = [1_024, 1_048_576, 1_073_741_824]

const machine = (files: Readonly<Record<string, string>>): ReadSystemFile => (path) => files[path]

describe('what the machine allows', () => {
  it('is the least bound of the control group and of those above it (version 2)', () => {
    const read = machine({
      '/proc/self/cgroup': '0::/pod/box\n', '/sys/fs/cgroup/pod/box/memory.max': 'max\n', '/sys/fs/cgroup/pod/memory.max': `${512 * MB}\n`,
      '/sys/fs/cgroup/memory.max': `${4 * GB}\n`,
    })
    expect(memoryAllowedBytes(read, 8 * GB)).toBe(512 * MB)
  })

  it('is that of the group for memory alone (version 1), whose huge number means none', () => {
    const cgroup = '9:name=systemd:/x\n4:memory:/box\n1:cpu,cpuacct:/other\n0::/\n'
    const bounded = machine({ '/proc/self/cgroup': cgroup, '/sys/fs/cgroup/memory/box/memory.limit_in_bytes': `${GB}\n`, '/sys/fs/cgroup/memory/other/memory.limit_in_bytes': '1\n' })
    expect(memoryAllowedBytes(bounded, 8 * GB)).toBe(GB)
    const free = machine({ '/proc/self/cgroup': cgroup, '/sys/fs/cgroup/memory/box/memory.limit_in_bytes': '9223372036854771712\n' })
    expect(memoryAllowedBytes(free, 8 * GB)).toBe(8 * GB)
  })

  it('is found inside a container that is told the path of its host', () => {
    const read = machine({ '/proc/self/cgroup': '0::/docker/0123/..\n', '/sys/fs/cgroup/memory.max': `${256 * MB}` })
    expect(memoryAllowedBytes(read, 8 * GB)).toBe(256 * MB)
  })

  it('is the memory of the machine where there are no groups, and whatever they say in odd words', () => {
    expect(memoryAllowedBytes(machine({}), 8 * GB)).toBe(8 * GB)
    const odd = machine({ '/proc/self/cgroup': 'x\n0::relative\n0::/a\n', '/sys/fs/cgroup/a/memory.max': '-1', '/sys/fs/cgroup/memory.max': '0' })
    expect(memoryAllowedBytes(odd, 8 * GB)).toBe(8 * GB)
  })

  it('is held against anonymous and shared memory, and not against the mapped store', () => {
    const status = 'VmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t  790 kB\nRssShmem:\t   10 kB\n'
    expect(memoryHeldBytes(machine({ '/proc/self/status': status }))).toBe(110 * KB)
    expect(memoryHeldBytes(machine({}))).toBeGreaterThan(10 * MB)
    expect(memoryHeldBytes()).toBeGreaterThan(10 * MB)
  })

  it('is so many open files as the soft limit says', () => {
    const limitsOf = (text: string): ReadSystemFile => machine({ '/proc/self/limits': `Limit   Soft Limit   Hard Limit   Units\nMax open files            ${text}                524288               files\n` })
    expect(filesOpenMax(limitsOf('1024'))).toBe(1_024)
    expect(filesOpenMax(limitsOf('unlimited'))).toBe(Infinity)
    expect(filesOpenMax(machine({}))).toBe(8_192)
  })
})

const options = { maxBodyBytes: 250 * KB, memoryBytes: 0, threads: 2 }

describe('the budget of memory', () => {
  it('leaves each stage its own bound when there is plenty', () => {
    const { slots, bodyBytes, commitBytes, windowBytes, workerHeapMb } = memoryBudgetOf(options, 16 * GB)
    expect({ bodyBytes, commitBytes, windowBytes, workerHeapMb }).toEqual({
      bodyBytes: limits.bodyBytesInFlightMax, commitBytes: limits.commitBytesMax, windowBytes: limits.windowBytesMax, workerHeapMb: limits.workerHeapMb,
    })
    expect(slotsBytes(250 * KB, slots)).toBeGreaterThan(63 * MB)
  })

  it('is 60% of what the machine has unless it is given, and never under its least', () => {
    expect(memoryBudgetOf(options, 10 * GB).bytes).toBe(6 * GB)
    expect(memoryBudgetOf({ ...options, memoryBytes: 300 * MB }, 10 * GB).bytes).toBe(300 * MB)
    expect(memoryBudgetOf(options, 50 * MB).bytes).toBe(64 * MB)
    expect(memoryBudgetOf({ ...options, memoryBytes: Infinity }, GB)).toEqual({ ...memoryBudgetOf(options, 100 * GB), bytes: Infinity, socketsMax: Infinity })
  })

  it.each([64, 128, 256, 400])('of %d MB is more than what the bounds of the stages come to', (mb) => {
    const { bytes, slots, bodyBytes, commitBytes, windowBytes } = memoryBudgetOf({ ...options, memoryBytes: mb * MB })
    expect(slotsBytes(250 * KB, slots) + bodyBytes + 3 * commitBytes + windowBytes).toBeLessThanOrEqual(bytes * 12 / 32)
  })

  it('that cannot hold a few bodies is refused, with what would do', () => {
    const least = /expected at least (\d+)MB for a --max-body of 32MB, given 256MB$/
    const large = { ...options, maxBodyBytes: 32 * MB }
    let message = ''
    try {
      memoryBudgetOf({ ...large, memoryBytes: 256 * MB })
    } catch (error) {
      message = (error as Error).message
      expect(error).toMatchObject({ code: 'bad_option' })
    }
    expect(message).toMatch(least)
    const budget = memoryBudgetOf({ ...large, memoryBytes: Number(least.exec(message)![1]) * MB })
    expect(budget.slots).toBe(limits.slotsMin)
    expect(budget.bodyBytes).toBeGreaterThanOrEqual(32 * MB)
  })
})

it('the guard shuts above nine tenths and opens below 85 %, not between', () => {
  let heldBytes = 0
  const guard = new MemoryGuard(1_000, () => heldBytes)
  const after = [100, 900, 901, 950, 870, 850, 849, 870, 900, 2_000, 849].map((bytes) => {
    heldBytes = bytes
    guard.look()
    return guard.isShut
  })
  expect(after).toEqual([false, false, true, true, true, true, false, false, false, true, false])
  const free = new MemoryGuard(Infinity, () => 1e15)
  free.look()
  expect(free.isShut).toBe(false)
})

it('has the heap collected when it shuts, and now and then while it is shut: what was needed once would be held for good', () => {
  let [heldBytes, collected] = [0, 0]
  const guard = new MemoryGuard(1_000, () => heldBytes, () => { collected += 1 })
  const lookTimes = (times: number): number => {
    for (let i = 0; i < times; i++) guard.look()
    return collected
  }
  expect(lookTimes(100)).toBe(0)
  heldBytes = 950
  expect(lookTimes(1)).toBe(1)
  expect(lookTimes(19)).toBe(1)
  expect(lookTimes(81)).toBe(6)
  heldBytes = 100
  expect(lookTimes(100)).toBe(6)
  heldBytes = 950
  expect(lookTimes(1)).toBe(7)
})

describe('the ceiling of connections', () => {
  const facts = { connections: 0, filesMax: 20_000, socketsMax: 1e6, workers: 2 }

  it('is what files, memory and the operator allow, whichever is least', () => {
    expect(ceilingsOf(facts)).toEqual({ connections: 19_624, socketsIdle: 256 })
    expect(ceilingsOf({ ...facts, socketsMax: 500 }).connections).toBe(500)
    expect(ceilingsOf({ ...facts, connections: 7 }).connections).toBe(7)
    expect(ceilingsOf({ ...facts, filesMax: Infinity, socketsMax: Infinity }).connections).toBe(100_000)
  })

  it('leaves files for the rest of the process, and for idle connections fewer of few', () => {
    for (const filesMax of [1_024, 512, 256]) {
      const { connections, socketsIdle } = ceilingsOf({ ...facts, filesMax })
      expect(connections + socketsIdle).toBe(filesMax - 96 - 24)
      expect(socketsIdle).toBeLessThan(connections)
    }
    expect(ceilingsOf({ ...facts, filesMax: 50 }).connections).toBeGreaterThan(0)
  })

  it('falls once under what was under way when files ran out, whoever had them, waits, and rises again slowly', () => {
    const ceiling = new ConnectionCeiling(1_000)
    for (let at = 0; at < 50; at += 1) ceiling.refused(800 - at, 5_000)
    expect([ceiling.limit, ceiling.waitUntilMs]).toEqual([700, 5_250])
    ceiling.rise(14_000)
    expect(ceiling.limit).toBe(700)
    const rises = [15_000, 16_000, 30_000, 45_000, 60_000, 75_000].map((nowMs) => {
      ceiling.rise(nowMs)
      return ceiling.limit
    })
    expect(rises).toEqual([787, 787, 885, 996, 1_000, 1_000])
    ceiling.refused(0, 90_000)
    expect(ceiling.limit).toBe(1)
  })
})

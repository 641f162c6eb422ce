import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { DuePump } from '../../engine/due-pump.ts'
import type { AgainUrl } from '../../storage/store.ts'
import { TestClock, turn } from '../support/test-clock.ts'

/** A store that knows due times only, and a commit loop that stores when the test says so. */
class Rig {
  readonly clock = new TestClock({ wallMs: 1_000_000 })
  readonly moved: string[][] = []
  readonly commits = {
    isFull: false,
    again: (urls: readonly AgainUrl[]): Promise<boolean[]> => new Promise((resolve, reject) => {
      this.moved.push(urls.map(({ host }) => host))
      this.#stored = (isStored) => (isStored ? resolve(urls.map(() => true)) : reject(new Error('disk')))
    }),
  }

  #due: { readonly atMs: number; readonly host: string }[]
  #stored: ((isStored: boolean) => void) | undefined
  readonly pump: DuePump

  constructor(due: readonly { readonly atMs: number; readonly host: string }[]) {
    this.#due = [...due].sort((a, b) => a.atMs - b.atMs)
    this.pump = new DuePump({
      clock: this.clock,
      commits: this.commits,
      store: {
        nextDueAtMs: () => this.#due[0]?.atMs,
        due: (nowMs: number, limit: number) => this.#due.filter(({ atMs }) => atMs <= nowMs).slice(0, limit).map(({ host }) => ({ host, fingerprint: new Uint8Array(16) })),
      },
    } as never)
  }

  async store(isStored = true): Promise<void> {
    if (isStored) this.#due = this.#due.filter(({ host }) => !this.moved.at(-1)!.includes(host))
    this.pump.changed()
    this.#stored!(isStored)
    await turn()
  }
}

test('what is due is moved with the longest due first, and what is not stays', () => {
  const rig = new Rig([{ atMs: 999_999, host: 'b' }, { atMs: 1_000_000, host: 'c' }, { atMs: 10, host: 'a' }, { atMs: 1_000_001, host: 'later' }])
  rig.pump.pump()
  expect(rig.moved).toEqual([['a', 'b', 'c']])
})

test('one bounded batch is moved at a time, however much is due', async () => {
  const count = 2 * limits.dueUrlsPerCommitMax + 1
  const rig = new Rig(Array.from({ length: count }, (_, index) => ({ atMs: index, host: String(index) })))
  for (let times = 0; times < 3; times += 1) rig.pump.pump()
  expect(rig.moved.map(({ length }) => length)).toEqual([limits.dueUrlsPerCommitMax])
  for (let times = 0; times < 3; times += 1) {
    await rig.store()
    rig.pump.pump()
  }
  expect(rig.moved.map(({ length }) => length)).toEqual([limits.dueUrlsPerCommitMax, limits.dueUrlsPerCommitMax, 1])
  expect(rig.moved.flat()).toEqual(Array.from({ length: count }, (_, index) => String(index)))
  expect(rig.pump.waitMs).toBeUndefined()
})

test('nothing is moved while outcomes wait to be stored', () => {
  const rig = new Rig([{ atMs: 0, host: 'a' }])
  rig.commits.isFull = true
  rig.pump.pump()
  expect(rig.moved).toEqual([])
  rig.commits.isFull = false
  rig.pump.pump()
  expect(rig.moved).toEqual([['a']])
})

test('a look is due when the next page is, but at least each minute, because the time of day may jump', () => {
  const rig = new Rig([{ atMs: 1_000_000 + 3_600_000, host: 'a' }])
  expect([rig.pump.waitMs, rig.pump.lookInMs]).toEqual([3_600_000, limits.dueLookMsMax])
  rig.clock.jumpWall(3_599_000)
  expect([rig.pump.waitMs, rig.pump.lookInMs]).toEqual([1_000, 1_000])
  rig.clock.jumpWall(3_600_000)
  // Now it can be moved: no wait makes it more so.
  expect([rig.pump.waitMs, rig.pump.lookInMs]).toEqual([0, Infinity])
  expect(new Rig([]).pump.lookInMs).toBe(Infinity)
})

test('a batch that could not be stored is no unhandled rejection, and may be tried again', async () => {
  const rig = new Rig([{ atMs: 0, host: 'a' }])
  rig.pump.pump()
  await rig.store(false)
  rig.pump.pump()
  expect(rig.moved).toEqual([['a'], ['a']])
})

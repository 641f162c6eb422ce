/**
 * Chance that can be repeated. A test that fails prints its seed; `SEED=<n>` in the environment runs it again.
 */
import type { Random } from '../../engine/core/clock.ts'

/** Numbers in [0, 1), the same for the same seed (mulberry32: 32 bits of state, period 2^32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number in [0, below). */
export function integer(random: Random, below: number): number {
  return Math.floor(random() * below)
}

/** One of the items; each is as likely as the others. */
export function pick<T>(random: Random, items: readonly T[]): T {
  return items[integer(random, items.length)]!
}

/** Runs the body once for each of so many seeds, or once with SEED. The seed of a failure is printed and in its message. */
export async function withSeeds(count: number, body: (random: Random, seed: number) => void | Promise<void>): Promise<void> {
  const given = process.env['SEED']
  const first = given === undefined ? integer(Math.random, 2 ** 31) : Number(given)
  for (let seed = first; seed < first + (given === undefined ? count : 1); seed++) {
    try {
      await body(seededRandom(seed), seed)
    } catch (error) {
      console.error(`failed with SEED=${seed}`)
      if (error instanceof Error) error.message = `SEED=${seed}: ${error.message}`
      throw error
    }
  }
}

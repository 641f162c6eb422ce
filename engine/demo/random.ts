/**
 * Numbers that look random and are a pure function of their inputs: the demonstration web stores nothing, so every
 * choice it makes must come out the same in each process that asks. Leaf module, any thread.
 */

/** A hash of three integers to 32 bits: the finaliser of MurmurHash3 over each in turn. */
export function mix(a: number, b: number, c = 0): number {
  let hash = 0x9e3779b9
  for (let turn = 0; turn < 3; turn++) {
    hash ^= turn === 0 ? a : turn === 1 ? b : c
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    hash ^= hash >>> 16
  }
  return hash >>> 0
}

/** The same hash as a share, from 0 to below 1. */
export function share(a: number, b: number, c = 0): number {
  return mix(a, b, c) / 2 ** 32
}

/** A stream of numbers from 0 to below 1 (mulberry32, by Tommy Ettinger, public domain). */
export type Dice = () => number

export function dice(seed: number): Dice {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

/** An integer from 0 to below `limit`. */
export function below(roll: Dice, limit: number): number {
  return Math.floor(roll() * limit)
}

export function pick<T>(roll: Dice, choices: readonly T[]): T {
  return choices[below(roll, choices.length)]!
}

/** A standard normal number from two shares (Box and Muller). */
export function normal(first: number, second: number): number {
  return Math.sqrt(-2 * Math.log(1 - first)) * Math.cos(2 * Math.PI * second)
}

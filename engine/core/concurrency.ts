/** How many requests at once, as it is written: `START:FLOOR:CEILING`, or an object of the three. Leaf module; pure. */

export interface Concurrency { readonly start: number; readonly floor: number; readonly ceiling: number }

/** 1 <= floor <= start <= ceiling <= 10,000; undefined when it is not so. */
export function readConcurrency(given: unknown): Concurrency | undefined {
  const parts = typeof given === 'string'
    ? given.split(':').map((part) => (/^\d{1,15}$/.test(part) ? Number(part) : Number.NaN))
    : Object.values({ start: 0, floor: 0, ceiling: 0, ...(given as object) })
  const [start, floor, ceiling] = parts as [number, number, number]
  const fits = parts.length === 3 && parts.every((part) => Number.isInteger(part))
    && floor >= 1 && floor <= start && start <= ceiling && ceiling <= 10_000
  return fits ? Object.freeze({ start, floor, ceiling }) : undefined
}

/**
 * How long something took, as counts by size: 22 numbers, however many times it happened. Pure state. Main thread.
 *
 *     0.1   0.2   0.5   1   2   5   ...   500,000 ms   more
 *      [     |     |    |   |   |          |         ]       one count each: at most this bound and more than the one before
 */

/** Upper bounds in milliseconds: the steps 1, 2, 5 over seven decades, from 0.1 ms to 500 s. So a quantile is off by less than a factor of 2.5. */
export const histogramBoundsMs: readonly number[] = Array.from({ length: 21 }, (_, index) => ([1, 2, 5][index % 3]! * 10 ** Math.floor(index / 3)) / 10)

export class Histogram {
  readonly #counts = new Float64Array(histogramBoundsMs.length + 1)
  #sumMs = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  get sumMs(): number {
    return this.#sumMs
  }

  /** By bound, and at the end those above the last. */
  get counts(): ArrayLike<number> {
    return this.#counts
  }

  /** `durationMs`: below 0 is taken as 0. */
  observe(durationMs: number): void {
    const takenMs = durationMs > 0 ? durationMs : 0
    let index = 0
    while (index < histogramBoundsMs.length && takenMs > histogramBoundsMs[index]!) index += 1
    this.#counts[index]! += 1
    this.#sumMs += takenMs
    this.#count += 1
  }

  /** A duration that this share (0 to 1) did not exceed: the upper bound of its bucket; 0 when nothing was observed. */
  quantileMs(share: number): number {
    if (this.#count === 0) return 0
    let left = Math.max(1, Math.ceil(share * this.#count))
    const index = this.#counts.findIndex((count) => (left -= count) <= 0)
    return histogramBoundsMs[Math.min(index, histogramBoundsMs.length - 1)]!
  }
}

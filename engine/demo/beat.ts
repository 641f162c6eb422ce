/**
 * How late an event may have been noticed: a process that is kept from its processor sees what came meanwhile afterwards,
 * all at once. A timer beats; the time since the beat before the last one, beyond two beats, is what was missed. Main
 * thread of the web's process; keeps no process alive.
 */
const beatMs = 20

export class Beat {
  #lastMs = performance.now()
  /** After a stall the timer comes before what the stall held up, so one beat back is not enough. */
  #beforeMs = this.#lastMs
  readonly #timer = setInterval(() => {
    this.#beforeMs = this.#lastMs
    this.#lastMs = performance.now()
  }, beatMs).unref()

  /** The longest time that an event which is noticed now may have waited, in milliseconds; 0 when all is well. */
  get lateMsMax(): number {
    return Math.max(0, performance.now() - this.#beforeMs - 2 * beatMs)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

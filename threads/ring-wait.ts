/**
 * How the main thread learns that a slot became done: Atomics.waitAsync on the count that workers raise. Invariants: at
 * most one wait is open; when nobody wants it any more it is ended, by a notification from here, since such a wait can
 * neither be cancelled nor keeps the process alive (a running Piscina task does that). Main thread.
 */
interface AsyncWait {
  readonly async: boolean
  readonly value: Promise<string> | string
}

// The typings lack it; Node has it since 16.
const { waitAsync } = Atomics as unknown as { waitAsync(words: Int32Array, index: number, value: number): AsyncWait }

export class RingWait {
  readonly #words: Int32Array
  readonly #index: number
  readonly #onChange: () => void
  #isOpen = false
  #isWanted = false

  constructor(words: Int32Array, index: number, onChange: () => void) {
    this.#words = words
    this.#index = index
    this.#onChange = onChange
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Calls back at every change from now on, until `stop`. */
  start(): void {
    this.#isWanted = true
    if (!this.#isOpen) this.#wait()
  }

  stop(): void {
    this.#isWanted = false
    // Ends this thread's own wait; workers do not wait on this word.
    if (this.#isOpen) Atomics.notify(this.#words, this.#index)
  }

  #wait(): void {
    // Reads the count that workers raise after they made a slot done: what was done before is seen by the next collect.
    const seen = Atomics.load(this.#words, this.#index)
    const wait = waitAsync(this.#words, this.#index, seen)
    this.#isOpen = true
    void this.#goOn(wait.value)
  }

  async #goOn(changed: Promise<string> | string): Promise<void> {
    await changed
    this.#isOpen = false
    if (!this.#isWanted) return
    this.#wait()
    this.#onChange()
  }
}

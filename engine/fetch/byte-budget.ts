/**
 * The bytes that bodies in flight may hold together. A body's bytes are reserved whole after its headers and before
 * it is read, so a response that is being read never waits, and nobody waits while holding: no deadlock. First come,
 * first served: a large body is not overtaken for ever by small ones. Main thread.
 *
 *   0 ........ reserved ........ capacity         waiting: [ bytes | bytes | bytes ]  the first is served next
 */
import { invariant } from '../core/errors.ts'

/** Gives the bytes back; more than once is as once. */
export type Release = () => void

interface Waiter {
  readonly bytes: number
  readonly settle: (release: Release | undefined) => void
}

export class ByteBudget {
  readonly capacityBytes: number
  #reservedBytes = 0
  readonly #waiting = new Set<Waiter>()

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes
  }

  /** Bytes reserved now. */
  get reservedBytes(): number {
    return this.#reservedBytes
  }

  /** Bodies that wait for bytes now; above zero, the budget is what holds the fetches. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Reserves at once, or answers undefined when the bytes are not free or others wait for theirs. */
  tryReserve(bytes: number): Release | undefined {
    invariant(bytes <= this.capacityBytes, 'a body fits into the byte budget')
    if (this.#waiting.size > 0 || bytes > this.capacityBytes - this.#reservedBytes) return undefined
    return this.#grant(bytes)
  }

  /** Reserves in turn. Resolves with undefined when the signal ends the wait first. */
  async reserve(bytes: number, signal: AbortSignal): Promise<Release | undefined> {
    const release = this.tryReserve(bytes)
    if (release !== undefined || signal.aborted) return release
    return await new Promise((resolve) => {
      const giveUp = (): void => {
        this.#waiting.delete(waiter)
        resolve(undefined)
        // The one behind may need less than the one that left.
        this.#serve()
      }
      const waiter: Waiter = {
        bytes,
        settle(granted) {
          signal.removeEventListener('abort', giveUp)
          resolve(granted)
        },
      }
      this.#waiting.add(waiter)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  #grant(bytes: number): Release {
    this.#reservedBytes += bytes
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#reservedBytes -= bytes
      this.#serve()
    }
  }

  #serve(): void {
    for (const waiter of this.#waiting) {
      if (waiter.bytes > this.capacityBytes - this.#reservedBytes) return
      this.#waiting.delete(waiter)
      waiter.settle(this.#grant(waiter.bytes))
    }
  }
}

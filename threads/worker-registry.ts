/**
 * The pool's workers from their start to their exit, which Piscina does not tell: it forgets a worker as soon as it
 * decides to end it, while the thread may still run and write. Main thread. Invariant: after `departed()` no thread runs
 * that is not among the pool's.
 */
import type { Worker } from 'node:worker_threads'

/** What a thread has done with its time since it began. */
export interface LoopTimes {
  readonly busyMs: number
  readonly idleMs: number
}

export class WorkerRegistry {
  readonly #exits = new Map<Worker, Promise<void>>()
  readonly #threads: () => readonly Worker[]
  readonly #onExit: () => void
  #lastUtilization = new WeakMap<Worker, ReturnType<Worker['performance']['eventLoopUtilization']>>()

  /** `threads`: the pool's present workers. */
  constructor(threads: () => readonly Worker[], onExit: () => void) {
    this.#threads = threads
    this.#onExit = onExit
  }

  /** Notes the workers that are new; to be called whenever there may be some, and before they get a task. */
  track(): void {
    for (const worker of this.#threads()) {
      if (this.#exits.has(worker)) continue
      this.#exits.set(worker, new Promise((resolve) => {
        worker.once('exit', () => {
          this.#exits.delete(worker)
          resolve()
          this.#onExit()
        })
      }))
    }
  }

  /** Resolves when every worker that the pool gave up has exited. */
  async departed(): Promise<void> {
    const present = new Set(this.#threads())
    await Promise.all([...this.#exits].filter(([worker]) => !present.has(worker)).map(([, exit]) => exit))
  }

  /** Of each worker's loop, in the order of the pool; a worker that took the place of a dead one begins at zero. */
  loops(): readonly LoopTimes[] {
    return this.#threads().map((worker) => {
      const { active, idle } = worker.performance.eventLoopUtilization()
      return { busyMs: active, idleMs: idle }
    })
  }

  /** Mean share of time in which the workers were busy since the last call, from 0 to 1. */
  utilization(): number {
    const workers = this.#threads()
    let sum = 0
    for (const worker of workers) {
      const last = this.#lastUtilization.get(worker)
      const now = worker.performance.eventLoopUtilization()
      sum += last === undefined ? now.utilization : worker.performance.eventLoopUtilization(now, last).utilization
      this.#lastUtilization.set(worker, now)
    }
    return workers.length === 0 ? 0 : sum / workers.length
  }
}

/**
 * The share of their time in which loops were busy between two looks, from what each has counted since it began. Every
 * reader has one of its own, so that none shortens the time that another looks at. Main thread.
 */
import type { LoopTimes } from '../../threads/worker-registry.ts'

/** The main loop's own count. */
export function mainLoopTimes(): LoopTimes {
  const { active, idle } = performance.eventLoopUtilization()
  return { busyMs: active, idleMs: idle }
}

export class LoopShares {
  #last: readonly LoopTimes[] = []

  /** One share from 0 to 1 for each loop, in thousandths. A loop whose count fell is another one: it is looked at from its start. */
  read(loops: readonly LoopTimes[]): readonly number[] {
    const last = this.#last
    this.#last = loops
    return loops.map((now, index) => {
      const before = last[index]
      const isSame = before !== undefined && before.busyMs <= now.busyMs && before.idleMs <= now.idleMs
      const [busyMs, idleMs] = isSame ? [now.busyMs - before.busyMs, now.idleMs - before.idleMs] : [now.busyMs, now.idleMs]
      return busyMs + idleMs <= 0 ? 0 : Math.round(busyMs / (busyMs + idleMs) * 1_000) / 1_000
    })
  }
}

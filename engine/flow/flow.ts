/**
 * What bounds a whole crawl, from its options and from what the machine allows: the budget of memory, the bounds of the
 * queues, the ceilings. Made before the stages, which take their sizes from it; the gate is made after them, since it
 * asks them. It only wires. Main thread.
 */
import type { Clock } from '../core/clock.ts'
import type { CrawlOptions } from '../core/options.ts'
import { ceilingsOf, ConnectionCeiling } from './connection-ceiling.ts'
import { FlowBounds } from './flow-bounds.ts'
import { Gate, type GateOptions } from './gate.ts'
import { collectGarbage, filesOpenMax, memoryHeldBytes } from './machine.ts'
import { memoryBudgetOf, workersOf, type MemoryBudget } from './memory-budget.ts'
import { MemoryGuard } from './memory-guard.ts'
import { RateLimit } from './rate-limit.ts'

export interface Flow {
  readonly memory: MemoryBudget
  readonly workers: number
  readonly bounds: FlowBounds
  readonly rates: RateLimit
  readonly ceiling: ConnectionCeiling
  readonly socketsIdleMax: number
  /** No file is left for another connection, with so many fetches under way. */
  readonly onNoFiles: (inFlight: number) => void
  /** The gate over these stages; started. */
  openGate(stages: Pick<GateOptions, 'commits' | 'fetcher' | 'onRoom' | 'pool'>): Gate
}

/** @throws SluiceError `bad_option`: the memory cannot hold a few bodies of the size that is allowed */
export function openFlow(options: CrawlOptions, clock: Clock): Flow {
  const memory = memoryBudgetOf(options)
  const workers = workersOf(options.threads)
  const bounds = new FlowBounds(memory, workers)
  const rates = new RateLimit(options, () => clock.nowMs())
  const { connections, socketsIdle } = ceilingsOf({ connections: options.connections, filesMax: filesOpenMax(), socketsMax: memory.socketsMax, workers })
  const ceiling = new ConnectionCeiling(connections)
  return {
    memory, workers, bounds, rates, ceiling, socketsIdleMax: socketsIdle,
    onNoFiles: (inFlight) => ceiling.refused(inFlight, clock.nowMs()),
    openGate(stages) {
      const guard = new MemoryGuard(memory.bytes, memoryHeldBytes, collectGarbage)
      const gate = new Gate({ ...stages, clock, memory, bounds, guard, ceiling, rates, utilization: utilizationMeter() })
      gate.start()
      return gate
    },
  }
}

/** Utilisation of this thread's event loop since the last call. */
function utilizationMeter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

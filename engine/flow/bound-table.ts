/** Every bound of the engine with its fill, and where it comes from: the table of `stats()` and `status`. Reads, never writes. */
import type { Bound } from '../core/api-types.ts'
import { limits } from '../core/limits.ts'
import type { AdaptiveBound } from './adaptive-bound.ts'
import type { Gate } from './gate.ts'

export interface BoundTableSource {
  readonly gate: Pick<Gate, 'bounds' | 'connectionsMax' | 'governor' | 'heldBytes' | 'memory'>
  readonly inFlight: number
  readonly received: number
  readonly slotsUsed: number
  readonly window: { readonly size: number; readonly bytes: number } | undefined
  readonly commits: { readonly queued: number; readonly queuedBytes: number }
  readonly sockets: { readonly bodyBytesReserved: number; readonly bodiesWaiting: number; readonly socketsIdle: number; readonly socketsIdleMax: number }
  readonly hosts: number
}

export function boundTable({ gate, inFlight, received, slotsUsed, window, commits, sockets, hosts }: BoundTableSource): readonly Bound[] {
  const { bounds, connectionsMax, governor, heldBytes, memory } = gate
  const ofMemory = 'the budget of memory'
  return [
    // No bound is none: the table travels as JSON, which has no infinity.
    ...(memory.bytes === Number.POSITIVE_INFINITY ? [] : [bytes('memory', heldBytes, memory.bytes, '--memory, or 60% of what the machine or the container has')]),
    { name: 'connections', unit: 'items', used: inFlight, limit: governor.limit, max: connectionsMax, derivedFrom: 'how busy the event loop is; at most --connections, open files and memory' },
    bytes('bodyBytesInFlight', sockets.bodyBytesReserved, memory.bodyBytes, ofMemory),
    // One that waits for a slot shuts the gate; those under way come on top.
    { name: 'pagesReceived', unit: 'items', used: received, limit: 1, max: connectionsMax, derivedFrom: 'the first one waits for a slot; with those under way, the bytes of bodies in flight' },
    following(bounds.slots, slotsUsed),
    following(bounds.window, window?.size ?? 0),
    bytes('windowBytes', window?.bytes ?? 0, memory.windowBytes, ofMemory),
    // Results wait in their slots when it is full; what was under way then may still end without one.
    { ...following(bounds.commitUrls, commits.queued), max: bounds.commitUrls.is.max + connectionsMax },
    bytes('commitQueueBytes', commits.queuedBytes, 2 * memory.commitBytes, ofMemory),
    items('hostsActive', hosts, limits.hostsActiveMax, 'a constant'),
    items('socketsIdle', sockets.socketsIdle, sockets.socketsIdleMax, 'a constant, less with few open files'),
  ]
}

function items(name: string, used: number, max: number, derivedFrom: string): Bound {
  return { name, unit: 'items', used, limit: max, max, derivedFrom }
}

function bytes(name: string, used: number, max: number, derivedFrom: string): Bound {
  return { name, unit: 'bytes', used, limit: max, max, derivedFrom }
}

function following({ is: { name, unit, max, reason }, limit }: AdaptiveBound, used: number): Bound {
  return { name, unit, used, limit, max, derivedFrom: `rate x delay: ${reason}` }
}

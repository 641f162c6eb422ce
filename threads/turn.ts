/**
 * A turn at the ring: a worker takes pages until none is filled or its time is up, and returns, so that the pool sees
 * its workers and can give one another task. Runs in a parse worker. Invariants: one page in hand at a time, finished
 * before the next is taken (ring.ts, claim 1, rests on it); and the turn ends with a page whose result does not fit
 * into its slot, because the result travels in the turn's return value and the pages after it must not overtake it.
 */
import { SluiceError } from '../engine/core/errors.ts'
import type { ParsedResult } from '../engine/core/types.ts'
import { control, type Arena, type SlotPage } from './arena.ts'
import { encodeFrame, frameBytes } from './frame.ts'
import { finish, take } from './ring.ts'
import type { StageClock } from './stage-times.ts'

export interface TurnTask {
  readonly owner: number
  readonly turnMs: number
}

export type TurnResult =
  | { readonly kind: 'over' }
  /** The result of the turn's last page, which is done. */
  | { readonly kind: 'overflow'; readonly slot: number; readonly frame: Uint8Array }
  /** The page in hand is not done: its WARC record could not be written, or found no room. */
  | { readonly kind: 'disk_failed' | 'disk_full'; readonly message: string }

/** What a turn costs the main thread (about 50 microseconds) is spread over so long at least, though others wait. */
const TURN_MS_MIN = 20

export interface TurnTools {
  parse(page: SlotPage): Promise<ParsedResult>
  nowMs(): number
  readonly stages?: StageClock | undefined
}

/** Whether the turn has lasted long enough, the shorter when another task waits for a worker. */
function isOver(arena: Arena, ageMs: number, turnMs: number): boolean {
  if (ageMs >= turnMs) return true
  // Reads the count of waiting tasks that the main thread published.
  return ageMs >= TURN_MS_MIN && Atomics.load(arena.control, control.tasksWaiting) > 0
}

export async function takeTurn(arena: Arena, { owner, turnMs }: TurnTask, tools: TurnTools): Promise<TurnResult> {
  const startMs = tools.nowMs()
  let takenMs = startMs
  for (;;) {
    const taken = take(arena.words, owner)
    if (taken === undefined) return { kind: 'over' }
    tools.stages?.begin()
    let result: ParsedResult
    try {
      const page = arena.readPage(taken.slot)
      tools.stages?.taken(page.meta.fetchedAtMs)
      result = await tools.parse(page)
    } catch (error) {
      if (error instanceof SluiceError && (error.code === 'disk_failed' || error.code === 'disk_full')) return { kind: error.code, message: error.message }
      throw error
    }
    const bytes = frameBytes(result)
    const room = arena.resultRoom(taken.slot)
    const overflow = bytes > room.byteLength
    const target = overflow ? new Uint8Array(bytes) : room
    encodeFrame(result, target)
    arena.sealResult(taken.slot, bytes, { overflow, warc: result.warc })
    tools.stages?.mark('encode')
    tools.stages?.end(result.bodyBytes)
    const doneMs = tools.nowMs()
    arena.sealTimes(taken.slot, doneMs - takenMs, performance.timeOrigin + doneMs)
    // A slot that was taken away belongs to another by now: this worker was declared dead.
    if (!finish(arena.words, taken, owner)) return { kind: 'over' }
    // Tells the main thread, which waits on this word, that a slot became done.
    Atomics.add(arena.control, control.doneCount, 1)
    Atomics.notify(arena.control, control.doneCount)
    if (overflow) return { kind: 'overflow', slot: taken.slot, frame: target }
    if (isOver(arena, doneMs - startMs, turnMs)) return { kind: 'over' }
    takenMs = doneMs
  }
}

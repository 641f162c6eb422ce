/**
 * A time-out that is not our own fault. Timers of a blocked event loop fire late, and before anything is read that came
 * meanwhile: an answer may lie in the socket when its deadline fires. Pure but for the clock; main thread.
 *
 *   due ....... fires late (the loop was blocked) ....... as long again ... one turn: sockets are read ... believed
 */
import type { Clock } from '../core/clock.ts'

/** A loop that works at full speed is late too, by as much as its longest task. */
const LATE_MS = 50

/**
 * Calls back once `delayMs` have passed, by which the loop was late at the end has passed once more, and whatever lay in
 * the sockets was read. It is told how much it was late. Answers a function that cancels it.
 */
export function afterPatiently(clock: Clock, delayMs: number, callback: (lateMs: number) => void): () => void {
  const dueAtMs = clock.nowMs() + delayMs
  let cancel = clock.after(delayMs, () => {
    const lateMs = clock.nowMs() - dueAtMs
    // No more than the time-out itself: a loop that is late for ever ends a fetch all the same.
    const excusedMs = lateMs > LATE_MS ? Math.min(lateMs, delayMs) : 0
    const believe = (): void => { cancel = clock.nextTurn(() => callback(excusedMs)) }
    if (excusedMs > 0) cancel = clock.after(excusedMs, believe)
    else believe()
  })
  return () => cancel()
}

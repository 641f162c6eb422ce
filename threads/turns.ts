/**
 * The turns that are being taken: which owner number each has, when another is started, what ends it. Main thread.
 * Invariants: at most `threads` turns; an owner number is free again only when its turn returned or its worker's thread
 * has exited, so that no half-dead worker shares its number with a living one; and whenever a slot is filled, a turn is
 * running or being started, because the ring is looked at after each fill and at each turn's end.
 */
import type { Clock } from '../engine/core/clock.ts'
import { ownersMax, type Arena } from './arena.ts'
import { LateWatch, type Watched } from './late-watch.ts'
import { slotState, type PageRing } from './ring.ts'
import type { ParseFailure } from './slots.ts'
import type { TurnResult, TurnTask } from './turn.ts'

export interface EndedTurn {
  readonly owner: number
  readonly end:
    | { readonly kind: 'returned'; readonly result: TurnResult }
    /** Its worker died, or could not be made ready for it. */
    | { readonly kind: 'lost'; readonly code: ParseFailure }
}

export interface TurnsParts {
  readonly arena: Arena
  readonly ring: PageRing
  readonly clock: Clock
  readonly threads: number
  readonly turnMs: number
  readonly deadlineMs: number
  run(task: TurnTask, signal: AbortSignal): Promise<TurnResult>
  /** Resolves when no thread runs that the pool gave up. */
  departed(): Promise<void>
  onEnd(turn: EndedTurn): void
}

interface Turn {
  readonly owner: number
  readonly serial: number
  readonly aborter: AbortController
  cause?: ParseFailure
}

function codeOf(error: unknown): ParseFailure {
  return (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'parse_out_of_memory' : 'parse_crashed'
}

export class Turns {
  readonly #parts: TurnsParts
  readonly #watch: LateWatch
  readonly #turns = new Map<number, Turn>()
  readonly #ended = new Set<Promise<void>>()
  readonly #owners = Array.from({ length: ownersMax - 1 }, (_, index) => index + 1)
  #serial = 0
  #isStopped = false
  #isPaused = false

  constructor(parts: TurnsParts) {
    this.#parts = parts
    this.#watch = new LateWatch({
      clock: parts.clock, deadlineMs: parts.deadlineMs,
      look: () => this.#watched(), onLate: ({ owner }) => this.abort(owner, 'parse_timeout'),
    })
  }

  get count(): number {
    return this.#turns.size
  }

  /** Starts turns for the filled slots that no running turn is about to look for. */
  start(): void {
    if (this.#isStopped || this.#isPaused || this.#turns.size >= this.#parts.threads) return
    const { filled, taken } = this.#parts.ring.counts()
    let wanted = Math.min(filled - Math.max(0, this.#turns.size - taken), this.#parts.threads - this.#turns.size)
    for (; wanted > 0; wanted -= 1) {
      const owner = this.#owners.shift()
      if (owner === undefined) return
      const turn: Turn = { owner, serial: this.#serial += 1, aborter: new AbortController() }
      this.#turns.set(owner, turn)
      const ended = this.#take(turn)
      this.#ended.add(ended)
      void ended.finally(() => this.#ended.delete(ended))
    }
    this.#watch.start()
  }

  /** Ends a turn by ending its worker. */
  abort(owner: number, cause: ParseFailure): void {
    const turn = this.#turns.get(owner)
    if (turn === undefined || turn.cause !== undefined) return
    turn.cause = cause
    turn.aborter.abort()
  }

  /** Ends the turns that have no page in hand: they wait for workers that do not come. */
  abortIdle(cause: ParseFailure): void {
    const busy = new Set(this.#parts.ring.scan(slotState.taken).map(({ owner }) => owner))
    for (const owner of this.#turns.keys()) if (!busy.has(owner)) this.abort(owner, cause)
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Starts no more until `resume`; those running go on. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.start()
  }

  /** Starts no more; those running go on. */
  stop(): void {
    this.#isStopped = true
    this.#watch.stop()
  }

  /** Resolves when all turns have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#ended)
  }

  async #take(turn: Turn): Promise<void> {
    const { arena, departed, onEnd, run, turnMs } = this.#parts
    // Tells whoever looks at a dead worker's files that this owner has begun none; the worker names its file itself.
    Atomics.store(arena.warcFiles, turn.owner, 0)
    let end: EndedTurn['end']
    try {
      end = { kind: 'returned', result: await run({ owner: turn.owner, turnMs }, turn.aborter.signal) }
    } catch (error) {
      // A thread that was told to end may still write into its slot: nothing is touched before it has exited.
      await departed()
      end = { kind: 'lost', code: turn.cause ?? codeOf(error) }
    }
    this.#turns.delete(turn.owner)
    onEnd({ owner: turn.owner, end })
    this.#owners.push(turn.owner)
    this.start()
    if (this.#turns.size === 0) this.#watch.stop()
  }

  #watched(): readonly Watched[] {
    const { deadlineMs, ring, turnMs } = this.#parts
    const pages = ring.scan(slotState.taken)
      .map(({ owner, position }): Watched => ({ key: `page ${position} of ${owner}`, owner, limitMs: deadlineMs }))
    // A turn that is older than this waits for a worker that never comes, or is stuck before its first page.
    const turns = [...this.#turns.values()]
      .map(({ owner, serial }): Watched => ({ key: `turn ${serial}`, owner, limitMs: turnMs + 2 * deadlineMs }))
    return [...pages, ...turns]
  }
}

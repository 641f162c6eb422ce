/**
 * One run of a crawl: its limits, what it has used of them, and why it ends. A place, not a mover. Main thread.
 *
 * Invariant: pages stored in the run and URLs under way that may become pages are together at most `pagesMax`; so the
 * limit is never exceeded, whatever the URLs turn out to be.
 */
import { setMaxListeners } from 'node:events'
import { sluiceErrorOf, type SluiceError } from './core/errors.ts'
import type { RunLimits } from './core/options.ts'
import type { QueuedUrl } from './core/types.ts'
import type { AckWindow } from './flow/ack-window.ts'

export type EndReason = 'complete' | 'limit' | 'stopped' | 'failed'

export class Run<T> {
  readonly limits: RunLimits
  readonly startedAtMs: number
  readonly window: AckWindow<T> | undefined
  /** Aborts the fetches that are under way. */
  readonly aborter = new AbortController()
  /** Resolves when every stage is empty after the end was decided, or what lies in slots is given up. */
  readonly drained: Promise<void>
  /** How far a stop is: slots are emptied by the workers, and after a while by withdrawing what no worker has taken. */
  stop: 'none' | 'draining' | 'withdrawing' = 'none'
  /** The one conclusion of the run, whoever asked for it first. */
  concluding: Promise<void> | undefined
  #resolveDrained: () => void = () => {}
  #pagesReserved = 0
  pagesStored = 0
  fetches = 0
  wireBytes = 0
  #reason: EndReason | undefined
  error: SluiceError | undefined

  constructor(options: { limits: RunLimits; startedAtMs: number; window: AckWindow<T> | undefined }) {
    this.limits = options.limits
    this.startedAtMs = options.startedAtMs
    // Every fetch of the run listens; Node warns of an eleventh listener.
    setMaxListeners(0, this.aborter.signal)
    this.window = options.window
    this.drained = new Promise((resolve) => { this.#resolveDrained = resolve })
  }

  /** Why the run ends; undefined while it goes on. */
  get reason(): EndReason | undefined {
    return this.#reason
  }

  /** Another URL could become a page without passing a limit. */
  get hasRoom(): boolean {
    return this.#pagesReserved < this.limits.maxPages && this.wireBytes < this.limits.maxBytes
  }

  /** A sitemap never becomes a page, and may be read for minutes. */
  reserve({ kind }: Pick<QueuedUrl, 'kind'>): void {
    if (kind === undefined) this.#pagesReserved += 1
    this.fetches += 1
  }

  /** A URL that was reserved did not become a page. */
  giveBack({ kind }: Pick<QueuedUrl, 'kind'>): void {
    if (kind === undefined) this.#pagesReserved -= 1
  }

  /** Decides the end; the first reason stays. */
  end(reason: EndReason, error?: unknown): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    if (error !== undefined) this.error = sluiceErrorOf(error)
    if (reason === 'stopped' || reason === 'failed') this.abort()
  }

  /** Nothing more is fetched, and what the consumer does not have in hand goes back. */
  abort(): void {
    this.aborter.abort()
  }

  drain(): void {
    this.#resolveDrained()
  }
}

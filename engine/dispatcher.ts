/**
 * Begins fetches, as long as nothing forbids it, and knows what does and until when. The gate (flow/gate.ts) speaks for our
 * own stages, the scheduler for the hosts, and each keeps to its own: here they are asked one after the other, the last
 * stage first. Main thread.
 *
 *     paused? -> gate -> network away? -> suspects? -> shedding -> scheduler's next URL -> FetchStage.begin
 *
 * Invariant: whatever stops the dispatch has a name, and a moment at which it is asked again unless an event tells.
 */
import type { BlockedOn } from './core/api-types.ts'
import type { CrawlParts } from './crawl-parts.ts'
import type { FetchStage } from './fetch-stage.ts'
import type { PressureMeter } from './flow/pressure.ts'
import type { Settled } from './parse-stage.ts'
import type { Run } from './run.ts'
import { Shedding } from './shedding.ts'

export interface DispatcherOptions {
  readonly parts: CrawlParts
  readonly fetches: FetchStage
  readonly meter: PressureMeter
  /** Nothing is under way, in a slot or waiting for one. */
  readonly isDrained: () => boolean
  /** There is more to dispatch in the next turn of the event loop. */
  readonly wake: () => void
}

export class Dispatcher {
  readonly #is: DispatcherOptions
  readonly #parts: CrawlParts
  readonly shedding: Shedding
  isPaused = false
  /** When the next probe of the network may begin, and the suspect that is waited for (monotonic). */
  #probeAtMs: number | undefined
  #suspectAtMs = Number.POSITIVE_INFINITY

  constructor(options: DispatcherOptions) {
    this.#is = options
    this.#parts = options.parts
    this.shedding = new Shedding(options.parts)
  }

  dispatch(run: Run<Settled>): void {
    const { clock, network, scheduler, events } = this.#parts
    if (scheduler.refill()) this.#is.wake()
    let blockedOn = this.#bound(run)
    if (network.isDown && blockedOn !== 'paused') blockedOn = this.#probeNetwork(run, blockedOn)
    if (blockedOn === 'nothing' && !this.#parts.suspects.isEmpty) blockedOn = this.#dispatchSuspect(run)
    while (blockedOn === 'nothing') {
      const candidate = this.shedding.next()
      if (candidate === undefined) {
        blockedOn = this.#starvedOf(run)
        break
      }
      this.#is.fetches.begin(run, candidate)
      blockedOn = this.#bound(run)
    }
    this.shedding.note(blockedOn)
    if (this.#is.meter.blocked.found(blockedOn, clock.nowMs())) events.pressure(blockedOn)
  }

  /** While the network is down one request at a time goes out, to see whether it is back. */
  #probeNetwork(run: Run<Settled>, blockedOn: BlockedOn): BlockedOn {
    const { gate, network, scheduler } = this.#parts
    while (blockedOn === 'nothing' && network.wantsProbe) {
      const candidate = scheduler.candidate()
      if (candidate !== undefined) this.#is.fetches.begin(run, candidate)
      blockedOn = candidate === undefined ? this.#starvedOf(run) : this.#bound(run)
    }
    const openAtMs = blockedOn === 'politeness' || blockedOn === 'gateway' ? scheduler.nextAtMs() : gate.opensAtMs(blockedOn)
    this.#probeAtMs = network.wantsProbe ? openAtMs : network.probeAtMs
    return 'network_down'
  }

  /** Pages that may have ended the process are read alone: one begins when nothing else is under way and all is stored. */
  #dispatchSuspect(run: Run<Settled>): BlockedOn {
    const { clock, commits, options, scheduler, suspects } = this.#parts
    while (this.#is.isDrained() && commits.isIdle) {
      const step = suspects.next(scheduler, { nowMs: clock.nowMs(), delayMs: options.delayMs })
      if (step.kind === 'none') return 'nothing'
      if (step.kind === 'wait') {
        this.#suspectAtMs = step.atMs
        return 'suspects'
      }
      if (step.kind === 'read') this.#is.fetches.begin(run, step.candidate)
      else this.#is.fetches.setAside(step.candidate)
    }
    this.#suspectAtMs = Number.POSITIVE_INFINITY
    return 'suspects'
  }

  /** What forbids another fetch. */
  #bound(run: Run<Settled>): BlockedOn {
    if (this.isPaused) return 'paused'
    return this.#parts.gate.blockedOn({ run, shortOf: this.shortage, inFlight: this.#is.fetches.inFlight, received: this.#is.fetches.received.length })
  }

  /** There is no room for what a fetch would have written. */
  get shortage(): 'disk' | 'store_full' | undefined {
    return this.isStuck ? 'disk' : this.#parts.disk.shortOf
  }

  /** Something could not be written for want of room, and waits for some. */
  get isStuck(): boolean {
    const { commits, pool } = this.#parts
    return commits.isStuck || pool.isStuck
  }

  /** Why there is no URL to start, although there would be room. */
  #starvedOf(run: Run<Settled>): BlockedOn {
    if (!this.#parts.scheduler.isEmpty) return this.#parts.gateways?.areWaitedFor === true ? 'gateway' : 'politeness'
    // Links enter the frontier when their page is acknowledged: the consumer may hold all that is left to find.
    return this.#is.isDrained() && (run.window?.size ?? 0) > 0 ? 'consumer' : 'idle'
  }

  /** When to ask again (monotonic); undefined when an event tells, or nothing does. */
  get againAtMs(): number | undefined {
    const { gate, scheduler } = this.#parts
    if (this.isPaused) return undefined
    const { on } = this.#is.meter.blocked
    if (on === 'politeness' || on === 'gateway') return scheduler.nextAtMs()
    if (on === 'network_down') return this.#probeAtMs
    return on === 'suspects' ? this.#suspectAtMs : gate.opensAtMs(on)
  }
}

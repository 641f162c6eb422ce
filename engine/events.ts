/**
 * What happened, for whoever listens: the crawler's own events and, under the same names, diagnostics channels
 * (`sluice:page`, `sluice:failed`, `sluice:pressure`), which see every crawler of the process; and `sluice:fetch`, for each
 * request that has ended, whatever became of it. Main thread.
 */
import diagnostics from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import type { BlockedOn, CrawlerEvents, StagePressure } from './core/api-types.ts'
import type { Clock } from './core/clock.ts'
import { limits } from './core/limits.ts'
import type { PageRecord, QueuedUrl } from './core/types.ts'
import type { FetchResult } from './fetch/fetcher.ts'

const pageChannel = diagnostics.channel('sluice:page')
const failedChannel = diagnostics.channel('sluice:failed')
const pressureChannel = diagnostics.channel('sluice:pressure')
const fetchChannel = diagnostics.channel('sluice:fetch')

/** For whoever watches requests: a retry is one more, and a page is one. `waitedMs`: since its host could have been asked. */
export function publishFetch(dir: string, { url, host }: QueuedUrl, { result, waitedMs }: { readonly result: FetchResult; readonly waitedMs: number }): void {
  if (!fetchChannel.hasSubscribers) return
  const { status, ip, gateway, timings } = result
  fetchChannel.publish({ dir, url, host, waitedMs, ...(status !== undefined && { status }), ...(!result.ok && { code: result.code }), ...(ip !== undefined && { ip }), ...(gateway !== undefined && { gateway }), timings })
}

export interface PressureReader {
  readonly blockedOn: BlockedOn
  stages(): readonly StagePressure[]
}

export class Events {
  readonly emitter = new EventEmitter<CrawlerEvents>()
  readonly #dir: string
  #pressure: PressureReader | undefined
  #cancelBeat: (() => void) | undefined

  /** `dir` tells the crawlers of one process apart in the channels. */
  constructor(dir: string) {
    this.#dir = dir
  }

  get areHeard(): boolean {
    return this.emitter.listenerCount('page') > 0 || pageChannel.hasSubscribers
  }

  page(record: PageRecord): void {
    this.emitter.emit('page', record)
    if (pageChannel.hasSubscribers) pageChannel.publish({ dir: this.#dir, page: record })
  }

  failed(record: PageRecord): void {
    this.emitter.emit('failed', record)
    if (failedChannel.hasSubscribers) failedChannel.publish({ dir: this.#dir, page: record })
  }

  pressure(blockedOn: BlockedOn): void {
    this.emitter.emit('pressure', blockedOn)
    this.#publishPressure(blockedOn)
  }

  /** Publishes pressure not only when it changes, but also once a second while somebody subscribes, until `stop`. */
  begin(clock: Clock, pressure: PressureReader): void {
    this.#pressure = pressure
    const beat = (): void => {
      this.#publishPressure(pressure.blockedOn)
      this.#cancelBeat = clock.after(limits.pressureBeatMs, beat)
    }
    this.#cancelBeat = clock.after(limits.pressureBeatMs, beat)
  }

  stop(): void {
    this.#cancelBeat?.()
  }

  #publishPressure(blockedOn: BlockedOn): void {
    if (pressureChannel.hasSubscribers) pressureChannel.publish({ dir: this.#dir, blockedOn, stages: this.#pressure?.stages() ?? [] })
  }
}

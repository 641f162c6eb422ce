/**
 * What happened, for whoever listens: the crawler's own events and, under the same names, diagnostics channels
 * (`sluice:page`, `sluice:failed`, `sluice:pressure`), which see every crawler of the process. Main thread.
 */
import diagnostics from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import type { BlockedOn, CrawlerEvents } from './core/api-types.ts'
import type { PageRecord } from './core/types.ts'

const pageChannel = diagnostics.channel('sluice:page')
const failedChannel = diagnostics.channel('sluice:failed')
const pressureChannel = diagnostics.channel('sluice:pressure')

export class Events {
  readonly emitter = new EventEmitter<CrawlerEvents>()
  readonly #dir: string

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
    if (pressureChannel.hasSubscribers) pressureChannel.publish({ dir: this.#dir, blockedOn })
  }
}

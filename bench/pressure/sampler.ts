/** Looks at a running crawl four times a second. It reads only; main thread of the run's process. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostTally } from '../../engine/demo/index.ts'
import type { Crawler, Stats } from '../../engine/index.ts'
import { memoryNow } from '../process-meter.ts'
import type { Sample } from './scenario.ts'

const everyMs = 250
const noTally: HostTally = { requests: 0, refused: 0, inFlight: 0, inFlightPeak: 0 }

export interface Watched {
  readonly crawler: Crawler
  readonly concerned: ReadonlySet<string>
  /** Requests at once that are allowed to what the fault concerns. */
  readonly limit: (stats: Stats) => number
  readonly tally: () => Promise<HostTally | undefined>
}

export class Sampler {
  readonly samples: Sample[] = []
  readonly #watched: Watched
  readonly #beganAtMs = performance.now()
  readonly #ending = new AbortController()
  readonly #sampling: Promise<void>
  #pagesConcerned = 0
  #pagesOthers = 0
  /** The last that the server told: a server that is busy holds up no sample. */
  #tally = noTally
  #isAsking = false

  constructor(watched: Watched) {
    this.#watched = watched
    watched.crawler.on('page', ({ url, outcome }) => {
      if (outcome !== 'ok') return
      if (watched.concerned.has(new URL(url).hostname)) this.#pagesConcerned += 1
      else this.#pagesOthers += 1
    })
    this.#sampling = this.#sample()
  }

  get nowMs(): number {
    return performance.now() - this.#beganAtMs
  }

  async stop(): Promise<readonly Sample[]> {
    this.#ending.abort()
    await this.#sampling
    return this.samples
  }

  async #sample(): Promise<void> {
    const { crawler, limit } = this.#watched
    const { signal } = this.#ending
    for (let atMs = 0; !signal.aborted; atMs += everyMs) {
      void this.#ask()
      const stats = crawler.stats()
      this.samples.push({
        atMs: this.nowMs, pagesConcerned: this.#pagesConcerned, pagesOthers: this.#pagesOthers, blockedOn: stats.blockedOn, inFlight: stats.inFlight,
        limit: limit(stats), tally: this.#tally, fetches: stats.fetches, retries: stats.retries, ownBytes: memoryNow().ownBytes,
        bounds: Object.fromEntries(stats.bounds.map(({ name, used, max }) => [name, { used, max }])), ages: agesOf(stats),
      })
      await sleep(Math.max(0, atMs + everyMs - this.nowMs), undefined, { signal }).catch(() => undefined)
    }
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    this.#tally = await this.#watched.tally() ?? noTally
    this.#isAsking = false
  }
}

/** What is claimed and not started waits for its host by intention: its age says nothing of a queue. */
function agesOf({ pressure }: Stats): Record<string, number> {
  return Object.fromEntries(pressure.stages.filter(({ name }) => name !== 'claimed').map(({ name, oldestMs }) => [name, oldestMs]))
}

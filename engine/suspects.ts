/**
 * Pages that may have ended the process: those that a worker had in hand when it died. They are read alone, one at a
 * time, before other work goes on, since in company nobody can tell which one it was. Only a death while alone counts,
 * and a page that has two of them is set aside: it ends with the code `page_killed`, and is not fetched for that.
 *
 *     notes of the dead process --+                    +-- read alone, survived: no suspect any more
 *                                 +-> waiting -> alone-+-- its fetch failed, was put off or denied: the same
 *     suspects.json --------------+      |             +-- the process dies: one death more at the next opening
 *                                        +-- its host rests for longer than its delay: let go, its count is kept
 *
 * Let go means that it is fetched in its turn, in company: waiting out a Retry-After of an hour would hold up everything,
 * and a page that ends the process then is a suspect at the next opening, with its count. So each suspect leaves the
 * list, and is waited for no longer than the pace of its host asks. Those with most deaths come first: one that is set
 * aside is progress, which whoever starts the process again looks for. A page is told by its sequence, which is its own
 * until it has its outcome; one that is tried again later has another, and no deaths. Main thread.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Store } from '../storage/store.ts'
import { clearNotes, readNotes } from '../threads/in-hand.ts'
import { SluiceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { QueuedUrl } from './core/types.ts'
import { restUntilMs, type Host } from './schedule/host.ts'
import type { Candidate } from './schedule/host.ts'
import { readSuspects, writeSuspects, type KnownSuspect } from './suspect-file.ts'

export interface Suspect {
  readonly url: QueuedUrl
  readonly deaths: number
}

/** What is to be done next, when nothing is under way. */
export type SuspectStep =
  | { readonly kind: 'read' | 'set_aside'; readonly candidate: Candidate }
  /** Monotonic; infinite when a host is being looked up, whose arrival is told. */
  | { readonly kind: 'wait'; readonly atMs: number }
  | { readonly kind: 'none' }

/** What the scheduler does for suspects. */
export interface SuspectHosts {
  host(name: string): Host | undefined
  bringForward(url: QueuedUrl): Candidate | undefined
}

export interface Pace {
  readonly nowMs: number
  /** The least time between two starts that holds for every host. */
  readonly delayMs: number
}

export class Suspects {
  readonly #dir: string
  readonly #store: Pick<Store, 'queued'>
  /** Those of the file: waiting, alone, let go, and set aside without having left the queue. */
  readonly #known = new Map<number, Suspect>()
  #waiting: Suspect[]
  #alone: Suspect | undefined

  private constructor(dir: string, store: Pick<Store, 'queued'>, suspects: readonly Suspect[]) {
    this.#dir = dir
    this.#store = store
    this.#waiting = suspects.toSorted((a, b) => b.deaths - a.deaths)
    for (const suspect of suspects) this.#known.set(suspect.url.sequence, suspect)
  }

  /**
   * Reads who is suspect, and makes the file for the notes of this process's workers.
   *
   * @throws SluiceError `dir_unusable`
   */
  static open(crawlDir: string, store: Pick<Store, 'queued' | 'openedUnclean'>): Suspects {
    const dir = path.join(crawlDir, 'in-hand')
    const suspects = suspectsOf(readSuspects(fileOf(dir)), store.openedUnclean ? readNotes(notesOf(dir)) : [], store)
    const opened = new Suspects(dir, store, suspects)
    try {
      fs.mkdirSync(dir, { recursive: true })
      // First the suspects, then the notes that they were read from.
      opened.#save()
      clearNotes(notesOf(dir))
    } catch (cause) {
      throw new SluiceError('dir_unusable', `${dir} cannot be written: ${(cause as Error).message}`, { cause })
    }
    return opened
  }

  /** Where workers note the page in hand. */
  get notesFile(): string {
    return notesOf(this.#dir)
  }

  /** None waits, and none is being read. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#alone === undefined
  }

  /** Hosts of those that wait. */
  get hosts(): readonly string[] {
    return this.#waiting.map(({ url }) => url.host)
  }

  /** To be asked only when nothing is under way and all that ended is stored. */
  next(hosts: SuspectHosts, { nowMs, delayMs }: Pace): SuspectStep {
    this.#settleAlone(hosts)
    this.#waiting = this.#waiting.filter(({ url }) => !isLongResting(hosts.host(url.host), nowMs, delayMs))
    let [first, firstAtMs]: [Suspect | undefined, number] = [undefined, Number.POSITIVE_INFINITY]
    for (const suspect of this.#waiting) {
      const host = hosts.host(suspect.url.host)
      const atMs = host !== undefined && suspect.deaths >= limits.suspectDeathsMax ? nowMs : startAtMs(host, nowMs)
      if (first === undefined || atMs < firstAtMs) [first, firstAtMs] = [suspect, atMs]
    }
    if (first === undefined) return { kind: 'none' }
    if (firstAtMs > nowMs) return { kind: 'wait', atMs: firstAtMs }
    this.#waiting.splice(this.#waiting.indexOf(first), 1)
    const candidate = hosts.bringForward(first.url)
    if (candidate === undefined) return this.next(hosts, { nowMs, delayMs })
    if (first.deaths >= limits.suspectDeathsMax) return { kind: 'set_aside', candidate }
    this.#alone = first
    this.#save()
    return { kind: 'read', candidate }
  }

  /** Nobody is in hand any more, so the notes go. Pages that are still to be read alone stay known. */
  close(): void {
    for (const [sequence, { url }] of this.#known) if (this.#store.queued(url.row, url.sequence) === undefined) this.#known.delete(sequence)
    this.#alone = undefined
    this.#save()
    try {
      fs.rmSync(this.#known.size === 0 ? this.#dir : this.notesFile, { recursive: true, force: true })
    } catch {
      // Left behind, they say nothing: after a clean close nobody reads them.
    }
  }

  /** What was read alone is over: either it is back in its host's hands, or in the store's, or it did not end the process. */
  #settleAlone(hosts: SuspectHosts): void {
    const alone = this.#alone
    if (alone === undefined) return
    this.#alone = undefined
    const { row, sequence } = alone.url
    const host = hosts.host(alone.url.host)
    const isInHand = host?.claimed.some((url) => url.sequence === sequence) === true
    if (isInHand || (host?.leased?.has(sequence) !== true && this.#store.queued(row, sequence) !== undefined)) this.#waiting.unshift(alone)
    else this.#known.delete(sequence)
    this.#save()
  }

  #save(): void {
    const alone = this.#alone
    writeSuspects(fileOf(this.#dir), [...this.#known.values()].map((suspect) => ({
      row: Buffer.from(suspect.url.row).toString('hex'), sequence: suspect.url.sequence, url: suspect.url.url, deaths: suspect.deaths, isAlone: suspect === alone,
    })))
  }
}

function fileOf(dir: string): string {
  return path.join(dir, 'suspects.json')
}

function notesOf(dir: string): string {
  return path.join(dir, 'notes')
}

/** Those of the last process and of those before it that still are in the queue. */
function suspectsOf(known: readonly KnownSuspect[], notes: readonly { row: Uint8Array; sequence: number; url: string }[], store: Pick<Store, 'queued'>): Suspect[] {
  const noted = new Set(notes.map(({ sequence }) => sequence))
  const before = known.map(({ row, sequence, url, deaths, isAlone }) => ({
    row: Buffer.from(row, 'hex') as Uint8Array, sequence, url, deaths: deaths + (isAlone && noted.has(sequence) ? 1 : 0),
  }))
  const isKnown = new Set(known.map(({ sequence }) => sequence))
  const fresh = notes.filter(({ sequence }) => !isKnown.has(sequence)).map((note) => ({ ...note, deaths: 0 }))
  return [...before, ...fresh].slice(0, limits.suspectsMax).flatMap(({ row, sequence, url, deaths }) => {
    const found = store.queued(row, sequence)
    // The note of another crawl, copied here: its URL is not what lies there.
    return found?.url.startsWith(url) === true ? [{ url: found, deaths }] : []
  })
}

/** When the host lets a URL go; when it is not in memory it is being looked up. An ended host asks nobody. */
function startAtMs(host: Host | undefined, nowMs: number): number {
  if (host === undefined) return Number.POSITIVE_INFINITY
  return host.ended === undefined ? Math.max(nowMs, restUntilMs(host), host.unit.nextStartAtMs) : nowMs
}

function isLongResting(host: Host | undefined, nowMs: number, delayMs: number): boolean {
  if (host === undefined || host.ended !== undefined) return false
  return restUntilMs(host) - nowMs > Math.max(host.delayMs ?? delayMs, host.crawlDelayMs)
}

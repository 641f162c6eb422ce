/**
 * The engine's answers to what comes in through the control socket of its directory. Runs in the engine's process.
 */
import type { HostPressure, HostStats, RequeueFilter, RequeueResult, Stats } from '../core/api-types.ts'
import { SluiceError } from '../core/errors.ts'
import { hostNameOf } from '../core/host-name.ts'
import { wantedOf } from '../requeue.ts'
import { RequeueJob, type RequeueState } from './requeue-job.ts'

/** What is asked over the socket. */
export type ControlRequest =
  | { readonly cmd: 'status' }
  | { readonly cmd: 'host'; readonly name: string }
  | { readonly cmd: 'exclude'; readonly hosts: readonly string[] }
  /** Begins one; without a filter: how far the last one is. */
  | { readonly cmd: 'requeue'; readonly filter?: RequeueFilter }
  | { readonly cmd: 'pause' }
  | { readonly cmd: 'resume' }

export type ControlAnswer =
  | {
      readonly ok: true
      readonly pid: number
      readonly stats?: Stats
      readonly worstHosts?: readonly HostPressure[]
      readonly host?: HostStats | undefined
      readonly excluded?: readonly string[]
      readonly requeue?: RequeueState
    }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** As much of a Crawler as can be controlled from outside. */
export interface ControlledCrawler {
  stats(): Stats
  worstHosts(): readonly HostPressure[]
  host(name: string): HostStats | undefined
  exclude(names: readonly string[]): Promise<void>
  requeue(filter: RequeueFilter, onProgress: (soFar: RequeueResult) => void): Promise<RequeueResult>
  pause(): void
  resume(): void
}

/** Answers one request; what is wrong with it is an answer too. */
export async function handleControl(crawler: ControlledCrawler, request: unknown): Promise<ControlAnswer> {
  try {
    return { ok: true, pid: process.pid, ...await answer(crawler, request as Partial<ControlRequest> | null) }
  } catch (error) {
    return { ok: false, code: error instanceof SluiceError ? error.code : 'internal', message: (error as Error).message }
  }
}

async function answer(crawler: ControlledCrawler, request: Partial<ControlRequest> | null): Promise<object> {
  switch (request?.cmd) {
    case 'status': return { stats: crawler.stats(), worstHosts: crawler.worstHosts() }
    case 'host': return { host: crawler.host(hostNameOf((request as { name?: unknown }).name)) }
    case 'exclude': return { excluded: await excludeAll(crawler, (request as { hosts?: unknown }).hosts) }
    case 'requeue': return { requeue: await requeue(crawler, (request as { filter?: RequeueFilter }).filter) }
    case 'pause': return { stats: act(crawler, 'pause') }
    case 'resume': return { stats: act(crawler, 'resume') }
    default: throw new SluiceError('usage', 'expected a request with cmd status, host, exclude, requeue, pause or resume')
  }
}

function act(crawler: ControlledCrawler, what: 'pause' | 'resume'): Stats {
  crawler[what]()
  return crawler.stats()
}

async function excludeAll(crawler: ControlledCrawler, hosts: unknown): Promise<readonly string[]> {
  if (!Array.isArray(hosts) || hosts.length === 0) throw new SluiceError('usage', 'expected a list of hosts to exclude')
  // A list with a mistake in it changes nothing.
  const names = hosts.map(hostNameOf)
  await crawler.exclude(names)
  return names
}

/** The last requeue of each crawler. */
const jobs = new WeakMap<ControlledCrawler, RequeueJob>()

function requeue(crawler: ControlledCrawler, filter: RequeueFilter | undefined): Promise<RequeueState> {
  let job = jobs.get(crawler)
  if (filter !== undefined) {
    if (job?.isDone === false) throw new SluiceError('already_running', 'a requeue is under way; ask again when it is done')
    wantedOf(filter)
    jobs.set(crawler, job = new RequeueJob((onProgress) => crawler.requeue(filter, onProgress)))
  }
  if (job === undefined) throw new SluiceError('usage', 'expected a filter: there is no requeue to tell of')
  return job.state()
}

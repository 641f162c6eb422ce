/**
 * `sluice requeue`: ended URLs back to the queue. A running crawl is told, and followed until it is done; otherwise it is
 * done in the store. A crawl that ends meanwhile leaves the rest to the store: what is in the queue is passed over there.
 */
import type { RequeueFilter, RequeueResult } from '../core/api-types.ts'
import { SluiceError } from '../core/errors.ts'
import { requeueUrls, wantedOf, type Wanted } from '../requeue.ts'
import { forgiven } from '../schedule/host-memory.ts'
import { emptyBatch, type HostRecord } from '../../storage/store.ts'
import { writeOut } from './batch.ts'
import type { ControlRequest } from './control-handler.ts'
import { plural, shellPath } from './human.ts'
import { askRunning, changeStore, checkCrawl, checkHost } from './owner.ts'
import type { RequeueState } from './requeue-job.ts'

export interface RequeueCommand {
  readonly dir: string
  readonly json: boolean
  readonly filter: RequeueFilter
}

/** Resolves to the exit code. Throws `bad_option`, `usage`, `no_crawl`, and what opening the store throws. */
export async function runRequeue({ dir, json, filter }: RequeueCommand): Promise<number> {
  const wanted = wantedOf(filter)
  checkCrawl(dir)
  if (wanted.host !== undefined) await checkHost(dir, wanted.host)
  const running = await requeueRunning(dir, filter)
  const rest = running?.isDone === true ? undefined : await requeueStopped(dir, wanted)
  const result = { requeued: (running?.requeued ?? 0) + (rest?.requeued ?? 0), excluded: (rest ?? running)!.excluded }
  const next = rest !== undefined && result.requeued > 0 ? `to go on: sluice crawl --dir ${shellPath(dir)}\n` : ''
  await writeOut(json ? `${JSON.stringify(result)}\n` : `${textOf(result)}\n${next}`)
  return 0
}

function textOf({ requeued, excluded }: RequeueResult): string {
  return `requeued ${plural(requeued, 'URL')}${excluded === 0 ? '' : `, passed over ${plural(excluded, 'URL')} of excluded hosts`}`
}

/** How far the running crawl came; undefined when none was running. */
async function requeueRunning(dir: string, filter: RequeueFilter): Promise<RequeueState | undefined> {
  let state = await askFor(dir, { cmd: 'requeue', filter })
  for (let next = state; next?.isDone === false;) {
    next = await askFor(dir, { cmd: 'requeue' })
    state = next ?? state
  }
  return state
}

async function askFor(dir: string, request: ControlRequest): Promise<RequeueState | undefined> {
  try {
    return (await askRunning(dir, request))?.requeue
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'crawler_closed') return undefined
    throw error
  }
}

function requeueStopped(dir: string, wanted: Wanted): Promise<RequeueResult> {
  return changeStore(dir, (store) => {
    let revived: HostRecord[] = []
    return requeueUrls({
      store,
      revive: (host) => void ((host.givenUp ?? host.parked) !== undefined && revived.push(host)),
      again: async (again) => {
        const hosts = revived.map(({ name }) => forgiven(name))
        revived = []
        return (await store.commit({ ...emptyBatch, again, hosts })).again
      },
    }, wanted)
  })
}

/**
 * Ended URLs back to the queue, chosen by outcome, code or host: by the engine while it crawls, and by the command line
 * in the store of a crawl that is not running. All page rows are looked at, a part each turn of the event loop, so that
 * a crawl goes on beside it. Main thread.
 *
 * Invariant: what was put back is stored when it is counted, and each URL is put back once, though it may end again
 * meanwhile: its row then lies behind the cursor. So whoever was interrupted may ask again.
 */
import type { AgainUrl, HostRecord, PageRow, Store } from '../storage/store.ts'
import type { RequeueFilter, RequeueResult } from './core/api-types.ts'
import { failureTable, SluiceError } from './core/errors.ts'
import { hostNameOf } from './core/host-name.ts'
import { limits } from './core/limits.ts'
import { refusalReasons, stateOfOutcome } from './core/types.ts'
import { hostHashOf } from './core/url-key.ts'

/** A filter that was checked; absent parts take everything. */
export interface Wanted {
  readonly outcomes?: ReadonlySet<string>
  readonly codes?: ReadonlySet<string>
  readonly host?: string
}

export interface RequeueTarget {
  readonly store: Pick<Store, 'pageRows' | 'host'>
  /** URLs of the host come next: it is to be tried though it was given up. */
  readonly revive: (host: HostRecord) => void
  /** Answers which of the URLs are in the queue again. */
  readonly again: (urls: readonly AgainUrl[]) => Promise<readonly boolean[]>
}

const parts: readonly string[] = ['outcome', 'code', 'host', 'all'] satisfies readonly (keyof RequeueFilter)[]

/** Throws `bad_option` for what no URL could be, and for a filter that takes everything without saying so. */
export function wantedOf(given: RequeueFilter): Wanted {
  if (typeof given !== 'object' || given === null) throw new SluiceError('bad_option', `requeue: expected an object, given ${String(given)}`)
  // A filter with a misspelt part would take more than was meant.
  const unknown = Object.keys(given).find((name) => !parts.includes(name))
  if (unknown !== undefined) throw new SluiceError('bad_option', `requeue: unknown option ${JSON.stringify(unknown)}; known are ${parts.join(', ')}`)
  const outcomes = namesOf(given.outcome, Object.keys(stateOfOutcome), (name) => `--outcome: expected one of ${Object.keys(stateOfOutcome).join(', ')}, given ${name}`)
  const codes = namesOf(given.code, [...Object.keys(failureTable), ...refusalReasons], unknownCode)
  const host = given.host === undefined ? undefined : hostNameOf(given.host)
  if (given.all !== true && outcomes === undefined && codes === undefined && host === undefined) {
    throw new SluiceError('bad_option', 'requeue: expected --outcome, --code, --host, or --all for every URL that has ended')
  }
  return { ...(outcomes && { outcomes }), ...(codes && { codes }), ...(host !== undefined && { host }) }
}

function namesOf(given: unknown, known: readonly string[], refusal: (name: string) => string): ReadonlySet<string> | undefined {
  if (given === undefined) return undefined
  const names = (Array.isArray(given) ? given : [given]).flatMap((text) => String(text).split(',').map((name) => name.trim()))
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined || names.length === 0) throw new SluiceError('bad_option', refusal(JSON.stringify(unknown ?? '')))
  return new Set(names)
}

/** There are too many codes for a line. A status that is final is no failure, and so has none. */
function unknownCode(name: string): string {
  const hint = /^"http_\d/.test(name) ? '; answers that are not tried again have no code, only the outcome http_error' : '; the README lists them all'
  return `--code: expected a code such as timeout or http_503, given ${name}${hint}`
}

/** Puts back all that is wanted. Rejects with what the store does; what was counted until then stays in the queue. */
export async function requeueUrls(target: RequeueTarget, wanted: Wanted, onProgress?: (soFar: RequeueResult) => void): Promise<RequeueResult> {
  const sums = { requeued: 0, excluded: 0 }
  const hosts = new HostsInHand(target)
  const { host } = wanted
  sums.requeued += await unpark(target, wanted)
  // Pages of one host lie together, behind the hash of its name.
  let cursor = host === undefined ? undefined : hostHashOf(host)
  do {
    const part = target.store.pageRows(cursor, limits.requeueRowsPerTurnMax)
    const urls: AgainUrl[] = []
    for (const row of part.rows) {
      if (!isWanted(row, wanted)) continue
      if (hosts.isExcluded(row.host)) sums.excluded += 1
      else urls.push(row)
    }
    if (urls.length > 0) sums.requeued += (await target.again(urls)).filter(Boolean).length
    onProgress?.({ ...sums })
    cursor = isBehind(host, part.cursor) ? undefined : part.cursor
    // Others have their turn.
    await new Promise((resolve) => { setImmediate(resolve) })
  } while (cursor !== undefined)
  return sums
}

/** URLs of a parked host have not ended, and wait for somebody who names it. Answers how many they are. */
async function unpark({ again, revive, store }: RequeueTarget, { codes, host, outcomes }: Wanted): Promise<number> {
  const record = host === undefined || outcomes !== undefined ? undefined : store.host(host)
  if (record?.parked === undefined || record.excluded === true || codes?.has(record.parked.code) === false) return 0
  revive(record)
  await again([])
  return record.pending
}

function isWanted({ host, page }: { readonly host: string; readonly page: PageRow }, wanted: Wanted): boolean {
  return (wanted.host === undefined || host === wanted.host)
    && wanted.outcomes?.has(page.outcome) !== false
    && (wanted.codes === undefined || (page.code !== undefined && wanted.codes.has(page.code)))
}

/** The cursor has left the rows of the host. */
function isBehind(host: string | undefined, cursor: Uint8Array | undefined): boolean {
  if (host === undefined || cursor === undefined) return false
  return Buffer.compare(hostHashOf(host), cursor.subarray(0, 8)) !== 0
}

/** Rows of one host come one after the other, so that each host is read, and revived, once. */
class HostsInHand {
  readonly #target: RequeueTarget
  #name: string | undefined
  #isExcluded = false

  constructor(target: RequeueTarget) {
    this.#target = target
  }

  isExcluded(name: string): boolean {
    if (name === this.#name) return this.#isExcluded
    const record = this.#target.store.host(name)
    this.#name = name
    this.#isExcluded = record?.excluded === true
    if (record !== undefined && !this.#isExcluded) this.#target.revive(record)
    return this.#isExcluded
  }
}

/**
 * A crawl directory from outside: whoever runs a crawl in it is asked through its control socket; when nobody answers,
 * the store is read here, or changed under the lock, so that no crawl can start in the meantime.
 */
import { SluiceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { resolveCrawlOptions } from '../core/options.ts'
import { acquireDir, askOwner } from '../../storage/control.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { configureStore } from '../store-options.ts'
import { holdsStore } from './crawl-dir.ts'
import type { ControlAnswer, ControlRequest } from './control-handler.ts'

/** Throws `no_crawl` when the directory holds none, `dir_unusable` when nobody may look there; makes nothing. */
export function checkCrawl(dir: string): void {
  if (!holdsStore(dir)) throw new SluiceError('no_crawl', `there is no crawl in ${dir}`)
}

/** The owner's answer, or undefined when no crawl runs in the directory. Throws what the owner refused. */
export async function askRunning(dir: string, request: ControlRequest): Promise<Extract<ControlAnswer, { ok: true }> | undefined> {
  const answer = await askOwner(dir, request) as ControlAnswer | undefined
  if (answer === undefined || answer.ok) return answer
  throw new SluiceError(answer.code as SluiceError['code'], answer.message)
}

/** Throws `usage` for a host that the crawl never met, running or not: most likely its name is misspelt. */
export async function checkHost(dir: string, name: string): Promise<void> {
  const answer = await askRunning(dir, { cmd: 'host', name })
  const isMet = answer === undefined ? await readStore(dir, (store) => store.host(name) !== undefined) : answer.host !== undefined
  if (!isMet) throw neverMet(name)
}

export function neverMet(host: string): SluiceError {
  return new SluiceError('usage', `--host: expected a host of this crawl, given ${host}, which it never met`)
}

/** Throws `store_in_use` when a crawl runs in the directory; without waiting for its end, as the lock does. */
export async function refuseRunning(dir: string): Promise<void> {
  const answer = await askRunning(dir, { cmd: 'status' })
  if (answer !== undefined) throw new SluiceError('store_in_use', `${dir} is in use by process ${answer.pid}`)
}

/** Reads the store of a crawl, running or not; changes nothing. Throws as `openStore`. */
export async function readStore<T>(dir: string, read: (store: LmdbStore) => T | Promise<T>): Promise<T> {
  const store = await openStore(dir, { readOnly: true })
  try {
    return await read(store)
  } finally {
    await store.close()
  }
}

/** Does something in the directory of a crawl that is not running, under its lock. Throws `store_in_use` when one runs. */
export async function withLock<T>(dir: string, act: () => Promise<T>): Promise<T> {
  const lock = await acquireDir(dir, { waitMs: limits.lockWaitMs })
  try {
    return await act()
  } finally {
    await lock.close()
  }
}

/** Changes the store of a crawl that is not running, under its lock. Throws as `openStore`; `store_in_use` when one runs. */
export function changeStore<T>(dir: string, change: (store: LmdbStore) => Promise<T>): Promise<T> {
  return withLock(dir, () => openedForWriting(dir, change))
}

/** The same for whoever has the lock. Throws `no_crawl` too. */
export async function openedForWriting<T>(dir: string, change: (store: LmdbStore) => Promise<T>): Promise<T> {
  // A reader refuses what holds no crawl yet; whoever opens for writing makes one there.
  await readStore(dir, () => undefined)
  const store = await openStore(dir, { isVisit: true })
  try {
    await configureStore(store, resolveCrawlOptions({}, store.options()))
    return await change(store)
  } finally {
    await store.close()
  }
}

/**
 * What is done to a crawl directory under its lock, by a process of its own: a check of everything, and a compact store.
 */
import { registrableDomainOf } from '../core/domain.ts'
import { checkSinks, type SinksReport } from '../../storage/sinks/check.ts'
import { compactStore, type Compacted } from '../../storage/lmdb/compact.ts'
import type { CheckReport } from '../../storage/store.ts'
import { openedForWriting, readStore, withLock } from './owner.ts'

export interface CrawlCheck {
  readonly store: CheckReport
  readonly sinks: SinksReport
}

/**
 * Changes nothing but counts, and those only when the rows that they are made of are sound. Throws as `openStore`, and
 * `store_in_use`.
 */
export function checkCrawlDir(dir: string): Promise<CrawlCheck> {
  return withLock(dir, async () => {
    const { store, sinks } = await readStore(dir, async (store) => {
      store.setScope('any', registrableDomainOf)
      return { store: await store.check(), sinks: await checkSinks(dir, store.committedLengths()) }
    })
    if (store.mended.length === 0) return { store, sinks }
    if (store.problems.length > 0) return { store: { ...store, mended: [], problems: [...store.problems, ...store.mended.map((line) => `not mended: ${line}`)] }, sinks }
    return { store: await openedForWriting(dir, (opened) => opened.check()), sinks }
  })
}

/** Throws as `openStore`, `store_in_use` and `disk_failed`. */
export function compactCrawl(dir: string): Promise<Compacted> {
  return withLock(dir, () => compactStore(dir))
}

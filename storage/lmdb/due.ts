/** Ended URLs by the moment at which they fall due to be fetched again. Main thread; reads only. */
import { SluiceError } from '../../engine/core/errors.ts'
import { hostOfUrl } from '../../engine/core/fetch-url.ts'
import type { AgainUrl } from '../store.ts'
import { decodePageRow } from './codec.ts'
import type { Tables } from './environment.ts'
import { dueAtMsOf, fingerprintOfSeen, seenKeyOfDue } from './layout.ts'

/** Those that are due at `nowMs`, the longest due first. Throws `store_corrupt`. */
export function dueUrls(tables: Pick<Tables, 'due' | 'pages'>, nowMs: number, limit: number): readonly AgainUrl[] {
  const urls: AgainUrl[] = []
  for (const key of tables.due.keys({ limit })) {
    if (dueAtMsOf(key) > nowMs) break
    const seen = new Uint8Array(seenKeyOfDue(key))
    const page = tables.pages.get(seen)
    if (page === undefined) throw new SluiceError('store_corrupt', 'a page that is due has no row')
    urls.push({ host: hostOfUrl(decodePageRow(page).url), fingerprint: fingerprintOfSeen(seen) })
  }
  return urls
}

export function nextDueAtMs({ due }: Pick<Tables, 'due'>): number | undefined {
  const [key] = due.keys({ limit: 1 })
  return key === undefined ? undefined : dueAtMsOf(key)
}

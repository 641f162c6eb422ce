/**
 * Whether a redirect may lead back to a URL that its own chain went through. Every other URL that was seen is followed no
 * further: its page is read already, or on its way. Pure; main thread, as the plan of a commit has it.
 *
 * A chain's id is its first URL, its length the count of its URLs; `limits.redirectsMax` of them at most. Twice the page is
 * behind the way back, and a browser would show it:
 *
 *   another spelling   `/a` to `/b` to `/a/`, or at once to `/a/`, where the crawl takes `/a` and `/a/` for one: that URL has
 *                      given a redirect under one address, and a page may lie under the other. An address that is in the
 *                      chain is never asked for again, so this ends.
 *   after a cookie     `/a` to `/login` to `/a`, and now with the cookie that it wanted. Once in a chain, whose mark is that
 *                      a URL stands in it twice.
 */
import type { PageRow } from '../store.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'

/** The chain of whatever a URL leads to. */
export function chainOf({ redirectedFrom = [], url }: QueuedUrl): readonly string[] {
  return [...redirectedFrom, url]
}

/** `from`: the URL that redirects. `page`: the row of the URL that has been seen. `url`: the address that is to be asked for. */
export function mayReturn(from: QueuedUrl, page: Pick<PageRow, 'url' | 'outcome'>, url: string): boolean {
  const chain = chainOf(from)
  if (!chain.includes(page.url)) return false
  if (page.outcome === 'redirect' && !chain.includes(url)) return true
  return from.hasCookie === true && new Set(chain).size === chain.length
}

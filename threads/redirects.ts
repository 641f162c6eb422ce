/**
 * Where a page leads by its Refresh header or its refresh element (by its Location: engine/core/redirects.ts). Pure; runs
 * in a parse worker and touches nothing. Invariant: what is answered is an address to be judged like any other, by the
 * collector's rules here and by the commit's there; nothing is followed on the way.
 *
 * A refresh within `limits.refreshHopSecondsMax` is a hop: the page is read and kept, and the target enters as that of a
 * redirect does, at the page's depth and with its chain; it is no link, so `nofollow` does not speak of it. A slower one
 * is a link. The header is read before the document, as browsers do it ("shared declarative refresh steps" of the HTML
 * standard), so it goes before the element, of which the first counts. Behind `limits.redirectsMax` hops a refresh is a
 * link again: chains end, and no page is lost.
 */
import { limits } from '../engine/core/limits.ts'
import { targetOf, type Target } from '../engine/core/redirects.ts'
import { noLinks, pageLinkElements, refusalReasons, type LinkElement, type LinkList, type PageMeta, type RefusalReason } from '../engine/core/types.ts'
import type { SlotPage } from './arena.ts'
import { noRefusals, type LinkCollector, type Refusals } from './html/links.ts'
import { parseRefresh } from './html/refresh.ts'

/** Seconds up to which the refresh element of a page is a hop; undefined: it is none in any case. */
export function elementHopSecondsMax(page: Pick<SlotPage, 'meta' | 'redirects'>, elements: readonly LinkElement[] | undefined): number | undefined {
  return isFollowed(elements) && headerRefresh(page.meta) === undefined ? hopSecondsMax(page.redirects) : undefined
}

/** What a page says of its next address. */
export interface PageRefresh {
  readonly fact?: { readonly delaySeconds: number; readonly url: string }
  /** One outlink, or none. */
  readonly hop: LinkList
  readonly refused: Refusals
  /** Addresses of links that do not stand in the document. */
  readonly slow: readonly string[]
}

const noRefresh: PageRefresh = { hop: noLinks, refused: noRefusals(), slow: [] }

/** `element`: the first refresh element, its address resolved. */
export function readRefresh(page: SlotPage, element: ElementRefresh | undefined, { collector, linkElements }: RefreshTools): PageRefresh {
  const header = headerRefresh(page.meta)
  const refresh = header ?? element
  if (refresh === undefined) return noRefresh
  const { delaySeconds, target } = refresh
  const isHop = isFollowed(linkElements) && delaySeconds <= (hopSecondsMax(page.redirects) ?? -1)
  // An element that is no hop is one of the document's links, and is judged with them.
  if ('refused' in target) return isHop || header !== undefined ? { ...noRefresh, refused: refusedFor(target.refused) } : noRefresh
  const fact = { delaySeconds, url: target.url }
  if (!isHop) return { ...noRefresh, fact, slow: header !== undefined && isFollowed(linkElements) ? [target.url] : [] }
  const { links, refused } = collector.redirect(target.url)
  return { ...noRefresh, fact, hop: links, refused }
}

interface ElementRefresh {
  readonly delaySeconds: number
  readonly target: Target
}

interface RefreshTools {
  readonly collector: Pick<LinkCollector, 'redirect'>
  readonly linkElements?: readonly LinkElement[] | undefined
}

/** The option that names the elements whose addresses are links speaks of the header too, which stands for one. */
function isFollowed(elements: readonly LinkElement[] = pageLinkElements): boolean {
  return elements.includes('meta')
}

/** The Refresh header, if it has an address. */
function headerRefresh({ url, refresh }: PageMeta): ElementRefresh | undefined {
  const parsed = refresh === undefined ? undefined : parseRefresh(refresh)
  return parsed && { delaySeconds: parsed.delaySeconds, target: targetOf(parsed.url, url) }
}

function hopSecondsMax(redirects: number): number | undefined {
  return redirects < limits.redirectsMax ? limits.refreshHopSecondsMax : undefined
}

export function refusedFor(reason: RefusalReason): Refusals {
  return { ...noRefusals(), [reason]: 1 }
}

/** The links of one list, then those of the other. */
export function joined(first: LinkList, second: LinkList): LinkList {
  if (first.count === 0) return second
  const pick = <T>(index: number, read: (list: LinkList, at: number) => T): T => (index < first.count ? read(first, index) : read(second, index - first.count))
  return {
    count: first.count + second.count,
    fingerprint: (index) => pick(index, (list, at) => list.fingerprint(at)),
    hostHash: (index) => pick(index, (list, at) => list.hostHash(at)),
    url: (index) => pick(index, (list, at) => list.url(at)),
    isRedirect: (index) => pick(index, (list, at) => list.isRedirect(at)),
  }
}

export function addedUp(one: Refusals, other: Refusals): Refusals {
  const sums = { ...one }
  for (const reason of refusalReasons) sums[reason] += other[reason]
  return sums
}

/**
 * From an origin to its sitemaps, and from what a sitemap lists to URLs of the crawl. Pure; main thread.
 *
 * An entry is the site's own word on what its pages are, as a seed is the user's: its depth is 0, so that `--max-depth 0`
 * reads what the sitemaps list and follows no link, and the rules against generated addresses do not hold. What is in
 * scope, excluded or full is judged by the commit, as of a link; `--include` and `--exclude` are judged here.
 *
 *   priority    0: sitemaps and seeds      1 to 5: entries, by their <priority> from 1.0 to 0.0; without one 3
 *   depth       of a page: 0               of a sitemap: how many indexes led to it
 */
import { hostOfUrl } from './core/fetch-url.ts'
import { limits } from './core/limits.ts'
import type { NewUrl, RefusalReason } from './core/types.ts'
import { fingerprintOf, keyOf, sitemapFingerprintOf, type KeyPolicy } from './core/url-key.ts'
import type { SitemapEntry } from '../threads/sitemap/types.ts'

const PRIORITY_FIRST = 1
const PRIORITY_LAST = 5
/** sitemaps.org: "The default priority of a page is 0.5." */
const PRIORITY_DEFAULT = 0.5

/** Where the sitemap of a URL's origin is, unless robots.txt names others. */
export function wellKnownSitemap(url: string): string {
  return `${url.slice(0, url.indexOf('/', url.indexOf('//') + 2))}/sitemap.xml`
}

/** `url`: as `fetchUrl` gave it. */
export function newSitemap(url: string, keyPolicy: KeyPolicy, from: { readonly depth: number; readonly referrer?: string }): NewUrl {
  return { url, host: hostOfUrl(url), fingerprint: sitemapFingerprintOf(keyOf(url, keyPolicy)), kind: 'sitemap', priority: 0, ...from }
}

export interface EntryRules {
  readonly keyPolicy: KeyPolicy
  readonly include: readonly RegExp[]
  readonly exclude: readonly RegExp[]
}

/** The sitemap in hand. */
export interface ListedBy {
  readonly url: string
  readonly depth: number
  /** Wall clock: now, and when the crawl was opened. */
  readonly nowMs: number
  readonly openedAtMs: number
}

/** What an entry brings: a URL, or why it is none. */
export function newUrlOf(entry: SitemapEntry, by: ListedBy, rules: EntryRules): NewUrl | Extract<RefusalReason, 'depth' | 'pattern'> {
  const { url, isSitemap } = entry
  if (rules.exclude.some((pattern) => pattern.test(url))) return 'pattern'
  if (isSitemap === true) {
    if (by.depth >= limits.sitemapDepthMax) return 'depth'
    return { ...newSitemap(url, rules.keyPolicy, { depth: by.depth + 1, referrer: by.url }), ...againOf(entry, by.openedAtMs) }
  }
  if (rules.include.length > 0 && !rules.include.some((pattern) => pattern.test(url))) return 'pattern'
  return { url, host: hostOfUrl(url), fingerprint: fingerprintOf(keyOf(url, rules.keyPolicy)), depth: 0, priority: priorityOf(entry), referrer: by.url, ...againOf(entry, by.nowMs) }
}

function priorityOf({ priority = PRIORITY_DEFAULT }: SitemapEntry): number {
  return PRIORITY_FIRST + Math.round((1 - priority) * (PRIORITY_LAST - PRIORITY_FIRST))
}

/**
 * It is fetched again if it was modified since its last fetch; not if that was behind `latestMs`. So whatever dates a site
 * gives, reading a sitemap brings a page back once, and two sitemaps that name each other are read again once in an opening.
 */
function againOf({ lastModifiedMs }: SitemapEntry, latestMs: number): { again?: number } {
  return lastModifiedMs === undefined ? {} : { again: Math.min(lastModifiedMs, latestMs) }
}

/**
 * The way in for seeds: text to URL, bounded batches, one commit each, and the scope that grows with them. The source
 * is pulled, so a file of a million seeds takes no memory. Main thread.
 */
import type { AddOptions, AddResult, RejectedUrl, Seed, SeedSource, SeedUrl } from './core/api-types.ts'
import type { CommitLoop } from './commit-loop.ts'
import { registrableDomainOf } from './core/domain.ts'
import { SluiceError } from './core/errors.ts'
import { fetchUrl, hostOfUrl } from './core/fetch-url.ts'
import { limits } from './core/limits.ts'
import type { Scope } from './core/options.ts'
import { nearestPriority } from './core/priority.ts'
import type { NewUrl } from './core/types.ts'
import { fingerprintOf, keyOf, type KeyPolicy } from './core/url-key.ts'
import { newSitemap, wellKnownSitemap } from './sitemap-urls.ts'
import { namesUser, whyNotFetched, withoutUser } from './core/url-text.ts'

const REJECTIONS_KEPT_MAX = 100

export interface AddTarget {
  readonly add: CommitLoop['add']
  readonly scope: Scope
  readonly keyPolicy: KeyPolicy
  /** The workers' filter; filled before the commit, so that no link of a seed's page is missed. */
  readonly scopeTable: { add(name: string): void }
  /** The sitemaps of the seeds' origins are added too. */
  readonly sitemaps: boolean
}

/** The name under which a host is in scope. */
export function scopeNameOf(host: string, scope: Scope): string {
  return scope === 'domain' ? registrableDomainOf(host) : host
}

/** Adds seeds. Resolves when all are stored; a text that is no http(s) URL is rejected, and the others go on. */
export async function addUrls(target: AddTarget, urls: SeedSource, options: AddOptions = {}): Promise<AddResult> {
  const source = sourceOf(urls)
  const isAgain = againOf(options)
  const result = { added: 0, again: 0, known: 0, rejected: 0, usersLeftOut: 0, rejections: [] as RejectedUrl[] }
  let batch: NewUrl[] = []
  const commit = async (): Promise<void> => {
    const names = new Set(batch.map((url) => scopeNameOf(url.host, target.scope)))
    if (target.scope !== 'any') for (const name of names) target.scopeTable.add(name)
    // Without `again` first, so that those that were new can be told from those that are tried again.
    const sitemaps = target.sitemaps ? sitemapsOf(batch, target.keyPolicy) : []
    const all = [...sitemaps, ...batch]
    const areNew = await target.add(all.map(({ again: _again, ...url }) => url), target.scope === 'any' ? [] : [...names])
    const olds = all.filter(({ again }, index) => !areNew[index] && again !== undefined)
    const areAgain = olds.length === 0 ? [] : await target.add(olds, [])
    const [added, again] = [seedsAmong(all, areNew), seedsAmong(olds, areAgain)]
    result.added += added
    result.again += again
    result.known += batch.length - added - again
    batch = []
  }
  for await (const given of source) {
    const { url, ...facts } = factsOf(given)
    const text = url instanceof URL ? url.href : url
    const again = isAgain || booleanOf(facts.again) ? true : lastmodMs(facts.lastmod, text)
    const seed = seedOf(text, target.keyPolicy, { priority: priorityOf(facts.priority, text), ...(again !== undefined && { again }) })
    if (seed === undefined) {
      result.rejected += 1
      if (result.rejections.length < REJECTIONS_KEPT_MAX) result.rejections.push(rejectionOf(text))
      continue
    }
    if (namesUser(text)) result.usersLeftOut += 1
    batch.push(seed)
    if (batch.length >= limits.addUrlsPerCommitMax) await commit()
  }
  if (batch.length > 0) await commit()
  return result
}

/** One for each origin, before the seeds of its host. It is read again when one of them is to be fetched again in any case. */
function sitemapsOf(seeds: readonly NewUrl[], keyPolicy: KeyPolicy): NewUrl[] {
  const isAgain = new Map<string, boolean>()
  for (const { url, again } of seeds) {
    const sitemap = wellKnownSitemap(url)
    isAgain.set(sitemap, isAgain.get(sitemap) === true || again === true)
  }
  return [...isAgain].map(([url, again]) => ({ ...newSitemap(url, keyPolicy, { depth: 0 }), ...(again && { again }) }))
}

/** How many URLs that are no sitemaps have the answer yes. */
function seedsAmong(urls: readonly NewUrl[], answers: readonly boolean[]): number {
  return urls.filter(({ kind }, index) => kind === undefined && answers[index] === true).length
}

function sourceOf(urls: SeedSource): Iterable<Seed> | AsyncIterable<Seed> {
  if (typeof urls === 'string' || urls instanceof URL) return [urls]
  if (typeof urls === 'object' && urls !== null) {
    if (Symbol.iterator in urls || Symbol.asyncIterator in urls) return urls
    if ('url' in urls) return [urls]
  }
  throw new SluiceError('bad_option', `add: expected a URL or an iterable of URLs, given ${typeof urls} ${String(urls)}`)
}

/** What is no such object is looked at as a URL, and rejected if it is none. */
function factsOf(given: Seed): SeedUrl {
  return typeof given === 'object' && given !== null && !(given instanceof URL) && 'url' in given ? given : { url: given as string | URL }
}

/** Who writes `add(url, true)`, or misspells `again`, would never see that nothing is tried again. */
function againOf(options: unknown): boolean {
  if (typeof options !== 'object' || options === null) throw new SluiceError('bad_option', `add: expected options such as { again: true }, given ${String(options)}`)
  const { again, ...others } = options as AddOptions
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new SluiceError('bad_option', `add: unknown option ${JSON.stringify(unknown)}; known is again`)
  return booleanOf(again)
}

function booleanOf(again: unknown): boolean {
  if (again === undefined || typeof again === 'boolean') return again === true
  throw new SluiceError('bad_option', `add: again: expected true or false, given ${String(again)}`)
}

function lastmodMs(lastmod: unknown, url: string): number | undefined {
  if (lastmod === undefined) return undefined
  const ms = lastmod instanceof Date ? lastmod.getTime() : typeof lastmod === 'string' ? Date.parse(lastmod) : lastmod
  if (typeof ms === 'number' && Number.isFinite(ms)) return ms
  throw new SluiceError('bad_option', `add: lastmod: expected a date, a text such as 2026-01-31 or milliseconds since 1970, given ${String(lastmod)} for ${String(url)}`)
}

function priorityOf(priority: unknown, url: string): number {
  if (priority === undefined) return 0
  if (typeof priority === 'number' && !Number.isNaN(priority)) return nearestPriority(priority)
  throw new SluiceError('bad_option', `add: priority: expected a number from 0 to ${limits.priorityMax}, given ${String(priority)} for ${String(url)}`)
}

function seedOf(text: string, keyPolicy: KeyPolicy, facts: Pick<NewUrl, 'priority' | 'again'>): NewUrl | undefined {
  const url = typeof text === 'string' ? fetchUrl(text.trim()) : undefined
  if (url === undefined) return undefined
  return { url, host: hostOfUrl(url), fingerprint: fingerprintOf(keyOf(url, keyPolicy)), depth: 0, ...facts }
}

function rejectionOf(text: unknown): RejectedUrl {
  const message = whyNotFetched(typeof text === 'string' ? text.trim() : '')
  return { input: withoutUser(String(text)).slice(0, 200), code: 'bad_url', message }
}

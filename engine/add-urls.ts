/**
 * The way in for seeds: text to URL, bounded batches, one commit each, and the scope that grows with them. The source
 * is pulled, so a file of a million seeds takes no memory. Main thread.
 */
import type { AddResult, RejectedUrl } from './core/api-types.ts'
import type { CommitLoop } from './commit-loop.ts'
import { registrableDomainOf } from './core/domain.ts'
import { SluiceError } from './core/errors.ts'
import { fetchUrl, hostOfUrl, refusalOf } from './core/fetch-url.ts'
import { limits } from './core/limits.ts'
import type { Scope } from './core/options.ts'
import type { NewUrl } from './core/types.ts'
import { fingerprintOf, keyOf, type KeyPolicy } from './core/url-key.ts'

const REJECTIONS_KEPT_MAX = 100

/** A URL, or any iterable of them. */
export type SeedSource = string | URL | Iterable<string | URL> | AsyncIterable<string | URL>

export interface AddTarget {
  readonly add: CommitLoop['add']
  readonly scope: Scope
  readonly keyPolicy: KeyPolicy
  /** The workers' filter; filled before the commit, so that no link of a seed's page is missed. */
  readonly scopeTable: { add(name: string): void }
}

/** The name under which a host is in scope. */
export function scopeNameOf(host: string, scope: Scope): string {
  return scope === 'domain' ? registrableDomainOf(host) : host
}

/** Adds seeds. Resolves when all are stored; a text that is no http(s) URL is rejected, and the others go on. */
export async function addUrls(target: AddTarget, urls: SeedSource): Promise<AddResult> {
  const source = sourceOf(urls)
  const result = { added: 0, known: 0, rejected: 0, rejections: [] as RejectedUrl[] }
  let batch: NewUrl[] = []
  const commit = async (): Promise<void> => {
    const names = new Set(batch.map((url) => scopeNameOf(url.host, target.scope)))
    if (target.scope !== 'any') for (const name of names) target.scopeTable.add(name)
    const areNew = await target.add(batch, target.scope === 'any' ? [] : [...names])
    const added = areNew.filter(Boolean).length
    result.added += added
    result.known += areNew.length - added
    batch = []
  }
  for await (const given of source) {
    const text = given instanceof URL ? given.href : given
    const seed = seedOf(text, target.keyPolicy)
    if (seed === undefined) {
      result.rejected += 1
      if (result.rejections.length < REJECTIONS_KEPT_MAX) result.rejections.push(rejectionOf(text))
      continue
    }
    batch.push(seed)
    if (batch.length >= limits.addUrlsPerCommitMax) await commit()
  }
  if (batch.length > 0) await commit()
  return result
}

function sourceOf(urls: SeedSource): Iterable<string | URL> | AsyncIterable<string | URL> {
  if (typeof urls === 'string' || urls instanceof URL) return [urls]
  if (typeof urls === 'object' && urls !== null && (Symbol.iterator in urls || Symbol.asyncIterator in urls)) return urls
  throw new SluiceError('bad_option', `add: expected a URL or an iterable of URLs, given ${typeof urls} ${String(urls)}`)
}

function seedOf(text: string, keyPolicy: KeyPolicy): NewUrl | undefined {
  const url = typeof text === 'string' ? fetchUrl(text.trim()) : undefined
  if (url === undefined) return undefined
  return { url, host: hostOfUrl(url), fingerprint: fingerprintOf(keyOf(url, keyPolicy)), depth: 0, priority: 0 }
}

function rejectionOf(text: unknown): RejectedUrl {
  const input = String(text).slice(0, 200)
  // Also of a text that is too long only as it would be requested.
  const message = typeof text === 'string' && refusalOf(text.trim()) === 'too_long'
    ? `longer than ${limits.urlBytesMax} bytes`
    : 'not an http or https URL'
  return { input, code: 'bad_url', message }
}

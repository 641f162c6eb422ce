/**
 * `sluice inspect url`: how the crawl reads a URL. Uses the engine's own functions and adds nothing to them.
 */
import { registrableDomainOf } from '../core/domain.ts'
import { limits } from '../core/limits.ts'
import { hostOf, parseFetchUrl, urlKey } from '../core/url-key.ts'
import type { Answer } from './batch.ts'

/** `{url, key, host, domain}` or `{error}`; takes `{url, base?}`. */
export function inspectUrl({ url: given, base }: Answer): Answer {
  if (typeof given !== 'string') return { error: 'expected a text as url' }
  if (base !== undefined && typeof base !== 'string') return { error: 'expected a text as base' }
  if (base !== undefined && parseFetchUrl(base) === undefined) return { error: `the base is not an http or https URL: ${base.slice(0, 200)}` }
  const url = parseFetchUrl(given.trim(), base)
  if (url === undefined) return { error: given.length > limits.urlBytesMax ? `longer than ${limits.urlBytesMax} bytes` : `not an http or https URL: ${given.slice(0, 200)}` }
  const host = hostOf(url)
  return { url: url.href, key: urlKey(url), host, domain: registrableDomainOf(host) }
}

/**
 * `sluice inspect url`: how the crawl reads a URL. Uses the engine's own functions and adds nothing to them.
 */
import { registrableDomainOf } from '../core/domain.ts'
import { SluiceError } from '../core/errors.ts'
import { fetchUrl, hostOfUrl, makeBase } from '../core/fetch-url.ts'
import { resolveCrawlOptions, type CrawlOptionsGiven } from '../core/options.ts'
import { keyOf, keyPolicyOf, type KeyPolicy } from '../core/url-key.ts'
import { whyNotFetched, withoutUser } from '../core/url-text.ts'
import type { Answer } from './batch.ts'

/** `{url, key, host, domain}` or `{error}`; takes `{url, base?, dedupe?}`, the last as the option of that name. */
export function inspectUrl({ url: given, base: givenBase, dedupe }: Answer): Answer {
  if (typeof given !== 'string') return { error: 'expected a text as url' }
  if (givenBase !== undefined && typeof givenBase !== 'string') return { error: 'expected a text as base' }
  const base = givenBase === undefined ? undefined : makeBase(givenBase)
  if (givenBase !== undefined && base === undefined) return { error: `the base is not an http or https URL: ${withoutUser(givenBase).slice(0, 200)}` }
  const policy = policyOf(dedupe)
  if (typeof policy === 'string') return { error: policy }
  const text = given.trim()
  const url = fetchUrl(text, base)
  if (url === undefined) return { error: `${whyNotFetched(text, base)}: ${withoutUser(given).slice(0, 200)}` }
  const host = hostOfUrl(url)
  return { url, key: keyOf(url, policy), host, domain: registrableDomainOf(host) }
}

/** The policy, or what is wrong with what was given. */
function policyOf(dedupe: unknown): KeyPolicy | string {
  try {
    return keyPolicyOf(resolveCrawlOptions({ dedupe } as CrawlOptionsGiven).dedupe)
  } catch (error) {
    if (error instanceof SluiceError) return error.message
    throw error
  }
}

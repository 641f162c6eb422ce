/**
 * A host as a user types it (`Example.com`, `bücher.example`, `[::1]`, a whole URL) as the name under which the crawl
 * knows it. Leaf module.
 */
import { SluiceError } from './errors.ts'
import { fetchUrl, hostOfUrl } from './fetch-url.ts'

/** Throws `usage`. */
export function hostNameOf(given: unknown): string {
  const text = typeof given === 'string' ? given.trim() : ''
  const isUrl = /^https?:\/\//i.test(text)
  const url = fetchUrl(isUrl ? text : `http://${text}/`)
  // A path, a port or a user in what should be a name alone is a mistake rather than a host.
  const isName = isUrl || /^(?:\[[^\]]+\]|[^/?#@:\s\\]+)$/.test(text)
  const host = url === undefined || !isName ? undefined : hostOfUrl(url)
  // To the URL standard `*.example.com` is a host; here it would be one that no page has, where many are meant.
  if (host === undefined || host.includes('*')) throw new SluiceError('usage', `HOST: expected a host name such as example.com, given ${JSON.stringify(given ?? '')}`)
  return host
}

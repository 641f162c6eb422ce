/** The URL that is fetched, by Node's `URL` alone: what `fetchUrl` must give, written so that it can be seen to be right. */
import { isBlockedPort } from '../../engine/core/blocked-ports.ts'
import { limits } from '../../engine/core/limits.ts'

export function naiveFetchUrl(text: string, base?: string): string | undefined {
  const url = text.length > limits.urlBytesMax ? undefined : parsedUrl(text, base)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  const name = url.hostname.replace(/\.$/, '')
  if (name.length > 253 || name.split('.').some((label) => label === '' || label.length > 63)) return undefined
  if (url.port !== '' && isBlockedPort(Number(url.port))) return undefined
  url.username = ''
  url.password = ''
  const href = url.href.split('#', 1)[0]!
  return href.length > limits.urlBytesMax ? undefined : href
}

/** Not by URL.canParse, which in Node 20.20 refuses names with Latin-1 letters once V8 has compiled its caller. */
export function parsedUrl(text: string, base: string | undefined): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

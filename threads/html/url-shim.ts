/**
 * Stands in for what is written at the same time elsewhere, under the names and shapes that were agreed: the engine's
 * own URL parser, the key's policy, the query in a document's charset, and links over bytes. It goes when they come; its
 * importers then take `engine/core/fetch-url.ts`, `engine/core/url-key.ts` and `encodings.ts` instead.
 */
import { limits } from '../../engine/core/limits.ts'
import { parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import type { RawLinks } from './html-facts.ts'
import type { RawLink } from './read-html.ts'

export interface Base { readonly href: string }
export interface KeyPolicy { readonly isPlain: boolean }

export const plainKeys: KeyPolicy = { isPlain: true }
const SCHEME = /^[\s\0]*([a-z][a-z0-9+.-]*):/i

export function makeBase(text: string): Base | undefined {
  const href = parseFetchUrl(text)?.href
  return href === undefined ? undefined : { href }
}

export function fetchUrl(text: string, base?: Base): string | undefined {
  return parseFetchUrl(text, base?.href)?.href
}

/** Why `fetchUrl` gave nothing. */
export function refusalOf(href: string, base?: Base): 'invalid' | 'scheme' | 'too_long' {
  const scheme = SCHEME.exec(href.slice(0, 64))?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') return 'scheme'
  if (href.length > limits.urlBytesMax) return 'too_long'
  const url = parsed(href, base?.href)
  if (url === undefined) return 'invalid'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'scheme'
  // Of what the standard takes, `fetchUrl` refuses host names with an empty label, such as `http://./`.
  return url.href.length > limits.urlBytesMax ? 'too_long' : 'invalid'
}

/** Not URL.canParse: its optimised code on Node 20.20 says false of `http:café` (measured: from the 5,000th call on). */
function parsed(href: string, base: string | undefined): URL | undefined {
  try {
    return new URL(href, base)
  } catch {
    return undefined
  }
}

export function hostOfUrl(href: string): string {
  const start = href.indexOf('//') + 2
  const path = href.indexOf('/', start)
  const end = href.charCodeAt(start) === 0x5b ? href.indexOf(']', start) + 1 : portOrPath(href, start, path)
  return href.slice(start, href.charCodeAt(end - 1) === 0x2e ? end - 1 : end)
}

function portOrPath(href: string, start: number, path: number): number {
  const port = href.indexOf(':', start)
  return port === -1 || port > path ? path : port
}

export function keyOf(url: string, _policy: KeyPolicy): string {
  return urlKey(new URL(url))
}

export function encodeQuery(href: string, _encoding: string): string {
  return href
}

/** Links of the tree reader in the shape of the scanner's. */
export function rawLinksOf(links: readonly RawLink[]): RawLinks {
  const bytes = Buffer.from(links.map(({ href }) => href).join(''))
  const ends: number[] = []
  let at = 0
  for (const { href } of links) ends.push(at += Buffer.byteLength(href))
  return {
    count: links.length, bytes,
    element: (index) => links[index]!.element,
    start: (index) => ends[index - 1] ?? 0,
    end: (index) => ends[index]!,
    href: (index) => links[index]!.href,
    rel: (index) => links[index]!.rel,
  }
}

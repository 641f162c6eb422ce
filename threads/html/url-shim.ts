/**
 * Stands in for what is written at the same time elsewhere, under the names and shapes that were agreed: the engine's
 * own URL parser, the key's policy, the query in a document's charset, and links over bytes. It goes when they come; its
 * importers then take `engine/core/fetch-url.ts`, `engine/core/url-key.ts` and `encodings.ts` instead.
 */
import { parseFetchUrl, urlKey } from '../../engine/core/url-key.ts'
import type { RawLinks } from './html-facts.ts'
import type { RawLink } from './read-html.ts'

export interface Base { readonly href: string }
export type KeyPolicy = unknown

export function makeBase(href: string): Base {
  return { href }
}

export function fetchUrl(text: string, base?: Base): string | undefined {
  return parseFetchUrl(text, base?.href)?.href
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

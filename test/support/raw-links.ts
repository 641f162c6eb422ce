/** Links as the scanner gives them, from texts. */
import type { LinkElement } from '../../engine/core/types.ts'
import type { RawLinks } from '../../threads/html/html-facts.ts'

export interface TestLink { readonly href: string; readonly element?: LinkElement; readonly isNofollow?: boolean }

/** `strings` counts the hrefs that were made into strings. */
export interface TestLinks extends RawLinks { readonly strings: { made: number } }

/** The hrefs lie in one document, each in quotes, in UTF-8 or latin1; the text asked for is the text given. */
export function rawLinks(links: readonly (string | TestLink)[], charset: 'utf8' | 'latin1' = 'utf8'): TestLinks {
  const list = links.map((link) => (typeof link === 'string' ? { href: link } : link))
  const pieces = list.map(({ href }) => Buffer.from(href, charset))
  const strings = { made: 0 }
  const starts: number[] = []
  let at = 1
  for (const piece of pieces) {
    starts.push(at)
    at += piece.length + 2
  }
  return {
    strings,
    count: list.length,
    bytes: Buffer.concat(pieces.flatMap((piece) => [Buffer.from('"'), piece, Buffer.from('"')])),
    element: (index) => list[index]!.element ?? 'a',
    start: (index) => starts[index]!,
    end: (index) => starts[index]! + pieces[index]!.length,
    href: (index) => {
      strings.made += 1
      return list[index]!.href
    },
    rel: () => undefined,
    isNofollow: (index) => list[index]!.isNofollow === true,
  }
}

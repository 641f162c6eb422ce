/**
 * What the rel of a link says to a crawler. Pure; runs in a parse worker, on the bytes of a document, since half of all
 * pages have links with one and no string is made for it.
 */
import { lowerCase } from './names.ts'

/** Of a `link` element or a Link header field: another page of the site, unless it is a style sheet. */
export const followedRels = ['alternate', 'next', 'prev'] as const

/** The page does not vouch for the target (HTML standard, section 4.6.7, and Google's two words for kinds of that). */
const withheld = ['nofollow', 'ugc', 'sponsored'].map((word) => Uint8Array.from(Buffer.from(word)))

/** Whether a list of words, separated by white space, has one of nofollow, ugc and sponsored, in any case. */
export function isNofollow(bytes: Uint8Array, start: number, end: number): boolean {
  let from = start
  for (let at = start; at <= end; at += 1) {
    if (at < end && bytes[at]! > 0x20) continue
    if (withheld.some((word) => isWord(word, bytes, from, at))) return true
    from = at + 1
  }
  return false
}

function isWord(word: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== word.length) return false
  for (let index = 0; index < word.length; index += 1) if (lowerCase[bytes[start + index]!] !== word[index]) return false
  return true
}

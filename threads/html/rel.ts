/**
 * What the rel of a link says to a crawler. Pure; runs in a parse worker, on the bytes of a document, since half of all
 * pages have links with one and no string is made for it.
 */
import { lowerCase } from './names.ts'

const SPACE = 0x20

/** Of a `link` element or a Link header field: another page of the site, unless it is a style sheet. */
export const followedRels = ['alternate', 'next', 'prev'] as const

/** The page does not vouch for the target (HTML standard, section 4.6.7, and Google's two words for kinds of that). */
const withheld = ['nofollow', 'ugc', 'sponsored'].map((word) => Uint8Array.from(Buffer.from(word)))

/** Whether a list of words, separated by white space, has one of nofollow, ugc and sponsored, in any case. */
export function isNofollow(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start, from = start; at <= end; at += 1) {
    if (at < end && bytes[at]! > SPACE) continue
    for (const word of withheld) if (at - from === word.length && isAt(word, bytes, from)) return true
    from = at + 1
  }
  return false
}

/** Whether the bytes at a place are a word, which is in lower case, in any case. */
export function isAt(word: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let index = 0; index < word.length; index += 1) if (lowerCase[bytes[at + index]!] !== word[index]) return false
  return true
}

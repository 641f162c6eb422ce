/**
 * Whether the rules of a robots.txt allow a URL, and which of them says so. Pure; main thread. Nothing is prepared and
 * nothing is remembered: the text of the rules, as a parse worker has ordered it (threads/robots-text.ts), is what is
 * searched, so a verdict takes as much memory as its text.
 *
 *   +/shop/cart/help LF        longest pattern first, of equals the one that allows: the first that matches decides, and
 *   -/shop/cart/ LF            it is the most specific one (RFC 9309 section 2.2.2); without any the URL is allowed
 *   -/*.gif$ LF
 *
 * A pattern without a wildcard is compared character by character. The pieces between the wildcards of another are looked
 * for one after the other, each at the first place where it is found: what matches at all matches so, and nothing is ever
 * tried twice. Each piece is searched as Knuth, Morris and Pratt do, in its own length and that of the path.
 *
 * So a URL costs the length of the text (500 KiB at most) and, for each pattern with wildcards, the length of the path. A
 * file of nothing but wildcards makes that 42,000 times 8,000; so beyond `limits.robotsStepsMax` steps a URL is denied.
 * Of 1,367 real files the one with the most such patterns has 162, which is far from it with a path of 8,000 characters.
 *
 * The functions that look at every character take their variables one by one: with `const [a, b] = ...` in them the worst
 * file took ten times as long (measured).
 *
 * robots-parser did this before, and was left. Alone it fails 22 of the 887 cases of the corpus that the RFC decides: it
 * compares escapes as they are written (`%61bc` and `abc`, `%2A` and `*`), takes a `$` anywhere for the end, loses a group
 * that a Sitemap line interrupts, and lets robots.txt itself be forbidden; nor does it find a product token in a full user
 * agent. All of that can be done around it; but its work for a URL is rules x pattern x path: a file of 500 KiB
 * took 21 s.
 */
import { limits } from '../core/limits.ts'
import { comparablePath } from '../core/robots-path.ts'

export interface RobotsDecision {
  readonly isAllowed: boolean
  /** Where in the text the line of the rule begins that decides; absent: none does. */
  readonly at?: number
}

const [STAR, DOLLAR, PLUS] = [0x2a, 0x24, 0x2b]

/** It is implicitly allowed (RFC 9309 section 2.2.2). */
export function isRobotsFile({ pathname }: URL): boolean {
  return pathname === '/robots.txt'
}

/** `lines` as above. */
export function decideRobots(lines: string, url: URL): RobotsDecision {
  if (isRobotsFile(url)) return { isAllowed: true }
  const trial = new Trial(lines, comparablePath(url))
  for (let at = 0, end = 0; at < lines.length; at = end + 1) {
    end = lines.indexOf('\n', at)
    if (trial.matches(at + 1, end)) return { isAllowed: lines.charCodeAt(at) === PLUS, at }
    if (trial.isTooLong) return { isAllowed: false }
  }
  return { isAllowed: true }
}

/** The piece that is being looked for, and for each of its characters how long the longest border of the piece up to it is. */
const piece = new Uint8Array(limits.robotsPatternCharsMax)
const borders = new Uint16Array(limits.robotsPatternCharsMax)

/** One path against patterns that are parts of one text. */
class Trial {
  readonly #lines: string
  readonly #path: string
  /** The same: measured, a search in bytes takes a quarter of the time. */
  readonly #pathBytes: Uint8Array
  #stepsLeft: number = limits.robotsStepsMax

  constructor(lines: string, path: string) {
    this.#lines = lines
    this.#path = path
    this.#pathBytes = Buffer.from(path, 'latin1')
  }

  get isTooLong(): boolean {
    return this.#stepsLeft < 0
  }

  /** Whether the path matches the pattern from `from` up to `to`. */
  matches(from: number, to: number): boolean {
    const lines = this.#lines
    const path = this.#path
    const isWhole = lines.charCodeAt(to - 1) === DOLLAR
    const end = isWhole ? to - 1 : to
    let place = from
    let at = 0
    for (; place < end && lines.charCodeAt(place) !== STAR; place += 1, at += 1) {
      if (at === path.length || lines.charCodeAt(place) !== path.charCodeAt(at)) return false
    }
    while (place < end) {
      const start = place + 1
      for (place = start; place < end && lines.charCodeAt(place) !== STAR;) place += 1
      // The last piece of a whole path stands at its end, wherever else it may be found.
      if (isWhole && place === end) return path.length - at >= end - start && path.endsWith(lines.slice(start, end))
      at = this.#find(start, place, at)
      if (at < 0) return false
    }
    return !isWhole || at === path.length
  }

  /** Where the first occurrence, at `at` or later, of a piece of the text ends in the path; -1: there is none. */
  #find(from: number, to: number, at: number): number {
    const path = this.#pathBytes
    const length = to - from
    if (length === 0) return at
    if (length > path.length - at) return -1
    this.#take(from, length)
    let place = at
    let matched = 0
    for (; place < path.length && matched < length; place += 1) {
      const code = path[place]
      while (matched > 0 && code !== piece[matched]) matched = borders[matched - 1]!
      if (code === piece[matched]) matched += 1
    }
    this.#stepsLeft -= length + place - at
    return matched === length ? place : -1
  }

  #take(from: number, length: number): void {
    for (let place = 0, border = 0; place < length; place += 1) {
      const code = this.#lines.charCodeAt(from + place)
      piece[place] = code
      if (place === 0) continue
      while (border > 0 && code !== piece[border]) border = borders[border - 1]!
      if (code === piece[border]) border += 1
      borders[place] = border
    }
  }
}

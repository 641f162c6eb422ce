/**
 * robots.txt read down to the lines of our group (RFC 9309 section 2.2), so that the matcher on the main thread gets a
 * small text whatever the file was. Pure; runs in a parse worker, as a task of its own. Invariant: the answer is
 * bounded (rules, pattern length, sitemaps), and where something must be cut, more is forbidden rather than less.
 *
 * Groups: every run of user-agent lines up to the next rule names the agents of that rule and those that follow it;
 * only allow and disallow end the run. Groups of one agent are merged; the group of `*` counts when none names us.
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '../engine/core/limits.ts'

export interface RobotsText {
  /** `User-agent: *` and the Allow and Disallow lines that apply to us, each ended by a line feed. */
  readonly lines: string
  readonly crawlDelayMs?: number
  readonly sitemaps: readonly string[]
}

const BLANKS = ' \t\f\v'

interface Group {
  isNamed: boolean
  readonly rules: string[]
  crawlDelayMs: number | undefined
}

/** The leading product token of a user-agent line or of an agent's name, in lower case. Digits are tolerated. */
function productToken(text: string): string {
  return /^[\w-]*/.exec(text)![0].toLowerCase()
}

/** White space at the ends, as RFC 9309 knows it; a byte order mark in the middle of a file is none. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length]
  // By hand: a regular expression for the end of a line of blanks takes time quadratic in their number.
  while (start < end && BLANKS.includes(text[start]!)) start += 1
  while (end > start && BLANKS.includes(text[end - 1]!)) end -= 1
  return text.slice(start, end)
}

/** The prefix that is read; of a cut file it ends with the last whole line, since half a pattern is another one. */
function prefixOf(bytes: Uint8Array, isCut: boolean): Uint8Array {
  if (!isCut && bytes.byteLength <= limits.robotsBytesMax) return bytes
  const prefix = bytes.subarray(0, limits.robotsBytesMax)
  return prefix.subarray(0, Math.max(prefix.lastIndexOf(0x0a), prefix.lastIndexOf(0x0d)) + 1)
}

function textOf(bytes: Uint8Array): string {
  const prefix = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return prefix.toString(isUtf8(prefix) ? 'utf8' : 'latin1').replace(/^(\uFEFF|\u00EF\u00BB\u00BF)/, '').replaceAll('\0', '')
}

/** A rule line, or undefined when it matches nothing. An Allow that is too long is left out, a Disallow is widened. */
function ruleLine(kind: 'allow' | 'disallow', value: string): string | undefined {
  if (value === '') return undefined
  // A run of stars says what one says.
  const pattern = value.replace(/\*{2,}/g, '*')
  const isLong = pattern.length > limits.robotsPatternCharsMax
  if (kind === 'allow') return isLong ? undefined : `Allow: ${pattern}\n`
  return `Disallow: ${isLong ? pattern.slice(0, limits.robotsPatternCharsMax) : pattern}\n`
}

function delayOf(value: string): number | undefined {
  if (!/^\d+(\.\d+)?$|^\.\d+$/.test(value)) return undefined
  return Math.min(Math.round(Number(value) * 1_000), limits.crawlDelayMsMax)
}

class GroupReader {
  readonly sitemaps: string[] = []
  readonly #named: Group = { isNamed: false, rules: [], crawlDelayMs: undefined }
  readonly #others: Group = { isNamed: false, rules: [], crawlDelayMs: undefined }
  readonly #token: string
  #current = new Set<Group>()
  #isNaming = false

  constructor(token: string) {
    this.#token = token
  }

  /** The group that applies to us. */
  get group(): Group {
    return this.#named.isNamed ? this.#named : this.#others
  }

  read(key: string, value: string): void {
    switch (key) {
      case 'user-agent': return this.#name(value)
      case 'allow': case 'disallow': return this.#rule(ruleLine(key, value))
      case 'crawl-delay': return this.#delay(delayOf(value))
      case 'sitemap':
        if (this.sitemaps.length < limits.robotsSitemapsMax && value !== '' && value.length <= limits.urlBytesMax) this.sitemaps.push(value)
        return
      default:
    }
  }

  #name(agent: string): void {
    if (!this.#isNaming) this.#current = new Set()
    this.#isNaming = true
    let group: Group | undefined
    if (/^\*(\s|$)/.test(agent)) group = this.#others
    else if (this.#token !== '' && productToken(agent) === this.#token) group = this.#named
    if (group === undefined) return
    group.isNamed = true
    this.#current.add(group)
  }

  #rule(line: string | undefined): void {
    this.#isNaming = false
    if (line === undefined) return
    for (const group of this.#current) if (group.rules.length < limits.robotsRulesMax) group.rules.push(line)
  }

  /** Belongs to the agents named so far; the first value counts. */
  #delay(delayMs: number | undefined): void {
    for (const group of this.#current) group.crawlDelayMs ??= delayMs
  }
}

/**
 * Reads a robots.txt. `agent` is our product token or our whole user agent, of which the leading token counts. `isCut`:
 * the bytes are the prefix of a longer file.
 */
export function readRobotsText(bytes: Uint8Array, agent: string, isCut = false): RobotsText {
  const text = textOf(prefixOf(bytes, isCut))
  const reader = new GroupReader(productToken(agent))
  // A page of HTML in place of the file has no rules, whatever stands in it.
  if (!/^\s*</.test(text)) {
    for (const line of text.split(/\r\n|\r|\n/)) {
      const colon = line.indexOf(':')
      if (colon === -1) continue
      const value = trimmed(line.slice(colon + 1).replace(/#.*$/, ''))
      reader.read(trimmed(line.slice(0, colon)).toLowerCase(), value)
    }
  }
  const { rules, crawlDelayMs } = reader.group
  return { lines: `User-agent: *\n${rules.join('')}`, sitemaps: reader.sitemaps, ...(crawlDelayMs !== undefined && { crawlDelayMs }) }
}

/**
 * robots.txt read down to the rules of our group (RFC 9309 section 2.2), in the order in which they decide, so that the
 * main thread has nothing to do but to compare (engine/web/robots-matcher.ts has the form). Pure; runs in a parse worker,
 * as a task of its own. Invariant: the answer is bounded (rules in bytes, patterns, sitemaps), and where something must
 * be cut, more is forbidden rather than less.
 *
 * Groups: every run of user-agent lines up to the next rule names the agents of that rule and those that follow it;
 * only allow and disallow end the run. Groups of one agent are merged; the group of `*` counts when none names us.
 *
 * What the RFC leaves open, or sources answer in two ways (the cases of the corpus that are `vendor` and `disputed`):
 *   - what owners often mistype is read as they mean it, as Google's parser reads it: `Dissallow`, `useragent`, and a
 *     missing colon before a single word;
 *   - names of agents are whole words of letters, digits, `_` and `-`, in any case, up to the first other character: no
 *     prefixes (`slu` is not `sluice`), no second name in a line, no wildcards in names;
 *   - paths are compared by the RFC's own rule for escapes, and reserved characters as they are written (robots-path.ts);
 *   - a line is read whole, however long; a pattern that begins with neither `/` nor `*` matches nothing;
 *   - a text that begins with `<` is a page and no robots.txt: it has no rules; a mark of byte order is read, half of one
 *     is not; robots.txt itself may always be fetched (the matcher's business).
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '../engine/core/limits.ts'
import { comparablePattern } from '../engine/core/robots-path.ts'

export interface RobotsText {
  /** The rules that apply to us, ready to be compared: `+PATTERN` and `-PATTERN`, each ended by a line feed; empty without any. */
  readonly lines: string
  /** The longer of Crawl-delay and Request-rate. */
  readonly crawlDelayMs?: number
  /** As written. */
  readonly sitemaps: readonly string[]
}

export interface RobotsRule {
  readonly isAllow: boolean
  /** Comparable. */
  readonly pattern: string
  /** Number of its line in the file, from 1 on. */
  readonly line: number
}

/** The same with its rules apart, in the order of `lines`. */
export interface RobotsRead extends Omit<RobotsText, 'lines'> {
  readonly rules: readonly RobotsRule[]
}

const BLANKS = ' \t\f\v'

/** Names of directives as they are meant. The wrong ones are those that google/robotstxt accepts (robots.cc, kAllowFrequentTypos). */
const meantBy: Readonly<Record<string, string>> = {
  'useragent': 'user-agent', 'user agent': 'user-agent',
  'dissallow': 'disallow', 'dissalow': 'disallow', 'disalow': 'disallow', 'diasllow': 'disallow', 'disallaw': 'disallow',
  'site-map': 'sitemap',
}
const known: ReadonlySet<string> = new Set(['user-agent', 'allow', 'disallow', 'crawl-delay', 'request-rate', 'sitemap', ...Object.keys(meantBy)])

interface Group {
  isNamed: boolean
  readonly rules: RobotsRule[]
  crawlDelayMs: number | undefined
  rateDelayMs: number | undefined
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

/** The prefix that is read, as text. Of a cut file it ends with the last whole line, since half a pattern is another one. */
function textOf(bytes: Uint8Array, isCut: boolean): string {
  const prefix = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, limits.robotsBytesMax))
  const isWhole = !isCut && prefix.byteLength === bytes.byteLength
  const byteOrder = prefix.byteLength < 2 ? 0 : prefix.readUInt16BE(0)
  if (byteOrder === 0xfffe || byteOrder === 0xfeff) {
    const text = new TextDecoder(byteOrder === 0xfffe ? 'utf-16le' : 'utf-16be').decode(prefix)
    return isWhole ? text : text.slice(0, Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1)
  }
  const lines = isWhole ? prefix : prefix.subarray(0, Math.max(prefix.lastIndexOf(0x0a), prefix.lastIndexOf(0x0d)) + 1)
  return lines.toString(isUtf8(lines) ? 'utf8' : 'latin1').replace(/^(\uFEFF|\u00EF\u00BB\u00BF)/, '')
}

/** A line's directive, in lower case, and its value; undefined when it has none. */
function directiveOf(line: string): readonly [key: string, value: string] | undefined {
  const comment = line.indexOf('#')
  const text = trimmed(comment < 0 ? line : line.slice(0, comment))
  const colon = text.indexOf(':')
  if (colon >= 0) return [trimmed(text.slice(0, colon)).toLowerCase(), trimmed(text.slice(colon + 1))]
  const [key = '', value = '', ...more] = text.length > limits.robotsPatternCharsMax ? [] : text.split(/[ \t]+/)
  return value !== '' && more.length === 0 ? [key.toLowerCase(), value] : undefined
}

/** Undefined: it matches nothing. An Allow that is too long is left out, a Disallow is widened. */
function ruleOf(isAllow: boolean, value: string, line: number): RobotsRule | undefined {
  if (!value.startsWith('/') && !value.startsWith('*')) return undefined
  const pattern = comparablePattern(value)
  if (pattern.length <= limits.robotsPatternCharsMax) return { isAllow, pattern, line }
  return isAllow ? undefined : { isAllow, pattern: pattern.slice(0, limits.robotsPatternCharsMax), line }
}

function delayOf(value: string): number | undefined {
  return /^\d+(\.\d+)?$|^\.\d+$/.test(value) ? capped(Number(value) * 1_000) : undefined
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** `1/10s`: one document in ten seconds, which is the unit when none is given. Hours of the day that may follow are not looked at. */
function rateOf(value: string): number | undefined {
  const [, documents, time, unit = 's'] = /^(\d{1,9})\s*\/\s*(\d{1,9})\s*([smh])?(?:\s|$)/i.exec(value) ?? []
  return Number(documents) > 0 ? capped(Number(time) / Number(documents) * unitMs[unit.toLowerCase()]!) : undefined
}

function capped(delayMs: number): number {
  return Math.min(Math.round(delayMs), limits.crawlDelayMsMax)
}

class GroupReader {
  readonly sitemaps: string[] = []
  readonly #named: Group = { isNamed: false, rules: [], crawlDelayMs: undefined, rateDelayMs: undefined }
  readonly #others: Group = { isNamed: false, rules: [], crawlDelayMs: undefined, rateDelayMs: undefined }
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

  read(key: string, value: string, line: number): void {
    switch (meantBy[key] ?? key) {
      case 'user-agent': return this.#name(value)
      case 'allow': return this.#rule(ruleOf(true, value, line))
      case 'disallow': return this.#rule(ruleOf(false, value, line))
      // They belong to the agents named so far. Of delays the first counts, of rates the slowest.
      case 'crawl-delay':
        for (const group of this.#current) group.crawlDelayMs ??= delayOf(value)
        return
      case 'request-rate':
        for (const group of this.#current) group.rateDelayMs = slower(group.rateDelayMs, rateOf(value))
        return
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

  #rule(rule: RobotsRule | undefined): void {
    this.#isNaming = false
    if (rule === undefined) return
    for (const group of this.#current) group.rules.push(rule)
  }
}

function slower(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? left ?? right : Math.max(left, right)
}

/** As they decide, each once, and in so many bytes that it does not matter how the file was coded: those beyond are as if the file had been cut before them. */
function inOrder(rules: readonly RobotsRule[]): readonly RobotsRule[] {
  const distinct = new Map<string, RobotsRule>()
  let bytes = 0
  for (const rule of rules) {
    const text = textOfRule(rule)
    if (distinct.has(text)) continue
    bytes += text.length
    if (bytes > limits.robotsBytesMax) break
    distinct.set(text, rule)
  }
  return [...distinct.values()].sort((left, right) => right.pattern.length - left.pattern.length || Number(right.isAllow) - Number(left.isAllow))
}

function textOfRule({ isAllow, pattern }: RobotsRule): string {
  return `${isAllow ? '+' : '-'}${pattern}\n`
}

/**
 * Reads a robots.txt. `agent` is our product token or our whole user agent, of which the leading token counts; empty for
 * one that no group names. `isCut`: the bytes are the prefix of a longer file.
 */
export function readRobots(bytes: Uint8Array, agent: string, isCut = false): RobotsRead {
  const text = textOf(bytes, isCut).replaceAll('\0', '')
  const reader = new GroupReader(productToken(agent))
  if (!/^\s*</.test(text)) {
    for (const [at, line] of text.split(/\r\n|\r|\n/).entries()) {
      const [key, value] = directiveOf(line) ?? []
      if (key !== undefined && known.has(key)) reader.read(key, value!, at + 1)
    }
  }
  const { rules, crawlDelayMs, rateDelayMs } = reader.group
  const delayMs = slower(crawlDelayMs, rateDelayMs)
  return { rules: inOrder(rules), sitemaps: reader.sitemaps, ...(delayMs !== undefined && { crawlDelayMs: delayMs }) }
}

/** What the main thread needs of it. */
export function readRobotsText(bytes: Uint8Array, agent: string, isCut = false): RobotsText {
  const { rules, ...rest } = readRobots(bytes, agent, isCut)
  return { lines: linesOf(rules), ...rest }
}

/** Rules in their order, as text. */
export function linesOf(rules: readonly RobotsRule[]): string {
  return rules.map(textOfRule).join('')
}

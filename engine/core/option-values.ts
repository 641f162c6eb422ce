/**
 * How the value of an option is read, from a text of the command line or from a value of the library. Every refusal
 * names the option, what was expected and what was given. Leaf module.
 */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { inspect } from 'node:util'
import { readConcurrency } from './concurrency.ts'
import { SluiceError } from './errors.ts'
import { parseGateways } from './gateway-config.ts'
import { parseHostHeaders } from './host-headers.ts'
import { hostPatternOf } from './host-patterns.ts'
import { listenText, parseListen, type ListenAddress } from './listen-address.ts'
import type { RecrawlPolicy } from './recrawl-policy.ts'

export type OptionType =
  | 'string' | 'header' | 'boolean' | 'integer' | 'duration' | 'size' | 'choice' | 'choices'
  | 'patterns' | 'concurrency' | 'cidrs' | 'resolve' | 'tail' | 'recrawl' | 'hostLimits'
  | 'listen' | 'function' | 'rate' | 'bandwidth' | 'gateway' | 'hostHeaders'

interface ValueSpec {
  readonly type: OptionType
  /** Of numbers the least; of choices how many there must be at least, 1 unless it says 0 (`none`). */
  readonly min?: number
  readonly max?: number
  readonly choices?: readonly string[]
}

/** What an option takes, for `--help` and for messages. */
export function metavar(spec: ValueSpec): string {
  switch (spec.type) {
    case 'boolean': return ''
    case 'integer': return 'N'
    case 'duration': return 'DURATION'
    case 'size': return 'SIZE'
    case 'choice': return (spec.choices ?? []).join('|')
    case 'choices': return (spec.choices ?? []).join(',')
    case 'patterns': return 'REGEX'
    case 'concurrency': return 'START:FLOOR:CEILING'
    case 'cidrs': return 'CIDR'
    case 'resolve': return 'HOST=IP'
    case 'tail': return 'wait|park|DURATION'
    case 'recrawl': return 'POLICY'
    case 'hostLimits': return 'PATTERN=LIMITS'
    case 'listen': return '[HOST:]PORT'
    case 'rate': return 'N/s'
    case 'bandwidth': return 'SIZE/s'
    case 'gateway': case 'hostHeaders': return 'FILE'
    default: return 'TEXT'
  }
}

const expectations: Readonly<Record<OptionType, string>> = {
  string: 'a text', header: 'a text of printable ASCII characters', boolean: 'true or false', integer: 'a whole number',
  duration: 'a duration such as 500ms, 2s, 5m, 1h or 7d', size: 'a size such as 250KB or 1MB',
  choice: 'one of the choices', choices: 'one or more of the choices, with commas', patterns: 'a regular expression',
  concurrency: 'three whole numbers START:FLOOR:CEILING with FLOOR <= START <= CEILING',
  cidrs: 'an address range such as 10.0.0.0/8 or fd00::/8', resolve: 'HOST=IP', tail: 'wait, park or a duration such as 10m',
  hostLimits: 'PATTERN=LIMITS, such as *.example.com=delay:5s,concurrency:1:1:2,weight:3',
  recrawl: 'never, lastmod, fixed:DURATION, adaptive:FLOOR:CEILING with 0 < FLOOR <= CEILING, or a function',
  listen: 'a port from 0 to 65535, or ADDRESS:PORT with an IP address (IPv6 in brackets) or localhost',
  function: 'a function',
  rate: 'a number a second such as 50/s or 0.5/s', bandwidth: 'a size in bytes a second such as 1MB/s',
  gateway: 'the path of a file, or its content as an object', hostHeaders: 'the path of a file, or its content as an object',
}

/** What takes back a choice or a bound that is kept with the crawl, for which the command line has no other word. */
const NONE = 'none'

function mayBeNone({ type, min, max }: ValueSpec): boolean {
  return type === 'choices' ? min === 0 : max === Number.POSITIVE_INFINITY
}

function refuse(name: string, spec: ValueSpec, given: unknown, expected = expectations[spec.type]): never {
  const choices = spec.choices === undefined ? '' : ` (${[...spec.choices, ...(mayBeNone(spec) ? [NONE] : [])].join(', ')})`
  const text = typeof given === 'string' ? JSON.stringify(given) : inspect(given, { breakLength: Number.POSITIVE_INFINITY, depth: 2 })
  throw new SluiceError('bad_option', `${name}: expected ${expected}${choices}, given ${text.slice(0, 200)}`)
}

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KB: 1_024, MB: 1_048_576, GB: 1_073_741_824 }

/** `500ms`, `2s`, `5m`, `1h`, `7d`, `0`; undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  return match === null ? undefined : Number(match[1]) * DURATION_UNITS[match[2]!]!
}

/** `250KB`, `1MB`, `4096`; 1 KB = 1,024 bytes; undefined when it is none. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(B|KB|MB|GB)?$/i.exec(text)
  return match === null ? undefined : Math.floor(Number(match[1]) * SIZE_UNITS[(match[2] ?? 'B').toUpperCase()]!)
}

/** `50/s`, `0.5`; undefined when it is none. */
export function parseRate(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,9})?)(?:\/s)?$/.exec(text)
  return match === null ? undefined : Number(match[1])
}

/** `1MB/s`, `250KB`; undefined when it is none. `1Mb/s` is said of bits: who means bits would get eight times as much. */
function parseBandwidth(text: string): number | undefined {
  if (/[KMG]b(?:\/s)?$/.test(text)) return undefined
  return parseSize(text.replace(/\/s$/, ''))
}

/** A bound as it would be given: `16MB`, `100ms`, `1KB/s`. */
function boundText({ type }: ValueSpec, bound: number): string {
  const units = Object.entries(type === 'size' || type === 'bandwidth' ? SIZE_UNITS : type === 'duration' ? DURATION_UNITS : {})
  const [name, factor] = units.toSorted(([, a], [, b]) => b - a).find(([, factor]) => bound > 0 && bound % factor === 0) ?? ['', 1]
  return `${bound / factor}${name}${type === 'rate' || type === 'bandwidth' ? '/s' : ''}`
}

function parseNumber(name: string, spec: ValueSpec, given: unknown, read: (text: string) => number | undefined): number {
  if (given === NONE && mayBeNone(spec)) return Number.POSITIVE_INFINITY
  const value = typeof given === 'string' ? read(given) : given
  if (typeof value !== 'number' || Number.isNaN(value)) refuse(name, spec, given)
  const { min = 0, max = Number.POSITIVE_INFINITY } = spec
  if (value < min || value > max) refuse(name, spec, given, `${expectations[spec.type]} ${max >= Number.MAX_SAFE_INTEGER ? `of at least ${boundText(spec, min)}` : `from ${boundText(spec, min)} to ${boundText(spec, max)}`}`)
  return value
}

/** A whole number, or the maximum itself, which may be infinite. */
function parseWhole(name: string, spec: ValueSpec, given: unknown, read: (text: string) => number | undefined): number {
  const value = parseNumber(name, spec, given, read)
  return Number.isInteger(value) || value === spec.max ? value : refuse(name, spec, given)
}

function readInteger(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function parseBoolean(name: string, spec: ValueSpec, given: unknown): boolean {
  if (typeof given === 'boolean') return given
  return given === 'true' || given === 'false' ? given === 'true' : refuse(name, spec, given)
}

function parseList(name: string, spec: ValueSpec, given: unknown, check: (item: string) => boolean): readonly string[] {
  const items = typeof given === 'string' ? [given] : given
  if (!Array.isArray(items)) refuse(name, spec, given)
  for (const item of items) if (typeof item !== 'string' || !check(item)) refuse(name, spec, item)
  return Object.freeze([...items as string[]])
}

function isPattern(text: string): boolean {
  // The empty pattern matches everything: an unset variable of a shell would exclude the whole web.
  if (text === '') return false
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function isCidr(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

function parseResolve(name: string, spec: ValueSpec, given: unknown): unknown {
  if (typeof given !== 'string' && (typeof given !== 'object' || given === null)) refuse(name, spec, given)
  const entries = typeof given === 'string' || Array.isArray(given)
    ? [given].flat().map((pair) => String(pair).split('='))
    : Object.entries(given)
  const map: Record<string, string> = {}
  for (const [host, address, ...rest] of entries) {
    // As in a parsed URL, where the name is looked for: in lower case, punycode, without a trailing dot.
    const key = domainToASCII(host ?? '').replace(/\.$/, '')
    if (key === '' || typeof address !== 'string' || isIP(address) === 0 || rest.length > 0) refuse(name, spec, [host, address, ...rest].join('='))
    map[key] = address
  }
  return Object.freeze(map)
}

function readListen(name: string, spec: ValueSpec, given: unknown): ListenAddress {
  const text = typeof given === 'object' && given !== null ? listenText(given as ListenAddress) : String(given)
  return Object.freeze(parseListen(text) ?? refuse(name, spec, given))
}

/** `never`, `lastmod`, `fixed:7d`, `adaptive:1h:30d`; undefined when it is no policy. */
export function parseRecrawl(text: string): RecrawlPolicy | undefined {
  const [kind, ...parts] = text.split(':')
  if ((kind === 'never' || kind === 'lastmod') && parts.length === 0) return { kind }
  const [floorMs = 0, ceilingMs = 0] = parts.map(parseDuration)
  if (floorMs <= 0) return undefined
  if (kind === 'fixed' && parts.length === 1) return { kind, intervalMs: floorMs }
  return kind === 'adaptive' && parts.length === 2 && floorMs <= ceilingMs ? { kind, floorMs, ceilingMs } : undefined
}

/** `*.example.com=delay:5s,weight:3`, or the same as an object. */
function parseHostLimit(name: string, spec: ValueSpec, given: unknown): HostLimitValue {
  const fields = typeof given === 'string' ? hostLimitFields(given) : given
  if (typeof fields !== 'object' || fields === null) return refuse(name, spec, given)
  const { hosts, ...said } = fields as Record<string, unknown>
  const pattern = typeof hosts === 'string' ? hostPatternOf(hosts) : undefined
  if (pattern === undefined || Object.keys(said).length === 0) return refuse(name, spec, given)
  const limit: Record<string, unknown> = {}
  for (const [fact, value] of Object.entries(said)) {
    if (!Object.hasOwn(hostLimitSpecs, fact)) return refuse(name, spec, given, `${expectations.hostLimits}, of ${Object.keys(hostLimitSpecs).join(', ')}`)
    limit[fact.replace('delayMs', 'delay')] = parseValue(`${name} ${pattern} ${fact}`, hostLimitSpecs[fact]!, value)
  }
  const { delay, ...others } = limit
  return Object.freeze({ hosts: pattern, ...(delay !== undefined && { delayMs: delay }), ...others }) as HostLimitValue
}

interface HostLimitValue { readonly hosts: string }

/** As the command line and as the library name them. */
const hostLimitSpecs: Readonly<Record<string, ValueSpec>> = {
  delay: { type: 'duration', max: 3_600_000 }, delayMs: { type: 'duration', max: 3_600_000 },
  concurrency: { type: 'concurrency' }, weight: { type: 'integer', min: 1, max: 100 },
}

function hostLimitFields(text: string): Record<string, unknown> | undefined {
  const at = text.indexOf('=')
  if (at <= 0) return undefined
  const facts = text.slice(at + 1).split(',').map((fact) => [fact.slice(0, fact.indexOf(':')), fact.slice(fact.indexOf(':') + 1)])
  return { hosts: text.slice(0, at), ...Object.fromEntries(facts) as Record<string, string> }
}

/** Reads one value. Throws `bad_option`. */
export function parseValue(name: string, spec: ValueSpec, given: unknown): unknown {
  switch (spec.type) {
    case 'string': return typeof given === 'string' && given !== '' ? given : refuse(name, spec, given)
    case 'header': return typeof given === 'string' && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(given) ? given : refuse(name, spec, given)
    case 'boolean': return parseBoolean(name, spec, given)
    case 'integer': return parseWhole(name, spec, given, readInteger)
    case 'duration': return parseNumber(name, spec, given, parseDuration)
    case 'size': return parseWhole(name, spec, given, parseSize)
    case 'rate': return parseNumber(name, spec, given, parseRate)
    case 'bandwidth': return parseWhole(name, spec, given, parseBandwidth)
    case 'choice': return (spec.choices ?? []).includes(given as string) ? given : refuse(name, spec, given)
    case 'choices': {
      if (given === NONE && mayBeNone(spec)) return Object.freeze([])
      const items = typeof given === 'string' ? given.split(',') : given
      if (Array.isArray(items) && items.length < (spec.min ?? 1)) refuse(name, spec, given)
      return parseList(name, spec, items, (item) => (spec.choices ?? []).includes(item))
    }
    case 'patterns': return parseList(name, spec, given, isPattern)
    case 'concurrency': return readConcurrency(given) ?? refuse(name, spec, given)
    case 'cidrs': return parseList(name, spec, given, isCidr)
    case 'hostLimits': {
      const items: readonly unknown[] = Array.isArray(given) ? given : [given]
      return Object.freeze(items.map((item) => parseHostLimit(name, spec, item)))
    }
    case 'resolve': return parseResolve(name, spec, given)
    case 'tail': {
      if (given === 'wait') return Number.POSITIVE_INFINITY
      return given === 'park' ? 0 : parseNumber(name, spec, given, parseDuration)
    }
    case 'listen': return readListen(name, spec, given)
    // A policy stays the text that it was given as: that is how it is stored, and shown when it changes.
    case 'recrawl': return typeof given === 'function' || (typeof given === 'string' && parseRecrawl(given)) ? given : refuse(name, spec, given)
    case 'function': return typeof given === 'function' ? given : refuse(name, spec, given)
    // The file is read where the gateways are opened; what it holds is checked here when it is given in its place.
    case 'gateway': return given === '' ? refuse(name, spec, given) : typeof given === 'string' ? given : parseGateways(given)
    case 'hostHeaders': return given === '' ? refuse(name, spec, given) : typeof given === 'string' ? given : parseHostHeaders(given)
    default: return spec.type satisfies never
  }
}

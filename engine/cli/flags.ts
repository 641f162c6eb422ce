/**
 * The flags of `sluice crawl`, made from the option tables of engine/core/options.ts: names, what they take, help texts
 * and defaults are written there once. Knows nothing of the package that reads the command line. Pure functions, apart
 * from the files that are named: `--resolve @FILE`, `--gateway` and `--host-headers` are read here, others are looked for.
 */
import fs from 'node:fs'
import { isIP } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { SluiceError, type ErrorCode } from '../core/errors.ts'
import { metavar } from '../core/option-values.ts'
import { crawlOptions, resolveCrawlOptions, resolveRunLimits, runOptions, type CrawlOptionsGiven, type OptionSpec, type RunLimitsGiven } from '../core/options.ts'
import { readGateways } from '../fetch/gateway-file.ts'
import { readHostHeaders } from '../fetch/host-headers-file.ts'
import { defaultText } from './human.ts'

export interface Flag {
  /** As commander takes it: `--delay <DURATION>`. */
  readonly flags: string
  readonly group: FlagGroup
  readonly help: string
  readonly isRepeatable: boolean
}

export const flagGroups = ['What to crawl:', 'Limits:', 'Politeness:', 'Network:', 'Output:', 'Engine:'] as const
export type FlagGroup = (typeof flagGroups)[number]

const tables = { ...crawlOptions, ...runOptions }

/** The compiler asks for a line here for each new option. */
const groupOf: Readonly<Record<keyof typeof tables, FlagGroup>> = {
  scope: 'What to crawl:', include: 'What to crawl:', exclude: 'What to crawl:', nearDuplicates: 'What to crawl:', linkElements: 'What to crawl:', recrawl: 'What to crawl:', traps: 'What to crawl:', priority: 'What to crawl:', dedupe: 'What to crawl:', sitemaps: 'What to crawl:', obey: 'What to crawl:', excludeHosts: 'What to crawl:',
  maxPages: 'Limits:', maxTimeMs: 'Limits:', maxBytes: 'Limits:', maxDepth: 'Limits:', maxBodyBytes: 'Limits:', tailMs: 'Limits:',
  maxQueuedPerHost: 'Limits:', maxQueuedPerDomain: 'Limits:', maxQueued: 'Limits:', domainBudget: 'Limits:', maxStoreBytes: 'Limits:', shedAfterMs: 'Limits:', maxQueriesPerPath: 'Limits:',
  userAgent: 'Politeness:', politeness: 'Politeness:', delayMs: 'Politeness:', concurrency: 'Politeness:', hostLimits: 'Politeness:', maxPerAddress: 'Politeness:', retries: 'Politeness:', hostPatienceMs: 'Politeness:', robots: 'Politeness:',
  timeoutMs: 'Network:', connections: 'Network:', requestsPerSecond: 'Network:', bytesPerSecond: 'Network:', allowAddress: 'Network:', resolve: 'Network:', ca: 'Network:', insecure: 'Network:', gateway: 'Network:', cookies: 'Network:', hostHeaders: 'Network:',
  dir: 'Output:', format: 'Output:', extract: 'Output:', simhash: 'Output:', shedLog: 'Output:',
  threads: 'Engine:', durability: 'Engine:', memoryBytes: 'Engine:', listen: 'Engine:',
}

const repeatableTypes: readonly string[] = ['patterns', 'cidrs', 'resolve', 'hostLimits']

/** Flags that are the command line's own. */
const ownFlags: readonly Flag[] = [
  { flags: '--seeds <FILE|->', group: 'What to crawl:', isRepeatable: false, help: 'read seeds from a file, one URL a line (may be gzip); -: from standard input' },
  { flags: '--progress <auto|plain|json|none>', group: 'Output:', isRepeatable: false, help: 'a live block on a terminal and a line every 10 s otherwise, always lines, JSON lines, or the summary alone (default: auto)' },
  { flags: '--verbose', group: 'Output:', isRepeatable: false, help: 'log what happens to standard error, and show stack traces of errors' },
]

function tableFlags(): Flag[] {
  const flags: Flag[] = []
  for (const [name, spec] of Object.entries(tables) as [keyof typeof tables, OptionSpec<unknown>][]) {
    if (spec.flag === undefined) continue
    const short = spec.short === undefined ? '' : `${spec.short}, `
    const takes = metavarOf(name, spec)
    const text = defaultText(spec)
    flags.push({
      flags: `${short}${spec.flag}${takes === '' ? '' : ` <${takes}>`}`,
      group: groupOf[name],
      help: text === undefined ? spec.help : `${spec.help} (default: ${text})`,
      isRepeatable: repeatableTypes.includes(spec.type),
    })
  }
  return flags
}

// A text is not always any text: these are what a user would call them. The rules are in the help.
const textMetavars: Readonly<Partial<Record<keyof typeof tables, string>>> = { dir: 'DIR', ca: 'FILE', extract: 'MODULE', shedLog: 'FILE', resolve: 'HOST=IP|@FILE', linkElements: 'ELEMENTS', dedupe: 'RULES', robots: 'obey|FILE', excludeHosts: 'FILE', obey: 'DIRECTIVES' }

function metavarOf(name: keyof typeof tables, spec: OptionSpec<unknown>): string {
  return textMetavars[name] ?? metavar(spec)
}

/** Every flag of `sluice crawl`, in the order of the groups. */
export const crawlFlags: readonly Flag[] = flagGroups.flatMap((group) => [...ownFlags, ...tableFlags()].filter((flag) => flag.group === group))

/** The name under which the value of `--max-pages` is found: `maxPages`. */
export function attributeOf(flag: string): string {
  return flag.replace(/^--/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Options of the crawl and of the run from the values of the flags. They are checked here, before a process is started
 * or a directory made; the texts themselves are passed on. Throws `bad_option`, `file_unreadable` and `extractor_unloadable`.
 */
export function optionsOfFlags(values: Readonly<Record<string, unknown>>): { readonly crawl: CrawlOptionsGiven; readonly run: RunLimitsGiven } {
  const crawl = pick(crawlOptions, values)
  const run = pick(runOptions, values)
  for (const [name, code] of fileOptions) {
    // The whole path is kept with the crawl, which may be continued from another directory.
    if (crawl[name] !== undefined) crawl[name] = readableFile(crawlOptions[name].flag, code, crawl[name] as string)
  }
  if (Array.isArray(crawl['resolve'])) crawl['resolve'] = (crawl['resolve'] as string[]).flatMap(expandResolve)
  // The map in place of the texts: a hosts file may have a hundred thousand names.
  const resolved = resolveCrawlOptions(crawl)
  if (crawl['resolve'] !== undefined) crawl['resolve'] = resolved.resolve
  readGateways(resolved.gateway)
  readHostHeaders(resolved.hostHeaders)
  resolveRunLimits(run)
  return { crawl, run }
}

const fileOptions = [['ca', 'file_unreadable'], ['extract', 'extractor_unloadable'], ['gateway', 'file_unreadable'], ['hostHeaders', 'file_unreadable']] as const

function readableFile(flag: string | undefined, code: ErrorCode, given: string): string {
  const file = given.startsWith('file:') ? fileURLToPath(given) : path.resolve(given)
  try {
    fs.accessSync(file, fs.constants.R_OK)
    return file
  } catch (error) {
    throw new SluiceError(code, `${flag}: expected a file, given ${given}: ${(error as Error).message}`, { cause: error })
  }
}

function pick(table: Readonly<Record<string, OptionSpec<unknown>>>, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given: Record<string, unknown> = {}
  for (const [name, spec] of Object.entries(table)) {
    const value = spec.flag === undefined ? undefined : values[attributeOf(spec.flag)]
    if (value !== undefined) given[name] = value
  }
  return given
}

function expandResolve(text: string): string[] {
  return text.startsWith('@') ? readHostsFile(text.slice(1)) : [text]
}

/** Lines `ADDRESS NAME...` with `#` comments, as in /etc/hosts, as `NAME=ADDRESS` texts. */
function readHostsFile(file: string): string[] {
  let text: string
  try {
    text = fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw new SluiceError('file_unreadable', `--resolve: expected a file of lines ADDRESS NAME, given @${file}: ${(error as Error).message}`, { cause: error })
  }
  return text.split('\n').flatMap((line, index) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (address === undefined || address === '') return []
    if (isIP(address) === 0 || names.length === 0) {
      throw new SluiceError('bad_option', `--resolve: expected ADDRESS NAME in line ${index + 1} of ${file}, given ${JSON.stringify(line.slice(0, 100))}`)
    }
    return names.map((name) => `${name}=${address}`)
  })
}

/**
 * Options of the demonstration web: one table of names, ranges and defaults, which also makes the command's flags.
 * Pure functions, any thread.
 */
import { SluiceError } from '../core/errors.ts'

export interface DemoWebOptions {
  /** Hosts, each with a name and, where the system has them, an address of its own. */
  readonly hosts?: number
  /** Mean pages per host; sizes are uneven. With `pagesDir` the default is one page for each file. */
  readonly pagesPerHost?: number
  /** Pages of the first host; the others then have `pagesPerHost` each. 0: sizes are uneven. Not with `pagesDir`. */
  readonly firstHostPages?: number
  readonly seed?: number
  readonly tls?: boolean
  /** 0 takes a free one. */
  readonly port?: number
  /** Folder of pages to serve in place of made ones. */
  readonly pagesDir?: string
  readonly latencyMs?: number
  /** Share of pages that are faulty, 0 to 1. */
  readonly faultShare?: number
  /** The edition that is served first, from 0, and how the next ones differ (see `changes.ts`). */
  readonly edition?: number
  readonly changeShare?: number
  readonly goneShare?: number
  /** Factor on the sizes of made pages. */
  readonly sizeScale?: number
  /** File to which one JSON line a request is appended (see `RequestEntry`). */
  readonly logFile?: string
}

export interface NumberOption {
  readonly name: 'hosts' | 'pagesPerHost' | 'firstHostPages' | 'seed' | 'port' | 'latencyMs' | 'faultShare' | 'sizeScale' | 'edition' | 'changeShare' | 'goneShare'
  readonly flag: string
  readonly min: number
  readonly max: number
  readonly whole: boolean
  readonly default: number
  readonly meaning: string
}

export const numberOptions: readonly NumberOption[] = [
  { name: 'hosts', flag: '--hosts', min: 1, max: 1_000_000, whole: true, default: 24, meaning: 'number of hosts' },
  { name: 'pagesPerHost', flag: '--pages-per-host', min: 1, max: 1_000_000, whole: true, default: 100, meaning: 'mean number of pages per host' },
  { name: 'firstHostPages', flag: '--first-host-pages', min: 0, max: 10_000_000, whole: true, default: 0, meaning: 'pages of the first host, all others having as many as --pages-per-host says; 0: sizes are uneven' },
  { name: 'seed', flag: '--seed', min: 0, max: 2 ** 31 - 1, whole: true, default: 1, meaning: 'the web is a function of this number' },
  { name: 'port', flag: '--port', min: 0, max: 65_535, whole: true, default: 0, meaning: 'port on every address; 0 takes a free one' },
  { name: 'latencyMs', flag: '--latency-ms', min: 0, max: 3_600_000, whole: false, default: 0, meaning: 'delay before each answer, in milliseconds' },
  { name: 'faultShare', flag: '--fault-share', min: 0, max: 1, whole: false, default: 0, meaning: 'share of pages that answer with a fault' },
  { name: 'sizeScale', flag: '--size-scale', min: 0, max: 10, whole: false, default: 1, meaning: 'factor on the sizes of pages' },
  { name: 'edition', flag: '--edition', min: 0, max: 1_000, whole: true, default: 0, meaning: 'the web as it is after so many rounds of changes' },
  { name: 'changeShare', flag: '--change-share', min: 0, max: 1, whole: false, default: 0, meaning: 'share of pages that change with each edition' },
  { name: 'goneShare', flag: '--gone-share', min: 0, max: 1, whole: false, default: 0, meaning: 'share of pages without dependents that are gone from edition 1 on' },
]

const otherNames = ['tls', 'pagesDir', 'logFile']

export type ResolvedOptions = Readonly<Record<NumberOption['name'], number>> & {
  readonly tls: boolean
  readonly pagesDir?: string
  readonly logFile?: string
}

/** Defaults filled in, ranges checked; throws `usage` with the option's name, what was expected and what was given. */
export function resolveOptions(options: DemoWebOptions): ResolvedOptions {
  for (const name of Object.keys(options)) {
    if (!otherNames.includes(name) && !numberOptions.some((option) => option.name === name)) {
      throw new SluiceError('usage', `${name}: no such option of the demonstration web`)
    }
  }
  const numbers = Object.fromEntries(numberOptions.map((option) => [option.name, checkedNumber(option, options[option.name])]))
  return Object.freeze({
    ...numbers as Record<NumberOption['name'], number>,
    tls: options.tls ?? false,
    ...(options.pagesDir === undefined ? {} : { pagesDir: options.pagesDir }),
    ...(options.logFile === undefined ? {} : { logFile: options.logFile }),
  })
}

function checkedNumber(option: NumberOption, given: number | undefined): number {
  if (given === undefined) return option.default
  const fits = given >= option.min && given <= option.max && (!option.whole || Number.isInteger(given))
  if (!fits) throw new SluiceError('usage', `${option.flag}: expected a ${option.whole ? 'whole ' : ''}number from ${option.min} to ${option.max}, given ${given}`)
  return given
}

/**
 * Numbers for people. Two kinds: exact texts that the command line would read back (`1s`, `250KB`, `4:1:32`), and short
 * ones for a progress display (`1m 12s`, `1.2 GB`). Pure functions.
 */
import type { OptionSpec } from '../core/options.ts'

const durationUnits = [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1_000], ['ms', 1]] as const
const sizeUnits = [['GB', 2 ** 30], ['MB', 2 ** 20], ['KB', 2 ** 10], ['', 1]] as const
const numbers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

function exact(value: number, units: readonly (readonly [string, number])[]): string {
  if (value === 0) return '0'
  const [name, factor] = units.find(([, factor]) => value % factor === 0) ?? units.at(-1)!
  return `${value / factor}${name}`
}

/** `1s`, `10m`, `500ms`: the largest unit in which it is whole. */
export function exactDuration(durationMs: number): string {
  return exact(durationMs, durationUnits)
}

/** `250KB`, `1MB`, `1000`. */
export function exactSize(bytes: number): string {
  return exact(bytes, sizeUnits)
}

/** `0.4s`, `42s`, `1m 12s`, `3h 05m`, `2d 03h`. */
export function shortDuration(durationMs: number): string {
  if (durationMs < 10_000) return `${(Math.floor(durationMs / 100) / 10).toFixed(1)}s`
  const seconds = Math.floor(durationMs / 1_000)
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${twoDigits(seconds % 60)}s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours}h ${twoDigits(minutes % 60)}m` : `${Math.floor(hours / 24)}d ${twoDigits(hours % 24)}h`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** `812 B`, `1.2 GB`; 1 KB = 1,024 bytes. */
export function shortSize(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']
  // 1,000 and not 1,024, so that there are never four digits before the unit.
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_024
    unit++
  }
  return `${value < 9.95 && unit > 0 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`
}

/** `12,345`. */
export function count(value: number): string {
  return numbers.format(value)
}

/** `1 page`, `12,345 pages`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** `0.4/s`, `171/s`. */
export function rate(perSecond: number): string {
  return `${perSecond < 9.95 ? perSecond.toFixed(1) : count(perSecond)}/s`
}

/** A path as a shell reads it. */
export function shellPath(file: string): string {
  return /[^\w@%+=:,./-]/.test(file) ? `'${file.replaceAll("'", String.raw`'\''`)}'` : file
}

/** `0%`, `0.3%`, `12%`. */
export function percent(share: number): string {
  const value = share * 100
  return `${value === 0 || value >= 9.95 ? value.toFixed(0) : value.toFixed(1)}%`
}

/** The default of an option as a user would type it; undefined when there is none to speak of. */
export function defaultText(spec: OptionSpec<unknown>): string | undefined {
  const value = spec.default
  if (typeof value === 'number') {
    // No limit, and numbers outside the option's own range, which stand for "decided at the start".
    if (value >= (spec.max ?? Number.POSITIVE_INFINITY) || value < (spec.min ?? 0)) return undefined
    if (spec.type === 'duration' || spec.type === 'tail') return exactDuration(value)
    return spec.type === 'size' ? exactSize(value) : String(value)
  }
  if (spec.type === 'concurrency') return Object.values(value as object).join(':')
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(',')
  return typeof value === 'string' ? value : undefined
}

/**
 * The log: JSON lines on standard error, one for each thing worth knowing. The only file that imports pino. URLs lose
 * their user names and passwords; headers are never logged.
 */
import { pino } from 'pino'
import { safeText } from './lines.ts'

export interface Log {
  debug(facts: Readonly<Record<string, unknown>>, message: string): void
}

/** Silent without `isVerbose`: what everybody must know is told in words. Synchronous, so that the last lines before a death are written. */
export function openLog(isVerbose: boolean, fd = 2): Log {
  return pino(
    { level: isVerbose ? 'debug' : 'silent', base: null, hooks: { logMethod(args, method) { method.apply(this, args.map(cleaned) as typeof args) } } },
    pino.destination({ dest: fd, sync: true }),
  )
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return safeText(value)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, typeof item === 'string' ? safeText(item) : item]))
}

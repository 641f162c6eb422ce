/**
 * What the command line writes to standard error: one line for each error, with its code. Pure but for `reportError`.
 */
import { sluiceErrorOf } from '../core/errors.ts'

/** Longer texts are cut; a line is for reading. */
const lineCharsMax = 1_000

/**
 * A text from outside as a part of one line: control characters (a terminal would obey them) become spaces, and user
 * names and passwords in URLs are left out.
 */
export function safeText(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g, ' ').replaceAll(/\/\/[^/?#@\s]+@/g, '//').slice(0, lineCharsMax)
}

/** `sluice: CODE: MESSAGE`. */
export function errorLine(code: string, message: string): string {
  return `sluice: ${code}: ${safeText(message)}`
}

/** Writes the line of an error, with its stack when asked for; answers the exit code. */
export function reportError(error: unknown, isVerbose: boolean, err: { write(text: string): unknown } = process.stderr): number {
  const known = sluiceErrorOf(error)
  err.write(`${errorLine(known.code, known.message)}\n`)
  if (isVerbose) err.write(`${(error as Error | undefined)?.stack ?? ''}\n`)
  return known.exitCode
}

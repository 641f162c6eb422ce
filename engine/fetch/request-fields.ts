/** The header fields of a request, as flat lists: name, value, name, value. Pure. */
import { SluiceError } from '../core/errors.ts'

/** The fields of a request, with those given in the place of ours that have the same name. `given`: names in lower case. */
export function withFields(ours: readonly string[], given: readonly string[]): readonly string[] {
  if (given.length === 0) return ours
  const names = new Set(given.filter((_, at) => at % 2 === 0))
  return [...ours.filter((_, at) => !names.has(ours[at - at % 2]!.toLowerCase())), ...given]
}

/** A user agent that can be sent. Throws `bad_option`. */
export function checkedUserAgent(text: string): string {
  // RFC 9110 section 5.5: visible ASCII, with spaces between.
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) {
    throw new SluiceError('bad_option', `--user-agent: expected printable ASCII, given ${JSON.stringify(text).slice(0, 200)}`)
  }
  return text
}

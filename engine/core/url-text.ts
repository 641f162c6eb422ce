/**
 * What is said of the text of a URL: why it is not fetched, and whether it names a user. A text may hold a password, so
 * what goes into messages is made here. Leaf module; runs in workers and on the main thread.
 */
import { refusalOf, type Base, type UrlFault } from './fetch-url.ts'
import { limits } from './limits.ts'

const faultMessages: Readonly<Record<UrlFault, string>> = {
  invalid: 'not an http or https URL',
  scheme: 'not an http or https URL',
  too_long: `longer than ${limits.urlBytesMax} bytes`,
  port: 'its port belongs to another protocol than HTTP',
}

/** Why `fetchUrl` gave nothing for a text, as a sentence. */
export function whyNotFetched(text: string, base?: Base): string {
  return faultMessages[refusalOf(text, base)]
}

/** Whether a text that `fetchUrl` took has a user name or a password in it, which its answer has not. */
export function namesUser(text: string, base?: Base): boolean {
  if (!text.includes('@')) return false
  const { username, password } = new URL(text, base?.href)
  return username !== '' || password !== ''
}

/** A text for messages: all before its last `@` may be a password, since the text may be no URL at all. */
export function withoutUser(text: string): string {
  return text.replace(/^(\s*(?:[a-z][a-z\d+.-]*:)?[/\\]*).*@/is, '$1***@')
}

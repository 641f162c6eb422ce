/**
 * `5; url=/next`, as a meta element or a header says it (HTML standard, "shared declarative refresh steps"). Pure.
 */

export interface Refresh {
  readonly delaySeconds: number
  readonly url: string
}

const SYNTAX = /^[\t\n\f\r ]*(\d*)(?:\.[\d.]*)?(?:[\t\n\f\r ]*[;,]?[\t\n\f\r ]*)(.*)$/s
const URL_PREFIX = /^url[\t\n\f\r ]*=[\t\n\f\r ]*/i

/** Undefined when it names no address (then the page reloads itself) or is no refresh at all. */
export function parseRefresh(content: string): Refresh | undefined {
  const match = SYNTAX.exec(content)
  if (match === null) return undefined
  const [, digits = '', rest = ''] = match
  const before = content.slice(0, content.length - rest.length)
  // A time, at least a dot, and something that ends it.
  if (!/[\d.]/.test(before) || !/[\t\n\f\r ;,]$/.test(before)) return undefined
  const url = unquoted(rest)
  return url === '' ? undefined : { delaySeconds: Math.min(Number(digits), Number.MAX_SAFE_INTEGER), url }
}

function unquoted(text: string): string {
  const named = URL_PREFIX.exec(text)
  // A text that begins with `u` and is no `url=` is an address as it stands, quotes included.
  if (named === null && /^u/i.test(text)) return text.trim()
  const value = text.slice(named?.[0].length ?? 0)
  const quote = value[0]
  if (quote !== '"' && quote !== "'") return value.trim()
  const end = value.indexOf(quote, 1)
  return value.slice(1, end === -1 ? undefined : end).trim()
}

/**
 * noindex, nofollow and noarchive, from meta elements and from X-Robots-Tag. There is no standard; the rules are those
 * that Google documents ("Robots meta tag, data-nosnippet, and X-Robots-Tag specifications") and MDN repeats: names in any
 * case, a name of an agent before its directives, and of several that speak to us what forbids more holds, so that all
 * are added up. Pure; runs in a parse worker.
 */
import { limits } from '../../engine/core/limits.ts'
import { productTokenOf } from '../../engine/core/product-token.ts'

export interface RobotsDirectives {
  readonly noindex?: true
  readonly nofollow?: true
  readonly noarchive?: true
}

/** Directives that have a value behind a colon, and so look like an agent's name. */
const withValue = /^(?:unavailable_after|max-snippet|max-image-preview|max-video-preview)$/i

/** What stands before the first colon, if that is an agent: one word with a letter in it, so neither a date nor a time of day. */
function agentOf(part: string): string | undefined {
  const colon = part.indexOf(':')
  const name = part.slice(0, Math.max(0, colon)).trim()
  // Apart: in one expression they take time quadratic in the length of what is no agent.
  return name === '*' || (/[a-z]/i.test(name) && !/\s/.test(name) && !withValue.test(name)) ? name : undefined
}

/**
 * Reads directives, separated by commas: each text is one header field or one meta element. A part may begin with
 * `agent:`; from there to the next agent of the same text they are for that one alone, and count when it is ours (`agent`
 * is our product token, in lower case).
 */
export function readDirectives(texts: readonly string[], agent = ''): RobotsDirectives {
  let noindex = false
  let nofollow = false
  let noarchive = false
  for (const text of texts) {
    let isForUs = true
    for (const part of text.slice(0, limits.directivesCharsMax).split(',')) {
      const named = agentOf(part)
      if (named !== undefined) isForUs = named === '*' || productTokenOf(named).toLowerCase() === agent
      if (!isForUs) continue
      const directive = (named === undefined ? part : part.slice(part.indexOf(':') + 1)).trim().toLowerCase()
      noindex ||= directive === 'noindex' || directive === 'none'
      nofollow ||= directive === 'nofollow' || directive === 'none'
      noarchive ||= directive === 'noarchive'
    }
  }
  return { ...(noindex && { noindex }), ...(nofollow && { nofollow }), ...(noarchive && { noarchive }) }
}

/**
 * noindex and nofollow, from meta elements and from X-Robots-Tag. Pure; runs in a parse worker.
 */
export interface RobotsDirectives {
  readonly noindex?: true
  readonly nofollow?: true
}

const withValue = /^(?:unavailable_after|max-snippet|max-image-preview|max-video-preview)$/i

/**
 * Reads directives, separated by commas. In a header a part may begin with `agent:`; what follows it is for that agent
 * alone, and counts when it is ours (`agent` is our product token, in lower case).
 */
export function readDirectives(texts: readonly string[], agent = ''): RobotsDirectives {
  let noindex = false
  let nofollow = false
  for (const text of texts) {
    let isForUs = true
    for (const part of text.split(',')) {
      const named = /^\s*([\w-]+)\s*:(.*)$/s.exec(part)
      const isAgent = named !== null && !withValue.test(named[1]!)
      if (isAgent) isForUs = named[1]!.toLowerCase() === agent
      const directive = (isAgent ? named[2]! : part).trim().toLowerCase()
      if (!isForUs) continue
      noindex ||= directive === 'noindex' || directive === 'none'
      nofollow ||= directive === 'nofollow' || directive === 'none'
    }
  }
  return { ...(noindex && { noindex }), ...(nofollow && { nofollow }) }
}

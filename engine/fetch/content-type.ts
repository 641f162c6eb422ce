/**
 * Which bodies are worth reading: what may hold text or links. Decided after the headers, so that the body of a film
 * costs no bytes. Pure; runs anywhere.
 */

/** Media types outside `text/` that are read; `+xml` and `+json` types are read too. */
const readable = new Set(['application/xhtml+xml', 'application/xml', 'application/json', 'application/ld+json'])

/**
 * Whether a body is read. Only a 2xx answer is refused: an error page or a redirect of another type is small, and its
 * record should not say "unsupported type" instead of its status. A missing type is read, since the bytes will tell.
 */
export function acceptBody(status: number, contentType: string | undefined): 'read' | 'refuse' {
  if (status < 200 || status > 299 || contentType === undefined) return 'read'
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  // A value that is no media type says nothing (MIME Sniffing standard, section 4.4), so the bytes will tell.
  if (!/^[^\s/]+\/[^\s/]+$/.test(type)) return 'read'
  const text = type.startsWith('text/') || readable.has(type) || type.endsWith('+xml') || type.endsWith('+json')
  return text ? 'read' : 'refuse'
}

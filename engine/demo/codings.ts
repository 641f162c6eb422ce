/**
 * Chooses the content coding of an answer: the page's own preference where the client accepts it, else the next best.
 * RFC 9110 section 12.5.3. Pure but for a memory of the few header values that a crawl sends.
 */
import type { Coding } from './types.ts'

const remembered = new Map<string, ReadonlySet<string>>()
const rememberedMax = 64

export function codingFor(header: string | undefined, preferred: Coding): Coding {
  if (header === undefined) return 'identity'
  let accepted = remembered.get(header)
  if (accepted === undefined) {
    accepted = acceptedCodings(header)
    if (remembered.size < rememberedMax) remembered.set(header, accepted)
  }
  for (const coding of [preferred, 'gzip', 'br'] as const) {
    if (coding === 'identity' || accepted.has(coding)) return coding
  }
  return 'identity'
}

function acceptedCodings(header: string): Set<string> {
  const accepted = new Set<string>()
  const refused = new Set<string>()
  for (const part of header.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim())
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    ;(isRefused ? refused : accepted).add(coding)
  }
  if (accepted.has('*')) for (const coding of ['gzip', 'br']) if (!refused.has(coding)) accepted.add(coding)
  return accepted
}

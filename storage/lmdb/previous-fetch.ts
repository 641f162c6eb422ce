/**
 * What a claim tells of an earlier fetch, from the page row that it left. Main thread; reads only.
 */
import type { PreviousFetch } from '../../engine/core/types.ts'
import { decodePageRow } from './codec.ts'
import type { Tables } from './environment.ts'

/** `seen`: the key of the URL. Undefined when it never had an outcome. */
export function previousFetch({ pages }: Pick<Tables, 'pages'>, seen: Uint8Array): PreviousFetch | undefined {
  const row = pages.get(seen)
  if (row === undefined) return undefined
  const { fetchedAtMs, status, contentHash, etag, lastModified, payloadDigest, payloadAtMs, due, goneTimes } = decodePageRow(row)
  return {
    fetchedAtMs, status, ...(contentHash && { contentHash }), ...(etag !== undefined && { etag }), ...(lastModified !== undefined && { lastModified }),
    ...(payloadDigest && { payloadDigest }), ...(payloadAtMs !== undefined && { payloadAtMs }), ...(due && { intervalMs: due.intervalMs }), ...(goneTimes !== undefined && { goneTimes }),
  }
}

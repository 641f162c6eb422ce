/**
 * Rules against addresses that a site makes without end: calendars, filters, paths that grow at each step. They look at
 * one fetch URL (`fetchUrl` gave it, so it is ASCII and has a path), as text, without parsing it again. Leaf module;
 * workers and the main thread must agree on `queryPathHash`, so this is the only place that makes it.
 *
 *   url_length    longer than `linkCharsMax`: sitemaps.org asks for fewer than 2,048 characters
 *   path_depth    more segments than `pathSegmentsMax`: Heritrix's TooManyPathSegments, and its default
 *   path_repeat   the same run of one to three segments `pathRepeatsMax + 1` times in a row: Heritrix's
 *                 PathologicalPath and its default. As there, what stands behind the last slash is no segment of a run:
 *                 of 66,587 links of the corpus pages that would refuse three more, all good (`/i/1423529/40875/0/0/0`)
 *   query_growth  too many query strings of one path; the count lies elsewhere (storage/query-growth.ts)
 */
import * as crypto from 'node:crypto'
import { limits } from './limits.ts'

const RUN_SEGMENTS_MAX = 3

/** Where the segments of the path in hand begin, and one place more, where the last one's `/` would be. Used again. */
const starts = new Int32Array(limits.pathSegmentsMax + 2)

function hostStart(url: string): number {
  return url.indexOf('//') + 2
}

/** End of the path: at the query or at the end. */
function pathEnd(url: string): number {
  const query = url.indexOf('?')
  return query === -1 ? url.length : query
}

/** Fills `starts` and answers how many segments there are; a number above the limit says no more than that. */
function splitPath(url: string, end: number): number {
  let count = 0
  let start = url.indexOf('/', hostStart(url)) + 1
  while (start < end && count <= limits.pathSegmentsMax) {
    starts[count] = start
    count += 1
    const slash = url.indexOf('/', start)
    start = slash === -1 || slash >= end ? end + 1 : slash + 1
    starts[count] = start
  }
  return count
}

function isSameSegment(url: string, one: number, other: number): boolean {
  const at = starts[one]!
  const length = starts[one + 1]! - at
  const from = starts[other]!
  if (starts[other + 1]! - from !== length) return false
  for (let index = 0; index < length - 1; index += 1) if (url.charCodeAt(at + index) !== url.charCodeAt(from + index)) return false
  return true
}

function repeats(url: string, count: number): boolean {
  for (let run = 1; run <= RUN_SEGMENTS_MAX && run * (limits.pathRepeatsMax + 1) <= count; run += 1) {
    let same = 0
    for (let index = run; index < count; index += 1) {
      same = isSameSegment(url, index, index - run) ? same + 1 : 0
      if (same === run * limits.pathRepeatsMax) return true
    }
  }
  return false
}

/** Why a link to this URL looks generated, or undefined. Not for the target of a redirect: it is one URL, and nothing else leads to it. */
export function trapOf(url: string): 'url_length' | 'path_depth' | 'path_repeat' | undefined {
  if (url.length > limits.linkCharsMax) return 'url_length'
  const end = pathEnd(url)
  const count = splitPath(url, end)
  if (count > limits.pathSegmentsMax) return 'path_depth'
  return repeats(url, url[end - 1] === '/' ? count : count - 1) ? 'path_repeat' : undefined
}

/** 8 bytes: the first 64 bits of SHA-256 of host, port and path; undefined for a URL without a query. */
export function queryPathHash(url: string): Uint8Array | undefined {
  const query = url.indexOf('?')
  if (query === -1 || query === url.length - 1) return undefined
  return crypto.hash('sha256', url.slice(hostStart(url), query), 'buffer').subarray(0, 8)
}

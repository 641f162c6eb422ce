/**
 * Paths of pages and back: the number of a page stands in its path, the rest is a hash of it, so a path is checked by
 * making it again. Pure functions, any thread.
 */
import { mix } from './random.ts'
import { slug } from './words.ts'

const sections = ['news', 'sport', 'culture', 'guide', 'shop', 'blog', 'archive', 'science'] as const

/** Path and query of page `index` of host `host`. No path begins with /private/. */
export function pagePath(seed: number, host: number, index: number): string {
  if (index === 0) return '/'
  const hash = mix(seed, host, index + 1_000)
  const section = sections[hash & 7]!
  const form = (hash >>> 3) % 16
  if (form === 0) return `/${section}/item.php?id=${index}&view=full`
  if (form === 1) return `/${section}/list?page=${index}`
  const name = `${slug(mix(hash, index))}-${index}`
  if (form < 5) return `/${section}/${name}/`
  return `/${section}/${2018 + ((hash >>> 8) & 7)}/${name}.html`
}

const numberInPath = /^\/[a-z]+\/(?:item\.php\?id=(\d{1,9})&|list\?page=(\d{1,9})$|(?:20\d\d\/)?[\w%-]*-(\d{1,9})(?:\.html|\/)$)/

/** The page that a path names, or -1. */
export function pageIndex(seed: number, host: number, path: string): number {
  if (path === '/') return 0
  const match = numberInPath.exec(path)
  if (match === null) return -1
  const index = Number(match[1] ?? match[2] ?? match[3])
  return pagePath(seed, host, index) === path ? index : -1
}

export const privateCount = 2

export function privatePath(seed: number, host: number, index: number): string {
  return index === 0 ? `/private/report-${mix(seed, host, 7) % 1_000}-0.html` : `/private/drafts/note-1.html?rev=${mix(seed, host, 8) % 90}`
}

export function privateIndex(seed: number, host: number, path: string): number {
  if (!path.startsWith('/private/')) return -1
  for (let index = 0; index < privateCount; index++) {
    if (privatePath(seed, host, index) === path) return index
  }
  return -1
}

/** Path of a hop inside the redirect chain that begins at `path`. */
export function hopPath(path: string, hop: number): string {
  return `${path}${path.includes('?') ? '&' : '?'}hop=${hop}`
}

/** Splits a hop's path; hop 0 when it is none. */
export function splitHop(path: string): { readonly path: string, readonly hop: number } {
  const match = /[?&]hop=([12])$/.exec(path)
  return match === null ? { path, hop: 0 } : { path: path.slice(0, match.index), hop: Number(match[1]) }
}

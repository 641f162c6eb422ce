/**
 * The links of a page: tree links first (they make every page reachable), then links of the text, in the many ways in
 * which real pages write them. Invariant: `url` is what a standard URL parser makes of `href` at the page's own URL.
 * Pure functions, any thread.
 */
import { below, dice, mix, pick, type Dice } from './random.ts'
import type { Link, Page, Place } from './types.ts'

/** What links need to know of the web; `Site` is it. */
export interface Web {
  readonly options: { readonly seed: number, readonly scheme: string }
  readonly layout: {
    readonly hosts: number
    size(host: number): number
    children(index: number, count: number): { readonly first: number, readonly last: number }
  }
  origin(host: number): string
  authority(host: number): string
  place(host: number, index: number): Place
  privatePlace(host: number, index: number): Place
}

const navLinksMax = 100
const textLinksMax = 24
const teaserLinksMax = 24
/** Bytes of document that one link of the text stands for on a small page. */
const bytesPerTextLink = 200
const textLinksMin = 4

/** Links of a made page's own part. */
export function ownLinks(web: Web, page: Page): Link[] {
  const roll = dice(mix(web.options.seed ^ page.hostIndex, page.index, page.kind === 'private' ? 2 : 1))
  const links: Link[] = page.kind === 'private' ? [] : treeTargets(web, page).map((target) => linkTo(web, page, target, roll))
  const room = Math.floor((page.bytesTarget - 4_096) / bytesPerTextLink)
  const count = Math.max(textLinksMin, Math.min(textLinksMax, room, 4 * web.layout.size(page.hostIndex)))
  for (let index = 0; index < count; index++) {
    const link = linkTo(web, page, textTarget(web, page, roll), roll)
    links.push(link)
    // Two links that differ by nothing but their fragment are one page.
    if (link.url.includes('#')) links.push({ href: link.href + '-more', url: link.url + '-more' })
  }
  for (let index = 0; index < 1 + below(roll, 2); index++) {
    links.push(linkTo(web, page, web.privatePlace(page.hostIndex, index), roll))
  }
  links.push(
    { href: '#top', url: page.url + '#top' },
    { href: `mailto:desk@${page.host}?subject=${page.index}`, url: '' },
    { href: pick(roll, ['javascript:void(0)', 'tel:+4930123456', 'ftp://files.example/pub/', 'data:text/plain,none', 'http://']), url: '' },
  )
  return links
}

/** Links of the block that is added to given pages: absolute, since the page may hold a `<base>` of its own. */
export function blockLinks(web: Web, page: Page): Link[] {
  const roll = dice(mix(web.options.seed ^ page.hostIndex, page.index, 3))
  const targets = page.kind === 'private' ? [] : treeTargets(web, page)
  for (let index = 0; index < 12; index++) targets.push(textTarget(web, page, roll))
  targets.push(web.privatePlace(page.hostIndex, below(roll, 2)))
  return targets.map(({ url }) => ({ href: escapeAttribute(url), url }))
}

/**
 * Links of a list that many pages of a host share, so nothing in it is relative to a page. List 0 is the navigation:
 * the host's first pages. The others are teasers.
 */
export function listLinks(web: Web, host: number, list: number): Link[] {
  const size = web.layout.size(host)
  const roll = dice(mix(web.options.seed ^ host, list, 9))
  const count = Math.min(list === 0 ? navLinksMax : teaserLinksMax, size)
  const links: Link[] = []
  for (let index = 0; index < count; index++) {
    const { url, path } = list === 0 ? web.place(host, index) : web.place(host, below(roll, size))
    const form = roll()
    const href = form < 0.12 ? url : form < 0.24 ? `//${web.authority(host)}${path}` : path
    links.push({ href: escapeAttribute(href), url })
  }
  return links
}

function treeTargets(web: Web, page: Page): Place[] {
  const targets: Place[] = []
  const own = web.layout.children(page.index, web.layout.size(page.hostIndex))
  for (let index = own.first; index <= own.last; index++) targets.push(web.place(page.hostIndex, index))
  if (page.index === 0) {
    const hosts = web.layout.children(page.hostIndex, web.layout.hosts)
    for (let host = hosts.first; host <= hosts.last; host++) targets.push(web.place(host, 0))
  }
  return targets
}

/** One link in ten leaves the host; within it, early pages are linked more often than late ones. */
function textTarget(web: Web, page: Page, roll: Dice): Place {
  const host = roll() < 0.1 ? below(roll, web.layout.hosts) : page.hostIndex
  return web.place(host, Math.floor(web.layout.size(host) * roll() ** 1.5))
}

function linkTo(web: Web, page: Page, target: Place, roll: Dice): Link {
  const fragment = roll() < 0.08 ? `#part-${below(roll, 9)}` : ''
  const form = roll()
  let href: string
  if (target.hostIndex !== page.hostIndex) {
    href = form < 0.7 ? target.url : `//${web.authority(target.hostIndex)}${target.path}`
  } else if (form < 0.45) href = target.path
  else if (form < 0.7) href = relativePath(page.path, target.path)
  else if (form < 0.9) href = target.url
  else if (form < 0.97) href = `//${web.authority(target.hostIndex)}${target.path}`
  else href = target.url.replace(/^[^/]+\/\/[^/]+/, (origin) => origin.toUpperCase())
  return { href: escapeAttribute(href) + fragment, url: target.url + fragment }
}

/** `to` as seen from `from`, both absolute paths. */
function relativePath(from: string, to: string): string {
  const script = from.split('?', 1)[0]!
  if (to.startsWith(`${script}?`)) return to.slice(script.length)
  const folder = script.slice(0, script.lastIndexOf('/') + 1)
  if (to.startsWith(folder)) return to.slice(folder.length) || './'
  const up = folder.split('/').length - 2
  return '../'.repeat(up) + to.slice(1)
}

function escapeAttribute(href: string): string {
  return href.includes('&') ? href.replaceAll('&', '&amp;') : href
}

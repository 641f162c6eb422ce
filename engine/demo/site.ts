/**
 * The demonstration web: many hosts full of linked pages, as a pure function of (seed, URL). Nothing is stored per
 * page, so a server, a test and a benchmark in three processes agree about every page without talking.
 *
 * Invariant: every page of `allPages` can be reached from the seeds through pages that answer well (see layout.ts).
 * No I/O; any thread.
 */
import { fetchUrl } from '../core/fetch-url.ts'
import { Layout } from './layout.ts'
import { mix, normal, share } from './random.ts'
import { hopPath, pageIndex, pagePath, privateIndex, privatePath, splitHop } from './paths.ts'
import { blockLinks, listLinks, ownLinks } from './links.ts'
import { faults, type Coding, type Fault, type Link, type Page, type Place } from './types.ts'

export interface SiteOptions {
  readonly scheme: 'http' | 'https'
  readonly port: number
  readonly hosts: number
  /** Pages in the whole web. */
  readonly pages: number
  readonly seed: number
  /** Of the first host, the others having equal shares of the rest; 0 or absent: sizes are uneven. */
  readonly firstHostPages?: number
  /** Share of all pages that are faulty, 0 to 1; above the share of leaves (about 7/8) it has no further effect. */
  readonly faultShare: number
  /** Share of the pages that change with each edition (see changes.ts), and of those without dependents that are gone from the first on. */
  readonly changeShare?: number
  readonly goneShare?: number
  /** Factor on the size of made pages. */
  readonly sizeScale: number
  /** `made`: bodies of this web's own. `given`: a block of links is added to bodies from a folder. */
  readonly bodies: 'made' | 'given'
}

/** Decoded sizes of pages on the web: log-normal; median and mean as in HTTP Archive's sample of HTML bodies. */
const bytesMedian = 138 * 1024
const bytesMean = 242 * 1024
const bytesSigma = Math.sqrt(2 * Math.log(bytesMean / bytesMedian))
const bytesMin = 2 * 1024
const bytesMax = Math.floor(2.6 * 1024 * 1024)

/** From this size on a page carries lists that it shares with others of its host; smaller ones would be nothing else. */
const listsBytesMin = 24 * 1024

/** Lists of links of a host: the navigation, which is 0, and teasers. */
export const listsPerHost = 13

/** Hops between the first URL of a redirect chain and its target. */
export const chainHops = 2

export class Site {
  readonly options: SiteOptions
  readonly layout: Layout
  /** Origins by host, filled as they are asked for: a page asks for a hundred, most for the same. */
  readonly #origins: string[] = []

  constructor(options: SiteOptions) {
    this.options = options
    this.layout = new Layout({ hosts: options.hosts, pages: options.pages, seed: options.seed, firstHostPages: options.firstHostPages ?? 0 })
  }

  /** The front page of the first host: the trees lead from it to every page. */
  seeds(): string[] {
    return [this.origin(0) + '/']
  }

  origin(host: number): string {
    return this.#origins[host] ??= `${this.options.scheme}://${this.authority(host)}`
  }

  /** Name with port, the port left out where the scheme implies it, as URLs are written. */
  authority(host: number): string {
    const { scheme, port } = this.options
    const implied = port === (scheme === 'https' ? 443 : 80)
    return this.layout.hostName(host) + (implied ? '' : `:${port}`)
  }

  /** The page that a URL names, its fragment aside; undefined when the web has none there. */
  pageAt(url: string): Page | undefined {
    const href = fetchUrl(url)
    if (href === undefined) return undefined
    const { hostname, pathname, search } = new URL(href)
    return this.find(hostname, pathname + search)
  }

  /** `pageAt` for what a request carries: a host name and a path with its query. */
  find(host: string, path: string): Page | undefined {
    const { seed } = this.options
    const hostIndex = this.layout.hostIndex(host)
    if (hostIndex < 0) return undefined
    const privateAt = privateIndex(seed, hostIndex, path)
    if (privateAt >= 0) return this.privatePage(hostIndex, privateAt)
    const parts = splitHop(path)
    const index = pageIndex(seed, hostIndex, parts.path)
    if (index < 0 || index >= this.layout.size(hostIndex)) return undefined
    const page = this.page(hostIndex, index)
    if (parts.hop === 0) return page
    return page.fault === 'redirect_chain' ? { ...page, kind: 'hop', hop: parts.hop, path, url: this.origin(hostIndex) + path } : undefined
  }

  place(hostIndex: number, index: number): Place {
    const path = pagePath(this.options.seed, hostIndex, index)
    return { url: this.origin(hostIndex) + path, hostIndex, path }
  }

  privatePlace(hostIndex: number, index: number): Place {
    const path = privatePath(this.options.seed, hostIndex, index)
    return { url: this.origin(hostIndex) + path, hostIndex, path }
  }

  page(hostIndex: number, index: number): Page {
    const hash = mix(this.options.seed, hostIndex, index)
    return {
      ...this.place(hostIndex, index), host: this.layout.hostName(hostIndex), kind: 'page', index, hop: 0,
      bytesTarget: Math.round(pageBytes(hash) * this.options.sizeScale),
      coding: preferredCoding(hash),
      fault: this.#faultOf(hostIndex, index, hash),
    }
  }

  privatePage(hostIndex: number, index: number): Page {
    return {
      ...this.privatePlace(hostIndex, index), host: this.layout.hostName(hostIndex), kind: 'private', index, hop: 0,
      bytesTarget: bytesMin, coding: 'gzip', fault: 'none',
    }
  }

  /** Every page that robots.txt allows, faulty ones included, host by host. */
  *allPages(): Generator<Page, void, undefined> {
    for (let host = 0; host < this.layout.hosts; host++) yield* this.hostPages(host)
  }

  *hostPages(host: number): Generator<Page, void, undefined> {
    const size = this.layout.size(host)
    for (let index = 0; index < size; index++) yield this.page(host, index)
  }

  /** What robots.txt forbids to a crawler that it does not name. */
  robotsDisallowed(url: string): boolean {
    return /^\/(private|cgi-bin)\//.test(new URL(url).pathname)
  }

  /** Links of the page's own part, in order; the shared lists follow them in the document. */
  ownLinks(page: Page): readonly Link[] {
    if (page.kind === 'hop') return []
    return this.options.bodies === 'given' ? blockLinks(this, page) : ownLinks(this, page)
  }

  listLinks(host: number, list: number): readonly Link[] {
    return listLinks(this, host, list)
  }

  /** Numbers of the lists in a page: the navigation and two teasers. */
  listsOf(page: Page): readonly number[] {
    if (this.options.bodies === 'given' || page.kind !== 'page' || page.bytesTarget < listsBytesMin) return []
    const first = mix(page.hostIndex, page.index, 17) % (listsPerHost - 1)
    return [0, 1 + first, 1 + (first + 5) % (listsPerHost - 1)]
  }

  /**
   * Absolute http(s) URLs of a page's links (`<a href>`), in document order, repetitions and fragments kept. In a web
   * of given bodies: those of the added block. Empty for a faulty page, whatever it still shows.
   */
  linksOf(page: Page): string[] {
    if (page.fault !== 'none') return []
    const lists = this.listsOf(page).map((list) => this.listLinks(page.hostIndex, list))
    return [this.ownLinks(page), ...lists].flat().filter((link) => link.url !== '').map((link) => link.url)
  }

  /** Where a redirecting page leads: to its parent in the tree, which always answers and is linked from elsewhere. */
  redirectTarget(page: Page): string {
    if (page.fault === 'redirect_self') return page.url
    if (page.fault === 'redirect_chain' && page.hop < chainHops) {
      const start = this.place(page.hostIndex, page.index)
      return this.origin(page.hostIndex) + hopPath(start.path, page.hop + 1)
    }
    return this.place(page.hostIndex, this.layout.parent(page.index)).url
  }

  #faultOf(host: number, index: number, hash: number): Fault | 'none' {
    const { faultShare } = this.options
    if (faultShare === 0 || !this.layout.isLeaf(host, index)) return 'none'
    const shareOfLeaves = faultShare * this.layout.size(host) / this.layout.leaves(host)
    if (share(hash, 3) >= shareOfLeaves) return 'none'
    return faults[mix(hash, 4) % faults.length]!
  }
}

function pageBytes(hash: number): number {
  const bytes = bytesMedian * Math.exp(bytesSigma * normal(share(hash, 1), share(hash, 2)))
  return Math.min(bytesMax, Math.max(bytesMin, bytes))
}

/** On the web most HTML comes as gzip, a part as brotli, some as it is. */
function preferredCoding(hash: number): Coding {
  const roll = share(hash, 5)
  return roll < 0.7 ? 'gzip' : roll < 0.9 ? 'br' : 'identity'
}

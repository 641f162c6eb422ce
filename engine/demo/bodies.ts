/**
 * Bodies of made pages. A document is its own part (head, text, tree links), then shared pieces:
 *
 *   own part, a few KB | lists of links that pages of a host share | filler to the page's size | foot
 *
 * Links stand before the filler, so a crawler that cuts bodies at 250 KB still finds them all. Invariant: the decoded
 * bytes are a function of (seed, URL), the coding aside. Main thread of the web's process.
 */
import { dice, mix, pick, type Dice } from './random.ts'
import { makePieces, join, type Piece } from './pieces.ts'
import { chooseBlocks, fillerOf, type Filler } from './filler.ts'
import { listsPerHost, type Site } from './site.ts'
import type { Coding, Link, Page } from './types.ts'
import { sentence, words } from './words.ts'

/** Where a server gets bodies from. */
export interface Bodies {
  contentType(page: Page): string
  /** The encoded body in chunks. */
  body(page: Page, coding: Coding): Promise<readonly Buffer[]> | readonly Buffer[]
}

/** Lists kept ready as pieces, of 8 to 25 KB each. */
const piecesMax = 2_048

/** Below this many pages a host's lists are not kept: a piece costs more to make than it would save. */
const hostPagesForPieces = 16

const foot = Buffer.from('</main>\n<footer class="page-footer"><p>&copy; 2025 The Demonstration Web &middot; All pages are made up.</p></footer>\n</body>\n</html>\n')

export class MadeBodies implements Bodies {
  readonly #site: Site
  readonly #filler: Filler
  readonly #foot: Piece
  readonly #lists = new Map<number, Promise<Piece>>()

  private constructor(site: Site, filler: Filler, foot: Piece) {
    this.#site = site
    this.#filler = filler
    this.#foot = foot
  }

  static async open(site: Site): Promise<MadeBodies> {
    const [footPiece] = await makePieces([foot])
    return new MadeBodies(site, await fillerOf(site.options.seed), footPiece!)
  }

  contentType(page: Page): string {
    return page.bytesTarget % 5 === 0 ? 'text/html' : 'text/html; charset=utf-8'
  }

  async body(page: Page, coding: Coding): Promise<readonly Buffer[]> {
    const site = this.#site
    const lists = site.listsOf(page)
    const shared = site.layout.size(page.hostIndex) >= hostPagesForPieces
    let html = ownHtml(site, page)
    if (!shared) for (const list of lists) html += this.#listHtml(page.hostIndex, list)
    const own = Buffer.from(html)
    const pieces = shared ? await Promise.all(lists.map((list) => this.#list(page.hostIndex, list))) : []
    let bytes = own.length + foot.length
    for (const piece of pieces) bytes += piece.plain.length
    pieces.push(...chooseBlocks(this.#filler, page.bytesTarget - bytes, mix(page.hostIndex, page.index, 6)), this.#foot)
    return join(own, pieces, coding)
  }

  #listHtml(host: number, list: number): string {
    return listHtml(this.#site.listLinks(host, list), list, mix(this.#site.options.seed, host, list))
  }

  #list(host: number, list: number): Promise<Piece> {
    const key = host * listsPerHost + list
    let piece = this.#lists.get(key)
    if (piece === undefined) {
      piece = makePieces([Buffer.from(this.#listHtml(host, list))]).then((pieces) => pieces[0]!)
      if (this.#lists.size >= piecesMax) this.#lists.delete(this.#lists.keys().next().value!)
      this.#lists.set(key, piece)
    }
    return piece
  }
}

function ownHtml(site: Site, page: Page): string {
  const roll = dice(mix(page.hostIndex, page.index, site.options.seed ^ 21))
  const title = words(roll, 5)
  const lang = ['en', 'de', 'fr', 'es', 'pl'][page.hostIndex % 5]!
  return `<!DOCTYPE html>\n<html lang="${lang}" class="no-js">\n<head>\n<meta charset="utf-8">\n`
    + `<title>${title} &ndash; ${page.host}</title>\n`
    + `<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="description" content="${words(roll, 14)}">\n`
    + `<link rel="canonical" href="${page.url.replaceAll('&', '&amp;')}">\n<link rel="stylesheet" href="/assets/site.css">\n`
    + `<meta property="og:title" content="${title}">\n<script>document.documentElement.className="js";</script>\n</head>\n`
    + `<body data-page="${page.kind}-${page.index}">\n<header class="page-header"><p>${page.host}</p></header>\n<main id="main">\n<article>\n`
    + `<h1>${title}</h1>\n<p class="lead">${sentence(roll)}</p>\n${linksHtml(site.ownLinks(page), roll)}${revisionHtml(page)}</article>\n`
}

export function revisionHtml({ revision }: Page): string {
  return revision === undefined ? '' : `<p class="revision">Edition ${revision}</p>\n`
}

/** Links in a list and the paragraph after it. */
const listLength = 12

/** Links in lists and in running text, as attributes come in real pages: quoted either way, or not at all. */
function linksHtml(links: readonly Link[], roll: Dice): string {
  let html = ''
  for (const [index, { href }] of links.entries()) {
    const form = roll()
    const quote = form < 0.8 || /[=\s]/.test(href) ? '"' : form < 0.94 ? "'" : ''
    // An unquoted value that ends in a slash takes the space, so that "/>" cannot be read as its end.
    const anchor = `<a class="link" href=${quote}${href}${quote} data-n="${index}">${words(roll, 3)}</a>`
    const place = index % listLength
    if (place === listLength - 1) html += `</ul>\n<p>${sentence(roll)} ${anchor}</p>\n`
    else html += `${place === 0 ? '<ul>\n' : ''}<li>${anchor}</li>\n`
  }
  return links.length % listLength === 0 ? html : html + '</ul>\n'
}

/** A shared list, with what is no link though it looks like one: in a comment and in a script. */
function listHtml(links: readonly Link[], list: number, seed: number): string {
  const roll = dice(seed)
  let html = `<nav class="site-list" aria-label="List ${list}">\n<!-- <li><a href="/menu/old.html">Old menu</a></li> -->\n<ul class="site-list__items">\n`
  for (const { href } of links) html += `<li class="site-list__item"><a class="site-list__link" href="${href}">${words(roll, 2)}</a></li>\n`
  const made = pick(roll, ['/menu/made.html', '/menu/script.html'])
  return html + `</ul>\n<script>var item = '<a href="${made}">' + document.title + '</a>';</script>\n</nav>\n`
}

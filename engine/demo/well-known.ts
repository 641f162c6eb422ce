/**
 * What hosts of the demonstration web serve beside pages: robots.txt and sitemaps. Pure functions of the site.
 */
import type { Site } from './site.ts'

/** Entries of one sitemap file; a host with more pages has an index. The protocol's own limit is 50,000. */
const sitemapEntriesMax = 5_000

export interface WellKnown {
  readonly contentType: string
  readonly text: string
}

/** The file at a path, or undefined. */
export function wellKnown(site: Site, host: number, path: string): WellKnown | undefined {
  if (path === '/robots.txt') return { contentType: 'text/plain; charset=utf-8', text: robotsText(site, host) }
  const match = /^\/sitemap(?:-(\d{1,6}))?\.xml$/.exec(path)
  if (match === null) return undefined
  const files = Math.ceil(site.layout.size(host) / sitemapEntriesMax)
  const part = match[1] === undefined ? 0 : Number(match[1])
  if (part > files || (part > 0 && files === 1)) return undefined
  const text = part > 0 ? urlset(site, host, part - 1) : files === 1 ? urlset(site, host, 0) : sitemapIndex(site, host, files)
  return { contentType: 'application/xml', text }
}

function robotsText(site: Site, host: number): string {
  return `# robots.txt of ${site.layout.hostName(host)}\n\n`
    + 'User-agent: GreedyBot\nUser-agent: CopyBot # took everything, twice\nDisallow: /\n\n'
    + 'User-agent: SlowReader\nCrawl-delay: 10\nDisallow: /archive/\nDisallow: /private/\n\n'
    + 'User-agent: *\nDisallow: /private/  # drafts\nDisallow: /cgi-bin/\nAllow: /\n\n'
    + `Sitemap: ${site.origin(host)}/sitemap.xml\n`
}

function urlset(site: Site, host: number, part: number): string {
  let xml = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
  const end = Math.min((part + 1) * sitemapEntriesMax, site.layout.size(host))
  for (let index = part * sitemapEntriesMax; index < end; index++) {
    xml += `<url><loc>${site.place(host, index).url.replaceAll('&', '&amp;')}</loc><lastmod>2025-0${1 + index % 9}-11</lastmod></url>\n`
  }
  return xml + '</urlset>\n'
}

function sitemapIndex(site: Site, host: number, files: number): string {
  let xml = '<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
  for (let part = 1; part <= files; part++) xml += `<sitemap><loc>${site.origin(host)}/sitemap-${part}.xml</loc></sitemap>\n`
  return xml + '</sitemapindex>\n'
}

import { describe, expect, test } from 'vitest'
import { Site, type SiteOptions } from '../../engine/demo/site.ts'
import { faults } from '../../engine/demo/types.ts'
import { MadeBodies } from '../../engine/demo/bodies.ts'
import { wellKnown } from '../../engine/demo/well-known.ts'

function makeSite(options: Partial<SiteOptions> = {}): Site {
  return new Site({ scheme: 'https', port: 8_443, hosts: 24, pages: 2_400, seed: 1, faultShare: 0, sizeScale: 1, bodies: 'made', ...options })
}

/** URLs that a walk over the links of well-answering pages finds, each without its fragment. */
function reach(site: Site): Set<string> {
  const found = new Set(site.seeds())
  for (const url of found) {
    const page = site.pageAt(url)
    if (page === undefined) throw new Error(`a link leads nowhere: ${url}`)
    if (page.kind === 'private') continue
    for (const link of site.linksOf(page)) found.add(link.split('#', 1)[0]!)
  }
  return found
}

describe('the demonstration web', () => {
  test('has exactly the pages asked for, on hosts of uneven size', () => {
    const site = makeSite()
    const sizes = Array.from({ length: 24 }, (_, host) => site.layout.size(host)).sort((a, b) => b - a)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(2_400)
    expect(sizes[0]!).toBeGreaterThan(400)
    expect(sizes[12]!).toBeLessThan(100)
    expect(sizes.at(-1)!).toBeGreaterThan(0)
    for (const [hosts, pages] of [[1, 1], [7, 7], [24, 25], [300, 1_001]] as const) {
      expect([...makeSite({ hosts, pages }).allPages()]).toHaveLength(pages)
    }
  })

  test('gives every page a URL of its own that leads back to it', () => {
    const site = makeSite({ hosts: 60, pages: 3_000 })
    const urls = new Set<string>()
    for (const page of site.allPages()) {
      expect(new URL(page.url).href).toBe(page.url)
      expect(site.pageAt(`${page.url}#part`)).toEqual(page)
      expect(site.robotsDisallowed(page.url)).toBe(false)
      urls.add(page.url)
    }
    expect(urls.size).toBe(3_000)
    expect([...urls].filter((url) => url.includes('?')).length).toBeGreaterThan(100)
  })

  test('finds a page by any spelling of its host, as often as it is asked', () => {
    const site = makeSite()
    const page = site.page(3, 5)
    // A soft hyphen is no part of a name; from a text in one byte a character, which is what Node's URL.canParse is wrong about once it is compiled.
    const urls = Array.from({ length: 8 }, (_, number) => JSON.parse(JSON.stringify(`${page.url.replace('h003', 'h0\u00ad03')}#${number}`)) as string)
    let found = 0
    for (let time = 0; time < 20_000; time += 1) found += site.pageAt(urls[time % urls.length]!)?.index === 5 ? 1 : 0
    expect(found).toBe(20_000)
  })

  test('knows no page behind a path or a host that is slightly wrong', () => {
    const site = makeSite()
    const page = site.page(3, 5)
    for (const url of [page.url.replace('-5', '-05'), page.url.replace('-5', '-6'), `${page.url}x`, page.url.replace('h003', 'h3'), page.url.replace('.test', '.tes'), 'nonsense']) {
      expect(url).not.toBe(page.url)
      expect(site.pageAt(url)).toBeUndefined()
    }
  })

  test.each([[0, 1], [0.4, 1], [1, 1], [0.2, 0.02]])('can be reached from the first front page whole, with a fault share of %d and a size scale of %d', (faultShare, sizeScale) => {
    const site = makeSite({ hosts: 40, pages: 1_500, faultShare, sizeScale, seed: 5 })
    const found = reach(site)
    const all = new Set([...site.allPages()].map((page) => page.url))
    const beyond = [...found].filter((url) => !all.has(url))
    expect([...all].filter((url) => !found.has(url))).toEqual([])
    expect(beyond.length).toBeGreaterThan(0)
    expect(beyond.every((url) => site.robotsDisallowed(url))).toBe(true)
  })

  test('makes as many pages faulty as asked for, of every kind, and none that others need', () => {
    const site = makeSite({ pages: 6_000, faultShare: 0.3 })
    const faulty = [...site.allPages()].filter((page) => page.fault !== 'none')
    expect(faulty.length / 6_000).toBeGreaterThan(0.27)
    expect(faulty.length / 6_000).toBeLessThan(0.33)
    expect(new Set(faulty.map((page) => page.fault)).size).toBe(faults.length)
    expect(faulty.every((page) => site.layout.isLeaf(page.hostIndex, page.index))).toBe(true)
  })

  test('writes hrefs that a URL parser resolves to the links it names', () => {
    const site = makeSite()
    const forms = { relative: 0, rooted: 0, schemeless: 0, absolute: 0, query: 0, fragment: 0, none: 0 }
    for (const page of [site.page(0, 0), ...Array.from({ length: 12 }, (_, host) => [...site.hostPages(host)].slice(0, 20)).flat()]) {
      const links = [...site.ownLinks(page), ...site.listsOf(page).flatMap((list) => site.listLinks(page.hostIndex, list))]
      for (const { href, url } of links) {
        const raw = href.replaceAll('&amp;', '&')
        const resolved = URL.canParse(raw, page.url) ? new URL(raw, page.url).href : ''
        if (url === '') expect(resolved).not.toMatch(/^https?:/)
        else expect(resolved).toBe(url)
        const form = url === '' ? 'none' : raw.startsWith('//') ? 'schemeless' : raw.startsWith('/') ? 'rooted' : raw.startsWith('#') ? 'fragment' : raw.startsWith('?') ? 'query' : /^https?:/i.test(raw) ? 'absolute' : 'relative'
        forms[form]++
      }
    }
    for (const count of Object.values(forms)) expect(count).toBeGreaterThan(0)
  })

  test('puts between 150 and 200 links on a page of a large host', () => {
    const site = makeSite()
    const large = Array.from({ length: 24 }, (_, host) => host).filter((host) => site.layout.size(host) > 100)
    const counts = large.flatMap((host) => [...site.hostPages(host)]).filter((page) => page.bytesTarget > 64 * 1024).map((page) => site.linksOf(page).length)
    const mean = counts.reduce((sum, count) => sum + count) / counts.length
    expect(mean).toBeGreaterThan(150)
    expect(mean).toBeLessThan(200)
  })

  test('has pages with a median of 138 KB and a mean of 242 KB', () => {
    const sizes = [...makeSite({ hosts: 50, pages: 20_000 }).allPages()].map((page) => page.bytesTarget).sort((a, b) => a - b)
    const mean = sizes.reduce((sum, size) => sum + size) / sizes.length
    expect(sizes[10_000]! / 1_024).toBeGreaterThan(138 * 0.96)
    expect(sizes[10_000]! / 1_024).toBeLessThan(138 * 1.04)
    expect(mean / 1_024).toBeGreaterThan(242 * 0.95)
    expect(mean / 1_024).toBeLessThan(242 * 1.05)
    expect(sizes[0]!).toBeGreaterThanOrEqual(2 * 1_024)
    expect(sizes.at(-1)!).toBeLessThanOrEqual(2.6 * 1_024 * 1_024)
  })

  test('makes bodies of the size aimed at, to a kilobyte', async () => {
    const site = makeSite()
    const bodies = await MadeBodies.open(site)
    for (const page of [...site.hostPages(0), ...site.hostPages(1)].slice(1, 60)) {
      if (page.bytesTarget < 32 * 1024) continue
      const bytes = (await bodies.body(page, 'identity')).reduce((sum, chunk) => sum + chunk.length, 0)
      expect(page.bytesTarget - bytes).toBeGreaterThanOrEqual(0)
      expect(page.bytesTarget - bytes).toBeLessThan(1_024)
    }
  })

  test('splits the sitemap of a large host, and every part names pages', () => {
    const site = makeSite({ hosts: 1, pages: 12_000 })
    const index = wellKnown(site, 0, '/sitemap.xml')!.text
    const parts = [...index.matchAll(/<loc>https:\/\/[^/]+(\/[^<]+)<\/loc>/g)].map((match) => match[1]!)
    expect(parts).toEqual(['/sitemap-1.xml', '/sitemap-2.xml', '/sitemap-3.xml'])
    const urls = parts.flatMap((part) => [...wellKnown(site, 0, part)!.text.matchAll(/<loc>([^<]+)</g)].map((match) => match[1]!.replaceAll('&amp;', '&')))
    expect(urls).toEqual([...site.allPages()].map((page) => page.url))
    expect(wellKnown(site, 0, '/sitemap-4.xml')).toBeUndefined()
  })
})

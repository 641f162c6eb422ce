/** Crawls with --sitemaps of small webs on 127.0.0.1. Nothing links to the pages that only a sitemap lists. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Crawler, type CrawlOptionsGiven, type PageRecord } from '../../engine/index.ts'
import { limits } from '../../engine/core/limits.ts'
import { notOnce, readPages } from '../support/crawl.ts'
import { childrenOf, sluice } from '../support/processes.ts'

type Answer = { readonly body: string | Buffer; readonly type?: string; readonly status?: number; readonly headers?: Readonly<Record<string, string>> } | ((request: IncomingMessage, response: ServerResponse) => void)

const HOSTS = ['a.test', 'b.test', 'c.test', 'd.test']
const page: Answer = { body: '<title>page</title>', type: 'text/html' }

let server: Server
let dir: string
let answers: Map<string, Answer>
let asked: string[]

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sluice-sitemaps-'))
  answers = new Map()
  asked = []
  server = createServer((request, response) => {
    const url = new URL(request.url!, `http://${request.headers.host}`)
    const at = `${url.hostname}${url.pathname}`
    asked.push(at)
    const answer = answers.get(at)
    if (typeof answer === 'function') return answer(request, response)
    if (answer === undefined) return void response.writeHead(404).end()
    response.writeHead(answer.status ?? 200, { 'content-type': answer.type ?? 'application/xml', ...answer.headers }).end(answer.body)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
})

afterEach(async () => {
  server.close()
  server.closeAllConnections()
  await rm(dir, { recursive: true, force: true })
})

const origin = (host = 'a.test'): string => `http://${host}:${(server.address() as AddressInfo).port}`

function open(given: CrawlOptionsGiven = {}): Promise<Crawler> {
  return Crawler.open({
    dir, threads: 1, sitemaps: true, delayMs: 0, durability: 'system', allowAddress: '127.0.0.0/8',
    resolve: Object.fromEntries(HOSTS.map((host) => [host, '127.0.0.1'])), ...given,
  })
}

async function crawl(given: CrawlOptionsGiven = {}, seeds: readonly string[] = [`${origin()}/`]): Promise<ReturnType<Crawler['stats']>> {
  const crawler = await open(given)
  try {
    await crawler.add(seeds)
    await crawler.start()
    const stats = crawler.stats()
    const { discovered, pending, done, failed, dropped, excluded } = stats
    expect(pending + done + failed + dropped + excluded).toBe(discovered)
    expect(stats.pages).toBe((await readPages(dir)).filter(({ sitemap, outcome }) => sitemap === undefined && outcome !== 'failed' && outcome !== 'robots_denied').length)
    return stats
  } finally {
    await crawler.close()
  }
}

function urlset(locs: readonly string[], extra = ''): string {
  return `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs.map((loc) => `<url><loc>${loc}</loc>${extra}</url>`).join('')}</urlset>`
}

function index(locs: readonly string[]): string {
  return `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs.map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`).join('')}</sitemapindex>`
}

/** By path, without the sitemaps. */
async function pagesRead(): Promise<string[]> {
  return (await readPages(dir)).filter(({ outcome, sitemap }) => outcome === 'ok' && sitemap === undefined).map(({ url }) => url.replace(origin(), '')).sort()
}

async function sitemapsRead(): Promise<Record<string, PageRecord>> {
  return Object.fromEntries((await readPages(dir)).filter(({ sitemap }) => sitemap !== undefined).map((record) => [record.url.replace(origin(), ''), record]))
}

test('finds the pages that /sitemap.xml and the sitemaps of robots.txt list, in an index, packed and as text, and none without the option', async () => {
  answers.set('a.test/robots.txt', { body: `User-agent: *\nDisallow: /private\nSitemap: ${origin()}/more.txt\nSitemap: ${origin()}/sitemap.xml\n`, type: 'text/plain' })
  answers.set('a.test/sitemap.xml', { body: index([`${origin()}/deep.xml`, `${origin()}/packed.xml.gz`]) })
  answers.set('a.test/deep.xml', { body: index([`${origin()}/deepest.xml`]) })
  answers.set('a.test/deepest.xml', { body: urlset([`${origin()}/1`, `${origin()}/2`, `${origin()}/private`]) })
  answers.set('a.test/packed.xml.gz', { body: gzipSync(urlset([`${origin()}/3`, `${origin()}/1`])), type: 'application/x-gzip' })
  answers.set('a.test/more.txt', { body: `${origin()}/4\n${origin()}/5\n`, type: 'text/plain' })
  for (const path of ['/', '/1', '/2', '/3', '/4', '/5']) answers.set(`a.test${path}`, page)
  await crawl()
  expect(await pagesRead()).toEqual(['/', '/1', '/2', '/3', '/4', '/5'])
  const sitemaps = await sitemapsRead()
  expect(Object.keys(sitemaps).sort()).toEqual(['/deep.xml', '/deepest.xml', '/more.txt', '/packed.xml.gz', '/sitemap.xml'])
  expect(sitemaps['/deepest.xml']).toMatchObject({ outcome: 'ok', depth: 2, referrer: `${origin()}/deep.xml`, sitemap: { type: 'urlset', entries: 3 } })
  expect(sitemaps['/more.txt']).toMatchObject({ outcome: 'ok', depth: 0, referrer: `${origin()}/robots.txt`, sitemap: { type: 'txt', entries: 2, new: 2 } })
  // The sitemaps of an origin come before its pages, and the pages are those of a depth of 0.
  expect(asked.slice(0, 2)).toEqual(['a.test/robots.txt', 'a.test/sitemap.xml'])
  expect((await readPages(dir)).filter(({ sitemap }) => sitemap === undefined).map(({ depth }) => depth)).toEqual(Array.from({ length: 7 }, () => 0))
  await rm(dir, { recursive: true })
  await crawl({ sitemaps: false })
  expect(await pagesRead()).toEqual(['/'])
})

test('what is out of scope is refused and counted, a page of a sitemap or a sitemap of robots.txt', async () => {
  answers.set('a.test/robots.txt', { body: `Sitemap: ${origin('c.test')}/sitemap.xml\n`, type: 'text/plain' })
  answers.set('a.test/sitemap.xml', { body: urlset([`${origin()}/in`, `${origin('b.test')}/out`, `${origin()}/not`, 'ftp://a.test/x']) })
  const stats = await crawl({ exclude: ['/not$'] })
  expect(stats.refused).toMatchObject({ scope: 2, pattern: 1 })
  expect(asked.filter((at) => !at.startsWith('a.test'))).toEqual([])
  expect((await sitemapsRead())['/sitemap.xml']).toMatchObject({ sitemap: { entries: 3, new: 1 } })
})

test('an index within indexes is followed to a bound, and one that names itself is read once', async () => {
  for (let depth = 0; depth < 8; depth += 1) {
    const name = depth === 0 ? 'sitemap' : `s${depth}`
    answers.set(`a.test/${name}.xml`, { body: index([`${origin()}/s${depth + 1}.xml`, `${origin()}/sitemap.xml`]) })
  }
  const stats = await crawl()
  expect(Object.keys(await sitemapsRead())).toHaveLength(1 + limits.sitemapDepthMax)
  expect(stats.refused.depth).toBe(2)
})

test('what is no sitemap fails with its code, what has moved is found where it may be, and what is not there is an answer', async () => {
  answers.set('a.test/sitemap.xml', { body: '<!doctype html><title>Welcome</title>', type: 'text/html' })
  answers.set('b.test/sitemap.xml', { body: '', status: 301, headers: { location: '/map' } })
  answers.set('b.test/map', { body: urlset([`${origin('b.test')}/new`]) })
  answers.set('d.test/sitemap.xml', { body: '', status: 302, headers: { location: 'ftp://me:secret@d.test/map' } })
  await crawl({}, ['a.test', 'b.test', 'c.test', 'd.test'].map((host) => `${origin(host)}/`))
  const sitemaps = await sitemapsRead()
  expect(sitemaps['/sitemap.xml']).toMatchObject({ outcome: 'failed', code: 'bad_sitemap', status: 200 })
  expect(sitemaps[`${origin('b.test')}/sitemap.xml`]).toMatchObject({ outcome: 'redirect', redirectTo: `${origin('b.test')}/map`, sitemap: {} })
  expect(sitemaps[`${origin('b.test')}/map`]).toMatchObject({ outcome: 'ok', redirectedFrom: [`${origin('b.test')}/sitemap.xml`], sitemap: { entries: 1, new: 1 } })
  expect(sitemaps[`${origin('c.test')}/sitemap.xml`]).toMatchObject({ outcome: 'http_error', status: 404, sitemap: {} })
  // As of a page, a password in an address that is not followed stands in no record.
  expect(sitemaps[`${origin('d.test')}/sitemap.xml`]).toMatchObject({ outcome: 'redirect', redirectTo: 'ftp://***@d.test/map' })
})

test('what is listed with a higher priority is read first', async () => {
  const at = (path: string, facts: string): string => `<url><loc>${origin()}${path}</loc>${facts}</url>`
  for (const path of ['/', '/first', '/middle', '/last']) answers.set(`a.test${path}`, page)
  answers.set('a.test/sitemap.xml', { body: `<urlset>${at('/last', '<priority>0.1</priority>')}${at('/middle', '')}${at('/first', '<priority>1.0</priority>')}</urlset>` })
  await crawl({ concurrency: '1:1:1' })
  expect(asked.slice(2)).toEqual(['a.test/', 'a.test/first', 'a.test/middle', 'a.test/last'])
})

test('read again, a sitemap brings back what it says was modified since, once, and not what lists itself for ever', async () => {
  const list = (lastmod: string): string => urlset([`${origin()}/old`, `${origin()}/changed`])
    .replace('/changed</loc>', `/changed</loc><lastmod>${lastmod}</lastmod>`)
    .replace('/old</loc>', '/old</loc><lastmod>2020-01-01</lastmod>')
  const always = '2199-01-01T00:00:00Z'
  const both = (lastmod: string): string => index([`${origin()}/list.xml`, `${origin()}/sitemap.xml`]).replaceAll('</loc>', `</loc><lastmod>${lastmod}</lastmod>`)
  for (const path of ['/', '/old', '/changed']) answers.set(`a.test${path}`, page)
  answers.set('a.test/sitemap.xml', { body: both(always) })
  answers.set('a.test/list.xml', { body: list('2020-01-01') })
  await crawl()
  expect(notOnce(asked)).toEqual([])
  asked.length = 0
  answers.set('a.test/list.xml', { body: list(always) })
  const crawler = await open()
  expect(await crawler.add(`${origin()}/`, { again: true })).toMatchObject({ added: 0, again: 1, known: 0 })
  await crawler.start()
  await crawler.close()
  expect(asked.filter((at) => at !== 'a.test/robots.txt').sort()).toEqual(['a.test/', 'a.test/changed', 'a.test/list.xml', 'a.test/sitemap.xml'])
})

test('at most so many pages are read as were asked for, and sitemaps are none of them', async () => {
  answers.set('a.test/sitemap.xml', { body: urlset(Array.from({ length: 20 }, (_, at) => `${origin()}/${at}`)) })
  const crawler = await open()
  await crawler.add(`${origin()}/`)
  expect(await crawler.start({ maxPages: 5 })).toMatchObject({ state: 'limit', pagesThisRun: 5, pages: 5, discovered: 22 })
  await crawler.close()
})

test('a sitemap that is being read takes none of the pages that were asked for', async () => {
  let held: ServerResponse | undefined
  answers.set('a.test/sitemap.xml', (_, response) => {
    held = response
    response.writeHead(200, { 'content-type': 'application/xml' }).flushHeaders()
  })
  answers.set('a.test/', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<a href="/last">last</a>'))
  // It is the second of two pages, and the sitemap ends after it.
  answers.set('a.test/last', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>last</title>')
    held!.end(urlset([]))
  })
  const crawler = await open({ concurrency: '8:8:8' })
  await crawler.add(`${origin()}/`)
  await crawler.start({ maxPages: 2 })
  expect(asked.filter((at) => at === 'a.test/sitemap.xml')).toHaveLength(1)
  expect((await readPages(dir)).map(({ url, outcome }) => [new URL(url).pathname, outcome])).toContainEqual(['/sitemap.xml', 'ok'])
  await crawler.close()
})

test('more sitemaps than may be read at once are all read, no more at once, and pages need not wait for them', async () => {
  const parts = 2 * limits.sitemapsReadingMax
  answers.set('a.test/sitemap.xml', { body: index(Array.from({ length: parts }, (_, at) => `${origin()}/part-${at}.xml`)) })
  const held: ServerResponse[] = []
  let isOver = false
  const list = (response: ServerResponse): void => void response.end(urlset([`${origin()}/after`]))
  for (let at = 0; at < parts; at += 1) {
    answers.set(`a.test/part-${at}.xml`, (_, response) => {
      response.writeHead(200, { 'content-type': 'application/xml' })
      if (at === 0 || isOver) list(response)
      else held.push(response)
    })
  }
  // It waits in the queue behind all sitemaps: those that are not held have been put off by now.
  answers.set('a.test/after', (_, response) => {
    isOver = true
    response.writeHead(200, { 'content-type': 'text/html' }).end()
    for (const each of held) list(each)
  })
  await crawl({ concurrency: '32:32:32' })
  expect(held.length).toBeLessThanOrEqual(limits.sitemapsReadingMax)
  expect(Object.values(await sitemapsRead()).filter(({ outcome }) => outcome === 'ok')).toHaveLength(1 + parts)
  expect(notOnce((await readPages(dir)).map(({ url }) => url))).toEqual([])
})

/** A sitemap that stops in its middle the first time. Answers when pages of its first half are being read, and how often it was asked for. */
function halfSitemap(): { readonly isHalf: Promise<void>; readonly times: () => number } {
  const pages = Array.from({ length: 40 }, (_, at) => `${origin()}/${at}`)
  const body = urlset(pages) + ' '.repeat(2 * limits.sitemapChunkBytesMax)
  let times = 0
  let half: () => void = () => {}
  const isHalf = new Promise<void>((resolve) => { half = resolve })
  answers.set('a.test/sitemap.xml', (_, response) => {
    times += 1
    response.writeHead(200, { 'content-type': 'application/xml' })
    if (times > 1) return void response.end(body)
    response.write(body.slice(0, limits.sitemapChunkBytesMax + 1_000))
  })
  for (let at = 0; at < 40; at += 1) {
    answers.set(`a.test/${at}`, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>')
      if (at === 20) half()
    })
  }
  answers.set('a.test/', page)
  return { isHalf, times: () => times }
}

test('a crawl that is stopped in the middle of a sitemap goes on with it, and each page is read once', async () => {
  const { isHalf, times } = halfSitemap()
  const crawler = await open()
  await crawler.add(`${origin()}/`)
  const running = crawler.start()
  await isHalf
  await crawler.close()
  expect(await running).toMatchObject({ state: 'stopped' })
  await crawl()
  expect(times()).toBe(2)
  const urls = (await readPages(dir)).map(({ url }) => url)
  expect(notOnce(urls)).toEqual([])
  expect(urls).toHaveLength(42)
})

test('an engine that is killed in the middle of a sitemap reads it again, and each page has one record', async () => {
  const { isHalf, times } = halfSitemap()
  const flags = ['--sitemaps', '--dir', dir, '--delay', '0', '--allow-address', '127.0.0.0/8', '--resolve', 'a.test=127.0.0.1', '--progress', 'none']
  const command = sluice(['crawl', `${origin()}/`, ...flags])
  await isHalf
  process.kill(childrenOf(command.pid)[0]!, 'SIGKILL')
  expect(await command.ended).toEqual({ code: 0, signal: null })
  expect(times()).toBe(2)
  const records = await readPages(dir)
  expect(notOnce(records.map(({ url }) => url))).toEqual([])
  expect(records).toHaveLength(42)
  expect(records.filter(({ sitemap }) => sitemap !== undefined)).toMatchObject([{ outcome: 'ok', sitemap: { type: 'urlset', entries: 40 } }])
})

test('a sitemap of 60,000 entries is taken up to its bound', async () => {
  const entries = 60_000
  answers.set('a.test/sitemap.xml', { body: urlset(Array.from({ length: entries }, (_, at) => `${origin()}/a/page/with/an/address/of/some/length/${at}`)) })
  const crawler = await open()
  await crawler.add(`${origin()}/`)
  // One page is enough: the sitemap comes before it.
  await crawler.start({ maxPages: 1 })
  expect((await sitemapsRead())['/sitemap.xml']).toMatchObject({ outcome: 'ok', sitemap: { entries, new: limits.sitemapEntriesMax } })
  expect(crawler.stats().discovered).toBe(2 + limits.sitemapEntriesMax)
  await crawler.close()
})

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import https from 'node:https'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PageRecord } from '../../engine/index.ts'
import { countsOf, notOnce, openBed, readPages, readWarcs, type CrawlBed, type ServerRequest, type WarcResponse } from '../support/crawl.ts'
import { corpusPath } from '../support/corpus.ts'
import { sluice } from '../support/processes.ts'

const corpus = corpusPath('pages')
const DELAY_MS = 1_000

if (!existsSync(corpus)) console.warn(`skipped, the corpus of real pages is not at ${corpus}`)

/** What the paths of the web look like; some of the pages' own links do so too. */
const OWN_PATH = String.raw`(?:-\d+(?:/|\.html)|/list\?page=\d+|/item\.php\?id=\d+&view=full)$`

/**
 * Seeds on every host, and links to paths like the web's: the pages' own relative links lead to 25,000 that it does not
 * have, which was most of the time.
 */
function crawl(bed: CrawlBed, ...more: string[]): ReturnType<typeof sluice> {
  const seeds = [...bed.web.resolve.keys()].map((host) => `https://${host}:${bed.web.port}/\n`).join('')
  return sluice(['crawl', '--seeds', '-', ...bed.flags, '--scope', 'host', '--include', OWN_PATH, '--format', 'jsonl,warc', '--progress', 'none', ...more], { input: seeds })
}

describe.skipIf(!existsSync(corpus))('sluice crawl over real pages', () => {
  let bed: CrawlBed
  let requests: readonly ServerRequest[]
  let records: readonly PageRecord[]
  let warcs: readonly WarcResponse[]

  beforeAll(async () => {
    bed = await openBed({ pagesDir: corpus, hosts: 24 })
    // Whole bodies, because in some of these pages the body element, with the web's own links, begins late.
    const command = crawl(bed, '--max-body', '4MB')
    expect(await command.ended, command.output.stderr).toEqual({ code: 0, signal: null })
    requests = await bed.requests()
    records = await readPages(bed.dir)
    warcs = await readWarcs(bed.dir)
  }, 180_000)
  afterAll(() => bed.close())

  const pageUrls = (): string[] => [...bed.site.allPages()].map(({ url }) => url)
  const urlOf = ({ host, path }: ServerRequest): string => `https://${host}:${bed.web.port}${path}`

  it("fetches every page that the web links exactly once, by the server's own count", () => {
    const counts = countsOf(requests.map(urlOf))
    expect(pageUrls().filter((url) => counts.get(url) !== 1).map((url) => `${url}: ${counts.get(url) ?? 0}`)).toEqual([])
  })

  it('has one line for each page', () => {
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    const answered = new Set(records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url))
    expect(pageUrls().filter((url) => !answered.has(url))).toEqual([])
  })

  it('stores in its WARC files, read by another reader, the payload bytes that the server sent', async () => {
    const sent = new Map(requests.map((request) => [urlOf(request), request.sha256]))
    expect(notOnce(warcs.map(({ url }) => url))).toEqual([])
    // Some real pages ask not to be archived.
    expect(warcs.length).toBe(records.filter(({ status, robots }) => status !== undefined && robots?.noarchive !== true).length)
    for (const { url, payload, truncated } of warcs) {
      expect(truncated, url).toBe(undefined)
      expect(createHash('sha256').update(payload).digest('hex'), url).toBe(sent.get(url))
    }
  })

  // Half the delay, because a server that decodes a page notices the next request late (a quarter of a second was seen).
  it("keeps the delay by the server's clock, and marks a payload that was cut and holds its prefix", async () => {
    const small = await openBed({ pagesDir: corpus, hosts: 24 })
    try {
      expect((await crawl(small, '--max-body', '20KB', '--max-pages', '72', '--delay', `${DELAY_MS}ms`).ended).code).toBe(0)
      expect(gapsOf(await small.requests()).filter((gap) => gap < DELAY_MS / 2)).toEqual([])
      const cut = (await readWarcs(small.dir)).filter(({ truncated }) => truncated !== undefined)
      const lines = new Map((await readPages(small.dir)).map((record) => [record.url, record]))
      expect(cut.length).toBeGreaterThan(10)
      for (const { url, payload, truncated } of cut) {
        expect(truncated).toBe('length')
        expect(lines.get(url)).toMatchObject({ truncated: true, wireBytes: 20 * 1_024 })
        const whole = await payloadOf(small, url)
        expect(whole.byteLength).toBeGreaterThan(payload.byteLength)
        expect(Buffer.compare(whole.subarray(0, payload.byteLength), payload), url).toBe(0)
      }
    } finally {
      await small.close()
    }
  }, 120_000)
})

/** Gaps between one request and the next to the same host. */
function gapsOf(requests: readonly ServerRequest[]): number[] {
  const last = new Map<string, number>()
  const gaps: number[] = []
  for (const { host, t } of requests.toSorted((a, b) => a.t - b.t)) {
    const before = last.get(host)
    if (before !== undefined) gaps.push(t - before)
    last.set(host, t)
  }
  return gaps
}

/** What the server sends for a URL, asked as the crawler asks. */
function payloadOf(bed: CrawlBed, url: string): Promise<Buffer> {
  const { hostname, port, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    const request = https.get({
      host: bed.web.resolve.get(hostname), port, path: pathname + search, servername: hostname, ca: bed.web.caPem,
      headers: { host: `${hostname}:${port}`, 'accept-encoding': 'gzip, br' },
    }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks))).on('error', reject)
    })
    request.on('error', reject)
  })
}

/** Pages that are fetched again: what their server is asked, what is written of them, and when it happens. */
import { createReadStream } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WARCParser } from 'warcio'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Crawler, type CrawlOptionsGiven, type PageRecord, type RecrawlFacts } from '../../engine/index.ts'
import { readPages } from '../support/crawl.ts'

interface Asked { readonly path: string; readonly etag?: string | undefined; readonly since?: string | undefined }
interface Answer { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }

let server: Server
let dir: string
let origin: string
let asked: Asked[]
let answerOf: (path: string, headers: IncomingHttpHeaders) => Answer

beforeEach(async () => {
  asked = []
  answerOf = () => ({ body: '<p>page' })
  server = createServer(({ url = '', headers }, response) => {
    if (url === '/robots.txt') return response.writeHead(404).end()
    asked.push({ path: url, etag: headers['if-none-match'], since: headers['if-modified-since'] })
    const { status = 200, headers: sent = {}, body = '' } = answerOf(url, headers)
    return response.writeHead(status, { 'content-type': 'text/html', ...sent }).end(body)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  origin = `http://a.test:${(server.address() as AddressInfo).port}`
  dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
})

afterEach(async () => {
  server.close()
  server.closeAllConnections()
  await rm(dir, { recursive: true, force: true })
})

function open(options: CrawlOptionsGiven = {}): Promise<Crawler> {
  return Crawler.open({ dir, threads: 1, delayMs: 0, retries: 0, allowAddress: '127.0.0.0/8', resolve: { 'a.test': '127.0.0.1' }, tailMs: 'park', ...options })
}

/** Crawls the page once, and then again as often as there are answers left. */
async function fetches(answers: readonly Answer[], options: CrawlOptionsGiven = {}): Promise<readonly PageRecord[]> {
  let next = 0
  answerOf = () => answers[next++]!
  const crawler = await open(options)
  for (const _ of answers) {
    await crawler.add(`${origin}/`, { again: true })
    await crawler.start()
  }
  await crawler.close()
  return readPages(dir)
}

const validators = { etag: '"one"', 'last-modified': 'Tue, 01 Apr 2025 08:00:00 GMT' }

describe('a page that was read is asked for with its validators', () => {
  test('and a 304 is not modified, keeps the hash, and takes over the validators that came with it', async () => {
    const records = await fetches([
      { headers: validators, body: '<p>page' }, { status: 304, headers: { etag: '"two"' } }, { status: 304 }, { headers: { etag: '"three"' }, body: '<p>other' },
    ])
    expect(asked.map(({ etag, since }) => [etag, since])).toEqual([
      [undefined, undefined], ['"one"', validators['last-modified']], ['"two"', validators['last-modified']], ['"two"', validators['last-modified']],
    ])
    expect(records.map(({ outcome, status }) => [outcome, status])).toEqual([['ok', 200], ['not_modified', 304], ['not_modified', 304], ['ok', 200]])
    expect(records[1]).toMatchObject({ hash: records[0]!.hash, etag: '"two"', lastModified: validators['last-modified'], wireBytes: 0, timings: {} })
    expect(records[3]!.hash).not.toBe(records[0]!.hash)
    expect(records.map(({ unchanged }) => unchanged)).toEqual([undefined, undefined, undefined, undefined])
  })

  test('also when a failure or an error lay between', async () => {
    const records = await fetches([{ headers: validators, body: '<p>page' }, { status: 403, headers: { etag: '"error"' } }, { status: 304 }])
    expect(asked.map(({ etag }) => etag)).toEqual([undefined, '"one"', '"one"'])
    expect(records.map(({ outcome }) => outcome)).toEqual(['ok', 'http_error', 'not_modified'])
    expect(records[2]!.hash).toBe(records[0]!.hash)
  })

  test('and no longer once it was gone, or moved', async () => {
    await fetches([{ headers: validators }, { status: 404, headers: { etag: '"error"' } }, { headers: validators }, { status: 301, headers: { location: 'http://b.test/', etag: '"moved"' } }, {}])
    expect(asked.map(({ etag }) => etag)).toEqual([undefined, '"one"', undefined, '"one"', undefined])
  })

  test('and not when the extractor failed on it: it was not read', async () => {
    const records = await fetches([{ headers: { ...validators, 'content-encoding': 'gzip' }, body: 'no gzip' }, {}])
    expect(records[0]).toMatchObject({ outcome: 'failed', code: 'bad_content_encoding' })
    expect(asked[1]).toEqual({ path: '/', etag: undefined, since: undefined })
  })
})

test('a 304 that was not asked for is an error of the server', async () => {
  const records = await fetches([{ status: 304, headers: validators }, { status: 304 }])
  expect(records.map(({ outcome, status }) => [outcome, status])).toEqual([['http_error', 304], ['http_error', 304]])
})

test('a body that is sent again and is the same is unchanged, and its links are read all the same', async () => {
  const body = '<a href="/x">x</a>'
  const bodies = [body, body, `${body}!`]
  const crawler = await open()
  answerOf = (path) => ({ body: path === '/' ? bodies.shift()! : 'the target' })
  for (let times = 0; times < 3; times += 1) {
    await crawler.add(`${origin}/`, { again: true })
    await crawler.start()
  }
  await crawler.close()
  const records = await readPages(dir)
  expect(records.map(({ url, unchanged, links }) => [new URL(url).pathname, unchanged, links])).toEqual([['/', undefined, 1], ['/x', undefined, 0], ['/', true, 1], ['/', undefined, 1]])
  expect(records[2]!.hash).toBe(records[0]!.hash)
})

test('the sums say how many pages were fetched again, and how many of them were the same', async () => {
  const answers: Answer[] = [{ headers: { etag: '"1"' }, body: 'a' }, { status: 304 }, { body: 'a' }, { body: 'b' }]
  answerOf = () => answers.shift()!
  const crawler = await open()
  for (let times = 0; times < 4; times += 1) {
    await crawler.add(`${origin}/`, { again: true })
    await crawler.start()
  }
  expect(crawler.stats()).toMatchObject({ pages: 4, refetched: 3, notModified: 1, unchanged: 1, discovered: 1, done: 1 })
  await crawler.close()
})

const refusals = [
  [{ url: 'http://a.test/', lastmod: 'yesterday' }, {}, /^add: lastmod: expected a date.*given yesterday for http:\/\/a\.test\/$/], [{ url: 'http://a.test/', lastmod: new Date(Number.NaN) }, {}, /^add: lastmod/],
  [{ url: 'http://a.test/', again: 'yes' }, {}, /^add: again: expected true or false, given yes$/], ['http://a.test/', { again: 1 }, /^add: again/],
  ['http://a.test/', { agian: true }, /^add: unknown option "agian"; known is again$/], ['http://a.test/', true, /^add: expected options such as/], ['http://a.test/', null, /^add: expected options such as/],
] as const

describe('add', () => {
  test('leaves ended URLs alone, tries them again when told to, and counts them apart', async () => {
    const crawler = await open()
    const [one, two] = [`${origin}/1`, `${origin}/2`]
    expect(await crawler.add([one, two])).toMatchObject({ added: 2, again: 0, known: 0 })
    await crawler.start()
    expect(await crawler.add([one, two, `${origin}/3`])).toMatchObject({ added: 1, again: 0, known: 2 })
    expect(await crawler.add([one, `${origin}/3`, `${origin}/4`, one], { again: true })).toMatchObject({ added: 1, again: 1, known: 2 })
    expect(await crawler.add([{ url: two, again: true }, { url: new URL(one) }])).toMatchObject({ added: 0, again: 1, known: 1 })
    await crawler.start()
    expect(asked.map(({ path }) => path).sort()).toEqual(['/1', '/1', '/2', '/2', '/3', '/4'])
    await crawler.close()
  })

  test('tries again what was modified after its last fetch, and nothing else', async () => {
    const crawler = await open({ recrawl: 'lastmod' })
    const url = `${origin}/`
    await crawler.add({ url, lastmod: '2020-01-31' })
    await crawler.start()
    expect(await crawler.add({ url, lastmod: '2020-01-31T10:00:00Z' })).toMatchObject({ added: 0, again: 0, known: 1 })
    expect(await crawler.add({ url, lastmod: new Date(Date.now() + 60_000) })).toMatchObject({ again: 1 })
    await crawler.start()
    expect(await crawler.add({ url, lastmod: Date.now() - 60_000 })).toMatchObject({ again: 0 })
    expect(asked).toHaveLength(2)
    await crawler.close()
  })

  test('refuses a lastmod that names no moment, and an again that is neither true nor false', async () => {
    const crawler = await open()
    for (const [given, options, message] of refusals) {
      await expect(crawler.add(given as never, options as never)).rejects.toMatchObject({ code: 'bad_option', message: expect.stringMatching(message) })
    }
    await crawler.close()
  })

  test('rejects an object whose URL is none', async () => {
    const crawler = await open()
    expect(await crawler.add([{ url: 'ftp://a.test/' }, { url: 5 as never }])).toMatchObject({ added: 0, rejected: 2 })
    await crawler.close()
  })
})

describe('what falls due', () => {
  test('goes back to the queue by itself while the crawl runs', async () => {
    const crawler = await open({ tailMs: 'wait', recrawl: ({ previous }: RecrawlFacts) => (previous === undefined ? 50 : undefined) })
    await crawler.add(['/1', '/2', '/3'].map((path) => origin + path))
    const summary = await crawler.start()
    expect(summary).toMatchObject({ state: 'complete', pages: 6, refetched: 3, unchanged: 3, pending: 0 })
    expect(asked.map(({ path }) => path).sort()).toEqual(['/1', '/1', '/2', '/2', '/3', '/3'])
    await crawler.close()
  })

  test('later than the tail lets the run end, and comes when a later one waits for it', async () => {
    const first = await open({ recrawl: ({ previous }: RecrawlFacts) => (previous === undefined ? 500 : undefined) })
    await first.add(`${origin}/`)
    expect(await first.start()).toMatchObject({ state: 'complete', pages: 1, parked: 0, pending: 0 })
    await first.close()
    const second = await open({ tailMs: 'wait' })
    expect(await second.start()).toMatchObject({ state: 'complete', pages: 2, refetched: 1 })
    await second.close()
    expect(asked).toHaveLength(2)
  })

  test('does not take a run beyond its limit of pages', async () => {
    const crawler = await open({ tailMs: 'wait', recrawl: 'fixed:1ms' })
    await crawler.add(`${origin}/`)
    expect(await crawler.start({ maxPages: 5 })).toMatchObject({ state: 'limit', pagesThisRun: 5, refetched: 4 })
    await crawler.close()
    expect(asked).toHaveLength(5)
  })

  test('of a host that was excluded is due no more', async () => {
    const crawler = await open({ tailMs: 'wait', recrawl: ({ previous }: RecrawlFacts) => (previous === undefined ? 200 : undefined) })
    await crawler.add(`${origin}/`)
    const run = crawler.start()
    await new Promise<void>((resolve) => { crawler.on('page', () => resolve()) })
    await crawler.exclude('a.test')
    expect(await run).toMatchObject({ state: 'complete', pages: 1, pending: 0, done: 1 })
    await crawler.close()
  })

  test('ends the run with the code of a policy that answers nonsense', async () => {
    const crawler = await open({ recrawl: () => -1 })
    await crawler.add(`${origin}/`)
    await expect(crawler.start()).rejects.toMatchObject({ code: 'bad_option' })
    await crawler.close()
  })
})

interface Stored { readonly type: string; readonly header: (name: string) => string | undefined; readonly payload: string; readonly status: number }

async function warcRecords(): Promise<readonly Stored[]> {
  const records: Stored[] = []
  for (const name of (await readdir(join(dir, 'warc'))).sort()) {
    for await (const record of new WARCParser(createReadStream(join(dir, 'warc', name)))) {
      if (record.warcType === 'warcinfo') continue
      const payload = Buffer.from(await record.readFully(false)).toString()
      records.push({ type: record.warcType!, header: (field) => record.warcHeader(field) ?? undefined, payload, status: Number(record.httpHeaders?.statusCode) })
    }
  }
  return records
}

describe('an archive holds a payload once', () => {
  const profile = 'http://netpreserve.org/warc/1.1/revisit'

  test('and revisits of it, by the digest and by the server, that name the record of the payload', async () => {
    const records = await fetches([{ headers: { etag: '"1"' }, body: 'page' }, { body: 'page', headers: { etag: '"1"' } }, { status: 304 }, { body: 'other' }], { format: 'warc,jsonl' })
    const [first, same, notModified, other] = await warcRecords()
    expect([first, same, notModified, other].map((record) => [record!.type, record!.status, record!.payload])).toEqual([
      ['response', 200, 'page'], ['revisit', 200, ''], ['revisit', 304, ''], ['response', 200, 'other'],
    ])
    const firstDate = first!.header('WARC-Date')!
    expect(new Date(firstDate).toISOString()).toBe(records[0]!.fetchedAt)
    for (const record of [same!, notModified!]) {
      expect([record.header('WARC-Refers-To-Target-URI'), record.header('WARC-Refers-To-Date')]).toEqual([`${origin}/`, firstDate])
    }
    expect([same!.header('WARC-Profile'), same!.header('WARC-Payload-Digest'), same!.header('WARC-Truncated')]).toEqual([`${profile}/identical-payload-digest`, first!.header('WARC-Payload-Digest'), 'length'])
    expect([notModified!.header('WARC-Profile'), notModified!.header('WARC-Payload-Digest')]).toEqual([`${profile}/server-not-modified`, undefined])
    expect(records.map(({ outcome, unchanged }) => [outcome, unchanged])).toEqual([['ok', undefined], ['ok', true], ['not_modified', undefined], ['ok', undefined]])
    expect(records.every(({ warc }) => warc !== undefined)).toBe(true)
  })

  test('so a page of a crawl that wrote none before is asked for whole', async () => {
    const first = await open()
    answerOf = () => ({ headers: validators, body: 'page' })
    await first.add(`${origin}/`)
    await first.start()
    await first.close()
    const second = await open({ format: 'warc' })
    await second.add(`${origin}/`, { again: true })
    await second.start()
    await second.close()
    expect(asked.map(({ etag }) => etag)).toEqual([undefined, undefined])
    expect((await warcRecords()).map(({ type }) => type)).toEqual(['response'])
  })
})

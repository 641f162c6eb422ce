/** What programs get wrong with the library. No web is needed: nothing listens where these crawlers are sent. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { until } from '../support/processes.ts'

const SEED = 'http://a.test:2/'

let crawler: Crawler
let dir: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  crawler = await Crawler.open({ dir, threads: 1, allowAddress: '127.0.0.0/8', resolve: 'a.test=127.0.0.1' })
})
afterEach(async () => {
  await crawler.close()
  await rm(dir, { recursive: true, force: true })
})

it.each(['a.test', 'A.Test', ' a.test ', 'a.test.', 'http://a.test:8080/page'])('knows the host to exclude from %j', async (host) => {
  await crawler.add(SEED)
  await crawler.exclude(host)
  expect(crawler.host(host)).toMatchObject({ name: 'a.test', excluded: true })
  expect(await crawler.start()).toMatchObject({ state: 'complete', excluded: 1, fetchesThisRun: 0 })
})

it.each(['', 'a b', 'a.test:8080', 5])('refuses %j as a host, since it would match none', async (host) => {
  await expect(crawler.exclude(host as string)).rejects.toMatchObject({ code: 'usage' })
  expect(() => crawler.host(host as string)).toThrow(expect.objectContaining({ code: 'usage' }))
  expect(() => crawler.setLimit(host as string, {})).toThrow(expect.objectContaining({ code: 'usage' }))
})

it.each([
  { delayMs: Number.NaN }, { delayMs: -1 }, { delayMs: Number.POSITIVE_INFINITY }, { delayMs: 'soon' },
  { concurrency: { start: 0, floor: 0, ceiling: 0 } }, { concurrency: '4' }, { delay: 5 },
])('refuses %j as the limit of a host, which would stop it or let it run free', async (limit) => {
  await crawler.add(SEED)
  expect(() => crawler.setLimit('a.test', limit)).toThrow(expect.objectContaining({ code: 'bad_option' }))
})

it('takes the limit of a host as text too, like every option', async () => {
  await crawler.add(SEED)
  crawler.setLimit('a.test', { delayMs: '7s', concurrency: '1:1:1' })
  expect(crawler.host('a.test')).toMatchObject({ delayMs: 7_000, limit: 1 })
})

it('refuses a signal that is none before the run begins, so that the next may', async () => {
  await expect(crawler.start({ signal: 'stop' as unknown as AbortSignal })).rejects.toMatchObject({ code: 'bad_option' })
  expect(await crawler.start()).toMatchObject({ state: 'complete' })
})

it('ends an endless add when it is closed, as a closed crawler would have refused it', async () => {
  let isLeft = false
  let pulled = 0
  async function* seeds(): AsyncGenerator<string> {
    try {
      for (;;) yield `http://a.test:2/${pulled++}`
    } finally {
      isLeft = true
    }
  }
  const adding = expect(crawler.add(seeds())).rejects.toMatchObject({ code: 'crawler_closed' })
  await until(() => pulled > 100)
  await crawler.close()
  await adding
  expect(isLeft).toBe(true)
})

it('takes URL objects as seeds', async () => {
  expect(await crawler.add(new URL(SEED))).toMatchObject({ added: 1 })
  expect(await crawler.add([new URL('next', SEED)])).toMatchObject({ added: 1, rejected: 0 })
})

it.each([undefined, null, 5, {}])('refuses to add %j, and says what it expects', async (urls) => {
  await expect(crawler.add(urls as unknown as string)).rejects.toMatchObject({ code: 'bad_option' })
})

it('puts nothing back of an excluded host, nor by a filter that says nothing, nor once it is closed', async () => {
  await crawler.add(SEED)
  await crawler.exclude(['a.test', 'http://b.test/'])
  await crawler.start()
  await expect(crawler.requeue({})).rejects.toMatchObject({ code: 'bad_option', message: expect.stringContaining('--all') })
  await expect(crawler.requeue({ host: 'a b' })).rejects.toMatchObject({ code: 'usage' })
  expect(await crawler.requeue({ outcome: ['excluded', 'ok'] })).toEqual({ requeued: 0, excluded: 1 })
  const late = crawler.requeue({ all: true }).catch((error: { code: string }) => error.code)
  await crawler.close()
  expect([{ requeued: 0, excluded: 1 }, 'crawler_closed']).toContainEqual(await late)
  await expect(crawler.requeue({ all: true })).rejects.toMatchObject({ code: 'crawler_closed' })
})

it('tells once it is closed how it stood at its end, and goes on after no late resume', async () => {
  await crawler.add(SEED)
  const { pending } = crawler.stats()
  await crawler.close()
  crawler.resume()
  expect(crawler.stats()).toMatchObject({ state: 'closed', pending })
  expect(crawler.stats()).toBe(crawler.stats())
})

it('gives the directory back although its close fails, because somebody deleted the page records meanwhile', async () => {
  const place = join(dir, 'deleted')
  const first = await Crawler.open({ dir: place, threads: 1, durability: 'system' })
  await first.add('http://127.0.0.1:2/')
  expect(await first.start()).toMatchObject({ state: 'complete', failed: 1 })
  await rm(join(place, 'pages-000001.jsonl'))
  await expect(first.close()).rejects.toMatchObject({ code: 'disk_failed' })
  const second = await Crawler.open({ dir: place, threads: 1 })
  expect(second.stats()).toMatchObject({ failed: 1, pending: 0 })
  await second.close()
})

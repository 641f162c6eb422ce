/** What `stats()` and `host()` say, against a server whose answers are known. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Crawler, type CrawlOptionsGiven } from '../../engine/index.ts'

let server: Server
let origin: string
let options: CrawlOptionsGiven

beforeEach(async () => {
  server = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('page'))
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  origin = `http://a.test:${(server.address() as AddressInfo).port}`
  options = {
    dir: await mkdtemp(join(tmpdir(), 'sluice-test-')), threads: 1, delayMs: '1s', allowAddress: '127.0.0.0/8', resolve: 'a.test=127.0.0.1',
  }
})
afterEach(async () => {
  server.close()
  server.closeAllConnections()
  await rm(options.dir!, { recursive: true, force: true })
})

it('a host with nothing left to do waits for its delay at most, and not for ever', async () => {
  const crawler = await Crawler.open(options)
  await crawler.add(`${origin}/`)
  await crawler.start()
  const { waitMs } = crawler.host('a.test')!
  await crawler.close()
  expect(waitMs).toBeGreaterThanOrEqual(0)
  expect(waitMs).toBeLessThanOrEqual(1_000)
})

it('stats tell what the store takes, and which links were known before they were looked up', async () => {
  const links = Array.from({ length: 5 }, (_, index) => `<a href="/${index}">${index}</a>`).join('')
  server.removeAllListeners('request').on('request', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(links))
  const crawler = await Crawler.open({ ...options, delayMs: 0, concurrency: '1:1:1' })
  await crawler.add(`${origin}/`)
  await crawler.start()
  const { durability, linksDroppedKnown, nextDueAtMs, store } = crawler.stats()
  await crawler.close()
  expect([durability, nextDueAtMs]).toEqual(['commit', undefined])
  // The seed, and six pages that link to the same five.
  expect(store.linksNew).toBe(6)
  expect(linksDroppedKnown + store.linksKnown + store.linksLookedUp).toBe(31)
  expect(linksDroppedKnown).toBeGreaterThan(0)
  expect(store.fileBytes).toBeGreaterThanOrEqual(store.bytesUsed)
  expect(store.bytesUsed).toBeGreaterThan(0)
})

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

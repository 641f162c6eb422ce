/** Anybody can link to a port of a host at which nothing listens: that must not cost the host its pages. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Crawler } from '../../engine/index.ts'

test('links to closed ports of a host leave its pages where they are: all are read, and the links wait for their next try', async () => {
  const closed = http.createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const deadPort = (closed.address() as AddressInfo).port
  closed.close()
  await once(closed, 'close')
  const links = [`http://site.test:${deadPort}/a`, `http://site.test:${deadPort}/b`, ...Array.from({ length: 20 }, (_, at) => `/page-${at}`)]
  const server = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html')
    response.statusCode = request.url === '/robots.txt' ? 404 : 200
    response.end(request.url === '/' ? links.map((link) => `<a href="${link}">x</a>`).join('') : 'a page')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dir = await mkdtemp(join(tmpdir(), 'sluice-dead-port-'))
  const crawler = await Crawler.open({ dir, allowAddress: ['127.0.0.0/8'], resolve: { 'site.test': '127.0.0.1' }, delayMs: 0, hostPatienceMs: 0, tailMs: 'park' })
  try {
    await crawler.add(`http://site.test:${(server.address() as AddressInfo).port}/`)
    const { pages, pending, failed } = await crawler.start()
    expect({ pages, pending, failed }).toEqual({ pages: 21, pending: 2, failed: 0 })
    expect(crawler.host('site.test')).toMatchObject({ failures: 0 })
  } finally {
    await crawler.close()
    server.close()
    await rm(dir, { recursive: true, force: true })
  }
})

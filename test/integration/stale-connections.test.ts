/** Servers that say that a connection is kept and then close it, at the next request or before any answer. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { countsOf, readPages } from '../support/crawl.ts'
import { makeRig } from '../support/fetch-rig.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => { for (const close of closers.splice(0).toReversed()) await close() })

interface Server {
  readonly origin: string
  /** Paths in the order of their requests, robots.txt too. */
  readonly asked: readonly string[]
}

/** Closes the connection, by a reset, for every request that `isAnswered` does not answer; `number`: of the request on its connection, 1 first. */
async function openServer(isAnswered: (path: string, number: number) => boolean, html = ''): Promise<Server> {
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let [number, text] = [0, '']
    sockets.add(socket)
    socket.on('error', () => {}).on('data', (data: Buffer) => {
      text += data.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      const path = text.split(' ', 2)[1]!
      text = ''
      number += 1
      asked.push(path)
      if (!isAnswered(path, number)) return socket.resetAndDestroy()
      const [status, body] = path === '/robots.txt' ? ['404 Not Found', ''] : ['200 OK', `<!doctype html>${html}`]
      return socket.write(`HTTP/1.1 ${status}\r\nContent-Type: text/html\r\nConnection: keep-alive\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  closers.push(async () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { asked, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('a request that every connection swallows is sent on a kept one and on a new one, and never a third time, however many are kept', async () => {
  const { asked, origin } = await openServer((path) => path !== '/never')
  const { get, fetcher } = makeRig()
  closers.push(() => fetcher.close())
  for (const result of await Promise.all(['/a', '/b', '/c'].map((path) => get(origin + path)))) if (result.ok) result.release()
  expect(fetcher.stats().socketsIdle).toBe(3)
  expect(await get(`${origin}/never`)).toMatchObject({ ok: false, code: 'connection_closed' })
  expect(countsOf(asked).get('/never')).toBe(2)

  // A paced one is sent once in its turn: on a kept connection that is no try, and on a new one it is.
  const ends = []
  for (let turn = 0; turn < 3; turn += 1) ends.push(await get(`${origin}/never`, { isPaced: true }))
  expect(ends).toMatchObject([{ isStale: true }, { isStale: true }, { code: 'connection_closed' }])
  expect(ends[2]).not.toHaveProperty('isStale')
  expect(countsOf(asked).get('/never')).toBe(5)
})

test.each([['without a delay', 0], ['with a delay', 10]])('a host that keeps no connection that it promised to keep is read whole, %s: each page at its first try, sent twice at most', async (_, delayMs) => {
  const pages = Array.from({ length: 12 }, (_, at) => `/p${at}`)
  const { asked, origin } = await openServer((_, number) => number === 1, pages.map((path) => `<a href="${path}">p</a>`).join(''))
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  closers.push(() => rm(dir, { recursive: true }))
  const crawler = await Crawler.open({ dir, threads: 1, delayMs, concurrency: '1:1:1', allowAddress: '127.0.0.0/8', scope: 'host' })
  closers.push(() => crawler.close())
  await crawler.add([`${origin}/`])
  await crawler.start()
  await crawler.close()
  expect((await readPages(dir)).map(({ url, outcome, attempts }) => `${new URL(url).pathname} ${outcome} ${attempts}`).sort()).toEqual(['/', ...pages].map((path) => `${path} ok 1`).sort())
  const sent = countsOf(asked)
  expect([...sent].filter(([, count]) => count > 2)).toEqual([])
  // It did meet closed connections.
  expect(asked.length).toBeGreaterThan(sent.size)
})

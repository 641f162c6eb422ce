/** A web of a few hosts on one port, whose answers a test gives as a function of host and path; robots.txt is not there, unless it gives one. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CrawlOptionsGiven } from '../../engine/index.ts'

export interface SmallRequest {
  readonly host: string
  /** With its query. */
  readonly path: string
  /** Scheme, host and port. */
  readonly origin: string
}

/** A document (with 200, unless it says otherwise), or where it has moved. Undefined: there is none. */
export type SmallAnswer = { readonly html: string; readonly status?: number; readonly headers?: Readonly<Record<string, string | string[]>> } | { readonly location: string } | undefined

export interface SmallWeb {
  /** `http://HOST:PORT` */
  origin(host: string): string
  /** What was asked so far, robots.txt aside, as `host/path` in the order of arrival. */
  readonly asked: readonly string[]
  /** Options that let a crawler reach the web, with a directory of its own. */
  readonly options: CrawlOptionsGiven & { readonly dir: string }
  close(): Promise<void>
}

export async function openSmallWeb(hosts: readonly string[], answerOf: (request: SmallRequest) => SmallAnswer, robotsOf: (host: string) => string | undefined = () => undefined): Promise<SmallWeb> {
  const asked: string[] = []
  const server = createServer(({ headers, url: path = '' }, response) => {
    const origin = `http://${headers.host}`
    const host = new URL(origin).hostname
    if (path === '/robots.txt') {
      const robots = robotsOf(host)
      return response.writeHead(robots === undefined ? 404 : 200).end(robots)
    }
    asked.push(host + path)
    const answer = answerOf({ host, path, origin })
    if (answer === undefined) return response.writeHead(404).end()
    if ('location' in answer) return response.writeHead(301, { location: answer.location }).end()
    return response.writeHead(answer.status ?? 200, { 'content-type': 'text/html; charset=utf-8', ...answer.headers }).end(answer.html)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const { port } = server.address() as AddressInfo
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  return {
    asked,
    origin: (host) => `http://${host}:${port}`,
    options: {
      dir, threads: 1, scope: 'any', delayMs: 0, allowAddress: '127.0.0.0/8',
      resolve: Object.fromEntries(hosts.map((host) => [host, '127.0.0.1'])),
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

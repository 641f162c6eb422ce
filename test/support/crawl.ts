/** A demonstration web, a crawl directory, and readers of what a crawl left there. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Site, spawnDemoWeb, type DemoWebOptions, type RequestEntry, type SpawnedDemoWeb } from '../../engine/demo/index.ts'
import type { CrawlOptionsGiven, PageRecord } from '../../engine/index.ts'

export { readWarcs, type WarcResponse } from '../../bench/warc-reader.ts'

export interface CrawlBed {
  readonly web: SpawnedDemoWeb
  readonly site: Site
  readonly dir: string
  /** Options that let a crawler reach the web. */
  readonly options: CrawlOptionsGiven
  /** The same as arguments of the command line. */
  readonly flags: readonly string[]
  /** What the server was asked so far, robots.txt and unknown paths included. */
  requests(): Promise<readonly ServerRequest[]>
  close(): Promise<void>
}

export type ServerRequest = RequestEntry

/** Starts a web in a process of its own, with a request log, and an empty directory. */
export async function openBed(options: DemoWebOptions = {}): Promise<CrawlBed> {
  const base = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  const logFile = join(base, 'requests.log')
  const web = await spawnDemoWeb({ tls: true, seed: 1, ...options, logFile })
  const site = new Site({
    scheme: options.tls === false ? 'http' : 'https', port: web.port, hosts: web.resolve.size, pages: web.pages, seed: options.seed ?? 1,
    faultShare: options.faultShare ?? 0, sizeScale: options.sizeScale ?? 1, changeShare: options.changeShare ?? 0, goneShare: options.goneShare ?? 0,
    bodies: options.pagesDir === undefined ? 'made' : 'given',
  })
  const [ca, hosts, dir] = [join(base, 'ca.pem'), join(base, 'hosts'), join(base, 'crawl')]
  await writeFile(ca, web.caPem)
  await writeFile(hosts, [...web.resolve].map(([name, address]) => `${address} ${name}\n`).join(''))
  const trust = web.caPem === '' ? {} : { ca }
  return {
    web, site, dir,
    options: { dir, scope: 'any', delayMs: 0, allowAddress: ['127.0.0.0/8'], resolve: Object.fromEntries(web.resolve), ...trust },
    flags: [
      '--dir', dir, '--scope', 'any', '--delay', '0', '--allow-address', '127.0.0.0/8', '--resolve', `@${hosts}`,
      ...(web.caPem === '' ? [] : ['--ca', ca]),
    ],
    async requests() {
      await web.flush()
      return parseLines<ServerRequest>(await readFile(logFile, 'utf8'))
    },
    async close() {
      await web.close()
      await rm(base, { recursive: true, force: true })
    },
  }
}

function parseLines<T>(text: string): T[] {
  return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as T)
}

/** Every page record of a directory, in file order. Fails on a line that is no JSON. */
export async function readPages(dir: string): Promise<PageRecord[]> {
  const names = (await readdir(dir)).filter((name) => /^pages-\d+\.jsonl$/.test(name)).sort()
  const texts = await Promise.all(names.map((name) => readFile(join(dir, name), 'utf8')))
  return texts.flatMap((text) => parseLines<PageRecord>(text))
}

/** Items by how often they occur. */
export function countsOf(items: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

/** Those that do not occur exactly once. */
export function notOnce(items: Iterable<string>): string[] {
  return [...countsOf(items)].filter(([, count]) => count !== 1).map(([item, count]) => `${item}: ${count}`)
}

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { Crawler, type GatewayFile } from '../../engine/index.ts'
import { readPages } from '../support/crawl.ts'
import { answerOf, startApi, startProxy, type TestApi, type TestProxy } from '../support/gateways.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => { for (const close of closers.splice(0).toReversed()) await close() })

const links = (paths: readonly string[]): string => `<!doctype html><title>a</title>${paths.map((path) => `<a href="${path}">a</a>`).join('')}`
const pages = Array.from({ length: 12 }, (_, at) => `/p${at}`)
const hosts = ['one.example', 'two.example', 'direct.test'] as const

/** Three small sites: two that go through a gateway and one that does not. */
async function smallWeb(): Promise<SmallWeb> {
  const web = await openSmallWeb(hosts, ({ path }) => (path === '/' ? { html: links(pages) } : { html: links([]) }))
  closers.push(() => web.close())
  return web
}

async function openProxy(): Promise<TestProxy> {
  const proxy = await startProxy()
  closers.push(() => proxy.close())
  return proxy
}

async function openApi(): Promise<TestApi> {
  const api = await startApi()
  closers.push(() => api.close())
  return api
}

async function openCrawler(options: Parameters<typeof Crawler.open>[0]): Promise<Crawler> {
  const crawler = await Crawler.open(options)
  closers.push(() => crawler.close())
  return crawler
}

/** Everything that a crawl wrote, as one text. */
function everythingIn(dir: string): string {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((name) => join(dir, name)).filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1')).join('\n')
}

const SECRETS = /hush|dXNlcjpodXNo/

test("a proxy's ceiling slows the proxy and no host: every page is read once, nothing is charged for the refusals, and no secret is left anywhere", async () => {
  const [web, proxy] = [await smallWeb(), await openProxy()]
  const file = `${web.options.dir}.gateways.json`
  closers.push(() => rm(file))
  writeFileSync(file, JSON.stringify({ gateways: [{ name: 'eu', proxy: `http://user:hush@127.0.0.1:${proxy.port}`, hosts: ['*.example'], concurrency: '8:1:8' }] }))
  let refused = 0
  proxy.play = ({ tunnelsOpen }) => {
    if (tunnelsOpen < 3) return 'tunnel'
    refused += 1
    return answerOf(429)
  }
  const crawler = await openCrawler({ ...web.options, gateway: file, concurrency: '8:1:8' })
  await crawler.add(hosts.map((host) => `${web.origin(host)}/`))
  const summary = await crawler.start()
  const stats = crawler.stats()
  const [viaOne, direct] = ['one.example', 'direct.test'].map((host) => crawler.host(host)!)
  const shown = [JSON.stringify(stats), JSON.stringify(summary), inspect(crawler.options, { depth: 9 }), JSON.stringify(crawler.options)].join('\n')
  await crawler.close()

  expect(refused).toBeGreaterThan(0)
  expect(summary).toMatchObject({ state: 'complete', done: 39, failed: 0, pending: 0, retries: 0 })
  expect(stats.gateways).toMatchObject([{ name: 'eu', inFlight: 0, throttled: refused, quotaHits: 0, failed: 0 }])
  expect(stats.gateways![0]!.limit).toBeLessThan(8)
  // Its refusals are no word about the hosts.
  expect(viaOne).toMatchObject({ failures: 0, health: 1, backoffMs: 0 })
  expect(viaOne!.limit).toBeGreaterThanOrEqual(direct!.limit)
  const records = await readPages(web.options.dir)
  expect(web.asked.toSorted()).toEqual(records.map(({ url }) => new URL(url).hostname + new URL(url).pathname).toSorted())
  for (const { url, gateway, ip, attempts } of records) {
    expect({ gateway, ip, attempts }).toEqual(url.includes('direct.test') ? { gateway: undefined, ip: '127.0.0.1', attempts: 1 } : { gateway: 'eu', ip: undefined, attempts: 1 })
  }
  expect(proxy.asked.filter(({ authority }) => authority.startsWith('direct.test'))).toEqual([])
  const everything = `${everythingIn(web.options.dir)}${shown}`
  expect(everything).toContain('"gateway":"eu"')
  expect(everything).toContain(file)
  expect(everything).not.toMatch(SECRETS)
})

/** An API whose quota is spent after some pages, and filled when the test says so. */
function limited(api: TestApi, pagesMax: number): { fill: () => void; readonly asked: () => number } {
  let left = pagesMax
  let asked = 0
  api.play = ({ target }) => {
    if (new URL(target).pathname === '/robots.txt') return { status: 404 }
    asked += 1
    if (left-- <= 0) return { status: 509 }
    return { status: 200, body: new URL(target).pathname === '/' ? links(pages) : links([]) }
  }
  return { fill: () => { left = Number.POSITIVE_INFINITY }, asked: () => asked }
}

/** Resolves when so many URLs are done and the rest waits for a gateway; looks once a turn of the event loop. */
async function untilWaiting(crawler: Crawler, done: number): Promise<void> {
  for (let stats = crawler.stats(); stats.done !== done || stats.blockedOn !== 'gateway' || stats.inFlight > 0; stats = crawler.stats()) await new Promise((resolve) => { setImmediate(resolve) })
}

const templateOf = (api: TestApi, changes: object = {}): GatewayFile =>
  ({ gateways: [{ name: 'api', template: `http://127.0.0.1:${api.port}/v1?key=hush&url={url}`, headers: { 'x-key': 'hush' }, hosts: ['*.example'], ...changes }] })

test('a spent quota pauses what goes through the gateway until resume(), while hosts that go direct go on, and nothing is lost', async () => {
  const [web, api] = [await smallWeb(), await openApi()]
  const quota = limited(api, 5)
  const crawler = await openCrawler({ ...web.options, gateway: templateOf(api), tailMs: 'wait' })
  await crawler.add(hosts.map((host) => `${web.origin(host)}/`))
  const done = crawler.start()
  await untilWaiting(crawler, 18)
  const stats = crawler.stats()
  expect(stats).toMatchObject({ blockedOn: 'gateway', done: 18, failed: 0, gateways: [{ name: 'api', pausedUntil: 'resume', inFlight: 0 }] })
  const askedBefore = quota.asked()
  expect(stats.gateways![0]!.quotaHits).toBe(askedBefore - 5)
  quota.fill()
  crawler.resume()
  const summary = await done
  expect(summary).toMatchObject({ state: 'complete', done: 39, failed: 0, retries: 0, pending: 0 })
  expect(crawler.stats().gateways![0]).not.toHaveProperty('pausedUntil')
  await crawler.close()
  expect(everythingIn(web.options.dir)).not.toMatch(SECRETS)
})

test('a crawl whose only gateway has no quota ends when its tail does, with what is left parked, and goes on later; a robots.txt that it did not fetch is no failure of the host', async () => {
  const [web, api] = [await smallWeb(), await openApi()]
  api.play = () => ({ status: 509 })
  const crawler = await openCrawler({ ...web.options, gateway: templateOf(api), tailMs: 'park' })
  await crawler.add([`${web.origin('one.example')}/`])
  expect(await crawler.start()).toMatchObject({ state: 'complete', done: 0, failed: 0, parked: 1, pending: 1 })
  expect(crawler.host('one.example')).toMatchObject({ failures: 0, health: 1, backoffMs: 0 })
  expect(api.asked).toHaveLength(1)
  const quota = limited(api, 4)
  crawler.resume()
  expect(await crawler.start()).toMatchObject({ state: 'complete', done: 4, failed: 0, parked: 9, pending: 9 })
  quota.fill()
  crawler.resume()
  expect(await crawler.start()).toMatchObject({ state: 'complete', done: 13, failed: 0, parked: 0, pending: 0 })
})

test('what a gateway has tried again by itself is not tried again here', async () => {
  const [web, api] = [await smallWeb(), await openApi()]
  api.play = ({ target }) => {
    const { pathname } = new URL(target)
    if (pathname === '/robots.txt') return { status: 404 }
    // A wall in the body, which is found when the page is read.
    if (pathname === '/p2') return { status: 403, body: '<title>Attention Required! | Cloudflare</title>' }
    return pathname === '/' ? { status: 200, body: links(pages) } : { status: pathname === '/p1' ? 500 : 503 }
  }
  const crawler = await openCrawler({ ...web.options, gateway: templateOf(api, { retries: true }), retries: 5 })
  await crawler.add([`${web.origin('one.example')}/`])
  expect(await crawler.start()).toMatchObject({ state: 'complete', done: 12, failed: 1, retries: 0 })
  expect(api.asked).toHaveLength(14)
  const records = await readPages(web.options.dir)
  expect(records.filter(({ code }) => code !== undefined).map(({ url, code }) => `${new URL(url).pathname} ${code}`)).toEqual(['/p2 blocked'])
  expect(records.filter(({ outcome }) => outcome !== 'ok').map(({ attempts }) => attempts)).toEqual(pages.map(() => 1))
})

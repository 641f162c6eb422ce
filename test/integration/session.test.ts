/** Cookies and headers by origin, as servers see them. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { parseHostHeaders, type OriginHeadersGiven } from '../../engine/core/host-headers.ts'
import { Crawler } from '../../engine/index.ts'
import { Cookies } from '../../engine/web/cookies.ts'
import { Session } from '../../engine/web/session.ts'
import { readPages } from '../support/crawl.ts'
import { makeRig, type Rig, type RigOptions } from '../support/fetch-rig.ts'
import { startApi, startProxy } from '../support/gateways.ts'
import { TestClock } from '../support/test-clock.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => { for (const close of closers.splice(0).toReversed()) await close() })

const hosts = ['a.shop.test', 'b.shop.test', 'other.test'] as const
const pins = Object.fromEntries(hosts.map((host) => [host, '127.0.0.1']))

interface Asked {
  /** `HOST/path` */
  readonly what: string
  readonly headers: IncomingHttpHeaders
}

interface Web {
  readonly asked: readonly Asked[]
  origin(host: string): string
  /** What was sent in a field by each request, the latest last. */
  sent(field: string): readonly (string | undefined)[]
}

async function openWeb(answer: (what: string, response: ServerResponse, headers: IncomingHttpHeaders) => void): Promise<Web> {
  const asked: Asked[] = []
  const server = createServer(({ headers, url }, response) => {
    const what = `${headers.host!.replace(/:\d+$/, '')}${url}`
    asked.push({ what, headers })
    answer(what, response, headers)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  closers.push(async () => server.close(() => {}).closeAllConnections())
  return { asked, origin: (host) => `http://${host}:${(server.address() as AddressInfo).port}`, sent: (field) => asked.map(({ headers }) => headers[field] as string | undefined) }
}

function html(response: ServerResponse, text = '', headers: Record<string, string | readonly string[]> = {}): void {
  response.writeHead(200, { 'content-type': 'text/html', ...headers } as Record<string, string>).end(`<!doctype html>${text}`)
}

function openRig(given: readonly OriginHeadersGiven[], options: RigOptions = {}): Rig {
  const hostHeaders = parseHostHeaders({ origins: given.length > 0 ? given : [{ origin: 'http://nobody.test', headers: { a: 'b' } }] })
  const rig = makeRig({ pins, session: new Session(hostHeaders, new Cookies({ clock: options.clock ?? new TestClock() })), ...options })
  closers.push(() => rig.fetcher.close())
  return rig
}

async function get(rig: Rig, url: string): Promise<Awaited<ReturnType<Rig['get']>>> {
  const result = await rig.get(url)
  if (result.ok) result.release()
  return result
}

describe('with the jar on', () => {
  test('every answer sets cookies, whatever its status and its body, and the next request to the host sends them', async () => {
    let number = 0
    const web = await openWeb((what, response) => {
      number += 1
      const cookie = { 'set-cookie': [`c=${number}`, `n${number}=1`] }
      if (what.endsWith('/redirect')) return response.writeHead(302, { location: '/', ...cookie }).end()
      if (what.endsWith('/denied')) return response.writeHead(401, cookie).end()
      if (what.endsWith('/image')) return response.writeHead(200, { 'content-type': 'image/png', ...cookie }).end('x')
      if (what.endsWith('/cut')) return response.writeHead(200, { 'content-type': 'text/html', 'content-length': '9', ...cookie }).write('x', () => response.destroy())
      return html(response, '', cookie)
    })
    const rig = openRig([])
    const results = []
    for (const path of ['/redirect', '/denied', '/image', '/cut', '/', '/']) results.push(await get(rig, `${web.origin('a.shop.test')}${path}`))
    expect(results.map((result) => (result.ok ? result.status : result.code))).toEqual([302, 401, 'unsupported_type', 'connection_closed', 200, 200])
    expect(web.sent('cookie')).toEqual([undefined, 'c=1; n1=1', 'c=2; n1=1; n2=1', 'c=3; n1=1; n2=1; n3=1', 'c=4; n1=1; n2=1; n3=1; n4=1', 'c=5; n1=1; n2=1; n3=1; n4=1; n5=1'])
    expect(results.map((result) => result.ok && result.setsCookie)).toEqual([true, true, false, false, true, true])
  })

  test('cookies go to no other host, and those of a domain to the hosts below it', async () => {
    const web = await openWeb((what, response) => html(response, '', what === 'a.shop.test/' ? { 'set-cookie': ['own=1', 'all=2; Domain=shop.test', 'evil=3; Domain=other.test', 'worse=4; Domain=test'] } : {}))
    const rig = openRig([])
    for (const host of [...hosts, hosts[0]]) await get(rig, `${web.origin(host)}/`)
    expect(web.sent('cookie')).toEqual([undefined, 'all=2', undefined, 'own=1; all=2'])
  })

  test('an answer that brings nothing new does not say that it sets a cookie', async () => {
    const web = await openWeb((_, response) => html(response, '', { 'set-cookie': ['a=1', 'no cookie'] }))
    const rig = openRig([])
    const results = [await get(rig, `${web.origin('a.shop.test')}/`), await get(rig, `${web.origin('a.shop.test')}/`)]
    expect(results.map((result) => result.ok && result.setsCookie)).toEqual([true, undefined])
  })

  test('of answers that set one cookie at once, each says so: none of their requests had it', async () => {
    const waiting: ServerResponse[] = []
    const web = await openWeb((what, response) => {
      waiting.push(response)
      if (what.endsWith('/late') || waiting.length === 2) for (const each of waiting.splice(0)) html(each, '', { 'set-cookie': 'a=1' })
    })
    const rig = openRig([])
    const url = web.origin('a.shop.test')
    const results = [...await Promise.all([get(rig, `${url}/1`), get(rig, `${url}/2`)]), await get(rig, `${url}/late`)]
    expect(web.sent('cookie')).toEqual([undefined, undefined, 'a=1'])
    expect(results.map((result) => result.ok && result.setsCookie)).toEqual([true, true, undefined])
  })

  test('a head full of cookies within its bound leaves a jar of 50, and the next requests are answered', async () => {
    const web = await openWeb((_, response) => html(response, '', { 'set-cookie': Array.from({ length: 250 }, (_, at) => `n${at}=${'x'.repeat(8)}; Path=/; Max-Age=9`) }))
    const cookies = new Cookies({ clock: new TestClock() })
    const rig = openRig([], { session: new Session(parseHostHeaders({ origins: [{ origin: 'http://nobody.test', headers: { a: 'b' } }] }), cookies) })
    for (let time = 0; time < 3; time += 1) expect(await get(rig, `${web.origin('a.shop.test')}/`)).toMatchObject({ ok: true, status: 200 })
    expect(cookies.stats()).toMatchObject({ sites: 1, cookies: 50 })
    expect(web.sent('cookie').at(-1)!.split('; ')).toHaveLength(50)
  })

  test('a byte above ASCII comes back as it came, white space is cut, and a cookie that is none is left out', async () => {
    const web = await openWeb((_, response) => response.socket!.end(Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=\xe9\xff\r\nSet-Cookie: b\r\nSet-Cookie: c=\tx\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', 'latin1')))
    const rig = openRig([])
    for (let time = 0; time < 2; time += 1) expect(await get(rig, `${web.origin('a.shop.test')}/`)).toMatchObject({ ok: true, status: 200 })
    expect(web.sent('cookie')).toEqual([undefined, 'a=\xe9\xff; c=x'])
  })
})

describe('headers by origin', () => {
  test('go to that origin, with the password, in the place of ours with the same name, and to no other', async () => {
    const [web, twin] = [await openWeb((_, response) => html(response)), await openWeb((_, response) => html(response))]
    const rig = openRig([{ origin: web.origin('a.shop.test'), headers: { 'X-Api-Key': 'hush', ACCEPT: 'text/plain' }, basic: { username: 'me', password: 'hush' } }])
    for (const host of ['a.shop.test', 'b.shop.test']) await get(rig, `${web.origin(host)}/`)
    // The same host on another port.
    await get(rig, `${twin.origin('a.shop.test')}/`)
    expect(web.sent('x-api-key')).toEqual(['hush', undefined])
    expect(web.sent('authorization')).toEqual([`Basic ${Buffer.from('me:hush').toString('base64')}`, undefined])
    expect(web.sent('accept')).toEqual(['text/plain', expect.stringContaining('text/html')])
    expect([twin.sent('x-api-key'), twin.sent('authorization')]).toEqual([[undefined], [undefined]])
  })

  test('that hold a cookie are sent in one field with those of the jar', async () => {
    const web = await openWeb((_, response) => html(response, '', { 'set-cookie': 'b=2' }))
    const rig = openRig([{ origin: web.origin('a.shop.test'), headers: { Cookie: 'session=hush' } }])
    for (let time = 0; time < 2; time += 1) await get(rig, `${web.origin('a.shop.test')}/`)
    expect(web.sent('cookie')).toEqual(['session=hush', 'session=hush; b=2'])
    expect(web.asked[1]!.headers).toMatchObject({ cookie: 'session=hush; b=2' })
  })

  test('go neither in clear text through a proxy, nor to an API that fetches pages, and an API sets no cookies', async () => {
    const web = await openWeb((_, response) => html(response, '', { 'set-cookie': 'b=2' }))
    const [proxy, api] = [await startProxy(), await startApi()]
    closers.push(() => proxy.close(), () => api.close())
    api.play = () => ({ status: 200, headers: { 'set-cookie': 'api=3' } })
    const given = ['a.shop.test', 'b.shop.test'].map((host) => ({ origin: web.origin(host), headers: { 'X-Api-Key': 'hush' } }))
    const cookies = new Cookies({ clock: new TestClock() })
    const rig = openRig(given, { session: new Session(parseHostHeaders({ origins: given }), cookies), gateways: { gateways: [
      { name: 'p', proxy: `http://127.0.0.1:${proxy.port}`, hosts: ['a.shop.test'] },
      { name: 'api', template: `http://127.0.0.1:${api.port}/?url={url}`, hosts: ['b.shop.test'] },
    ] } })
    for (let time = 0; time < 2; time += 1) for (const host of ['a.shop.test', 'b.shop.test']) expect(await get(rig, `${web.origin(host)}/`)).toMatchObject({ ok: true, status: 200 })
    expect(web.sent('x-api-key')).toEqual([undefined, undefined])
    expect(web.sent('cookie')).toEqual([undefined, 'b=2'])
    expect(JSON.stringify(api.asked)).not.toMatch(/hush|b=2|api=3/)
    expect(cookies.stats()).toMatchObject({ sites: 1, cookies: 1 })
  })
})

/** Everything that a crawl wrote, as one text. */
function everythingIn(dir: string): string {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((name) => join(dir, name)).filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, 'latin1')).join('\n')
}

test('a crawl reads a site behind a password and a cookie, its robots.txt too, takes neither to the site that it is led to, and leaves no secret behind', async () => {
  const secret = `Basic ${Buffer.from('me:hush').toString('base64')}`
  const web = await openWeb((what, response, { authorization, cookie }) => {
    if (!what.startsWith('a.shop.test')) return what.endsWith('/robots.txt') ? response.writeHead(404).end() : html(response)
    if (authorization !== secret) return response.writeHead(401, { 'www-authenticate': 'Basic realm="a"' }).end()
    if (what.endsWith('/robots.txt')) return response.writeHead(200, { 'content-type': 'text/plain' }).end('User-agent: *\nDisallow: /private\n')
    if (cookie === undefined) return response.writeHead(302, { location: '/in', 'set-cookie': 'sid=jarred; HttpOnly' }).end()
    if (what.endsWith('/out')) return response.writeHead(301, { location: `${web.origin('other.test')}/led` }).end()
    return html(response, '<a href="/out">o</a><a href="/private">p</a>')
  })
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  closers.push(() => rm(dir, { recursive: true }))
  const file = join(dir, 'headers.json')
  writeFileSync(file, JSON.stringify({ origins: [{ origin: web.origin('a.shop.test'), basic: { username: 'me', password: 'hush' } }] }))
  const crawler = await Crawler.open({ dir: join(dir, 'crawl'), threads: 1, scope: 'any', delayMs: 0, allowAddress: '127.0.0.0/8', resolve: pins, hostHeaders: file, cookies: true })
  closers.push(() => crawler.close())
  await crawler.add([`${web.origin('a.shop.test')}/`])
  const summary = await crawler.start()
  const shown = inspect([summary, crawler.stats(), crawler.host('a.shop.test')], { depth: 9 })
  await crawler.close()

  const pages = await readPages(join(dir, 'crawl'))
  expect(pages.map(({ url, outcome }) => `${new URL(url).hostname}${new URL(url).pathname} ${outcome}`).sort()).toEqual(['a.shop.test/ redirect', 'a.shop.test/in ok', 'a.shop.test/out redirect', 'a.shop.test/private robots_denied', 'other.test/led ok'])
  const elsewhere = web.asked.filter(({ what }) => what.startsWith('other.test'))
  expect(elsewhere.map(({ headers: { authorization, cookie } }) => [authorization, cookie])).toEqual([[undefined, undefined], [undefined, undefined]])
  expect(web.asked.filter(({ what }) => what.startsWith('a.shop.test')).every(({ headers }) => headers.authorization === secret)).toBe(true)

  const left = `${everythingIn(join(dir, 'crawl'))}\n${shown}`
  expect(left).toContain(file)
  expect(left).not.toMatch(/hush|bWU6aHVzaA|jarred/)
})

test('without the jar no cookie is kept, and a password that is refused ends as what the server answered', async () => {
  const web = await openWeb((what, response) => (what.endsWith('/robots.txt') ? response.writeHead(404).end() : response.writeHead(401, { 'set-cookie': 'a=1' }).end()))
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  closers.push(() => rm(dir, { recursive: true }))
  const crawler = await Crawler.open({
    dir, threads: 1, delayMs: 0, allowAddress: '127.0.0.0/8', resolve: pins, hostHeaders: { origins: [{ origin: web.origin('a.shop.test'), headers: { authorization: 'Bearer hush' } }] },
  })
  closers.push(() => crawler.close())
  await crawler.add(['/', '/b'].map((path) => `${web.origin('a.shop.test')}${path}`))
  await crawler.start()
  await crawler.close()
  expect((await readPages(dir)).map(({ outcome, status, attempts }) => [outcome, status, attempts])).toEqual([['http_error', 401, 1], ['http_error', 401, 1]])
  expect(web.sent('cookie')).toEqual([undefined, undefined, undefined])
  expect(web.sent('authorization')).toEqual(Array(3).fill('Bearer hush'))
  expect(everythingIn(dir)).not.toMatch(/hush/)
})

/** robots.txt in a whole crawl: who is asked for it, who is spared, and what is shown of it afterwards. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runStatus } from '../../engine/cli/status.ts'
import { Crawler, type RobotsStats } from '../../engine/index.ts'
import { readPages } from '../support/crawl.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

const text = 'User-agent: *\nDisallow: /private\nDisallow: /*sort=\nRequest-rate: 20/1s\nSitemap: /s.xml\n'
const robotsAsked: string[] = []
const hosts = ['obeyed.test', 'spared.test', 'open.test']
const links = '<a href=/private/1>a</a><a href="/list?a&amp;sort=x">b</a><a href=/list>c</a>'
let web: SmallWeb

beforeAll(async () => {
  web = await openSmallWeb(hosts, ({ path }) => (path === '/' ? { html: links } : { html: path }), (host) => {
    robotsAsked.push(host)
    return host === 'open.test' ? undefined : text
  })
})
afterAll(() => web.close())

test('a crawl obeys robots.txt, spares the hosts of --robots FILE, and shows of each origin what holds, while it is open and stopped', async () => {
  const file = join(web.options.dir, 'spared')
  await writeFile(file, '*.spared.test\nspared.test # asked for it\n')
  const crawler = await Crawler.open({ ...web.options, robots: file })
  const shown: (Readonly<Record<string, RobotsStats>> | undefined)[] = []
  try {
    await crawler.add(hosts.map((host) => `${web.origin(host)}/`))
    await crawler.start()
    for (const host of hosts) shown.push(crawler.host(host)?.robots)
  } finally {
    await crawler.close()
  }

  expect(robotsAsked.sort()).toEqual(['obeyed.test', 'open.test'])
  const all = (host: string): string[] => ['/', '/list', '/list?a&sort=x', '/private/1'].map((path) => `${host}${path}`)
  expect([...web.asked].sort()).toEqual(['obeyed.test/', 'obeyed.test/list', ...all('open.test'), ...all('spared.test')])
  const denied = (await readPages(web.options.dir)).filter(({ outcome }) => outcome === 'robots_denied').map(({ url }) => new URL(url).hostname)
  expect(denied).toEqual(['obeyed.test', 'obeyed.test'])

  const origin = web.origin('obeyed.test')
  const until = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
  expect(shown).toEqual([
    { [origin]: { rule: 'rules', rules: 2, crawlDelayMs: 50, status: 200, sitemaps: [`${origin}/s.xml`], until } }, {},
    { [web.origin('open.test')]: { rule: 'allow', status: 404, until } },
  ])
  expect(JSON.parse(await statusOf('obeyed.test', true))).toMatchObject({ robots: shown[0] })
  expect(await statusOf('obeyed.test', false)).toContain(`robots.txt of ${origin}: 2 rules, crawl delay 50ms, status 200, until `)
})

/** What `sluice status` writes about a host of the stopped crawl. */
async function statusOf(host: string, json: boolean): Promise<string> {
  const written: string[] = []
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(((chunk: string, done?: () => void) => {
    written.push(chunk)
    done?.()
    return true
  }) as typeof process.stdout.write)
  try {
    await runStatus({ dir: web.options.dir, json, host })
  } finally {
    write.mockRestore()
  }
  return written.join('')
}

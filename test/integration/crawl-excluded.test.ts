/** Hosts that a file excludes: from the option through seeds, links, redirects and robots.txt. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { readPages } from '../support/crawl.ts'
import { makeRig } from '../support/fetch-rig.ts'
import { openSmallWeb, type SmallWeb } from '../support/small-web.ts'

let web: SmallWeb
beforeEach(async () => {
  web = await openSmallWeb(['a.test', 'shy.test', 'www.shy.test', 'old.test'], ({ host, path, origin }) => {
    const at = (name: string): string => origin.replace(host, name)
    if (path === '/moved') return { location: `${at('www.shy.test')}/moved` }
    return { html: `<a href="${at('shy.test')}/">x</a><a href="${at('www.shy.test')}/b">x</a><a href="/moved">x</a><a href="${at('old.test')}/">x</a>` }
  })
})
afterEach(() => web.close())

it('a host that the file excludes is asked for nothing, and one that it no longer excludes is', async () => {
  const file = join(web.options.dir, 'hosts')
  await writeFile(file, 'shy.test\n*.shy.test # its owner asked\n')
  const first = await Crawler.open({ ...web.options, excludeHosts: file })
  const { added } = await first.add([`${web.origin('a.test')}/`, `${web.origin('shy.test')}/seed`])
  await first.exclude('old.test')
  const { refused, excluded } = await first.start()
  await first.close()
  expect(added).toBe(1)
  expect(web.asked.toSorted()).toEqual(['a.test/', 'a.test/moved'])
  // The seed, two links and a redirect; and a link to the host that was excluded by name.
  expect([refused.excluded_host, excluded]).toEqual([5, 0])

  await writeFile(file, 'a.test\n')
  const second = await Crawler.open({ ...web.options, excludeHosts: file })
  await second.add([`${web.origin('shy.test')}/again`])
  await second.start()
  await second.close()
  expect(web.asked.slice(2).toSorted()).toEqual(['shy.test/', 'shy.test/again', 'shy.test/moved', 'www.shy.test/b', 'www.shy.test/moved'])
  expect((await readPages(web.options.dir)).filter(({ outcome }) => outcome !== 'ok' && outcome !== 'redirect')).toEqual([])
})

it('URLs that are queued when their host comes into the file end without a fetch', async () => {
  const first = await Crawler.open(web.options)
  await first.add([`${web.origin('shy.test')}/1`, `${web.origin('shy.test')}/2`])
  await first.close()
  const file = join(web.options.dir, 'hosts')
  await writeFile(file, 'shy.test\n')
  const second = await Crawler.open({ ...web.options, excludeHosts: file })
  const { state, excluded } = await second.start()
  expect(second.host('shy.test')).toMatchObject({ pending: 0 })
  await second.close()
  expect([state, excluded, web.asked]).toEqual(['complete', 2, []])
})

it('nothing leads to an excluded host: its address is refused to whoever asks, such as a redirect of robots.txt', async () => {
  const { fetcher, get } = makeRig({ pins: { 'a.test': '127.0.0.1', 'shy.test': '127.0.0.1' }, isExcluded: (host) => host === 'shy.test' })
  for (const name of ['shy.test', 'SHY.test', 'shy.test.']) {
    expect(await get(new URL(`${web.origin(name)}/robots.txt`).href)).toMatchObject({ ok: false, code: 'address_refused', detail: 'its host is excluded' })
  }
  expect(await get(`${web.origin('a.test')}/x`)).toMatchObject({ ok: true })
  expect(web.asked).toEqual(['a.test/x'])
  await fetcher.close()
})

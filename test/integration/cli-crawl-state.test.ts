/** A crawl seen from outside, running and stopped: status, exclude, export, inspect, and what it says of bad seeds. */
import fs from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PageRecord } from '../../engine/core/types.ts'
import { openBed, readPages, type CrawlBed } from '../support/crawl.ts'
import { childrenOf, isAlive, sluice, until } from '../support/processes.ts'

describe('a crawl from outside', () => {
  let bed: CrawlBed

  beforeEach(async () => {
    bed = await openBed({ hosts: 3, pagesPerHost: 20, sizeScale: 0.1 })
  })
  afterEach(() => bed.close())

  const crawl = (...more: readonly string[]): ReturnType<typeof sluice> => sluice(['crawl', ...bed.web.seeds, ...bed.flags, ...more])
  const pagesStored = async (): Promise<readonly PageRecord[]> => (fs.existsSync(path.join(bed.dir, 'pages-000001.jsonl')) ? readPages(bed.dir) : [])

  async function answer(...args: readonly string[]): Promise<Record<string, unknown>> {
    const command = sluice([...args, '--dir', bed.dir, '--json'])
    expect(await command.ended).toEqual({ code: 0, signal: null })
    return JSON.parse(command.output.stdout) as Record<string, unknown>
  }

  it('tells its status and obeys exclude while it runs and when it is stopped, and SIGINT ends it with 3', async () => {
    const running = crawl('--delay', '300ms', '--progress', 'json')
    await until(async () => (await pagesStored()).length > 5)
    const [engine] = childrenOf(running.pid)
    const [first, second] = [...bed.web.resolve.keys()]
    expect(await answer('status')).toMatchObject({ state: 'running', pid: engine })
    expect(await answer('status', '--host', first!)).toMatchObject({ name: first, excluded: false, delayMs: 300 })
    expect((await sluice(['exclude', first!, '--dir', bed.dir]).ended).code).toBe(0)
    expect(await answer('status', '--host', first!)).toMatchObject({ pending: 0, excluded: true })

    running.process.kill('SIGINT')
    expect(await running.ended).toEqual({ code: 3, signal: null })
    const lines = running.output.stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    const stopped = await answer('status')
    expect(lines.at(-1)).toMatchObject({ event: 'summary', state: 'stopped', pages: stopped['pages'], queued: stopped['queued'] })
    expect(isAlive(engine!)).toBe(false)

    expect((await sluice(['exclude', second!, '--dir', bed.dir]).ended).code).toBe(0)
    expect(await answer('status', '--host', second!)).toMatchObject({ excluded: true })
    const before = (await readPages(bed.dir)).length
    const next = sluice(['crawl', '--dir', bed.dir, '--delay', '0'])
    expect((await next.ended).code).toBe(0)
    expect(next.output.stdout).toMatch(/^continuing .*: \d+ pages done, \d+ queued\nchanged option: delayMs: 300 -> 0\n/)
    expect(next.output.stdout.trimEnd().split('\n').at(-1)).toMatch(/^complete: /)
    const after = (await readPages(bed.dir)).slice(before)
    expect(after.length).toBeGreaterThan(0)
    expect(after.filter(({ url, outcome }) => new URL(url).hostname === second && outcome === 'ok')).toEqual([])
  })

  it('that is stopped while its engine is dead tells the sums that the last engine began with', async () => {
    const running = crawl('--delay', '300ms', '--progress', 'none')
    await until(async () => (await pagesStored()).length > 5)
    const engines = childrenOf(running.pid)
    process.kill(engines[0]!, 'SIGKILL')
    await until(async () => {
      const status = sluice(['status', '--dir', bed.dir, '--json'])
      // Nobody owns the directory, somebody who is still starting, or the next engine.
      expect([0, 4]).toContain((await status.ended).code)
      return status.output.stdout.includes('"pid"') && childrenOf(running.pid)[0] !== engines[0]
    })
    process.kill(childrenOf(running.pid)[0]!, 'SIGKILL')
    await running.saw(/(?:engine_died[^]*){2}/)
    running.process.kill('SIGINT')
    expect(await running.ended).toEqual({ code: 3, signal: null })
    const pages = Number(/^stopped: (\d+) pages, /m.exec(running.output.stdout)?.[1])
    // The second engine's beginning is all that was ever told of them.
    expect(pages).toBeGreaterThan(0)
    expect(running.output.stdout).toContain('\nto go on: sluice crawl --dir ')
  })

  it('is exported line by line, and ends quietly when the reader has seen enough', async () => {
    expect((await crawl('--progress', 'none').ended).code).toBe(0)
    const jsonl = sluice(['export', '--dir', bed.dir])
    await jsonl.ended
    expect(jsonl.output.stdout).toBe(fs.readFileSync(path.join(bed.dir, 'pages-000001.jsonl'), 'utf8'))
    const file = path.join(bed.dir, 'out.csv')
    expect((await sluice(['export', '--dir', bed.dir, '--format', 'csv', '--output', file]).ended).code).toBe(0)
    expect(fs.readFileSync(file, 'utf8').split('\r\n').length).toBe((await readPages(bed.dir)).length + 2)
    const cutShort = sluice(['export', '--dir', bed.dir])
    cutShort.process.stdout!.destroy()
    expect(await cutShort.ended).toEqual({ code: 0, signal: null })
    expect(cutShort.output.stderr).toBe('')
    fs.rmSync(path.join(bed.dir, 'pages-000001.jsonl'))
    const moved = sluice(['export', '--dir', bed.dir])
    expect((await moved.ended).code).toBe(2)
    expect(moved.output.stderr).toMatch(/^sluice: file_unreadable: .+pages-000001.+\n$/)
  })

  it('says in one line each what is wrong with its seeds, goes on with the others, and shows no password', async () => {
    const input = ['no url', 'ftp://me:secret@a.test/', 'http://a.test:25/', 'http://me:secret@[::1]:3/', 'http://[::1]:2/', 'http://10.0.0.1/', ...bed.web.seeds, ...Array.from({ length: 30 }, (_, index) => `bad ${index}`)].join('\n')
    const command = sluice(['crawl', '--seeds', '-', ...bed.flags, '--progress', 'none'], { input })
    expect((await command.ended).code).toBe(0)
    const lines = command.output.stderr.trimEnd().split('\n')
    expect(lines[0]).toBe('sluice: bad_url: "no url": not an http or https URL')
    expect(lines[1]).toBe('sluice: bad_url: "ftp://a.test/": not an http or https URL')
    expect(lines[2]).toBe('sluice: bad_url: "http://a.test:25/": its port belongs to another protocol than HTTP')
    expect(lines).toContain('sluice: the user and password in 1 seed are not used: see --host-headers')
    expect(lines).toHaveLength(22)
    expect(lines.at(-1)).toBe('sluice: and 16 more seeds without a page')
    expect(command.output.stderr).not.toContain('secret')
    expect(command.output.stdout.trimEnd().split('\n').at(-1)).toMatch(new RegExp(`^complete: ${bed.web.pages} pages, `))
  })

  it('of seeds that are all wrong ends with 2', async () => {
    const command = sluice(['crawl', '--seeds', '-', ...bed.flags, '--progress', 'json'], { input: 'nothing\n# here\n' })
    expect((await command.ended).code).toBe(2)
    expect(JSON.parse(command.output.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ event: 'summary', pages: 0 })
  })

  it('says why a seed was refused, and counts it as failed', async () => {
    const command = sluice(['crawl', 'http://127.0.0.1:2/', '--dir', bed.dir, '--progress', 'json'])
    expect((await command.ended).code).toBe(0)
    expect(command.output.stderr).toBe('sluice: address_refused: http://127.0.0.1:2/: the address is private, local or otherwise refused (see --allow-address)\n')
    expect(JSON.parse(command.output.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ event: 'summary', state: 'complete', failed: 1, failures: { address_refused: 1 } })
  })

  it('has pages that inspect reads over the network as the crawl does, under the same guard', async () => {
    const [seed] = bed.web.seeds
    const refused = sluice(['inspect', 'page', seed!, '--json', ...bed.flags.slice(bed.flags.indexOf('--resolve'))])
    expect((await refused.ended).code).toBe(1)
    expect(JSON.parse(refused.output.stdout)).toMatchObject({ code: 'address_refused' })
    const page = sluice(['inspect', 'page', seed!, '--json', ...bed.flags.slice(bed.flags.indexOf('--allow-address'))])
    expect((await page.ended).code).toBe(0)
    expect(JSON.parse(page.output.stdout)).toMatchObject({ url: seed, status: 200, charset: 'utf-8', base: seed })
    const none = sluice(['inspect', 'sitemap', seed!, '--json', ...bed.flags.slice(bed.flags.indexOf('--allow-address'))])
    expect((await none.ended).code).toBe(0)
    expect(JSON.parse(none.output.stdout)).toEqual({ url: seed, status: 200, urls: [], errors: ['no sitemap: its root element is "html"'] })
  })
})

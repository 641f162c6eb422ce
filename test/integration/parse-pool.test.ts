import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../engine/core/clock.ts'
import { limits } from '../../engine/core/limits.ts'
import { fingerprintOf } from '../../engine/core/url-key.ts'
import type { RobotsFile } from '../../engine/web/robots.ts'
import { KnownTable } from '../../storage/known.ts'
import { ParsePool } from '../../threads/parse-pool.ts'
import { ScopeTable } from '../../threads/scope-table.ts'
import { openRig, pageOf, recordOf, smallPage, type PoolRig } from '../support/pool-rig.ts'
import { TestClock } from '../support/test-clock.ts'
import { corpusPath } from '../support/corpus.ts'

const robotsFile = (body: string | Buffer, contentEncoding = '', isCut = false): RobotsFile => ({ body: Buffer.from(body), contentEncoding, isCut })

let rig: PoolRig | undefined
let scratch: string
beforeEach(async () => { scratch = await mkdtemp(join(tmpdir(), 'sluice-parse-pool-')) })
afterEach(async () => {
  await rig?.close()
  rig = undefined
  await rm(scratch, { recursive: true, force: true })
})

describe('a pool', () => {
  it('takes pages up to its slots, gives each back once, and has its slots again', async () => {
    rig = await openRig({ slots: 4 })
    const { pool } = rig
    pool.onProgress = () => {}
    const tickets = Array.from({ length: 5 }, (_, id) => pool.fill(smallPage(id)))
    expect(tickets.map((ticket) => ticket === undefined)).toEqual([false, false, false, false, true])
    expect(pool.slotsFree).toBe(0)
    const pages: number[] = []
    await new Promise<void>((resolve) => {
      pool.onProgress = () => {
        for (let [page] = pool.collect(1); page !== undefined; [page] = pool.collect(1)) pages.push(page.ticket)
        if (pages.length === 4) resolve()
      }
    })
    expect(pages).toEqual(tickets.slice(0, 4))
    expect(pool.stats()).toMatchObject({ slots: 4, free: 4, filled: 0, taken: 0, done: 0, oldestFilledMs: 0 })
  })

  it('calls back for the last page although its turn goes on or has ended', async () => {
    rig = await openRig({ threads: 2 })
    for (let round = 0; round < 30; round += 1) {
      await rig.put(smallPage(round))
      await rig.until(() => rig!.collected.length === round + 1)
    }
    expect(rig.collected.length).toBe(30)
  })

  it('tells its workers the scope and what is known, names that are added later included', async () => {
    const [scope, known] = [ScopeTable.create(10), KnownTable.create()]
    scope.add('site.example')
    known.add(fingerprintOf('http://site.example/known'))
    rig = await openRig({ worker: { scope: { table: scope.memory, mode: 'host' }, known: known.memory, exclude: ['never'] } })
    const page = pageOf('http://site.example/', '<a href=/known>k</a><a href=/new>n</a><a href=/never>x</a><a href=http://other.example/>o</a>')
    await rig.put(page)
    await rig.until(() => rig!.collected.length === 1)
    scope.add('other.example')
    await rig.put(page)
    await rig.until(() => rig!.collected.length === 2)
    const links = rig.collected.map((one) => ('result' in one ? Array.from({ length: one.result.links.count }, (_, index) => one.result.links.url(index)) : []))
    expect(links).toEqual([['http://site.example/new'], ['http://site.example/new', 'http://other.example/']])
    expect(rig.collected[0]).toMatchObject({ result: { refused: { scope: 1, pattern: 1 } } })
    expect(recordOf(rig.collected[0])).toMatchObject({ links: 4 })
  })

  it('tells its workers by domains what the scope is, where it is domains', async () => {
    const scope = ScopeTable.create(10)
    scope.add('site.co.uk')
    rig = await openRig({ worker: { scope: { table: scope.memory, mode: 'domain' } } })
    await rig.put(pageOf('http://www.site.co.uk/', '<a href=http://shop.site.co.uk/>in</a><a href=http://other.co.uk/>out</a>'))
    await rig.until(() => rig!.collected.length === 1)
    expect(rig.collected[0]).toMatchObject({ result: { links: { count: 1 }, refused: { scope: 1 } } })
  })

  it('reads robots.txt between the pages, coded or not, and has no answer for a broken coding', async () => {
    rig = await openRig({ extractor: 'export default () => { for (const end = Date.now() + 5; Date.now() < end;); }' })
    const text = 'User-agent: sluice\nDisallow: /x\nCrawl-delay: 2\nSitemap: http://site.example/s.xml\n'
    const rules = { lines: '-/x\n', crawlDelayMs: 2_000, sitemaps: ['http://site.example/s.xml'] }
    for (let id = 0; id < 16; id += 1) await rig.put(smallPage(id))
    const answers = await Promise.all([
      rig.pool.readRobots(robotsFile(text), 'sluice'), rig.pool.readRobots(robotsFile(gzipSync(text), 'gzip'), 'Sluice/1'),
      rig.pool.readRobots(robotsFile('no gzip', 'gzip'), 'sluice'),
    ])
    expect(answers).toEqual([rules, rules, undefined])
    await rig.until(() => rig!.collected.length === 16)
  })

  it.each([
    ['on the wire', (text: string) => robotsFile(text.slice(0, -4), undefined, true)],
    ['in a coding, on the wire', (text: string) => robotsFile(gzipSync(text, { level: 0 }).subarray(0, -12), 'gzip', true)],
    ['at its bound, decoded', (text: string) => robotsFile(gzipSync(`#${'x'.repeat(limits.robotsBytesMax - text.length + 2)}\n${text}`), 'gzip')],
  ])('reads whole lines only of a robots.txt that is cut %s', async (_where, cut) => {
    rig = await openRig()
    // Half of its last line would open everything.
    const answer = await rig.pool.readRobots(cut('User-agent: *\nDisallow: /x\nAllow: /x/abc'), 'sluice')
    expect(answer).toEqual({ lines: '-/x\n', sitemaps: [] })
  })

  it('begins new WARC files when it is told to, numbered from where it was told', async () => {
    rig = await openRig({ worker: { warcDir: scratch, warcFileFirst: 5 } })
    for (let round = 1; round <= 2; round += 1) {
      await rig.put(smallPage(round))
      await rig.put(smallPage(round))
      await rig.until(() => rig!.collected.length === 2 * round)
      rig.pool.rotateWarc()
    }
    expect(rig.collected.map((page) => (recordOf(page)['warc'] as { file: string }).file)).toEqual([5, 5, 6, 6].map((file) => `warc/sluice-00000${file}.warc.gz`))
    expect(await readdir(join(scratch, 'warc'))).toEqual(['sluice-000005.warc.gz', 'sluice-000006.warc.gz'])
  })

  it('says so when a WARC file cannot be written, and takes no page for it', async () => {
    await writeFile(join(scratch, 'warc'), 'a file where a folder should be')
    rig = await openRig({ worker: { warcDir: scratch } })
    const failed = new Promise<{ code: string }>((resolve) => { rig!.pool.onDiskFailed = resolve })
    await rig.put(smallPage(1))
    expect(await failed).toMatchObject({ code: 'disk_failed' })
    expect(rig.collected).toEqual([])
  })

  /** A rig whose WARC files find no room from the start; `free` makes some. */
  async function openFullRig(): Promise<{ readonly full: PoolRig; readonly isStuck: Promise<void>; free(): Promise<void> }> {
    const flag = join(scratch, 'full')
    await writeFile(flag, '')
    const full = await openRig({
      worker: { warcDir: scratch },
      extractor: `import fs from 'node:fs'
        import { syncBuiltinESMExports } from 'node:module'
        const { writeSync } = fs
        fs.writeSync = (...given) => {
          if (fs.existsSync(${JSON.stringify(flag)})) throw Object.assign(new Error('no room'), { code: 'ENOSPC' })
          return writeSync(...given)
        }
        syncBuiltinESMExports()
        export default () => undefined`,
    })
    rig = full
    const isStuck = new Promise<void>((resolve) => { full.pool.onDiskFull = resolve })
    return { full, isStuck, free: () => rm(flag) }
  }

  it('keeps the pages that found no room for their records, and reads them when there is some', async () => {
    const { full, isStuck, free } = await openFullRig()
    await full.put(smallPage(1))
    await full.put(smallPage(2))
    await isStuck
    expect([full.pool.isStuck, full.collected]).toEqual([true, []])
    await free()
    full.pool.retry()
    await full.until(() => full.collected.length === 2)
    expect(full.collected.every((page) => 'result' in page)).toBe(true)
  })

  it('is stuck no longer when the pages that waited for room were withdrawn', async () => {
    const { full, isStuck, free } = await openFullRig()
    const ticket = await full.put(smallPage(1))
    await isStuck
    expect(full.pool.withdraw()).toEqual([ticket])
    await free()
    full.pool.retry()
    expect(full.pool.isStuck).toBe(false)
    await full.put(smallPage(2))
    await full.until(() => full.collected.length === 1)
  })
})

describe('opening', () => {
  const open = (extractor: string, clock = systemClock): Promise<ParsePool> => ParsePool.open({
    threads: 1, maxBodyBytes: 4_096, slots: 4, clock, worker: { include: [], exclude: [], crawlId: 'test', userAgent: 'Sluice/0.1', extractor },
  })

  it.each([
    ['throws', "throw new Error('at load')", /at load/],
    ['exports no function', 'export default 1', /not a function/],
    ['is no JavaScript', 'export default (', /SyntaxError/],
    ['ends its thread', 'process.exit(0)', /worker exited/],
  ])('with an extractor that %s is extractor_unloadable, in one line that names it', async (_what, source, message) => {
    const module = join(scratch, 'extractor.mjs')
    await writeFile(module, source)
    const error = await open(module).catch((caught: unknown) => caught) as Error
    expect(error).toMatchObject({ code: 'extractor_unloadable' })
    expect(error.message).toMatch(message)
    expect(error.message.startsWith(module)).toBe(true)
    expect(error.message).not.toMatch(/\n/)
  })

  it('with an extractor that never finishes loading is given up at the deadline', async () => {
    const module = join(scratch, 'extractor.mjs')
    await writeFile(module, 'await new Promise(() => { setInterval(() => {}, 1e6) })')
    const clock = new TestClock()
    const opening = open(module, clock)
    const caught = opening.catch((error: unknown) => error)
    await clock.play(10_000)
    expect(await caught).toMatchObject({ code: 'extractor_unloadable', message: `${module}: it does not finish loading` })
  })
})

describe('closing', () => {
  it('ends a pool in the middle of its work, once for many calls', async () => {
    rig = await openRig({ extractor: 'export default () => new Promise(() => {})' })
    await rig.put(smallPage(1))
    const robots = rig.pool.readRobots(robotsFile(''), 'sluice').catch((error: unknown) => error)
    await Promise.all([rig.pool.close(), rig.pool.close()])
    expect(await robots).toMatchObject({ code: 'crawler_closed' })
    expect([rig.pool.slotsFree, rig.pool.fill(smallPage(2)), rig.lost]).toEqual([0, undefined, []])
  })

  it('leaves nothing that keeps the process alive, nor does an idle pool', async () => {
    const script = (close: boolean): string => `
      import { ParsePool } from ${JSON.stringify(new URL('../../dist/threads/parse-pool.js', import.meta.url).href)}
      import { systemClock } from ${JSON.stringify(new URL('../../dist/engine/core/clock.js', import.meta.url).href)}
      const pool = await ParsePool.open({ threads: 2, maxBodyBytes: 4096, clock: systemClock, worker: { include: [], exclude: [], crawlId: 'x', userAgent: 'x' } })
      const meta = { url: 'http://a.example/', depth: 0, attempts: 1, status: 200, statusText: '', fetchedAtMs: 0, timings: {}, truncated: false, followLinks: true }
      pool.onProgress = async () => {
        for (const page of pool.collect(9)) console.log(page.ticket, page.result.outcome)
        ${close ? 'await pool.close()' : ''}
      }
      pool.fill({ meta, headerBlock: new Uint8Array(0), body: [Buffer.from('<p>x')], bodyBytes: 4 })
    `
    for (const close of [true, false]) {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script(close)], { timeout: 20_000 })
      expect([stdout, stderr]).toEqual(['1 ok\n', ''])
    }
  })
})

const corpus = corpusPath('pages')
describe.skipIf(!existsSync(corpus) && (console.log(`skipped: no corpus at ${corpus}`), true))('corpus pages', () => {
  it('are all read, with their links, in two threads', async () => {
    const index = JSON.parse(readFileSync(`${corpus}/index.json`, 'utf8')) as { file: string; serve_content_type: string }[] | { pages: { file: string; serve_content_type: string }[] }
    const list = (Array.isArray(index) ? index : index.pages).slice(0, 40)
    rig = await openRig({ threads: 2, maxBodyBytes: 250 * 1_024 })
    for (const { file, serve_content_type: contentType } of list) {
      const body = gzipSync(brotliDecompressSync(readFileSync(`${corpus}/${file}`)))
      await rig.put(pageOf(`https://${file}.example/`, body.subarray(0, 250 * 1_024), { contentEncoding: 'gzip', contentType, truncated: body.length > 250 * 1_024 }))
    }
    await rig.until(() => rig!.collected.length === list.length)
    for (const page of rig.collected) {
      expect(recordOf(page)).toMatchObject({ outcome: 'ok', charset: expect.any(String), links: expect.any(Number) })
      if ('result' in page) expect(page.result.links.count).toBeGreaterThan(0)
    }
  })
})

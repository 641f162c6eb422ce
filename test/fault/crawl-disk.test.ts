import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Crawler, type CrawlOptionsGiven, type SluiceError } from '../../engine/index.ts'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { cliPath, run, sluice, until, type Running } from '../support/processes.ts'

let bed: CrawlBed

beforeEach(async () => {
  bed = await openBed({ hosts: 4, pagesPerHost: 50, sizeScale: 0.3 })
})
afterEach(() => bed.close())

/** Each page of the web stands once in the JSONL files and once in the WARC files. */
async function expectWhole(dir: string): Promise<void> {
  const records = await readPages(dir)
  expect(notOnce(records.map(({ url }) => url))).toEqual([])
  const answered = records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url)
  expect(answered).toHaveLength(bed.web.pages)
  expect((await readWarcs(dir)).map(({ url }) => url).sort()).toEqual(answered.sort())
}

/** Arguments of a crawl behind a shell that lets no file grow beyond so many kilobytes: EFBIG, as on a full disk. */
function limited(kilobytes: number | 'unlimited'): readonly string[] {
  const args = [cliPath, 'crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'json']
  return ['-e', `
    const { spawn } = require('node:child_process')
    const child = spawn('bash', ['-c', 'ulimit -f ${kilobytes}; exec "$0" "$@"', process.execPath, ...${JSON.stringify(args)}], { stdio: 'inherit' })
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    child.on('exit', (code) => process.exit(code ?? 99))`]
}

describe('a crawl whose files cannot grow', () => {
  it('pauses, is stopped like any other since all that is done is stored, and goes on where there is room', async () => {
    const paused = run(limited(1_000))
    await paused.saw(/^sluice: paused until there is room: too little is free on the disk of \S+$/m)
    await paused.saw(/"blockedOn":"disk"/)
    paused.process.kill('SIGTERM')
    expect(await paused.ended).toMatchObject({ code: 3 })
    const summary = JSON.parse(paused.output.stdout.trim().split('\n').at(-1)!) as { event: string; pages: number }
    const status = sluice(['status', '--dir', bed.dir, '--json'])
    await status.ended
    expect(summary).toMatchObject({ event: 'summary', state: 'stopped', pages: (JSON.parse(status.output.stdout) as { pages: number }).pages })
    const rest = run(limited('unlimited'))
    expect(await rest.ended).toMatchObject({ code: 0 })
    await expectWhole(bed.dir)
  })
})

/** In the engine's process: takes the data file's descriptor from LMDB, which opened it first, once nothing but the end is to be written. */
const loseDataFile = `
  import fs from 'node:fs'
  const { send } = process
  if (send !== undefined) process.send = (message, ...rest) => {
    if (message.type === 'opened') {
      const open = fs.readdirSync('/proc/self/fd').filter((fd) => fs.existsSync('/proc/self/fd/' + fd) && fs.readlinkSync('/proc/self/fd/' + fd).endsWith('data.mdb'))
      fs.closeSync(Math.min(...open.map(Number)))
    }
    return send.call(process, message, ...rest)
  }`

it.skipIf(process.platform !== 'linux')('a crawl that fails only as it closes says so in one line and ends with 1', async () => {
  const crawl = (...seeds: readonly string[]): Running => sluice(['crawl', ...seeds, ...bed.flags, '--progress', 'none'])
  expect(await crawl(...bed.web.seeds).ended).toMatchObject({ code: 0 })
  vi.stubEnv('NODE_OPTIONS', `--import=data:text/javascript,${encodeURIComponent(loseDataFile)}`)
  const failing = crawl()
  vi.unstubAllEnvs()
  expect(await failing.ended).toMatchObject({ code: 1 })
  expect(failing.output.stderr).toMatch(/^sluice: disk_failed: [^\n]+\n$/)
})

it('a crawl that has too few file descriptors waits until sockets give some back, and ends with every page', async () => {
  const args = [cliPath, 'crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'none']
  const { status, stdout } = spawnSync('bash', ['-c', 'ulimit -n 110; exec "$0" "$@"', process.execPath, ...args], { encoding: 'utf8', timeout: 50_000 })
  expect(stdout).toMatch(/^complete: 200 pages, .* 0 failed, 0 queued/m)
  expect(status).toBe(0)
  await expectWhole(bed.dir)
})

it('a crawl whose store has reached its bound pauses with a word of its own, and goes on when the next opening raises it', async () => {
  const dir = `${bed.dir}-bound`
  const urls = Array.from({ length: 2_400 }, (_, index) => `http://127.0.0.1:2/${index}/${'x'.repeat(7_900)}`)
  const crawl = (maxStoreBytes: string): Promise<Crawler> => Crawler.open({ dir, maxStoreBytes, delayMs: 0 })
  // Filled before, so that the first look finds it full.
  const filled = await crawl('64MB')
  await filled.add(urls)
  await filled.close()
  const bounded = await crawl('16MB')
  const running = bounded.start()
  await until(() => bounded.stats().blockedOn === 'store_full')
  await bounded.stop()
  const { state, pending } = await running
  expect(state).toBe('stopped')
  expect(pending).toBeGreaterThan(0)
  await bounded.close()
  const raised = await crawl('64MB')
  expect(raised.changedOptions).toEqual([`maxStoreBytes: ${16 * 1024 ** 2} -> ${64 * 1024 ** 2}`])
  expect(await raised.start()).toMatchObject({ state: 'complete', failed: urls.length, pending: 0 })
  await raised.close()
})

/** A small file system of its own; undefined where none can be mounted. */
function mountTmpfs(megabytes: number): string | undefined {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-tmpfs-'))
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', dir]).status === 0) return dir
  fs.rmdirSync(dir)
  return undefined
}

const small = mountTmpfs(48)
afterAll(() => {
  if (small === undefined) return
  execFileSync('umount', ['-l', small])
  fs.rmdirSync(small)
})

describe.skipIf(small === undefined)('a crawl on a disk that fills up (skipped where tmpfs cannot be mounted)', () => {
  const ballast = path.join(small ?? '', 'ballast')

  afterEach(() => fs.rmSync(ballast, { force: true }))

  /** Leaves so many bytes free. */
  function fill(leftBytes: number): void {
    const { bavail, bsize } = fs.statfsSync(small!)
    try {
      fs.appendFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)))
    } catch {
      // The crawl was faster with the last bytes.
    }
  }

  async function crawl(options: CrawlOptionsGiven, leftBytes: number): Promise<void> {
    const dir = path.join(small!, 'crawl')
    fs.rmSync(dir, { recursive: true, force: true })
    const crawler = await Crawler.open({ ...bed.options, dir, format: ['jsonl', 'warc'], ...options })
    await crawler.add(bed.web.seeds)
    const running = crawler.start()
    await until(() => crawler.stats().pages > 10)
    fill(leftBytes)
    await until(() => {
      const { blockedOn, inFlight } = crawler.stats()
      return blockedOn === 'disk' && inFlight === 0
    })
    const { pages } = crawler.stats()
    expect(pages).toBeLessThan(bed.web.pages)
    fs.rmSync(ballast)
    expect(await running).toMatchObject({ state: 'complete', pages: bed.web.pages })
    await crawler.close()
    await expectWhole(dir)
  }

  it('pauses when nothing is left, tries again what found no room, and goes on when there is some', async () => {
    await crawl({}, 0)
  })

  it('pauses before anything fails when less is left than it may need', async () => {
    await crawl({ durability: 'interval' }, 1024 ** 2 * 2)
  })

  it('ends at its time also while nothing can be written, and what was not stored comes again', async () => {
    const options = { ...bed.options, dir: path.join(small!, 'timed'), format: ['jsonl', 'warc'] as const }
    const crawler = await Crawler.open(options)
    await crawler.add(bed.web.seeds)
    const running = crawler.start({ maxTimeMs: 3_000 }).then(({ state }) => state, (error: SluiceError) => error.code)
    await until(() => crawler.stats().pages > 10)
    fill(0)
    // A slow machine may come to the time before it has filled the disk.
    expect(['disk_full', 'limit']).toContain(await running)
    await crawler.close()
    fs.rmSync(ballast, { force: true })
    const rest = await Crawler.open(options)
    expect(await rest.start()).toMatchObject({ state: 'complete', pages: bed.web.pages })
    await rest.close()
    await expectWhole(options.dir)
  })
})


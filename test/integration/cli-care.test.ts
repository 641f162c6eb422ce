/** The care of a crawl directory: requeue, check, compact, status, and moving it, by the command line. */
import fs from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { sluice, until } from '../support/processes.ts'

describe('a crawl directory', () => {
  let bed: CrawlBed

  beforeEach(async () => {
    bed = await openBed({ hosts: 3, pagesPerHost: 12, sizeScale: 0.1, tls: false, faultShare: 0 })
  })
  afterEach(() => bed.close())

  const store = (dir = bed.dir): string => path.join(dir, 'store', 'data.mdb')
  const crawl = (...more: readonly string[]): ReturnType<typeof sluice> => sluice(['crawl', ...bed.web.seeds, ...bed.flags, '--progress', 'none', ...more])

  async function say(...args: readonly string[]): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
    const command = sluice(args.includes('--dir') ? args : [...args, '--dir', bed.dir])
    const { code } = await command.ended
    return { code, out: command.output.stdout, err: command.output.stderr }
  }

  async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
    const { out } = await say(...args, '--json')
    return JSON.parse(out) as Record<string, unknown>
  }

  /** Overwrites what lies in a file, and answers how to make it whole again. */
  function damage(file: string, change: (bytes: Buffer) => Uint8Array): () => void {
    const whole = fs.readFileSync(file)
    fs.writeFileSync(file, change(Buffer.from(whole)))
    return () => fs.writeFileSync(file, whole)
  }

  it('is sound after a crawl and smaller when compacted, goes on with what is requeued, and damage to it is told line by line', async () => {
    expect((await crawl('--format', 'jsonl,warc', '--max-queued-per-domain', '1000').ended).code).toBe(0)
    const pages = await readPages(bed.dir)
    const warcRecords = pages.filter(({ warc }) => warc !== undefined).length
    expect(await json('check')).toMatchObject({ ok: true, mended: [], problems: [], missing: [], records: pages.length, warcRecords })

    const { bytesBefore, bytesAfter } = await json('compact')
    expect(bytesAfter).toBeLessThan(bytesBefore as number)
    expect(fs.readdirSync(path.join(bed.dir, 'store')).toSorted()).toEqual(['data.mdb', 'lock.mdb'])

    const host = new URL(bed.web.seeds[0]!).hostname
    expect(await say('requeue', '--outcome', 'ok', '--outcome', 'redirect,http_error', '--host', host)).toMatchObject({ code: 0, out: expect.stringMatching(/^requeued \d+ URLs\nto go on: sluice crawl --dir \S+\n$/) })
    const status = await json('status')
    expect(status).toMatchObject({ state: 'stopped', store: { fileBytes: fs.statSync(store()).size } })
    const queued = status['queued'] as number
    expect(queued).toBeGreaterThan(0)
    expect((await crawl().ended).code).toBe(0)
    expect((await readPages(bed.dir)).length).toBe(pages.length + queued)
    expect((await say('status')).out).toMatch(/\nfetched again: \d+, /)
    expect((await say('check')).out).toMatch(/^checked [\d,]+ rows of the store, \d+ page records, \d+ of them with their place in a WARC file\nsound\n$/)

    const lines = path.join(bed.dir, 'pages-000001.jsonl')
    const [last] = pages.filter(({ warc }) => warc !== undefined).toSorted((a, b) => b.warc!.offset - a.warc!.offset)
    const warc = path.join(bed.dir, last!.warc!.file)
    const repairWarc = damage(warc, (bytes) => bytes.fill(0x55, last!.warc!.offset, last!.warc!.offset + 16))
    const repairLines = damage(lines, (bytes) => bytes.fill('X', bytes.indexOf('\n') + 1, bytes.indexOf('\n') + 2).subarray(0, -5))
    const { code, out } = await say('check')
    expect(code).toBe(1)
    expect(out).toMatch(/\nproblem: pages-000001\.jsonl was cut: it has \d+ bytes, and \d+ were stored\n/)
    expect(out).toMatch(/\nproblem: pages-000001\.jsonl at byte \d+: no page record\n/)
    expect(out).toMatch(/\nproblem: pages-000001\.jsonl at byte \d+: the last line has no end\n/)
    expect(out).toMatch(/\nproblem: pages-000001\.jsonl at byte \d+: \S+ should lie in warc\/\S+ at \d+, which cannot be read: .+\n/)
    expect(out).toMatch(/\n[2-9] problems left\n$/)
    repairLines()
    fs.rmSync(warc)
    expect(await json('check')).toMatchObject({ ok: true, missing: [last!.warc!.file] })
    repairWarc()

    // A store whose pages were overwritten: found, or the end of the process that looks; a line either way.
    for (const page of [4, 10]) {
      const repair = damage(store(), (bytes) => bytes.fill(0xff, page * 4_096, (page + 3) * 4_096))
      const found = await say('check')
      expect([found.code === 4, found.err !== '', found.out === '']).toEqual(Array.from({ length: 3 }, () => found.code === 4))
      expect(found.err === '' ? found.out : found.err).toMatch(/^checked|^sluice: store_corrupt: .+\n$/)
      repair()
    }
    expect(await json('check')).toMatchObject({ ok: true })
  })

  it('takes back ended URLs while it is crawled, is then neither checked nor compacted, and goes on at another path', async () => {
    expect((await crawl('--max-pages', '12').ended).code).toBe(0)
    // So slow that it is still running when all has been asked.
    const running = sluice(['crawl', '--dir', bed.dir, '--delay', '60s'])
    await running.saw(/^continuing .*: 12 pages done/)
    const [first] = [...bed.web.resolve.keys()]
    expect(await say('exclude', 'never-met.test', 'not a host')).toMatchObject({ code: 2, err: expect.stringMatching(/^sluice: usage: HOST: .+\n$/) })
    const many = Array.from({ length: 500 }, (_, index) => `${'x'.repeat(60)}.${'y'.repeat(60)}.${'z'.repeat(60)}.${index}.test`)
    expect((await say('exclude', first!.toUpperCase(), ...many)).out).toBe([first!, ...many].map((host) => `excluded ${host}\n`).join(''))
    expect(await json('status', '--host', many.at(-1)!)).toMatchObject({ excluded: true })
    for (const args of [['status'], ['requeue']]) expect(await say(...args, '--host', 'never-met.test')).toMatchObject({ code: 2, err: expect.stringMatching(/which it never met\n$/) })
    const { requeued, excluded } = await json('requeue', '--outcome', 'ok')
    expect(requeued).toBeGreaterThan(0)
    expect(excluded).toBeGreaterThan(0)
    expect((await say('status')).out).toMatch(/\nstore: .* in use of a file of .*, durability commit\nlinks: [\d,]+ met, /)
    for (const { code, err } of await Promise.all([say('check'), say('compact')])) {
      expect(code).toBe(4)
      expect(err).toMatch(/^sluice: store_in_use: .* is in use by process \d+\n$/)
    }
    running.process.kill('SIGKILL')
    await running.ended
    await until(async () => (await json('status'))['state'] === 'stopped')
    const before = await readPages(bed.dir)

    // Its parts one by one, as to another file system; the socket of the dead owner comes along.
    const [moved, link] = ['moved', 'link'].map((name) => path.join(path.dirname(bed.dir), name))
    fs.cpSync(path.join(bed.dir, 'store'), path.join(moved!, 'store'), { recursive: true })
    for (const name of fs.readdirSync(bed.dir)) if (name !== 'store') fs.renameSync(path.join(bed.dir, name), path.join(moved!, name))
    fs.rmSync(bed.dir, { recursive: true })
    expect(fs.existsSync(path.join(moved!, 'control.sock'))).toBe(true)
    expect(await json('check', '--dir', path.relative(process.cwd(), moved!))).toMatchObject({ ok: true })
    fs.symlinkSync(moved!, link!)
    const next = sluice(['crawl', '--dir', link!, '--delay', '0', '--format', 'jsonl,warc', '--max-queued', '5000'])
    expect((await next.ended).code).toBe(0)
    expect(next.output.stdout).toMatch(/^continuing .*\nchanged option: maxQueued: none -> 5000\nchanged option: delayMs: 60000 -> 0\nchanged option: format: /)
    const after = (await readPages(moved!)).slice(before.length)
    expect(after.filter(({ outcome, url }) => outcome === 'ok' && before.some((page) => page.url === url)).length).toBeGreaterThan(0)
    expect((await readWarcs(moved!)).length).toBe(after.filter(({ warc }) => warc !== undefined).length)
    expect(await json('check', '--dir', link!)).toMatchObject({ ok: true, mended: [] })
  })
})

import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { notOnce, openBed, readPages, readWarcs, type CrawlBed } from '../support/crawl.ts'
import { cliPath, sluice } from '../support/processes.ts'

describe('a crawl whose disk is full', () => {
  let bed: CrawlBed

  beforeEach(async () => {
    bed = await openBed({ hosts: 4, pagesPerHost: 50, sizeScale: 0.3 })
  })
  afterEach(() => bed.close())

  /** Crawls with no file larger than so many kilobytes: the write beyond fails with EFBIG, as on a full disk. */
  function crawl(kilobytes: number | 'unlimited'): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
    const args = [cliPath, 'crawl', ...bed.web.seeds, ...bed.flags, '--format', 'jsonl,warc', '--progress', 'none']
    return spawnSync('bash', ['-c', `ulimit -f ${kilobytes}; exec "$0" "$@"`, process.execPath, ...args], { encoding: 'utf8', timeout: 50_000 })
  }

  it('has a summary with the sums of what is stored', async () => {
    const { stdout } = crawl(1_000)
    const [pages] = /(?<=^failed: )\d+/m.exec(stdout)!
    expect(Number(pages)).toBeGreaterThan(0)
    const status = sluice(['status', '--dir', bed.dir, '--json'])
    await status.ended
    expect((JSON.parse(status.output.stdout) as { pages: number }).pages).toBe(Number(pages))
  })

  it('ends with its code while pages lie in slots that nobody will parse, and goes on where there is room', async () => {
    expect(crawl(1_000)).toMatchObject({ status: 1, stderr: expect.stringMatching(/^sluice: disk_failed: .+\n$/) as unknown })
    expect(crawl('unlimited')).toMatchObject({ status: 0, stderr: '' })
    const records = await readPages(bed.dir)
    expect(notOnce(records.map(({ url }) => url))).toEqual([])
    const answered = records.filter(({ outcome }) => outcome === 'ok').map(({ url }) => url)
    expect(answered).toHaveLength(bed.web.pages)
    expect((await readWarcs(bed.dir)).map(({ url }) => url).sort()).toEqual(answered.sort())
  })
})

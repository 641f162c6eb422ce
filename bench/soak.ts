/**
 * A long crawl in which workers die: an extractor ends its worker on the first sight of every n-th page, by exit, by a
 * hang or by its memory limit. Shows that the crawl completes, that each such page is read at its second try, that no
 * slot is lost, and that memory is flat: the last quarter's peak against the second's.
 *
 *     npm run bench:soak -- [--hosts 24] [--pages-per-host 220] [--size-scale 1] [--deaths 300] [--seed 1]
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { spawnDemoWeb } from '../engine/demo/spawn.ts'
import { Crawler } from '../engine/index.ts'
import { watchMemory } from './process-meter.ts'

/** One death in `every` pages; of those one in 40 is a hang and one in 40 a full heap, which take seconds each. */
function extractorSource(every: number, marks: string): string {
  return `
    import { closeSync, openSync } from 'node:fs'
    import { createHash } from 'node:crypto'
    export default (page) => {
      const hash = createHash('sha256').update(page.url).digest()
      if (hash.readUInt32BE(0) % ${every} !== 0) return { characters: page.text.length }
      try { closeSync(openSync(${JSON.stringify(marks)} + '/' + hash.toString('hex'), 'wx')) } catch { return { second: true } }
      const kind = hash[8] % 40
      if (kind === 0) for (;;) {}
      if (kind === 1) { let kept; for (;;) kept = { kept, text: 'kept' } }
      process.exit(1)
    }`
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: {
    hosts: { type: 'string', default: '24' }, 'pages-per-host': { type: 'string', default: '220' },
    'size-scale': { type: 'string', default: '1' }, deaths: { type: 'string', default: '300' }, seed: { type: 'string', default: '1' },
  } })
  const base = await mkdtemp(join(tmpdir(), 'sluice-soak-'))
  const web = await spawnDemoWeb({
    hosts: Number(values.hosts), pagesPerHost: Number(values['pages-per-host']), seed: Number(values.seed), sizeScale: Number(values['size-scale']), tls: true,
  })
  try {
    const deaths = Number(values.deaths)
    const ca = join(base, 'ca.pem')
    const extract = join(base, 'extractor.mjs')
    await writeFile(ca, web.caPem)
    await writeFile(extract, deaths === 0 ? 'export default () => undefined' : extractorSource(Math.max(1, Math.floor(web.pages / deaths)), base))
    const crawler = await Crawler.open({
      dir: join(base, 'crawl'), scope: 'any', delayMs: 0, allowAddress: ['127.0.0.0/8'], resolve: Object.fromEntries(web.resolve), ca,
      format: ['jsonl', 'warc'], extract,
    })
    await crawler.add(web.seeds)
    const memory = watchMemory()
    let seconds = 0
    crawler.on('page', ({ record }) => { if ((record as { second?: boolean } | undefined)?.second === true) seconds += 1 })
    const summary = await crawler.start()
    const { quarters, peak } = memory.stop()
    const { workersLost, bounds } = crawler.stats()
    await crawler.close()
    const megabytes = quarters.map((bytes) => Math.round(bytes / 1_048_576))
    const slots = bounds.find(({ name }) => name === 'slots')!
    console.log(`soak: seed ${values.seed}, ${web.pages} pages, ${(summary.elapsedMs / 1_000).toFixed(0)} s, ${summary.state}: ${summary.pages} pages, ${summary.failed} failed, ${summary.pending} pending`)
    console.log(`workers lost ${workersLost}, pages read at their second try ${seconds}, slots in use at the end ${slots.used} of ${slots.max}`)
    console.log(`own memory by quarter (MB): ${megabytes.join(' ')}; last against second ${(quarters[3]! / quarters[1]!).toFixed(2)}; peak ${Math.round(peak.ownBytes / 1_048_576)}, mapped store ${Math.round(peak.fileBytes / 1_048_576)}`)
  } finally {
    await web.close()
    await rm(base, { recursive: true, force: true })
  }
}

await main()

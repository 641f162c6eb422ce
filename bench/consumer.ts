/**
 * A consumer that takes its time: shows that the crawl slows to it, that memory stays flat, and what `blockedOn` says.
 *
 *     npm run bench:consumer -- [--page-ms 200] [--seconds 60] [--seed 1]
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { spawnDemoWeb } from '../engine/demo/spawn.ts'
import { Crawler } from '../engine/index.ts'
import { watchMemory } from './process-meter.ts'

const { values } = parseArgs({ options: {
  'page-ms': { type: 'string', default: '200' }, seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' },
} })
const base = await mkdtemp(join(tmpdir(), 'sluice-consumer-'))
const web = await spawnDemoWeb({ hosts: 24, pagesPerHost: 100, seed: Number(values.seed), tls: true })
try {
  const ca = join(base, 'ca.pem')
  await writeFile(ca, web.caPem)
  const crawler = await Crawler.open({
    dir: join(base, 'crawl'), scope: 'any', delayMs: 0, allowAddress: ['127.0.0.0/8'], resolve: Object.fromEntries(web.resolve), ca,
  })
  await crawler.add(web.seeds)
  const memory = watchMemory()
  const blocked = new Map<string, number>()
  let pages = 0
  for await (const page of crawler.run({ maxTimeMs: Number(values.seconds) * 1_000 })) {
    const { blockedOn } = crawler.stats()
    blocked.set(blockedOn, (blocked.get(blockedOn) ?? 0) + 1)
    pages += page.status === undefined ? 0 : 1
    await sleep(Number(values['page-ms']))
  }
  const { quarters } = memory.stop()
  const { fetches, elapsedMs } = crawler.stats()
  await crawler.close()
  console.log(`consumer of ${values['page-ms']} ms a page, seed ${values.seed}: ${pages} pages in ${(elapsedMs / 1_000).toFixed(0)} s, ${fetches} fetched`)
  console.log(`blockedOn at each page: ${[...blocked].map(([name, count]) => `${name} ${count}`).join(', ')}`)
  console.log(`own memory by quarter (MB): ${quarters.map((bytes) => Math.round(bytes / 1_048_576)).join(' ')}`)
} finally {
  await web.close()
  await rm(base, { recursive: true, force: true })
}

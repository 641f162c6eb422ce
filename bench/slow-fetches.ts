/**
 * Many fetches that wait for one slow server at the same time, on one event loop: what each of them costs while it waits.
 *
 *     npm run bench:slow-fetches -- [--fetches 7000] [--tls]
 *
 * The server, in a process of its own, answers when all are there. Prints anonymous memory and CPU time for each fetch.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { makeAuthority } from '../engine/demo/authority.ts'
import { Crawler } from '../engine/index.ts'
import { mainThreadCpuMs, memoryNow, processCpuMs } from './process-meter.ts'

const { values } = parseArgs({ options: { fetches: { type: 'string', default: '7000' }, tls: { type: 'boolean', default: false } } })
const fetches = Number(values.fetches)
const dir = await mkdtemp(join(tmpdir(), 'sluice-slow-'))
const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem'), ca: join(dir, 'ca.pem') }
if (values.tls) {
  const { caPem, certPem, keyPem } = await makeAuthority(['slow.test'])
  await Promise.all([writeFile(files.ca, caPem), writeFile(files.cert, certPem), writeFile(files.key, keyPem)])
}
const script = new URL('../../test/support/slow-server-child.mjs', import.meta.url)
const server = fork(script, [values.fetches, ...(values.tls ? [files.cert, files.key] : [])], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
try {
  const lines = createInterface({ input: server.stdout! })
  const [line] = await once(lines, 'line') as [string]
  const origin = `${values.tls ? 'https' : 'http'}://slow.test:${line.split(' ')[1]}`
  const crawler = await Crawler.open({
    dir: join(dir, 'crawl'), delayMs: 0, threads: 1, concurrency: `${fetches}:1:10000`, allowAddress: '127.0.0.0/8', resolve: { 'slow.test': '127.0.0.1' },
    timeoutMs: '10m', durability: 'system', maxDepth: 0, ...(values.tls && { ca: files.ca }),
  })
  await crawler.add(Array.from({ length: fetches }, (_, at) => `${origin}/${at}`))
  const [before, cpuMs, mainMs, startMs] = [memoryNow(), processCpuMs(), mainThreadCpuMs() ?? Number.NaN, performance.now()]
  lines.once('line', () => {
    const bytes = (memoryNow().ownBytes - before.ownBytes) / fetches
    console.log(`${crawler.stats().inFlight} ${values.tls ? 'HTTPS' : 'HTTP'} fetches wait after ${((performance.now() - startMs) / 1_000).toFixed(1)} s: `
      + `${(bytes / 1_024).toFixed(1)} KB each, ${((mainThreadCpuMs() ?? Number.NaN) - mainMs).toFixed(0)} ms of the loop's CPU`)
  })
  const summary = await crawler.start()
  console.log(`${summary.pages} pages after ${(summary.elapsedMs / 1_000).toFixed(1)} s: ${((processCpuMs() - cpuMs) / summary.pages).toFixed(2)} ms of CPU each, ${(((mainThreadCpuMs() ?? Number.NaN) - mainMs) / summary.pages).toFixed(2)} of them the loop's`)
  await crawler.close()
} finally {
  server.disconnect()
  await rm(dir, { recursive: true, force: true })
}

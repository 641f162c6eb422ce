import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { filesOpenMax } from '../../engine/flow/machine.ts'
import { Crawler } from '../../engine/index.ts'

const FETCHES = 7_000
/** What the rest of the process needs, see connection-ceiling.ts. */
const FILES_NEEDED = FETCHES + 1_000

// Where files are few the ceiling would hold the fetches, rightly, and the server would wait for ever.
test.skipIf(filesOpenMax() < FILES_NEEDED)(`${FETCHES} fetches wait for one slow server at once, on one loop, and each gets its page (needs ${FILES_NEEDED} open files)`, async () => {
  const server = fork(new URL('../support/slow-server-child.mjs', import.meta.url), [String(FETCHES)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  try {
    const lines = createInterface({ input: server.stdout! })
    const [line] = await once(lines, 'line') as [string]
    const crawler = await Crawler.open({
      dir, delayMs: 0, threads: 1, concurrency: `${FETCHES}:1:${FETCHES}`, allowAddress: '127.0.0.0/8', timeoutMs: '60s', durability: 'system', maxDepth: 0,
    })
    await crawler.add(Array.from({ length: FETCHES }, (_, at) => `http://127.0.0.1:${line.split(' ')[1]}/${at}`))
    let inFlight = 0
    lines.once('line', () => { inFlight = crawler.stats().inFlight })
    const summary = await crawler.start()
    expect(summary).toMatchObject({ state: 'complete', pages: FETCHES, failed: 0, pending: 0, retries: 0 })
    expect(inFlight).toBe(FETCHES)
    await crawler.close()
  } finally {
    server.disconnect()
    await rm(dir, { recursive: true, force: true })
  }
}, 60_000)

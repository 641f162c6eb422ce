/** Suspects of a process that died come before all other work, also before what has fallen due meanwhile. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Crawler } from '../../engine/index.ts'
import { openStore } from '../../storage/lmdb/lmdb-store.ts'
import { clearNotes, InHand } from '../../threads/in-hand.ts'
import { emptyBatch, ended, newUrl } from '../contract/store-batch.ts'
import { metaOf } from '../support/pool-rig.ts'

const dueCount = 20_000
/** Addresses that are refused, so that no web is needed. */
const [suspectUrl, dueUrl] = ['http://127.0.0.2:2/', 'http://127.0.0.1:2/']

it('a page that may have ended the process does not wait until all that has fallen due is moved', async () => {
  const base = mkdtempSync(join(tmpdir(), 'sluice-suspects-first-'))
  const [live, dead] = [join(base, 'live'), join(base, 'dead')]
  const store = await openStore(live)
  await store.commit(emptyBatch({ added: [newUrl(suspectUrl), ...Array.from({ length: dueCount }, (_, index) => newUrl(`${dueUrl}${index}`))] }))
  const { urls } = store.claim('127.0.0.1', { limit: dueCount, nowMs: 0, leased: new Set() })
  await store.commit(emptyBatch({ ended: urls.map((url) => ended(url, { outcome: 'failed', due: { atMs: 1, intervalMs: 1 } })) }))
  const [suspect] = store.claim('127.0.0.2', { limit: 1, nowMs: 0, leased: new Set() }).urls
  // As a process leaves it that dies.
  cpSync(live, dead, { recursive: true })
  await store.close()
  mkdirSync(join(dead, 'in-hand'))
  const notes = join(dead, 'in-hand', 'notes')
  clearNotes(notes)
  new InHand(notes).begin(1, metaOf(suspectUrl, { queued: { row: Buffer.from(suspect!.row).toString('hex'), sequence: suspect!.sequence } }))
  const crawler = await Crawler.open({ dir: dead, threads: 1, delayMs: 0, recrawl: 'fixed:7d' })
  const pendingThen = new Promise<number>((resolve) => {
    crawler.on('failed', ({ url }) => {
      if (url === suspectUrl) resolve(crawler.stats().pending)
    })
  })
  const running = crawler.start()
  expect(await pendingThen).toBeLessThan(dueCount)
  await crawler.stop()
  await running
  await crawler.close()
  rmSync(base, { recursive: true })
})

// Commits under a limit on the size of files (ulimit -f), until one fails, and tells what happened then. Arguments:
// the directory, and how many bytes each record line has. Runs the compiled store.
import { fingerprintOf } from '../../dist/engine/core/url-key.js'
import { noLinks } from '../../dist/engine/core/types.js'
import { openStore } from '../../dist/storage/lmdb/lmdb-store.js'

const [dir, lineBytes] = process.argv.slice(2)
const unhandled = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))
// lmdb-js prints the error of a failed write.
console.error = () => {}

const store = await openStore(dir)
const batch = { ended: [], deferred: [], added: [], again: [], hosts: [], scope: [], warcLengths: new Map() }

async function codeOf(promise) {
  try {
    await promise
    return 'ok'
  } catch (error) {
    return error.code ?? String(error)
  }
}

function added(round) {
  return Array.from({ length: 200 }, (_, index) => {
    const url = `http://h${index % 20}.test/${round}/${index}/${'x'.repeat(300)}`
    return { url, host: `h${index % 20}.test`, fingerprint: fingerprintOf(url), depth: 0, priority: 0 }
  })
}

async function commitRound(round) {
  await store.commit({ ...batch, added: added(round) })
  const { urls } = store.claim('h1.test', { limit: 3, nowMs: 0, leased: new Set() })
  const line = Buffer.alloc(Number(lineBytes), 'x')
  await store.commit({ ...batch, ended: urls.map((url) => ({ url, outcome: 'ok', atMs: 0, links: noLinks, line, wireBytes: 0, bodyBytes: 0 })) })
}

let commits = 0
let failed = 'ok'
while (failed === 'ok' && commits < 1_000) {
  failed = await codeOf(commitRound(commits))
  if (failed === 'ok') commits += 1
}
const counters = store.counters()
const after = await codeOf(store.commit(batch))
const flushed = await codeOf(store.flushed())
const options = await codeOf(store.saveOptions({}))
const closed = await codeOf(store.close())
await new Promise((resolve) => setImmediate(resolve))
process.stdout.write(JSON.stringify({ commits, failed, after, flushed, options, closed, unhandled, counters }))

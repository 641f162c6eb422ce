// Commits under a limit on the size of files (ulimit -S -f), until one finds no room, tries the same batch twice more, the
// second time without the limit where the system has prlimit, and tells what happened. Arguments: the directory, and how
// many bytes each record line has. Runs the compiled store.
import { execFileSync } from 'node:child_process'
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

let last
let counters

function commit(parts) {
  last = { ...batch, ...parts }
  counters = store.counters()
  return store.commit(last)
}

async function commitRound(round) {
  await commit({ added: added(round) })
  const { urls } = store.claim('h1.test', { limit: 3, nowMs: 0, leased: new Set() })
  const line = Buffer.alloc(Number(lineBytes), 'x')
  await commit({ ended: urls.map((url) => ({ url, outcome: 'ok', atMs: 0, links: noLinks, line, wireBytes: 0, bodyBytes: 0 })) })
}

let commits = 0
let failed = 'ok'
while (failed === 'ok' && commits < 1_000) {
  failed = await codeOf(commitRound(commits))
  if (failed === 'ok') commits += 1
}
const again = await codeOf(store.commit(last))
const isUnchanged = JSON.stringify(store.counters()) === JSON.stringify(counters)
const flushed = await codeOf(store.flushed())
let withRoom
try {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited'])
  withRoom = await codeOf(store.commit(last))
} catch {
  // There is no prlimit here.
}
counters = store.counters()
const closed = await codeOf(store.close())
await new Promise((resolve) => setImmediate(resolve))
process.stdout.write(JSON.stringify({ commits, failed, again, isUnchanged, flushed, withRoom, closed, unhandled, counters }))

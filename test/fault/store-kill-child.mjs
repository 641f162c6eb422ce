// Commits random batches as fast as it can until it is killed; the tables and files tell whether it did so right.
// Arguments: the directory and a seed. Prints one line when the store is open. Runs the compiled store.
import * as fs from 'node:fs'
import * as path from 'node:path'
import { hostOfUrl } from '../../dist/engine/core/fetch-url.js'
import { warcFileName } from '../../dist/engine/core/types.js'
import { fingerprintOf, hostHashOf } from '../../dist/engine/core/url-key.js'
import { openStore } from '../../dist/storage/lmdb/lmdb-store.js'

const [dir, seed] = process.argv.slice(2)
let state = Number(seed)
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}
const below = (count) => Math.floor(random() * count)
// 52 hosts of 4 domains.
const urlOf = (number) => `http://h${number % 13}.d${number % 4}.test/${number}`
const domainOf = (host) => host.split('.').slice(1).join('.')
const newUrl = (number) => ({ url: urlOf(number), host: hostOfUrl(urlOf(number)), fingerprint: fingerprintOf(urlOf(number)), depth: 0, priority: number % 50 })

function links(numbers) {
  const urls = numbers.map(urlOf)
  return {
    count: urls.length,
    fingerprint: (index) => fingerprintOf(urls[index]),
    hostHash: (index) => hostHashOf(hostOfUrl(urls[index])),
    url: (index) => urls[index],
    isRedirect: () => false,
  }
}

const store = await openStore(dir)
// Small enough that the queue is always full of something: hosts, domains, or all of it.
store.setScope('any', domainOf)
await store.setCaps({ queuedPerHostMax: 10, queuedPerDomainMax: 60, queuedMax: 200, domainBudget: 8 })
const leased = new Set()
store.setLeases((_, sequence) => leased.has(sequence))
const warcFile = store.warcFileFirst
fs.mkdirSync(path.join(dir, 'warc'), { recursive: true })
const warc = fs.openSync(path.join(dir, warcFileName(warcFile)), 'a')
let warcLength = 0
const empty = { ended: [], deferred: [], added: [], again: [], hosts: [], scope: [], warcLengths: new Map() }
await store.commit({ ...empty, added: [0, 1, 2, 3].map(newUrl) })
process.stdout.write('open\n')

for (;;) {
  leased.clear()
  const { hosts } = store.hostsWithWork(undefined, 13 + below(40))
  const urls = hosts.flatMap(({ name }) => store.claim(name, { limit: 1 + below(3), nowMs: Date.now(), leased: new Set() }).urls)
  for (const { sequence } of urls) leased.add(sequence)
  // What fell due, and what somebody asks for without knowing whether it has ended.
  const again = [...store.due(Date.now(), 1 + below(30)), ...Array.from({ length: below(5) }, () => newUrl(below(2_000)))]
  const batch = { ...empty, again, ended: [], deferred: [], warcLengths: new Map() }
  for (const url of urls) {
    if (random() < 0.1) {
      batch.deferred.push({ url, attempts: url.attempts + 1, notBeforeMs: Date.now(), retry: true })
      continue
    }
    // A URL may end many times, its sequence is a new one each time.
    const id = `${url.url} ${url.sequence}`
    warcLength += fs.writeSync(warc, `${id}\n`)
    const line = Buffer.from(`{"url":${JSON.stringify(url.url)},"id":${JSON.stringify(id)},"pad":"${'x'.repeat(below(2_000))}"`)
    const due = random() < 0.3 ? { due: { atMs: Date.now() + below(500), intervalMs: 100 } } : {}
    batch.ended.push({ url, outcome: 'ok', atMs: Date.now(), page: { status: 200 }, ...due, links: links(Array.from({ length: below(6) }, () => below(200_000))), line, wireBytes: 1, bodyBytes: 2 })
  }
  batch.warcLengths.set(warcFile, warcLength)
  if (urls.length < 8 || random() < 0.5) batch.added = Array.from({ length: 20 }, () => newUrl(below(200_000)))
  await store.commit(batch)
}

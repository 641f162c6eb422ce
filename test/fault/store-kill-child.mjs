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
const urlOf = (number) => `http://h${number % 13}.test/${number}`

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
const warcFile = store.warcFileFirst
fs.mkdirSync(path.join(dir, 'warc'), { recursive: true })
const warc = fs.openSync(path.join(dir, warcFileName(warcFile)), 'a')
let warcLength = 0
const empty = { ended: [], deferred: [], added: [], again: [], hosts: [], scope: [], warcLengths: new Map() }
const added = [0, 1, 2, 3].map((number) => ({ url: urlOf(number), host: hostOfUrl(urlOf(number)), fingerprint: fingerprintOf(urlOf(number)), depth: 0, priority: 0 }))
await store.commit({ ...empty, added })
process.stdout.write('open\n')

for (;;) {
  const { hosts } = store.hostsWithWork(undefined, 13)
  const urls = hosts.flatMap(({ name }) => store.claim(name, { limit: 1 + below(8), nowMs: Date.now(), leased: new Set() }).urls)
  const batch = { ...empty, ended: [], deferred: [], warcLengths: new Map() }
  for (const url of urls) {
    if (random() < 0.1) {
      batch.deferred.push({ url, attempts: url.attempts + 1, notBeforeMs: Date.now(), retry: true })
      continue
    }
    const record = `${url.url}\n`
    warcLength += fs.writeSync(warc, record)
    const line = Buffer.from(`{"url":${JSON.stringify(url.url)},"pad":"${'x'.repeat(below(2_000))}"`)
    const page = { status: 200 }
    batch.ended.push({ url, outcome: 'ok', atMs: Date.now(), page, links: links(Array.from({ length: below(6) }, () => below(200_000))), line, wireBytes: 1, bodyBytes: 2 })
  }
  batch.warcLengths.set(warcFile, warcLength)
  if (urls.length < 8) batch.added = Array.from({ length: 20 }, () => below(200_000)).map((number) => ({ url: urlOf(number), host: hostOfUrl(urlOf(number)), fingerprint: fingerprintOf(urlOf(number)), depth: 0, priority: 0 }))
  await store.commit(batch)
}

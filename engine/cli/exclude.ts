/**
 * `sluice exclude`: ends the queued URLs of hosts without a fetch, now and later. A running crawl is told; otherwise the
 * hosts are marked in the store, and the next run ends what is queued of them.
 */
import { SluiceError } from '../core/errors.ts'
import { hostNameOf } from '../core/host-name.ts'
import { emptyBatch } from '../../storage/store.ts'
import { writeOut } from './batch.ts'
import { askRunning, checkCrawl, changeStore } from './owner.ts'

/** Resolves to the exit code. Throws `usage`, `no_crawl`, and what opening the store throws. */
export async function runExclude(given: readonly string[], dir: string): Promise<number> {
  if (given.length === 0) throw new SluiceError('usage', 'HOST: expected one or more host names, given nothing')
  const hosts = given.map(hostNameOf)
  checkCrawl(dir)
  if (!await excludeRunning(dir, hosts)) {
    await changeStore(dir, (store) => store.commit({ ...emptyBatch, hosts: hosts.map((name) => ({ name, excluded: true as const })) }))
  }
  await writeOut(hosts.map((host) => `excluded ${host}\n`).join(''))
  return 0
}

/** Names in one message: of the longest that there are, four fifths of a message. */
const hostsPerMessageMax = 200

/** Answers whether a crawl runs there. One that ends on the way leaves all of them to the store. */
async function excludeRunning(dir: string, hosts: readonly string[]): Promise<boolean> {
  for (let from = 0; from < hosts.length; from += hostsPerMessageMax) {
    if (await askRunning(dir, { cmd: 'exclude', hosts: hosts.slice(from, from + hostsPerMessageMax) }) === undefined) return false
  }
  return true
}

/** The project's own store behind the benchmark's interface, synced at an interval as the peers are, and without page records, which they have not. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { LinkList, QueuedUrl } from '../../engine/core/types.ts'
import { openStore, type LmdbStore } from '../../storage/lmdb/lmdb-store.ts'
import { emptyBatch, type EndedUrl } from '../../storage/store.ts'
import { HASH_BYTES, STATUS_OK, type Claimed, type EndedPage, type Frontier, type HostClaim } from './frontier.ts'
import type { BenchLinks, BenchUrl } from './workload.ts'

const noLine = new Uint8Array(0)
const contentHash = new Uint8Array(HASH_BYTES).fill(7)

export class SluiceFrontier implements Frontier {
  readonly store: LmdbStore
  readonly #dir: string
  readonly #leased = new Map<string, Set<number>>()

  private constructor(store: LmdbStore, dir: string) {
    this.store = store
    this.#dir = dir
  }

  static async open(dir: string): Promise<SluiceFrontier> {
    return new SluiceFrontier(await openStore(dir, { durability: 'interval' }), dir)
  }

  async add(pages: readonly BenchLinks[]): Promise<void> {
    const added = pages.flatMap(({ urls, referrer, depth }) => urls.map(({ host, fingerprint, url }) => ({ url, host, fingerprint, depth, priority: depth, referrer })))
    await this.store.commit({ ...emptyBatch, added })
  }

  async claim(hosts: readonly HostClaim[]): Promise<readonly (readonly Claimed[])[]> {
    const nowMs = Date.now()
    return hosts.map(({ host, limit }) => {
      const leased = this.#leasedOf(host)
      return this.store.claim(host, { limit, nowMs, leased }).urls.map((url) => {
        leased.add(url.sequence)
        return { host, url: url.url, fingerprint: url.fingerprint, at: url }
      })
    })
  }

  async commit(pages: readonly EndedPage[]): Promise<number> {
    const atMs = Date.now()
    const { newLinks } = await this.store.commit({ ...emptyBatch, ended: pages.map((page) => endedUrl(page, atMs)) })
    for (const { claimed } of pages) {
      const leased = this.#leasedOf(claimed.host)
      leased.delete((claimed.at as QueuedUrl).sequence)
      if (leased.size === 0) this.#leased.delete(claimed.host)
    }
    return newLinks.reduce((sum, count) => sum + count, 0)
  }

  async queued(): Promise<number> {
    return this.store.counters().pending
  }

  async bytes(): Promise<{ readonly used: number; readonly file: number }> {
    return { used: this.store.stats().bytesUsed, file: statSync(join(this.#dir, 'store', 'data.mdb')).size }
  }

  server(): { readonly cpuMs: number; readonly ownBytes: number } {
    return { cpuMs: 0, ownBytes: 0 }
  }

  close(): Promise<void> {
    return this.store.close()
  }

  #leasedOf(host: string): Set<number> {
    let leased = this.#leased.get(host)
    if (leased === undefined) this.#leased.set(host, leased = new Set())
    return leased
  }
}

function endedUrl({ claimed, links }: EndedPage, atMs: number): EndedUrl {
  return {
    url: claimed.at as QueuedUrl, outcome: 'ok', atMs, page: { status: STATUS_OK, contentHash }, links: linkList(links.urls),
    line: noLine, wireBytes: 0, bodyBytes: 0,
  }
}

function linkList(urls: readonly BenchUrl[]): LinkList {
  return {
    count: urls.length,
    fingerprint: (index) => urls[index]!.fingerprint,
    hostHash: (index) => urls[index]!.hostHash,
    url: (index) => urls[index]!.url,
    isRedirect: () => false,
  }
}

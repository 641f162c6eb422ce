/** Batches and URLs for tests of a store: what a crawl would hand over, from short descriptions. */
import { refusalReasons, type LinkList, type NewUrl, type Outcome, type QueuedUrl } from '../../engine/core/types.ts'
import { fingerprintOf, hostHashOf, hostOf, urlKey } from '../../engine/core/url-key.ts'
import type { CommitBatch, EndedUrl, PageRow } from '../../storage/store.ts'

export const noRefusals = Object.fromEntries(refusalReasons.map((reason) => [reason, 0]))

export function emptyBatch(parts: Partial<CommitBatch> = {}): CommitBatch {
  return { ended: [], deferred: [], added: [], hosts: [], scope: [], warcLengths: new Map(), ...parts }
}

export function newUrl(text: string, parts: Partial<NewUrl> = {}): NewUrl {
  const url = new URL(text)
  return { url: url.href, host: hostOf(url), fingerprint: new Uint8Array(fingerprintOf(urlKey(url))), depth: 0, priority: 0, ...parts }
}

export function linkList(urls: readonly string[], options: { redirect?: boolean; hashOf?: (host: string) => Uint8Array } = {}): LinkList {
  const parsed = urls.map((text) => new URL(text))
  return {
    count: urls.length,
    fingerprint: (index) => fingerprintOf(urlKey(parsed[index]!)),
    hostHash: (index) => (options.hashOf ?? hostHashOf)(hostOf(parsed[index]!)),
    url: (index) => parsed[index]!.href,
    isRedirect: () => options.redirect ?? false,
  }
}

export function ended(url: QueuedUrl, parts: Partial<EndedUrl> & { outcome?: Outcome } = {}): EndedUrl {
  const outcome = parts.outcome ?? 'ok'
  return {
    url, outcome, links: linkList([]), line: Buffer.from(`{"url":${JSON.stringify(url.url)}`), wireBytes: 10, bodyBytes: 30, ...parts,
  }
}

export function pageRow(url: string, parts: Partial<PageRow> = {}): PageRow {
  return { url, status: 200, outcome: 'ok', fetchedAtMs: 1_700_000_000_000, ...parts }
}

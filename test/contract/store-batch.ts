/** Batches and URLs for tests of a store: what a crawl would hand over, from short descriptions. */
import { fetchUrl, hostOfUrl } from '../../engine/core/fetch-url.ts'
import { refusalReasons, type LinkList, type NewUrl, type Outcome, type QueuedUrl } from '../../engine/core/types.ts'
import { fingerprintOf, hostHashOf, keyOf, plainKeys } from '../../engine/core/url-key.ts'
import { emptyBatch as noChanges, type CheckReport, type CommitBatch, type EndedUrl, type PageRow } from '../../storage/store.ts'

export const noRefusals = Object.fromEntries(refusalReasons.map((reason) => [reason, 0]))

/** All that `check` finds: empty when the store is sound. */
export async function faultsOf(store: { check(): Promise<CheckReport> }): Promise<readonly string[]> {
  const { mended, problems } = await store.check()
  return [...mended, ...problems]
}

export function emptyBatch(parts: Partial<CommitBatch> = {}): CommitBatch {
  return { ...noChanges, ...parts }
}

export function newUrl(text: string, parts: Partial<NewUrl> = {}): NewUrl {
  const url = fetchUrl(text)!
  return { url, host: hostOfUrl(url), fingerprint: fingerprintOf(keyOf(url, plainKeys)), depth: 0, priority: 0, ...parts }
}

export function linkList(urls: readonly string[], options: { redirect?: boolean; hashOf?: (host: string) => Uint8Array } = {}): LinkList {
  const parsed = urls.map((text) => fetchUrl(text)!)
  return {
    count: urls.length,
    fingerprint: (index) => fingerprintOf(keyOf(parsed[index]!, plainKeys)),
    hostHash: (index) => (options.hashOf ?? hostHashOf)(hostOfUrl(parsed[index]!)),
    url: (index) => parsed[index]!,
    isRedirect: () => options.redirect ?? false,
  }
}

export function ended(url: QueuedUrl, parts: Partial<EndedUrl> & { outcome?: Outcome } = {}): EndedUrl {
  const outcome = parts.outcome ?? 'ok'
  return {
    url, outcome, atMs: 1_700_000_000_000, links: linkList([]), line: Buffer.from(`{"url":${JSON.stringify(url.url)}`), wireBytes: 10, bodyBytes: 30, ...parts,
  }
}

export function pageRow(url: string, parts: Partial<PageRow> = {}): PageRow {
  return { url, status: 200, outcome: 'ok', fetchedAtMs: 1_700_000_000_000, depth: 0, priority: 0, ...parts }
}

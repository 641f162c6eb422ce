/**
 * One document over the network, for `sluice inspect page URL`: the crawl's own fetcher with its address guard, and one
 * fetch. A redirect is an answer like any other, as in a crawl: its document is shown, with where it points.
 */
import { systemClock } from '../core/clock.ts'
import { limits } from '../core/limits.ts'
import { resolveCrawlOptions, type CrawlOptions, type CrawlOptionsGiven } from '../core/options.ts'
import { createAddressGuard } from '../fetch/address-guard.ts'
import { ByteBudget } from '../fetch/byte-budget.ts'
import { acceptBody } from '../fetch/content-type.ts'
import { Fetcher, type FetchedResponse } from '../fetch/fetcher.ts'
import { createNameLookup, systemNameServices } from '../fetch/name-lookup.ts'
import { Resolver } from '../fetch/resolver.ts'
import { headerOf } from '../fetch/response-head.ts'
import { createTlsTrust } from '../fetch/tls-context.ts'
import { Inflater } from '../../threads/inflate.ts'

export interface FetchedDocument {
  readonly url: string
  readonly status: number
  readonly bytes: Uint8Array
  /** There was more than `--max-body`. */
  readonly isCut: boolean
  readonly headerBlock: Uint8Array
  readonly contentType: string | undefined
  readonly location: string | undefined
}

export type DocumentResult = { readonly ok: true; readonly document: FetchedDocument } | { readonly ok: false; readonly code: string; readonly message: string }

/** The fetcher of a crawl with these options, for a few requests. */
export function openFetcher(options: CrawlOptions): Fetcher {
  return new Fetcher({
    resolver: new Resolver({ lookup: createNameLookup(systemNameServices()), pins: options.resolve, clock: systemClock }),
    guard: createAddressGuard(options.allowAddress), trust: createTlsTrust({ ca: options.ca, insecure: options.insecure }),
    budget: new ByteBudget(limits.bodyBytesInFlightMax), clock: systemClock, userAgent: options.userAgent,
  })
}

/** Fetches `url`, which `fetchUrl` gave. A failure of the network is a value; throws for bad options. */
export async function fetchDocument(url: string, given: CrawlOptionsGiven): Promise<DocumentResult> {
  const options = resolveCrawlOptions(given)
  const fetcher = openFetcher(options)
  try {
    const result = await fetcher.fetch({ url, bodyBytesMax: options.maxBodyBytes, deadlineMs: options.timeoutMs, acceptBody })
    if (!result.ok) return { ok: false, code: result.code, message: `${url}: ${result.detail}` }
    return await decoded(url, result, options.maxBodyBytes)
  } finally {
    await fetcher.close()
  }
}

async function decoded(url: string, response: FetchedResponse, bytesMax: number): Promise<DocumentResult> {
  const inflated = await new Inflater(bytesMax).inflate(Buffer.concat(response.body), headerOf(response.headers, 'content-encoding'), response.truncated)
  if (!inflated.ok) return { ok: false, code: inflated.code, message: `${url}: the body does not match its Content-Encoding` }
  const document = { url, status: response.status, bytes: inflated.bytes, isCut: inflated.truncated, headerBlock: response.headerBlock, contentType: headerOf(response.headers, 'content-type'), location: headerOf(response.headers, 'location') }
  return { ok: true, document }
}

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
import { Fetcher, type FetchRequest } from '../fetch/fetcher.ts'
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

/** A document as it came from the wire. */
export interface FetchedSource extends FetchedDocument {
  /** Its codings, which are not undone. */
  readonly contentEncoding: string | undefined
}

interface FetchFailure {
  readonly ok: false
  readonly code: string
  readonly message: string
}

export type DocumentResult = { readonly ok: true; readonly document: FetchedDocument } | FetchFailure
export type SourceResult = { readonly ok: true; readonly document: FetchedSource } | FetchFailure

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
  const result = await fetchOnce(url, options, { bodyBytesMax: options.maxBodyBytes, acceptBody })
  return result.ok ? decoded(result.document, options.maxBodyBytes) : result
}

/** The same for what is no page: whatever its type, up to so many bytes of the wire, its codings untouched. */
export function fetchSource(url: string, given: CrawlOptionsGiven, bodyBytesMax: number): Promise<SourceResult> {
  return fetchOnce(url, resolveCrawlOptions(given), { bodyBytesMax, acceptBody: () => 'read' })
}

async function fetchOnce(url: string, options: CrawlOptions, what: Pick<FetchRequest, 'bodyBytesMax' | 'acceptBody'>): Promise<SourceResult> {
  const fetcher = openFetcher(options)
  try {
    const result = await fetcher.fetch({ url, deadlineMs: options.timeoutMs, ...what })
    if (!result.ok) return { ok: false, code: result.code, message: `${url}: ${result.detail}` }
    const header = (name: string): string | undefined => headerOf(result.headers, name)
    const document = {
      url, status: result.status, bytes: Buffer.concat(result.body), isCut: result.truncated, headerBlock: result.headerBlock,
      contentType: header('content-type'), contentEncoding: header('content-encoding'), location: header('location'),
    }
    return { ok: true, document }
  } finally {
    await fetcher.close()
  }
}

async function decoded({ contentEncoding, ...source }: FetchedSource, bytesMax: number): Promise<DocumentResult> {
  const inflated = await new Inflater(bytesMax).inflate(source.bytes, contentEncoding, source.isCut)
  if (!inflated.ok) return { ok: false, code: inflated.code, message: `${source.url}: the body does not match its Content-Encoding` }
  return { ok: true, document: { ...source, bytes: inflated.bytes, isCut: inflated.truncated } }
}

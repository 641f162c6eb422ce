/**
 * The line of a page record, from the fetcher's facts and the worker's reading. Pure; runs in a parse worker. The line
 * has no closing brace: the commit adds `newLinks` and `nearDuplicate`. Missing facts are absent, never null or empty.
 */
import { limits } from '../engine/core/limits.ts'
import { warcFileName, type PageMeta, type PageRecord, type ParsedResult, type WarcPlace } from '../engine/core/types.ts'
import type { RobotsDirectives } from './html/robots-directives.ts'

/** What the worker read, as far as the record tells it. */
export interface PageFacts {
  readonly charset?: string
  readonly unknownCharset?: string
  readonly bytes?: number
  readonly truncated: boolean
  readonly redirectTo?: string
  readonly title?: string
  readonly lang?: string
  readonly canonical?: string
  readonly refresh?: { readonly delaySeconds: number; readonly url: string }
  readonly robots?: RobotsDirectives
  readonly links?: number
  readonly nofollowLinks?: number
  /** Spellings of links that name a user. */
  readonly userinfo?: number
  readonly contentHash?: Uint8Array
  readonly simhash?: Uint8Array
  readonly needsJs?: boolean
  /** What the extractor returned, as JSON. */
  readonly recordJson?: string
}

export interface RecordParts {
  readonly meta: PageMeta
  readonly result: Pick<ParsedResult, 'outcome' | 'code'>
  readonly facts: PageFacts
  readonly wireBytes: number
  readonly parseMs: number
  readonly warc: WarcPlace | undefined
}

type Draft = { -readonly [K in keyof PageRecord]: PageRecord[K] | undefined }

function isFilled(value: unknown): boolean {
  if (value === '' || value === undefined || value === null) return false
  return typeof value !== 'object' || Object.keys(value).length > 0
}

function hexOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex')
}

function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}

function isUnchanged({ meta, result, facts }: RecordParts): boolean {
  return result.outcome === 'ok' && facts.contentHash !== undefined && hexOf(facts.contentHash) === meta.previous?.contentHash
}

export function recordLine(parts: RecordParts): Uint8Array {
  const { meta, facts, warc } = parts
  const draft: Draft = {
    url: meta.url,
    redirectTo: facts.redirectTo,
    redirectedFrom: meta.redirectedFrom,
    status: meta.status,
    outcome: parts.result.outcome,
    code: parts.result.code,
    fetchedAt: new Date(meta.fetchedAtMs).toISOString(),
    depth: meta.depth,
    referrer: meta.referrer,
    attempts: meta.attempts,
    contentType: meta.contentType,
    charset: facts.charset,
    unknownCharset: facts.unknownCharset,
    bytes: facts.bytes,
    wireBytes: parts.wireBytes,
    truncated: facts.truncated ? true : undefined,
    title: facts.title?.slice(0, limits.titleCharsMax),
    lang: facts.lang,
    canonical: facts.canonical,
    refresh: facts.refresh,
    robots: facts.robots,
    links: facts.links,
    nofollowLinks: facts.nofollowLinks === 0 ? undefined : facts.nofollowLinks,
    userinfo: facts.userinfo || undefined,
    hash: hexOf(facts.contentHash),
    unchanged: isUnchanged(parts) ? true : undefined,
    simhash: hexOf(facts.simhash),
    needsJs: facts.needsJs === true ? true : undefined,
    etag: meta.etag,
    lastModified: meta.lastModified,
    ip: meta.ip,
    gateway: meta.gateway,
    tls: meta.tls,
    timings: { ...meta.timings, parseMs: hundredths(parts.parseMs) },
    warc: warc === undefined ? undefined : { file: warcFileName(warc.file), offset: warc.offset },
  }
  // Not by a replacer of JSON.stringify, which costs a quarter of the line's time for all its nested values.
  const line = Object.fromEntries(Object.entries(draft).filter(([, value]) => isFilled(value)))
  const json = JSON.stringify(line).slice(0, -1)
  return Buffer.from(facts.recordJson === undefined ? json : `${json},"record":${facts.recordJson}`)
}

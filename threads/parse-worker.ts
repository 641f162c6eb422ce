/**
 * One page: undo its coding, read it, collect its links, run the extractor, append it to the WARC file, write the
 * record. Runs in a parse worker and touches nothing shared itself: the bytes come as views of the slot, which it never
 * changes. Invariant: a page that cannot be read costs itself a failure code and never the worker; only a sink that
 * cannot write throws (`disk_failed`, `disk_full`), since that is no fault of the page.
 */
import { isWall, type FailureCode } from '../engine/core/errors.ts'
import { limits } from '../engine/core/limits.ts'
import { isNotModified, noLinks, pageLinkElements, type Directive, type LinkElement, type LinkList, type PageMeta, type PageSink, type ParsedResult } from '../engine/core/types.ts'
import { fetchUrl, makeBase } from '../engine/core/fetch-url.ts'
import { locationOf, targetOf, type Target } from '../engine/core/redirects.ts'
import { contentHashOf } from '../engine/core/url-key.ts'
import { namesUser } from '../engine/core/url-text.ts'
import type { SlotPage } from './arena.ts'
import { LazyPage, type Extractor } from './extractor.ts'
import { wallInBody } from './html/challenge.ts'
import { settle, sniff } from './html/charset.ts'
import { encodeQuery } from './html/encodings.ts'
import type { HtmlFacts } from './html/html-facts.ts'
import { baseOf, noRawLinks, noRefusals, originOf, type LinkCollector, type Refusals } from './html/links.ts'
import { needsJs } from './html/needs-js.ts'
import { readHtml } from './html/read-html.ts'
import type { SimHasher } from './html/simhash.ts'
import type { Inflater } from './inflate.ts'
import { noHead, readPageHead, type PageHead } from './page-head.ts'
import { recordLine, type PageFacts } from './page-record.ts'
import { addedUp, elementHopSecondsMax, joined, readRefresh, refusedFor } from './redirects.ts'
import type { StageClock } from './stage-times.ts'

export interface ParseTools {
  readonly inflater: Inflater
  readonly collector: LinkCollector
  /** Elements whose addresses are links; absent: those of pages. */
  readonly linkElements?: readonly LinkElement[] | undefined
  /** Our product token in lower case, for robots directives. */
  readonly agent: string
  /** What pages and headers ask for that is followed; absent: nothing is. */
  readonly obey?: ReadonlySet<Directive>
  readonly extractor: Extractor | undefined
  /** Absent: pages get no SimHash. */
  readonly simHasher?: SimHasher
  /** Takes the times of a profile. */
  readonly stages?: StageClock | undefined
  /** Throws `disk_failed` or `disk_full`. */
  readonly sink: PageSink | undefined
  nowMs(): number
}

/** A body without its coding. */
interface Decoded {
  readonly bytes: Uint8Array
  readonly truncated: boolean
}

/** What became of a page, before its record is written. */
interface Reading {
  readonly outcome: ParsedResult['outcome']
  readonly code?: FailureCode
  readonly links: LinkList
  readonly linksKnown?: number
  readonly refused: Refusals
  readonly facts: PageFacts
}

function failed(code: FailureCode, facts: PageFacts): Reading {
  return { outcome: 'failed', code, links: noLinks, refused: noRefusals(), facts }
}

/**
 * What was read before stands, its hash too. It comes through a slot like any page, so that there is one way to a record
 * and to the archive: measured 0.03 ms of CPU with the slot's JSON and the frame, 0.09 with a revisit in a WARC file.
 */
function readNotModified({ previous }: PageMeta): Reading {
  const hash = previous?.contentHash
  const facts: PageFacts = { truncated: false, ...(hash !== undefined && { contentHash: Buffer.from(hash, 'hex') }) }
  return { outcome: 'not_modified', links: noLinks, refused: noRefusals(), facts }
}

/** HTML by its type; without a type, by its first character. */
export function isHtml(meta: PageMeta, body: Uint8Array): boolean {
  const type = meta.contentType?.split(';', 1)[0]!.trim().toLowerCase() ?? ''
  if (type !== '') return type === 'text/html' || type === 'application/xhtml+xml'
  return /^(?:\u00EF\u00BB\u00BF)?\s*</.test(Buffer.from(body.buffer, body.byteOffset, Math.min(256, body.byteLength)).toString('latin1'))
}

function readRedirect({ meta, redirects }: SlotPage, target: Target, tools: ParseTools): Reading {
  const userinfo = 'url' in target && namesUser(meta.location!, makeBase(meta.url)) ? 1 : 0
  const facts = { truncated: meta.truncated, redirectTo: 'url' in target ? target.url : target.text, userinfo }
  if (redirects >= limits.redirectsMax) return failed('redirect_limit', facts)
  if ('url' in target) return { outcome: 'redirect', facts, ...tools.collector.redirect(target.url) }
  return { outcome: 'redirect', links: noLinks, refused: refusedFor(target.refused), facts }
}

/** The extractor's answer as JSON, or undefined when it has none to give. Throws when it failed. */
async function extract(extractor: Extractor, page: LazyPage): Promise<string | undefined> {
  const record = await extractor(page)
  if (record === undefined) return undefined
  const json = JSON.stringify(record)
  if (json === undefined) throw new TypeError('the record is nothing that JSON can hold')
  if (Buffer.byteLength(json) > limits.extractedBytesMax) throw new RangeError('the record is too large')
  return json
}

/** What a document says of itself, as the record tells it. */
function htmlFacts(html: HtmlFacts, tools: ParseTools): Partial<PageFacts> {
  const { title, lang, links, texts, textCount = 0 } = html
  const simhash = texts === undefined ? undefined : tools.simHasher?.hash(links.bytes, texts, textCount)
  return {
    ...(title !== undefined && { title }), ...(lang !== undefined && { lang }),
    ...(simhash !== undefined && { simhash }),
  }
}

/** The address that the page gives for itself: in the document, else in its header, which knows nothing of the document's base. */
function canonicalOf({ url }: PageMeta, base: string, html: HtmlFacts | undefined, head: PageHead): string | undefined {
  if (html?.canonical !== undefined) return fetchUrl(html.canonical, makeBase(base))
  return head.canonical === undefined ? undefined : fetchUrl(head.canonical, makeBase(url))
}

/** Links of a page that stand in its header, and its canonical address if that is to be one. What is no address stays as it is, to be refused. */
function moreLinks({ url }: PageMeta, head: PageHead, canonical: string | undefined, { linkElements = pageLinkElements, obey }: ParseTools): readonly string[] {
  const more = canonical !== undefined && canonical !== url && obey?.has('canonical') === true ? [canonical] : []
  if (head.followed.length === 0 || !linkElements.includes('link')) return more
  const base = makeBase(url)
  return [...head.followed.map((href) => fetchUrl(href, base) ?? href), ...more]
}

async function readOk(slot: SlotPage, { bytes: body, truncated: isCut }: Decoded, head: PageHead, tools: ParseTools): Promise<Reading> {
  const { meta, headerBlock } = slot
  const { agent, collector, linkElements, obey, stages } = tools
  const isDocument = isHtml(meta, body)
  const sniffed = sniff(body, { contentType: meta.contentType, isHtml: isDocument })
  stages?.mark('sniff')
  const wantsText = tools.simHasher !== undefined
  const hopSecondsMax = elementHopSecondsMax(slot, linkElements)
  const html = isDocument ? readHtml(body, { sniffed, contentType: meta.contentType, isCut, linkElements, hopSecondsMax, agent, wantsText }) : undefined
  const charset = html?.charset ?? settle(body, sniffed, { encoding: undefined, unknownLabel: undefined }, isCut)
  stages?.mark('scan')
  const base = baseOf(meta.url, html?.base)
  const isForeignBase = originOf(base) !== originOf(meta.url)
  const robots = { ...html?.robots, ...head.robots }
  const canonical = canonicalOf(meta, base, html, head)
  const refresh = readRefresh(slot, html?.refresh && { ...html.refresh, target: targetOf(encodeQuery(html.refresh.url, charset.name), base) }, tools)
  const found = collector.collect(html?.links ?? noRawLinks, {
    base, isForeignBase, encoding: charset.name, followLinks: meta.followLinks,
    isNofollow: robots.nofollow === true && obey?.has('nofollow') === true, more: [...moreLinks(meta, head, canonical, tools), ...refresh.slow],
  }, () => stages?.mark('resolve'))
  const { linksKnown, count, nofollowCount, userinfo } = found
  const [links, refused] = [joined(refresh.hop, found.links), addedUp(found.refused, refresh.refused)]
  stages?.mark('fingerprint')
  const contentHash = body.byteLength > 0 ? contentHashOf(body) : undefined
  stages?.mark('hash')
  const facts: PageFacts = {
    charset: charset.name, bytes: body.byteLength, truncated: isCut, robots, nofollowLinks: nofollowCount, ...(canonical !== undefined && { canonical }),
    ...(charset.unknownLabel !== undefined && { unknownCharset: charset.unknownLabel }),
    ...(contentHash && { contentHash }), ...((html !== undefined || count > 0) && { links: count, userinfo }),
    ...(html && { needsJs: needsJs(html, html.links.bytes, isCut), ...htmlFacts(html, tools) }),
    ...(refresh.fact && { refresh: refresh.fact }),
  }
  const extractor = robots.noindex === true && obey?.has('noindex') === true ? undefined : tools.extractor
  if (extractor === undefined) return { outcome: 'ok', links, linksKnown, refused, facts }
  const page = new LazyPage({ url: meta.url, status: meta.status, headerBlock, body, charset, robots, facts: html, base, stages })
  try {
    const recordJson = await extract(extractor, page)
    return { outcome: 'ok', links, linksKnown, refused, facts: { ...facts, ...(recordJson !== undefined && { recordJson }) } }
  } catch {
    return { outcome: 'failed', code: 'extractor_failed', links, linksKnown, refused, facts }
  } finally {
    stages?.mark('extractor')
    page.end()
  }
}

function isOk({ status }: PageMeta): boolean {
  return status >= 200 && status < 300
}

async function read(page: SlotPage, head: PageHead, tools: ParseTools): Promise<Reading> {
  const { meta } = page
  if (isNotModified(meta)) return readNotModified(meta)
  const target = locationOf(meta)
  if (target !== undefined) return readRedirect(page, target, tools)
  const inflated = await tools.inflater.inflate(page.body, meta.contentEncoding, meta.truncated)
  tools.stages?.mark('inflate')
  const wall = inflated.ok ? wallInBody(meta.status, inflated.bytes) : undefined
  if (inflated.ok && wall !== undefined) return failed(wall, { truncated: inflated.truncated, bytes: inflated.bytes.byteLength })
  if (inflated.ok && isOk(meta)) return readOk(page, inflated, head, tools)
  if (isOk(meta)) return failed('bad_content_encoding', { truncated: meta.truncated, robots: head.robots })
  // The server said no, and that is known whatever its body holds.
  const facts: PageFacts = !inflated.ok || inflated.bytes.byteLength === 0
    ? { truncated: meta.truncated }
    : { truncated: inflated.truncated, bytes: inflated.bytes.byteLength, contentHash: contentHashOf(inflated.bytes) }
  return { outcome: 'http_error', links: noLinks, refused: noRefusals(), facts }
}

export async function parsePage(page: SlotPage, tools: ParseTools): Promise<ParsedResult> {
  const startMs = tools.nowMs()
  const head = isOk(page.meta) ? readPageHead(page.headerBlock, tools.agent) : noHead
  let reading: Reading
  try {
    reading = await read(page, head, tools)
  } catch {
    reading = failed('parse_failed', { truncated: page.meta.truncated, robots: head.robots })
  }
  const { outcome, code, links, linksKnown = 0, refused, facts } = reading
  // What stands in the place of the page is not archived as the page.
  const isArchived = !isWall(code) && !(facts.robots?.noarchive === true && tools.obey?.has('noarchive') === true)
  const warc = isArchived ? tools.sink?.append({ meta: page.meta, headerBlock: page.headerBlock, body: page.body }) : undefined
  const result = { outcome, ...(code !== undefined && { code }) }
  const line = recordLine({ meta: page.meta, result, facts, wireBytes: page.body.byteLength, parseMs: tools.nowMs() - startMs, warc })
  tools.stages?.mark('record')
  return {
    ...result, links, linksKnown, refused, line, bodyBytes: facts.bytes ?? 0,
    ...(facts.contentHash !== undefined && { contentHash: facts.contentHash }),
    ...(facts.simhash !== undefined && { simhash: facts.simhash }), ...(warc !== undefined && { warc }),
  }
}

/**
 * `sluice inspect page`: what the engine reads in a document, by the code of the parse workers. A document comes from a
 * file, standard input, a batch line, or one fetch under the engine's own address guard.
 */
import fs from 'node:fs'
import { SluiceError } from '../core/errors.ts'
import { crawlOptions } from '../core/options.ts'
import type { PageMeta, PageRecord } from '../core/types.ts'
import { fetchUrl } from '../core/fetch-url.ts'
import { resolveLinks } from '../../threads/extractor.ts'
import { charsetOf } from '../../threads/html/charset.ts'
import { baseOf, LinkCollector } from '../../threads/html/links.ts'
import { readHtml } from '../../threads/html/read-html.ts'
import { productTokenOf } from '../core/product-token.ts'
import { Inflater } from '../../threads/inflate.ts'
import { isHtml, parsePage } from '../../threads/parse-worker.ts'
import type { Answer } from './batch.ts'

/** A document and what is known of it from outside. */
export interface InspectedDocument {
  readonly bytes: Uint8Array
  readonly base: string
  /** Absent: a server said nothing. */
  readonly contentType: string | undefined
  /** The bytes are the beginning of a longer document. */
  readonly isCut: boolean
  /** Its header, which may say more of it; absent: it came without one. */
  readonly headerBlock?: Uint8Array
  /** For whom robots directives may be; default: the crawl's own. */
  readonly userAgent?: string | undefined
}

/** Stands in for the address of a file, so that relative links can be shown; RFC 6761 keeps the name free. */
export const baseDefault = 'https://base.invalid/'

/** `{file | html | base64, base?, contentType?}` as a document. Throws `usage` and `file_unreadable`. */
export function documentOf({ file, html, base64, base, contentType }: Answer): InspectedDocument {
  const given = [file, html, base64].filter((source) => source !== undefined)
  if (given.length !== 1 || typeof given[0] !== 'string') throw new SluiceError('usage', 'expected one of file, html and base64, as a text')
  for (const [name, value] of Object.entries({ base, contentType })) {
    if (value !== undefined && typeof value !== 'string') throw new SluiceError('usage', `expected a text as ${name}`)
  }
  const bytes = typeof file === 'string' ? readFile(file) : Buffer.from(given[0], typeof html === 'string' ? 'utf8' : 'base64')
  // A text in JSON is Unicode already, whatever its own meta element says.
  const typeDefault = typeof html === 'string' ? 'text/html; charset=utf-8' : 'text/html'
  return { bytes, base: checkedBase(base as string | undefined), contentType: (contentType as string | undefined) || typeDefault, isCut: false }
}

export function checkedBase(base: string | undefined): string {
  const url = fetchUrl(base ?? baseDefault)
  if (url === undefined) throw new SluiceError('bad_option', `--base: expected an http or https URL, given ${JSON.stringify(base)}`)
  return url
}

export function readFile(file: string): Uint8Array {
  try {
    return fs.readFileSync(file)
  } catch (error) {
    throw new SluiceError('file_unreadable', `FILE: expected a document, given ${file}: ${(error as Error).message}`, { cause: error })
  }
}

/** The shape of INTERFACE.md. */
export async function inspectDocument(document: InspectedDocument): Promise<Answer> {
  const meta = metaOf(document)
  // In what is no HTML a crawl looks for nothing: then an empty document is read, under the charset of the whole.
  const isDocument = isHtml(meta, document.bytes)
  const { contentType } = meta
  const facts = isDocument
    ? readHtml(document.bytes, { contentType, isCut: document.isCut })
    : readHtml(new Uint8Array(0), { charset: charsetOf(document.bytes, { contentType, isHtml: false, isCut: document.isCut }) })
  const { charset } = facts
  const base = baseOf(document.base, facts.base)
  // Before the document is read once more, for its record.
  const links = resolveLinks(facts.links, base, charset.name)
  const counts: Record<string, number> = {}
  for (const { element } of links) counts[element] = (counts[element] ?? 0) + 1
  const record = await recordOf(document, meta)
  return {
    charset: charset.name, charsetFrom: charset.from, ...(charset.unknownLabel !== undefined && { unknownCharset: charset.unknownLabel }),
    ...(record.title !== undefined && { title: record.title }), ...(record.lang !== undefined && { lang: record.lang }),
    base, ...(record.canonical !== undefined && { canonical: record.canonical }), robots: record.robots ?? {},
    ...(record.refresh && { refresh: record.refresh }),
    text: facts.textLength, needsJs: record.needsJs === true, links, counts,
  }
}

/** What a crawl would know of the document beside its bytes. */
function metaOf({ base, contentType, isCut }: InspectedDocument): PageMeta {
  return {
    url: base, depth: 0, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: 0, ...(contentType !== undefined && { contentType }),
    timings: {}, truncated: isCut, followLinks: true,
  }
}

/** The page record that a crawl would write. */
async function recordOf({ bytes, headerBlock = new Uint8Array(0), userAgent = crawlOptions.userAgent.default }: InspectedDocument, meta: PageMeta): Promise<PageRecord> {
  const collector = new LinkCollector({ include: [], exclude: [] })
  const { line } = await parsePage(
    { meta, headerBlock, body: bytes, redirects: 0 },
    { inflater: new Inflater(bytes.byteLength), collector, agent: productTokenOf(userAgent).toLowerCase(), extractor: undefined, sink: undefined, nowMs: () => 0 },
  )
  return JSON.parse(`${Buffer.from(line).toString('utf8')}}`) as PageRecord
}

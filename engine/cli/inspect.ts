/**
 * `sluice inspect url`, `page`, `robots` and `sitemap`: where the question comes from and how the answer is written. What is answered
 * is in the modules of their names.
 */
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { SluiceError } from '../core/errors.ts'
import { fetchUrl } from '../core/fetch-url.ts'
import { limits } from '../core/limits.ts'
import { resolveCrawlOptions, type CrawlOptionsGiven } from '../core/options.ts'
import { whyNotFetched, withoutUser } from '../core/url-text.ts'
import { answerLines, writeOut, type Answer } from './batch.ts'
import { fetchDocument, fetchSource, type FetchedDocument } from './fetch-document.ts'
import { checkedBase, documentOf, inspectDocument } from './inspect-page.ts'
import { inspectFetchedRobots, inspectRobots } from './inspect-robots.ts'
import { inspectSitemap, sitemapOf, sitemapText } from './inspect-sitemap.ts'
import { inspectUrl } from './inspect-url.ts'
import { errorLine } from './lines.ts'

export interface InspectOptions {
  readonly base?: string
  readonly contentType?: string
  /** Rules of the key, with commas. */
  readonly dedupe?: string
  /** Who asks robots.txt, and for which URL. */
  readonly agent?: string
  readonly url?: string
  readonly json: boolean
  readonly batch: boolean
  /** For a document that is fetched. */
  readonly network: CrawlOptionsGiven
}

const exitUsage = 2

/** Resolves to the exit code. */
export async function runInspectUrl(url: string | undefined, options: InspectOptions): Promise<number> {
  if (options.batch) return answerBatch(inspectUrl)
  if (url === undefined) throw new SluiceError('usage', 'URL: expected a URL, given nothing')
  const { base, dedupe } = options
  // Throws for rules that are none: in a batch these are the answer, here they are a wrong option.
  if (dedupe !== undefined) resolveCrawlOptions({ dedupe } as CrawlOptionsGiven)
  const answer = inspectUrl({ url, ...(base !== undefined && { base }), ...(dedupe !== undefined && { dedupe }) })
  if (options.json) await writeOut(`${JSON.stringify(answer)}\n`)
  if (answer['error'] === undefined) {
    if (!options.json) await writeOut(textOf(answer))
    return 0
  }
  if (!options.json) process.stderr.write(`${errorLine('bad_url', String(answer['error']))}\n`)
  return exitUsage
}

/** Resolves to the exit code. Throws `usage`, `bad_option`, `bad_url`, `file_unreadable`. */
export async function runInspectPage(source: string | undefined, options: InspectOptions): Promise<number> {
  if (options.batch) return answerBatch(async (args) => inspectDocument(documentOf(args)))
  const given = await sourceOf(source, options)
  if (typeof given === 'string') return inspectFetched(given, options)
  await write(await inspectDocument(documentOf(given)), options.json)
  return 0
}

/** Resolves to the exit code. Throws as `runInspectPage` does. */
export async function runInspectSitemap(source: string | undefined, options: InspectOptions): Promise<number> {
  if (options.batch) return answerBatch(async (args) => inspectSitemap(sitemapOf(args)))
  const given = await sourceOf(source, options)
  if (typeof given === 'string') return inspectFetchedSitemap(given, options)
  await write(await inspectSitemap(sitemapOf(given)), options.json, sitemapText)
  return 0
}

/** A URL that is to be fetched, or what a line of a batch would say of a file or of standard input. */
async function sourceOf(source: string | undefined, { base, contentType }: InspectOptions): Promise<string | Answer> {
  if (source === undefined) throw new SluiceError('usage', 'FILE|URL: expected a file, a URL, or - for standard input, given nothing')
  if (/^https?:\/\//i.test(source)) {
    const url = fetchUrl(source)
    if (url === undefined) throw new SluiceError('bad_url', `URL: ${whyNotFetched(source)}: ${withoutUser(source).slice(0, 200)}`)
    return url
  }
  const given = { ...(base !== undefined && { base }), ...(contentType !== undefined && { contentType }) }
  return source === '-' ? { base64: await readAll(process.stdin), ...given } : { file: source, ...given }
}

async function inspectFetched(url: string, { base, contentType, json, network }: InspectOptions): Promise<number> {
  const result = await fetchDocument(url, network)
  if (!result.ok) return writeFailure(result, json)
  const { document } = result
  const { bytes, isCut, headerBlock } = document
  const answer = await inspectDocument({ bytes, isCut, headerBlock, base: checkedBase(base ?? url), contentType: contentType ?? document.contentType, userAgent: network.userAgent })
  await write({ ...answerFacts(document), ...answer }, json)
  return 0
}

async function inspectFetchedSitemap(url: string, { base, contentType: givenType, json, network }: InspectOptions): Promise<number> {
  const result = await fetchSource(url, network, limits.sitemapBytesMax)
  if (!result.ok) return writeFailure(result, json)
  const { bytes, isCut, contentEncoding } = result.document
  const contentType = givenType ?? result.document.contentType
  const head = { url: checkedBase(base ?? url), ...(contentType !== undefined && { contentType }), ...(contentEncoding !== undefined && { contentEncoding }) }
  await write({ ...answerFacts(result.document), ...await inspectSitemap({ bytes, head, isCut }) }, json, sitemapText)
  return 0
}

function answerFacts({ url, status, location }: FetchedDocument): Answer {
  return { url, status, ...(location !== undefined && { location }) }
}

/** Resolves to the exit code: to be forbidden is an answer, and no failure. Throws `usage`, `bad_option`, `file_unreadable`. */
export async function runInspectRobots(source: string | undefined, { agent, url, json, batch, network }: InspectOptions): Promise<number> {
  if (batch) return answerBatch(inspectRobots)
  if (source === undefined) throw new SluiceError('usage', 'FILE|URL: expected a robots.txt, a URL, or - for standard input, given nothing')
  const asked = { ...(agent !== undefined && { agent }), ...(url !== undefined && { url }) }
  if (!/^https?:\/\//i.test(source)) {
    await write(inspectRobots(source === '-' ? { base64: await readAll(process.stdin), ...asked } : { file: source, ...asked }), json)
    return 0
  }
  const result = await inspectFetchedRobots(source, asked, network)
  if (!result.ok) return writeFailure(result, json)
  await write(result.answer, json)
  return 0
}

/** Answers the exit code. */
async function writeFailure({ code, message }: { readonly code: string; readonly message: string }, isJson: boolean): Promise<number> {
  if (isJson) await writeOut(`${JSON.stringify({ error: message, code })}\n`)
  else process.stderr.write(`${errorLine(code, message)}\n`)
  return 1
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(stream, 'end')
  return Buffer.concat(chunks).toString('base64')
}

async function answerBatch(answer: (args: Answer) => Promise<Answer> | Answer): Promise<number> {
  await answerLines(process.stdin, writeOut, answer)
  return 0
}

async function write(answer: Answer, isJson: boolean, asText: (answer: Answer) => string = textOf): Promise<void> {
  await writeOut(isJson ? `${JSON.stringify(answer)}\n` : asText(answer))
}

/** `name: value` lines; links one a line, with the element that they are from. */
export function textOf(answer: Answer): string {
  const lines: string[] = []
  for (const [name, value] of Object.entries(answer)) {
    if (name === 'links') {
      const links = value as readonly { readonly url: string; readonly element: string; readonly rel?: string }[]
      lines.push(`links: ${links.length}`, ...links.map(({ url, element, rel }) => `  ${element.padEnd(6)} ${url}${rel === undefined ? '' : ` [${rel}]`}`))
    } else {
      lines.push(`${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    }
  }
  return `${lines.join('\n')}\n`
}

/**
 * `sluice inspect robots`: whether a robots.txt allows a URL, and by which line. By the code of the crawl: its reader, its
 * matcher, and for a file that is fetched the gate itself, so that every answer of a server means what it means there.
 */
import { systemClock } from '../core/clock.ts'
import { SluiceError } from '../core/errors.ts'
import { fetchUrl, hostOfUrl } from '../core/fetch-url.ts'
import { limits } from '../core/limits.ts'
import { crawlOptions, resolveCrawlOptions, type CrawlOptionsGiven } from '../core/options.ts'
import { productTokenOf } from '../core/product-token.ts'
import { decideRobots } from '../web/robots-matcher.ts'
import { RobotsGate, sitemapsAt } from '../web/robots.ts'
import { Inflater } from '../../threads/inflate.ts'
import { linesOf, readRobots, type RobotsRead } from '../../threads/robots-text.ts'
import type { Answer } from './batch.ts'
import { openFetcher } from './fetch-document.ts'
import { readFile } from './inspect-page.ts'

/** `{robots | base64 | file, agent?, url}`. Throws `usage`, `bad_option` and `file_unreadable`. */
export function inspectRobots({ robots, base64, file, agent, url }: Answer): Answer {
  const given = [robots, base64, file].filter((source) => source !== undefined)
  if (given.length !== 1 || typeof given[0] !== 'string') throw new SluiceError('usage', 'expected one of robots, base64 and file, as a text')
  const [asked, name] = [urlOf('--url', url), agentOf(agent)]
  const bytes = typeof file === 'string' ? readFile(file) : Buffer.from(given[0], typeof robots === 'string' ? 'utf8' : 'base64')
  return answerOf(asked, new URL('/robots.txt', asked).href, readRobots(bytes, productTokenOf(name)))
}

export type FetchedRobots = { readonly ok: true; readonly answer: Answer } | { readonly ok: false; readonly code: string; readonly message: string }

/** The same of the robots.txt of an origin, fetched by the gate. A failure, which forbids everything for now, is a value. */
export async function inspectFetchedRobots(given: string, { agent, url }: Answer, network: CrawlOptionsGiven): Promise<FetchedRobots> {
  const [options, source] = [resolveCrawlOptions(network), urlOf('URL', given)]
  const [asked, fetcher] = [url === undefined ? source : urlOf('--url', url), openFetcher(options)]
  let read: RobotsRead | undefined
  const gate = new RobotsGate({
    fetcher, clock: systemClock, userAgent: agentOf(agent), deadlineMs: options.timeoutMs, stored: () => undefined,
    readRobots: async ({ body, contentEncoding, isCut }, token) => {
      const inflated = await new Inflater(limits.robotsBytesMax).inflate(body, contentEncoding, isCut)
      if (!inflated.ok) return undefined
      read = readRobots(inflated.bytes, token, inflated.truncated)
      return { ...read, lines: linesOf(read.rules) }
    },
  })
  try {
    const found = await gate.ask(source)
    if (found.kind !== 'known') return found.kind === 'failed' ? { ok: false, code: found.code, message: found.detail } : { ok: false, code: 'aborted', message: 'robots.txt was not fetched' }
    const { origin } = new URL(source)
    const { status } = gate.verdictsOf(hostOfUrl(source))[origin]!
    const rules = answerOf(asked, `${origin}/robots.txt`, read ?? { rules: [], sitemaps: [] })
    return { ok: true, answer: { ...rules, sitemaps: gate.sitemapsOf(source), status } }
  } finally {
    await fetcher.close()
  }
}

function answerOf(asked: string, fileUrl: string, { rules, crawlDelayMs, sitemaps }: RobotsRead): Answer {
  const lines = linesOf(rules)
  const { isAllowed, at } = decideRobots(lines, new URL(asked))
  const rule = at === undefined ? undefined : rules[lines.slice(0, at).split('\n').length - 1]!
  return {
    allowed: isAllowed, ...(rule !== undefined && { line: rule.line, rule: `${rule.isAllow ? 'Allow' : 'Disallow'}: ${rule.pattern}` }),
    ...(!isAllowed && rule === undefined && { note: 'its wildcards are too many for a URL so long' }),
    ...(crawlDelayMs !== undefined && { crawlDelayMs }), sitemaps: sitemapsAt(fileUrl, sitemaps),
  }
}

function urlOf(name: string, given: unknown): string {
  const url = typeof given === 'string' ? fetchUrl(given) : undefined
  if (url === undefined) throw new SluiceError('usage', `${name}: expected an http or https URL, given ${JSON.stringify(given ?? '').slice(0, 200)}`)
  return url
}

function agentOf(given: unknown = crawlOptions.userAgent.default): string {
  if (typeof given !== 'string') throw new SluiceError('usage', 'expected a text as agent')
  return given
}

/** The corpus of robots.txt cases and files, by the engine's own path: what a parse worker reads, then the matcher. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { fetchUrl, makeBase } from '../../engine/core/fetch-url.ts'
import { decideRobots } from '../../engine/web/robots-matcher.ts'
import { readRobotsText } from '../../threads/robots-text.ts'
import { corpusPath } from '../support/corpus.ts'

type Conformance = 'rfc9309' | 'vendor' | 'disputed'
interface Case { readonly name: string; readonly robots?: string; readonly robots_base64?: string; readonly agent: string; readonly url: string; readonly allowed: boolean; readonly conformance: Conformance }
interface DirectiveCase { readonly name: string; readonly kind: string; readonly robots: string; readonly agent: string; readonly crawl_delay_s?: number | null; readonly sitemaps?: readonly string[] }

/**
 * Cases beyond the RFC that are answered in another way than their source does, and why. The header of
 * threads/robots-text.ts has the policy.
 */
const deviations: readonly (readonly [cases: RegExp, why: string])[] = [
  [/^RFC-9309-section-2-2-2-encoding-table-02$/, 'reserved characters are compared as written, as google/robotstxt and crawler-commons do'],
  [/^protego-test-special-symbols-dual-behaviour/, 'a $ at the end is the end, and no character besides'],
  [/^protego-test-with-absolute-urls/, 'a pattern that begins with neither / nor * matches nothing'],
  [/^robotstxt-ID-Encoding/, 'escapes of what is no ASCII are compared with what they stand for'],
  [/^crawler-commons-testDirectiveTypos/, 'more typos than those that google/robotstxt knows are not guessed at'],
  [/^crawler-commons-test(?:HeritrixCases|MatchingUserAgentNamesHttpHeader|MultiAgentNames|NutchCases2?|SpacesInMultipleUserAgentNames)/, 'a name is one whole word: no prefixes, no lists'],
  [/^protego-test-generosity-0[36]$/, 'a name is one whole word: no wildcards in it, and the agent is its first word'],
  [/^robotstxt-GoogleOnly-AcceptUserAgentUpToFirstSpace/, 'the agent is its first word, too'],
  [/^crawler-commons-testPrecedenceOfRules/, 'the longer pattern wins, also when it is longer by a wildcard'],
  [/^protego-test-grouping-unknown-keys/, 'an unknown directive does not end a run of user-agent lines'],
  [/^crawler-commons-testHtmlMarkupInRobotsTxt/, 'a page has no rules'],
  [/^robotstxt-spec-test-correctness-BOM-characters-03$/, 'half a mark of byte order is none'],
  [/^robotstxt-spec-test-stress-327748-06$|^robotstxt-spec-test-stress-369883-(?:06|10)$/, 'robots.txt itself may always be fetched'],
  [/^robotstxt-spec-test-stress-369883-0[789]$/, 'digits belong to a name'],
  [/^robotstxt-GoogleOnly-LineTooLong-0[45]$/, 'a line is read whole; what is cut is an Allow that is longer than a URL may be'],
]

const corpus = corpusPath('robots')
const json = <T>(name: string): readonly T[] => JSON.parse(readFileSync(`${corpus}/${name}`, 'utf8')) as readonly T[]
const asked = (agent: string): string => (agent === '*' ? '' : agent)

function isAllowed({ robots, robots_base64: base64, agent, url }: Case): boolean {
  const { lines } = readRobotsText(base64 === undefined ? Buffer.from(robots!) : Buffer.from(base64, 'base64'), asked(agent))
  return decideRobots(lines, new URL(url)).isAllowed
}

describe.skipIf(!existsSync(corpus) && (console.log(`skipped: no corpus at ${corpus}`), true))('corpus', () => {
  it('all cases that RFC 9309 decides are decided so, and of the others all but those listed as their source does', () => {
    // Four cases of Google's own test ask about an empty address, which no engine fetches.
    const cases = json<Case>('cases.json').filter(({ url }) => url !== '')
    const count = (conformance: Conformance): number => cases.filter((each) => each.conformance === conformance).length
    const wrong = cases.filter((each) => isAllowed(each) !== each.allowed)
    const unlisted = wrong.filter(({ name, conformance }) => conformance === 'rfc9309' || !deviations.some(([pattern]) => pattern.test(name)))
    expect(unlisted.map(({ name }) => name)).toEqual([])
    expect(deviations.filter(([pattern]) => !wrong.some(({ name }) => pattern.test(name))).map(([, why]) => why)).toEqual([])
    const deviating = (conformance: Conformance): number => wrong.filter((each) => each.conformance === conformance).length
    console.log(`robots cases: ${count('rfc9309')} of RFC 9309, all hold; ${count('vendor')} of vendors, ${deviating('vendor')} deviate; ${count('disputed')} disputed, ${deviating('disputed')} deviate, for ${deviations.length} reasons`)
    expect([count('rfc9309'), deviating('rfc9309'), deviating('vendor')]).toEqual([887, 0, 1])
  })

  it('crawl delays and sitemaps are those of the cases', () => {
    const cases = json<DirectiveCase>('directive-cases.json')
    for (const { name, kind, robots, agent, crawl_delay_s: seconds, sitemaps = [] } of cases) {
      const text = readRobotsText(Buffer.from(robots), asked(agent ?? '*'))
      if (kind === 'crawl_delay') expect(text.crawlDelayMs ?? null, name).toBe(seconds === null ? null : seconds! * 1_000)
      else expect(text.sitemaps.map(resolved), name).toEqual(sitemaps.map(resolved))
    }
    console.log(`robots directive cases: ${cases.length}, all hold`)
    expect(cases.length).toBe(35)
  })

  it('real files are read within their bounds, and decide about a long URL within theirs', () => {
    const files = readdirSync(`${corpus}/real`).filter((name) => name !== 'index.json')
    const url = new URL(`https://a.test/${'a/'.repeat(3_990)}`)
    let [rules, denied, sitemaps, charsMax] = [0, 0, 0, 0]
    for (const file of files) {
      const raw = readFileSync(`${corpus}/real/${file}`)
      const text = readRobotsText(file.endsWith('.gz') ? gunzipSync(raw) : raw, 'sluice')
      expect(text.lines.length, file).toBeLessThanOrEqual(limits.robotsBytesMax)
      expect(text.sitemaps.length, file).toBeLessThanOrEqual(limits.robotsSitemapsMax)
      expect(text.lines, file).toMatch(/^(?:[+-][!-~]+\n)*$/)
      const decision = decideRobots(text.lines, url)
      // None of them is denied for want of steps.
      expect(decision.isAllowed || decision.at !== undefined, file).toBe(true)
      rules += text.lines.split('\n').length - 1
      sitemaps += text.sitemaps.length
      charsMax = Math.max(charsMax, text.lines.length)
      if (!decision.isAllowed) denied += 1
    }
    console.log(`real robots.txt files: ${files.length}, with ${rules} rules for us (the longest list has ${charsMax} bytes) and ${sitemaps} sitemaps; ${denied} deny a path of 7,981 characters`)
    expect(files.length).toBe(1_367)
  })
})

function resolved(line: string): string | undefined {
  return fetchUrl(line, makeBase('http://example.com/robots.txt'))
}

import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createRobotsMatcher } from '../../engine/web/robots-matcher.ts'
import { limits } from '../../engine/core/limits.ts'
import { readRobotsText } from '../../threads/robots-text.ts'
import { corpusPath } from '../support/corpus.ts'

const lines = (text: string | Uint8Array, agent = 'Sluice/0.1 (+https://example.com)'): string[] =>
  readRobotsText(typeof text === 'string' ? Buffer.from(text) : text, agent).lines.split('\n').slice(1, -1)

describe('readRobotsText', () => {
  it('keeps the rules of our group, and those of * only when no group names us', () => {
    const text = 'User-agent: *\nDisallow: /all\nUser-agent: other\nDisallow: /other\nUser-agent: SLUICE\nAllow: /ours # why\n'
    expect(readRobotsText(Buffer.from(text), 'sluice').lines).toBe('User-agent: *\nAllow: /ours\n')
    expect(lines(text, 'unnamed')).toEqual(['Disallow: /all'])
    expect(lines(text, '')).toEqual(['Disallow: /all'])
  })

  it('merges groups of one agent, and gives a rule to all agents of its run', () => {
    expect(lines('User-agent: sluice\nDisallow: /1\nUser-agent: a\nDisallow: /no\nUser-agent: a\nUser-agent: sluice\nDisallow: /2')).toEqual(['Disallow: /1', 'Disallow: /2'])
  })

  it.each(['Sitemap: https://a.example/s.xml', 'Crawl-delay: 3', 'Noindex: /x', '', '# comment', 'no colon'])('does not end a run of user-agent lines at %j', (between) => {
    expect(lines(`User-agent: sluice\n${between}\nUser-agent: other\nDisallow: /x`)).toEqual(['Disallow: /x'])
  })

  it('matches whole product tokens, whatever follows them', () => {
    expect(lines('User-agent: sluice/2.0 beta\nDisallow: /x')).toEqual(['Disallow: /x'])
    expect(lines('User-agent: sluicebot\nDisallow: /x')).toEqual([])
    expect(lines('User-agent: slu\nDisallow: /x')).toEqual([])
    expect(lines('User-agent: * anything\nDisallow: /x')).toEqual(['Disallow: /x'])
  })

  it('has no rules in a group that names us with an empty Disallow, though * has some', () => {
    expect(lines('User-agent: *\nDisallow: /\nUser-agent: sluice\nDisallow:')).toEqual([])
  })

  it('reads byte order marks, all line ends, NUL bytes and upper case', () => {
    expect(lines('\uFEFFUSER-AGENT:*\rDISALLOW:/a\r\nallow : /b\nDis\0allow: /c')).toEqual(['Disallow: /a', 'Allow: /b', 'Disallow: /c'])
  })

  it('finds no rules in a page of HTML, in nothing, and before the first group', () => {
    expect(lines('<!doctype html><body>\nUser-agent: *\nDisallow: /')).toEqual([])
    expect(lines('')).toEqual([])
    expect(lines('Disallow: /x\nUser-agent: *\nAllow: /')).toEqual(['Allow: /'])
  })

  it('reads 500 KiB and of them whole lines only', () => {
    const head = 'User-agent: *\nDisallow: /first\n'
    const filler = `#${'x'.repeat(998)}\n`.repeat(511)
    const pad = `#${'y'.repeat(limits.robotsBytesMax - head.length - filler.length - 'Disallow: /cut'.length - 2)}\n`
    const text = `${head}${filler}${pad}Disallow: /cut-here\nDisallow: /beyond\n`
    expect(text.slice(0, limits.robotsBytesMax)).toMatch(/Disallow: \/cut$/)
    expect(lines(text)).toEqual(['Disallow: /first'])
  })

  it('bounds rules, patterns and sitemaps, and forbids rather more than less', () => {
    const long = `/${'x'.repeat(2 * limits.robotsPatternCharsMax)}`
    expect(lines(`User-agent: *\nAllow: ${long}\nDisallow: ${long}`)).toEqual([`Disallow: ${long.slice(0, limits.robotsPatternCharsMax)}`])
    expect(lines(`User-agent: *\n${'Disallow: /x\n'.repeat(limits.robotsRulesMax + 9)}`).length).toBe(limits.robotsRulesMax)
    const sitemaps = 'Sitemap: https://a.example/\n'.repeat(limits.robotsSitemapsMax + 9)
    expect(readRobotsText(Buffer.from(sitemaps), 'sluice').sitemaps.length).toBe(limits.robotsSitemapsMax)
  })

  it('caps a crawl-delay', () => {
    expect(readRobotsText(Buffer.from('User-agent: *\nCrawl-delay: 99999'), 'x').crawlDelayMs).toBe(limits.crawlDelayMsMax)
  })
})

interface Case { name: string; robots?: string; robots_base64?: string; agent: string; url: string; allowed: boolean; conformance: string }
interface DirectiveCase { name: string; kind: string; robots: string; agent: string; crawl_delay_s?: number | null; sitemaps?: string[] }

const corpus = corpusPath('robots')
describe.skipIf(!existsSync(corpus) && (console.log(`skipped: no corpus at ${corpus}`), true))('corpus', () => {
  it('all cases of RFC 9309 are decided by the lines of our group alone', () => {
    const cases = (JSON.parse(readFileSync(`${corpus}/cases.json`, 'utf8')) as Case[]).filter(({ conformance }) => conformance === 'rfc9309')
      // That robots.txt itself is always allowed is the gate's business.
      .filter(({ url }) => new URL(url).pathname !== '/robots.txt')
    const wrong = cases.filter(({ robots, robots_base64: base64, agent, url, allowed }) => {
      const body = base64 === undefined ? Buffer.from(robots!) : Buffer.from(base64, 'base64')
      const text = readRobotsText(body, agent === '*' ? '' : agent)
      return createRobotsMatcher(text.lines).isAllowed(new URL(url)) !== allowed
    })
    expect(cases.length).toBeGreaterThan(800)
    expect(wrong.map(({ name }) => name)).toEqual([])
  })

  it('crawl delays and sitemaps are those of the cases', () => {
    const cases = JSON.parse(readFileSync(`${corpus}/directive-cases.json`, 'utf8')) as DirectiveCase[]
    for (const { name, kind, robots, agent, crawl_delay_s: seconds, sitemaps } of cases) {
      const text = readRobotsText(Buffer.from(robots), agent === '*' ? '' : agent)
      if (kind === 'crawl_delay') expect(text.crawlDelayMs ?? null, name).toBe(seconds === null ? null : seconds! * 1_000)
      else if (sitemaps !== undefined) expect(text.sitemaps.map((url) => new URL(url, 'http://example.com/').href), name).toEqual(sitemaps.map((url) => new URL(url, 'http://example.com/').href))
    }
  })

  it('real files give bounded answers', () => {
    const files = readdirSync(`${corpus}/real`).filter((name) => name !== 'index.json')
    expect(files.length).toBeGreaterThan(1_000)
    for (const file of files) {
      const raw = readFileSync(`${corpus}/real/${file}`)
      const text = readRobotsText(file.endsWith('.gz') ? gunzipSync(raw) : raw, 'sluice')
      expect(text.lines.split('\n').length).toBeLessThanOrEqual(limits.robotsRulesMax + 2)
    }
  })
})

import { describe, expect, it } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { readRobots, readRobotsText } from '../../threads/robots-text.ts'

const read = (text: string | Uint8Array, agent = 'Sluice/0.1 (+https://example.com)') => readRobotsText(typeof text === 'string' ? Buffer.from(text) : text, agent)
const lines = (text: string | Uint8Array, agent?: string): string[] => read(text, agent).lines.split('\n').slice(0, -1)

describe('readRobotsText', () => {
  it('keeps the rules of our group, and those of * only when no group names us', () => {
    const text = 'User-agent: *\nDisallow: /all\nUser-agent: other\nDisallow: /other\nUser-agent: SLUICE\nAllow: /ours # why\n'
    expect(read(text, 'sluice').lines).toBe('+/ours\n')
    expect(lines(text, 'unnamed')).toEqual(['-/all'])
    expect(lines(text, '')).toEqual(['-/all'])
  })

  it('merges groups of one agent, and gives a rule to all agents of its run', () => {
    expect(lines('User-agent: sluice\nDisallow: /1\nUser-agent: a\nDisallow: /no\nUser-agent: a\nUser-agent: sluice\nDisallow: /2')).toEqual(['-/1', '-/2'])
  })

  it.each(['Sitemap: https://a.example/s.xml', 'Crawl-delay: 3', 'Noindex: /x', '', '# comment', 'no colon'])('does not end a run of user-agent lines at %j', (between) => {
    expect(lines(`User-agent: sluice\n${between}\nUser-agent: other\nDisallow: /x`)).toEqual(['-/x'])
  })

  it('matches whole product tokens, whatever follows them', () => {
    expect(lines('User-agent: sluice/2.0 beta\nDisallow: /x')).toEqual(['-/x'])
    expect(lines('User-agent: sluicebot\nDisallow: /x')).toEqual([])
    expect(lines('User-agent: slu\nDisallow: /x')).toEqual([])
    expect(lines('User-agent: * anything\nDisallow: /x')).toEqual(['-/x'])
  })

  it('has no rules in a group that names us with an empty Disallow, though * has some', () => {
    expect(lines('User-agent: *\nDisallow: /\nUser-agent: sluice\nDisallow:')).toEqual([])
  })

  it('reads byte order marks, all line ends, NUL bytes and upper case', () => {
    expect(lines('\uFEFFUSER-AGENT:*\rDISALLOW:/a\r\nallow : /b\nDis\0allow: /c')).toEqual(['+/b', '-/a', '-/c'])
  })

  it.each(['utf-16le', 'utf-16be'])('reads %s by its mark, and of a cut file whole lines', (encoding) => {
    const text = Buffer.from('\uFEFFUser-agent: *\r\nDisallow: /ü\r\nDisallow: /cut', 'utf16le')
    const bytes = encoding === 'utf-16le' ? text : Buffer.from(text).swap16()
    expect(lines(bytes)).toEqual(['-/%C3%BC', '-/cut'])
    expect(readRobotsText(bytes.subarray(0, -3), 'sluice', true).lines).toBe('-/%C3%BC\n')
  })

  it('reads what is no UTF-8 as Latin-1', () => {
    expect(lines(Buffer.from('User-agent: *\nDisallow: /\xfc', 'latin1'))).toEqual(['-/%C3%BC'])
  })

  it('reads what owners mistype as they mean it', () => {
    for (const disallow of ['Dissallow', 'Dissalow', 'Disalow', 'Diasllow', 'Disallaw']) expect(lines(`user agent: *\n${disallow}: /x`)).toEqual(['-/x'])
    expect(lines('useragent *\nDisallow /x\nAllow all of it\nDisallow everything else')).toEqual(['-/x'])
  })

  it('finds no rules in a page of HTML, in nothing, before the first group, and in patterns that match nothing', () => {
    expect(lines('<!doctype html><body>\nUser-agent: *\nDisallow: /')).toEqual([])
    expect(lines('')).toEqual([])
    expect(lines('Disallow: /x\nUser-agent: *\nAllow: /')).toEqual(['+/'])
    expect(lines('User-agent: *\nDisallow: x\nDisallow: $\nDisallow: http://a.test/')).toEqual([])
  })

  it('puts rules in the order in which they decide, each once and as it is compared', () => {
    expect(lines('User-agent: *\nDisallow: /a\nAllow: /%61\nDisallow: /a\nDisallow: /a**b$\nAllow: /é?x$y')).toEqual(['+/%C3%A9?x%24y', '-/a*b$', '+/a', '-/a'])
    expect(readRobots(Buffer.from('User-agent: *\r\n\r\nDisallow: /a\rDisallow: /long\nDisallow: /a'), 'x').rules).toEqual([
      { isAllow: false, pattern: '/long', line: 4 }, { isAllow: false, pattern: '/a', line: 3 },
    ])
  })

  it('reads 500 KiB and of them whole lines only', () => {
    const head = 'User-agent: *\nDisallow: /first\n'
    const filler = `#${'x'.repeat(998)}\n`.repeat(511)
    const pad = `#${'y'.repeat(limits.robotsBytesMax - head.length - filler.length - 'Disallow: /cut'.length - 2)}\n`
    const text = `${head}${filler}${pad}Disallow: /cut-here\nDisallow: /beyond\n`
    expect(text.slice(0, limits.robotsBytesMax)).toMatch(/Disallow: \/cut$/)
    expect(lines(text)).toEqual(['-/first'])
  })

  it('bounds patterns, rules in bytes, and sitemaps, and forbids rather more than less', () => {
    const long = `/${'x'.repeat(2 * limits.robotsPatternCharsMax)}`
    expect(lines(`User-agent: *\nAllow: ${long}\nDisallow: ${long}`)).toEqual([`-${long.slice(0, limits.robotsPatternCharsMax)}`])
    // Each of these letters is one byte in the file and six when it is compared.
    const swelling = Buffer.from(`User-agent: *\n${Array.from({ length: 400 }, (_, at) => `Disallow: /${at}${'\xfc'.repeat(1_000)}\n`).join('')}`, 'latin1')
    expect(swelling.length).toBeLessThan(limits.robotsBytesMax)
    expect(readRobotsText(swelling, 'x').lines.length).toBeLessThanOrEqual(limits.robotsBytesMax)
    const sitemaps = 'Sitemap: https://a.example/\n'.repeat(limits.robotsSitemapsMax + 9)
    expect(read(sitemaps).sitemaps.length).toBe(limits.robotsSitemapsMax)
  })

  it.each([
    ['Crawl-delay: 5', 5_000], ['Crawl-delay: 0.5', 500], ['Crawl-delay: 99999', limits.crawlDelayMsMax], ['Crawl-delay: 5s', undefined],
    ['Request-rate: 1/10s', 10_000], ['Request-rate: 30/1m', 2_000], ['Request-rate: 1/5', 5_000], ['request-rate: 1 / 10 # comment', 10_000],
    ['Request-rate: 1/10s 0900-1700', 10_000], ['Request-rate: 60/1h', limits.crawlDelayMsMax], ['Request-rate: 0/10s', undefined], ['Request-rate: 1/x', undefined], ['Request-rate: 1/10d', undefined],
    ['Request-rate: 1/10s\nCrawl-delay: 3', 10_000], ['Crawl-delay: 20\nRequest-rate: 1/10s', 20_000], ['Crawl-delay: 3\nCrawl-delay: 7', 3_000], ['Request-rate: 1/3\nRequest-rate: 1/7', 7_000],
  ])('%j is a delay of %s ms', (directives, delayMs) => {
    expect(read(`User-agent: *\n${directives}`).crawlDelayMs).toBe(delayMs)
    expect(read(`User-agent: sluice\nDisallow: /\nUser-agent: *\n${directives}`).crawlDelayMs).toBeUndefined()
  })
})

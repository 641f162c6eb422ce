import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { createRobotsMatcher, hasRules } from '../../engine/web/robots-matcher.ts'
import { corpusPath } from '../support/corpus.ts'

interface Case {
  readonly name: string
  readonly robots?: string
  readonly robots_base64?: string
  readonly agent: string
  readonly url: string
  readonly allowed: boolean
  readonly conformance: 'rfc9309' | 'vendor' | 'disputed'
}

/** The reduction that the matcher is given, in the plainest way: groups by whole product tokens. */
function reduce(robots: string, agent: string): string {
  const groups: { agents: string[], rules: string[] }[] = []
  let isNaming = false
  for (const line of robots.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)) {
    const [key = '', value = ''] = /^[ \t]*([^:]*?)[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line.replace(/#.*/, ''))?.slice(1) ?? []
    if (/^user-agent$/i.test(key)) {
      if (!isNaming) groups.push({ agents: [], rules: [] })
      groups.at(-1)!.agents.push(tokenOf(value))
      isNaming = true
    } else if (/^(?:dis)?allow$/i.test(key)) {
      isNaming = false
      if (value !== '') groups.at(-1)?.rules.push(`${key}: ${value}\n`)
    }
  }
  const own = groups.filter(({ agents }) => agents.includes(tokenOf(agent)))
  const ours = own.length > 0 ? own : groups.filter(({ agents }) => agents.includes('*'))
  return `User-agent: *\n${ours.flatMap(({ rules }) => rules).join('')}`
}

function tokenOf(agent: string): string {
  return /^(?:\*|[\w-]*)/.exec(agent)![0].toLowerCase()
}

const allows = (rules: string, path: string): boolean => createRobotsMatcher(`User-agent: *\n${rules}\n`).isAllowed(new URL(path, 'https://example.com'))

const corpus = corpusPath('robots/cases.json')
const cases = ((): readonly Case[] => {
  try {
    return JSON.parse(readFileSync(process.env['SLUICE_ROBOTS_CASES'] ?? corpus, 'utf8')) as readonly Case[]
  } catch {
    return []
  }
})()

// The corpus lies beside the checkout and not in it; the cases below it stand for what it shows.
describe.skipIf(cases.length === 0)('of the conformance cases in the corpus', () => {
  test('all that RFC 9309 decides are decided so, for the group that applies', () => {
    const wrong = cases.filter(({ conformance }) => conformance === 'rfc9309').filter(({ robots, robots_base64, agent, url, allowed }) => {
      const text = robots ?? Buffer.from(robots_base64!, 'base64').toString('utf8')
      const parsed = new URL(url)
      return parsed.pathname !== '/robots.txt' && createRobotsMatcher(reduce(text, agent)).isAllowed(parsed) !== allowed
    })
    expect(wrong.map(({ name }) => name)).toEqual([])
  })
})

describe('the rules', () => {
  test.each([
    ['Disallow: /a', '/a', false], ['Disallow: /a', '/ab', false], ['Disallow: /a', '/b', true], ['Disallow: /a', '/A', true],
    ['Disallow: /', '/', false], ['Disallow: /a$', '/a', false], ['Disallow: /a$', '/ab', true], ['Disallow: /*.gif$', '/x/y.gif', false],
    ['Disallow: /*.gif$', '/x/y.gif?z', true], ['Disallow: /a*c', '/a-b-c-d', false], ['Disallow: /*?', '/a?b', false],
  ])('"%s" and %s: allowed is %s', (rules, path, allowed) => {
    expect(allows(rules, path)).toBe(allowed)
  })

  test('the longest pattern wins, and of equals the one that allows (section 2.2.2)', () => {
    expect(allows('Disallow: /a\nAllow: /a/b', '/a/b/c')).toBe(true)
    expect(allows('Allow: /a\nDisallow: /a/b', '/a/b/c')).toBe(false)
    expect(allows('Disallow: /same\nAllow: /same', '/same')).toBe(true)
  })

  test('escapes are compared decoded where they stand for unreserved characters, in any case (section 2.2.2)', () => {
    for (const [pattern, path] of [['/%61bc', '/abc'], ['/abc', '/%61bc'], ['/~joe', '/%7Ejoe'], ['/a%2fb', '/a%2Fb'], ['/ツ', '/%E3%83%84'], ['/%E3%83%84', '/ツ']] as const) {
      expect(allows(`Disallow: ${pattern}`, path)).toBe(false)
    }
    expect(allows('Disallow: /a%2fb', '/a/b')).toBe(true)
  })

  test('an escaped wildcard or end is the character itself (section 2.2.3)', () => {
    expect(allows('Disallow: /file-%2A.html', '/file-*.html')).toBe(false)
    expect(allows('Disallow: /file-%2A.html', '/file-x.html')).toBe(true)
    expect(allows('Disallow: /foo-%24', '/foo-$')).toBe(false)
    expect(allows('Disallow: /foo-%24', '/foo-')).toBe(true)
    expect(allows('Disallow: /a$b', '/a$b')).toBe(false)
    expect(allows('Disallow: /a$b', '/a')).toBe(true)
  })

  test('hold for whatever origin they came from', () => {
    const matcher = createRobotsMatcher('User-agent: *\nDisallow: /a\n')
    for (const origin of ['http://a.test', 'https://b.test:8443', 'http://[::1]:80']) expect(matcher.isAllowed(new URL('/a', origin))).toBe(false)
  })
})

test('rules that would take seconds for one URL deny it instead, and answer ordinary URLs', () => {
  const evil = `User-agent: *\n${`Disallow: /${'*a'.repeat(500)}b\n`.repeat(490)}`
  expect(evil.length).toBeLessThan(limits.robotsBytesMax)
  const matcher = createRobotsMatcher(evil)
  // Asked 100 times: unbounded, that is half an hour.
  for (let at = 0; at < 100; at++) expect(matcher.isAllowed(new URL(`https://a.test/${'a'.repeat(7_900)}`))).toBe(false)
  expect(matcher.isAllowed(new URL('https://a.test/about'))).toBe(true)
})

test('a text without rules has none', () => {
  expect(hasRules('User-agent: *\n')).toBe(false)
  expect(hasRules('User-agent: *\nAllow: /\n')).toBe(true)
  expect(hasRules('User-agent: *\nDisallow: /a\n')).toBe(true)
})

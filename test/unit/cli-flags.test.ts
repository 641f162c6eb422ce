import fc from 'fast-check'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { attributeOf, crawlFlags, flagGroups, optionsOfFlags } from '../../engine/cli/flags.ts'
import { defaultText, exactDuration, exactSize } from '../../engine/cli/human.ts'
import { metavar, parseDuration, parseSize, parseValue } from '../../engine/core/option-values.ts'
import { crawlOptions, runOptions, type OptionSpec } from '../../engine/core/options.ts'
import { sluice } from '../support/processes.ts'

const specs = Object.entries({ ...crawlOptions, ...runOptions }) as [string, OptionSpec<unknown>][]
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-flags-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

describe('the flags of crawl', () => {
  it('are every flag of the option tables once, and three of the command line itself', () => {
    const names = crawlFlags.map((flag) => flag.flags.split(' ')[0])
    expect(names.toSorted()).toEqual([...specs.flatMap(([, spec]) => spec.flag ?? []), '--seeds', '--progress', '--verbose'].toSorted())
  })

  it('stand in --help with the help text of their table, what they take and their default, in groups', async () => {
    const help = sluice(['crawl', '--help'])
    expect((await help.ended).code).toBe(0)
    const text = help.output.stdout.replaceAll(/\s+/g, ' ')
    for (const [, spec] of specs) {
      if (spec.flag === undefined) continue
      const shown = defaultText(spec)
      expect(text).toContain(`${spec.help}${shown === undefined ? '' : ` (default: ${shown})`}`)
      if (spec.type === 'choice' || spec.type === 'duration') expect(text).toContain(`${spec.flag} <${metavar(spec)}>`)
    }
    for (const group of flagGroups) expect(help.output.stdout).toContain(`\n${group}\n`)
    // A word that is longer than its column cannot be broken.
    expect(help.output.stdout.split('\n').filter((line) => line.length > 80 && line.trim().includes(' '))).toEqual([])
  })

  it('name no command or flag of a later step in any help', async () => {
    const text = await Promise.all([['--help'], ['crawl', '--help'], ['inspect', '--help']].map(async (args) => {
      const help = sluice(args)
      await help.ended
      return help.output.stdout
    }))
    expect(text.join('')).not.toMatch(/\b(report|profile tls|--shard)\b/)
  })

  it('show defaults as a user would type them', () => {
    const shown = Object.fromEntries(specs.map(([name, spec]) => [name, defaultText(spec)]))
    expect(shown).toMatchObject({ delayMs: '1s', maxBodyBytes: '250KB', concurrency: '4:1:32', tailMs: '10m', timeoutMs: '30s', format: 'jsonl', scope: 'host', retries: '2', dir: './crawl' })
    expect(shown).toMatchObject({ maxPages: undefined, maxDepth: undefined, threads: undefined, include: undefined, resolve: undefined, insecure: undefined })
  })

  it('have defaults that read back as the values of the table', () => {
    for (const [name, spec] of specs) {
      const shown = defaultText(spec)
      if (shown !== undefined) expect(parseValue(name, spec, shown)).toEqual(spec.default)
    }
  })
})

describe('exact texts', () => {
  it('read back as the same number', () => {
    fc.assert(fc.property(fc.nat(), (value) => {
      expect(parseDuration(exactDuration(value))).toBe(value)
      expect(parseSize(exactSize(value))).toBe(value)
    }))
  })
})

describe('options from the values of flags', () => {
  it('keep the texts of what was given, and leave out what was not', () => {
    expect(optionsOfFlags({ delay: '2s', maxPages: '7', include: ['a', 'b'], seeds: 'x', verbose: true })).toEqual({
      crawl: { delayMs: '2s', include: ['a', 'b'] }, run: { maxPages: '7' },
    })
  })

  it('are found under the name that the command line gives them', () => {
    expect(attributeOf('--max-pages')).toBe('maxPages')
    expect(attributeOf('--ca')).toBe('ca')
  })

  it('take HOST=IP and the lines of a hosts file together, the later one winning', () => {
    const file = path.join(dir, 'hosts')
    fs.writeFileSync(file, '# made\n127.0.0.2 a.test A2.test # two names\n\n::1\tsix.test\r\n')
    expect(optionsOfFlags({ resolve: ['a.test=127.0.0.9', `@${file}`, 'b.test=10.0.0.1'] }).crawl.resolve).toEqual({
      'a.test': '127.0.0.2', 'a2.test': '127.0.0.2', 'six.test': '::1', 'b.test': '10.0.0.1',
    })
  })

  it.each([
    ['a file that is not there', undefined, 'file_unreadable', /--resolve: .*@.*ENOENT/],
    ['a line without an address', 'a.test 127.0.0.2', 'bad_option', /--resolve: .*line 1 of/],
    ['a line without a name', '127.0.0.2', 'bad_option', /line 1/],
  ])('refuse %s with the option, what was expected and what was given', (_, text, code, message) => {
    const file = path.join(dir, 'bad-hosts')
    fs.rmSync(file, { force: true })
    if (text !== undefined) fs.writeFileSync(file, text)
    expect(() => optionsOfFlags({ resolve: [`@${file}`] })).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
  })
})

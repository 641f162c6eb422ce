/** What a user can get wrong on the command line: each has its code, one clear line and its exit code, and makes nothing. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { run, cliPath, sluice } from '../support/processes.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-bad-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))
const crawlDir = path.join(dir, 'crawl')
const seed = 'http://127.0.0.1:9/'

const usage: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['an unknown command, with the nearest', ['crwl', seed], /^usage: unknown command 'crwl' \(did you mean crawl\?\)$/],
  ['an unknown option, with the nearest', ['crawl', seed, '--dely', '1s'], /^bad_option: unknown option '--dely' \(did you mean --delay\?\)$/],
  ['an option of a later step', ['crawl', seed, '--shard', '1/4'], /^bad_option: unknown option '--shard'/],
  ['a name to listen at', ['crawl', seed, '--listen', 'example.com:80'], /^bad_option: --listen: expected a port from 0 to 65535, or ADDRESS:PORT.*given "example.com:80"$/],
  ['an option without its value', ['crawl', seed, '--delay'], /^bad_option: option '--delay <DURATION>' argument missing$/],
  ['a duration that is none', ['crawl', seed, '--delay', 'soon'], /^bad_option: --delay: expected a duration such as 500ms.*, given "soon"$/],
  ['a negative duration', ['crawl', seed, '--delay', '-1s'], /^bad_option: --delay: expected a duration.*given "-1s"$/],
  ['a number that is none', ['crawl', seed, '--max-pages', 'ten'], /^bad_option: --max-pages: expected a whole number, given "ten"$/],
  ['a number out of its range', ['crawl', seed, '--max-pages', '0'], /^bad_option: --max-pages: expected a whole number of at least 1, given "0"$/],
  ['a size below its bound', ['crawl', seed, '--max-store', '1KB'], /^bad_option: --max-store: expected a size such as 250KB or 1MB of at least 16MB, given "1KB"$/],
  ['a duration out of its range', ['crawl', seed, '--timeout', '2h'], /^bad_option: --timeout: expected a duration such as 500ms.* from 100ms to 1h, given "2h"$/],
  ['a size that is none', ['crawl', seed, '--max-body', '1 apple'], /^bad_option: --max-body: expected a size such as 250KB/],
  ['a choice that is none', ['crawl', seed, '--scope', 'world'], /^bad_option: --scope: expected .*\(host, domain, any\), given "world"$/],
  ['a format of a later step', ['crawl', seed, '--format', 'jsonl,parquet'], /^bad_option: --format: .*\(jsonl, warc\), given "parquet"$/],
  ['a progress mode that is none', ['crawl', seed, '--progress', 'loud'], /^bad_option: --progress: .*\(auto, plain, json, none\), given "loud"$/],
  ['a regular expression that is none', ['crawl', seed, '--include', '('], /^bad_option: --include: expected a regular expression, given "\("$/],
  ['a limit that contradicts itself', ['crawl', seed, '--concurrency', '4:8:2'], /^bad_option: --concurrency: expected .*FLOOR <= START <= CEILING, given "4:8:2"$/],
  ['an address range that is none', ['crawl', seed, '--allow-address', '10.0.0.0/40'], /^bad_option: --allow-address: expected an address range.*given "10.0.0.0\/40"$/],
  ['a host without an address', ['crawl', seed, '--resolve', 'a.test'], /^bad_option: --resolve: expected HOST=IP, given/],
  ['a hosts file that is not there', ['crawl', seed, '--resolve', `@${dir}/none`], /^file_unreadable: --resolve: .*ENOENT/],
  ['an authority file that is not there', ['crawl', seed, '--ca', `${dir}/none`], /^file_unreadable: --ca: .*ENOENT/],
  ['an extractor that is not there', ['crawl', seed, '--extract', `${dir}/none.js`], /^extractor_unloadable: --extract: .*ENOENT/],
  ['a seed file that is not there', ['crawl', '--seeds', `${dir}/none`], /^seeds_unreadable: --seeds: expected a text file of URLs.*ENOENT/],
  ['a seed file that is a directory', ['crawl', '--seeds', dir], /^seeds_unreadable: --seeds: .*it is a directory$/],
  ['no seeds for a new crawl', ['crawl'], /^usage: nothing to crawl: give URLs or --seeds FILE/],
  ['a malformed seed alone', ['crawl', 'http://['], /^bad_url: URL: expected an http or https URL, given "http:\/\/\["$/],
  ['a seed at a port of another protocol', ['crawl', 'http://me:secret@a.test:25/'], /^bad_url: URL: expected an http or https URL, given "http:\/\/a.test:25\/" \(its port belongs to another protocol than HTTP\)$/],
  ['a URL to inspect at such a port', ['inspect', 'page', 'http://me:secret@a.test:25/'], /^bad_url: URL: its port belongs to another protocol than HTTP: http:\/\/a.test:25\/$/],
  ['a seed without a scheme, with a guess', ['crawl', 'example.com'], /^bad_url: .*given "example.com" \(did you mean https:\/\/example.com\/\?\)$/],
  ['no host to exclude', ['exclude'], /^usage: missing required argument 'HOST'$/],
  ['a host to exclude that is none', ['exclude', 'a b'], /^usage: HOST: expected a host name such as example.com, given "a b"$/],
  ['an export format that is none', ['export', '--format', 'xml'], /^bad_option: --format: .*\(jsonl, csv, parquet\), given "xml"$/],
  ['an export of what is not there', ['export', 'links'], /^bad_option: WHAT: .*\(pages, queue, hosts, failures\), given "links"$/],
  ['a host of a requeue that is none', ['requeue', '--host', 'a b'], /^usage: HOST: expected a host name/],
  ['a URL to inspect that is none', ['inspect', 'url', 'mailto:a@b.test'], /^bad_url: not an http or https URL/],
  ['rules of a key that are none', ['inspect', 'url', 'http://a.test/', '--dedupe', 'all'], /^bad_option: --dedupe: expected one or more of the choices/],
  ['nothing to inspect', ['inspect', 'page'], /^usage: FILE\|URL: expected a file, a URL, or -/],
  ['a document that is not there', ['inspect', 'page', `${dir}/none.html`], /^file_unreadable: FILE: expected a document.*ENOENT/],
  ['a sitemap that is not there', ['inspect', 'sitemap', `${dir}/none.xml`], /^file_unreadable: FILE: expected a document.*ENOENT/],
  ['a base that is none', ['inspect', 'page', '-', '--base', 'nowhere'], /^bad_option: --base: expected an http or https URL, given "nowhere"$/],
]

const takesDir = new Set(['crawl', 'export', 'exclude'])

describe('the command line', () => {
  it.each(usage)('answers %s in one line, with exit code 2, and makes no directory', async (_, args, line) => {
    const command = sluice(takesDir.has(args[0]!) ? [args[0]!, '--dir', crawlDir, ...args.slice(1)] : args)
    expect(await command.ended).toEqual({ code: 2, signal: null })
    expect(command.output.stdout).toBe('')
    expect(command.output.stderr).toMatch(/^sluice: [^\n]+\n$/)
    expect(command.output.stderr.slice('sluice: '.length, -1)).toMatch(line)
    expect(fs.existsSync(crawlDir)).toBe(false)
  })

  it.each([['status'], ['export'], ['exclude', 'a.test']])('answers %s of a directory without a crawl with no_crawl and exit code 4, and makes nothing', async (...args) => {
    const command = sluice([...args, '--dir', crawlDir])
    expect(await command.ended).toEqual({ code: 4, signal: null })
    expect(command.output.stderr).toMatch(/^sluice: no_crawl: [^\n]+\n$/)
    expect(fs.existsSync(crawlDir)).toBe(false)
  })

  it.each([['exclude', 'a.test'], ['requeue', '--all'], ['compact']])('makes no crawl of a store folder that holds none by %s', async (...args) => {
    const other = path.join(dir, 'other')
    fs.mkdirSync(path.join(other, 'store'), { recursive: true })
    const command = sluice([...args, '--dir', other])
    expect(await command.ended).toEqual({ code: 4, signal: null })
    expect(command.output.stderr).toMatch(/^sluice: no_crawl: [^\n]+\n$/)
    expect(fs.readdirSync(path.join(other, 'store'))).toEqual([])
  })

  it.each([['status'], ['crawl']])('answers %s of a directory that it may not look into with the reason, and not that no crawl is there', async (...args) => {
    const loop = path.join(dir, 'loop')
    fs.rmSync(loop, { force: true })
    fs.symlinkSync('loop', loop)
    const command = sluice([...args, '--dir', loop])
    expect(await command.ended).toEqual({ code: 4, signal: null })
    expect(command.output.stderr).toMatch(/^sluice: dir_unusable: \S+ cannot be looked into: ELOOP[^\n]+\n$/)
  })

  it('says that a seed file was empty, since a crawl of nothing is complete at once', async () => {
    const command = sluice(['crawl', '--seeds', '-', '--dir', crawlDir], { input: '# none today\r\n\r\n' })
    expect(await command.ended).toEqual({ code: 0, signal: null })
    expect(command.output.stdout).toMatch(/^no seeds: .+\ncomplete: 0 pages, .+\n$/)
  })

  it('shows a stack only with --verbose', async () => {
    const verbose = sluice(['crawl', seed, '--delay', 'soon', '--verbose', '--dir', crawlDir])
    await verbose.ended
    expect(verbose.output.stderr).toMatch(/^sluice: bad_option: .*\n(.*\n)* +at /)
  })

  it('prints its help when it is called without a command, and its version when asked', async () => {
    const help = run([cliPath])
    expect(await help.ended).toEqual({ code: 0, signal: null })
    expect(help.output.stdout).toMatch(/^Usage: sluice COMMAND\n/)
    const version = sluice(['--version'])
    await version.ended
    const { version: expected } = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
    expect(version.output.stdout).toBe(`${expected}\n`)
  })
})

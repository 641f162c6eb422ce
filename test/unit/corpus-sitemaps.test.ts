/**
 * The sitemaps and feeds of the corpus: each case with what its source, or an independent reading of its XML, finds in it.
 * An expected error is a line in `errors`; an expected address is compared as the URL standard writes it.
 */
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { fetchUrl, makeBase } from '../../engine/core/fetch-url.ts'
import { SitemapReader, type ReaderOptions } from '../../threads/sitemap/reader.ts'
import { corpusPath } from '../support/corpus.ts'
import { readSitemap } from '../support/sitemaps.ts'

interface Case {
  readonly name: string
  readonly file: string
  readonly url: string | null
  readonly content_type?: string
  readonly options?: { readonly strict_location?: boolean; readonly strict_namespace?: boolean; readonly allow_doctype?: boolean }
  readonly expect: {
    readonly type?: string
    readonly count?: number
    readonly urls?: readonly string[]
    readonly urls_include?: readonly string[]
    readonly first?: string
    readonly last?: string
    readonly lastmod?: readonly (string | null)[]
    readonly lastmod_epoch_ms?: readonly (number | null)[]
    readonly priority?: readonly (number | null)[]
    readonly error?: string
  }
}

const casesFile = corpusPath('sitemaps/cases.json')
const cases = fs.existsSync(casesFile) ? JSON.parse(fs.readFileSync(casesFile, 'utf8')) as readonly Case[] : []
const base = 'https://base.invalid/'

function optionsOf({ strict_location: strictLocation = false, strict_namespace: strictNamespace = false, allow_doctype: allowDoctype = true }: NonNullable<Case['options']>): ReaderOptions {
  return { strictLocation, strictNamespace, refuseDoctype: !allowDoctype, entriesMax: 200_000 }
}

async function check({ name, file, url, content_type: contentType, options = {}, expect: expected }: Case): Promise<void> {
  const head = { url: url ?? base, ...(contentType !== undefined && { contentType }) }
  const { entries, end } = await readSitemap(new SitemapReader(head, optionsOf(options)), [fs.readFileSync(corpusPath(`sitemaps/${file}`))])
  if (expected.error !== undefined) return expect(end.errors, name).not.toEqual([])
  const written = (text: string): string | undefined => fetchUrl(text, makeBase(head.url))
  const found = entries.map((entry) => entry.url)
  const { urls } = expected
  expect(end.type, name).toBe(expected.type)
  if (urls !== undefined) expect(found, name).toEqual(urls.map(written))
  // Where a feed's entries and links differ in number, the case counts entries.
  if (urls === undefined) expect(end.entriesCount, name).toBe(expected.count)
  else expect(end.entriesCount, name).toBe(urls.length)
  for (const address of expected.urls_include ?? []) expect(found, name).toContain(written(address))
  if (expected.first !== undefined) expect([found[0], found.at(-1)], name).toEqual([written(expected.first), written(expected.last!)])
  if (expected.lastmod !== undefined) expect(entries.map((entry) => entry.lastModified ?? null), name).toEqual(expected.lastmod.map((date) => date || null))
  if (expected.lastmod_epoch_ms !== undefined) expect(entries.map((entry) => entry.lastModifiedMs ?? null), name).toEqual(expected.lastmod_epoch_ms)
  if (expected.priority !== undefined) expect(entries.map((entry) => entry.priority ?? null), name).toEqual(expected.priority)
}

describe.skipIf(cases.length === 0)(`sitemaps of the corpus (skipped where it is missing), ${cases.length} cases`, () => {
  test('every case holds', async () => {
    const failed: string[] = []
    for (const one of cases) await check(one).catch((error: unknown) => failed.push((error as Error).message))
    console.log(`sitemap cases: ${cases.length - failed.length} of ${cases.length} hold`)
    expect(failed).toEqual([])
    expect(cases).toHaveLength(169)
  })
})

import fc from 'fast-check'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { pageColumns } from '../../engine/cli/export/columns.ts'
import { csvHeader, csvRow } from '../../engine/cli/export/csv.ts'
import { runExport } from '../../engine/cli/export/export.ts'
import { pageLines } from '../../engine/cli/export/pages.ts'
import type { PageRecord } from '../../engine/core/types.ts'

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-export-'))
afterAll(() => fs.rmSync(dir, { recursive: true }))

/** RFC 4180, read by its grammar, apart from the code that writes it. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let at = 0
  while (at < text.length) {
    const row: string[] = []
    for (;;) {
      let value = ''
      if (text[at] === '"') {
        for (at++; ; at++) {
          if (text[at] === undefined) throw new Error('a quote is not closed')
          if (text[at] !== '"') value += text[at]
          else if (text[at + 1] === '"') value += text[at++]
          else break
        }
        at++
      } else {
        const end = at + /^[^,"\r\n]*/.exec(text.slice(at))![0].length
        value = text.slice(at, end)
        at = end
      }
      row.push(value)
      if (text[at] !== ',') break
      at++
    }
    if (text.slice(at, at + 2) !== '\r\n') throw new Error(`a row ends with ${JSON.stringify(text.slice(at, at + 5))}`)
    at += 2
    rows.push(row)
  }
  return rows
}

const text = fc.oneof(fc.string(), fc.constantFrom('', ',', '"', '""', 'a\r\nb', '=1+1', 'a,"b"', '\n'))
const record: fc.Arbitrary<PageRecord> = fc.record({
  url: fc.webUrl(), outcome: fc.constantFrom('ok', 'failed'), fetchedAt: fc.constant('2026-01-01T00:00:00.000Z'), depth: fc.nat(), attempts: fc.nat(),
  title: text, lang: text, etag: text, record: fc.jsonValue(), truncated: fc.constant(true as const), robots: fc.record({ noindex: fc.constant(true as const) }),
  tls: fc.record({ version: text, cipher: text, resumed: fc.boolean() }),
}, { requiredKeys: ['url', 'outcome', 'fetchedAt', 'depth', 'attempts'] })

describe('a CSV export', () => {
  it('reads back as the texts that were written, whatever they hold, formulas included', () => {
    const [names] = parseCsv(csvHeader(pageColumns))
    fc.assert(fc.property(fc.array(record), (records) => {
      const rows = parseCsv(csvHeader(pageColumns) + records.map((page) => csvRow(pageColumns, page)).join('')).slice(1)
      expect(rows.map((row) => row.length)).toEqual(records.map(() => names!.length))
      for (const [index, page] of records.entries()) {
        const cells = Object.fromEntries(names!.map((name, column) => [name, rows[index]![column]!]))
        expect(cells).toMatchObject({
          url: page.url, title: page.title ?? '', etag: page.etag ?? '', depth: String(page.depth), truncated: page.truncated === true ? 'true' : '',
          noindex: page.robots?.noindex === true ? 'true' : '', tlsVersion: page.tls?.version ?? '', tlsResumed: page.tls === undefined ? '' : String(page.tls.resumed),
          record: page.record === undefined ? '' : JSON.stringify(page.record),
        })
      }
    }))
  })

  it('has its columns in a fixed order', () => {
    expect(csvHeader(pageColumns)).toBe('url,redirectTo,redirectedFrom,status,outcome,code,fetchedAt,depth,referrer,attempts,contentType,charset,unknownCharset,bytes,wireBytes,truncated,title,lang,canonical,refreshSeconds,refreshTo,noindex,nofollow,noarchive,links,newLinks,nofollowLinks,userinfo,hash,unchanged,simhash,nearDuplicate,needsJs,etag,lastModified,ip,gateway,tlsVersion,tlsCipher,tlsResumed,dnsMs,connectMs,tlsMs,ttfbMs,totalMs,parseMs,warcFile,warcOffset,record,sitemap\r\n')
  })
})

describe('an export', () => {
  function crawlDir(files: Readonly<Record<string, string>>): string {
    const made = fs.mkdtempSync(path.join(dir, 'crawl-'))
    for (const [name, content] of Object.entries(files)) fs.writeFileSync(path.join(made, name), content)
    return made
  }

  async function linesOf(files: Readonly<Record<string, string>>, committed: Readonly<Record<string, number>> = {}): Promise<string> {
    const lengths = new Map(Object.entries(files).map(([name, text]) => [name, committed[name] ?? Buffer.byteLength(text)]))
    const blocks: Buffer[] = []
    for await (const block of pageLines(crawlDir(files), lengths)) blocks.push(block)
    return Buffer.concat(blocks).toString()
  }

  it('holds the committed lines of all files in their order, and nothing behind them', async () => {
    const files = { 'pages-000002.jsonl': '{"c":3}\n{"d":4}\n{"e"', 'pages-000001.jsonl': '{"a":1}\n{"b":2}\n', 'records-000001.jsonl': '{"no":1}\n', 'pages-000003.jsonl': '{"f":1}\n' }
    expect(await linesOf(files, { 'pages-000002.jsonl': 8, 'pages-000003.jsonl': 0 })).toBe('{"a":1}\n{"b":2}\n{"c":3}\n')
  })

  it('keeps lines that are longer than what is read at once', async () => {
    const long = `${JSON.stringify({ record: 'x'.repeat(700_000) })}\n`
    expect(await linesOf({ 'pages-000001.jsonl': `{"a":1}\n${long}{"b":2}\n` })).toBe(`{"a":1}\n${long}{"b":2}\n`)
  })

  it('of page records that somebody cut says so', async () => {
    await expect(linesOf({ 'pages-000001.jsonl': '{"a":1}\n' }, { 'pages-000001.jsonl': 100 })).rejects.toMatchObject({ code: 'file_unreadable' })
  })

  it('of a directory without a crawl is refused with no_crawl, and makes nothing', async () => {
    const empty = crawlDir({})
    await expect(runExport({ what: 'pages', dir: empty, format: 'csv' })).rejects.toMatchObject({ code: 'no_crawl', exitCode: 4 })
    await expect(runExport({ what: 'queue', dir: path.join(empty, 'none'), format: 'csv' })).rejects.toMatchObject({ code: 'no_crawl' })
    expect(fs.readdirSync(empty)).toEqual([])
  })
})

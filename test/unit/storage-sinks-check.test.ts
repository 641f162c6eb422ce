import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import { warcFileName, type WarcPlace } from '../../engine/core/types.ts'
import { checkSinks } from '../../storage/sinks/check.ts'
import { WarcWriter } from '../../storage/sinks/warc.ts'

let dir: string
beforeEach(() => { dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-sinks-')) })
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }))

/** `files` WARC files, whose writers take turns at the URLs. */
function writeWarcs(urls: readonly string[], files: number, contentEncoding?: string): WarcPlace[] {
  let file = 0
  const writers = Array.from({ length: files }, () => new WarcWriter({ dir, nextFile: () => (file += 1), info: {} }))
  const places = urls.map((url, index) => writers[index % files]!.append({
    meta: { url, depth: 0, attempts: 1, status: 200, statusText: 'OK', fetchedAtMs: 0, timings: {}, truncated: false, followLinks: true, ...(contentEncoding !== undefined && { contentEncoding }) },
    headerBlock: Buffer.from('Content-Type: text/html\r\n'), body: crypto.randomBytes(index % 2 === 0 ? 10 : 30_000),
  }))
  for (const writer of writers) writer.close()
  return places
}

function check(records: readonly object[], lengths: ReadonlyMap<string, number>): ReturnType<typeof checkSinks> {
  const text = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  fs.writeFileSync(path.join(dir, 'pages-000001.jsonl'), text)
  return checkSinks(dir, new Map([...lengths, ['pages-000001.jsonl', Buffer.byteLength(text)]]))
}

const lengthsOf = (files: number): ReadonlyMap<string, number> => new Map(Array.from({ length: files }, (_, index) => {
  const name = warcFileName(index + 1)
  return [name, fs.statSync(path.join(dir, name)).size]
}))
const recordOf = (url: string, { file, offset }: Pick<WarcPlace, 'file' | 'offset'>): object => ({ url, warc: { file: warcFileName(file), offset } })

test.each([undefined, 'gzip'])('every record is found where its page says, over more files than are held open, of the longest URLs too (coding %s)', async (coding) => {
  const files = limits.checkFilesOpenMax + 6
  const urls = Array.from({ length: 3 * files }, (_, index) => `http://a.test/${index}${'x'.repeat(index % 5 === 0 ? limits.urlBytesMax - 30 : 3)}`)
  const places = writeWarcs(urls, files, coding)
  const report = await check(urls.map((url, index) => recordOf(url, places[index]!)), lengthsOf(files))
  expect(report).toEqual({ problems: [], missing: [], records: urls.length, warcRecords: urls.length })
})

test.each([
  ['the place of another page', 0, (places: readonly WarcPlace[]) => places[1]!, / where http:\/\/a\.test\/1 is$/],
  ['the record of the file itself', 0, () => ({ file: 1, offset: 0 }), / where no record of a URL is$/],
  ['a place inside a record', 0, ([place]: readonly WarcPlace[]) => ({ file: 1, offset: place!.offset + 5 }), / which cannot be read: incorrect header check$/],
  ['a place behind the end', 0, () => ({ file: 1, offset: 1e9 }), / behind its end \(\d+\)$/],
  ['no place', 0, () => ({ file: 1, offset: -1 }), / behind its end \(\d+\)$/],
  ['a file that the store does not know', 0, () => ({ file: 77, offset: 0 }), / which the store does not know$/],
] as const)('%s is told of', async (...[, index, placeOf, expected]) => {
  const urls = ['http://a.test/0', 'http://a.test/1']
  const places = writeWarcs(urls, 1)
  const wrong = urls.map((url, at) => recordOf(url, at === index ? placeOf(places) : places[at]!))
  const { problems } = await check(wrong, lengthsOf(1))
  expect(problems).toEqual([expect.stringMatching(expected)])
  expect(problems[0]).toMatch(/^pages-000001\.jsonl at byte 0: http:\/\/a\.test\/0 should lie in warc\//)
})

test('bytes behind a committed length are nobody\'s, and a line over many chunks is one', async () => {
  const file = path.join(dir, 'pages-000001.jsonl')
  const lines = [JSON.stringify({ url: 'http://a.test/', title: 'é\u2028'.repeat(300_000) }), JSON.stringify({ url: 'http://b.test/' })].map((line) => `${line}\n`).join('')
  fs.writeFileSync(file, `${lines}half a line`)
  expect(await checkSinks(dir, new Map([['pages-000001.jsonl', Buffer.byteLength(lines)]]))).toMatchObject({ problems: [], records: 2 })
  expect((await checkSinks(dir, new Map([['pages-000001.jsonl', Buffer.byteLength(lines) + 4]]))).problems).toEqual([expect.stringMatching(/the last line has no end$/)])
})

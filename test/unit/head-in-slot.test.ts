import { expect, test } from 'vitest'
import { limits } from '../../engine/core/limits.ts'
import type { QueuedUrl } from '../../engine/core/types.ts'
import { readHead } from '../../engine/fetch/response-head.ts'
import { pageMetaOf } from '../../engine/page-meta.ts'
import { Arena } from '../../threads/arena.ts'

const longUrl = (at: number): string => `http://a.example/${'u'.repeat(limits.urlBytesMax - 20)}${at}`

// What does not fit breaks an invariant, and with it the run: one page would end the whole crawl.
test.each([
  ['the field that a record repeats', 'Location'],
  ['a field that only the archive keeps', 'X'],
])('the largest head that a fetch lets through fits into a slot, behind the longest chain of redirects: all of it is %s', (_, name) => {
  for (const character of ['"', '\xff', 'a']) {
    const value = Buffer.alloc(limits.headerBytesMax - name.length - ': \r\n'.length, character, 'latin1')
    const head = readHead(302, '\x01'.repeat(60_000), [Buffer.from(name), value])
    expect(head.headerBlock).toHaveLength(limits.headerBytesMax)
    for (const hops of [0, 3, 7, 8, limits.redirectsMax]) {
      const url: QueuedUrl = {
        row: new Uint8Array(64), host: 'a.example', sequence: 1, fingerprint: new Uint8Array(16), url: longUrl(0), depth: 0, priority: 0, attempts: 0,
        referrer: longUrl(1), redirectedFrom: Array.from({ length: hops }, (_, at) => longUrl(at)),
      }
      const meta = pageMetaOf(url, { ...head, truncated: false, timings: {}, fetchedAtMs: 0 }, true)
      const arena = Arena.create(1_024, 1)
      arena.writePage(0, { meta, headerBlock: head.headerBlock, body: [Buffer.from('x')], bodyBytes: 1 })
      const read = arena.readPage(0)
      expect([read.meta.url, read.redirects, read.headerBlock.length, read.meta.location]).toEqual([url.url, hops, limits.headerBytesMax, meta.location])
    }
  }
})

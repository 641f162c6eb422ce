// Appends three pages to a WARC file under a limit on the size of files; the second does not fit. Runs the compiled writer.
import * as crypto from 'node:crypto'
import { WarcWriter } from '../../dist/storage/sinks/warc.js'

const writer = new WarcWriter({ dir: process.argv[2], nextFile: () => 1, info: {} })
const codes = []
let length = 0
for (const [page, bytes] of [[1, 1_000], [2, 400_000], [3, 500]]) {
  const meta = { url: `http://a.test/${page}`, status: 200, statusText: 'OK', fetchedAtMs: 0, truncated: false }
  try {
    const place = writer.append({ meta, headerBlock: new Uint8Array(0), body: crypto.randomBytes(bytes) })
    length = place.offset + place.length
    codes.push('ok')
  } catch (error) {
    codes.push(error.code)
  }
}
process.stdout.write(JSON.stringify({ codes, length }))

import { spawnSync } from 'node:child_process'
import zlib from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { ByteCache } from '../../engine/demo/byte-cache.ts'
import { codingFor } from '../../engine/demo/codings.ts'
import { insertLinks } from '../../engine/demo/corpus-bodies.ts'
import { crcJoin, crcShift } from '../../engine/demo/crc32.ts'
import { MadeBodies } from '../../engine/demo/bodies.ts'
import { resolveOptions } from '../../engine/demo/options.ts'
import { Site } from '../../engine/demo/site.ts'
import { webFlags, webOptions } from '../../engine/cli/web.ts'

const site = new Site({ scheme: 'http', port: 8_080, hosts: 30, pages: 900, seed: 3, faultShare: 0, sizeScale: 1, bodies: 'made' })

/** Front pages, a page of each host, and the largest pages, whose streams have the most joints. */
const sample = [
  ...Array.from({ length: 30 }, (_, host) => site.page(host, site.layout.size(host) - 1)),
  ...[...site.allPages()].sort((a, b) => b.bytesTarget - a.bytesTarget).slice(0, 3),
  site.page(0, 0), site.privatePage(0, 1),
]

async function bytesOf(seed: number): Promise<Buffer> {
  const made = new Site({ ...site.options, seed })
  return Buffer.concat([...await (await MadeBodies.open(made)).body(made.page(2, 0), 'gzip')])
}

function insert(text: string): string {
  return insertLinks(Buffer.from(text, 'latin1'), Buffer.from('[L]')).toString('latin1')
}

describe('bodies of made pages', () => {
  test('decode to the same bytes from every coding, each as one stream that readers accept', async () => {
    const bodies = await MadeBodies.open(site)
    for (const page of sample) {
      const plain = Buffer.concat([...await bodies.body(page, 'identity')])
      expect(zlib.gunzipSync(Buffer.concat([...await bodies.body(page, 'gzip')])).equals(plain)).toBe(true)
      expect(zlib.brotliDecompressSync(Buffer.concat([...await bodies.body(page, 'br')])).equals(plain)).toBe(true)
    }
  })

  test('are one gzip member, so a reader that stops after the first has all', async () => {
    const bodies = await MadeBodies.open(site)
    const body = Buffer.concat([...await bodies.body(sample[0]!, 'gzip')])
    const raw = zlib.inflateRawSync(body.subarray(10, -8))
    expect(raw.length).toBe(body.readUInt32LE(body.length - 4))
    expect(zlib.crc32(raw)).toBe(body.readUInt32LE(body.length - 8))
  })

  test('pass gzip -t', async ({ skip }) => {
    const bodies = await MadeBodies.open(site)
    const check = spawnSync('gzip', ['-t'], { input: Buffer.concat([...await bodies.body(sample[1]!, 'gzip')]) })
    if (check.error !== undefined) skip('there is no gzip command')
    expect(String(check.stderr)).toBe('')
    expect(check.status).toBe(0)
  })

  test('compress about as well as pages of the web', async () => {
    const bodies = await MadeBodies.open(site)
    let plain = 0
    let sent = 0
    let best = 0
    for (const page of sample) {
      const bytes = Buffer.concat([...await bodies.body(page, 'identity')])
      plain += bytes.length
      sent += Buffer.concat([...await bodies.body(page, 'gzip')]).length
      best += zlib.gzipSync(bytes).length
    }
    expect(plain / sent).toBeGreaterThan(3.8)
    expect(plain / best).toBeLessThan(6.5)
  })

  test('are the same from two webs of one seed and differ between seeds', async () => {
    const first = await bytesOf(3)
    const other = await bytesOf(4)
    expect(other.equals(first)).toBe(false)
    expect((await bytesOf(3)).equals(first)).toBe(true)
  })
})

test('the CRC of joined pieces is the CRC of the whole', () => {
  const whole = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 7 + (index >> 8)) & 255))
  for (const at of [0, 1, 9, 255, 4_096, 65_535, 69_999, 70_000]) {
    const [first, second] = [whole.subarray(0, at), whole.subarray(at)]
    expect(crcJoin(zlib.crc32(first), zlib.crc32(second), crcShift(second.length))).toBe(zlib.crc32(whole))
  }
})

test('the coding is the preferred one where it is accepted, and none where none is', () => {
  expect(codingFor('gzip, deflate, br', 'br')).toBe('br')
  expect(codingFor('gzip', 'br')).toBe('gzip')
  expect(codingFor('br;q=1.0, gzip;q=0', 'gzip')).toBe('br')
  expect(codingFor('*;q=0.5, br;q=0.0', 'br')).toBe('gzip')
  expect(codingFor('gzip', 'identity')).toBe('identity')
  expect(codingFor('', 'gzip')).toBe('identity')
  expect(codingFor(undefined, 'gzip')).toBe('identity')
})

test('links are inserted behind the body tag and no other byte changes', () => {
  expect(insert('<html><BODY class="a>b" id=x>caf\xe9')).toBe('<html><BODY class="a>b" id=x>[L]caf\xe9')
  expect(insert('<!-- <body> --><script>"<body>"</script><title><body></title><body>x')).toBe('<!-- <body> --><script>"<body>"</script><title><body></title><body>[L]x')
  expect(insert('<bodyguard><p>x')).toBe('[L]<bodyguard><p>x')
  expect(insert('\xef\xbb\xbf<p>x')).toBe('\xef\xbb\xbf[L]<p>x')
})

test('a byte cache keeps what was used last and stays within its bound', () => {
  const made: string[] = []
  const cache = new ByteCache(10)
  const get = (key: string): number => cache.get(key, () => {
    made.push(key)
    return Buffer.alloc(4)
  }).length
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) get(key)
  expect(made).toEqual(['a', 'b', 'c', 'b'])
})

test('options out of range are refused with their name, the range and what was given', () => {
  expect(() => resolveOptions({ faultShare: 2 })).toThrow('--fault-share: expected a number from 0 to 1, given 2')
  expect(() => resolveOptions({ hosts: 1.5 })).toThrow('--hosts: expected a whole number from 1 to')
  expect(() => resolveOptions({ host: 3 } as never)).toThrow('host: no such option')
  expect(() => webOptions({ hosts: 'many' })).toThrow('--hosts: expected a number, given "many"')
})

test('the command\'s flags become the options of their names', () => {
  expect(webOptions({ hosts: '3', pagesPerHost: 5, tls: true, pages: 'dir', log: 'file', out: 'there' }))
    .toEqual({ hosts: 3, pagesPerHost: 5, tls: true, pagesDir: 'dir', logFile: 'file', outDir: 'there' })
  const defaults = Object.fromEntries(webFlags.filter((flag) => flag.default !== undefined).map((flag) => [flag.flags, flag.default]))
  expect(defaults).toEqual({ '--hosts <n>': 24, '--first-host-pages <n>': 0, '--edition <n>': 0, '--change-share <n>': 0, '--gone-share <n>': 0, '--seed <n>': 1, '--port <n>': 0, '--latency-ms <n>': 0, '--fault-share <n>': 0, '--size-scale <n>': 1, '--tls': false })
})

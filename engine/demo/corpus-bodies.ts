/**
 * Bodies from a folder of saved pages in place of made ones: page i of the web has the bytes of file i modulo the
 * number of files, with a block of the web's own links put in behind the `<body>` tag, or at the very start (behind a
 * byte order mark) where there is none. All other bytes stay as they are. The block's URLs are absolute, since the
 * page may have a `<base>`; the page's own links stay and lead outside. In 24 of the 360 pages of the project's corpus
 * the body begins beyond 250 KB, so a crawler that cuts there misses their block; links from the text of other pages
 * lead around them. Main thread of the web's process.
 */
import fs from 'node:fs'
import path from 'node:path'
import zlib from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import { revisionHtml, type Bodies } from './bodies.ts'
import { ByteCache } from './byte-cache.ts'
import type { Site } from './site.ts'
import type { Coding, Page } from './types.ts'

const decodedBytesMax = 48 * 1024 * 1024
const encodedBytesMax = 96 * 1024 * 1024

/** The pages of a folder in the order of their names. */
export interface CorpusFolder {
  readonly dir: string
  readonly files: readonly string[]
  readonly contentTypes: ReadonlyMap<string, string>
}

export function readCorpusFolder(dir: string): CorpusFolder {
  let names: string[]
  try {
    names = fs.readdirSync(dir)
  } catch (error) {
    throw new SluiceError('usage', `--pages: expected a readable folder of .html, .html.gz or .html.br files, got ${dir}`, { cause: error })
  }
  const files = names.filter((name) => /\.html(\.gz|\.br)?$/.test(name)).sort()
  if (files.length === 0) throw new SluiceError('usage', `--pages: expected .html, .html.gz or .html.br files, found none in ${dir}`)
  return { dir, files, contentTypes: readContentTypes(path.join(dir, 'index.json')) }
}

function readContentTypes(file: string): Map<string, string> {
  const types = new Map<string, string>()
  if (!fs.existsSync(file)) return types
  const entries = JSON.parse(fs.readFileSync(file, 'utf8')) as { file: string, serve_content_type?: string }[]
  for (const entry of entries) {
    if (entry.serve_content_type !== undefined) types.set(entry.file, entry.serve_content_type)
  }
  return types
}

export class CorpusBodies implements Bodies {
  readonly #site: Site
  readonly #folder: CorpusFolder
  readonly #hostStarts: readonly number[]
  readonly #decoded = new ByteCache(decodedBytesMax)
  readonly #encoded = new ByteCache(encodedBytesMax)

  constructor(site: Site, folder: CorpusFolder) {
    this.#site = site
    this.#folder = folder
    let start = 0
    this.#hostStarts = Array.from({ length: site.layout.hosts }, (_, host) => (start += site.layout.size(host)) - site.layout.size(host))
  }

  contentType(page: Page): string {
    return this.#folder.contentTypes.get(this.fileOf(page)) ?? 'text/html'
  }

  fileOf(page: Page): string {
    const number = this.#hostStarts[page.hostIndex]! + page.index
    return this.#folder.files[number % this.#folder.files.length]!
  }

  body(page: Page, coding: Coding): readonly Buffer[] {
    const whole = (): Buffer => insertLinks(this.#decode(this.fileOf(page)), this.#block(page))
    if (coding === 'identity') return [whole()]
    return [this.#encoded.get(`${coding} ${page.revision ?? 0} ${page.url}`, () => encode(whole(), coding))]
  }

  #decode(file: string): Buffer {
    return this.#decoded.get(file, () => {
      const bytes = fs.readFileSync(path.join(this.#folder.dir, file))
      return file.endsWith('.br') ? zlib.brotliDecompressSync(bytes) : file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes
    })
  }

  #block(page: Page): Buffer {
    const links = this.#site.ownLinks(page).map(({ href }, index) => `<a href="${href}">${index}</a>`)
    return Buffer.from(`\n<div class="demo-links">${links.join('\n')}</div>\n${revisionHtml(page)}`)
  }
}

function encode(bytes: Buffer, coding: 'gzip' | 'br'): Buffer {
  if (coding === 'gzip') return zlib.gzipSync(bytes, { level: 2 })
  return zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 2 } })
}

/** A body tag, and before it what may hold the same letters without being one. */
const bodyTag = /<!--[\s\S]*?-->|<(script|style|title|textarea|noscript|template)\b[\s\S]*?<\/\1|<body(?=[\s/>])(?:[^>"']|"[^"]*"|'[^']*')*>/gi

/** `bytes` with `block` inserted. Latin-1 maps each byte to one character, so positions are those of bytes. */
export function insertLinks(bytes: Buffer, block: Buffer): Buffer {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  for (const match of bytes.toString('latin1').matchAll(bodyTag)) {
    if (!/^<body/i.test(match[0])) continue
    at = match.index + match[0].length
    break
  }
  return Buffer.concat([bytes.subarray(0, at), block, bytes.subarray(at)])
}

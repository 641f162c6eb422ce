/**
 * The pages that a profile reads again and again: files, folders and WARC files, or made pages when none are named.
 * A page is held as a crawl would have received it: coded as it is stored, cut where a crawl cuts. Invariant: what is
 * held, coded and decoded, stays within `inputBytesMax` and one page; what is over is counted and never read.
 */
import fs from 'node:fs'
import path from 'node:path'
import { SluiceError } from '../core/errors.ts'
import { fetchUrl } from '../core/fetch-url.ts'
import { MadeBodies } from '../demo/bodies.ts'
import { Site } from '../demo/site.ts'
import { Inflater } from '../../threads/inflate.ts'
import { baseDefault } from './inspect-page.ts'
import { warcPages } from './profile-warc.ts'

export interface ProfileInput {
  readonly url: string
  readonly contentType: string
  readonly contentEncoding?: string
  readonly headerBlock: Uint8Array
  /** As it would come over the wire. */
  readonly body: Uint8Array
  /** `body` is the beginning of a longer one. */
  readonly isCut: boolean
  /** What a worker reads of it. */
  readonly decoded: Uint8Array
  readonly isDecodedCut: boolean
}

export interface ProfileInputs {
  readonly pages: readonly ProfileInput[]
  /** Files and pages that could not be read. */
  readonly skipped: number
  /** Files that were not read, or not to their end, because enough was held. */
  readonly leftOut: number
}

export interface InputOptions {
  readonly maxBodyBytes: number
  /** Told of each file that is skipped, and why. */
  readonly warn: (message: string) => void
  readonly bytesMax?: number
}

/** Coded and decoded bytes of all pages: enough for a thousand pages of 250 KB, and a fraction of a small machine. */
export const inputBytesMax = 256 * 1_024 * 1_024

const pageFile = /\.(?:x?html?)(?:\.gz|\.br)?$/i
const warcFile = /\.warc(?:\.gz)?$/i
const demoPages = 200

type NewPage = Omit<ProfileInput, 'decoded' | 'isDecodedCut'>

/** Pages as they come, each decoded once, which also tells whether it can be. */
class InputList {
  readonly pages: ProfileInput[] = []
  skipped = 0
  leftOut = 0
  readonly #options: InputOptions
  readonly #inflater: Inflater
  #bytesLeft: number

  constructor(options: InputOptions) {
    this.#options = options
    this.#inflater = new Inflater(options.maxBodyBytes)
    this.#bytesLeft = options.bytesMax ?? inputBytesMax
  }

  get isFull(): boolean {
    return this.#bytesLeft <= 0
  }

  async add(name: string, page: NewPage): Promise<void> {
    if (page.body.byteLength === 0) return this.skip(name, 'it is empty')
    const inflated = await this.#inflater.inflate(page.body, page.contentEncoding, page.isCut)
    if (!inflated.ok) return this.skip(name, `it is no ${page.contentEncoding}, or damaged`)
    // What was inflated lies in a buffer that the next page takes.
    const decoded = page.contentEncoding === undefined ? inflated.bytes : inflated.bytes.slice()
    this.pages.push({ ...page, decoded, isDecodedCut: inflated.truncated })
    this.#bytesLeft -= decoded === inflated.bytes ? decoded.byteLength : page.body.byteLength + decoded.byteLength
  }

  skip(name: string, why: string): void {
    this.skipped += 1
    this.#options.warn(`${name}: ${why}`)
  }
}

/** Throws `usage` when there is no page in what is named, `file_unreadable` when one of the paths or every page cannot be read. */
export async function readInputs(paths: readonly string[], options: InputOptions): Promise<ProfileInputs> {
  const list = new InputList(options)
  if (paths.length === 0) await addMade(list, options)
  for (const given of paths) {
    for (const file of filesOf(given, list)) {
      if (list.isFull) list.leftOut += 1
      else if (warcFile.test(file)) await addWarc(file, list, options)
      else await addFile(file, list, options)
    }
  }
  if (list.pages.length > 0) return list
  if (list.skipped > 0) throw new SluiceError('file_unreadable', `PATH: none of the pages could be read (${list.skipped} skipped)`)
  throw new SluiceError('usage', `PATH: expected .html, .html.gz, .html.br or .warc files with HTML pages, found none in ${paths.join(', ')}`)
}

/** A file that is named is taken as it is; of a folder, those whose names say that they are pages, in the order of their names. */
function* filesOf(given: string, list: InputList): Generator<string, void, undefined> {
  if (/^https?:\/\//i.test(given)) throw new SluiceError('usage', `PATH: expected a file or folder, given the URL ${given}`)
  let isFolder: boolean
  try {
    isFolder = fs.statSync(given).isDirectory()
    if (!isFolder) fs.accessSync(given, fs.constants.R_OK)
  } catch (error) {
    throw new SluiceError('file_unreadable', `PATH: expected a file or folder, given ${given}: ${(error as Error).message}`, { cause: error })
  }
  if (!isFolder) yield given
  const folders = isFolder ? [given] : []
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const within: string[] = []
    for (const entry of entriesOf(folder, list)) {
      const file = path.join(folder, entry.name)
      // A link to a folder is not followed: it may lead back to where it stands.
      if (entry.isDirectory()) within.push(file)
      else if (pageFile.test(entry.name) || warcFile.test(entry.name)) yield file
    }
    folders.push(...within.toReversed())
  }
}

function entriesOf(folder: string, list: InputList): readonly fs.Dirent[] {
  try {
    return fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    list.skip(folder, (error as Error).message)
    return []
  }
}

/** Throws for what has no end or no size: opening a named pipe waits until somebody writes, and none can be read twice. */
function refuseOther(file: string): void {
  if (!fs.statSync(file).isFile()) throw new Error('it is no regular file')
}

async function addFile(file: string, list: InputList, { maxBodyBytes }: InputOptions): Promise<void> {
  let bytes: Uint8Array
  try {
    refuseOther(file)
    bytes = firstBytes(file, maxBodyBytes + 1)
  } catch (error) {
    return list.skip(file, (error as Error).message)
  }
  const contentEncoding = /\.gz$/i.test(file) ? 'gzip' : /\.br$/i.test(file) ? 'br' : undefined
  await list.add(file, {
    url: baseDefault, contentType: 'text/html', headerBlock: new Uint8Array(0), body: bytes.subarray(0, maxBodyBytes),
    isCut: bytes.byteLength > maxBodyBytes, ...(contentEncoding !== undefined && { contentEncoding }),
  })
}

function firstBytes(file: string, bytesMax: number): Uint8Array {
  const fd = fs.openSync(file, 'r')
  try {
    const { size } = fs.fstatSync(fd)
    const bytes = new Uint8Array(Math.min(size, bytesMax))
    let read = 0
    while (read < bytes.byteLength) {
      const more = fs.readSync(fd, bytes, read, bytes.byteLength - read, read)
      if (more === 0) break
      read += more
    }
    return bytes.subarray(0, read)
  } finally {
    fs.closeSync(fd)
  }
}

async function addWarc(file: string, list: InputList, { maxBodyBytes }: InputOptions): Promise<void> {
  try {
    refuseOther(file)
    for await (const { url, contentEncoding, ...page } of warcPages(file, maxBodyBytes)) {
      if (list.isFull) {
        list.leftOut += 1
        return
      }
      await list.add(`${file}: ${url}`, { ...page, url: fetchUrl(url) ?? baseDefault, ...(contentEncoding !== undefined && { contentEncoding }) })
    }
  } catch (error) {
    list.skip(file, (error as Error).message)
  }
}

/** Pages of the demonstration web, in the codings in which it serves them. */
async function addMade(list: InputList, { maxBodyBytes }: InputOptions): Promise<void> {
  const site = new Site({ scheme: 'https', port: 443, hosts: 8, pages: demoPages, seed: 1, faultShare: 0, sizeScale: 1, bodies: 'made' })
  const bodies = await MadeBodies.open(site)
  for (const page of site.allPages()) {
    const body = Buffer.concat(await bodies.body(page, page.coding))
    await list.add(page.url, {
      url: page.url, contentType: bodies.contentType(page), headerBlock: new Uint8Array(0), body: body.subarray(0, maxBodyBytes),
      isCut: body.byteLength > maxBodyBytes, ...(page.coding !== 'identity' && { contentEncoding: page.coding }),
    })
  }
}

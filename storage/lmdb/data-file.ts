/**
 * LMDB's data file seen as a file. LMDB has no checksums and trusts its file's length: reading a page that a truncated
 * file no longer has ends the process with SIGBUS, which nobody can catch. So before the environment is opened, the
 * two meta pages are read here, and the last page that the newer one names must lie within the file. Main thread.
 *
 * Layout of a meta page, from lmdb-js's mdb.c (little-endian, checked by experiment with lmdb 3.5.6); there are two, at
 * 0 and at the page size, and the one with the higher transaction is the store:
 *
 *    0        24       28       40         48          72              144        152
 *    | header | magic  | version| map size | page size | ... roots ... | last page | transaction |
 *
 * A healthy file may be a few pages shorter than its last page: pages that a transaction took and gave back before it
 * ended are counted and never written (seen after 27 of 2,400 random commits, 5 pages at most). To tell that from a
 * cut, the file is kept longer than it must be: `FilePad` extends it by a hole of PAD_BYTES whenever less than half of
 * that is left. Invariant: the file is never shorter than its last page while it is in use. Holes take no disk space.
 */
import * as fs from 'node:fs'
import { SluiceError } from '../../engine/core/errors.ts'
import { isNoRoom } from '../sinks/files.ts'

const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const MAGIC_AT = 24
const VERSION_AT = 28
const PAGE_SIZE_AT = 48
const LAST_PAGE_AT = 144
const TRANSACTION_AT = 152
const META_BYTES = 160
const PAD_BYTES = 4 * 1024 * 1024
/** More than the least piece that a file system may still have when it has none for a transaction. */
const PROBE_BYTES = 1024 * 1024

interface Meta {
  readonly pageSize: number
  readonly lastPage: number
  readonly transaction: number
}

function readMeta(fd: number, at: number): Meta | undefined {
  const bytes = Buffer.alloc(META_BYTES)
  if (fs.readSync(fd, bytes, 0, META_BYTES, at) < META_BYTES) return undefined
  if (bytes.readUInt32LE(MAGIC_AT) !== MAGIC || (bytes.readUInt32LE(VERSION_AT) & 0xffff) !== DATA_VERSION) return undefined
  const pageSize = bytes.readUInt32LE(PAGE_SIZE_AT)
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) return undefined
  return {
    pageSize,
    lastPage: Number(bytes.readBigUInt64LE(LAST_PAGE_AT)),
    transaction: Number(bytes.readBigUInt64LE(TRANSACTION_AT)),
  }
}

/** Length that the newer meta page asks for; undefined when one of them is not a meta page. */
function bytesUsed(fd: number): number | undefined {
  const first = readMeta(fd, 0)
  const second = first === undefined ? undefined : readMeta(fd, first.pageSize)
  if (first === undefined || second === undefined || second.pageSize !== first.pageSize) return undefined
  const newer = second.transaction > first.transaction ? second : first
  return (newer.lastPage + 1) * newer.pageSize
}

/** Throws `store_corrupt` when opening the file would be dangerous. A file that is not there, or empty, is new. */
export function checkDataFile(path: string): void {
  if (!fs.existsSync(path)) return
  const fd = fs.openSync(path, 'r')
  try {
    const size = fs.fstatSync(fd).size
    if (size === 0) return
    const used = bytesUsed(fd)
    if (used === undefined) throw new SluiceError('store_corrupt', `${path} does not begin as an LMDB file does`)
    if (used > size) throw new SluiceError('store_corrupt', `${path} was cut: it has ${size} bytes and needs ${used}`)
  } finally {
    fs.closeSync(fd)
  }
}

/** Keeps the file longer than its last page. Reads two pieces of 160 bytes a commit: 5 microseconds. */
export class FilePad {
  readonly #fd: number

  constructor(path: string) {
    this.#fd = fs.openSync(path, 'r+')
    this.keepAhead()
  }

  keepAhead(): void {
    const used = bytesUsed(this.#fd) ?? 0
    if (fs.fstatSync(this.#fd).size - used >= PAD_BYTES / 2) return
    try {
      fs.ftruncateSync(this.#fd, used + PAD_BYTES)
    } catch {
      // A file system that refuses the hole (a quota, a size limit) costs the margin and nothing else: the next write
      // tells whether there is room.
    }
  }

  /**
   * Whether the file system takes bytes behind the file: it is tried, with 1 MB that is given back. LMDB reports a write
   * that was cut short, as the first one on a full disk is, by the same EIO as a broken disk. While nobody commits.
   */
  hasRoom(): boolean {
    const { size } = fs.fstatSync(this.#fd)
    try {
      return fs.writeSync(this.#fd, Buffer.alloc(PROBE_BYTES), 0, PROBE_BYTES, size) === PROBE_BYTES
    } catch (error) {
      return !isNoRoom(error)
    } finally {
      fs.ftruncateSync(this.#fd, size)
    }
  }

  close(): void {
    fs.closeSync(this.#fd)
  }
}

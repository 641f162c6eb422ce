/**
 * The LMDB environment: the only file that imports lmdb. It opens the tables, reads, and writes one batch in one
 * transaction. Main thread; lmdb-js writes in a thread of its own, from memory that must not change until the promise
 * resolves. Invariant: after a write or a sync that failed there is no other, so nothing is committed on top of a hole;
 * a write that only found no room is undone as a whole, and may be tried again (tried on a full tmpfs: the environment
 * stays usable).
 *
 * How a batch is written, measured on 2,300 writes (100 pages with 10 new links, one row a URL) into a store of 600,000
 * rows, with lmdb 3.5.6 on Node 20.20; microseconds a write, on the main thread / CPU in all threads:
 *   batch()                              0.5 / 5.7   one block of instructions, atomic: an error aborts all of it
 *   puts in one event turn               0.5 / 5.7   the same speed, but atomic only by how turns fall
 *   transactionSync, durable             9.7 / 6.2   stalls of 39 ms
 *   transaction(callback)                did not finish within 20 s when its callback wrote
 * So batch(). What is thrown in its callback would commit the first half, hence everything is encoded before it runs.
 *
 * Options, each for a reason:
 *   overlappingSync: false   with it a commit's promise resolves after the fsync too (measured with fdatasync delayed
 *                            by 300 ms), at the same CPU cost; without it there is one kind of meta page, a failed
 *                            commit rejects `flushed` instead of leaving it pending, and a commit is durable.
 *   eventTurnBatching: false the turn's own promise rejects beside batch()'s, and nobody could handle that one.
 *   mapSize: 128 GiB         address space only, given once: growing the map counts its pages twice. 1 TiB does not fit
 *                            where a process has 39 bits of addresses (512 GiB, some ARM kernels). lmdb-js grows it.
 *   noReadAhead              a store that is larger than the page cache is read at random: with the system's reading ahead, a
 *                            store of 1.9 GB with a quarter of it cached read 1.3 GB a second from the disk, and stood still.
 *   useWritemap: never       a full disk would be a SIGBUS.
 *   noSync                   for a durability other than `commit`: a matter of the opening and not of the file.
 */
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import { SluiceError, invariant } from '../../engine/core/errors.ts'
import { FilePad, checkDataFile } from './data-file.ts'

const MAP_BYTES = 128 * 1024 ** 3

/** As lmdb-js tells them, MDB_MAP_FULL among them. */
const noRoomCodes: readonly unknown[] = [os.constants.errno.ENOSPC, os.constants.errno.EDQUOT, os.constants.errno.EFBIG, -30_792]

export const tableNames = ['meta', 'hosts', 'robots', 'ready', 'queue', 'seen', 'pages', 'due', 'domains', 'domainLinks', 'scope'] as const
export type TableName = (typeof tableNames)[number]

/** Keys from `start` to before `end`; a missing end is the end of the table. */
export interface KeyRange {
  readonly start?: Uint8Array
  readonly end?: Uint8Array
  readonly limit?: number
  /** From `start` down to behind `end`. */
  readonly reverse?: boolean
}

/** What lmdb-js tells of one table. */
interface TreeStats {
  readonly entryCount: number
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

/** One put, or one removal when there is no value. */
export interface Write {
  readonly table: TableName
  readonly key: Uint8Array
  readonly value?: Uint8Array
}

interface DataFile {
  readonly file: string
  /** Absent: the environment is not written. */
  readonly pad: FilePad | undefined
}

type Bytes = Database<Uint8Array, Uint8Array>

/** Missing from the types of lmdb-js. */
const readAtRandom = { noReadAhead: true }
const DATABASE = { encoding: 'binary', keyEncoding: 'binary' } as const

/** One table as a reader sees it. Iterate ranges within one event turn: a long reader keeps old pages from reuse. */
export class Table {
  readonly #database: Bytes

  constructor(database: Bytes) {
    this.#database = database
  }

  /** The value, in memory of its own that small ones share. */
  get(key: Uint8Array): Buffer | undefined {
    const shared = this.#database.getBinaryFast(key)
    if (shared === undefined) return undefined
    // lmdb-js reuses one large buffer, and says with a `length` of its own how much of it counts.
    const value = Buffer.allocUnsafe(shared.length)
    value.set(shared.subarray(0, shared.length))
    return value
  }

  has(key: Uint8Array): boolean {
    return this.#database.doesExist(key)
  }

  keys(range: KeyRange = {}): Iterable<Uint8Array> {
    return this.#database.getKeys({ ...range })
  }

  entries(range: KeyRange = {}): Iterable<{ key: Uint8Array; value: Uint8Array }> {
    return this.#database.getRange({ ...range })
  }

  /**
   * Lets go of what all tables are read from: the next read sees what is committed by then. lmdb-js does so too, by a
   * timer, when the event loop comes to it; here it is done before anything is waited for.
   */
  letGo(): void {
    this.#database.resetReadTxn()
  }
}

export type Tables = Readonly<Record<TableName, Table>>

export interface OpenMode {
  readonly readOnly: boolean
  /** `write` does not wait for the disk; `sync` does. */
  readonly noSync?: boolean
}

export class Environment {
  readonly tables: Tables
  readonly #root: RootDatabase<Uint8Array, Uint8Array>
  readonly #databases: ReadonlyMap<TableName, Bytes>
  readonly #file: string
  readonly #pad: FilePad | undefined
  #failure: SluiceError | undefined

  constructor(root: RootDatabase<Uint8Array, Uint8Array>, databases: ReadonlyMap<TableName, Bytes>, { file, pad }: DataFile) {
    this.#root = root
    this.#databases = databases
    this.#file = file
    this.#pad = pad
    this.tables = Object.fromEntries([...databases].map(([name, database]) => [name, new Table(database)])) as unknown as Tables
  }

  /** Why nothing more can be written; undefined while all is well. */
  get failure(): SluiceError | undefined {
    return this.#failure
  }

  /**
   * Writes all or nothing; resolves when it is on the disk, or with `noSync` when every process sees it. Rejects with
   * `disk_full`, and may be called again, or with `disk_failed`, and from then on always.
   */
  async write(writes: readonly Write[]): Promise<void> {
    invariant(this.#pad !== undefined, 'a store that was opened for reading is not written')
    if (this.#failure !== undefined) throw this.#failure
    try {
      await this.#root.batch(() => {
        for (const { table, key, value } of writes) {
          const database = this.#databases.get(table)!
          if (value === undefined) void database.remove(key)
          else void database.put(key, value)
        }
      })
    } catch (error) {
      throw await this.refusal(error)
    }
    this.#pad.keepAhead()
  }

  /** Pages of the tables, in bytes; what was freed inside the file is not among them. */
  bytesUsed(): number {
    let bytes = 0
    for (const database of this.#databases.values()) {
      const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } = database.getStats() as TreeStats
      bytes += pageSize * (treeBranchPageCount + treeLeafPageCount + overflowPages)
    }
    return bytes
  }

  /** Length of the data file. */
  fileBytes(): number {
    return fs.statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0
  }

  rowsOf(table: TableName): number {
    return (this.#databases.get(table)!.getStats() as TreeStats).entryCount
  }

  /** Writes a copy without freed pages to `data.mdb` in a directory that is there. */
  async copyTo(dir: string): Promise<void> {
    await this.#root.backup(dir, true)
  }

  /** Brings to the disk what was written with `noSync`. Rejects with `disk_failed`, and then nothing is written any more. */
  async sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    try {
      await new Promise<void>((resolve, reject) => {
        // Missing from the types of lmdb-js.
        const { sync } = this.#root as unknown as { sync(callback: (error?: Error) => void): void }
        sync((error) => (error === undefined ? resolve() : reject(error)))
      })
    } catch (error) {
      throw this.fail(error)
    }
  }

  /** What the failed write of a file of the store comes to: no room for now, or the end of all writing. */
  async refusal(error: unknown): Promise<SluiceError> {
    // lmdb-js rejects a second promise with the reason; left alone it would end the process.
    const reason = await reasonOf((error as { commitError?: Promise<unknown> }).commitError) ?? error
    if (reason instanceof SluiceError && reason.code === 'disk_full') return reason
    if (!this.#isNoRoom(reason)) return this.fail(reason)
    return new SluiceError('disk_full', `the store could not be written: there is no room for a commit (${(reason as Error).message})`, { cause: reason })
  }

  #isNoRoom(reason: unknown): boolean {
    const code = (reason as { code?: unknown }).code
    return noRoomCodes.includes(code) || (code === os.constants.errno.EIO && !this.#pad!.hasRoom())
  }

  /** Makes a failure final. */
  fail(reason: unknown): SluiceError {
    const text = reason instanceof Error ? reason.message : String(reason)
    this.#failure ??= reason instanceof SluiceError ? reason : new SluiceError('disk_failed', `the store could not be written: ${text}`, { cause: reason })
    return this.#failure
  }

  async close(): Promise<void> {
    this.#pad?.close()
    await this.#root.close()
  }
}

/** Whether there is an environment in `dir`: LMDB makes a new one of a file that is empty, as it does of none. */
export function holdsData(dir: string): boolean {
  return (fs.statSync(path.join(dir, 'data.mdb'), { throwIfNoEntry: false })?.size ?? 0) > 0
}

/**
 * Opens the environment in `dir`, made when it is missing. `accepts` sees the meta table before anything is written,
 * and may throw: so a store of an unknown version is left as it was. Undefined: there is none, and `readOnly` makes none.
 */
export function openEnvironment(dir: string, { readOnly, noSync = false }: OpenMode, accepts: (meta: Table) => void): Environment | undefined {
  const file = path.join(dir, 'data.mdb')
  let root: RootDatabase<Uint8Array, Uint8Array> | undefined
  try {
    if (readOnly && !holdsData(dir)) return undefined
    fs.mkdirSync(dir, { recursive: true })
    checkAccess(dir, readOnly)
    checkDataFile(file)
    root = open<Uint8Array, Uint8Array>({
      ...DATABASE, path: dir, noSubdir: false, mapSize: MAP_BYTES, maxDbs: tableNames.length + 1,
      overlappingSync: false, eventTurnBatching: false, readOnly, noSync, ...readAtRandom,
    })
    const existing = openTable(root, 'meta', false)
    if (existing !== undefined) accepts(new Table(existing))
    else if (readOnly) return void root.close()
    const databases = new Map(tableNames.map((name) => [name, openTable(root!, name, !readOnly)!]))
    return new Environment(root, databases, { file, pad: readOnly ? undefined : new FilePad(file) })
  } catch (error) {
    void root?.close()
    throw error instanceof SluiceError ? error : openingError(dir, error)
  }
}

/** Of a file that it may not open, lmdb-js dies by SIGSEGV (tried with 3.5.6). A reader needs the locks too. */
function checkAccess(dir: string, readOnly: boolean): void {
  const { R_OK, W_OK, X_OK } = fs.constants
  fs.accessSync(dir, readOnly ? R_OK | X_OK : R_OK | W_OK | X_OK)
  for (const [name, mode] of [['data.mdb', readOnly ? R_OK : R_OK | W_OK], ['lock.mdb', R_OK | W_OK]] as const) {
    const file = path.join(dir, name)
    if (fs.existsSync(file)) fs.accessSync(file, mode)
  }
}

async function reasonOf(rejected: Promise<unknown> | undefined): Promise<unknown> {
  try {
    await rejected
    return undefined
  } catch (error) {
    return error
  }
}

function openTable(root: RootDatabase<Uint8Array, Uint8Array>, name: TableName, create: boolean): Bytes | undefined {
  // `create` is read by lmdb-js and missing from its types; with false a missing table is undefined.
  const options = { ...DATABASE, name, create }
  return root.openDB<Uint8Array, Uint8Array>(options) as Bytes | undefined
}

function openingError(dir: string, error: unknown): SluiceError {
  const text = error instanceof Error ? error.message : String(error)
  const code = /MDB_|not an LMDB|Invalid argument/i.test(text) ? 'store_corrupt' : 'dir_unusable'
  return new SluiceError(code, `${dir} cannot be used as a store: ${text}`, { cause: error })
}

/**
 * The Unix socket `<dir>/control.sock` is the lock of a crawl directory and the way to talk to its owner. Main thread.
 * Invariant: at most one process owns a directory, and a dead owner holds nothing, since the kernel closes its sockets.
 *
 *   start:  bind; when the path is taken: connect; when nobody listens there: it is stale, remove it and bind again
 *   who:    {"who":true}\n  -> {"pid":123,"nonce":"..."}\n, and the connection stays open until one side ends: a
 *           start that waits for a dying owner sees the end of this connection
 *   else:   one line of JSON there, one line back, end
 *
 * Two starts that find the same stale socket must not both remove it, or the second removes what the first has bound.
 * On Linux a socket in the abstract namespace, named by device and inode of the directory, decides: whoever holds it
 * is the only one that touches the path, and it is held as long as the directory, so that removing the file does not
 * open the door. Elsewhere, and in another network namespace, a start asks after binding who is behind the path, and
 * gives up when the nonce is not its own. That is weaker: of starts in the same few milliseconds two may win there.
 *
 * A socket's path may have about 100 bytes; in a deeper directory it is reached through a short symbolic link, which
 * exists only while it is bound or connected. Binding always goes through a link: Node removes the path that it bound
 * when a server closes, and a start that lost must not remove the winner's socket.
 */
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as net from 'node:net'
import * as os from 'node:os'
import * as path from 'node:path'
import { SluiceError } from '../engine/core/errors.ts'
import { limits } from '../engine/core/limits.ts'
import { readLine, writeLine } from './control-line.ts'

const SOCKET = 'control.sock'
/** sun_path has 104 bytes on macOS and 108 on Linux, with a closing zero. */
const PATH_BYTES_MAX = 100
/** Another start may hold the abstract name for a moment before it listens: look again after this. */
const RETRY_MS = 20

export type ControlHandler = (request: unknown) => object | Promise<object>

interface Owner {
  readonly pid: number
  readonly nonce: string
}

/** A directory that this process owns. */
export class DirLock {
  readonly #dir: string
  readonly #nonce = crypto.randomUUID()
  readonly #server: net.Server
  readonly #connections = new Set<net.Socket>()
  readonly #gate: net.Server | undefined
  #closed: Promise<void> | undefined
  #handler: ControlHandler = () => ({ ok: false, code: 'store_in_use', message: `${this.#dir} is in use by process ${process.pid}, which is starting, or has work of its own to do there: try again later` })

  constructor(dir: string, gate: net.Server | undefined) {
    this.#dir = dir
    this.#gate = gate
    this.#server = net.createServer((connection) => void this.#answer(connection))
  }

  /** Every request from now on; what the handler answers, or throws, goes back. */
  onRequest(handler: ControlHandler): void {
    this.#handler = handler
  }

  /** Begins to listen; false when the path is taken. */
  async listen(): Promise<boolean> {
    const bound = await viaLink(this.#dir, (socket) => listening(this.#server, socket))
    if (bound) fs.chmodSync(path.join(this.#dir, SOCKET), 0o600)
    return bound
  }

  /** Whether a start that comes now would find this process. */
  async isBehindPath(): Promise<boolean> {
    const asked = await whoOwns(this.#dir)
    asked?.connection.destroy()
    return asked?.owner?.nonce === this.#nonce
  }

  /** Gives the directory up. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    for (const connection of this.#connections) connection.destroy()
    if (this.#server.listening) {
      const isOurs = await this.isBehindPath()
      for (const connection of this.#connections) connection.destroy()
      if (isOurs) fs.rmSync(path.join(this.#dir, SOCKET), { force: true })
      await closed(this.#server)
    }
    if (this.#gate?.listening === true) await closed(this.#gate)
  }

  async #answer(connection: net.Socket): Promise<void> {
    this.#connections.add(connection)
    connection.on('error', () => connection.destroy())
    connection.on('close', () => this.#connections.delete(connection))
    const request = await readLine(connection)
    if (request === undefined) {
      connection.destroy()
    } else if ((request as { who?: true }).who === true) {
      writeLine(connection, { pid: process.pid, nonce: this.#nonce })
    } else {
      writeLine(connection, await this.#handle(request))
      connection.end()
    }
  }

  async #handle(request: unknown): Promise<object> {
    try {
      return await this.#handler(request)
    } catch (error) {
      return { ok: false, code: error instanceof SluiceError ? error.code : 'internal', message: String(error) }
    }
  }
}

/** As `mkdir -p`. Node's own (20) never ends where an existing parent answers ENOENT, as /proc does. */
function makeDir(dir: string): void {
  if (fs.existsSync(dir)) return
  const parent = path.dirname(dir)
  if (!fs.existsSync(parent)) makeDir(parent)
  try {
    fs.mkdirSync(dir)
  } catch (error) {
    // Another start was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * Makes this process the owner of `dir`, which is made when it is missing. Waits up to `waitMs` for another owner to
 * end; then throws `store_in_use`. Throws `dir_unusable` when no socket can be made there.
 */
export async function acquireDir(dir: string, { waitMs = limits.lockWaitMs }: { waitMs?: number } = {}): Promise<DirLock> {
  const deadlineMs = performance.now() + waitMs
  try {
    makeDir(path.resolve(dir))
    const real = fs.realpathSync(dir)
    for (;;) {
      const lock = await tryToOwn(real)
      if (lock !== undefined) return lock
      const asked = await whoOwns(real)
      const leftMs = deadlineMs - performance.now()
      if (leftMs > 0 && asked !== undefined) await ended(asked.connection, leftMs)
      asked?.connection.destroy()
      if (performance.now() >= deadlineMs) throw inUse(dir, asked?.owner)
      if (asked === undefined) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error
    throw new SluiceError('dir_unusable', `${dir} cannot be used as a crawl directory: ${reasonOf(error)}`, { cause: error })
  }
}

/** The link is ours (`viaLink`), and nobody else has heard of it. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/, symlink '.*$/, ', nothing can be written there') : String(error)
}

/** The owner's answer to a request; undefined when nobody owns the directory, or it does not answer in time. */
export async function askOwner(dir: string, request: object): Promise<unknown> {
  if (!fs.existsSync(path.join(dir, SOCKET))) return undefined
  const connection = await connectTo(fs.realpathSync(dir))
  if (connection === undefined) return undefined
  try {
    writeLine(connection, request)
    return await readLine(connection)
  } finally {
    connection.destroy()
  }
}

/** One try: undefined when another process is there or was faster. */
async function tryToOwn(dir: string): Promise<DirLock | undefined> {
  const gate = await holdGate(dir)
  if (gate === 'taken') return undefined
  const lock = new DirLock(dir, gate)
  try {
    if (!await lock.listen() && !await replaceStale(dir, lock)) {
      await lock.close()
      return undefined
    }
    if (await lock.isBehindPath()) return lock
  } catch (error) {
    await lock.close()
    throw error
  }
  await lock.close()
  return undefined
}

/** The path is taken: removes it if nobody listens there, and binds. */
async function replaceStale(dir: string, lock: DirLock): Promise<boolean> {
  const connection = await connectTo(dir)
  if (connection !== undefined) {
    connection.destroy()
    return false
  }
  fs.rmSync(path.join(dir, SOCKET), { force: true })
  return lock.listen()
}

/** The abstract socket of a directory; undefined where there is no such thing. */
async function holdGate(dir: string): Promise<net.Server | 'taken' | undefined> {
  if (process.platform !== 'linux') return undefined
  const { dev, ino } = fs.statSync(dir)
  const gate = net.createServer((connection) => connection.destroy())
  return await listening(gate, `\0sluice-${dev}-${ino}`) ? gate : 'taken'
}

interface Asked {
  readonly connection: net.Socket
  readonly owner: Owner | undefined
}

/** Asks who is behind the path; the connection stays open. Undefined when nobody listens. */
async function whoOwns(dir: string): Promise<Asked | undefined> {
  const connection = await connectTo(dir)
  if (connection === undefined) return undefined
  writeLine(connection, { who: true })
  return { connection, owner: await readLine(connection) as Owner | undefined }
}

function inUse(dir: string, owner: Owner | undefined): SluiceError {
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`
  return new SluiceError('store_in_use', `${dir} is in use by ${who}`)
}

function connectTo(dir: string): Promise<net.Socket | undefined> {
  const direct = path.join(dir, SOCKET)
  return isShort(direct) ? connected(direct) : viaLink(dir, connected)
}

function connected(socket: string): Promise<net.Socket | undefined> {
  return new Promise((resolve) => {
    const connection = net.connect(socket)
    connection.once('connect', () => resolve(connection))
    connection.on('error', () => resolve(undefined))
  })
}

/** False when the address is taken; rejects for any other reason. */
function listening(server: net.Server, address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error))
    server.once('error', failed)
    server.listen(address, () => {
      server.off('error', failed)
      resolve(true)
    })
  })
}

function closed(server: net.Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

/** Resolves when the other side has ended, or after `waitMs`. */
function ended(connection: net.Socket, waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (connection.closed) return resolve()
    const timer = setTimeout(resolve, waitMs)
    connection.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

function isShort(socket: string): boolean {
  return Buffer.byteLength(socket) <= PATH_BYTES_MAX
}

/** The socket through a link to its directory, made there or, where that is too long, in the system's directory. */
async function viaLink<T>(dir: string, use: (socket: string) => Promise<T>): Promise<T> {
  const name = `.sl-${crypto.randomBytes(6).toString('hex')}`
  const link = path.join(isShort(path.join(dir, name, SOCKET)) ? dir : os.tmpdir(), name)
  fs.symlinkSync(dir, link)
  try {
    return await use(path.join(link, SOCKET))
  } finally {
    fs.unlinkSync(link)
  }
}

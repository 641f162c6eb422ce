/**
 * The thread in which sitemaps are read, as the main thread sees it. Main thread; it starts and ends the worker, copies
 * chunks to it and hands back what they hold, and never looks into one.
 *
 * It is a plain worker and no task of the parse pool. A stream comes at the pace of its server, and zlib's state cannot
 * travel from one task to another: a pool worker would hold it and parse no page while a slow server lets it wait. Here
 * any number of streams wait at once, each between two chunks, and none for another.
 *
 * Invariants: each call is answered, or rejects when the thread dies, misses its deadline or is closed; a thread that has
 * missed one is ended with all its streams, since it cannot be told which of them holds it; the next stream begins a new
 * thread. With no stream open it ends after a while. It keeps no process alive by itself.
 *
 * Node 20 aborts when a worker is ended while require() loads an ES module (parse-pool.ts); a plain worker is loaded by
 * import(), but inherits the flags of its process unless it is given its own.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../engine/core/clock.ts'
import { invariant, SluiceError } from '../../engine/core/errors.ts'
import { fetchUrl } from '../../engine/core/fetch-url.ts'
import { limits } from '../../engine/core/limits.ts'
import { workerPath } from '../worker-path.ts'
import type { SitemapAnswer, SitemapCall, SitemapRequest } from './messages.ts'
import type { SitemapEnd, SitemapHead, SitemapPart, SitemapStream } from './types.ts'

export interface SitemapThreadOptions {
  readonly clock: Clock
  /** A call may take so long; default limits.sitemapChunkMsMax. */
  readonly chunkMsMax?: number
  /** File of the thread; default: the compiled entry beside this module. A test gives another. */
  readonly entry?: string
}

interface Waiting {
  resolve(part: SitemapPart | (SitemapEnd & SitemapPart)): void
  reject(error: Error): void
  /** Stops the watch for the deadline. */
  cancel(): void
}

/** One worker, from its start to its exit. */
class Incarnation {
  readonly #worker: Worker
  readonly #clock: Clock
  readonly #chunkMsMax: number
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0
  #death: SluiceError | undefined
  readonly exited: Promise<void>

  constructor({ clock, chunkMsMax = limits.sitemapChunkMsMax, entry = workerPath('sitemap/entry.js') }: SitemapThreadOptions) {
    this.#clock = clock
    this.#chunkMsMax = chunkMsMax
    this.#worker = new Worker(entry, { name: 'sitemaps', execArgv: [], resourceLimits: { maxOldGenerationSizeMb: limits.sitemapHeapMb } })
    this.#worker.unref()
    this.#worker.on('message', (answer: SitemapAnswer) => this.#answered(answer))
    this.#worker.on('error', (error) => this.#die(`the sitemap thread failed: ${error.message}`, error))
    this.exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#die('the sitemap thread has ended')
        resolve()
      })
    })
  }

  get death(): SluiceError | undefined {
    return this.#death
  }

  tell(request: SitemapRequest): void {
    if (this.#death === undefined) this.#worker.postMessage(request, [])
  }

  ask(stream: number, request: SitemapCall): Promise<SitemapPart | (SitemapEnd & SitemapPart)> {
    if (this.#death !== undefined) return Promise.reject(this.#death)
    const call = this.#calls++
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(this.#chunkMsMax, () => this.#kill())
      this.#waiting.set(call, { resolve, reject, cancel })
      this.#worker.postMessage({ ...request, stream, call }, 'chunk' in request ? [request.chunk.buffer] : [])
    })
  }

  /** Has it end by itself, and sees to it that it does. Whoever waits for an answer has none. */
  async end(): Promise<void> {
    this.tell({ kind: 'exit' })
    this.#die('the sitemap thread is closed')
    // Whoever waits for the exit has nothing else that keeps the process alive.
    this.#worker.ref()
    const cancel = this.#clock.after(limits.sitemapExitMsMax, () => void this.#worker.terminate())
    await this.exited
    cancel()
  }

  #answered(answer: SitemapAnswer): void {
    const waiting = this.#waiting.get(answer.call)
    if (waiting === undefined) return
    this.#waiting.delete(answer.call)
    waiting.cancel()
    if ('part' in answer) waiting.resolve(answer.part)
    else waiting.reject(new SluiceError('internal', `a sitemap could not be read: ${answer.error}`))
  }

  #kill(): void {
    this.#die(`the sitemap thread has not answered for ${this.#chunkMsMax} ms`)
    void this.#worker.terminate()
  }

  #die(reason: string, cause?: Error): void {
    this.#death ??= new SluiceError('internal', reason, { cause })
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { cancel, reject } of waiting) {
      cancel()
      reject(this.#death)
    }
  }
}

class Stream implements SitemapStream {
  readonly #thread: Incarnation
  readonly #id: number
  readonly #onClose: () => void
  #isAsked = false
  #isClosed = false

  constructor(thread: Incarnation, id: number, onClose: () => void) {
    this.#thread = thread
    this.#id = id
    this.#onClose = onClose
  }

  push(chunk: Uint8Array): Promise<SitemapPart> {
    // A copy: the chunk may be a piece of a buffer that others use, and moving it would take theirs.
    return this.#ask({ kind: 'push', chunk: new Uint8Array(chunk) })
  }

  more(): Promise<SitemapPart> {
    return this.#ask({ kind: 'more' })
  }

  end(isCut: boolean): Promise<SitemapEnd & SitemapPart> {
    return this.#ask({ kind: 'end', isCut }) as Promise<SitemapEnd & SitemapPart>
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#thread.tell({ kind: 'close', stream: this.#id })
    this.#onClose()
  }

  async #ask(request: SitemapCall): Promise<SitemapPart> {
    invariant(!this.#isAsked && !this.#isClosed, 'a sitemap is asked for one thing at a time, and for none when it is closed')
    this.#isAsked = true
    try {
      return await this.#thread.ask(this.#id, request)
    } finally {
      this.#isAsked = false
    }
  }
}

export class SitemapThread {
  readonly #options: SitemapThreadOptions
  #current: Incarnation | undefined
  readonly #leaving = new Set<Promise<void>>()
  #streamsOpen = 0
  #streams = 0
  #cancelIdle: () => void = () => {}
  #isClosed = false

  constructor(options: SitemapThreadOptions) {
    this.#options = options
  }

  /** A worker runs, or is about to. */
  get isRunning(): boolean {
    return this.#current !== undefined && this.#current.death === undefined
  }

  get streamsOpen(): number {
    return this.#streamsOpen
  }

  /** Begins to read a sitemap, and starts the thread where none runs. The stream must be closed. Throws `crawler_closed`. */
  open(head: SitemapHead): SitemapStream {
    if (this.#isClosed) throw new SluiceError('crawler_closed', 'the sitemap thread is closed')
    invariant(fetchUrl(head.url) !== undefined, 'a sitemap has an http or https address')
    this.#cancelIdle()
    if (!this.isRunning) this.#current = this.#start()
    const id = this.#streams++
    const thread = this.#current!
    thread.tell({ kind: 'open', stream: id, head })
    this.#streamsOpen += 1
    return new Stream(thread, id, () => this.#streamClosed())
  }

  /** Ends the thread; calls that wait for it reject. Resolves when it has exited. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#end()
    await Promise.all(this.#leaving)
  }

  #start(): Incarnation {
    const thread = new Incarnation(this.#options)
    const exited = thread.exited.then(() => void this.#leaving.delete(exited))
    this.#leaving.add(exited)
    return thread
  }

  #streamClosed(): void {
    this.#streamsOpen -= 1
    if (this.#streamsOpen === 0 && this.isRunning) this.#cancelIdle = this.#options.clock.after(limits.sitemapIdleMsMax, () => this.#end())
  }

  #end(): void {
    this.#cancelIdle()
    void this.#current?.end()
    this.#current = undefined
  }
}

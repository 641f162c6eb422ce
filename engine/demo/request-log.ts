/**
 * What the server was asked: counts in memory (one number per page asked for) and, if wanted, a file with one JSON line
 * a request. Lines are buffered and written with one synchronous call per 64 KB, so a flush is complete when it
 * returns, also in a signal handler. Main thread of the web's process.
 */
import fs from 'node:fs'
import { Beat } from './beat.ts'
import type { Page } from './types.ts'

export interface RequestEntry {
  /** Milliseconds from the server's start to the arrival of the request's headers, with a fraction, by a monotonic clock. */
  readonly t: number
  readonly host: string
  readonly path: string
  /** 0: closed or stalled without an answer. */
  readonly status: number
  /** Bytes sent after the headers. */
  readonly bytes: number
  /** SHA-256 of those bytes, in hex; absent without a body. */
  readonly sha256?: string
  readonly ua: string
  /** The headers may have arrived up to so many milliseconds before `t`, because the server was held up; absent when it was not. */
  readonly lateMsMax?: number
}

const bufferedCharsMax = 64 * 1024

/** URLs that are no pages of the web (robots.txt, unknown paths) and are counted one by one. */
const otherUrlsMax = 10_000

export class RequestLog {
  total = 0
  readonly byStatus = new Map<number, number>()
  readonly #pages = new Map<number, Uint32Array>()
  readonly #others = new Map<string, number>()
  readonly #file: number | undefined
  readonly #beat: Beat | undefined
  #lines = ''
  #closed = false

  constructor(path: string | undefined) {
    if (path === undefined) return
    this.#file = fs.openSync(path, 'a')
    this.#beat = new Beat()
  }

  get hasFile(): boolean {
    return this.#file !== undefined
  }

  /** Of a request that arrives now, see `RequestEntry`; 0 without a file. */
  get lateMsMax(): number {
    return this.#beat?.lateMsMax ?? 0
  }

  /** `page` is undefined for what is no page of the web; `hostPages` is the number of its host's pages. */
  add(entry: RequestEntry, page: Page | undefined, hostPages: number): void {
    if (this.#closed) return
    this.total++
    this.byStatus.set(entry.status, (this.byStatus.get(entry.status) ?? 0) + 1)
    if (page?.kind === 'page') {
      let counts = this.#pages.get(page.hostIndex)
      if (counts === undefined) this.#pages.set(page.hostIndex, counts = new Uint32Array(hostPages))
      counts[page.index]! += 1
    } else {
      const key = entry.host + entry.path
      const count = this.#others.get(key)
      if (count !== undefined || this.#others.size < otherUrlsMax) this.#others.set(key, (count ?? 0) + 1)
    }
    if (this.#file === undefined) return
    this.#lines += JSON.stringify(entry) + '\n'
    if (this.#lines.length >= bufferedCharsMax) this.flush()
  }

  countOf(page: Page | undefined, host: string, path: string): number {
    if (page?.kind === 'page') return this.#pages.get(page.hostIndex)?.[page.index] ?? 0
    return this.#others.get(host + path) ?? 0
  }

  flush(): void {
    if (this.#file === undefined || this.#lines === '') return
    const lines = Buffer.from(this.#lines)
    this.#lines = ''
    for (let at = 0; at < lines.length;) at += fs.writeSync(this.#file, lines, at)
  }

  close(): void {
    if (this.#closed) return
    this.flush()
    this.#closed = true
    this.#beat?.close()
    if (this.#file !== undefined) fs.closeSync(this.#file)
  }
}

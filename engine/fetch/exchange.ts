/**
 * One request and its response on one connection, as undici tells it. Collects the head and the body as they came
 * (transfer codings removed, content codings untouched), reserves the body's bytes whole before it is read, cuts it at
 * its limit. Settles once; whatever undici tells afterwards is not heard. Main thread.
 *
 *   send --> head --> reserve --> body --> complete
 *              |         |          |
 *              |         |          +--> cut at the limit, or no more of it is wanted: complete, truncated, connection closed
 *              |         +-- no bytes free: the response is paused and the deadline held, until granted
 *              +--> refused by type: connection closed
 *
 * With a sink only a chunk's bytes are reserved, and while one is written the response is paused and the deadline held.
 */
import type { Clock } from '../core/clock.ts'
import type { FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { SinkWriter, type BodySink } from './body-sink.ts'
import type { ByteBudget, Release } from './byte-budget.ts'
import type { Connection, ResponseController, ResponseHandler } from './clients.ts'
import type { Deadline } from './deadline.ts'
import { failureOf } from './failure-codes.ts'
import { boundFraming } from './framing-bound.ts'
import { pauseResponse } from './paused-response.ts'
import { isBodiless, readHead, type ResponseHead } from './response-head.ts'

export interface ExchangeRequest {
  readonly path: string
  readonly headers: readonly string[]
  readonly bodyBytesMax: number
  readonly acceptBody: (status: number, contentType: string | undefined) => 'read' | 'refuse'
  /** Takes the body; absent: it is kept. */
  readonly sink?: BodySink
  /** Called when the request is written: undici makes its parser before the first one, which may take a while. */
  readonly onSend: () => void
  /** Called when it is known how many bytes the body may take, and before they are reserved. */
  readonly onBody?: (bytes: number) => void
  /** Called once at the end: so many bytes came, of whatever kind. */
  readonly onBytes: (count: number) => void
}

export interface ExchangeMeans {
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly deadline: Deadline
}

export type ExchangeEnd =
  | {
      readonly kind: 'complete'
      readonly head: ResponseHead
      readonly body: readonly Uint8Array[]
      readonly bodyBytes: number
      readonly truncated: boolean
      readonly ttfbMs: number
      /** Gives the body's bytes back to the budget. */
      readonly release: Release
    }
  | {
      readonly kind: 'failed'
      readonly code: FailureCode | 'aborted'
      readonly detail: string
      /** Not a byte of a response came, and the connection was closed: on a kept one, another may serve. */
      readonly unanswered: boolean
      readonly head?: ResponseHead
      readonly ttfbMs?: number
    }

/** Never rejects. The connection is reusable afterwards when its socket is not destroyed. */
export function exchange(connection: Connection, request: ExchangeRequest, means: ExchangeMeans): Promise<ExchangeEnd> {
  return new Promise((resolve) => {
    const handler = new ExchangeHandler({ connection, request, means, resolve })
    means.deadline.onStop((stop) => handler.fail(stop.code, stop.detail))
    // A deadline that has passed already has settled it.
    if (means.deadline.stopped !== undefined) return
    handler.boundFraming()
    connection.send(request.path, request.headers, handler)
  })
}

interface ExchangeState {
  readonly connection: Connection
  readonly request: ExchangeRequest
  readonly means: ExchangeMeans
  readonly resolve: (end: ExchangeEnd) => void
}

const nothing: Release = () => {}

class ExchangeHandler implements ResponseHandler {
  readonly #of: ExchangeState
  readonly #bytesBefore: number
  #sentAtMs: number
  #firstByteAtMs: number | undefined
  #head: ResponseHead | undefined
  #chunks: Uint8Array[] = []
  #bodyBytes = 0
  #release: Release = nothing
  /** Ends the wait for bytes. */
  #stopWaiting: (() => void) | undefined
  #writer: SinkWriter | undefined
  /** Nothing that comes now belongs to the body: it is whole, or cut. */
  #isOver = false
  #truncated = false
  #settled = false
  #unboundFraming: () => void = nothing

  constructor(of: ExchangeState) {
    this.#of = of
    this.#sentAtMs = of.means.clock.nowMs()
    this.#bytesBefore = of.connection.socket.bytesRead
  }

  boundFraming(): void {
    this.#unboundFraming = boundFraming(this.#of.connection.socket, () => this.#bodyBytes, () => {
      if (this.#head === undefined) this.fail('headers_too_large', `more than ${limits.framingBytesMax} bytes came, and no complete head of a response`)
      else this.fail('bad_http', 'what divides the body, or follows it, is much larger than the body')
    })
  }

  // undici takes an object with this method for a handler of its current kind.
  onRequestStart(): void {
    if (this.#settled) return
    this.#sentAtMs = this.#of.means.clock.nowMs()
    // undici writes when this has returned, which was seen to take up to 85 ms on a busy machine.
    queueMicrotask(this.#of.request.onSend)
  }

  onResponseStarted(): void {
    this.#firstByteAtMs ??= this.#of.means.clock.nowMs()
  }

  onResponseStart(controller: ResponseController, status: number, _headers: unknown, statusText?: string): void {
    // Interim responses (100 to 199) come before the response.
    if (this.#settled || status < 200) return
    const { request, means } = this.#of
    const head = readHead(status, statusText ?? '', controller.rawHeaders as readonly Uint8Array[])
    this.#head = head
    // undici counts names and values alone, so that many short fields make a much larger block.
    if (head.headerBlock.length > limits.headerBytesMax) {
      return this.fail('headers_too_large', `the head is larger than ${limits.headerBytesMax} bytes`)
    }
    if (request.acceptBody(status, head.contentType) === 'refuse') {
      return this.fail('unsupported_type', `content type ${head.contentType ?? 'none'}`)
    }
    const room = request.sink === undefined ? request.bodyBytesMax : Math.min(request.bodyBytesMax, limits.sitemapChunkBytesMax)
    if (request.sink !== undefined) this.#writer = this.#openSink(request.sink, head, controller)
    const bytes = Math.min(head.contentLength ?? room, room)
    request.onBody?.(bytes)
    const release = means.budget.tryReserve(bytes)
    if (release === undefined) return this.#waitForBytes(controller, bytes)
    this.#release = release
    means.deadline.limitSilence(limits.bodyStallMsMax)
  }

  onResponseData(_controller: ResponseController, chunk: Uint8Array): void {
    if (this.#settled || this.#isOver) return
    this.#of.means.deadline.heard()
    const room = this.#of.request.bodyBytesMax - this.#bodyBytes
    const kept = chunk.length <= room ? chunk : chunk.subarray(0, room)
    this.#bodyBytes += kept.length
    if (kept.length > 0 && this.#writer === undefined) this.#chunks.push(kept)
    else if (kept.length > 0) this.#writer!.add(kept)
    if (kept.length < chunk.length) this.#end(true)
  }

  onResponseEnd(): void {
    this.#end(false)
  }

  onResponseError(_controller: ResponseController, error: Error): void {
    if (this.#isOver) return
    // undici misses the body that a Content-Length promises, which a 304 may (RFC 9110 section 8.6): it is whole with its head.
    if (this.#head !== undefined && isBodiless(this.#head)) return this.#end(false)
    const { code, detail } = failureOf(error, this.#head === undefined ? 'head' : 'body')
    this.fail(code, detail, this.#firstByteAtMs === undefined && code === 'connection_closed')
  }

  fail(code: FailureCode | 'aborted', detail: string, unanswered = false): void {
    if (!this.#settle()) return
    this.#release()
    this.#of.connection.destroy()
    this.#of.resolve({
      kind: 'failed', code, detail, unanswered,
      ...(this.#head === undefined ? {} : { head: this.#head }),
      ...(this.#firstByteAtMs === undefined ? {} : { ttfbMs: this.#firstByteAtMs - this.#sentAtMs }),
    })
  }

  /** No byte of the body is heard any more; a sink may still have some to write. */
  #end(truncated: boolean): void {
    if (this.#settled || this.#isOver) return
    this.#isOver = true
    this.#truncated = truncated
    // The rest of a cut body is of no use, and reading it to keep the connection could take for ever.
    if (truncated) this.#of.connection.destroy()
    if (this.#writer === undefined) this.#complete()
    else this.#writer.end()
  }

  #complete(): void {
    if (!this.#settle()) return
    this.#of.resolve({
      kind: 'complete', head: this.#head!, body: this.#chunks, bodyBytes: this.#bodyBytes, truncated: this.#truncated,
      ttfbMs: this.#firstByteAtMs! - this.#sentAtMs, release: this.#release,
    })
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    const { connection, means, request } = this.#of
    request.onBytes(connection.socket.bytesRead - this.#bytesBefore)
    means.deadline.onStop(undefined)
    this.#unboundFraming()
    this.#stopWaiting?.()
    return true
  }

  #openSink(sink: BodySink, head: ResponseHead, controller: ResponseController): SinkWriter {
    const { connection, means: { deadline } } = this.#of
    deadline.extend(sink.deadlineMs)
    let goOn: (() => void) | undefined
    return new SinkWriter((chunk) => sink.write(chunk, head), {
      pause: () => {
        deadline.hold()
        // A response that has ended is paused no more: its socket may be another's soon.
        goOn = this.#isOver ? undefined : pauseResponse(controller, connection.socket)
      },
      resume: () => {
        if (this.#settled) return
        deadline.proceed()
        goOn?.()
      },
      done: (isWanted) => {
        if (!isWanted && !this.#isOver) {
          this.#isOver = true
          this.#truncated = true
          connection.destroy()
        }
        this.#complete()
      },
    })
  }

  #waitForBytes(controller: ResponseController, bytes: number): void {
    const { budget, deadline } = this.#of.means
    const giveUp = new AbortController()
    const resume = pauseResponse(controller, this.#of.connection.socket)
    deadline.hold()
    this.#stopWaiting = () => giveUp.abort()
    const grant = (release: Release | undefined): void => {
      if (this.#settled || release === undefined) return release?.()
      this.#release = release
      deadline.proceed()
      deadline.limitSilence(limits.bodyStallMsMax)
      resume()
    }
    // Runs in a microtask, so never inside undici's parser, which could not be resumed there.
    void budget.reserve(bytes, giveUp.signal).then(grant)
  }
}

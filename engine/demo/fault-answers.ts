/**
 * How faulty pages answer: each fault as a server in the wild shows it. Every one is noted in the log with what was
 * really sent; status 0 stands for no answer at all. Main thread of the web's process.
 */
import type http from 'node:http'
import type { Bodies } from './bodies.ts'
import type { Site } from './site.ts'
import type { Page } from './types.ts'

/** A reset that overtakes unread data looks like an orderly end to the client's kernel (Linux 6.18); so let it be read. */
const resetDelayMs = 50
/** Of a header without options, as zlib writes it. */
const gzipHeaderBytes = 10

/** One request with its ways to answer. */
export interface Exchange {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  /** Enters the request into the log; `send` does so by itself. */
  note(status: number, chunks: readonly Buffer[]): void
  /** A complete answer with its length; header names and values alternate. */
  send(status: number, headers: readonly string[], chunks: readonly Buffer[]): void
  /** Resets the connection, also below TLS. */
  reset(): void
}

const statusOf = { not_found: 404, gone: 410, server_error: 500, unavailable: 503 } as const
const pngBytes = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

export async function answerFault(exchange: Exchange, page: Page, web: { readonly site: Site, readonly bodies: Bodies }): Promise<void> {
  const html = ['content-type', 'text/html; charset=utf-8']
  switch (page.fault) {
    case 'none':
      return
    case 'not_found':
    case 'gone':
    case 'server_error':
    case 'unavailable': {
      const status = statusOf[page.fault]
      return exchange.send(status, html, [Buffer.from(`<!DOCTYPE html><title>${status}</title><p>Nothing here: ${status}.</p>\n`)])
    }
    case 'redirect':
    case 'redirect_chain':
    case 'redirect_self':
      return exchange.send(302, [...html, 'location', web.site.redirectTarget(page)], [Buffer.from('<!DOCTYPE html><title>Moved</title>\n')])
    case 'wrong_type':
      return exchange.send(200, ['content-type', 'image/png'], [Buffer.concat([pngBytes, Buffer.alloc(8_192, page.index & 255)])])
    case 'broken_gzip': {
      const body = Buffer.concat(await web.bodies.body(page, 'gzip'))
      // Bits 11 behind the ten bytes of the header are a block of a type that does not exist. Further on, a small body may
      // take them for data, and then only its checksum is wrong, which browsers do not look at, nor do we.
      body.fill(0xff, gzipHeaderBytes, gzipHeaderBytes + 64)
      return exchange.send(200, [...html, 'content-encoding', 'gzip'], [body])
    }
    case 'stall':
      return exchange.note(0, [])
    case 'no_answer':
      exchange.note(0, [])
      exchange.request.socket.destroy()
      return
    case 'reset':
    case 'truncated':
      return cutShort(exchange, page, web.bodies)
  }
}

/** Promises a whole body, sends half of it, and ends the connection: by a reset, or as if all were well. */
async function cutShort(exchange: Exchange, page: Page, bodies: Bodies): Promise<void> {
  const whole = Buffer.concat(await bodies.body(page, 'identity'))
  const half = whole.subarray(0, whole.length >> 1)
  const { request, response } = exchange
  exchange.note(200, [half])
  response.writeHead(200, ['content-type', bodies.contentType(page), 'content-length', String(whole.length)])
  response.write(half, () => {
    if (page.fault === 'reset') setTimeout(exchange.reset, resetDelayMs).unref()
    else request.socket.end()
  })
}

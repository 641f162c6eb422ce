/**
 * A tunnel through an HTTP proxy (CONNECT, RFC 9110 section 9.3.6): from a connection to the proxy to one that ends at the
 * site, with the site's own TLS inside. http sites are tunnelled too, and not asked for in absolute form: what comes out of
 * a tunnel is the site's word alone, so that a 429 of the proxy is never taken for one of the site, the proxy's credentials
 * go to nobody else, and a connection that is kept belongs to one site. Main thread.
 *
 *     connected to the proxy --> CONNECT --> head of the answer --> 2xx: TLS with the site
 *
 * Invariant: of an answer at most `headerBytesMax` are read, under the deadline of the fetch; a failure is a value.
 */
import type { Socket } from 'node:net'
import * as tls from 'node:tls'
import type { FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { tlsOptionsOf } from './connector.ts'
import type { Deadline } from './deadline.ts'
import { failureOf } from './failure-codes.ts'
import type { TlsTrust } from './tls-context.ts'

/** What a proxy answered to a CONNECT, or why there is no answer. `silence`: none at the deadline. `broken`: no HTTP, or the connection ended. */
export type ProxyAnswer =
  | Answer
  | Broken
  | { readonly kind: 'silence' | 'aborted'; readonly detail: string }
/** `headers`: name, value, name, value. */
interface Answer { readonly kind: 'answer'; readonly status: number; readonly headers: readonly string[] }
interface Broken { readonly kind: 'broken'; readonly detail: string }

export interface TunnelRequest {
  /** `HOST:PORT`, IPv6 in brackets. */
  readonly authority: string
  readonly userAgent: string
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined
}

/** Asks for a tunnel. With an answer of 2xx the socket is the tunnel; else it is of no use any more. */
export async function openTunnel(socket: Socket, { authority, userAgent, authorization }: TunnelRequest, deadline: Deadline): Promise<ProxyAnswer> {
  const credentials = authorization === undefined ? '' : `Proxy-Authorization: ${authorization}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: ${userAgent}\r\n${credentials}\r\n`)
  const answer = await new Promise<ProxyAnswer>((resolve) => {
    let received = Buffer.alloc(0)
    const read = (): void => {
      for (let data = socket.read() as Buffer | null; data !== null; data = socket.read() as Buffer | null) received = Buffer.concat([received, data])
      const found = headOf(received)
      if (found === undefined) return
      // Not even a byte of the site's, which may speak first, is lost.
      if (found.kind === 'answer' && received.length > found.length) socket.unshift(received.subarray(found.length))
      settle(found)
    }
    const broken = (): void => settle({ kind: 'broken', detail: 'the proxy closed the connection before it had answered' })
    const settle = (answer: ProxyAnswer): void => {
      socket.off('readable', read).off('end', broken).off('close', broken)
      resolve(answer)
    }
    socket.on('readable', read).once('end', broken).once('close', broken)
    deadline.onStop((stop) => settle(stop.code === 'aborted' ? { kind: 'aborted', detail: stop.detail } : { kind: 'silence', detail: `the proxy did not answer: ${stop.detail}` }))
  })
  deadline.onStop(undefined)
  return answer
}

/** The first head in the bytes that is no interim one; undefined while it is not complete. */
function headOf(bytes: Buffer, from = 0): (Answer & { readonly length: number }) | Broken | undefined {
  const end = bytes.indexOf('\r\n\r\n', from)
  const length = end < 0 ? bytes.length : end + 4
  if (length > limits.headerBytesMax) return { kind: 'broken', detail: `the head of the proxy's answer is longer than ${limits.headerBytesMax} bytes` }
  if (!'HTTP/1.'.startsWith(bytes.toString('latin1', from, from + 7))) return { kind: 'broken', detail: "the proxy's answer is not HTTP" }
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', from, end).split('\r\n')
  const status = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(first)?.[1]
  if (status === undefined) return { kind: 'broken', detail: "the proxy's answer is not HTTP" }
  if (status.startsWith('1')) return headOf(bytes, length)
  const headers = lines.flatMap((line) => {
    const colon = line.indexOf(':')
    return colon > 0 ? [line.slice(0, colon), line.slice(colon + 1).trim()] : []
  })
  return { kind: 'answer', status: Number(status), headers, length }
}

export type Secured =
  | { readonly ok: true; readonly socket: tls.TLSSocket }
  | { readonly ok: false; readonly code: FailureCode | 'aborted'; readonly detail: string }

/** TLS with the site through a tunnel; the certificate must name the site. The socket is destroyed when it fails. */
export async function secure(tunnel: Socket, name: string, trust: TlsTrust, deadline: Deadline): Promise<Secured> {
  const socket = tls.connect({ ...tlsOptionsOf(name, trust), socket: tunnel })
  const result = await new Promise<Secured>((resolve) => {
    const fail = (code: FailureCode | 'aborted', detail: string): void => {
      socket.destroy()
      tunnel.destroy()
      resolve({ ok: false, code, detail })
    }
    // Errors that come later belong to the exchange, which sees them too; without a listener they would be thrown.
    socket.on('error', (error) => {
      const { code, detail } = failureOf(error, 'handshake')
      fail(code, detail)
    })
    socket.once('close', () => fail('tls_failed', 'the tunnel was closed in the TLS handshake'))
    socket.once('secureConnect', () => resolve({ ok: true, socket }))
    deadline.onStop((stop) => fail(stop.code === 'timeout' ? 'connect_timeout' : 'aborted', stop.detail))
  })
  deadline.onStop(undefined)
  return result
}

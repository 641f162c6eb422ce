/**
 * Opens one connection to an address that was resolved already. It asks the guard about that very address, literal or
 * resolved, connects to it with no second look-up and with the name only as server name, and asks the guard again
 * about the address at the other end of the socket (invariant 12). A failure is a value. Main thread.
 *
 * Node's own choice between address families is off: it aborts each try after 250 ms (nodejs/node #54359), which a far
 * host does not meet.
 */
import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Clock } from '../core/clock.ts'
import type { FailureCode } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { TlsFacts } from '../core/types.ts'
import type { AddressGuard } from './address-guard.ts'
import type { Deadline } from './deadline.ts'
import { failureOf } from './failure-codes.ts'
import { afterPatiently } from './patience.ts'
import type { TlsTrust } from './tls-context.ts'

/** Where to connect to. `name` is the host name for TLS, without brackets or trailing dot. */
export interface Target {
  readonly secure: boolean
  readonly name: string
  readonly port: number
  readonly address: string
  readonly family: 4 | 6
}

/** What making a connection showed. */
export interface ConnectionFacts {
  /** The address at the other end; absent at the end of a tunnel. */
  readonly ip?: string
  readonly connectMs: number
  readonly tlsMs?: number
  readonly tls?: TlsFacts
}

export type ConnectResult =
  | { readonly ok: true, readonly socket: net.Socket, readonly facts: ConnectionFacts }
  | { readonly ok: false, readonly code: FailureCode | 'aborted', readonly detail: string, readonly noFiles?: true, readonly isLocal?: true, readonly connectMs?: number }

export interface ConnectorOptions {
  readonly guard: AddressGuard
  readonly trust: TlsTrust
  readonly clock: Clock
}

/** Connects under the deadline of the fetch and the connect timeout, whichever ends first. Never rejects. */
export async function connect(target: Target, options: ConnectorOptions, deadline: Deadline): Promise<ConnectResult> {
  const verdict = options.guard.verdict(target.address)
  if (!verdict.allowed) return { ok: false, code: 'address_refused', detail: verdict.why }
  const result = await new Promise<ConnectResult>((resolve) => {
    const { clock, guard } = options
    const startMs = clock.nowMs()
    let connectedMs: number | undefined
    const socket = open(target, options.trust)
    let cancelLook: (() => void) | undefined
    const settle = (result: ConnectResult): void => {
      cancelTimer()
      cancelLook?.()
      if (result.ok) return resolve(result)
      socket.destroy()
      // A handshake that fails or does not end shows all the same that the network is there.
      resolve({ ...result, ...(connectedMs !== undefined && { connectMs: connectedMs - startMs }) })
    }
    const settleConnected = (): void => {
      const connectMs = connectedMs! - startMs
      const ip = socket.remoteAddress ?? target.address
      settle({ ok: true, socket, facts: { ip, connectMs, ...tlsFacts(socket, () => clock.nowMs() - connectedMs!) } })
    }
    const cancelTimer = afterPatiently(clock, limits.connectTimeoutMs, () => {
      settle({ ok: false, code: 'connect_timeout', detail: `no connection to ${target.address} within ${limits.connectTimeoutMs} ms` })
    })
    // What OpenSSL passes over is told to nobody: a flood of it kept the loop at work until the connect timeout.
    const look = (): void => {
      if (handshakeBytes(socket) > limits.handshakeBytesMax) settle({ ok: false, code: 'tls_failed', detail: `more than ${limits.handshakeBytesMax} bytes came, and the handshake was not done` })
      else cancelLook = clock.after(limits.handshakeLookMs, look)
    }
    // Errors that come later belong to the exchange, which sees them too; without a listener they would be thrown.
    socket.on('error', (error) => {
      const { isLocal, ...failure } = failureOf(error, connectedMs === undefined ? 'connect' : 'handshake')
      // Many networks have no IPv6 and are well.
      settle({ ok: false, ...failure, ...(isLocal === true && target.family === 4 && { isLocal }) })
    })
    socket.once('connect', () => {
      connectedMs = clock.nowMs()
      const remote = guard.verdict(socket.remoteAddress ?? target.address)
      if (!remote.allowed) settle({ ok: false, code: 'address_refused', detail: remote.why })
      else if (target.secure) look()
      else settleConnected()
    })
    if (target.secure) socket.once('secureConnect', settleConnected)
    // The host, and not the URL, is to blame for a deadline that passes before there is a connection.
    deadline.onStop((stop) => settle({ ok: false, code: stop.code === 'timeout' ? 'connect_timeout' : 'aborted', detail: stop.detail }))
  })
  deadline.onStop(undefined)
  return result
}

function open({ secure, name, port, address, family }: Target, trust: TlsTrust): net.Socket {
  const common = { host: address, port, family, autoSelectFamily: false, noDelay: true }
  if (!secure) return net.connect(common)
  return tls.connect({ ...common, ...tlsOptionsOf(name, trust) })
}

/** A TLS socket counts what was decrypted. Node names nothing public below it, and a socket of our own there would be one more object for each connection. */
function handshakeBytes(socket: net.Socket): number {
  return (socket as { readonly _handle?: { readonly _parent?: { readonly bytesRead?: number } } | null })._handle?._parent?.bytesRead ?? 0
}

/** TLS with the host of this name. */
export function tlsOptionsOf(name: string, { context, insecure }: TlsTrust): tls.ConnectionOptions {
  return {
    secureContext: context,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: !insecure,
    // RFC 6066 section 3: a server name is never an address. The certificate must name the host either way.
    ...(net.isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
  }
}

export function tlsFacts(socket: net.Socket, tlsMs: () => number): { tls: TlsFacts, tlsMs: number } | undefined {
  if (!(socket instanceof tls.TLSSocket)) return undefined
  const version = socket.getProtocol() ?? 'unknown'
  return { tls: { version, cipher: socket.getCipher().name, resumed: socket.isSessionReused() }, tlsMs: tlsMs() }
}

/**
 * A web of servers that mean harm: each row of the table (hostile-rows.ts) is a host of its own, `NAME.hostile.test`,
 * that does what its row says on every path but /robots.txt, which is 404. What a host got rid of before we hung up is
 * counted here, by the server. Writes are paced by turns of the event loop, never by its ticks, so that a client in the
 * same process hangs up in time and the counts tell what it took.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as tls from 'node:tls'
import { makeAuthority } from '../../engine/demo/authority.ts'
import { expiredCertificate } from './fault-server.ts'
import { hostileRows, makeBombs, type HostileListener, type HostilePeer, type HostileRow } from './hostile-rows.ts'
import { onRequests, portOf, RawServers } from './raw-servers.ts'

export interface HostileTraffic {
  readonly connections: number
  /** Those for robots.txt are not counted. */
  readonly requests: number
  /** Bytes that left the server, robots.txt included; those of open connections too. */
  readonly bytesSent: number
}

export interface HostileServer {
  /** The address of a row's page. */
  url(row: HostileRow): string
  /** Every host of the table and its address, as --resolve takes them. */
  readonly resolve: Readonly<Record<string, string>>
  /** Certificates to trust: then what is wrong with those of the rows is what their rows say. */
  readonly caFile: string
  traffic(row: HostileRow): HostileTraffic
  readonly connectionsOpen: number
  /** Resolves when no connection is open. */
  drained(): Promise<void>
  close(): Promise<void>
}

export function hostOfRow({ name }: HostileRow): string {
  return `${name}.hostile.test`
}

const rowOfHost = new Map(hostileRows.map((row) => [hostOfRow(row), row]))
/** A connection over TLS, or over less, does not say its host before its request: each listener but the first has one row. */
const rowOfListener = new Map(hostileRows.map((row) => [row.listener, row]))

interface Counts {
  connections: number
  requests: number
  bytesOfClosed: number
  readonly open: Set<net.Socket>
}

const sentBy = (socket: net.Socket): number => socket.bytesWritten - socket.writableLength

export async function startHostileServer(): Promise<HostileServer> {
  makeBombs()
  const [own, other, unknown] = await Promise.all([makeAuthority(['hostile.test']), makeAuthority(['elsewhere.test']), makeAuthority(['hostile.test'])])
  const folder = await mkdtemp(join(tmpdir(), 'sluice-hostile-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, [own.caPem, other.caPem, expiredCertificate.cert].join('\n'))
  const counts = new Map(hostileRows.map((row): [HostileRow, Counts] => [row, { connections: 0, requests: 0, bytesOfClosed: 0, open: new Set() }]))

  function count(row: HostileRow, socket: net.Socket): void {
    const of = counts.get(row)!
    if (of.open.has(socket)) return
    of.connections++
    of.open.add(socket)
    socket.once('close', () => {
      of.open.delete(socket)
      of.bytesOfClosed += sentBy(socket)
    })
  }

  const serve = (socket: net.Socket): void => onRequests(socket, (head, number) => answer(socket, head, number))

  function answer(socket: net.Socket, head: string, requestOnConnection: number): void {
    const path = head.split(' ', 2)[1] ?? '/'
    const row = rowOfHost.get(/^host: ([^:\r]+)/im.exec(head)?.[1] ?? '')
    if (row === undefined || path === '/robots.txt') {
      if (row?.listener === 'http') count(row, socket)
      socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      return
    }
    if (row.listener === 'http') count(row, socket)
    counts.get(row)!.requests++
    row.fault(peerOf(socket, path, requestOnConnection))
  }

  /** A listener that speaks no HTTP. */
  const raw = (listener: HostileListener) => (socket: net.Socket): void => {
    const row = rowOfListener.get(listener)!
    counts.get(row)!.requests++
    row.fault(peerOf(socket, '/', 1))
  }

  const servers: Readonly<Record<HostileListener, net.Server>> = {
    http: net.createServer(serve),
    wrong_name: tls.createServer({ cert: other.certPem, key: other.keyPem }, serve),
    unknown_authority: tls.createServer({ cert: unknown.certPem, key: unknown.keyPem }, serve),
    expired: tls.createServer(expiredCertificate, serve),
    tls_garbage: net.createServer(raw('tls_garbage')),
    tls_flood: net.createServer(raw('tls_flood')),
    tls_silent: net.createServer(raw('tls_silent')),
    tls_reset: net.createServer(raw('tls_reset')),
    tls_plain: net.createServer(raw('tls_plain')),
  }
  const raws = await RawServers.listen(Object.values(servers), (socket, server) => {
    const row = rowOfListener.get(Object.entries(servers).find((entry) => entry[1] === server)![0] as HostileListener)!
    if (row.listener !== 'http') count(row, socket)
  })

  return {
    url(row) {
      return `${row.listener === 'http' ? 'http' : 'https'}://${hostOfRow(row)}:${portOf(servers[row.listener])}${row.path}`
    },
    resolve: Object.fromEntries(hostileRows.map((row) => [hostOfRow(row), '127.0.0.1'])),
    caFile,
    traffic(row) {
      const { connections, requests, bytesOfClosed, open } = counts.get(row)!
      return { connections, requests, bytesSent: [...open].reduce((sum, socket) => sum + sentBy(socket), bytesOfClosed) }
    },
    get connectionsOpen() { return raws.open },
    drained: () => raws.drained(),
    async close() {
      await raws.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const PIECE_BYTES = 16 * 1_024

function peerOf(socket: net.Socket, path: string, requestOnConnection: number): HostilePeer {
  const write = (bytes: string | Buffer): void => { if (socket.writable) socket.write(bytesOf(bytes)) }
  const pieces = (bytes: Buffer, then: () => void): void => {
    let at = 0
    const more = (): void => {
      if (!socket.writable) return
      if (socket.writableLength === 0) write(bytes.subarray(at, at += PIECE_BYTES))
      if (at < bytes.length) setImmediate(more)
      else then()
    }
    more()
  }
  const pour = (bytes: Buffer): void => pieces(bytes, () => setImmediate(pour, bytes))
  return {
    socket, path, requestOnConnection, write,
    send: (bytes) => pieces(bytesOf(bytes), () => {}),
    pour: (bytes) => pour(bytesOf(bytes)),
    drip(everyMs, part) {
      const timer = setInterval(() => write(part), everyMs)
      socket.once('close', () => clearInterval(timer))
    },
  }
}

function bytesOf(bytes: string | Buffer): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
}

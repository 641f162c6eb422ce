/**
 * A real TCP and TLS server whose paths misbehave as servers in the wild do. Each path is one fault; what it does is
 * its line in the table. Paths below /manual/ do nothing: the test takes the connection with `taken` and plays the
 * server itself, so that the order of events is the test's and not a timer's.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as tls from 'node:tls'
import { gzipSync } from 'node:zlib'
import { makeAuthority } from '../../engine/demo/authority.ts'
import { onRequests, portOf, RawServers } from './raw-servers.ts'

/** One request, and the connection it came on. */
export interface Peer {
  readonly socket: net.Socket
  readonly path: string
  /** The request head as text. */
  readonly head: string
  /** 1 for the first request on its connection. */
  readonly requestOnConnection: number
  /** 1 for the first request for its path. */
  readonly requestForPath: number
  /** Writes a complete answer: status, header lines, body; Content-Length is added. */
  answer(status: number, headers: readonly string[], body?: string | Buffer): void
  write(bytes: string | Buffer): void
}

type Fault = (peer: Peer) => void

export type Listener = 'http' | 'https' | 'expired' | 'stalled' | 'reset'

export interface FaultServer {
  /** `http://127.0.0.1:PORT/path`. */
  url(path: string): string
  /** The same under a name and another listener; the names are to be resolved to 127.0.0.1. */
  urlOf(listener: Listener, path: string, host?: string): string
  /** Certificate of the authority that signed the https listener's, which names fault.test and *.fault.test. */
  readonly caFile: string
  /** A certificate of its own that expired in 2020, for trusting it nevertheless. */
  readonly expiredCaFile: string
  /** The next request for a path that was not taken yet. */
  taken(path: string): Promise<Peer>
  /** Connections that are open now, on all listeners; and how many there were. */
  readonly connectionsOpen: number
  readonly connections: number
  readonly requests: number
  /** Resolves when no connection is open. */
  drained(): Promise<void>
  close(): Promise<void>
}

const html = '<!doctype html><title>fault</title><p>A page with <a href="/ok">a link</a>.</p>'
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(100_000, 7)])
const typeHtml = 'Content-Type: text/html; charset=utf-8'
const headHtml = `HTTP/1.1 200 OK\r\n${typeHtml}\r\n`

const faults: Readonly<Record<string, Fault>> = {
  '/ok': (peer) => peer.answer(200, [typeHtml], html),
  '/ok-close': (peer) => { peer.answer(200, [typeHtml, 'Connection: close'], html); peer.socket.end() },
  '/no-type': (peer) => peer.answer(200, [], html),
  '/no-content': (peer) => peer.write('HTTP/1.1 204 No Content\r\n\r\n'),
  '/until-end': (peer) => { peer.write(`${headHtml}\r\n${html}`); peer.socket.end() },
  '/chunked': (peer) => peer.write(`${headHtml}Transfer-Encoding: chunked\r\n\r\n${chunk('one ')}${chunk('two')}0\r\n\r\n`),
  '/interim': (peer) => { peer.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(20)); peer.answer(200, [typeHtml], html) },
  '/large': (peer) => peer.answer(200, [typeHtml], Buffer.alloc(100_000, 'large ')),
  '/echo': (peer) => peer.answer(200, ['Content-Type: text/plain'], peer.head),

  '/close': (peer) => peer.socket.end(),
  '/reset': (peer) => peer.socket.resetAndDestroy(),
  '/silence': () => {},
  '/garbage': (peer) => { peer.write(Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 7_919 + 13) & 255))); peer.socket.end() },
  '/no-status-line': (peer) => { peer.write(`${typeHtml}\r\n\r\n${html}`); peer.socket.end() },
  '/half-a-head': (peer) => { peer.write('HTTP/1.1 200 OK\r\nContent-Ty'); peer.socket.end() },
  '/two-lengths': (peer) => peer.write(`${headHtml}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
  '/header-bomb': (peer) => peer.answer(200, [typeHtml, `X-Bomb: ${'b'.repeat(40_000)}`], html),
  '/header-endless': (peer) => { peer.write(headHtml); drip(peer, 1, (at) => `X-Header-${at}: ${'v'.repeat(100)}\r\n`) },
  '/header-slow': (peer) => { peer.write(headHtml); drip(peer, 10, () => 'X') },
  '/interim-endless': (peer) => drip(peer, 1, () => 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),

  '/body-50mb': (peer) => { peer.write(`${headHtml}Content-Length: ${50 * 1_048_576}\r\n\r\n`); pour(peer, (block) => block, 50 * 16) },
  '/chunked-endless': (peer) => { peer.write(`${headHtml}Transfer-Encoding: chunked\r\n\r\n`); pour(peer, chunk, Number.POSITIVE_INFINITY) },
  '/body-slow': (peer) => { peer.write(`${headHtml}Content-Length: 1000000\r\n\r\n`); drip(peer, 10, () => 'x') },
  '/body-stall': (peer) => peer.write(`${headHtml}Content-Length: 1000\r\n\r\nthe beginning`),
  '/length-short': (peer) => peer.write(`${headHtml}Content-Length: 5\r\n\r\nhello, and much more than was said`),
  '/length-long': (peer) => { peer.write(`${headHtml}Content-Length: 1000\r\n\r\nless than was said`); peer.socket.end() },
  '/length-long-reset': (peer) => { peer.socket.write(`${headHtml}Content-Length: 1000\r\n\r\nless`, () => peer.socket.resetAndDestroy()) },
  '/chunked-cut': (peer) => { peer.write(`${headHtml}Transfer-Encoding: chunked\r\n\r\n${chunk('a beginning')}`); peer.socket.end() },
  '/chunked-cut-close': (peer) => { peer.write(`${headHtml}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('a beginning')}`); peer.socket.end() },
  '/chunked-bad': (peer) => { peer.write(`${headHtml}Transfer-Encoding: chunked\r\n\r\nzz\r\nnot a size\r\n`); peer.socket.end() },
  '/gzip-broken': (peer) => peer.answer(200, [typeHtml, 'Content-Encoding: gzip'], gzipSync(html).fill(0xff, 12, 30)),
  '/gzip-bomb': (peer) => peer.answer(200, [typeHtml, 'Content-Encoding: gzip'], gzipSync(Buffer.alloc(20 * 1_048_576))),

  // By the first label of the host name: metadata, loop, unavailable, missing; under any other name it has one rule.
  '/robots.txt': (peer) => {
    switch (/^host: ([a-z]+)\./im.exec(peer.head)?.[1]) {
      case 'metadata': return peer.answer(302, ['Location: http://169.254.169.254/robots.txt'])
      case 'loop': return peer.answer(301, ['Location: /robots.txt'])
      case 'unavailable': return peer.answer(503, ['Retry-After: 120'])
      case 'missing': return peer.answer(404, [])
      default: return peer.answer(200, ['Content-Type: text/plain', 'Cache-Control: max-age=600'], 'User-agent: *\nDisallow: /private/\n')
    }
  },
  '/image': (peer) => peer.answer(200, ['Content-Type: image/png'], png),
  '/image-missing': (peer) => peer.answer(404, ['Content-Type: image/png'], png.subarray(0, 100)),
  '/redirect-self': (peer) => peer.answer(302, ['Location: /redirect-self']),
  '/redirect-metadata': (peer) => peer.answer(302, ['Location: http://169.254.169.254/latest/meta-data/']),
  '/429': (peer) => peer.answer(429, ['Retry-After: 7', 'Content-Type: text/plain'], 'slow down'),
  '/503': (peer) => peer.answer(503, ['Retry-After: 7', 'Content-Type: text/plain'], 'busy'),
  '/500': (peer) => peer.answer(500, ['Content-Type: text/plain'], 'an error'),
  // A first request is answered and the connection kept; the next one on it meets a closed door.
  '/kept-then-closed': (peer) => (peer.requestOnConnection > 1 ? peer.socket.destroy() : peer.answer(200, [typeHtml], html)),
  '/kept-then-reset': (peer) => (peer.requestOnConnection > 1 ? peer.socket.resetAndDestroy() : peer.answer(200, [typeHtml], html)),
  '/kept-then-half': (peer) => (peer.requestOnConnection > 1 ? peer.socket.end('HTTP/1.1 2') : peer.answer(200, [typeHtml], html)),
}

/** The paths, for tests that want them all. */
export const faultPaths: readonly string[] = Object.keys(faults)

function chunk(data: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${Buffer.byteLength(data).toString(16)}\r\n`), Buffer.from(data), Buffer.from('\r\n')])
}

/** Writes a little every few milliseconds until the other side has gone. */
function drip({ socket, write }: Peer, everyMs: number, part: (at: number) => string): void {
  let at = 0
  const timer = setInterval(() => write(part(at++)), everyMs)
  socket.once('close', () => clearInterval(timer))
}

/** Writes blocks of 64 KB as fast as the other side takes them. */
function pour({ socket }: Peer, wrap: (block: Buffer) => Buffer, blocks: number): void {
  const block = wrap(Buffer.alloc(65_536, 'pour '))
  let left = blocks
  const more = (): void => {
    while (left-- > 0 && !socket.destroyed) if (!socket.write(block)) return
  }
  socket.on('drain', more)
  more()
}

export async function startFaultServer(): Promise<FaultServer> {
  const authority = await makeAuthority(['fault.test'])
  const folder = await mkdtemp(join(tmpdir(), 'sluice-fault-'))
  const caFile = join(folder, 'ca.pem')
  const expiredCaFile = join(folder, 'expired.pem')
  await writeFile(caFile, authority.caPem)
  await writeFile(expiredCaFile, expiredCertificate.cert)

  const untaken = new Map<string, Peer[]>()
  const takers = new Map<string, ((peer: Peer) => void)[]>()
  const forPath = new Map<string, number>()
  const counts = { connections: 0, requests: 0 }

  function serve(socket: net.Socket): void {
    // A TLS hello on the wrong port, answered as most servers do.
    socket.once('data', (data) => { if (data[0] === 0x16) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n') })
    onRequests(socket, (head, number) => dispatch(socket, head, number))
  }

  function dispatch(socket: net.Socket, head: string, requestOnConnection: number): void {
    const path = head.split(' ', 2)[1] ?? '/'
    counts.requests++
    forPath.set(path, (forPath.get(path) ?? 0) + 1)
    const write = (bytes: string | Buffer): void => { if (socket.writable) socket.write(bytes) }
    const peer: Peer = {
      socket, path, head, requestOnConnection, requestForPath: forPath.get(path)!, write,
      answer(status, headers, body = '') {
        const lines = [`HTTP/1.1 ${status} Status`, ...headers, `Content-Length: ${Buffer.byteLength(body)}`, '', '']
        write(Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), Buffer.from(body)]))
      },
    }
    const taker = takers.get(path)?.shift()
    if (taker !== undefined) taker(peer)
    else untaken.set(path, [...untaken.get(path) ?? [], peer])
    if (path.startsWith('/manual/')) return
    const fault = faults[path.split('?', 1)[0]!]
    if (fault === undefined) peer.answer(404, ['Content-Type: text/plain'], 'no such fault')
    else fault(peer)
  }

  const servers: Readonly<Record<Listener, net.Server>> = {
    http: net.createServer(serve),
    https: tls.createServer({ cert: authority.certPem, key: authority.keyPem, ALPNProtocols: ['http/1.1'] }, serve),
    expired: tls.createServer(expiredCertificate, serve),
    // Takes the connection and never says a word of TLS.
    stalled: net.createServer((socket) => socket.resume()),
    // Resets in the middle of the handshake.
    reset: net.createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
  }
  const raws = await RawServers.listen(Object.values(servers), () => { counts.connections++ })

  return {
    url: (path) => `http://127.0.0.1:${portOf(servers.http)}${path}`,
    urlOf: (listener, path, host = 'fault.test') => `${listener === 'http' ? 'http' : 'https'}://${host}:${portOf(servers[listener])}${path}`,
    caFile,
    expiredCaFile,
    taken(path) {
      const peer = untaken.get(path)?.shift()
      if (peer !== undefined) return Promise.resolve(peer)
      return new Promise((resolve) => takers.set(path, [...takers.get(path) ?? [], resolve]))
    },
    get connectionsOpen() { return raws.open },
    get connections() { return counts.connections },
    get requests() { return counts.requests },
    drained: () => raws.drained(),
    async close() {
      await raws.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A self-signed certificate for fault.test that was valid on the first of January 2020 only. Its key guards nothing. */
export const expiredCertificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBQDCB6KADAgECAhEAqzw7CT45fvOgHb2dQl9+dTAKBggqhkjOPQQDAjAVMRMw
EQYDVQQDEwpmYXVsdC50ZXN0MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDEwMjAwMDAw
MFowFTETMBEGA1UEAxMKZmF1bHQudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABGZaZG2QNI+5yMHmLQrXME0ToYAjDc5m7aO5GZBn4YYFsHRFHBI+WIGruBqp
dLNS8cJFGAJQb7cVzZzJ0z+FBh+jGTAXMBUGA1UdEQQOMAyCCmZhdWx0LnRlc3Qw
CgYIKoZIzj0EAwIDRwAwRAIgLE2+o9aWIrFol4W4W6XzQFv41feH5lUlJavFs0EH
/XYCIEUzhcMWg2leJ6ARfJ8zkrLVkYf0ryKC46k9UIZZsFmi
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgu/2eB+iOoHUHNK1i
Msnd8mue6ZALU8NsUBWeshcVV6uhRANCAARmWmRtkDSPucjB5i0K1zBNE6GAIw3O
Zu2juRmQZ+GGBbB0RRwSPliBq7gaqXSzUvHCRRgCUG+3Fc2cydM/hQYf
-----END PRIVATE KEY-----
`,
}

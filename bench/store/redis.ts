/**
 * Redis behind the benchmark's interface, as one would write it for speed: a server of its own on a Unix socket with
 * appendfsync everysec, its commands pipelined, look-ups of a batch by one HMGET a host, then all that changes in one
 * MULTI. There is one writer, so what was looked up still holds.
 *
 *   u:HOST   hash of fingerprint -> '' while it is queued, then the page row
 *   q:HOST   sorted set of fingerprint, referrer length and texts, by priority and sequence
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { memoryOf, processCpuMsOf } from '../process-meter.ts'
import { HASH_BYTES, STATUS_OK, type Claimed, type EndedPage, type Frontier, type HostClaim } from './frontier.ts'
import { RespClient, type Command } from './resp.ts'
import type { BenchLinks, BenchUrl } from './workload.ts'

const SEQUENCES = 2 ** 44
const PAGE_BYTES = 2 + 2 + 6 + HASH_BYTES

export class RedisFrontier implements Frontier {
  readonly #dir: string
  readonly #server: ChildProcess
  readonly #client: RespClient
  readonly #leased = new Map<string, Set<string>>()
  #sequence = 1

  private constructor(dir: string, server: ChildProcess, client: RespClient) {
    this.#dir = dir
    this.#server = server
    this.#client = client
  }

  static async open(dir: string): Promise<RedisFrontier> {
    mkdirSync(dir, { recursive: true })
    const socketPath = join(dir, 'redis.sock')
    const server = spawn('redis-server', [
      '--port', '0', '--unixsocket', socketPath, '--dir', dir, '--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec',
    ], { stdio: 'ignore' })
    const client = new RespClient(await connected(socketPath, server))
    const frontier = new RedisFrontier(dir, server, client)
    await frontier.#loaded()
    return frontier
  }

  async add(pages: readonly BenchLinks[]): Promise<void> {
    await this.#discover(pages, [])
  }

  async claim(hosts: readonly HostClaim[]): Promise<readonly (readonly Claimed[])[]> {
    const commands = hosts.map(({ host, limit }): Command => ['ZRANGE', `q:${host}`, '0', String(limit + this.#leasedOf(host).size - 1)])
    const replies = await this.#client.pipeline(commands) as Buffer[][]
    return hosts.map(({ host, limit }, index) => {
      const leased = this.#leasedOf(host)
      const claimed: Claimed[] = []
      for (const member of replies[index]!) {
        const id = member.toString('latin1', 0, 16)
        if (leased.has(id) || claimed.length === limit) continue
        leased.add(id)
        claimed.push({ host, url: member.toString('latin1', 20, 20 + member.readUInt16BE(18)), fingerprint: member.subarray(0, 16), at: member })
      }
      return claimed
    })
  }

  async commit(pages: readonly EndedPage[]): Promise<number> {
    const atMs = Date.now()
    const ended = pages.flatMap(({ claimed: { host, at, fingerprint } }): Command[] => {
      const member = at as Buffer
      return [['ZREM', `q:${host}`, member], ['HSET', `u:${host}`, fingerprint, pageRow(member, atMs)]]
    })
    const added = await this.#discover(pages.map(({ links }) => links), ended)
    for (const { claimed: { host, at } } of pages) this.#leasedOf(host).delete((at as Buffer).toString('latin1', 0, 16))
    return added
  }

  async queued(): Promise<number> {
    const [count] = await this.#client.pipeline([['EVAL', "local n = 0 for _, k in ipairs(redis.call('KEYS', 'q:*')) do n = n + redis.call('ZCARD', k) end return n", '0']])
    return count as number
  }

  async bytes(): Promise<{ readonly used: number; readonly file: number }> {
    const [info] = await this.#client.pipeline([['INFO', 'memory']])
    const aof = join(this.#dir, 'appendonlydir')
    const file = readdirSync(aof).reduce((sum, name) => sum + statSync(join(aof, name)).size, 0)
    return { used: Number(/^used_memory:(\d+)/m.exec(String(info))![1]), file }
  }

  server(): { readonly cpuMs: number; readonly ownBytes: number } {
    return { cpuMs: processCpuMsOf(this.#server.pid!), ownBytes: memoryOf(this.#server.pid!).ownBytes }
  }

  async close(): Promise<void> {
    const exited = once(this.#server, 'exit')
    this.#client.close()
    this.#server.kill('SIGTERM')
    await exited
  }

  async #discover(pages: readonly BenchLinks[], also: readonly Command[]): Promise<number> {
    const byHost = new Map<string, { readonly url: BenchUrl; readonly page: BenchLinks }[]>()
    for (const page of pages) {
      for (const url of page.urls) {
        const list = byHost.get(url.host)
        if (list === undefined) byHost.set(url.host, [{ url, page }])
        else list.push({ url, page })
      }
    }
    const hosts = [...byHost]
    const found = await this.#client.pipeline(hosts.map(([host, list]): Command => ['HMGET', `u:${host}`, ...list.map(({ url }) => url.fingerprint)])) as (Buffer | null)[][]
    const commands: Command[] = [['MULTI'], ...also]
    let added = 0
    hosts.forEach(([host, list], index) => {
      const seen: (string | Uint8Array)[] = []
      const queued: (string | Uint8Array)[] = []
      const now = new Set<string>()
      list.forEach(({ url, page }, at) => {
        if (found[index]![at] !== null) return
        const id = Buffer.from(url.fingerprint).toString('latin1')
        if (now.has(id)) return
        now.add(id)
        seen.push(url.fingerprint, '')
        queued.push(String(page.depth * SEQUENCES + this.#sequence++), member(url, page))
      })
      if (now.size === 0) return
      added += now.size
      commands.push(['HSET', `u:${host}`, ...seen], ['ZADD', `q:${host}`, ...queued])
    })
    commands.push(['EXEC'])
    await this.#client.pipeline(commands)
    return added
  }

  /** The server answers commands when it has read its log; new sequences are above all that are in it. */
  async #loaded(): Promise<void> {
    for (;;) {
      const [reply] = await this.#client.pipeline([['GET', 'sequence']], true)
      if (!(reply instanceof Error)) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // Sequences only have to grow; the time in microseconds does, over processes too.
    this.#sequence = Date.now() * 1_000 % SEQUENCES
  }

  #leasedOf(host: string): Set<string> {
    let leased = this.#leased.get(host)
    if (leased === undefined) this.#leased.set(host, leased = new Set())
    return leased
  }
}

/** fingerprint (16) depth (2) url length (2) url referrer */
function member({ fingerprint, url }: BenchUrl, { depth, referrer }: BenchLinks): Buffer {
  const bytes = Buffer.allocUnsafe(20 + url.length + referrer.length)
  bytes.set(fingerprint, 0)
  bytes.writeUInt16BE(depth, 16)
  bytes.writeUInt16BE(url.length, 18)
  bytes.write(url, 20, 'latin1')
  bytes.write(referrer, 20 + url.length, 'latin1')
  return bytes
}

/** status (2) depth (2) fetched at, ms (6) content hash (16) url */
function pageRow(queued: Buffer, atMs: number): Buffer {
  const urlBytes = queued.readUInt16BE(18)
  const bytes = Buffer.alloc(PAGE_BYTES + urlBytes, 7)
  bytes.writeUInt16BE(STATUS_OK, 0)
  queued.copy(bytes, 2, 16, 18)
  bytes.writeUIntBE(atMs, 4, 6)
  queued.copy(bytes, PAGE_BYTES, 20, 20 + urlBytes)
  return bytes
}

async function connected(socketPath: string, server: ChildProcess): Promise<import('node:net').Socket> {
  for (;;) {
    if (server.exitCode !== null) throw new Error(`redis-server ended with ${server.exitCode}`)
    const socket = connect(socketPath)
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    if (isOpen) return socket
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

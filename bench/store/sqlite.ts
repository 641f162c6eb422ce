/**
 * SQLite behind the benchmark's interface, as one would write it for speed: better-sqlite3, WAL with synchronous NORMAL,
 * prepared statements, one transaction a batch, tables WITHOUT ROWID whose keys begin with the host, and state and page
 * facts in one row. better-sqlite3 is installed apart (`npm ci --prefix bench/peers`).
 */
import { createRequire } from 'node:module'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { peersDir } from './peers.ts'
import { HASH_BYTES, STATUS_OK, type Claimed, type EndedPage, type Frontier, type HostClaim } from './frontier.ts'
import type { BenchLinks } from './workload.ts'

/** As much of better-sqlite3 as is used. */
interface Statement {
  run(...values: unknown[]): { readonly changes: number }
  get(...values: unknown[]): Record<string, number> | undefined
  all(...values: unknown[]): Record<string, unknown>[]
}

interface Database {
  pragma(text: string, options?: { simple: boolean }): unknown
  exec(text: string): void
  prepare(text: string): Statement
  transaction<T>(work: () => T): () => T
  close(): void
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS hosts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  CREATE TABLE IF NOT EXISTS urls (
    host INTEGER NOT NULL, fingerprint BLOB NOT NULL, state INTEGER NOT NULL,
    url TEXT, status INTEGER, depth INTEGER, fetched_at INTEGER, content_hash BLOB,
    PRIMARY KEY (host, fingerprint)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS queue (
    host INTEGER NOT NULL, priority INTEGER NOT NULL, sequence INTEGER NOT NULL,
    fingerprint BLOB NOT NULL, url TEXT NOT NULL, depth INTEGER NOT NULL, referrer TEXT,
    PRIMARY KEY (host, priority, sequence)) WITHOUT ROWID;`
const PENDING = 0
const DONE = 1
const CACHE_KB = 262_144
const CHECKPOINT_PAGES = 16_384
/** Of a row of `queue`: claimed and not committed. */
interface Place {
  readonly hostId: number
  readonly priority: number
  readonly sequence: number
  readonly depth: number
}

const contentHash = Buffer.alloc(HASH_BYTES, 7)

export class SqliteFrontier implements Frontier {
  readonly #file: string
  readonly #db: Database
  readonly #hostIds = new Map<string, number>()
  readonly #leased = new Map<number, Set<number>>()
  readonly #statements: Record<'hostId' | 'newHost' | 'see' | 'enqueue' | 'claim' | 'leave' | 'end', Statement>
  #sequence: number

  private constructor(dir: string) {
    mkdirSync(dir, { recursive: true })
    this.#file = join(dir, 'frontier.sqlite')
    const BetterSqlite = createRequire(join(peersDir, 'package.json'))('better-sqlite3') as new (file: string) => Database
    const db = this.#db = new BetterSqlite(this.#file)
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.pragma(`cache_size = -${CACHE_KB}`)
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    db.exec(SCHEMA)
    this.#statements = {
      hostId: db.prepare('SELECT id FROM hosts WHERE name = ?'),
      newHost: db.prepare('INSERT INTO hosts (name) VALUES (?) RETURNING id'),
      see: db.prepare(`INSERT OR IGNORE INTO urls (host, fingerprint, state) VALUES (?, ?, ${PENDING})`),
      enqueue: db.prepare('INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?)'),
      claim: db.prepare('SELECT priority, sequence, fingerprint, url, depth FROM queue WHERE host = ? ORDER BY priority, sequence LIMIT ?'),
      leave: db.prepare('DELETE FROM queue WHERE host = ? AND priority = ? AND sequence = ?'),
      end: db.prepare(`UPDATE urls SET state = ${DONE}, url = ?, status = ?, depth = ?, fetched_at = ?, content_hash = ? WHERE host = ? AND fingerprint = ?`),
    }
    // Nothing is claimed yet, so what is in the queue has lower sequences than what comes.
    this.#sequence = (db.prepare('SELECT max(sequence) AS last FROM queue').get()?.['last'] ?? 0) + 1
  }

  static async open(dir: string): Promise<SqliteFrontier> {
    return new SqliteFrontier(dir)
  }

  async add(pages: readonly BenchLinks[]): Promise<void> {
    this.#db.transaction(() => this.#discover(pages))()
  }

  async claim(hosts: readonly HostClaim[]): Promise<readonly (readonly Claimed[])[]> {
    return hosts.map(({ host, limit }) => {
      const hostId = this.#hostId(host)
      const leased = this.#leased.get(hostId) ?? new Set()
      this.#leased.set(hostId, leased)
      const claimed: Claimed[] = []
      for (const row of this.#statements.claim.all(hostId, limit + leased.size)) {
        const { priority, sequence, depth } = row as unknown as Place
        if (leased.has(sequence) || claimed.length === limit) continue
        leased.add(sequence)
        claimed.push({ host, url: row['url'] as string, fingerprint: row['fingerprint'] as Uint8Array, at: { hostId, priority, sequence, depth } satisfies Place })
      }
      return claimed
    })
  }

  async commit(pages: readonly EndedPage[]): Promise<number> {
    const atMs = Date.now()
    const { leave, end } = this.#statements
    const added = this.#db.transaction(() => {
      for (const { claimed: { url, fingerprint, at } } of pages) {
        const { hostId, priority, sequence, depth } = at as Place
        leave.run(hostId, priority, sequence)
        end.run(url, STATUS_OK, depth, atMs, contentHash, hostId, fingerprint)
      }
      return this.#discover(pages.map(({ links }) => links))
    })()
    for (const { claimed } of pages) {
      const { hostId, sequence } = claimed.at as Place
      this.#leased.get(hostId)!.delete(sequence)
    }
    return added
  }

  async queued(): Promise<number> {
    return this.#db.prepare('SELECT count(*) AS count FROM queue').get()!['count']!
  }

  async bytes(): Promise<{ readonly used: number; readonly file: number }> {
    this.#db.pragma('wal_checkpoint(TRUNCATE)')
    const count = (name: string): number => this.#db.pragma(name, { simple: true }) as number
    return { used: (count('page_count') - count('freelist_count')) * count('page_size'), file: statSync(this.#file).size }
  }

  server(): { readonly cpuMs: number; readonly ownBytes: number } {
    return { cpuMs: 0, ownBytes: 0 }
  }

  async close(): Promise<void> {
    this.#db.close()
  }

  #discover(pages: readonly BenchLinks[]): number {
    const { see, enqueue } = this.#statements
    let added = 0
    for (const { urls, depth, referrer } of pages) {
      for (const { host, fingerprint, url } of urls) {
        const hostId = this.#hostId(host)
        if (see.run(hostId, fingerprint).changes === 0) continue
        enqueue.run(hostId, depth, this.#sequence++, fingerprint, url, depth, referrer)
        added += 1
      }
    }
    return added
  }

  #hostId(name: string): number {
    let id = this.#hostIds.get(name)
    if (id === undefined) {
      id = (this.#statements.hostId.get(name) ?? this.#statements.newHost.get(name))!['id']!
      this.#hostIds.set(name, id)
    }
    return id
  }
}

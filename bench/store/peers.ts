/** Which of the stores that are compared can run here, and why the others cannot. */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** This file is dist/bench/store/peers.js when it runs; the packages of the peers lie in the sources. */
export const peersDir = fileURLToPath(new URL('../../../bench/peers', import.meta.url))

/** Why a peer cannot run; undefined: it can. */
export function sqliteMissing(): string | undefined {
  try {
    const require = createRequire(join(peersDir, 'package.json'))
    // Loading it is not enough: the compiled part is found when a database is opened.
    new (require('better-sqlite3') as new (file: string) => { close(): void })(':memory:').close()
    return undefined
  } catch {
    return 'better-sqlite3 is not installed: npm install --prefix bench/peers'
  }
}

export function redisMissing(): string | undefined {
  return spawnSync('redis-server', ['--version']).error === undefined ? undefined : 'redis-server is not installed: apt-get install redis-server'
}

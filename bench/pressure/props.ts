/**
 * What else a bad afternoon needs, and how it is put away again: a disk of its own, a store that is locked, a parser that
 * is told how it feels, a consumer that is held, a network that is cut. Main thread of the run's process; Linux for disk and
 * network.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ParserMood } from './extractor.ts'

/** A small file system over a directory. Throws where none can be mounted. */
export function mountSmallDisk(dir: string, megabytes: number): void {
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', dir])
  if (status !== 0) throw new Error('no file system can be mounted here: expected the rights of root')
}

export function unmount(dir: string): void {
  spawnSync('umount', ['-l', dir])
}

/** Addresses of the demonstration web's hosts (engine/demo/layout.ts). */
const webRange = '127.1.0.0/16'

/** As when a cable is pulled: the system has no route to any host of a demonstration web, nor to those of others on this machine. */
export function cutNetwork(isCut: boolean): void {
  const { status } = spawnSync('ip', ['route', isCut ? 'add' : 'del', 'unreachable', webRange, 'table', 'local'])
  if (status !== 0 && isCut) throw new Error('no route can be taken away here: expected the rights of root')
  if (isCut) process.once('exit', restoreNetwork)
  else process.off('exit', restoreNetwork)
}

function restoreNetwork(): void {
  cutNetwork(false)
}

const chunkBytes = 1_048_576

/** Writes until there is no room, or gives the room back. */
export function fillDisk(dir: string, isFull: boolean): void {
  const file = join(dir, 'ballast')
  if (!isFull) return fs.rmSync(file)
  const ballast = fs.openSync(file, 'w')
  try {
    for (const chunk = Buffer.alloc(chunkBytes); ;) fs.writeSync(ballast, chunk)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    fs.closeSync(ballast)
  }
}

/** LMDB has one writer at a time, in all processes together: this one begins to write, and waits. */
const lockSource = `
  import { open } from 'lmdb'
  const [dir, forMs] = process.argv.slice(1)
  open({ path: dir, noSubdir: false, maxDbs: 12, encoding: 'binary', keyEncoding: 'binary' }).transactionSync(() => {
    process.stdout.write('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(forMs))
  })
  process.kill(process.pid, 'SIGKILL')`

/** Resolves when no other process can write to the store in this directory, for so long. */
export async function lockStore(dir: string, forMs: number): Promise<void> {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const holder = spawn(process.execPath, ['--input-type=module', '-e', lockSource, dir, String(forMs)], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  holder.unref()
}

export class Parser {
  readonly file: string
  #mood: ParserMood = { pageMs: 0, deathEveryMs: 0 }

  constructor(dir: string) {
    this.file = join(dir, 'parser.json')
    this.set({})
  }

  set(mood: Partial<ParserMood>): void {
    this.#mood = { ...this.#mood, ...mood }
    // In one step: workers read it at any moment.
    fs.writeFileSync(`${this.file}.new`, JSON.stringify(this.#mood))
    fs.renameSync(`${this.file}.new`, this.file)
  }
}

export class Consumer {
  #held: Promise<void> = Promise.resolve()
  #let = (): void => {}

  hold(isHeld: boolean): void {
    this.#let()
    if (isHeld) this.#held = new Promise((resolve) => { this.#let = resolve })
  }

  readonly take = (): Promise<void> => this.#held
}

/**
 * One life of a crawl that is killed again and again: a process is started on the crawl's directory, and SIGKILL comes
 * at a moment that the dice choose. Linux, since the engine's process is found under /proc.
 *
 *   what runs    the command line (a parent, and the engine in a process of its own), or a program with the library
 *   who dies     the engine (its parent starts it again), the parent (the engine ends with it), or both
 *   when         anywhere in the life; while it opens; when page records or WARC bytes were appended, which is within a
 *                commit or just before one; while it ends after SIGINT
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { below, pick, type Dice } from '../../engine/demo/random.ts'

export type Driver = 'command' | 'library'
export type Victim = 'engine' | 'parent' | 'both'
export type Moment = 'anywhere' | 'opening' | 'records' | 'warc' | 'ending'

export interface Plan {
  readonly driver: Driver
  readonly victim: Victim
  readonly moment: Moment
  /** From when it owns its directory, which is as good as opened; of `opening`, from the start. Of `ending`, to SIGINT. Of `records` and `warc`, the longest wait. */
  readonly afterMs: number
  /** Of `ending`: from SIGINT to the kill. */
  readonly endingMs: number
  /** Of `records` and `warc`: the kill comes with this change. */
  readonly changes: number
}

const moments: readonly Moment[] = ['anywhere', 'anywhere', 'anywhere', 'opening', 'opening', 'records', 'records', 'warc', 'ending']
/** About as long as a start takes. */
const openingMsMax = 900
/** A command gives up an engine that dies too often, and waits longer each time. */
const engineDeathsMax = 2

export function planLife(dice: Dice, lifeMsMax: number): Plan {
  const driver = dice() < 0.7 ? 'command' : 'library'
  const moment = pick(dice, moments)
  return {
    driver, moment, victim: driver === 'library' ? 'both' : pick(dice, ['engine', 'parent', 'both', 'both'] as const),
    afterMs: Math.round(dice() * (moment === 'opening' ? openingMsMax : lifeMsMax)),
    endingMs: Math.round(dice() * 300), changes: 1 + below(dice, 8),
  }
}

export function planText({ driver, victim, moment, afterMs, endingMs, changes }: Plan): string {
  const when = { anywhere: `after ${afterMs} ms`, opening: `${afterMs} ms into its opening`, records: `at change ${changes} of the records`, warc: `at change ${changes} of the WARC files`, ending: `${endingMs} ms after SIGINT at ${afterMs} ms` }
  return `${driver}, ${driver === 'library' ? 'its process' : victim} killed ${when[moment]}`
}

/** How a process ended that was not killed. */
export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
}

export interface Commands {
  readonly dir: string
  /** Arguments of `node`, for each driver. */
  readonly args: Readonly<Record<Driver, readonly string[]>>
}

/** A process on the directory; after an engine's death it may go on for another life. */
export class Running {
  readonly driver: Driver
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #stderr = ''
  #engineDeaths = 0

  constructor(driver: Driver, args: readonly string[]) {
    this.driver = driver
    const preload = `--import=${compiled('small-files.js')}`
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: { ...process.env, NODE_OPTIONS: preload } })
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => { this.#stderr += text })
    this.#ended = once(this.#child, 'exit')
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Lives as planned. Answers how it ended when it was faster than the kill; else everything that was to die is dead. */
  async live(plan: Plan, dir: string): Promise<End | undefined> {
    await this.#until(plan, dir)
    if (plan.moment === 'ending') {
      this.#child.kill('SIGINT')
      await Promise.race([sleep(plan.endingMs), this.#ended])
    }
    if (!this.hasEnded) return this.#kill(plan.victim)
    return this.#end()
  }

  /** Waits for its end. */
  async complete(): Promise<End> {
    await this.#ended
    return this.#end()
  }

  #end(): End {
    return { code: this.#child.exitCode, signal: this.#child.signalCode, stderr: this.#stderr }
  }

  /** Ends what is left of it. */
  async end(): Promise<void> {
    if (!this.hasEnded) await this.#kill('both')
  }

  async #until({ moment, afterMs, changes }: Plan, dir: string): Promise<void> {
    if (moment === 'opening') return void await this.#first(() => sleep(afterMs))
    await this.#first((signal) => changesIn(dir, /^control\.sock$/, 1, signal))
    await this.#first((signal) => {
      if (moment !== 'records' && moment !== 'warc') return sleep(afterMs)
      const changed = moment === 'records' ? changesIn(dir, /\.jsonl$/, changes, signal) : changesIn(join(dir, 'warc'), /\.gz$/, changes, signal)
      return Promise.race([changed, sleep(afterMs + openingMsMax)])
    })
  }

  /** Resolves with what is waited for, or with the end of the process. */
  async #first(wait: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const stopped = new AbortController()
    await Promise.race([wait(stopped.signal), this.#ended])
    stopped.abort()
  }

  async #kill(victim: Victim): Promise<undefined> {
    const engines = this.driver === 'command' ? childrenOf(this.#child.pid!) : []
    if (victim === 'engine' && engines.length > 0 && this.#engineDeaths < engineDeathsMax) {
      this.#engineDeaths += 1
      for (const pid of engines) killNow(pid)
      await until(() => this.hasEnded || childrenOf(this.#child.pid!).some((pid) => !engines.includes(pid)))
      return
    }
    // The group is the parent's alone: the engine has a session of its own.
    if (victim !== 'parent') for (const pid of engines) killNow(pid)
    killNow(this.#child.pid!)
    await this.#ended
    await until(() => engines.every((pid) => !isAlive(pid)))
  }
}

/** Starts what the driver says. */
export function start(driver: Driver, { args }: Commands): Running {
  return new Running(driver, args[driver])
}

/** A compiled file, by its place as seen from this folder's; also when this module runs as TypeScript. */
export function compiled(name: string): string {
  const folder = import.meta.url.endsWith('.ts') ? '../../dist/bench/kill/' : './'
  return fileURLToPath(new URL(folder + name, import.meta.url))
}

/** Resolves with the `count`-th change of a file that is named so. */
function changesIn(dir: string, pattern: RegExp, count: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let left = count
    fs.watch(dir, { signal, persistent: false }, (_, name) => {
      if (name === null || !pattern.test(name)) return
      left -= 1
      if (left === 0) resolve()
    })
  })
}

/** The forks of a process's main thread. */
function childrenOf(pid: number): number[] {
  try {
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended by itself.
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms) })
}

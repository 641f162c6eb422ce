/**
 * The hosts that the operator's file excludes (`--exclude-hosts`). They are asked for nothing, robots.txt included, and
 * their URLs end without a fetch as long as the file names them. Main thread.
 *
 * The file is looked at every few seconds, which also sees one that was moved into its place. Invariant: what is in
 * force is the last file that could be read whole. One with a mistake in it changes nothing, and is told of once.
 */
import { stat } from 'node:fs/promises'
import type { Clock } from './core/clock.ts'
import type { SluiceError } from './core/errors.ts'
import { HostPatterns } from './core/host-patterns.ts'
import { limits } from './core/limits.ts'
import { readHostList } from './host-list.ts'

const FLAG = '--exclude-hosts'

export interface ExcludedHostsOptions {
  /** Absent: nothing is excluded. */
  readonly file: string | undefined
  readonly clock: Clock
  /** The file cannot be used any more. */
  readonly onBroken: (error: SluiceError) => void
}

export class ExcludedHosts {
  readonly #is: ExcludedHostsOptions
  /** Called when another list is in force. */
  onChange: () => void = () => {}
  #patterns = new HostPatterns()
  /** What was last looked at, whether it could be used or not. */
  #version = ''
  #cancel: (() => void) | undefined
  #isClosed = false

  private constructor(options: ExcludedHostsOptions) {
    this.#is = options
  }

  /** Throws as `readHostList` does. */
  static async open(options: ExcludedHostsOptions): Promise<ExcludedHosts> {
    const hosts = new ExcludedHosts(options)
    if (options.file === undefined) return hosts
    hosts.#version = await versionOf(options.file)
    hosts.#patterns = await readHostList(FLAG, options.file)
    hosts.#lookLater()
    return hosts
  }

  /** `host` as a queued URL has it. */
  readonly has = (host: string): boolean => this.#patterns.has(host)

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
  }

  #lookLater(): void {
    if (!this.#isClosed) this.#cancel = this.#is.clock.after(limits.excludeHostsLookMs, () => void this.#look().then(() => this.#lookLater()))
  }

  async #look(): Promise<void> {
    const file = this.#is.file!
    // Before it is read: what is written meanwhile is another version, which the next look finds.
    const version = await versionOf(file)
    if (version === this.#version || this.#isClosed) return
    this.#version = version
    try {
      this.#patterns = await readHostList(FLAG, file)
    } catch (error) {
      return this.#is.onBroken(error as SluiceError)
    }
    if (!this.#isClosed) this.onChange()
  }
}

/** Two files that were read differ in it; empty where there is none. */
async function versionOf(file: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(file)
    return `${ino} ${mtimeMs} ${size}`
  } catch {
    return ''
  }
}

/**
 * The hosts that the operator's file excludes (`--exclude-hosts`): one name or pattern a line, `#` begins a comment. They
 * are asked for nothing, robots.txt included, and their URLs end without a fetch as long as the file names them. Main
 * thread.
 *
 * The file is looked at every few seconds, which also sees one that was moved into its place. Invariant: what is in
 * force is the last file that could be read whole. One with a mistake in it changes nothing, and is told of once.
 */
import { readFile, stat } from 'node:fs/promises'
import type { Clock } from './core/clock.ts'
import { SluiceError } from './core/errors.ts'
import { HostPatterns } from './core/host-patterns.ts'
import { limits } from './core/limits.ts'

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

  /** Throws `file_unreadable`. */
  static async open(options: ExcludedHostsOptions): Promise<ExcludedHosts> {
    const hosts = new ExcludedHosts(options)
    if (options.file === undefined) return hosts
    hosts.#version = await versionOf(options.file)
    hosts.#patterns = await readPatterns(options.file)
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
      this.#patterns = await readPatterns(file)
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

async function readPatterns(file: string): Promise<HostPatterns> {
  const patterns = new HostPatterns()
  for (const [index, line] of (await readText(file)).split('\n').entries()) {
    const name = line.split('#', 1)[0]!.trim()
    if (name !== '' && !patterns.add(name)) {
      throw unreadable(`expected a host name such as example.com or *.example.com in line ${index + 1} of ${file}, given ${JSON.stringify(name.slice(0, 100))}`)
    }
  }
  return patterns
}

async function readText(file: string): Promise<string> {
  let text: string | undefined
  try {
    if ((await stat(file)).size <= limits.excludeHostsBytesMax) text = await readFile(file, 'utf8')
  } catch (cause) {
    throw unreadable(`expected a file of host names, given ${file}: ${(cause as Error).message}`, cause)
  }
  if (text === undefined) throw unreadable(`expected at most ${limits.excludeHostsBytesMax} bytes, given ${file}`)
  // Of an editor on Windows.
  return text.replace(/^\uFEFF/, '')
}

function unreadable(message: string, cause?: unknown): SluiceError {
  return new SluiceError('file_unreadable', `--exclude-hosts: ${message}`, { cause })
}

/** Processes of the command line and of small scripts against the built package; nothing outlives its test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const cliPath = fileURLToPath(new URL('../../dist/engine/cli/main.js', import.meta.url))
export const libraryUrl = new URL('../../dist/engine/index.js', import.meta.url).href

export interface Running {
  readonly process: ChildProcess
  readonly pid: number
  readonly output: { stdout: string; stderr: string }
  /** Resolves when the text has appeared on standard output or standard error; rejects when the process ends before. */
  saw(pattern: RegExp): Promise<void>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

export function run(args: readonly string[], options: { input?: string } = {}): Running {
  const child = spawn(process.execPath, [...args], { stdio: 'pipe' })
  const output = { stdout: '', stderr: '' }
  const watchers = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => { output.stdout += text; for (const look of watchers) look() })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { output.stderr += text; for (const look of watchers) look() })
  child.stdin.end(options.input ?? '')
  const ended = once(child, 'close').then(([code, signal]) => ({ code: code as number | null, signal: signal as NodeJS.Signals | null }))
  return {
    process: child, pid: child.pid!, output, ended,
    saw: (pattern) => new Promise((resolve, reject) => {
      const look = (): void => {
        if (!pattern.test(output.stdout) && !pattern.test(output.stderr)) return
        watchers.delete(look)
        resolve()
      }
      watchers.add(look)
      look()
      void ended.then(() => reject(new Error(`ended before ${pattern}: ${output.stdout}${output.stderr}`)))
    }),
  }
}

/** `sluice ARGS` */
export function sluice(args: readonly string[], options: { input?: string } = {}): Running {
  return run([cliPath, ...args], options)
}

/** A module's source against the built library, which it imports as `sluice`. */
export function script(source: string): Running {
  return run(['--input-type=module', '-e', source.replaceAll("'sluice'", JSON.stringify(libraryUrl))])
}

/** Processes whose parent is this one, on Linux. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((each) => {
    try {
      const stat = readFileSync(`/proc/${each}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
    } catch {
      return false
    }
  })
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A zombie answers signals too; it is dead all the same.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Polls until the condition holds; the test's own time-out is the limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => { setTimeout(resolve, 20) })
}

/**
 * The engine in a process of its own, seen from the parent. The process is in a session of its own, so that Ctrl-C on a
 * terminal reaches the parent alone, and it ends with the parent (lifeline.ts).
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { EngineOutput } from './engine-output.ts'
import { frugalMalloc } from './frugal-malloc.ts'
import type { ToChild, ToParent } from './messages.ts'

/** How a process ended. */
export interface Death {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** V8's own words, when it gave any. */
  readonly reason?: string
}

export interface EngineProcess {
  readonly pid: number | undefined
  send(message: ToChild): void
  /** Ends it at once. */
  kill(): void
  /** Resolves when the process is gone and its messages have been handled. */
  readonly exited: Promise<Death>
}

export interface EngineProcessOptions {
  /** Main module of the process; the engine's own by default. */
  readonly entry?: string
  /** A descriptor that becomes the process's standard input. */
  readonly stdinFd?: number
  readonly keepsDump: boolean
  /** It was given a budget of memory. What the user's environment says of memory goes before. */
  readonly isFrugal?: boolean
  readonly onMessage: (message: ToParent) => void
  readonly onLine: (line: string) => void
}

/** Something that the engine started may hold its pipes open after its end; it is not waited for longer than this. */
const pipesMsMax = 300

export function startEngineProcess(options: EngineProcessOptions): EngineProcess {
  // 'advanced', because options and limits may be infinite, which JSON cannot say.
  const child = fork(options.entry ?? enginePath(), [], {
    execArgv: [], detached: true, serialization: 'advanced', stdio: [options.stdinFd ?? 'ignore', 'pipe', 'pipe', 'ipc', 'pipe'],
    ...(options.isFrugal === true && { env: { ...frugalMalloc, ...process.env } }),
  })
  const output = new EngineOutput({ onLine: options.onLine, keepsDump: options.keepsDump })
  output.read(child.stdout!)
  output.read(child.stderr!)
  child.on('message', (message) => options.onMessage(message as ToParent))
  child.stdio[4]?.on('error', () => undefined)
  return {
    pid: child.pid,
    // A process that is gone is noticed by its end, not by a failing send.
    send: (message) => void (child.connected && child.send(message, () => undefined)),
    kill: () => void child.kill('SIGKILL'),
    exited: deathOf(child, output),
  }
}

async function deathOf(child: ChildProcess, output: EngineOutput): Promise<Death> {
  const closed = once(child, 'close')
  const disconnected = once(child, 'disconnect')
  // A process that could not be started fails all three; the one below speaks for them.
  for (const event of [closed, disconnected]) event.catch(() => undefined)
  const [code, signal] = await once(child, 'exit') as [number | null, NodeJS.Signals | null]
  // The exit can be known before the last messages are: the channel's end comes after them.
  await disconnected
  let timer: NodeJS.Timeout | undefined
  await Promise.race([closed, new Promise((resolve) => { timer = setTimeout(resolve, pipesMsMax) })])
  clearTimeout(timer)
  return { code, signal, ...(output.reason !== undefined && { reason: output.reason }) }
}

/** The compiled entry, also when this file runs as TypeScript: Node 20 starts no .ts file. */
function enginePath(): string {
  const isSource = import.meta.url.endsWith('.ts')
  return fileURLToPath(new URL(isSource ? '../../dist/engine/cli/engine-child.js' : './engine-child.js', import.meta.url))
}

/**
 * A demonstration web in a process of its own, so that what it costs is not counted with the crawler. The child ends
 * with its parent: its channel closes, whatever the parent died of. Does not keep the parent alive.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SluiceError } from '../core/errors.ts'
import type { Behaviour, HostTally } from './behaviours.ts'
import type { ToChild, ToParent } from './messages.ts'
import type { DemoWebOptions } from './options.ts'
import type { DemoWeb } from './web.ts'

export interface SpawnedDemoWeb extends Pick<DemoWeb, 'seeds' | 'resolve' | 'caPem' | 'port' | 'pages' | 'close'> {
  readonly pid: number
  /** Resolves when the log file holds every request that was answered before the call. */
  flush(): Promise<void>
  /** Resolves when every request that comes from then on is answered as in this edition. */
  setEdition(edition: number): Promise<void>
  /** Resolves when these hosts behave so; `{}` is well. */
  behave(hosts: readonly string[], behaviour: Behaviour): Promise<void>
  /** What was asked of each host so far; peaks start again. */
  takeTallies(): Promise<ReadonlyMap<string, HostTally>>
}

/** How long a child may take to end after it was told to. */
const closeMsMax = 5_000

/** Throws what `startDemoWeb` throws; `internal` when the process ends before it serves. */
export async function spawnDemoWeb(options: DemoWebOptions = {}): Promise<SpawnedDemoWeb> {
  // Flags of this process (inspector, loaders of a test runner) are none of the child's business.
  const child = fork(entryPath(), [JSON.stringify(options)], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  const message = await nextMessage(child)
  if (message.type === 'failed') throw new SluiceError(message.code, message.message)
  if (message.type !== 'ready') throw new SluiceError('internal', `the demonstration web began with ${message.type}`)
  child.unref()
  child.channel?.unref()
  let asking: Promise<unknown> = Promise.resolve()
  const ask = (message: ToChild): Promise<ToParent> => {
    // One at a time: answers carry no number.
    const before = asking
    const answer = (async () => {
      await before
      return askOnce(child, message)
    })()
    asking = answer
    return answer
  }
  return {
    seeds: message.seeds, resolve: new Map(message.resolve), caPem: message.caPem, port: message.port, pages: message.pages,
    pid: child.pid!,
    flush: async () => void await ask({ type: 'flush' }),
    setEdition: async (edition) => void await ask({ type: 'edition', edition }),
    behave: async (hosts, behaviour) => void await ask({ type: 'behave', hosts, behaviour }),
    async takeTallies() {
      const answer = await ask({ type: 'takeTallies' })
      return new Map(answer.type === 'tallies' ? answer.tallies : [])
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.ref()
      if (child.connected) child.send({ type: 'close' } satisfies ToChild, () => undefined)
      const timer = setTimeout(() => child.kill('SIGKILL'), closeMsMax)
      await exited
      clearTimeout(timer)
    },
  }
}

async function askOnce(child: ChildProcess, message: ToChild): Promise<ToParent> {
  child.channel?.ref()
  child.send(message)
  const answer = await nextMessage(child)
  child.channel?.unref()
  return answer
}

/** The channel's end, and not the process's, is what no message can come after. */
async function nextMessage(child: ChildProcess): Promise<ToParent> {
  const listening = new AbortController()
  const { signal } = listening
  const message = once(child, 'message', { signal }).then(([first]) => first as ToParent)
  const ended = once(child, 'disconnect', { signal }).then(() => undefined)
  const first = await Promise.race([message, ended])
  // The one that did not come leaves its listeners otherwise, and rejects now.
  for (const other of [message, ended]) other.catch(() => undefined)
  listening.abort()
  if (first === undefined) throw new SluiceError('internal', "the demonstration web's process ended by itself")
  return first
}

/** The compiled entry, also when this file runs as TypeScript: Node 20 starts no .ts file. */
function entryPath(): string {
  const isSource = import.meta.url.endsWith('.ts')
  return fileURLToPath(new URL(isSource ? '../../dist/engine/demo/entry.js' : './entry.js', import.meta.url))
}

/**
 * Has a task of care done in a process of its own (care-child.ts), and makes an error of a process that died of it.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SluiceError } from '../core/errors.ts'
import type { CareAnswer, CareTask } from './care-child.ts'

/** Resolves to the task's result. Throws what it threw; `store_corrupt` when the process died over the store. */
export async function inOwnProcess<T>(task: CareTask): Promise<T> {
  const child = fork(entryPath(), [], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc', 'pipe'] })
  child.stdio[4]?.on('error', () => undefined)
  let answer: CareAnswer | undefined
  child.on('message', (message) => { answer = message as CareAnswer })
  child.send(task, () => undefined)
  const [code, signal] = await once(child, 'exit') as [number | null, NodeJS.Signals | null]
  if (child.connected) await once(child, 'disconnect')
  if (answer === undefined) {
    throw new SluiceError('store_corrupt', `the process that read the store in ${task.dir} ${signal === null ? `ended with exit code ${code}` : `died of ${signal}`}: the store is probably damaged`)
  }
  if (answer.ok) return answer.result as T
  throw new SluiceError(answer.code, answer.message)
}

/** The compiled entry, also when this file runs as TypeScript: Node 20 starts no .ts file. */
function entryPath(): string {
  const isSource = import.meta.url.endsWith('.ts')
  return fileURLToPath(new URL(isSource ? '../../dist/engine/cli/care-child.js' : './care-child.js', import.meta.url))
}

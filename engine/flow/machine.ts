/**
 * What the machine, or the container that it gave us, allows this process: memory and open files; and what of the memory
 * it holds. Linux tells it in files; elsewhere what Node knows must do. Reads, never writes; any thread.
 *
 * Resident memory here is anonymous plus shared memory: the store is a mapped file, whose pages the system takes back
 * when it wants.
 */
import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The text of a small file of the system; undefined where there is none. */
export type ReadSystemFile = (path: string) => string | undefined

export const readSystemFile: ReadSystemFile = (path) => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

/** Bytes of memory that this process may be given: the machine's, or less by a control group. */
export function memoryAllowedBytes(read: ReadSystemFile = readSystemFile, machineBytes = totalmem()): number {
  return Math.min(machineBytes, controlGroupBytes(read))
}

/**
 * The least bound of the process's own control group and of those above it; infinite when there is none. Inside a
 * container the path may be the host's, and the group's files then lie at the root: that is looked at too.
 */
function controlGroupBytes(read: ReadSystemFile): number {
  let least = Number.POSITIVE_INFINITY
  for (const line of (read('/proc/self/cgroup') ?? '').split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (controllers === undefined || path === undefined) continue
    // Version 2 has one group, without a name; version 1 one for each controller (cgroups(7)).
    const isUnified = controllers === ''
    if (!isUnified && !controllers.split(',').includes('memory')) continue
    const [root, file] = isUnified ? ['/sys/fs/cgroup', 'memory.max'] : ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes']
    for (const group of withParents(path)) {
      const text = read(`${root}${group}/${file}`)?.trim() ?? ''
      if (/^\d+$/.test(text) && Number(text) > 0) least = Math.min(least, Number(text))
    }
  }
  return least
}

/** `/a/b` -> `/a/b`, `/a`, and the root, which is the empty text. */
function withParents(path: string): readonly string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..')
  return [...parts.map((_, at) => `/${parts.slice(0, parts.length - at).join('/')}`), '']
}

/** Anonymous and shared memory of this process, all its threads. Measured: 10 microseconds. */
export function memoryHeldBytes(read: ReadSystemFile = readSystemFile): number {
  const status = read('/proc/self/status') ?? ''
  const own = /^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]
  const shared = /^RssShmem:\s+(\d+) kB/m.exec(status)?.[1]
  return own === undefined || shared === undefined ? process.memoryUsage.rss() : (Number(own) + Number(shared)) * 1_024
}

/** Has V8 collect all garbage of this thread, which holds it for as long: for moments in which nothing else may go on. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

/** Where nobody tells: macOS lets a process have 10,240, Windows far more. */
const FILES_UNTOLD = 8_192

/** How many files and sockets this process may have open. Node has raised its soft limit to the hard one when it started. */
export function filesOpenMax(read: ReadSystemFile = readSystemFile): number {
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(read('/proc/self/limits') ?? '')?.[1]
  if (soft === undefined) return FILES_UNTOLD
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

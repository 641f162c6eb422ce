/**
 * Limits the page cache of one process, so that a store that is larger than memory can be measured on a machine that has
 * more: a memory cgroup of its own, version 1 or 2, for which the benchmark must be root on Linux. The pages of a file
 * belong to the cgroup that read them first, so the file is dropped from the cache beforehand.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const V1 = '/sys/fs/cgroup/memory'
const V2 = '/sys/fs/cgroup'

export interface CacheLimit {
  /** Moves a process into the group, whose bound is set later: bytes of the process and of its page cache together. */
  hold(pid: number): void
  set(bytes: number): void
  close(): void
}

/** Answers a reason when there can be none. */
export function limitCache(): CacheLimit | string {
  const isV1 = existsSync(join(V1, 'memory.limit_in_bytes'))
  if (!isV1 && !existsSync(join(V2, 'cgroup.controllers'))) return 'there are no memory cgroups'
  const group = join(isV1 ? V1 : V2, `sluice-bench-${process.pid}`)
  try {
    mkdirSync(group)
  } catch (error) {
    return `a memory cgroup cannot be made: ${error instanceof Error ? error.message : String(error)}`
  }
  return {
    hold: (pid) => writeFileSync(join(group, 'cgroup.procs'), String(pid)),
    set: (bytes) => writeFileSync(join(group, isV1 ? 'memory.limit_in_bytes' : 'memory.max'), String(Math.round(bytes))),
    close() {
      try {
        rmdirSync(group)
      } catch {
        // The kernel may still be giving its pages back; an empty group costs nothing.
      }
    },
  }
}

/** Asks the system to forget what it holds of a file in memory. Answers why it did not. */
export function dropFromCache(file: string): string | undefined {
  const { status, error } = spawnSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })
  return status === 0 ? undefined : `${file} stays in the page cache: ${error?.message ?? `dd ended with ${status}`}`
}

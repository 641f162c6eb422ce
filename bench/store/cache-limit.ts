/**
 * Leaves a store less page cache than its file would take, on a machine that has more memory: a tmpfs is filled until no
 * more is available than was asked for. Linux, as root, without swap space (what lies in a tmpfs would go there).
 *
 * A memory cgroup was tried first: its bound holds the process and its cache together, and writing through it waited for
 * the group's own dirty pages, so that a small run did not end within minutes.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CHUNK = Buffer.alloc(4 * 1_048_576)

export interface CacheLimit {
  /** Leaves so many bytes, for the cache and for what processes may grow by. */
  set(bytes: number): void
  close(): void
}

/** Answers a reason when there can be none. */
export function limitCache(): CacheLimit | string {
  if (availableBytes() === undefined) return 'this system does not say how much memory is available'
  if (memoryInfo('SwapTotal') !== 0) return 'there is swap space'
  const dir = mkdtempSync(join(tmpdir(), 'sluice-ballast-'))
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=100%', 'none', dir], { encoding: 'utf8' })
  if (status !== 0) {
    rmSync(dir, { recursive: true })
    return `no file system can be mounted: ${stderr?.trim() ?? 'there is no mount'}`
  }
  const fd = openSync(join(dir, 'ballast'), 'w')
  return {
    set(bytes) {
      while (availableBytes()! > bytes + CHUNK.length) writeSync(fd, CHUNK)
    },
    close() {
      closeSync(fd)
      spawnSync('umount', [dir])
      rmSync(dir, { recursive: true })
    },
  }
}

/** Asks the system to forget what it holds of a file in memory. Answers why it did not. */
export function dropFromCache(file: string): string | undefined {
  const { status, error } = spawnSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })
  return status === 0 ? undefined : `${file} stays in the page cache: ${error?.message ?? `dd ended with ${status}`}`
}

function availableBytes(): number | undefined {
  return memoryInfo('MemAvailable')
}

function memoryInfo(name: string): number | undefined {
  try {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/meminfo', 'utf8'))
    return found === null ? undefined : Number(found[1]) * 1_024
  } catch {
    return undefined
  }
}

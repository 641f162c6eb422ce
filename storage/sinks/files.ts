/**
 * The files of the sinks and their committed lengths. Main thread, at opening and at commits. Invariant (14 of the
 * design): a sink's file is as long as the last transaction says. Bytes are appended, and synced, before the
 * transaction that names the new length; so a file can only be too long when a process died, and opening cuts it.
 * Touches only files that are named like a sink's.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import { SluiceError } from '../../engine/core/errors.ts'

/** Sink files by their name in the crawl directory, with their committed length in bytes. */
export type SinkLengths = ReadonlyMap<string, number>

const jsonlPattern = /^pages-(\d{6,})\.jsonl$/
const warcPattern = /^warc\/sluice-(\d{6,})\.warc\.gz$/

export function jsonlFileName(file: number): string {
  return `pages-${String(file).padStart(6, '0')}.jsonl`
}

/** Numbers of the JSONL or of the WARC files among `names`. */
export function fileNumbers(names: Iterable<string>, kind: 'jsonl' | 'warc'): number[] {
  const pattern = kind === 'jsonl' ? jsonlPattern : warcPattern
  return [...names].flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number)
}

/** Names of the JSONL files, in the order in which they were written. */
export function jsonlFilesOf(lengths: SinkLengths): string[] {
  return fileNumbers(lengths.keys(), 'jsonl').toSorted((a, b) => a - b).map(jsonlFileName)
}

/** Names of all sink files that lie in the crawl directory. */
export function sinkFilesIn(dir: string): string[] {
  const warcDir = path.join(dir, 'warc')
  const names = [
    ...fs.readdirSync(dir),
    ...(fs.existsSync(warcDir) ? fs.readdirSync(warcDir).map((name) => `warc/${name}`) : []),
  ]
  return names.filter((name) => jsonlPattern.test(name) || warcPattern.test(name))
}

/**
 * Cuts every sink file to its committed length and deletes those that have none. A file that is gone was moved away by
 * its owner, and one that is too short was changed by someone else: both are left alone, and never appended to again.
 * Throws `dir_unusable` when something else stands in a file's place.
 */
export function cutSinkFiles(dir: string, lengths: SinkLengths): void {
  try {
    for (const name of sinkFilesIn(dir)) {
      const file = path.join(dir, name)
      const length = lengths.get(name)
      if (length === undefined || length === 0) fs.rmSync(file)
      else cutFile(file, length)
    }
  } catch (error) {
    throw new SluiceError('dir_unusable', `the files in ${dir} cannot be cut to what is stored: ${(error as Error).message}`, { cause: error })
  }
}

/** Cuts one file; a file that is not longer stays as it is. */
export function cutFile(file: string, length: number): void {
  if (fs.statSync(file).size > length) fs.truncateSync(file, length)
}

/**
 * Brings the bytes of a file to the disk, whoever wrote them. Rejects with `disk_failed` when the sync failed, whatever
 * the reason: the system then forgets which bytes are not on the disk, so a second sync that succeeds says nothing.
 */
export async function syncFile(file: string): Promise<void> {
  const handle = await fs.promises.open(file, 'r+').catch((error: unknown) => { throw sinkError(file, error) })
  try {
    await handle.datasync()
  } catch (error) {
    throw syncError(file, error)
  } finally {
    await handle.close()
  }
}

/** A full disk, a quota that is used up, a limit on the size of files; and file descriptors, which sockets give back. */
const noRoomCodes: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE']

/** The write found no room, and may find some later. */
export function isNoRoom(error: unknown): boolean {
  return noRoomCodes.includes((error as { code?: unknown } | null)?.code)
}

/** Of a failed sync: `disk_failed`, see `syncFile`. */
export function syncError(file: string, error: unknown): SluiceError {
  return new SluiceError('disk_failed', `${file} could not be brought to the disk: ${textOf(error)}`, { cause: error })
}

/** Of a failed write: `disk_full` when it may be tried again, else `disk_failed`. */
export function sinkError(file: string, error: unknown): SluiceError {
  return new SluiceError(isNoRoom(error) ? 'disk_full' : 'disk_failed', `${file} could not be written: ${textOf(error)}`, { cause: error })
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * A store without the pages that were freed inside its file. By whoever holds the directory's lock; nothing else has the
 * store open. Invariant: `store/data.mdb` is at every moment the old file or the new one, whole and on the disk.
 *
 *   copy to store/compacted/data.mdb -> sync it -> count its rows -> rename over store/data.mdb -> sync the directory
 *
 * What a process leaves behind that dies on the way is removed by the next opening, or the next time.
 */
import * as fs from 'node:fs'
import * as path from 'node:path'
import { SluiceError } from '../../engine/core/errors.ts'
import { openEnvironment, tableNames, type Environment } from './environment.ts'
import { checkVersion } from './state.ts'

const COPY = 'compacted'
const DATA = 'data.mdb'

export interface Compacted {
  readonly bytesBefore: number
  readonly bytesAfter: number
}

/** The moments between which a process may die; for tests. */
export type CompactStep = 'begin' | 'copied' | 'synced' | 'counted' | 'renamed'

/** Removes the copy that a dead process left. */
export function removeUnfinishedCopy(storeDir: string): void {
  fs.rmSync(path.join(storeDir, COPY), { recursive: true, force: true })
}

/** Throws `no_crawl`, `store_version`, `store_corrupt`, and `disk_failed`, when there is no room: then nothing has changed. */
export async function compactStore(dir: string, onStep: (step: CompactStep) => void = () => {}): Promise<Compacted> {
  const storeDir = path.join(dir, 'store')
  const copyDir = path.join(storeDir, COPY)
  removeUnfinishedCopy(storeDir)
  onStep('begin')
  const data = path.join(storeDir, DATA)
  const environment = openForReading(storeDir)
  const bytesBefore = environment.fileBytes()
  try {
    checkRoom(storeDir, environment.bytesUsed())
    fs.mkdirSync(copyDir)
    await environment.copyTo(copyDir)
    onStep('copied')
    sync(path.join(copyDir, DATA), 'r+')
    onStep('synced')
    await checkCopy(environment, copyDir)
    onStep('counted')
  } catch (error) {
    removeUnfinishedCopy(storeDir)
    throw error instanceof SluiceError ? error : new SluiceError('disk_failed', `the copy of the store could not be written: ${(error as Error).message}`, { cause: error })
  } finally {
    await environment.close()
  }
  fs.renameSync(path.join(copyDir, DATA), data)
  sync(storeDir, 'r')
  onStep('renamed')
  removeUnfinishedCopy(storeDir)
  return { bytesBefore, bytesAfter: fs.statSync(data).size }
}

function openForReading(storeDir: string): Environment {
  const environment = openEnvironment(storeDir, { readOnly: true }, checkVersion)
  if (environment === undefined) throw new SluiceError('no_crawl', `${storeDir} holds no crawl`)
  return environment
}

/** The copy takes what is in use; half as much again is left to others. */
function checkRoom(storeDir: string, bytesUsed: number): void {
  const { bavail, bsize } = fs.statfsSync(storeDir)
  const [free, needed] = [bavail * bsize, Math.ceil(1.5 * bytesUsed)]
  if (free < needed) throw new SluiceError('disk_failed', `the compact copy of the store needs ${needed} bytes of room, and ${free} are free`)
}

async function checkCopy(environment: Environment, copyDir: string): Promise<void> {
  const copy = openForReading(copyDir)
  try {
    for (const name of tableNames) {
      const [was, is] = [environment.rowsOf(name), copy.rowsOf(name)]
      if (was !== is) throw new SluiceError('store_corrupt', `the compact copy of the store has ${is} rows of ${name}, and not ${was}; the store is left as it was`)
    }
  } finally {
    await copy.close()
  }
}

function sync(file: string, flags: string): void {
  const fd = fs.openSync(file, flags)
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

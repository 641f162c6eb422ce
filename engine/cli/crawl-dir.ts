/** Whether a directory holds a crawl, as far as its names tell; the store is not touched. Leaf module. */
import fs from 'node:fs'
import path from 'node:path'
import { SluiceError } from '../core/errors.ts'

/** Throws `dir_unusable` when nobody may look there: that is no directory without a crawl. */
export function holdsStore(dir: string): boolean {
  try {
    fs.statSync(path.join(dir, 'store'))
    return true
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw new SluiceError('dir_unusable', `${dir} cannot be looked into: ${message}`, { cause: error })
  }
}

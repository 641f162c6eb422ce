/**
 * A file with secrets, as the JSON that it holds: found, and read within a bound. Main thread; once for a command and once
 * for a crawl. No message repeats a part of it: not even what JSON.parse says, which quotes the text.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { SluiceError } from '../core/errors.ts'

/** Throws `file_unreadable`, and `bad_option` for what is too long or no JSON. */
export function readSecretFile(flag: string, path: string, bytesMax: number): unknown {
  return jsonOf(flag, path, readTextFile(flag, path, bytesMax))
}

/** A file that may be larger than it should be, or have no end. Throws `file_unreadable` and `bad_option`. */
function readTextFile(flag: string, path: string, bytesMax: number): string {
  const buffer = Buffer.alloc(bytesMax + 1)
  let length = 0
  try {
    const file = openSync(path, 'r')
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) read = readSync(file, buffer, length, buffer.length - length, null)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new SluiceError('file_unreadable', `${flag}: expected a file, given ${path}: ${(error as Error).message}`, { cause: error })
  }
  if (length > bytesMax) throw new SluiceError('bad_option', `${flag}: ${path}: expected a file of at most ${bytesMax} bytes`)
  return buffer.toString('utf8', 0, length)
}

function jsonOf(flag: string, path: string, text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
  } catch (error) {
    const at = /position (\d+)/.exec((error as Error).message)?.[1]
    const place = at === undefined ? '' : ` (line ${text.slice(0, Number(at)).split('\n').length})`
    throw new SluiceError('bad_option', `${flag}: ${path}: expected JSON${place}; what it holds is not shown here`)
  }
}
